//! `tests/failed-tests` reads which tests failed from the output of cargo, so that `tests/all` runs them once more.

use std::io::Write as _;
use std::process::{Command, Stdio};

/// Returns what the script lists, and whether it could name every failure.
fn failed_tests(output: &str) -> (String, bool) {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/failed-tests");
    let mut child = Command::new(script)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the script starts");
    child
        .stdin
        .take()
        .expect("a pipe")
        .write_all(output.as_bytes())
        .expect("the script reads");
    let ended = child.wait_with_output().expect("the script ends");
    (
        String::from_utf8(ended.stdout).expect("text"),
        ended.status.success(),
    )
}

const TWO_OF_THREE: &str = "
running 3 tests
. 1/3
m::two --- FAILED
failures:

---- m::two stdout ----
failures:
    a line of the test itself

failures:
    m::two
    one

test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.06s

error: test failed, to rerun pass `-p apiloom-tests --test contract`
";

const DOC: &str = "
failures:
    src/lib.rs - guide (line 2)

test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.05s

error: doctest failed, to rerun pass `-p apiloom --doc`
error: 2 targets failed:
    `-p apiloom-tests --test contract`
    `-p apiloom --doc`
";

#[test]
fn each_failed_test_is_listed_with_its_target() {
    let (listed, named) = failed_tests(&format!("{TWO_OF_THREE}{DOC}"));
    assert_eq!(
        listed,
        "--test contract\tm::two\n--test contract\tone\n--doc\tsrc/lib.rs - guide (line 2)\n"
    );
    assert!(named);
}

#[test]
fn a_failure_without_a_test_is_not_run_again() {
    let crashed =
        "running 1 test\nerror: test failed, to rerun pass `-p apiloom-tests --test kill`\n";
    assert!(!failed_tests(&format!("{TWO_OF_THREE}{crashed}")).1);
    let not_compiled = "error[E0425]: cannot find value `x` in this scope\nerror: could not compile `apiloom-tests` (lib)\n";
    assert!(!failed_tests(not_compiled).1);
    let lost = TWO_OF_THREE.replace("    one\n", "");
    assert!(!failed_tests(&lost).1);
}
