//! Credential plugins: programs that print an `ExecCredential`.

use std::process::Stdio;
use std::time::{Duration, SystemTime};

use apiloom_meta::Time;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::{Value, json};

use super::kubeconfig::Exec;
use crate::transport::TlsOptions;

/// How long a plugin may take.
const TIMEOUT: Duration = Duration::from_secs(60);

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

/// Runs a plugin. Its standard input is empty: it cannot ask.
pub(super) async fn run(exec: &Exec, url: &str, tls: &TlsOptions) -> Result<ExecStatus, String> {
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
    let mut command = tokio::process::Command::new(&exec.command);
    command
        .args(&exec.args)
        .envs(
            exec.env
                .iter()
                .map(|variable| (&variable.name, &variable.value)),
        )
        .env("KUBERNETES_EXEC_INFO", info(exec, url, tls).to_string())
        .stdin(Stdio::null())
        .kill_on_drop(true);
    let running = tokio::time::timeout(TIMEOUT, command.output());
    let output = match running.await {
        Ok(Ok(output)) => output,
        Ok(Err(error)) => {
            let hint = exec.install_hint.trim();
            return Err(format!("cannot run the plugin {name}: {error}. {hint}")
                .trim_end()
                .to_owned());
        }
        Err(_) => return Err(format!("the plugin {name} did not end within {TIMEOUT:?}")),
    };
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        let begin: String = stderr.trim().chars().take(500).collect();
        return Err(format!(
            "the plugin {name} failed ({}): {begin}",
            output.status
        ));
    }
    parse(&output.stdout, version).map_err(|problem| format!("the plugin {name} {problem}"))
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
