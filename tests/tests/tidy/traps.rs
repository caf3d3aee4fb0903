//! The traps of clients, 1 to 46: each has a test whose name begins with its number, `trap_07_..`, or a line in the table of
//! those that do not apply, with the reason.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::words::files;

/// Their number.
const LAST: u32 = 46;

/// The table: the number and the reason.
const TABLE: &str = "tests/traps-not-applicable.txt";

/// The numbers in the name of a test: `trap_07_..`, or `trap_41_42_..` for several.
fn numbers(name: &str) -> Vec<u32> {
    let Some(rest) = name.strip_prefix("trap_") else {
        return Vec::new();
    };
    let parts = rest.split('_');
    let parts =
        parts.take_while(|part| part.len() == 2 && part.bytes().all(|b| b.is_ascii_digit()));
    parts.filter_map(|part| part.parse().ok()).collect()
}

/// The tests of a source file whose names begin with `trap_`.
fn tests(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut is_test = false;
    for line in text.lines().map(str::trim_start) {
        if line.starts_with("#[test]") || line.starts_with("#[tokio::test") {
            is_test = true;
        } else if line.starts_with("#[ignore") {
            is_test = false;
        } else if !line.starts_with("#[") {
            let name = line
                .split("fn ")
                .nth(1)
                .and_then(|rest| rest.split('(').next());
            let name = name.filter(|name| is_test && name.starts_with("trap_"));
            found.extend(name);
            is_test &= line.starts_with("//") || line.is_empty();
        }
    }
    found
}

/// What is wrong with the tests and the table.
fn problems<'a>(names: impl Iterator<Item = &'a str>, table: &str) -> Vec<String> {
    let mut problems = Vec::new();
    let mut tested = BTreeSet::new();
    for name in names {
        let numbers = numbers(name);
        if numbers.is_empty() {
            problems.push(format!("{name} has no number of two digits"));
        }
        tested.extend(numbers);
    }
    let mut excused = BTreeMap::new();
    for line in table.lines().filter(|line| !line.starts_with('#')) {
        let (number, reason) = line.split_once(' ').unwrap_or((line, ""));
        match number.parse::<u32>() {
            Ok(number) if !reason.trim().is_empty() => {
                excused.insert(number, reason);
            }
            _ => problems.push(format!(
                "{TABLE} has a line that is no number and reason: {line:?}"
            )),
        }
    }
    for number in 1..=LAST {
        match (tested.contains(&number), excused.contains_key(&number)) {
            (false, false) => problems.push(format!(
                "trap {number} has no test, and does not stand in {TABLE}"
            )),
            (true, true) => {
                problems.push(format!("trap {number} has a test and stands in {TABLE}"));
            }
            _ => {}
        }
    }
    let known = tested.iter().chain(excused.keys());
    let unknown = known.filter(|number| !(1..=LAST).contains(*number));
    problems.extend(unknown.map(|number| format!("there is no trap {number}")));
    problems
}

#[test]
fn each_trap_has_a_test_or_a_reason() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let table = std::fs::read_to_string(root.join(TABLE)).expect("the table");
    let sources = files(&root);
    let names = sources
        .iter()
        .filter(|(path, _)| path.extension().is_some_and(|end| end == "rs"));
    let names = names.flat_map(|(_, text)| tests(text));
    let problems = problems(names, &table);
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn a_missing_trap_is_found() {
    let source = "#[test]\nfn trap_01_a() {}\n#[tokio::test(start_paused = true)]\n// Why.\n#[allow(x)]\nasync fn trap_02_03_b() {}\n#[test]\n#[ignore]\nfn trap_04_c() {}\nfn trap_05_d() {}\n#[test]\nfn trap_6_e() {}\n";
    assert_eq!(tests(source), ["trap_01_a", "trap_02_03_b", "trap_6_e"]);
    assert_eq!(numbers("trap_02_03_b"), [2, 3]);
    let all: Vec<String> = (1..=LAST)
        .map(|number| format!("trap_{number:02}_x"))
        .collect();
    let names = || all.iter().map(String::as_str);
    assert!(problems(names(), "# head\n").is_empty());
    assert!(problems(names().skip(1), "1 a reason").is_empty());
    assert_eq!(problems(names().skip(1), "").len(), 1);
    assert_eq!(problems(names(), "1 a reason").len(), 1);
    assert_eq!(problems(names(), "47 a reason").len(), 1);
    assert_eq!(problems(names(), "x").len(), 1);
    assert_eq!(problems(names().chain(["trap_7_x"]), "").len(), 1);
}
