//! The delay of one process, which its environment may set: each test runs this program again.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::process::Command;

use apiloom_allocator::{keep_briefly, purge_delay};

#[global_allocator]
static ALLOCATOR: apiloom_allocator::MiMalloc = apiloom_allocator::MiMalloc;

/// What the delay is in a process, before and after it is made short.
fn delays(variables: &[(&str, &str)]) -> String {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "says_its_delays", "--nocapture"])
        .env_remove("MIMALLOC_PURGE_DELAY")
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let line = text.lines().find_map(|line| line.split_once("delays: "));
    line.unwrap_or_else(|| panic!("{text}")).1.to_owned()
}

#[test]
fn says_its_delays() {
    let before = purge_delay();
    keep_briefly();
    println!("delays: {before}, {}", purge_delay());
}

#[test]
fn memory_is_kept_briefly() {
    assert_eq!(delays(&[]), "1000, 10");
}

// The number of the option is not in the bindings: this is how the name of the variable and the number are known to be one.
#[test]
fn the_environment_has_the_last_word() {
    for delay in ["77", "1000"] {
        let variable = ("MIMALLOC_PURGE_DELAY", delay);
        assert_eq!(delays(&[variable]), format!("{delay}, {delay}"));
    }
}
