//! Helpers of end-to-end tests: a server as a process, an HTTP client that exposes everything, real kubectl.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on panics, and says where"
)]

mod client;
mod client_program;
mod cluster;
mod command;
mod connections;
pub mod corpus;
pub mod etcd;
pub mod frames;
pub mod https;
mod kubectl;
pub mod network;
pub mod oracle;
mod progress;
mod server;
pub mod transcript;
pub mod wardle;

pub use client::{Access, Answer, Client, NoWatch, Watch, WebSocket, created, revision};
pub use client_program::{RestartableServer, run_client};
pub use cluster::{Backend, Cluster, StoreOfTest};
pub use command::stdout;
pub use kubectl::{Kubectl, Output};
pub use progress::Progress;
pub use server::{Server, build, has_replicas, is_cached, repository};
