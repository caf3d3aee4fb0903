//! The server as a process: its output, its files, its refusals and its end.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use apiloom_storage::{Embedded, EmbeddedConfig, Storage as _};
use apiloom_tests::wardle::{FLUNDERS, flunder};
use apiloom_tests::{Client, Server, build, created};
use bytes::Bytes;
use serde_json::{Value, json};

/// Runs the server until it ends by itself; returns exit code, stdout and stderr.
fn ends(args: &[&str], data_dir: &Path) -> (i32, String, String) {
    let mut command = Command::new(build("wardle-server"));
    let output = command
        .arg("--data-dir")
        .arg(data_dir)
        .args(args)
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (
        output.status.code().unwrap(),
        text(output.stdout),
        text(output.stderr),
    )
}

/// Asserts one clear line on stderr and exit code 1.
#[track_caller]
fn refuses(args: &[&str], data_dir: &Path, parts: &[&str]) {
    let (code, stdout, stderr) = ends(args, data_dir);
    assert_eq!((code, stdout.as_str()), (1, ""), "{stderr}");
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    for part in parts {
        assert!(stderr.contains(part), "{part:?} is not in {stderr:?}");
    }
}

#[test]
fn problems_of_all_flags_are_errors_of_their_own() {
    let dir = tempfile::tempdir().unwrap();
    let flags = [
        "--secure-port=x",
        "--storage-backend=nope",
        "--tls-cert-file=a",
    ];
    let (code, stdout, stderr) = ends(&flags, dir.path());
    assert_eq!((code, stdout.as_str()), (1, ""), "{stderr}");
    let lines: Vec<&str> = stderr.lines().collect();
    assert_eq!(lines.len(), flags.len(), "{stderr}");
    for (line, part) in lines
        .iter()
        .zip(["--secure-port", "\"nope\"", "--tls-private-key-file"])
    {
        assert!(line.starts_with("error: ") && line.contains(part), "{line}");
    }
}

#[test]
fn the_ready_line_names_url_kubeconfig_and_time() {
    let server = Server::start(&[]);
    let kubeconfig = server.kubeconfig().display();
    let (start, rest) = server.ready_line.split_once(" in ").unwrap();
    assert_eq!(start, format!("wardle-server ready at {}", server.url()));
    let (milliseconds, rest) = rest.split_once(" ms; ").unwrap();
    assert!(milliseconds.parse::<u32>().is_ok());
    assert_eq!(rest, format!("kubeconfig: {kubeconfig}\n"));
    let text = std::fs::read_to_string(server.kubeconfig()).unwrap();
    assert!(
        text.contains(server.url()),
        "the kubeconfig names the port that was picked"
    );
    assert_eq!(
        std::fs::metadata(server.kubeconfig())
            .unwrap()
            .permissions()
            .mode()
            & 0o777,
        0o600
    );
    assert_eq!(
        server.kubeconfig(),
        server
            .data_dir()
            .canonicalize()
            .unwrap()
            .join("admin.kubeconfig")
    );
}

#[tokio::test]
async fn a_second_start_keeps_certificate_token_and_objects() {
    let server = Server::start(&[]);
    let path = "/apis/wardle.example.com/v1alpha1/fischers";
    let object = server
        .client()
        .post(
            path,
            &json!({"metadata": {"name": "f"}, "disallowedFlunders": []}),
        )
        .await
        .json();
    let secrets = |dir: &Path| {
        ["admin.token", "pki/apiserver.crt", "pki/apiserver.key"]
            .map(|file| std::fs::read(dir.join(file)).unwrap())
    };
    let before = secrets(server.data_dir());
    let old_client = server.client();
    let (dir, _guard) = server.kill();
    let server = Server::start_in(&dir, &[]);
    assert_eq!(secrets(&dir), before);
    assert_eq!(
        server.client().get(&format!("{path}/f")).await.json(),
        object
    );
    drop(old_client);
}

// Certificate and token stay, so clients resume at their revision in a store that is gone.
#[tokio::test]
async fn what_clients_know_of_a_store_that_is_gone_is_too_old() {
    let check = async |backend: &str, remove: bool| {
        let dir = tempfile::tempdir().unwrap();
        let data_dir = dir.path().join("data");
        let backend = format!("--storage-backend={backend}");
        let server = Server::start_in(&data_dir, &[&backend]);
        let client = server.client();
        for name in ["a", "b", "c"] {
            created(&client, FLUNDERS, &flunder(name)).await;
        }
        let page = client.get(&format!("{FLUNDERS}?limit=1")).await.json();
        let version = page["metadata"]["resourceVersion"].as_str().unwrap();
        let token = page["metadata"]["continue"].as_str().unwrap();
        assert!(version.parse::<u64>().unwrap() < 1 << 53, "{version}");
        server.kill();
        if remove {
            std::fs::remove_dir_all(data_dir.join("store")).unwrap();
        }
        let server = Server::start_in(&data_dir, &[&backend]);
        let client = server.client();
        for writes in 0..2 {
            for old in [version, "1"] {
                let mut watch = client
                    .watch(&format!("{FLUNDERS}?watch=1&resourceVersion={old}"))
                    .await;
                let status = &watch.next().await.unwrap()["object"];
                assert_eq!(
                    (&status["code"], &status["reason"]),
                    (&json!(410), &json!("Expired")),
                    "{status}"
                );
                let exact = format!("{FLUNDERS}?resourceVersion={old}&resourceVersionMatch=Exact");
                assert_eq!(client.get(&exact).await.code, 410);
                let later =
                    format!("{FLUNDERS}?resourceVersion={old}&resourceVersionMatch=NotOlderThan");
                let listed = client.get(&later).await.json();
                assert_eq!(listed["items"].as_array().unwrap().len(), writes);
            }
            let next = format!("{FLUNDERS}?limit=1&continue={token}");
            assert_eq!(client.get(&next).await.code, 410);
            created(&client, FLUNDERS, &flunder(&format!("new-{writes}"))).await;
        }
    };
    check("memory", false).await;
    check("embedded", true).await;
}

#[tokio::test]
async fn sigterm_ends_watches_and_the_process_well() {
    let server = Server::start(&[]);
    let mut watch = server
        .client()
        .watch("/apis/wardle.example.com/v1alpha1/flunders?watch=1")
        .await;
    let stopped = tokio::task::spawn_blocking(|| server.stop());
    assert_eq!(watch.next().await, None, "the stream ends without an error");
    stopped.await.unwrap();
}

#[tokio::test]
async fn a_list_that_is_not_read_counts_as_a_request_in_flight() {
    const FLUNDERS: &str = "/apis/wardle.example.com/v1alpha1/namespaces/default/flunders";
    let server = Server::start(&[
        "--max-requests-inflight=1",
        "--max-mutating-requests-inflight=1",
    ]);
    let client = server.client();
    // More than windows and buffers hold.
    for n in 0..60 {
        let annotations = json!({"a": "x".repeat(200_000)});
        let object = json!({"metadata": {"name": format!("f-{n}"), "annotations": annotations}});
        // A response of this size is in flight until it is sent, which its client may know before the server does.
        let code = loop {
            let code = client.post(FLUNDERS, &object).await.code;
            if code != 429 {
                break code;
            }
        };
        assert_eq!(code, 201);
    }
    for accept in ["application/json", "application/yaml"] {
        let unread = loop {
            if let Ok(unread) = client.try_watch_as(FLUNDERS, accept).await {
                break unread;
            }
        };
        let other = server.client();
        let refused = other.get(FLUNDERS).await;
        assert_eq!(refused.code, 429, "{accept}");
        assert_eq!(
            refused.text(),
            "Too many requests, please try again later.\n"
        );
        assert_eq!(refused.header("retry-after"), "1");
        assert_eq!(refused.header("content-type"), "text/plain; charset=utf-8");
        // Writes, watches and health checks do not wait for it.
        let fischer = json!({"metadata": {"generateName": "f-"}});
        let fischers = "/apis/wardle.example.com/v1alpha1/fischers";
        assert_eq!(other.post(fischers, &fischer).await.code, 201);
        other
            .watch(&format!("{fischers}?watch=1"))
            .await
            .event()
            .await;
        assert_eq!(other.get("/readyz").await.code, 200);
        drop(unread);
        while other.get(FLUNDERS).await.code == 429 {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    }
    // Refused requests are counted too.
    let metrics = loop {
        let metrics = client.get("/metrics").await;
        if metrics.code != 429 {
            break metrics.text();
        }
    };
    let labels = r#"group="wardle.example.com",version="v1alpha1",resource="flunders",subresource="",scope="namespace",component="apiserver",code="429"}"#;
    for name in [
        r#"apiserver_request_terminations_total{verb="LIST","#,
        r#"apiserver_request_total{verb="LIST",dry_run="","#,
    ] {
        let line = format!("{name}{labels} ");
        let count = metrics.lines().find_map(|other| other.strip_prefix(&*line));
        let count: Option<u64> = count.and_then(|count| count.parse().ok());
        assert!(count.is_some_and(|count| count >= 2), "{name} {count:?}");
    }
}

#[test]
fn every_request_is_a_line_of_the_log_where_it_is_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let log = |level: &str| {
        let stderr = dir.path().join("stderr");
        let mut server = Command::new(build("wardle-server"))
            .args(["--secure-port=0", "--storage-backend=memory", "-v", level])
            .arg("--data-dir")
            .arg(dir.path().join("data"))
            .stdout(Stdio::piped())
            .stderr(std::fs::File::create(&stderr).unwrap())
            .spawn()
            .unwrap();
        let mut ready = String::new();
        let stdout = server.stdout.take().unwrap();
        BufReader::new(stdout).read_line(&mut ready).unwrap();
        let kubeconfig = ready.trim_end().split_once("kubeconfig: ").unwrap().1;
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let answer = runtime.block_on(Client::new(Path::new(kubeconfig)).get("/livez?a=b"));
        assert_eq!(answer.code, 200);
        let pid = server.id().to_string();
        assert!(
            Command::new("kill")
                .args(["-TERM", &pid])
                .status()
                .unwrap()
                .success()
        );
        assert!(server.wait().unwrap().success());
        std::fs::read_to_string(&stderr).unwrap()
    };
    assert_eq!(log("0"), "", "nothing to warn of");
    let starts = log("1");
    assert!(
        starts.contains("serving") && starts.contains("SIGTERM") && !starts.contains("/livez"),
        "{starts}"
    );
    let requests = log("2");
    assert!(
        requests.contains("method=GET uri=\"/livez?a=b\" code=200"),
        "{requests}"
    );
}

/// Requests with the value of a Secret, good and bad: what the log says of them has no value, at any level.
#[tokio::test]
async fn no_log_has_the_value_of_a_secret() {
    const SECRETS: &str = "/api/v1/namespaces/default/secrets";
    // In text, and as the JSON and the store have it.
    let values = ["correct-horse-battery", "Y29ycmVjdC1ob3JzZS1iYXR0ZXJ5"];
    let [text, encoded] = values;
    let server = Server::start(&["-v", "10"]);
    let client = server.client();
    let secret = |field: &str, value: &str| {
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, field: {"password": value}}).to_string()
    };
    let one = format!("{SECRETS}/a");
    let json_type = &[("content-type", "application/json")][..];
    let merge = &[("content-type", "application/merge-patch+json")][..];
    let json_patch = &[("content-type", "application/json-patch+json")][..];
    let test = json!([{"op": "test", "path": "/data/password", "value": text}]).to_string();
    let cut = secret("data", encoded);
    for (method, path, headers, body, code) in [
        ("POST", SECRETS, json_type, secret("stringData", text), 201),
        ("POST", SECRETS, json_type, secret("data", encoded), 409),
        ("POST", SECRETS, json_type, secret("data", text), 400),
        ("POST", SECRETS, json_type, secret("date", text), 409),
        (
            "POST",
            SECRETS,
            json_type,
            cut[..cut.len() - 2].to_owned(),
            400,
        ),
        ("PUT", &one, json_type, secret("data", encoded), 200),
        ("PATCH", &one, merge, secret("stringData", text), 200),
        ("PATCH", &one, merge, secret("immutable", text), 422),
        ("PATCH", &one, json_patch, test, 422),
        ("GET", &one, json_type, String::new(), 200),
        ("DELETE", &one, json_type, String::new(), 200),
    ] {
        let answer = client.call(method, path, headers, body.clone()).await;
        assert_eq!(answer.code, code, "{method} {body}: {}", answer.text());
    }
    let is_written = async {
        while !server.log().contains("method=DELETE") {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let is_written = tokio::time::timeout(Duration::from_secs(30), is_written).await;
    let log = server.log();
    assert!(is_written.is_ok(), "{log}");
    for value in values {
        assert!(!log.contains(value), "{log}");
    }
}

#[test]
fn a_busy_port_is_one_clear_line() {
    let dir = tempfile::tempdir().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let listen = format!("cannot listen on 127.0.0.1:{port}");
    refuses(
        &[&format!("--secure-port={port}")],
        dir.path(),
        &[&listen, "--secure-port"],
    );
}

#[test]
fn an_unusable_folder_is_one_clear_line() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let below = file.path().join("data");
    refuses(
        &["--secure-port=0"],
        &below,
        &[&below.display().to_string()],
    );
}

#[test]
fn what_others_could_have_changed_is_one_clear_line() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let (kept, _guard) = Server::start_in(&data, &[]).kill();
    let mode = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    let refused = |path: &Path, part: &str| {
        refuses(
            &["--secure-port=0"],
            &data,
            &[&path.display().to_string(), part],
        );
    };
    for (path, bad, good, fix) in [
        (kept.clone(), 0o777, 0o700, "chmod go-w"),
        (kept.join("pki"), 0o770, 0o700, "chmod go-w"),
        (kept.join("admin.token"), 0o644, 0o600, "chmod go-rwx"),
        (kept.join("pki/apiserver.key"), 0o640, 0o600, "chmod go-rwx"),
        (kept.join("pki/apiserver.crt"), 0o622, 0o600, "chmod go-w"),
    ] {
        mode(&path, bad);
        refused(&path, fix);
        mode(&path, good);
    }
    for path in [
        kept.clone(),
        kept.join("pki"),
        kept.join("admin.token"),
        kept.join("pki/apiserver.key"),
    ] {
        let elsewhere = dir.path().join("elsewhere");
        std::fs::rename(&path, &elsewhere).unwrap();
        std::os::unix::fs::symlink(&elsewhere, &path).unwrap();
        refused(&path, "is a symbolic link");
        std::fs::remove_file(&path).unwrap();
        std::fs::rename(&elsewhere, &path).unwrap();
    }
    let key = kept.join("pki/apiserver.key");
    std::fs::rename(&key, dir.path().join("key")).unwrap();
    refused(&kept.join("pki/apiserver.crt"), "its private key");
    std::fs::rename(dir.path().join("key"), &key).unwrap();
    Server::start_in(&data, &[]);
}

#[test]
fn a_bad_certificate_is_one_clear_line() {
    let dir = tempfile::tempdir().unwrap();
    let (cert, key) = (dir.path().join("a.crt"), dir.path().join("a.key"));
    let (cert_flag, key_flag) = (
        format!("--tls-cert-file={}", cert.display()),
        format!("--tls-private-key-file={}", key.display()),
    );
    let args = ["--secure-port=0", cert_flag.as_str(), key_flag.as_str()];
    refuses(
        &args,
        dir.path(),
        &[&cert.display().to_string(), "no such file"],
    );
    std::fs::write(&cert, "not a certificate").unwrap();
    std::fs::write(&key, "not a key").unwrap();
    refuses(&args, dir.path(), &[&cert.display().to_string(), "PEM"]);
    // A valid certificate with the key of another one.
    let make = || {
        let server = Server::start(&[]);
        let pki = server.data_dir().join("pki");
        [pki.join("apiserver.crt"), pki.join("apiserver.key")]
            .map(|file| std::fs::read(file).unwrap())
    };
    std::fs::write(&cert, &make()[0]).unwrap();
    std::fs::write(&key, &make()[1]).unwrap();
    refuses(&args, dir.path(), &[&cert.display().to_string()]);
}

#[tokio::test]
async fn a_certificate_of_the_users_own_is_served_and_trusted_by_the_kubeconfig() {
    let other = Server::start(&[]);
    let pki = other.data_dir().join("pki");
    let args = [
        format!("--tls-cert-file={}", pki.join("apiserver.crt").display()),
        format!(
            "--tls-private-key-file={}",
            pki.join("apiserver.key").display()
        ),
    ];
    let server = Server::start(&[&args[0], &args[1]]);
    assert!(!server.data_dir().join("pki").exists(), "none is made");
    assert_eq!(server.client().get("/healthz").await.text(), "ok");
}

#[test]
fn a_foreign_store_and_a_newer_one_are_one_clear_line() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("store");
    Embedded::open(&store, EmbeddedConfig::default()).unwrap();
    let file = std::fs::read_dir(&store)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| std::fs::read(path).unwrap().starts_with(b"SQLite format 3"))
        .unwrap();
    let original = std::fs::read(&file).unwrap();
    std::fs::write(
        &file,
        b"these are the notes of somebody else, and they are not a store at all",
    )
    .unwrap();
    // A process that another test starts inherits this one's lock, between its fork and its exec.
    let ends = || ends(&["--secure-port=0"], dir.path()).2;
    assert!((0..100).any(|_| !ends().contains("in use by another process")));
    refuses(&["--secure-port=0"], dir.path(), &["store"]);
    // The format's number is in the header of every SQLite file, at byte 60, big-endian.
    let mut newer = original;
    newer[60..64].copy_from_slice(&9999u32.to_be_bytes());
    std::fs::write(&file, newer).unwrap();
    refuses(&["--secure-port=0"], dir.path(), &["newer"]);
}

#[test]
fn a_store_in_use_is_one_clear_line() {
    let server = Server::start(&[]);
    refuses(&["--secure-port=0"], server.data_dir(), &["store"]);
}

#[test]
fn unknown_flags_and_backends_are_told() {
    let dir = tempfile::tempdir().unwrap();
    refuses(
        &["--storage-backend=nope"],
        dir.path(),
        &["nope", "embedded, memory"],
    );
    let (code, stdout, stderr) = ends(&["--nonsense"], dir.path());
    assert_eq!((code, stdout.as_str()), (1, ""));
    assert!(
        stderr.starts_with("error: unexpected argument '--nonsense'"),
        "{stderr}"
    );
    refuses(
        &["--disable-admission-plugins=Nope", "--secure-port=0"],
        dir.path(),
        &["Nope", "BanFlunder", "NamespaceLifecycle"],
    );
    refuses(
        &["--emulation-version=1.3", "--secure-port=0"],
        dir.path(),
        &[
            "1.3",
            "wardle.example.com",
            "between 0.0",
            "and 1.2, the release of this build",
        ],
    );
    refuses(
        &["--emulation-version=wardle.example.com=1.1.0"],
        dir.path(),
        &["1.1.0", "MAJOR.MINOR"],
    );
}

#[test]
fn help_shows_every_flag_below_its_group() {
    let (code, help, _) = ends(&["--help"], Path::new("unused"));
    assert_eq!(code, 0);
    let mut rest = help.as_str();
    for expected in [
        "Secure serving flags:",
        "--bind-address",
        "--secure-port",
        "--cert-dir",
        "--tls-cert-file",
        "--tls-private-key-file",
        "Storage flags:",
        "--storage-backend",
        "--data-dir",
        "Watch cache flags:",
        "--watch-cache",
        "--watch-cache-history-bytes",
        "Admission flags:",
        "--disable-admission-plugins",
        "API enablement flags:",
        "--runtime-config",
        "--emulation-version",
        "Logs flags:",
        "-v",
        "Controller flags:",
        "--controllers",
        "--concurrent-gc-syncs",
        "--concurrent-namespace-syncs",
        "Aggregation flags:",
        "--proxy-client-cert-file",
        "--proxy-client-key-file",
    ] {
        let at = rest
            .find(expected)
            .unwrap_or_else(|| panic!("{expected} is missing behind the others in {help}"));
        rest = &rest[at..];
    }
}

#[tokio::test]
async fn admission_plugins_and_versions_can_be_left_out() {
    let server = Server::start(&[
        "--disable-admission-plugins=BanFlunder,NamespaceLifecycle",
        "--runtime-config=wardle.example.com/v1beta1=false",
    ]);
    let client = server.client();
    let fischer = json!({"metadata": {"name": "f"}, "disallowedFlunders": ["bad"]});
    assert_eq!(
        client
            .post("/apis/wardle.example.com/v1alpha1/fischers", &fischer)
            .await
            .code,
        201
    );
    let path = "/apis/wardle.example.com/v1alpha1/namespaces/nowhere/flunders";
    assert_eq!(
        client
            .post(path, &json!({"metadata": {"name": "bad"}}))
            .await
            .code,
        201
    );
    assert_eq!(
        client
            .get("/apis/wardle.example.com/v1beta1/flunders")
            .await
            .code,
        404
    );
    let group = client.get("/apis/wardle.example.com").await.json();
    assert_eq!(
        group["versions"],
        json!([{"groupVersion": "wardle.example.com/v1alpha1", "version": "v1alpha1"}])
    );
}

#[tokio::test]
async fn an_emulated_release_is_shown_by_metrics() {
    let check = async |arguments: &[&str], emulation: &str| {
        let server = Server::start(&[&["--storage-backend=memory"], arguments].concat());
        let metrics = server.client().get("/metrics").await.text();
        let line = format!(
            "version_info{{binary=\"1.2\",component=\"wardle.example.com\",emulation=\"{emulation}\",min_compat=\"{emulation}\"}} 1"
        );
        assert!(
            metrics.lines().any(|known| known == line),
            "{line}: {metrics}"
        );
    };
    check(&[], "1.2").await;
    check(&["--emulation-version=wardle.example.com=1.1"], "1.1").await;
    // The name of the flag in kube-apiserver.
    check(&["--emulated-version=1.0"], "1.0").await;
}

#[tokio::test]
async fn anybody_reads_health_and_version_and_nothing_else() {
    let server = Server::start(&["--storage-backend=memory"]);
    let client = server.client().anonymous();
    for path in [
        "/healthz",
        "/livez",
        "/readyz",
        "/livez/ping",
        "/readyz/storage",
        "/version",
    ] {
        assert_eq!(client.get(path).await.code, 200, "{path}");
    }
    let answer = client.get("/metrics").await;
    assert_eq!(answer.code, 403);
    let message = r#"forbidden: User "system:anonymous" cannot get path "/metrics""#;
    assert_eq!(answer.json()["message"], message);
}

#[tokio::test]
async fn an_object_stored_before_a_default_existed_is_served_with_it_at_an_unchanged_version() {
    let dir = tempfile::tempdir().unwrap();
    let store = Embedded::open(dir.path().join("store"), EmbeddedConfig::default()).unwrap();
    let stored = json!({
        "apiVersion": "wardle.example.com/v1alpha1", "kind": "Flunder",
        "metadata": {"name": "old", "namespace": "default", "uid": "1", "creationTimestamp": "2020-01-01T00:00:00Z"},
        "spec": {"reference": "x"},
    });
    let key = "/registry/wardle.example.com/flunders/default/old";
    let revision = store
        .create(key, Bytes::from(stored.to_string()), None)
        .await
        .unwrap();
    store.close().await;
    drop(store);

    let server = Server::start_in(dir.path(), &[]);
    let client = server.client();
    let mut expected = stored.clone();
    expected["spec"]["referenceType"] = json!("Flunder");
    expected["metadata"]["resourceVersion"] = json!(revision.to_string());
    let flunders = "/apis/wardle.example.com/v1alpha1/namespaces/default/flunders";
    assert_eq!(
        client.get(&format!("{flunders}/old")).await.json(),
        expected
    );
    let event = client
        .watch(&format!("{flunders}?watch=1"))
        .await
        .event()
        .await;
    assert_eq!(event, json!({"type": "ADDED", "object": expected}));
    let mut item = expected.clone();
    item.as_object_mut()
        .unwrap()
        .retain(|key: &String, _: &mut Value| key != "apiVersion" && key != "kind");
    assert_eq!(client.get(flunders).await.json()["items"], json!([item]));
    // The version that is not stored has it in its own form.
    let beta = client
        .get("/apis/wardle.example.com/v1beta1/namespaces/default/flunders/old")
        .await
        .json();
    assert_eq!(
        beta["spec"],
        json!({"flunderReference": "x", "referenceType": "Flunder"})
    );
    assert_eq!(
        beta["metadata"]["resourceVersion"],
        expected["metadata"]["resourceVersion"]
    );
}
