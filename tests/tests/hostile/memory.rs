//! A server with little memory: its bounds are shares of it, and it reserves little that it does not use.

use std::io::Write as _;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use apiloom_tests::https::{self, HttpsServer, SignedBy};
use apiloom_tests::wardle::{FISCHERS, FLUNDERS, flunder};
use apiloom_tests::{Server, build};
use bytes::Bytes;
use futures_util::future::{join_all, try_join_all};
use serde_json::{Map, json};
use tokio::runtime::Runtime;

use crate::definitions::{Attacked, MUCH_ROOM};
use crate::interrupts::until_idle;
use crate::process::{self, MIB};
use crate::wire::{Call, OPEN, Target};

/// Its address space: an allocation above it fails, which ends the process.
pub(crate) const MEMORY_KIB: u32 = 512 * 1024;

/// Timeout of what comes in a moment, unless other processes need the processors.
const PATIENCE: Duration = Duration::from_secs(300);

#[test]
fn bounds_are_shares_of_the_memory() {
    let script = format!("ulimit -v {MEMORY_KIB} && exec \"$0\" --help");
    let help = Command::new("sh")
        .args(["-c", &script])
        .arg(build("wardle-server"))
        .output()
        .unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    for (flag, mib) in [
        ("--max-definition-bytes", 64),
        ("--watch-cache-history-bytes", 32),
    ] {
        let (_, text) = help.split_once(flag).unwrap();
        let (_, default) = text.split_once("[default: ").unwrap();
        let expected = format!("{}]", mib * MIB);
        assert!(default.starts_with(&expected), "{flag} {text}");
    }
}

// SQLite and the cryptography, which are written in C, had memory of their own: 64 MiB of address space for each thread.
#[test]
fn little_address_space_is_reserved() {
    let server = Server::start_with_memory(MEMORY_KIB, &[]);
    let target = Target::of(&server);
    Runtime::new().unwrap().block_on(async {
        let calls = (0..40).map(|index| {
            let (target, name) = (target.clone(), format!("a{index}"));
            async move {
                let body = Bytes::from(flunder(&name).to_string());
                let call = Call::new("POST", FLUNDERS).with_body("application/json", body);
                target.call(call).await
            }
        });
        let answers = try_join_all(calls).await.unwrap();
        assert!(answers.iter().all(|answer| answer.code == 201));
    });
    let reserved = process::address_space(server.pid()) / MIB;
    println!("{reserved} MiB of address space");
    assert!(reserved < 320, "{reserved} MiB of address space");
    server.stop();
}

/// Each of 60 requests may have a body of 3 MiB; all of them together have a sixteenth of the memory.
#[test]
fn bodies_have_a_bound_together() {
    const BODIES: usize = 60;
    const BYTES: usize = 3 * 1024 * 1024 - 1024;
    let server = Server::start_with_memory(MEMORY_KIB, &[]);
    let target = Target::of(&server);
    Runtime::new().unwrap().block_on(async {
        let http2 = target.http2(OPEN).await.unwrap();
        let mut streams = Vec::new();
        let mut answers = Vec::new();
        for _ in 0..BODIES {
            let call = Call::new("POST", FLUNDERS).with_header("content-type", "application/json");
            let (answer, mut stream) = http2.begin(&call, false).await.unwrap();
            // Without its end, so that it is kept.
            stream.send_data(vec![b' '; BYTES].into(), false).unwrap();
            streams.push(stream);
            answers.push(tokio::spawn(answer));
        }
        let mut refused = 0;
        let mut pending = answers;
        while refused < BODIES - 16 {
            let (answer, _, others) = futures_util::future::select_all(pending).await;
            let answer = answer.unwrap().unwrap();
            assert_eq!(answer.status(), 429);
            assert_eq!(answer.headers()["retry-after"], "1");
            refused += 1;
            pending = others;
        }
        // Small bodies need no room, and what is dropped gives it back.
        let create = async |name: &str, bytes: usize| {
            let mut body = flunder(name).to_string();
            body += &" ".repeat(bytes);
            let call = Call::new("POST", FLUNDERS).with_body("application/json", body.into());
            target.call(call).await.unwrap().code
        };
        assert_eq!(create("small", 0).await, 201);
        drop(streams);
        join_all(pending).await;
        let mut code = create("large", BYTES - 1024).await;
        while code == 429 {
            code = create("large", BYTES - 1024).await;
        }
        assert_eq!(code, 201);
    });
    let peak = process::peak(server.pid()) / MIB;
    println!("{peak} MiB");
    assert!(peak < 256, "{peak} MiB");
    server.stop();
}

/// Each document of 1.2 MB becomes 40 times as much while it is worked on, one after the other. What they left behind, which the allocator
/// kept for a second, came to 280 MiB.
#[test]
fn memory_of_documents_is_used_again() {
    let server = Server::start_with_memory(2 * MEMORY_KIB, &[]);
    let counts = send_documents(&server, 30);
    let peak = process::peak(server.pid()) / MIB;
    println!("{peak} MiB, {counts:?}");
    assert_eq!(counts[1], 0, "{counts:?}");
    assert!(peak < 220, "{peak} MiB");
    server.stop();
}

/// The allocator reserves more than it uses, by chance 300 MiB for these documents: then one of their parts, of 32 MiB, found no room.
#[test]
fn documents_do_not_end_a_server_without_address_space() {
    for mib in [490, 470] {
        let server = Server::start_with_memory(mib * 1024, &[]);
        let counts = send_documents(&server, 15);
        let most = process::peak_address_space(server.pid()) / MIB;
        println!("{most} MiB of {mib}, {counts:?}");
        assert!(counts[0] > 0, "{counts:?}");
        server.stop();
    }
}

/// The schemas of 10 definitions are 2.3 MB of OpenAPI. As values they took 73 MiB together, and each document was a text as a whole.
#[test]
fn documents_of_openapi_are_built_of_texts() {
    let properties: Map<_, _> = (0..5000)
        .map(|at| (format!("p{at}"), json!({"type": "integer", "minimum": at})))
        .collect();
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}});
    let folder = tempfile::tempdir().unwrap();
    let attacked = Attacked::start(folder.path(), MUCH_ROOM);
    let target = Target::of(&attacked.server);
    let pid = attacked.server.pid();
    Runtime::new().unwrap().block_on(async {
        for number in 0..10 {
            attacked.define(number, &schema).await;
        }
        for path in ["/openapi/v3/apis/ex.io/v1", "/openapi/v2"] {
            let version = path.split('/').nth(2).unwrap();
            let protobuf =
                format!("application/com.github.proto-openapi.spec.{version}@v1.0+protobuf");
            for format in ["application/json", &protobuf] {
                process::reset_peak(pid);
                let before = process::resident(pid);
                let call = Call::new("GET", path)
                    .with_header("accept", format)
                    .with_header("accept-encoding", "gzip");
                let answer = target.call(call).await.unwrap();
                assert_eq!(answer.code, 200);
                let mib = process::peak(pid).saturating_sub(before) / MIB;
                println!("{path} {format}: {mib} MiB");
                assert!(mib < 20, "{path} {format}: {mib} MiB");
            }
        }
    });
    attacked.server.stop();
}

/// Another server answers each question for its documents with 50,000 resources in 2.7 MB, which took 63 MiB as a value, and several of them
/// at the same time.
#[test]
fn documents_of_other_servers_stay_texts() {
    const SERVICES: usize = 6;
    let resource = r#"{"name":"things","kind":"Thing","verbs":["get","list"]}"#;
    let list = Bytes::from(format!(
        r#"{{"kind":"APIResourceList","resources":[{}]}}"#,
        vec![resource; 50_000].join(",")
    ));
    let asked = Arc::new(AtomicUsize::new(0));
    let runtime = Runtime::new().unwrap();
    let counter = Arc::clone(&asked);
    let other = runtime.block_on(HttpsServer::start(SignedBy::Itself, move |request| {
        let is_openapi = request.uri().path().starts_with("/openapi/");
        counter.fetch_add(usize::from(is_openapi), Ordering::Relaxed);
        let list = list.clone();
        async move { https::text(200, list) }
    }));
    let mut services = tempfile::NamedTempFile::with_suffix(".yaml").unwrap();
    writeln!(services, "default/hook: https://{}", other.address).unwrap();
    let resolver = format!("--service-resolver={}", services.path().display());
    let server = Server::start_with_memory(2 * MEMORY_KIB, &[&resolver]);
    let (pid, target) = (server.pid(), Target::of(&server));
    let mib = runtime.block_on(async {
        until_idle(pid).await;
        process::reset_peak(pid);
        let before = process::resident(pid);
        for number in 0..SERVICES {
            let group = format!("g{number}.ex.io");
            let service = json!({
                "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": format!("v1.{group}")},
                "spec": {"group": group, "version": "v1", "groupPriorityMinimum": 10, "versionPriority": 10,
                    "caBundle": other.ca_bundle, "service": {"namespace": "default", "name": "hook"}},
            });
            let path = "/apis/apiregistration.k8s.io/v1/apiservices";
            let body = Bytes::from(service.to_string());
            let call = Call::new("POST", path).with_body("application/json", body);
            assert_eq!(target.call(call).await.unwrap().code, 201);
        }
        let since = Instant::now();
        while asked.load(Ordering::Relaxed) < 2 * SERVICES {
            assert!(since.elapsed() < PATIENCE, "{asked:?} documents were asked for");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        until_idle(pid).await;
        process::peak(pid).saturating_sub(before) / MIB
    });
    println!("{mib} MiB");
    assert!(mib < 85, "{mib} MiB");
    server.stop();
}

/// Sends documents in which numbers should be texts, so many by each of 4 clients; how many were decoded, and how many were refused for
/// their size.
fn send_documents(server: &Server, documents: usize) -> [usize; 2] {
    const CLIENTS: usize = 4;
    let target = Target::of(server);
    let path = format!("{FISCHERS}?dryRun=All");
    let body = numbers();
    let client = async || {
        let http2 = target.http2(OPEN).await.unwrap();
        let mut counts = [0, 0];
        for _ in 0..documents {
            let call = Call::new("POST", &path).with_body("application/json", body.clone());
            let code = http2.call(call).await.unwrap().code;
            let index = [400, 429].iter().position(|known| *known == code);
            counts[index.unwrap_or_else(|| panic!("{code}"))] += 1;
        }
        counts
    };
    let clients = (0..CLIENTS).map(|_| client());
    let counts = Runtime::new().unwrap().block_on(join_all(clients));
    [0, 1].map(|index| counts.iter().map(|counts| counts[index]).sum())
}

/// A document of 1.2 MB with many numbers.
fn numbers() -> Bytes {
    let items = vec!["1"; 600_000].join(",");
    let body = format!(r#"{{"metadata":{{"generateName":"c-"}},"disallowedFlunders":[{items}]}}"#);
    body.into()
}

/// 26 documents of 1.2 MB have room as bodies, and would become 1.5 GiB if all of them were worked on at the same time.
#[test]
fn documents_have_a_bound_together() {
    const DOCUMENTS: usize = 40;
    let server = Server::start_with_memory(MEMORY_KIB, &[]);
    let target = Target::of(&server);
    let path = format!("{FISCHERS}?dryRun=All");
    let body = numbers();
    let codes: Vec<_> = Runtime::new().unwrap().block_on(async {
        let http2 = target.http2(OPEN).await.unwrap();
        let call =
            || http2.call(Call::new("POST", &path).with_body("application/json", body.clone()));
        let answers = join_all((0..DOCUMENTS).map(|_| call())).await;
        answers
            .into_iter()
            .map(|answer| answer.unwrap().code)
            .collect()
    });
    let count = |code| codes.iter().filter(|other| **other == code).count();
    println!("{} of {DOCUMENTS}", count(400));
    assert_eq!(count(400) + count(429), DOCUMENTS, "{codes:?}");
    assert!(count(400) > 0 && count(429) > DOCUMENTS / 2, "{codes:?}");
    server.stop();
}
