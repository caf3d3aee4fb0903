//! A program of client-go (`tests/client-go`), built with what `tests/tools` obtains, against a server of core kinds and one of
//! the built-in kinds.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on panics, and says where"
)]

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use apiloom_tests::{Server, build, repository, stdout};

/// Builds the program once; Go's own cache makes this fast after the first time.
fn program() -> &'static PathBuf {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| build_go("client-go", &["main.go", "built_in.go", "round_trips.go"]))
}

/// Builds the files of a folder of `tests`.
fn build_go(name: &str, files: &[&str]) -> PathBuf {
    let tools = repository().join("target/tools/client-go");
    let go = tools.join("usr/lib/go-1.24");
    assert!(go.exists(), "{} is missing: run tests/tools", go.display());
    let folder = repository().join("target/tests");
    std::fs::create_dir_all(&folder).unwrap();
    let binary = folder.join(name);
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
            files
                .iter()
                .map(|file| repository().join("tests").join(name).join(file)),
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

/// What is kept of the certificates is what Go says of them now. Their servers are tried by our client in `client/certificates_of_go.rs`.
#[test]
fn go_says_of_certificates_what_is_kept() {
    let table = repository().join("tests/certificates/table.jsonl");
    let mut program = Command::new(build_go("certificates", &["main.go"]));
    let found = stdout(program.stdin(std::fs::File::open(&table).unwrap()));
    let kept = std::fs::read_to_string(&table).unwrap();
    assert!(kept.lines().count() > 90);
    for (found, kept) in found.lines().zip(kept.lines()) {
        assert_eq!(found, kept);
    }
    assert_eq!(found.len(), kept.len());
}

/// Kubernetes' own clients of definitions, of the release of the oracle, which send Protobuf unless they are told otherwise. Where
/// Debian's packages could not be had, the contract's checks of Protobuf stand alone.
#[test]
fn generated_clients_of_definitions_and_apiservices_work_in_protobuf() {
    let program = repository().join("target/tools/oracle-1.36/definitions");
    if !program.exists() {
        return;
    }
    let server = Server::start(&[]);
    let output = Command::new(program)
        .arg(server.kubeconfig())
        .output()
        .unwrap();
    let text = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    assert!(output.status.success(), "{}", text.concat());
    assert_eq!(
        text[0]
            .lines()
            .filter(|line| line.ends_with(": ok"))
            .count(),
        8,
        "{}",
        text[0]
    );
}
