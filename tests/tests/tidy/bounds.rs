//! The table of what a client can make the server keep: each bound stands in the sources as the table says, and a test tries it.

use std::fs;

use apiloom_tests::repository;

const TABLE: &str = include_str!("bounds.txt");

/// The lines that are wrong.
fn wrong_lines(table: &str) -> Vec<String> {
    let lines = table.lines().filter(|line| !line.starts_with('#'));
    lines
        .filter_map(|line| wrong(line).map(|why| format!("{line}: {why}")))
        .collect()
}

fn wrong(line: &str) -> Option<String> {
    let [_, bound_file, bound, test_file, test] = line.split(" | ").collect::<Vec<_>>()[..] else {
        return Some("it has not five parts".to_owned());
    };
    let read = |file: &str| fs::read_to_string(repository().join(file)).unwrap_or_default();
    if !read(bound_file).contains(bound) {
        return Some("the bound is not there".to_owned());
    }
    // A test has its attribute, or one that makes several, on a line before it.
    let text = read(test_file);
    let name = format!("fn {test}()");
    let mut before = text.split(&name);
    let is_test = before.next().is_some_and(|before| {
        let attributes = before.rsplit('}').next().unwrap_or_default();
        attributes.contains("#[test]") || attributes.contains("#[tokio::test")
    });
    (!is_test || before.next().is_none()).then(|| "the test is not there".to_owned())
}

#[test]
fn what_clients_can_make_the_server_keep_has_a_bound_and_a_test() {
    assert_eq!(wrong_lines(TABLE), Vec::<String>::new());
}

#[test]
fn a_bound_or_a_test_that_is_gone_is_found() {
    let line = TABLE.lines().nth(2).unwrap();
    for (from, to) in [
        ("20_000", "30_000"),
        ("silent_", "quiet_"),
        ("listener.rs", "listeners.rs"),
        (" | const", " const"),
    ] {
        assert_eq!(wrong_lines(&line.replace(from, to)).len(), 1, "{from}");
    }
}
