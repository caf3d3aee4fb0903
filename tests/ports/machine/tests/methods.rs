//! Generated methods of a client, one for each verb, and those that subresources give, against the server.

use apiloom::client::{Error, Patch};
use apiloom::meta::Status;
use apiloom::prelude::*;
use apiloom::testing::Control;
use http::Method;
use http_body_util::BodyExt as _;
use machine_kinds::generated::clientset::Clientset;
use machine_kinds::generated::methods::machine_v1::MachineMethods as _;
use machine_kinds::v1::{Machine, MachineSpec, PowerState, Restart, TokenRequest};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

fn named(name: &str) -> ObjectMeta {
    ObjectMeta {
        name: Some(name.to_owned()),
        ..ObjectMeta::default()
    }
}

fn machine(name: &str) -> Machine {
    Machine {
        metadata: named(name),
        spec: MachineSpec {
            image: "shop".to_owned(),
            on: false,
            address: None,
        },
        status: None,
    }
}

fn restart(reason: &str) -> Restart {
    Restart {
        metadata: ObjectMeta::default(),
        reason: reason.to_owned(),
    }
}

#[apiloom::test]
async fn methods_of_objects_do_what_their_verbs_do(clients: Clientset) -> Result<(), Error> {
    let machines = clients.machine_v1().machines("default");
    let tried: Machine = machines.build(&machine("one")).dry_run().await?;
    assert!(tried.metadata.uid.is_some());
    let built: Machine = machines.build(&machine("one")).await?;
    assert_ne!(built.metadata.uid, tried.metadata.uid);

    let mut changed = built.clone();
    changed.spec.image = "bank".to_owned();
    let rebuilt: Machine = machines.rebuild("one", &changed).await?;
    assert_eq!(rebuilt.spec.image, "bank");
    let stale = machines.rebuild("one", &built).await;
    assert!(stale.is_err_and(|error| error.is_conflict()));

    let patch = Patch::merge(&json!({"metadata": {"labels": {"fleet": "a"}}}));
    let amended: Machine = machines.amend("one", patch).await?;
    assert_eq!(amended.metadata.labels["fleet"], "a");

    // An apply creates what does not exist; the body gets the names of the kind.
    let mine =
        json!({"metadata": {"name": "two", "labels": {"fleet": "a"}}, "spec": {"image": "mill"}});
    let declared: Machine = machines.declare("two", &mine, "me").await?;
    assert_eq!(declared.spec.image, "mill");
    let other = json!({"metadata": {"name": "two"}, "spec": {"image": "shop"}});
    let refused = machines.declare("two", &other, "other").await;
    assert!(refused.is_err_and(|error| error.is_conflict()));
    let forced = machines.declare("two", &other, "other").force().await?;
    assert_eq!(forced.spec.image, "shop");

    machines.build(&machine("three")).await?;
    let fleet: Vec<Machine> = machines.fleet().labels("fleet=a").await?.items;
    let names = fleet.iter().map(|one| one.metadata.name.as_deref());
    assert_eq!(names.collect::<Vec<_>>(), [Some("one"), Some("two")]);
    Ok(())
}

#[apiloom::test]
async fn methods_of_subresources_have_the_types_of_their_handlers(
    clients: Clientset,
    control: Control,
) -> Result<(), Error> {
    let machines = clients.machine_v1().machines("default");
    machines.build(&machine("one")).await?;
    let refused = machines.reboot("one", &restart("it is slow")).await;
    assert!(refused.is_err_and(|error| error.to_string().contains("is switched off")));

    let mut power: PowerState = machines.power_of("one").await?;
    assert!(!power.on);
    power.on = true;
    let power: PowerState = machines.switch("one", &power).await?;
    assert!(power.on);
    let status: Status = machines.reboot("one", &restart("it is slow")).await?;
    assert_eq!(status.status, "Success");
    let found = machines.get("one").await?;
    assert!(found.spec.on);
    assert_eq!(found.status.map(|status| status.restarts), Some(1));

    let invalid = machines.reboot("one", &restart("")).await;
    assert!(invalid.is_err_and(|error| error.is_invalid()));
    let missing = machines.reboot("none", &restart("it is slow")).await;
    assert!(missing.is_err_and(|error| error.is_not_found()));

    // No methods are written for these: their subresources give them.
    let mut power: PowerState = machines.get_power("one").await?;
    assert!(power.on);
    power.on = false;
    assert!(!machines.update_power("one", &power).await?.on);
    let stale = machines.update_power("one", &power).await;
    assert!(stale.is_err_and(|error| error.is_conflict()));
    let refused = machines.create_restart("one", &restart("it hangs")).await;
    assert!(refused.is_err_and(|error| error.to_string().contains("is switched off")));
    power = machines.get_power("one").await?;
    power.on = true;
    machines.update_power("one", &power).await?;
    let status: Status = machines.create_restart("one", &restart("it hangs")).await?;
    assert_eq!(status.status, "Success");
    let request = TokenRequest {
        metadata: ObjectMeta::default(),
        audiences: vec!["shop".to_owned()],
        token: None,
    };
    let token = machines.create_token("one", &request).await?.token;
    let token = token.unwrap_or_default();
    assert!(token.starts_with("one for shop by "), "{token}");
    let last = control
        .take_actions()
        .pop()
        .map(|action| action.to_string());
    assert_eq!(last.as_deref(), Some("create machines/token default/one"));
    Ok(())
}

#[apiloom::test]
async fn connections_of_subresources_are_streams(clients: Clientset) -> Result<(), Error> {
    let machines = clients.machine_v1().machines("default");
    machines.build(&machine("one")).await?;
    let request = machines.connect_log("one").query("tailLines", "2");
    let lines = request.accept("*/*").bytes().await?;
    assert_eq!(lines, "one does 0\none does 1\n");

    let request = machines.connect_log("one").query("follow", "true");
    let response = request.accept("*/*").stream().await?;
    let first = response.into_body().frame().await;
    let first = first
        .and_then(Result::ok)
        .and_then(|frame| frame.into_data().ok());
    assert!(first.is_some_and(|bytes| bytes.starts_with(b"one does 0\n")));

    let missing = machines.connect_log("none").bytes().await;
    assert!(missing.is_err_and(|error| error.is_not_found()));

    // A console is a WebSocket, which only a connection can become; `tests/tests/client/sockets.rs` opens it.
    for method in [Method::GET, Method::POST] {
        let refused = machines.connect_console(method, "one").bytes().await;
        let code = refused.as_ref().err().and_then(Error::code);
        assert_eq!(code, Some(400), "{refused:?}");
    }
    Ok(())
}

#[apiloom::test]
async fn a_proxy_passes_requests_on(clients: Clientset) -> Result<(), Box<dyn std::error::Error>> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let machines = clients.machine_v1().machines("default");
    let mut serving = machine("one");
    serving.spec.address = Some(listener.local_addr()?.to_string());
    machines.build(&serving).await?;
    let echo = tokio::spawn(async move {
        for _ in 0..2 {
            let (mut connection, _) = listener.accept().await?;
            let mut request = Vec::new();
            let is_whole = |request: &[u8]| {
                let is_get = request.starts_with(b"GET");
                request.ends_with(b"the end") || is_get && request.ends_with(b"\r\n\r\n")
            };
            while !is_whole(&request) {
                connection.read_buf(&mut request).await?;
            }
            let line = request
                .split(|byte| *byte == b'\r')
                .next()
                .unwrap_or_default();
            connection.write_all(b"HTTP/1.0 200 OK\r\n\r\n").await?;
            connection.write_all(line).await?;
        }
        Ok::<_, std::io::Error>(())
    });
    let read = machines.connect_proxy(Method::GET, "one");
    let read = read.query("a", "b").accept("*/*").bytes().await?;
    assert_eq!(read, "GET /?a=b HTTP/1.0");
    let written = machines.connect_proxy(Method::PUT, "one");
    let written = written.body("text/plain", "the end").accept("*/*");
    assert_eq!(written.bytes().await?, "PUT / HTTP/1.0");
    echo.await??;
    let gone = machines.connect_proxy(Method::GET, "one").without_retry();
    let gone = gone.accept("*/*").bytes().await;
    assert_eq!(gone.err().and_then(|error| error.code()), Some(503));
    Ok(())
}
