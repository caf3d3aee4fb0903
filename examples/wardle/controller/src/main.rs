//! The program: flags, kubeconfig, signals.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use apiloom::client::Client;
use apiloom::client::config::{Config, Kubeconfig};
use apiloom::client::controller::{CancellationToken, ElectionConfig, LeaderElector};
use clap::Parser;
use wardle_controller::{NAME, Replica};

/// Labels Flunders with the state of their reference, and keeps those that others refer to.
#[derive(Debug, Parser)]
#[command(version)]
struct Flags {
    /// The kubeconfig file. Default: the files in the variable KUBECONFIG, the server of the pod, or ~/.kube/config.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The name of this replica, which no other one may have. Default: a name with a random number.
    #[arg(long, value_name = "NAME")]
    identity: Option<String>,
    /// The namespace of the Lease. Default: that of the kubeconfig.
    #[arg(long, value_name = "NAMESPACE")]
    lease_namespace: Option<String>,
    /// How long other replicas wait for a leader that does not renew its lease.
    #[arg(long, value_name = "DURATION", default_value = "15s", value_parser = duration)]
    lease_duration: Duration,
    /// How long a leader works on after the last renewal of its lease.
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration)]
    lease_renew_deadline: Duration,
    /// The time between attempts to get or to renew the lease.
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = duration)]
    lease_retry_period: Duration,
}

/// Parses `1m30s`.
fn duration(text: &str) -> Result<Duration, String> {
    let duration = text.parse::<apiloom::prelude::Duration>();
    let duration = duration.map_err(|error| error.to_string())?;
    Duration::try_from(duration).map_err(|error| error.to_string())
}

impl Flags {
    async fn run(self, cancel: &CancellationToken) -> anyhow::Result<()> {
        let config = match self.kubeconfig {
            Some(file) => Config::from_kubeconfig(&Kubeconfig::read(&[file])?, None),
            None => Config::from_env(),
        };
        let config = config.context("cannot find the server")?;
        let identity = self.identity;
        let identity = identity.unwrap_or_else(|| LeaderElector::unique_identity(NAME));
        // The part before the slash is the field manager.
        let agent = format!("{NAME}/{} {identity}", env!("CARGO_PKG_VERSION"));
        let client: Client = config.client()?.user_agent(&agent).build()?;
        let replica = Replica {
            identity,
            lease_namespace: self.lease_namespace.unwrap_or(config.namespace),
            election: ElectionConfig {
                lease_duration: self.lease_duration,
                renew_deadline: self.lease_renew_deadline,
                retry_period: self.lease_retry_period,
                ..ElectionConfig::default()
            },
        };
        replica.run(&client, cancel).await
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .init();
    let flags = Flags::parse();
    let run = async { flags.run(&apiloom::signals::shutdown()?).await };
    match run.await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{error:#}");
            ExitCode::FAILURE
        }
    }
}
