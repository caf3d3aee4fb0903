//! What an informer of many objects costs a client: time until it is synced, CPU time and memory, beside kube-rs over the
//! same server and objects, each in a process of its own; and how fast watches are decoded.
//!
//! `cargo run --release -p apiloom-benches --example informers -- follow --kubeconfig FILE --objects 100000`
//! `cargo run --release -p apiloom-benches --example informers -- decode`

#![expect(clippy::print_stdout, reason = "it is what this program is for")]

#[path = "../cpu/mod.rs"]
mod cpu;
mod decode;
mod expire;
mod follow;
mod objects;
mod report;

use std::alloc::System;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use cap::Cap;
use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::report::Figures;

/// Counts what is allocated.
#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, usize::MAX);

/// Measures informers.
#[derive(Debug, Parser)]
struct Options {
    #[command(subcommand)]
    command: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Fills a server with ConfigMaps, and follows them with each client
    Follow(Follow),
    /// Follows them with one client, and prints figures as JSON; started by `follow`
    #[command(hide = true)]
    One {
        /// The client
        #[arg(value_enum)]
        client: Client,
        /// Number of objects that must be there
        #[arg(long)]
        objects: usize,
    },
    /// Decodes the events of a watch, without a network
    Decode,
}

#[derive(Args, Debug)]
struct Follow {
    /// The server
    #[arg(long, value_name = "FILE", env = "KUBECONFIG")]
    kubeconfig: PathBuf,
    /// Number of ConfigMaps
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    objects: usize,
    /// Rounds, in which the clients take turns; the medians are shown
    #[arg(long, value_name = "N", default_value_t = 3)]
    rounds: usize,
}

/// Who follows the objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Client {
    /// An informer of apiloom with its defaults
    Apiloom,
    /// The same, which lists in pages
    ApiloomPages,
    /// A reflector of kube-rs with its defaults, which lists in pages
    Kube,
    /// The same, with streaming lists
    KubeStreaming,
    /// As kube, and managedFields are dropped after an object was decoded
    KubeStripped,
}

#[tokio::main]
async fn main() -> Result<()> {
    match Options::parse().command {
        What::Follow(options) => compare(&options).await,
        What::One { client, objects } => {
            let figures = follow::follow(client, objects).await?;
            println!("{}", serde_json::to_string(&figures)?);
            Ok(())
        }
        What::Decode => decode::measure(),
    }
}

async fn compare(options: &Follow) -> Result<()> {
    objects::fill(&options.kubeconfig, options.objects).await?;
    let mut rounds: Vec<Vec<Figures>> = Vec::new();
    for _ in 0..options.rounds.max(1) {
        let clients = Client::value_variants().iter();
        let figures = clients.map(|client| run(*client, options));
        rounds.push(figures.collect::<Result<_>>()?);
    }
    print!("{}", report::table(&rounds, options.objects));
    Ok(())
}

/// Runs one client in a process of its own.
fn run(client: Client, options: &Follow) -> Result<Figures> {
    let name = client.to_possible_value().context("it has a name")?;
    let output = Command::new(std::env::current_exe()?)
        .args(["one", name.get_name(), "--objects"])
        .arg(options.objects.to_string())
        .env("KUBECONFIG", &options.kubeconfig)
        .output()?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{}: {errors}", name.get_name());
    serde_json::from_slice(&output.stdout).context("figures")
}
