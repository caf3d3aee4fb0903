//! The settings of one process, which its environment may set: each test runs this program again.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::process::Command;

use apiloom_allocator::{FURTHER_ARENAS, LARGEST_IN_ARENA, PURGE_DELAY, Setting, keep_little};

const VARIABLES: [&str; 3] = [
    "MIMALLOC_PURGE_DELAY",
    "MIMALLOC_ARENA_MAX_OBJECT_SIZE",
    "MIMALLOC_ARENA_RESERVE",
];

/// What the settings are in a process with these variables, before and after the allocator keeps little.
fn settings(values: &[(&str, &str)]) -> String {
    settings_after("true", values)
}

/// As [`settings`], for the process of a shell that has run a command.
fn settings_after(command_of_shell: &str, values: &[(&str, &str)]) -> String {
    let mut command = Command::new("sh");
    command
        .args(["-c", &format!("{command_of_shell} && exec \"$0\" \"$@\"")])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "says_its_settings", "--nocapture"]);
    VARIABLES.iter().for_each(|variable| {
        command.env_remove(variable);
    });
    let output = command.envs(values.iter().copied()).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let line = text.lines().find_map(|line| line.split_once("settings: "));
    line.unwrap_or_else(|| panic!("{text}")).1.to_owned()
}

#[test]
fn says_its_settings() {
    let settings = || [&PURGE_DELAY, &LARGEST_IN_ARENA, &FURTHER_ARENAS].map(Setting::get);
    let before = settings();
    keep_little();
    println!("settings: {before:?} {:?}", settings());
}

#[test]
fn little_is_kept() {
    assert_eq!(
        settings(&[]),
        "[1000, 2097152, 1048576] [10, 4096, 1048576]"
    );
}

#[test]
fn little_address_space_is_not_reserved() {
    let expected = "[1000, 2097152, 1048576] [10, 4096, 0]";
    assert_eq!(settings_after("ulimit -v 1000000", &[]), expected);
    let expected = "[1000, 2097152, 1048576] [10, 4096, 1048576]";
    assert_eq!(settings_after("ulimit -v 4000000", &[]), expected);
}

// The numbers of the options are not in the bindings: this is how the names of the variables and the numbers are known to belong together.
#[test]
fn the_environment_has_the_last_word() {
    for delay in ["77", "1000"] {
        let expected = format!("[{delay}, 2097152, 1048576] [{delay}, 4096, 1048576]");
        assert_eq!(settings(&[(VARIABLES[0], delay)]), expected);
    }
    for (size, kib) in [("77KiB", 77), ("2GiB", 2 * 1024 * 1024)] {
        let expected = format!("[1000, {kib}, 1048576] [10, {kib}, 1048576]");
        assert_eq!(settings(&[(VARIABLES[1], size)]), expected);
    }
    let expected = "[1000, 2097152, 65536] [10, 4096, 65536]";
    let reserve = [(VARIABLES[2], "64MiB")];
    assert_eq!(settings_after("ulimit -v 1000000", &reserve), expected);
}
