//! Which checks have two servers over one etcd if `APILOOM_TEST_REPLICAS` is in the environment: clients write to the first,
//! and read and watch at the second.

use apiloom_tests::has_replicas;

use crate::Backend;

/// Checks and modules that have one server also then, and why.
#[cfg(feature = "etcd")]
const ONE_SERVER: [(&str, &str); 3] = [
    (
        "aggregation",
        "its servers are in the process of the test, one of them in front of others",
    ),
    (
        "c_046_a_server_that_stops_is_not_ready",
        "the server that is asked to stop is the one that is read",
    ),
    (
        "c_168_requests_in_flight_are_answered_when_the_server_stops",
        "the server that is asked to stop is the one that is read",
    ),
];

/// The embedded store of a check, which a second server cannot use.
pub(crate) fn embedded() -> Backend {
    assert!(
        !has_replicas(),
        "an embedded store has one server: run `etcd::` only"
    );
    Backend::Embedded
}

/// The etcd of the check with this path.
#[cfg(feature = "etcd")]
pub(crate) fn etcd(check: &str) -> Backend {
    let has_one = |part| ONE_SERVER.iter().any(|(name, _)| *name == part);
    if has_replicas() && !check.split("::").any(has_one) {
        Backend::Replicas
    } else {
        Backend::Etcd
    }
}

/// A name that no test has any more would say that a check has one server, when none is meant.
#[cfg(feature = "etcd")]
#[test]
fn checks_with_one_server_exist() {
    let tests = std::env::current_exe().unwrap();
    let output = std::process::Command::new(tests).arg("--list").output();
    let listed = String::from_utf8(output.unwrap().stdout).unwrap();
    for (name, _) in ONE_SERVER {
        let is_etcd = |line: &&str| line.contains("etcd::");
        let tests = listed.lines().filter(is_etcd);
        let mut parts = tests.flat_map(|line| line.trim_end_matches(": test").split("::"));
        assert!(parts.any(|part| part == name), "no check is named {name}");
    }
}
