//! Servers of tests have no threads, and all of their tasks end with them. A process of its own, since it counts threads.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "tests")]

use std::time::Duration;

use apiloom_kinds::core::v1::{Event, ObjectReference};
use apiloom_meta::ObjectMeta;
use apiloom_testing::TestServer;

fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").unwrap().count()
}

fn tasks() -> usize {
    tokio::runtime::Handle::current()
        .metrics()
        .num_alive_tasks()
}

#[test]
fn nothing_is_left_of_servers() {
    let before = threads();
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_all().build().unwrap();
    runtime.block_on(async {
        for is_stopped in [true, false] {
            let server = TestServer::builder().built_in().garbage_collector();
            let server = server.namespace_controller().build().await.unwrap();
            let port = server.listen().await.unwrap();
            // Events expire, which a store of another kind sees to by a thread.
            let events = server.client().namespaced::<Event>("default");
            let event = Event {
                metadata: ObjectMeta {
                    name: Some("a".to_owned()),
                    ..ObjectMeta::default()
                },
                involved_object: ObjectReference {
                    namespace: Some("default".to_owned()),
                    ..ObjectReference::default()
                },
                ..Event::default()
            };
            events.create(&event).await.unwrap();
            let watch = events.watch().await.unwrap();
            assert_eq!(threads(), before);
            drop(port);
            if is_stopped {
                drop(watch);
                server.stop().await;
            } else {
                drop((watch, server));
            }
            let ended = async {
                while tasks() > 0 {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            };
            let ended = tokio::time::timeout(Duration::from_secs(10), ended).await;
            assert!(ended.is_ok(), "{} tasks are left", tasks());
        }
    });
    drop(runtime);
    assert_eq!(threads(), before);
}
