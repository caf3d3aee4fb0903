//! Encryption at rest: what is stored, what a change of keys does, and values that cannot be decrypted.

use std::path::{Path, PathBuf};
use std::process::Command;

use apiloom_storage::Revision;
use apiloom_tests::{Kubectl, build};
use bytes::Bytes;

use crate::*;

on_each_backend![
    c_144_stale_values_are_stored_again_by_an_update_without_a_change,
    c_145_a_value_that_was_moved_or_changed_cannot_be_read,
    c_145_identity_refuses_encrypted_values,
    a_rotation_ends_with_a_migration,
    a_changed_configuration_is_used_by_a_running_server,
];

const SECRETS: &str = "/api/v1/namespaces/default/secrets";
const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// Values of a Secret, which must not be found in the store.
const PLANTED: &str = "aHVudGVyMmh1bnRlcjI=";

/// How long a changed file may take until it is used: it is looked at every 5 s.
const LIMIT: Duration = Duration::from_secs(60);

/// 32 bytes in base64, different for each name.
fn secret(name: &str) -> String {
    apiloom_meta::bytes::encode(name.repeat(32).get(..32).unwrap().as_bytes())
}

/// A provider with keys of these names.
fn provider(name: &str, keys: &[&str]) -> String {
    let keys = keys
        .iter()
        .map(|key| format!("{{name: {key}, secret: {}}}", secret(key)));
    let keys: Vec<String> = keys.collect();
    format!("{{{name}: {{keys: [{}]}}}}", keys.join(", "))
}

/// A configuration file, which tests change.
struct Configuration {
    folder: tempfile::TempDir,
}

impl Configuration {
    /// One with these providers of Secrets.
    fn new(providers: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let configuration = Self { folder };
        configuration.set(providers);
        configuration
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("encryption.yaml")
    }

    fn flag(&self) -> String {
        format!("--encryption-provider-config={}", self.path().display())
    }

    /// Replaces the providers.
    fn set(&self, providers: &[&str]) {
        self.write(&format!(
            "{{apiVersion: apiserver.config.k8s.io/v1, kind: EncryptionConfiguration, \
             resources: [{{resources: [secrets], providers: [{}]}}]}}",
            providers.join(", ")
        ));
    }

    /// Replaces the file in one step, so that no server reads a half of it.
    fn write(&self, text: &str) {
        let new = self.folder.path().join("new.yaml");
        std::fs::write(&new, text).unwrap();
        std::fs::rename(new, self.path()).unwrap();
    }
}

fn secret_named(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": {"password": PLANTED},
    })
}

/// The stored bytes of objects of the namespace `default`, and their revisions. The servers are stopped.
async fn stored(cluster: &Cluster, objects: &[&str]) -> Vec<(Bytes, Revision)> {
    let store = cluster.store().await;
    let mut values = Vec::new();
    for object in objects {
        let (resource, name) = object.split_once('/').unwrap();
        let key = key(cluster, resource, name);
        let (entry, _) = store.get(&key).await.unwrap();
        let entry = entry.unwrap();
        values.push((entry.value, entry.revision));
    }
    store.close().await;
    values
}

fn key(cluster: &Cluster, resource: &str, name: &str) -> String {
    format!("{}/registry/{resource}/default/{name}", cluster.prefix())
}

/// Puts bytes under the key of a Secret. The servers are stopped.
async fn put(cluster: &Cluster, name: &str, value: Vec<u8>) {
    let store = cluster.store().await;
    let key = key(cluster, "secrets", name);
    let (entry, _) = store.get(&key).await.unwrap();
    let revision = entry.unwrap().revision;
    let written = store.update_if(&key, revision, value.into(), None).await;
    written.unwrap();
    store.close().await;
}

#[track_caller]
fn check_prefix(value: &[u8], prefix: &str) {
    let shown = String::from_utf8_lossy(value);
    assert!(value.starts_with(prefix.as_bytes()), "{prefix}: {shown}");
    for plain in [PLANTED, "hunter2", "Secret"] {
        assert!(!shown.contains(plain), "{plain} is in {shown}");
    }
}

/// A patch without a change; returns the revision of the object then.
async fn touch(client: &Client, name: &str) -> u64 {
    let answer = client.merge(&format!("{SECRETS}/{name}"), &json!({})).await;
    assert_eq!(answer.code, 200, "{}", answer.text());
    revision(&answer.json())
}

/// The revision of a Secret whose data is right.
async fn read(client: &Client, name: &str) -> u64 {
    let answer = client.get(&format!("{SECRETS}/{name}")).await;
    assert_eq!(answer.code, 200, "{}", answer.text());
    let object = answer.json();
    assert_eq!(object["data"]["password"], PLANTED, "{object}");
    revision(&object)
}

async fn c_144_stale_values_are_stored_again_by_an_update_without_a_change(on: Backend) {
    let (gcm, cbc) = (provider("aesgcm", &["a"]), provider("aescbc", &["a"]));
    let both = provider("aesgcm", &["b", "a"]);
    let nacl = provider("secretbox", &["a"]);
    let identity = "{identity: {}}";
    let configuration = Configuration::new(&[&gcm]);
    let mut cluster = Cluster::start_with(on, &[&configuration.flag()]);
    let client = cluster.client();
    client.until_ready().await;
    let config_map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}});
    created(&client, CONFIG_MAPS, &config_map).await;
    let mut last = revision(&created(&client, SECRETS, &secret_named("s")).await);
    assert_eq!(touch(&client, "s").await, last, "nothing is stale");
    let put = client
        .put(&format!("{SECRETS}/s"), &secret_named("s"))
        .await;
    assert_eq!(revision(&put.json()), last, "{}", put.text());
    cluster.stop();
    let values = stored(&cluster, &["secrets/s", "configmaps/c"]).await;
    check_prefix(&values[0].0, "k8s:enc:aesgcm:v1:a:");
    assert!(values[1].0.starts_with(b"{"), "only Secrets are encrypted");

    for (providers, prefix) in [
        (vec![&*both, &gcm], "k8s:enc:aesgcm:v1:b:"),
        (vec![&*cbc, &both], "k8s:enc:aescbc:v1:a:"),
        (vec![&*nacl, &cbc], "k8s:enc:secretbox:v1:a:"),
        (vec![identity, &nacl], "{"),
        (vec![&*gcm, identity], "k8s:enc:aesgcm:v1:a:"),
    ] {
        configuration.set(&providers);
        cluster.start_again();
        let client = cluster.client();
        client.until_ready().await;
        assert_eq!(read(&client, "s").await, last, "a read stores nothing");
        let touched = touch(&client, "s").await;
        assert!(touched > last, "it was stale: {providers:?}");
        assert_eq!(touch(&client, "s").await, touched, "it is not stale now");
        last = touched;
        cluster.stop();
        let values = stored(&cluster, &["secrets/s"]).await;
        assert_eq!(values[0].1, Revision(last));
        if prefix == "{" {
            assert!(values[0].0.starts_with(b"{"), "{providers:?}");
        } else {
            check_prefix(&values[0].0, prefix);
        }
    }
}

/// Asserts that a Secret can be neither read, nor changed, nor deleted, and that lists fail with its key.
async fn check_unreadable(cluster: &Cluster, name: &str, why: &str) {
    let client = cluster.client();
    let key = key(cluster, "secrets", name);
    let text = format!("Internal error occurred: unable to transform key {key:?}: {why}");
    let path = format!("{SECRETS}/{name}");
    let answers = [
        client.get(&path).await,
        client.merge(&path, &json!({})).await,
        client.put(&path, &secret_named(name)).await,
        client.delete(&path, &json!({})).await,
        client.get(SECRETS).await,
        client.get(&format!("{SECRETS}?limit=500")).await,
        client.get(&format!("{SECRETS}?resourceVersion=0")).await,
    ];
    for answer in answers {
        assert_eq!(answer.code, 500, "{}", answer.text());
        let status = answer.json();
        assert_eq!(status["reason"], "InternalError", "{status}");
        assert_eq!(status["message"], text);
    }
}

async fn c_145_a_value_that_was_moved_or_changed_cannot_be_read(on: Backend) {
    const FAILED: &str = "cipher: message authentication failed";
    let configuration = Configuration::new(&[&provider("aesgcm", &["a"])]);
    let mut cluster = Cluster::start_with(on, &[&configuration.flag()]);
    let client = cluster.client();
    client.until_ready().await;
    for name in ["moved", "changed", "whole"] {
        created(&client, SECRETS, &secret_named(name)).await;
    }
    cluster.stop();
    let values = stored(&cluster, &["secrets/whole", "secrets/changed"]).await;
    put(&cluster, "moved", values[0].0.to_vec()).await;
    cluster.start_again();
    cluster.client().until_ready().await;
    check_unreadable(&cluster, "moved", FAILED).await;
    read(&cluster.client(), "whole").await;
    cluster.stop();

    // The moved one is mended, and a bit of another one is flipped.
    put(&cluster, "moved", b"{\"kind\":\"Secret\"".to_vec()).await;
    let mut changed = values[1].0.to_vec();
    *changed.last_mut().unwrap() ^= 1;
    put(&cluster, "changed", changed).await;
    cluster.start_again();
    let client = cluster.client();
    client.until_ready().await;
    let answer = client.get(&format!("{SECRETS}/changed")).await;
    let text = format!(
        "Internal error occurred: unable to transform key {:?}: {FAILED}",
        key(&cluster, "secrets", "changed")
    );
    assert_eq!(answer.json()["message"], text, "{}", answer.text());
    // A plain value is refused too, where there is no provider `identity`.
    let answer = client.get(&format!("{SECRETS}/moved")).await;
    let text = format!(
        "Internal error occurred: unable to transform key {:?}: no matching prefix found",
        key(&cluster, "secrets", "moved")
    );
    assert_eq!(answer.json()["message"], text, "{}", answer.text());
    read(&client, "whole").await;
}

async fn c_145_identity_refuses_encrypted_values(on: Backend) {
    let gcm = provider("aesgcm", &["a"]);
    let configuration = Configuration::new(&[&gcm]);
    let mut cluster = Cluster::start_with(on, &[&configuration.flag()]);
    let client = cluster.client();
    client.until_ready().await;
    created(&client, SECRETS, &secret_named("s")).await;
    configuration.set(&["{identity: {}}"]);
    cluster.stop();
    cluster.start_again();
    cluster.client().until_ready().await;
    check_unreadable(&cluster, "s", "no matching prefix found").await;

    // The resource is in no entry.
    configuration.write(
        "{apiVersion: apiserver.config.k8s.io/v1, kind: EncryptionConfiguration, \
         resources: [{resources: [configmaps], providers: [{identity: {}}]}]}",
    );
    cluster.stop();
    cluster.start_again();
    cluster.client().until_ready().await;
    let why = "identity transformer tried to read encrypted data";
    check_unreadable(&cluster, "s", why).await;

    // It is not lost.
    configuration.set(&["{identity: {}}", &gcm]);
    cluster.stop();
    cluster.start_again();
    let client = cluster.client();
    client.until_ready().await;
    read(&client, "s").await;
}

/// Runs `apiloom store migrate`; returns its output.
async fn migrate(kubeconfig: &Path) -> String {
    let kubectl = Kubectl::new("1.36", kubeconfig).command(&[]);
    let mut command = Command::new(build("apiloom"));
    command
        .args(["store", "migrate", "--kubeconfig"])
        .arg(kubeconfig)
        .arg("--kubectl")
        .arg(kubectl.get_program());
    let output = tokio::task::spawn_blocking(move || command.output().unwrap());
    let output = output.await.unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    String::from_utf8(output.stdout).unwrap()
}

async fn a_rotation_ends_with_a_migration(on: Backend) {
    const OBJECTS: usize = 70;
    let configuration = Configuration::new(&[&provider("aesgcm", &["a"])]);
    let protobuf = "--storage-media-type=application/vnd.kubernetes.protobuf";
    let mut cluster = Cluster::start_with(on, &[protobuf, &configuration.flag()]);
    let client = cluster.client();
    client.until_ready().await;
    let names: Vec<String> = (0..OBJECTS).map(|number| format!("s{number}")).collect();
    let before: Vec<u64> = {
        let mut before = Vec::new();
        for name in &names {
            before.push(revision(
                &created(&client, SECRETS, &secret_named(name)).await,
            ));
        }
        before
    };
    configuration.set(&[&provider("aesgcm", &["b", "a"])]);
    cluster.stop();
    cluster.start_again();
    let client = cluster.client();
    client.until_ready().await;
    for (name, before) in names.iter().zip(before) {
        assert_eq!(read(&client, name).await, before);
    }
    let shown = migrate(cluster.server().kubeconfig()).await;
    let wanted = format!("{OBJECTS} of {OBJECTS} objects rewritten");
    let line = shown.lines().find(|line| line.contains(&wanted));
    assert!(line.is_some_and(|line| line.contains("secrets")), "{shown}");
    let again = migrate(cluster.server().kubeconfig()).await;
    assert!(!again.contains(&wanted), "{again}");

    // The first key is not needed any more.
    configuration.set(&[&provider("aesgcm", &["b"])]);
    cluster.stop();
    let objects: Vec<String> = names.iter().map(|name| format!("secrets/{name}")).collect();
    let objects: Vec<&str> = objects.iter().map(String::as_str).collect();
    for (value, _) in stored(&cluster, &objects).await {
        check_prefix(&value, "k8s:enc:aesgcm:v1:b:");
    }
    cluster.start_again();
    let client = cluster.client();
    client.until_ready().await;
    for name in &names {
        read(&client, name).await;
    }
}

/// The value of a metric with these labels; 0 if there is none.
async fn metric(client: &Client, series: &str) -> f64 {
    let text = client.get("/metrics").await.text();
    let found = text.lines().find_map(|line| line.strip_prefix(series));
    found.map_or(0.0, |value| value.trim().parse().unwrap())
}

async fn a_changed_configuration_is_used_by_a_running_server(on: Backend) {
    const RELOADS: &str = "apiserver_encryption_config_controller_automatic_reloads_total";
    let configuration = Configuration::new(&[&provider("aesgcm", &["a"])]);
    let reload = "--encryption-provider-config-automatic-reload";
    let mut cluster = Cluster::start_with(on, &[reload, &configuration.flag()]);
    let client = cluster.client();
    client.until_ready().await;
    let first = revision(&created(&client, SECRETS, &secret_named("s")).await);
    let until_counted = async |status: &str, least: f64| {
        let series = format!("{RELOADS}{{status=\"{status}\"}} ");
        let started = Instant::now();
        while metric(&client, &series).await < least {
            assert!(started.elapsed() < LIMIT, "{series}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    // A file that cannot be used changes nothing, and is not shown in the log.
    configuration.set(&[&provider("aesgcm", &["c"]), "{aescbc: {keys: [{name: d}]}}"]);
    until_counted("failure", 1.0).await;
    assert_eq!(touch(&client, "s").await, first);
    created(&client, SECRETS, &secret_named("t")).await;

    configuration.set(&[&provider("secretbox", &["b"]), &provider("aesgcm", &["a"])]);
    until_counted("success", 1.0).await;
    // Of two servers the one that writes may be the later one.
    let ask = async || client.merge(&format!("{SECRETS}/s"), &json!({})).await;
    let is_stale = |answer: &Answer| revision(&answer.json()) > first;
    until_answered("a stale value", LIMIT, ask, is_stale).await;
    created(&client, SECRETS, &secret_named("u")).await;
    let log = cluster.server().log();
    for key in ["a", "b", "c"] {
        assert!(!log.contains(&secret(key)), "{log}");
    }
    cluster.stop();
    let values = stored(&cluster, &["secrets/s", "secrets/t", "secrets/u"]).await;
    check_prefix(&values[0].0, "k8s:enc:secretbox:v1:b:");
    check_prefix(&values[1].0, "k8s:enc:aesgcm:v1:a:");
    check_prefix(&values[2].0, "k8s:enc:secretbox:v1:b:");
}
