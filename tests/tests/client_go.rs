//! A program of client-go (`tests/client-go`), built with what `tests/tools` obtains, against a server of core kinds and one of
//! the built-in kinds.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on panics, and says where"
)]

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use apiloom_tests::{Server, build, repository};

/// Builds the program once; Go's own cache makes this fast after the first time.
fn program() -> &'static PathBuf {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(build_program)
}

fn build_program() -> PathBuf {
    let tools = repository().join("target/tools/client-go");
    let go = tools.join("usr/lib/go-1.24");
    assert!(go.exists(), "{} is missing: run tests/tools", go.display());
    let folder = repository().join("target/tests");
    std::fs::create_dir_all(&folder).unwrap();
    let binary = folder.join("client-go");
    let output = Command::new(go.join("bin/go"))
        // What compiles fastest: without optimizations and debugging information, and with few collections of garbage.
        .args([
            "build",
            "-gcflags=all=-N -l -dwarf=false",
            "-ldflags=-s -w",
            "-o",
        ])
        .arg(&binary)
        .args(
            ["main.go", "built_in.go"].map(|file| repository().join("tests/client-go").join(file)),
        )
        .env_clear()
        .env("GOROOT", &go)
        .env("GOPATH", tools.join("usr/share/gocode"))
        .env("GOCACHE", tools.join("cache"))
        .envs([
            ("GO111MODULE", "off"),
            ("GOENV", "off"),
            ("GOTOOLCHAIN", "local"),
            ("CGO_ENABLED", "0"),
            ("GOGC", "400"),
        ])
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "go build failed:\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    binary
}

/// Runs the checks of what a server serves. Reflectors list and watch, or watch with initial events instead of the list.
fn check(server: &Server, served: &str) {
    for watch_list in ["false", "true"] {
        run(server, served, watch_list);
    }
}

fn run(server: &Server, served: &str, watch_list: &str) {
    let output = Command::new(program())
        .arg(server.kubeconfig())
        .arg(served)
        .env("KUBE_FEATURE_WatchListClient", watch_list)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "with WatchListClient={watch_list}:\n{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn client_go_works_with_core_kinds() {
    let server = Server::start_binary(&build("core-kinds-server"), &[]);
    check(&server, "core-kinds");
}

#[test]
fn client_go_works_with_built_in_kinds_in_protobuf() {
    check(&Server::start(&[]), "built-in");
}

#[test]
fn client_go_reads_documents_of_openapi_in_protobuf() {
    // Kinds with every keyword of schemas.
    for binary in ["shapes-kinds-server", "certificate-kinds-server"] {
        run(
            &Server::start_binary(&build(binary), &[]),
            "schemas",
            "false",
        );
    }
}
