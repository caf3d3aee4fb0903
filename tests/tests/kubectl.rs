//! Real kubectl, two releases, against wardle-server: every script's transcript is the committed one.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on panics, and says where"
)]

use apiloom_tests::{Kubectl, Server, repository, transcript};

fn check(name: &str, args: &[&str]) {
    let dir = repository().join("tests/kubectl");
    let script = std::fs::read_to_string(dir.join(format!("{name}.script"))).unwrap();
    for release in Kubectl::RELEASES {
        let server = Server::start(args);
        let text = transcript::run(&script, &Kubectl::new(release, server.kubeconfig()));
        transcript::check(&dir.join(format!("{name}.{release}.txt")), &text);
    }
}

macro_rules! scripts {
    ($($name:ident)*) => {
        $(#[test]
        fn $name() {
            check(stringify!($name), &[]);
        })*

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

scripts! { discovery explain objects output selectors watching changes bad_input deletion }
