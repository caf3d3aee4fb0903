//! A server whose disk refuses writes: writes fail with an error, which suggests a retry only if that may help, reads
//! and watches still work, and writes work again when the disk does.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "tests")]

use std::process::Command;
use std::time::{Duration, Instant};

use apiloom_tests::wardle::{FLUNDERS, flunder};
use apiloom_tests::{Server, repository};
use serde_json::{Value, json};

const ENOSPC: i32 = 28;
const EROFS: i32 = 30;
const EIO: i32 = 5;

#[tokio::test]
async fn a_disk_that_refuses_writes_does_not_stop_reads() {
    let scratch = tempfile::tempdir().unwrap();
    let (library, deny) = (scratch.path().join("deny.so"), scratch.path().join("deny"));
    let data_dir = scratch.path().join("data");
    let compiled = Command::new("cc")
        .args(["-O1", "-shared", "-fPIC", "-o"])
        .arg(&library)
        .arg(repository().join("tests/powerloss/deny.c"))
        .arg("-ldl")
        .status();
    assert!(compiled.expect("a C compiler").success());
    let server = Server::start_with(
        &data_dir,
        &[
            ("LD_PRELOAD", &library),
            ("DENY_DIR", &data_dir.join("store")),
            ("DENY_FILE", &deny),
        ],
    );
    let client = server.client();
    assert_eq!(client.post(FLUNDERS, &flunder("a")).await.code, 201);
    for number in [ENOSPC, EROFS, EIO] {
        let before = client.get(FLUNDERS).await.json();
        let since = before["metadata"]["resourceVersion"].as_str().unwrap();
        let mut watch = client
            .watch(&format!("{FLUNDERS}?watch=1&resourceVersion={since}"))
            .await;
        std::fs::write(&deny, number.to_string()).unwrap();
        let name = format!("b{number}");
        let refused = client.post(FLUNDERS, &flunder(&name)).await;
        let status = refused.json();
        let (reason, message) = match number {
            EIO => (
                json!("ServerTimeout"),
                "The create operation against flunders.wardle.example.com could not be completed at this time, please \
                 try again.",
            ),
            ENOSPC => (Value::Null, "the store cannot be written: the disk is full"),
            _ => (
                Value::Null,
                "the store cannot be written: the disk is read-only",
            ),
        };
        assert_eq!(
            (
                refused.code,
                &status["kind"],
                &status["reason"],
                &status["message"]
            ),
            (500, &json!("Status"), &reason, &json!(message)),
            "{status}"
        );
        let health = client.get("/readyz/storage").await;
        assert_eq!(health.code, 500);
        assert!(health.text().contains("the store cannot be written"));
        assert_eq!(client.get(&format!("{FLUNDERS}/a")).await.code, 200);
        assert_eq!(client.get(FLUNDERS).await.json(), before);
        assert_eq!(client.get("/livez").await.code, 200);

        std::fs::remove_file(&deny).unwrap();
        let begin = Instant::now();
        while client.get("/readyz").await.code != 200 {
            assert!(begin.elapsed() < Duration::from_secs(30), "errno {number}");
        }
        assert_eq!(client.post(FLUNDERS, &flunder(&name)).await.code, 201);
        let event = watch.event().await;
        assert_eq!(event["object"]["metadata"]["name"], json!(name));
    }
    let last = client.get(FLUNDERS).await.json();
    assert_eq!(last["items"].as_array().unwrap().len(), 4);
    let (_, _dir) = server.stop();
    let server = Server::start_with(&data_dir, &[]);
    let again = server.client().get(FLUNDERS).await.json();
    assert_eq!(again["items"], last["items"]);
}
