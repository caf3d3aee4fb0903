//! Kubeconfig files, and credentials that change.

use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use http::{Request, Response};

use super::auth::RenewsTls;
use super::*;
use crate::scripted::Script;
use crate::transport::{Body, Transport, TransportError};

/// A script that also records TLS options.
#[derive(Clone)]
struct Server {
    script: Script,
    renewed: Arc<Mutex<Vec<TlsOptions>>>,
}

impl Transport for Server {
    fn call(
        &self,
        request: Request<Body>,
    ) -> BoxFuture<'static, Result<Response<Body>, TransportError>> {
        self.script.call(request)
    }
}

impl RenewsTls for Server {
    fn renew(&self, tls: &TlsOptions) -> Result<(), String> {
        self.renewed.lock().unwrap().push(tls.clone());
        Ok(())
    }
}

impl Server {
    fn new(codes: &[u16]) -> Self {
        let script = codes
            .iter()
            .fold(Script::new(), |script, code| script.answer(*code, "{}"));
        Self {
            script,
            renewed: Arc::default(),
        }
    }

    fn client(&self, credentials: Credentials) -> Client {
        let auth = Auth::new(
            credentials,
            None,
            "https://a".to_owned(),
            TlsOptions::default(),
        );
        let auth = auth.unwrap();
        Client::new(Authenticated::new(self.clone(), auth))
    }

    /// The credentials of each request.
    fn authorizations(&self) -> Vec<String> {
        let sent = self.script.sent();
        let header = |headers: &http::HeaderMap| {
            let value = headers.get("authorization");
            value.map_or("", |value| value.to_str().unwrap()).to_owned()
        };
        sent.iter().map(|sent| header(&sent.headers)).collect()
    }
}

async fn get(client: &Client) -> Result<bytes::Bytes, crate::Error> {
    client.request(http::Method::GET, "/version").await
}

#[tokio::test(start_paused = true)]
async fn trap_44_a_token_file_is_read_again_after_a_minute_at_most() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    std::fs::write(&file, "one\n").unwrap();
    let server = Server::new(&[200; 5]);
    let client = server.client(Credentials::token_file(file.clone()));
    get(&client).await.unwrap();
    std::fs::write(&file, "two").unwrap();
    tokio::time::advance(std::time::Duration::from_secs(59)).await;
    get(&client).await.unwrap();
    tokio::time::advance(std::time::Duration::from_secs(1)).await;
    get(&client).await.unwrap();
    // The last token stays when the file is gone, or empty.
    std::fs::remove_file(&file).unwrap();
    tokio::time::advance(std::time::Duration::from_secs(60)).await;
    get(&client).await.unwrap();
    std::fs::write(&file, "").unwrap();
    tokio::time::advance(std::time::Duration::from_secs(60)).await;
    get(&client).await.unwrap();
    assert_eq!(
        server.authorizations(),
        [
            "Bearer one",
            "Bearer one",
            "Bearer two",
            "Bearer two",
            "Bearer two"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn trap_44_a_refusal_reads_the_file_once() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    std::fs::write(&file, "one").unwrap();
    let server = Server::new(&[200, 401, 200, 401]);
    let client = server.client(Credentials::token_file(file.clone()));
    get(&client).await.unwrap();
    std::fs::write(&file, "two").unwrap();
    tokio::time::advance(std::time::Duration::from_secs(5)).await;
    get(&client).await.unwrap();
    // The same token again would be refused again.
    tokio::time::advance(std::time::Duration::from_secs(5)).await;
    assert!(get(&client).await.unwrap_err().is_unauthorized());
    assert_eq!(
        server.authorizations(),
        ["Bearer one", "Bearer one", "Bearer two", "Bearer two"]
    );
}

#[tokio::test]
async fn a_missing_token_file_is_an_error_that_names_it() {
    let server = Server::new(&[]);
    let client = server.client(Credentials::token_file("/none/token".into()));
    let error = get(&client).await.unwrap_err();
    assert!(error.to_string().contains("/none/token"), "{error}");
}

/// A plugin that prints a credential with the number of its run.
fn plugin(folder: &Path, status: &str) -> kubeconfig::Exec {
    let file = folder.join("plugin");
    let mut script = std::fs::File::create(&file).unwrap();
    write!(
        script,
        "#!/bin/sh\ncd {}\necho x >>runs\nn=$(wc -l <runs)\nn=$((n))\nprintf '%s' \"$KUBERNETES_EXEC_INFO\" >info\ncat <<END\n{{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"kind\":\"ExecCredential\",\"status\":{status}}}\nEND\n",
        folder.display()
    )
    .unwrap();
    drop(script);
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o700)).unwrap();
    kubeconfig::Exec {
        api_version: "client.authentication.k8s.io/v1".to_owned(),
        command: file,
        provide_cluster_info: true,
        ..kubeconfig::Exec::default()
    }
}

#[tokio::test]
async fn a_plugin_is_run_once_until_its_credentials_expire_or_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let exec = plugin(folder.path(), r#"{"token":"t$n"}"#);
    let server = Server::new(&[200, 200]);
    let client = server.client(Credentials {
        exec: Some(exec),
        ..Credentials::default()
    });
    get(&client).await.unwrap();
    get(&client).await.unwrap();
    assert_eq!(server.authorizations(), ["Bearer t1", "Bearer t1"]);
    let info = std::fs::read_to_string(folder.path().join("info")).unwrap();
    let info: serde_json::Value = serde_json::from_str(&info).unwrap();
    assert_eq!(info["spec"]["cluster"]["server"], "https://a");
    assert_eq!(info["spec"]["interactive"], false);
    // Expired credentials.
    let folder = tempfile::tempdir().unwrap();
    let expired = r#"{"token":"t$n","expirationTimestamp":"2020-01-01T00:00:00Z"}"#;
    let server = Server::new(&[200, 200, 200]);
    let client = server.client(Credentials {
        exec: Some(plugin(folder.path(), expired)),
        ..Credentials::default()
    });
    get(&client).await.unwrap();
    // Not for every request: the clocks may differ.
    get(&client).await.unwrap();
    pass(1).await;
    get(&client).await.unwrap();
    assert_eq!(
        server.authorizations(),
        ["Bearer t1", "Bearer t1", "Bearer t2"]
    );
}

/// Lets seconds pass.
async fn pass(seconds: u64) {
    tokio::time::pause();
    tokio::time::advance(std::time::Duration::from_secs(seconds)).await;
    tokio::time::resume();
}

#[tokio::test]
async fn certificates_of_a_plugin_are_renewed() {
    let folder = tempfile::tempdir().unwrap();
    let status = r#"{"clientCertificateData":"c$n","clientKeyData":"k$n","expirationTimestamp":"2020-01-01T00:00:00Z"}"#;
    let server = Server::new(&[200, 200]);
    let client = server.client(Credentials {
        exec: Some(plugin(folder.path(), status)),
        ..Credentials::default()
    });
    get(&client).await.unwrap();
    pass(1).await;
    get(&client).await.unwrap();
    let renewed = server.renewed.lock().unwrap();
    let found: Vec<_> = renewed
        .iter()
        .map(|tls| tls.certificate.as_deref())
        .collect();
    assert_eq!(found, [Some(b"c1".as_slice()), Some(b"c2".as_slice())]);
}

#[tokio::test]
async fn a_plugin_that_fails_is_an_error_without_its_secrets() {
    let folder = tempfile::tempdir().unwrap();
    for status in [
        r#"{"token":5,"x":"secret"}"#,
        r#"{"clientKeyData":"secret"}"#,
        "{}",
    ] {
        let server = Server::new(&[]);
        let client = server.client(Credentials {
            exec: Some(plugin(folder.path(), status)),
            ..Credentials::default()
        });
        let error = get(&client).await.unwrap_err().to_string();
        assert!(
            error.contains("the plugin") && !error.contains("secret"),
            "{error}"
        );
    }
    let missing = kubeconfig::Exec {
        command: "/none/plugin".into(),
        install_hint: "install it".to_owned(),
        ..plugin(folder.path(), "{}")
    };
    let client = Server::new(&[]).client(Credentials {
        exec: Some(missing),
        ..Credentials::default()
    });
    let error = get(&client).await.unwrap_err().to_string();
    assert!(error.contains("install it"), "{error}");
}

/// How often a plugin was run.
fn runs(folder: &Path) -> usize {
    let runs = std::fs::read_to_string(folder.join("runs"));
    runs.map_or(0, |runs| runs.lines().count())
}

#[tokio::test]
async fn a_plugin_that_fails_is_not_run_for_every_request() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::new(&[]);
    let client = server.client(Credentials {
        exec: Some(plugin(folder.path(), "{}")),
        ..Credentials::default()
    });
    let mut errors = Vec::new();
    for _ in 0..5 {
        errors.push(get(&client).await.unwrap_err().to_string());
    }
    assert_eq!(runs(folder.path()), 1);
    assert!(errors.iter().all(|error| *error == errors[0]), "{errors:?}");
    // After a second it is run again, then after two.
    for (seconds, expected) in [(1, 2), (1, 2), (1, 3), (3, 3), (1, 4)] {
        pass(seconds).await;
        get(&client).await.unwrap_err();
        assert_eq!(runs(folder.path()), expected);
    }
}

#[tokio::test]
async fn a_plugin_whose_token_cannot_be_sent_is_not_run_for_every_request() {
    let folder = tempfile::tempdir().unwrap();
    let client = Server::new(&[]).client(Credentials {
        exec: Some(plugin(folder.path(), r#"{"token":"a\\u0001b"}"#)),
        ..Credentials::default()
    });
    for _ in 0..3 {
        let error = get(&client).await.unwrap_err().to_string();
        assert!(error.contains("cannot be sent"), "{error}");
    }
    assert_eq!(runs(folder.path()), 1);
}

/// Waits until something is so.
async fn until(is_so: impl Fn() -> bool) {
    let wait = async {
        while !is_so() {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    let limit = std::time::Duration::from_secs(30);
    tokio::time::timeout(limit, wait).await.expect("in time");
}

// A plugin whose user has to log in takes longer than a request may.
#[tokio::test]
async fn a_plugin_goes_on_when_its_request_is_given_up() {
    let folder = tempfile::tempdir().unwrap();
    let exec = plugin(folder.path(), r#"{"token":"t$n"}"#);
    let script = std::fs::read_to_string(&exec.command).unwrap();
    let script = script.replace("cat <<", "while [ ! -e go ]; do sleep 0.01; done\ncat <<");
    std::fs::write(&exec.command, script).unwrap();
    let server = Server::new(&[200]);
    let client = server.client(Credentials {
        exec: Some(exec),
        ..Credentials::default()
    });
    for _ in 0..3 {
        let mut request = Box::pin(get(&client));
        tokio::select! {
            result = &mut request => panic!("{result:?}"),
            () = until(|| runs(folder.path()) > 0) => {}
        }
    }
    std::fs::write(folder.path().join("go"), "").unwrap();
    get(&client).await.unwrap();
    assert_eq!(server.authorizations(), ["Bearer t1"]);
    // A client that is dropped stops it.
    std::fs::remove_file(folder.path().join("go")).unwrap();
    let exec = plugin(folder.path(), "{}");
    std::fs::write(
        &exec.command,
        "#!/bin/sh\necho $$ >id.new\nmv id.new id\nexec sleep 1000\n",
    )
    .unwrap();
    let client = server.client(Credentials {
        exec: Some(kubeconfig::Exec {
            command: in_folder(&exec.command, folder.path()),
            ..exec
        }),
        ..Credentials::default()
    });
    let id = folder.path().join("id");
    tokio::select! {
        result = get(&client) => panic!("{result:?}"),
        () = until(|| id.exists()) => {}
    }
    drop(client);
    let id = std::fs::read_to_string(id).unwrap();
    let process = Path::new("/proc").join(id.trim());
    let is_gone = || {
        let state = std::fs::read_to_string(process.join("stat"));
        state.map_or(true, |state| state.contains(") Z "))
    };
    until(is_gone).await;
}

/// The same program, which begins in a folder.
fn in_folder(program: &Path, folder: &Path) -> PathBuf {
    let text = std::fs::read_to_string(program).unwrap();
    let text = text.replacen('\n', &format!("\ncd {}\n", folder.display()), 1);
    std::fs::write(program, text).unwrap();
    program.to_owned()
}

#[tokio::test]
async fn a_plugin_cannot_print_without_end_nor_leave_a_pipe_open() {
    let folder = tempfile::tempdir().unwrap();
    let client = |change: &dyn Fn(String) -> String, server: &Server| {
        let exec = plugin(folder.path(), r#"{"token":"t"}"#);
        let script = std::fs::read_to_string(&exec.command).unwrap();
        std::fs::write(&exec.command, change(script)).unwrap();
        server.client(Credentials {
            exec: Some(exec),
            ..Credentials::default()
        })
    };
    for program in ["exec yes", "exec yes >&2"] {
        let endless = client(&|_| format!("#!/bin/sh\n{program}\n"), &Server::new(&[]));
        let error = get(&endless).await.unwrap_err().to_string();
        assert!(error.contains("printed more than 1048576 bytes"), "{error}");
    }
    // A helper that it leaves behind has its pipes.
    let server = Server::new(&[200]);
    let helper = "(while [ -e plugin ] && [ ! -e go ]; do sleep 0.01; done) &";
    let leaves = |script: String| script.replace("cat <<", &format!("{helper}\ncat <<"));
    get(&client(&leaves, &server)).await.unwrap();
    assert_eq!(server.authorizations(), ["Bearer t"]);
    std::fs::write(folder.path().join("go"), "").unwrap();
}

#[tokio::test]
async fn impersonation_and_passwords_are_headers() {
    let server = Server::new(&[200]);
    let client = server.client(Credentials {
        basic: Some(("me".to_owned(), "pw".to_owned())),
        impersonation: vec![
            ("impersonate-user".to_owned(), "jane".to_owned()),
            ("impersonate-group".to_owned(), "a".to_owned()),
            ("impersonate-group".to_owned(), "b".to_owned()),
        ],
        ..Credentials::default()
    });
    get(&client).await.unwrap();
    assert_eq!(server.authorizations(), ["Basic bWU6cHc="]);
    let groups = server.script.sent()[0]
        .headers
        .get_all("impersonate-group")
        .iter()
        .count();
    assert_eq!(groups, 2);
}

const FILE: &str = "
apiVersion: v1
kind: Config
current-context: one
clusters:
- name: c
  cluster: {server: 'https://a:6443/k8s/c-1', certificate-authority: ca.crt, tls-server-name: b}
users:
- name: u
  user: {token: secret, tokenFile: token, exec: {command: bin/plugin}}
contexts:
- name: one
  context: {cluster: c, user: u, namespace: ns}
";

#[test]
fn files_are_merged_and_their_paths_are_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (folder.path().join("1"), folder.path().join("x/2"));
    std::fs::create_dir(folder.path().join("x")).unwrap();
    std::fs::write(&first, "current-context: ''\nusers: null\nclusters:\n- name: c\n  cluster: {server: 'http://first'}\n").unwrap();
    std::fs::write(&second, FILE).unwrap();
    let files = [first, "/none/file".into(), second];
    let merged = Kubeconfig::read(&files).unwrap();
    let config = Config::from_kubeconfig(&merged, None).unwrap();
    assert_eq!((&*config.url, &*config.namespace), ("http://first", "ns"));
    let token = config.credentials.token_file.clone().unwrap();
    assert_eq!(token, folder.path().join("x/token"));
    let exec = config.credentials.exec.as_ref().unwrap();
    assert_eq!(exec.command, folder.path().join("x/bin/plugin"));
    assert!(!format!("{config:?} {merged:?}").contains("secret"));
    assert!(matches!(
        Kubeconfig::read(&["/none/file".into()]),
        Err(ConfigError::Missing(_))
    ));
}

#[test]
fn what_is_wrong_in_a_kubeconfig_is_named() {
    let problem = |from: &str, to: &str| {
        let text = FILE.replace(from, to);
        let config = Kubeconfig::parse(&text, Path::new("/etc"));
        let config = config.and_then(|parsed| Config::from_kubeconfig(&parsed, None));
        config
            .and_then(|config| config.client())
            .unwrap_err()
            .to_string()
    };
    for (from, to, part) in [
        ("current-context: one", "", "no current-context"),
        (
            "current-context: one",
            "current-context: two",
            "no context \"two\"",
        ),
        ("cluster: c,", "cluster: d,", "no cluster \"d\""),
        ("user: u,", "user: v,", "no user \"v\""),
        ("tls-server-name: b", "proxy-url: 'http://p'", "proxy-url"),
        (
            "token: secret,",
            "auth-provider: {name: gcp},",
            "auth-provider",
        ),
        (
            "certificate-authority: ca.crt",
            "certificate-authority-data: '%'",
            "certificate-authority-data is not base64",
        ),
        ("ca.crt", "ca.crt", "/etc/ca.crt"),
        ("token: secret", "token: [secret]", "line"),
    ] {
        let found = problem(from, to);
        assert!(found.contains(part), "{part}: {found}");
        assert!(!found.contains("secret"), "{found}");
    }
}

#[test]
fn empty_texts_and_null_are_not_set() {
    let text = "
current-context: one
clusters:
- name: c
  cluster: {server: 'http://a', certificate-authority: '', certificate-authority-data: '', tls-server-name: '', proxy-url: '', insecure-skip-tls-verify: null}
users:
- name: u
  user: {client-certificate: '', client-key: '', token: '', tokenFile: '', username: '', password: '', as: '', as-uid: '', as-groups: null, as-user-extra: null, exec: null, auth-provider: null}
- {name: v, user: null}
contexts:
- name: one
  context: {cluster: c, user: u, namespace: ''}
- name: two
  context: {cluster: c, user: v, namespace: null}
";
    let kubeconfig = Kubeconfig::parse(text, Path::new("/etc")).unwrap();
    for context in ["one", "two"] {
        let config = Config::from_kubeconfig(&kubeconfig, Some(context)).unwrap();
        assert_eq!(config.namespace, "default");
        let credentials = &config.credentials;
        assert!(credentials.certificate.is_none() && credentials.key.is_none());
        assert!(credentials.token.is_none() && credentials.token_file.is_none());
        assert!(credentials.basic.is_none() && credentials.impersonation.is_empty());
        assert!(config.authorities.is_none() && config.tls.server_name.is_none());
        config.client().unwrap().build().unwrap();
    }
}

#[tokio::test]
async fn another_user_has_uid_groups_and_extra() {
    let user = "{as: jane, as-uid: '7', as-groups: [a, b], as-user-extra: {example.com/Team: [x, y], 'a%b': [z]}}";
    let text = FILE.replace(
        "{token: secret, tokenFile: token, exec: {command: bin/plugin}}",
        user,
    );
    let kubeconfig = Kubeconfig::parse(&text, Path::new("/etc")).unwrap();
    let config = Config::from_kubeconfig(&kubeconfig, None).unwrap();
    let server = Server::new(&[200]);
    get(&server.client(config.credentials)).await.unwrap();
    let sent = server.script.sent();
    let values = |name: &str| -> Vec<String> {
        let values = sent[0].headers.get_all(name).iter();
        values
            .map(|value| value.to_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(values("impersonate-user"), ["jane"]);
    assert_eq!(values("impersonate-uid"), ["7"]);
    assert_eq!(values("impersonate-group"), ["a", "b"]);
    assert_eq!(values("impersonate-extra-example.com%2fteam"), ["x", "y"]);
    assert_eq!(values("impersonate-extra-a%25b"), ["z"]);
    for alone in ["as-uid: '7'", "as-groups: [a]", "as-user-extra: {a: [b]}"] {
        let text = FILE.replace("token: secret", alone);
        let kubeconfig = Kubeconfig::parse(&text, Path::new("/etc")).unwrap();
        let error = Config::from_kubeconfig(&kubeconfig, None).unwrap_err();
        assert!(error.to_string().contains("without as"), "{error}");
    }
}

#[test]
fn passwords_in_urls_are_not_shown() {
    let text = FILE.replace("https://a:6443", "https://me:secret@a:6443");
    let kubeconfig = Kubeconfig::parse(&text, Path::new("/etc")).unwrap();
    let config = Config::from_kubeconfig(&kubeconfig, None).unwrap();
    let shown = format!(
        "{kubeconfig:?} {config:?} {:?}",
        HttpTransport::builder(&config.url)
    );
    assert!(
        shown.contains("@a:6443") && !shown.contains("secret"),
        "{shown}"
    );
    for url in [&*config.url, "http://me:secret@[::1", "ftp://me:secret@a"] {
        let error = HttpTransport::builder(url).build().unwrap_err();
        assert!(!format!("{error} {error:?}").contains("secret"), "{error}");
    }
}

#[test]
fn a_pod_has_its_files() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("namespace"), "prod\n").unwrap();
    let config = Config::of_pod("fd00::1", "443", folder.path()).unwrap();
    assert_eq!(
        (&*config.url, &*config.namespace),
        ("https://[fd00::1]:443", "prod")
    );
    assert!(matches!(config.client(), Err(ConfigError::File { .. })));
}
