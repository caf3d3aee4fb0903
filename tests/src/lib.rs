//! Helpers of end-to-end tests: a server as a process, an HTTP client that exposes everything, real kubectl.
//!
//! `tests/tests/oracle` puts 6,000 requests to Kubernetes' own server of CustomResourceDefinitions and to this one, and compares the
//! answers; `tests/tools` builds that server where Debian has its packages, and its answers are kept for other machines. What differs is
//! in one table. Beside it a program of Kubernetes' own clients of definitions is built (`tests/oracle/definitions`).
//! `tests/certificates` has certificates of servers as users make them, each with what Go says of it: our clients accept the same. Both
//! servers call one conversion webhook, in the process of the test, which does what the objects say. The checks of the contract
//! (`tests/tests/contract`) run over TLS against a server over the embedded store and against one over etcd. With `APILOOM_TEST_REPLICAS`
//! in the environment, as in `tests/all`, those over etcd have two servers: clients write to the first, which has the flags in the
//! variable, and read and watch at the second. What has one server then too is listed in `replicas.rs` there. The programs of kube-rs,
//! Python and JavaScript go on with the second server when the first is stopped or killed. Without the watch cache the checks over etcd
//! have one server.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on panics, and says where"
)]

mod client;
mod client_certificates;
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
pub use client_certificates::{ClientAuthority, ClientCertificate};
pub use client_program::{RestartableServer, run_client};
pub use cluster::{Backend, Cluster, StoreOfTest};
pub use command::stdout;
pub use kubectl::{Kubectl, Output};
pub use progress::Progress;
pub use server::{Server, build, has_replicas, is_cached, repository};
