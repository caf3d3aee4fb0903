//! Controllers whose keys are those of objects, fed by informers.

use apiloom_meta::Resource;

use super::super::owner::controller_key;
use super::controller::Controller;
use crate::cache::{Informer, ObjectKey};
use crate::client::Kind;

impl<O> Controller<ObjectKey, O> {
    /// Reconciles the objects of an informer when they change. Its cache is that of their resource
    /// ([`Controller::cache`]). Objects of their kind are the owners in calls of [`Controller::owns`] after this one.
    #[must_use]
    pub fn watch_self<K: Kind>(self, informer: &Informer<K>) -> Controller<ObjectKey, K> {
        let resource = K::api_resource().group_resource();
        self.watch(informer, |object| [ObjectKey::of(object)])
            .cache(resource, informer.lister())
            .with_owner()
    }
}

/// The kind of the objects that [`Controller::watch_self`] was given: every [`Resource`] is one.
#[diagnostic::on_unimplemented(
    message = "`owns` needs the kind of the owners, which `watch_self` names",
    label = "this controller watches no objects of its own yet",
    note = "call `.watch_self(&informer)` before `.owns(..)`, with an informer of the owners"
)]
pub trait Owner: Resource {}

#[diagnostic::do_not_recommend]
impl<K: Resource> Owner for K {}

impl<O> Controller<ObjectKey, O> {
    /// Reconciles the objects that control the objects of an informer, when these change; they are of the kind that
    /// [`Controller::watch_self`] was given before. Its cache is that of their resource ([`Controller::cache`]).
    ///
    /// Without owners it does not compile:
    /// ```compile_fail,E0277
    /// # use apiloom_kinds::core::v1::{ConfigMap, Secret};
    /// # use apiloom_client::{cache::Informer, controller::Controller};
    /// fn controller(maps: &Informer<ConfigMap>, secrets: &Informer<Secret>) {
    ///     let _ = Controller::new("example").owns(secrets).watch_self(maps);
    /// }
    /// ```
    #[must_use]
    pub fn owns<K: Resource>(self, informer: &Informer<K>) -> Self
    where
        O: Owner,
    {
        let scope = O::definition().scope;
        let resource = K::api_resource().group_resource();
        self.watch(informer, move |object| {
            controller_key::<O>(object.metadata(), scope)
        })
        .cache(resource, informer.lister())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    use apiloom_kinds::core::v1::{ConfigMap, Secret};
    use apiloom_meta::ObjectMeta;
    use futures_util::future::{BoxFuture, FutureExt as _};
    use futures_util::stream::{StreamExt as _, unfold};
    use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

    use super::*;
    use crate::cache::Event;
    use crate::cache::{
        ListItem, ListPage, ListRequest, ListWatch, SourceError, SourceErrorKind, WatchItem,
        WatchRequest, WatchStream,
    };
    use crate::controller::{Action, EventSource, Priority, set_controller};

    /// Lists nothing and refuses streamed lists; watches show what a test sends.
    struct Script<T>(Mutex<Option<UnboundedReceiver<WatchItem<T>>>>);

    fn script<T>() -> (UnboundedSender<WatchItem<T>>, Script<T>) {
        let (send, receive) = unbounded_channel();
        (send, Script(Mutex::new(Some(receive))))
    }

    impl<T: Send + 'static> ListWatch<T> for Script<T> {
        fn list(&self, _: ListRequest) -> BoxFuture<'_, Result<ListPage<T>, SourceError>> {
            let page = ListPage {
                items: Vec::<ListItem<T>>::new(),
                resource_version: "1".to_owned(),
                continue_token: None,
                bytes: 0,
            };
            std::future::ready(Ok(page)).boxed()
        }

        fn watch(
            &self,
            request: WatchRequest,
        ) -> BoxFuture<'_, Result<WatchStream<T>, SourceError>> {
            let items = if request.initial_events {
                None
            } else {
                self.0.lock().unwrap().take()
            };
            let stream = items.map(|items| {
                unfold(items, |mut items| async move {
                    Some((Ok(items.recv().await?), items))
                })
                .boxed()
            });
            let refused = || SourceError::new(SourceErrorKind::Refused, "no watch");
            std::future::ready(stream.ok_or_else(refused)).boxed()
        }
    }

    fn metadata(name: &str, version: &str) -> ObjectMeta {
        ObjectMeta {
            namespace: Some("default".to_owned()),
            name: Some(name.to_owned()),
            uid: Some(format!("uid-{name}")),
            resource_version: Some(version.to_owned()),
            ..ObjectMeta::default()
        }
    }

    fn config_map(name: &str, version: &str) -> ConfigMap {
        let metadata = metadata(name, version);
        ConfigMap {
            metadata,
            ..ConfigMap::default()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn trap_39_informers_feed_a_controller_and_its_guard() {
        let (send_maps, maps) = script();
        let (send_secrets, secrets) = script();
        let maps = Informer::<ConfigMap>::builder(maps)
            .name("configmaps")
            .build();
        let secrets = Informer::<Secret>::builder(secrets).name("secrets").build();
        let log = Arc::new(Mutex::new(Vec::new()));
        let lister = secrets.lister();
        let running = Controller::new("test")
            .workers(1)
            .watch_self(&maps)
            .owns(&secrets)
            .start({
                let log = Arc::clone(&log);
                move |request, context| {
                    let mut log = log.lock().unwrap();
                    let seen = lister.resource_version();
                    log.push((request.key.to_string(), request.priority, seen));
                    // Creates the secret, as the first call does.
                    if log.len() == 1 {
                        let metadata = metadata("owned", "7");
                        context.writes().record(&Secret {
                            metadata,
                            ..Secret::default()
                        });
                    }
                    std::future::ready(Ok(Action::Done))
                }
            });
        maps.start();
        secrets.start();
        send_maps
            .send(WatchItem::Added(config_map("a", "5")))
            .unwrap();
        running.wait_idle().await;
        // It changes before the cache shows the secret.
        send_maps
            .send(WatchItem::Modified(config_map("a", "6")))
            .unwrap();
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert_eq!(log.lock().unwrap().len(), 1);
        let mut secret = Secret {
            metadata: metadata("owned", "7"),
            ..Secret::default()
        };
        set_controller(&mut secret.metadata, &config_map("a", "5")).unwrap();
        send_secrets.send(WatchItem::Added(secret)).unwrap();
        running.wait_idle().await;
        let log: Vec<_> = log.lock().unwrap().drain(..).collect();
        let version = |text| crate::cache::ResourceVersion::new(text);
        let key = || "default/a".to_owned();
        assert_eq!(
            log,
            [
                (key(), Priority::Normal, version("1")),
                (key(), Priority::Normal, version("7")),
            ]
        );
        running.shutdown().await;
        maps.shutdown().await;
        secrets.shutdown().await;
    }

    fn owned(name: &str, version: &str, owner: &str) -> Secret {
        let mut metadata = metadata(name, version);
        set_controller(&mut metadata, &config_map(owner, "1")).unwrap();
        Secret {
            metadata,
            ..Secret::default()
        }
    }

    /// A call may have read each of the states from the cache, also those that were soon replaced.
    #[tokio::test(start_paused = true)]
    async fn every_state_of_an_object_is_mapped_to_its_key() {
        let (send, secrets) = script();
        let secrets = Informer::<Secret>::builder(secrets).name("secrets").build();
        // Its objects are none; the owners are of its kind.
        let (_send_maps, maps) = script();
        let maps = Informer::<ConfigMap>::builder(maps)
            .name("configmaps")
            .build();
        let log = Arc::new(Mutex::new(Vec::new()));
        let running = Controller::new("test")
            .watch_self(&maps)
            .owns(&secrets)
            .start({
                let log = Arc::clone(&log);
                move |request, _| {
                    log.lock().unwrap().push(request.key.name.to_string());
                    std::future::ready(Ok(Action::Done))
                }
            });
        maps.start();
        secrets.start();
        let reconciled = async |events: Vec<WatchItem<Secret>>| {
            for event in events {
                send.send(event).unwrap();
            }
            running
                .run_until_idle(Duration::from_secs(60))
                .await
                .unwrap();
            let mut keys: Vec<String> = log.lock().unwrap().drain(..).collect();
            keys.sort();
            keys
        };
        assert_eq!(reconciled(vec![]).await, [""; 0]);
        let first = WatchItem::Added(owned("s", "5", "a"));
        assert_eq!(reconciled(vec![first]).await, ["a"]);
        // The cache gets all of these at once.
        let changes = vec![
            WatchItem::Modified(owned("s", "6", "b")),
            WatchItem::Modified(owned("s", "7", "c")),
            WatchItem::Modified(owned("s", "8", "d")),
        ];
        assert_eq!(reconciled(changes).await, ["a", "b", "c", "d"]);
        let short_lived = vec![
            WatchItem::Added(owned("t", "9", "e")),
            WatchItem::Deleted(owned("t", "10", "e")),
        ];
        assert_eq!(reconciled(short_lived).await, ["e"]);
        let changed_and_deleted = vec![
            WatchItem::Modified(owned("s", "11", "f")),
            WatchItem::Deleted(owned("s", "12", "f")),
        ];
        assert_eq!(reconciled(changed_and_deleted).await, ["d", "f"]);
        running.shutdown().await;
        maps.shutdown().await;
        secrets.shutdown().await;
    }

    #[tokio::test(start_paused = true)]
    async fn an_informer_shows_its_objects_again_when_it_is_asked() {
        let (send, source) = script();
        let maps = Informer::<ConfigMap>::builder(source).build();
        maps.start();
        let log = Arc::new(Mutex::new(Vec::new()));
        let subscription = EventSource::subscribe(&maps, {
            let log = Arc::clone(&log);
            Box::new(move |event| {
                let kind = match &event {
                    Event::Added { .. } => "added",
                    Event::Resync { .. } => "again",
                    _ => return,
                };
                let name = event
                    .object()
                    .and_then(|object| object.metadata.name.clone());
                log.lock().unwrap().push((kind, name.unwrap_or_default()));
            })
        });
        let events = async || {
            tokio::time::sleep(Duration::from_secs(1)).await;
            let mut events: Vec<_> = log.lock().unwrap().drain(..).collect();
            events.sort();
            events
        };
        for name in ["a", "b"] {
            send.send(WatchItem::Added(config_map(name, "2"))).unwrap();
        }
        let of = |kind| [(kind, "a".to_owned()), (kind, "b".to_owned())];
        assert_eq!(events().await, of("added"));
        subscription.resync();
        assert_eq!(events().await, of("again"));
        subscription.stop().await;
        maps.shutdown().await;
    }

    #[tokio::test(start_paused = true)]
    async fn trap_35_no_event_is_handled_after_the_controller_stopped() {
        let tasks = || {
            tokio::runtime::Handle::current()
                .metrics()
                .num_alive_tasks()
        };
        let before = tasks();
        let (send, source) = script();
        let maps = Informer::<ConfigMap>::builder(source).build();
        maps.start();
        let log = Arc::new(Mutex::new(0));
        let running = Controller::<ObjectKey>::new("test")
            .watch_with(&maps, {
                let log = Arc::clone(&log);
                move |_, _| {
                    *log.lock().unwrap() += 1;
                    panic!("a mapping that panics does not end the others");
                }
            })
            .start(async |_, _| Ok(Action::Done));
        for version in ["2", "3"] {
            let name = format!("map-{version}");
            send.send(WatchItem::Added(config_map(&name, version)))
                .unwrap();
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(*log.lock().unwrap(), 2);
        running.shutdown().await;
        send.send(WatchItem::Added(config_map("late", "4")))
            .unwrap();
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(*log.lock().unwrap(), 2);
        assert_eq!(maps.lister().len(), 3);
        maps.shutdown().await;
        assert_eq!(tasks(), before);
    }
}
