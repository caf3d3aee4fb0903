//! Clients in other languages (`tests/clients`), with the packages that `tests/tools` obtains, against wardle-server.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on panics, and says where"
)]

use std::path::PathBuf;
use std::process::Command;

use apiloom_tests::{repository, run_client};

/// A folder of `target/tools`.
fn tool(name: &str) -> PathBuf {
    let path = repository().join("target/tools").join(name);
    assert!(
        path.exists(),
        "{} is missing: run tests/tools",
        path.display()
    );
    path
}

fn python(program: &str) {
    run_client(
        Command::new("python3")
            .arg("-B")
            .arg(repository().join("tests/clients/python").join(program))
            .env("PYTHONPATH", tool("python")),
    );
}

#[test]
fn python_kubernetes() {
    python("kubernetes_client.py");
}

#[test]
fn python_kr8s() {
    python("kr8s_client.py");
}

#[test]
fn javascript() {
    run_client(
        Command::new(tool("node/bin/node"))
            .arg(repository().join("tests/clients/javascript/client.js"))
            .env("MODULES", tool("javascript")),
    );
}
