//! The same kinds on two servers: compiled into one, and described to the other by the CustomResourceDefinitions that
//! `apiloom generate` writes for them. The requests of a script go to both, and the answers must be equal byte by byte, apart
//! from what `differences.rs` lists.
//!
//! `NAME.differences.txt` has both answers to each request that is marked with a difference; `UPDATE=1` writes it.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on panics, and says where"
)]

mod answers;
mod differences;
mod json;
mod script;

use std::fmt::Write as _;

use apiloom_tests::{Backend, Cluster, repository, transcript};

use crate::answers::{Shown, Side};
use crate::differences::{DIFFERENCES, Difference};
use crate::script::{Request, Script};

/// Makes of each script two tests: `embedded::NAME` and `etcd::NAME`.
macro_rules! scripts {
    ($($name:ident: $binary:literal, $package:literal;)*) => {
        mod embedded {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                super::check(super::Backend::Embedded, stringify!($name), $binary, $package).await;
            })*
        }
        #[cfg(feature = "etcd")]
        mod etcd {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                super::check(super::Backend::Etcd, stringify!($name), $binary, $package).await;
            })*
        }

        const SCRIPTS: &[&str] = &[$(stringify!($name)),*];
    };
}

scripts! {
    flunders: "wardle-server", "examples/wardle";
    fischers: "wardle-server", "examples/wardle";
    workloads: "workload-kinds-server", "tests/ports/workload";
    balancers: "balancer-kinds-server", "tests/ports/balancer";
}

fn read(name: &str) -> Script {
    let path = repository().join(format!("tests/tests/parity/{name}.requests"));
    Script::parse(&std::fs::read_to_string(path).unwrap())
}

async fn check(on: Backend, name: &str, binary: &'static str, package: &str) {
    let definitions = repository().join(package).join("generated/crds");
    let compiled = Cluster::start_binary(on, binary);
    let custom = Cluster::start_binary_with(
        on,
        "apiloom-serve",
        &["--crds", definitions.to_str().unwrap()],
    );
    let script = read(name);
    let mut sides = [
        Side::compiled(compiled.client()),
        Side::custom(custom.client()),
    ];
    let (mut unequal, mut golden) = (String::new(), String::new());
    let mut count = 0;
    for request in &script.requests {
        let [compiled, custom] = &mut sides;
        let (first, second) = (
            compiled.ask(&script, request).await,
            custom.ask(&script, request).await,
        );
        let is_equal = first == second;
        match &request.difference {
            None if is_equal => count += 1,
            None => tell(&mut unequal, request, &first, &second),
            Some(name) => {
                assert!(!is_equal, "{request}: {name} makes no difference:\n{first}");
                let _ = writeln!(golden, "{request}\ndifference: {name}");
                let _ = writeln!(golden, "compiled: {first}\ncustom: {second}\n");
            }
        }
    }
    assert!(
        unequal.is_empty(),
        "{name}: {count} answers are equal, but:\n{unequal}"
    );
    for difference in script.all_through() {
        let found = sides.iter().any(|side| side.has_used(difference));
        assert!(found, "{name}: {difference} makes no difference");
    }
    // Both stores give the same answers.
    let file = repository().join(format!("tests/tests/parity/{name}.differences.txt"));
    transcript::check(&file, &golden);
}

fn tell(text: &mut String, request: &Request, compiled: &Shown, custom: &Shown) {
    let _ = writeln!(text, "{request}\ncompiled: {compiled}\ncustom: {custom}\n");
}

/// Differences that no request has any more are removed from the list.
#[test]
fn every_difference_is_used_and_listed() {
    let scripts: Vec<Script> = SCRIPTS.iter().map(|name| read(name)).collect();
    let used = |difference: &Difference| {
        let mut scripts = scripts.iter();
        scripts.any(|script| {
            let mut requests = script.requests.iter();
            script.all_through().any(|name| name == difference.name)
                || requests.any(|request| request.difference.as_deref() == Some(difference.name))
        })
    };
    for difference in DIFFERENCES {
        assert!(used(difference), "no request shows {}", difference.name);
    }
    for script in &scripts {
        for name in script
            .requests
            .iter()
            .filter_map(|one| one.difference.as_deref())
        {
            assert!(
                DIFFERENCES.iter().any(|one| one.name == name),
                "{name} is not listed"
            );
        }
    }
}
