//! Real kubectl, three releases, against wardle-server: every script must produce its committed transcript.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on panics, and says where"
)]

use apiloom_tests::{Kubectl, Server, etcd::Etcd, is_cached, repository, transcript};

/// The servers of a script.
struct Setup {
    /// Commands use each in turn.
    servers: Vec<Server>,
    /// The store of the servers; dropped after them.
    _etcd: Option<Etcd>,
}

/// Runs a script with some releases, in order of age. Those who test other settings of the servers need only the newest:
/// what the server does with them does not depend on the release.
fn check(name: &str, releases: &[&str], setup: impl Fn() -> Setup) {
    let dir = repository().join("tests/kubectl");
    let script = std::fs::read_to_string(dir.join(format!("{name}.script"))).unwrap();
    let first = if is_cached() { 0 } else { releases.len() - 1 };
    for release in &releases[first..] {
        let Setup { servers, _etcd } = setup();
        let kubeconfigs: Vec<_> = servers.iter().map(Server::kubeconfig).collect();
        let text = transcript::run(&script, &Kubectl::in_turn(release, &kubeconfigs));
        transcript::check(&dir.join(format!("{name}.{release}.txt")), &text);
    }
}

fn embedded() -> Setup {
    Setup {
        servers: vec![Server::start(&[])],
        _etcd: None,
    }
}

/// Servers over an etcd, with one release of kubectl: all releases run the same scripts over the embedded store, and what they send
/// does not depend on the store.
#[cfg(feature = "etcd")]
fn check_over_etcd(name: &str, kubectl: &str, etcd: &str, servers: usize) {
    check(name, &[kubectl], || {
        let etcd = Etcd::start(etcd);
        let server = |_| Server::start(&["--etcd-servers", &etcd.url()]);
        Setup {
            servers: (0..servers).map(server).collect(),
            _etcd: Some(etcd),
        }
    });
}

/// One server: the oldest kubectl and the oldest etcd.
#[cfg(feature = "etcd")]
fn check_with_one_server(name: &str) {
    let ([kubectl, ..], [etcd, ..]) = (Kubectl::RELEASES, Etcd::RELEASES);
    check_over_etcd(name, kubectl, etcd, 1);
}

/// Two servers of one store: the newest of both.
#[cfg(feature = "etcd")]
fn check_with_two_servers(name: &str) {
    let ([.., kubectl], [.., etcd]) = (Kubectl::RELEASES, Etcd::RELEASES);
    check_over_etcd(name, kubectl, etcd, 2);
}

macro_rules! scripts {
    ($($name:ident)*) => {
        $(#[test]
        fn $name() {
            check(stringify!($name), &Kubectl::RELEASES, embedded);
        })*

        #[cfg(feature = "etcd")]
        mod etcd {
            $(#[test]
            fn $name() {
                super::check_with_one_server(stringify!($name));
            })*
        }

        #[cfg(feature = "etcd")]
        mod two_replicas {
            $(#[test]
            fn $name() {
                super::check_with_two_servers(stringify!($name));
            })*
        }

        #[test]
        fn every_script_is_run() {
            let mut found: Vec<String> = std::fs::read_dir(repository().join("tests/kubectl"))
                .unwrap()
                .filter_map(|entry| entry.unwrap().file_name().to_str()?.strip_suffix(".script").map(str::to_owned))
                .collect();
            found.sort();
            let mut run = vec![$(stringify!($name)),*];
            run.sort_unstable();
            assert_eq!(found, run);
        }
    };
}

scripts! {
    discovery explain objects output selectors watching changes bad_input deletion garbage server_side_apply built_in custom made_again
}
