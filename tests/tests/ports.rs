//! Packages written from the definitions of foreign APIs (`tests/ports`): generated, built, served, and driven with real
//! kubectl of three releases. `tests/all` checks that their generated files are fresh.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on panics, and says where"
)]

#[path = "ports/upstream.rs"]
mod upstream;

use apiloom_tests::{Kubectl, Server, build, repository, transcript};

fn check(package: &str, binary: &str) {
    let dir = repository().join("tests/ports").join(package);
    let script = std::fs::read_to_string(dir.join("kubectl.script")).unwrap();
    for release in Kubectl::RELEASES {
        let server = Server::start_binary(&build(binary), &[]);
        let text = transcript::run(&script, &Kubectl::new(release, server.kubeconfig()));
        transcript::check(&dir.join(format!("kubectl.{release}.txt")), &text);
    }
}

#[test]
fn certificate() {
    upstream::check("certificate");
    check("certificate", "certificate-kinds-server");
}

#[test]
fn core() {
    check("core", "core-kinds-server");
}

#[test]
fn balancer() {
    check("balancer", "balancer-kinds-server");
}

#[test]
fn cronjob() {
    upstream::check("cronjob");
    check("cronjob", "cronjob-kinds-server");
}

#[test]
fn machine() {
    check("machine", "machine-kinds-server");
}

#[test]
fn route() {
    upstream::check("route");
    check("route", "route-kinds-server");
}

#[test]
fn shapes() {
    check("shapes", "shapes-kinds-server");
}

#[test]
fn workload() {
    check("workload", "workload-kinds-server");
}

#[test]
fn every_port_is_driven() {
    let mut found: Vec<String> = std::fs::read_dir(repository().join("tests/ports"))
        .unwrap()
        .filter_map(|entry| entry.unwrap().file_name().into_string().ok())
        .collect();
    found.sort();
    assert_eq!(
        found,
        [
            "balancer",
            "certificate",
            "core",
            "cronjob",
            "machine",
            "route",
            "shapes",
            "workload"
        ]
    );
}
