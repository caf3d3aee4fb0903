//! Credential plugins: programs that print an `ExecCredential`.

use std::process::{ExitStatus, Stdio};
use std::time::{Duration, SystemTime};

use apiloom_meta::Time;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::kubeconfig::Exec;
use crate::transport::TlsOptions;

/// How long a plugin may take.
const TIMEOUT: Duration = Duration::from_secs(60);

/// How long output is read after the end of a plugin: a program that it has started may keep the pipes open for ever.
const AFTER_END: Duration = Duration::from_secs(1);

/// Most bytes that a plugin may print.
const MAX_OUTPUT: usize = 1 << 20;

/// What a plugin printed.
#[derive(Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ExecStatus {
    expiration_timestamp: Option<Time>,
    pub(super) token: Option<String>,
    pub(super) client_certificate_data: Option<String>,
    pub(super) client_key_data: Option<String>,
}

impl ExecStatus {
    /// Whether the credentials must be renewed before the next request.
    pub(super) fn is_expired(&self) -> bool {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let now = now.map_or(0, |now| now.as_secs());
        let end = self.expiration_timestamp.map(Time::unix_seconds);
        end.is_some_and(|end| end <= i64::try_from(now).unwrap_or(i64::MAX))
    }
}

/// A run of a plugin, which all requests that need it wait for.
pub(super) type Running = Shared<BoxFuture<'static, Result<ExecStatus, String>>>;

/// A task that ends with the last one that waits for it.
struct Task<T>(JoinHandle<T>);

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Starts a plugin. It goes on when a request that waits for it is given up: one whose user has to act first would never end
/// with requests that have deadlines.
pub(super) fn start(exec: &Exec, url: &str, tls: &TlsOptions) -> Running {
    let (exec, url, tls) = (exec.clone(), url.to_owned(), tls.clone());
    let mut task = Task(tokio::spawn(async move { run(&exec, &url, &tls).await }));
    let ended = async move {
        let ended = (&mut task.0).await;
        ended.unwrap_or_else(|error| Err(format!("the plugin of the user was not run: {error}")))
    };
    ended.boxed().shared()
}

/// Runs a plugin. Its standard input is empty: it cannot ask.
async fn run(exec: &Exec, url: &str, tls: &TlsOptions) -> Result<ExecStatus, String> {
    let name = exec.command.display();
    let version = &*exec.api_version;
    if !matches!(
        version,
        "client.authentication.k8s.io/v1" | "client.authentication.k8s.io/v1beta1"
    ) {
        return Err(format!(
            "the plugin {name} has the apiVersion {version:?}, which is not supported"
        ));
    }
    if exec.command.as_os_str().is_empty() {
        return Err("the plugin of the user has no command".to_owned());
    }
    if exec.interactive_mode == "Always" {
        return Err(format!(
            "the plugin {name} needs a terminal (interactiveMode: Always)"
        ));
    }
    let mut command = Command::new(&exec.command);
    command
        .args(&exec.args)
        .envs(
            exec.env
                .iter()
                .map(|variable| (&variable.name, &variable.value)),
        )
        .env("KUBERNETES_EXEC_INFO", info(exec, url, tls).to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    let child = command.spawn().map_err(|error| {
        let hint = exec.install_hint.trim();
        let problem = format!("cannot run the plugin {name}: {error}. {hint}");
        problem.trim_end().to_owned()
    })?;
    let mut printed = PluginOutput::default();
    let status = match timeout(TIMEOUT, printed.read(child)).await {
        Ok(status) => status.map_err(|problem| format!("the plugin {name} {problem}"))?,
        Err(_) => return Err(format!("the plugin {name} did not end within {TIMEOUT:?}")),
    };
    if !status.success() {
        let stderr = String::from_utf8_lossy(&printed.stderr);
        let begin: String = stderr.trim().chars().take(500).collect();
        return Err(format!("the plugin {name} failed ({status}): {begin}"));
    }
    parse(&printed.stdout, version).map_err(|problem| format!("the plugin {name} {problem}"))
}

/// What a plugin prints.
#[derive(Default)]
struct PluginOutput {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

impl PluginOutput {
    /// Reads all that a plugin prints, and waits for its end.
    async fn read(&mut self, mut child: Child) -> Result<ExitStatus, String> {
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let read = async {
            tokio::try_join!(
                read_some(stdout, &mut self.stdout),
                read_some(stderr, &mut self.stderr)
            )
        };
        tokio::pin!(read);
        let status = tokio::select! {
            read = &mut read => {
                read?;
                child.wait().await
            }
            status = child.wait() => {
                if let Ok(read) = timeout(AFTER_END, read).await {
                    read?;
                }
                status
            }
        };
        status.map_err(|error| format!("was lost: {error}"))
    }
}

/// Reads a pipe to its end, if it has not too much.
async fn read_some(
    pipe: Option<impl AsyncRead + Unpin>,
    bytes: &mut Vec<u8>,
) -> Result<(), String> {
    let Some(pipe) = pipe else {
        return Ok(());
    };
    let most = u64::try_from(MAX_OUTPUT).unwrap_or(u64::MAX);
    let read = pipe.take(most.saturating_add(1)).read_to_end(bytes).await;
    read.map_err(|error| format!("cannot be read: {error}"))?;
    if bytes.len() > MAX_OUTPUT {
        return Err(format!("printed more than {MAX_OUTPUT} bytes"));
    }
    Ok(())
}

fn info(exec: &Exec, url: &str, tls: &TlsOptions) -> Value {
    let mut spec = json!({"interactive": false});
    if exec.provide_cluster_info {
        let authorities = tls.authorities.as_ref().map(|pem| STANDARD.encode(pem));
        spec["cluster"] = json!({
            "server": url,
            "tls-server-name": tls.server_name,
            "insecure-skip-tls-verify": tls.accepts_any_certificate,
            "certificate-authority-data": authorities,
        });
    }
    json!({"apiVersion": exec.api_version, "kind": "ExecCredential", "spec": spec})
}

/// What was printed is not shown in errors: it has secrets.
fn parse(stdout: &[u8], version: &str) -> Result<ExecStatus, String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Credential {
        api_version: String,
        kind: String,
        status: Option<ExecStatus>,
    }
    let Ok(credential) = serde_json::from_slice::<Credential>(stdout) else {
        return Err("did not print an ExecCredential as JSON".to_owned());
    };
    if credential.kind != "ExecCredential" || credential.api_version != version {
        return Err(format!("did not print an ExecCredential of {version}"));
    }
    let status = credential.status.unwrap_or_default();
    if status.client_certificate_data.is_some() != status.client_key_data.is_some() {
        return Err(
            "printed a certificate without a key, or a key without a certificate".to_owned(),
        );
    }
    if status.token.is_none() && status.client_key_data.is_none() {
        return Err("printed neither a token nor a certificate".to_owned());
    }
    Ok(status)
}
