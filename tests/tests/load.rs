//! Smoke test of the load generator: every scenario runs against a server and against the baseline. Speed is not
//! asserted.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on panics, and says where"
)]

use std::process::Command;

use apiloom_tests::{Server, build};
use serde_json::Value;

const SCENARIOS: [&str; 13] = [
    "create",
    "get",
    "update",
    "patch",
    "apply",
    "apply-change",
    "list",
    "consistent-list",
    "pages",
    "table",
    "watch",
    "selective-watch",
    "delete",
];

#[test]
fn every_scenario_runs_against_a_server_and_the_floor() {
    for (http, managed) in [("1", "none"), ("2", "two")] {
        let server = Server::start(&["--storage-backend=memory"]);
        let json = server.kubeconfig().with_file_name("figures.json");
        let output = Command::new(build("apiloom-load"))
            .arg("run")
            .args(SCENARIOS)
            .args(["--floor", "--seconds=0", "--objects=20", "--concurrency=4"])
            .args([
                "--watchers=4",
                "--updates=5",
                "--selective-watchers=10",
                "--http",
                http,
                "--managed",
                managed,
            ])
            .arg(format!("--kubeconfig={}", server.kubeconfig().display()))
            .arg(format!("--json={}", json.display()))
            .arg(format!("--pid={}", server.pid()))
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "HTTP/{http}: {said}");
        let rows: Vec<Value> = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
        let names: Vec<&str> = rows
            .iter()
            .map(|row| row["scenario"].as_str().unwrap())
            .collect();
        assert_eq!(names, SCENARIOS);
        let watched = &rows[10];
        assert_eq!(watched["count"], 20, "4 watchers saw 5 updates each");
        assert!(rows.iter().all(|row| row["count"].as_u64().unwrap() >= 4));
        assert!(
            rows.iter()
                .all(|row| row["resident_mib"].as_f64().unwrap() > 1.0)
        );
    }
}
