//! Tests of parsing `group!`: models and errors.

use super::{Group, parse_group};
use crate::Diagnostics;
use crate::kind::Release;

fn read(source: &str) -> (Option<Group>, Vec<String>) {
    let mut diagnostics = Diagnostics::default();
    let group = parse_group(source.parse().unwrap(), &mut diagnostics);
    (
        group,
        diagnostics
            .errors()
            .iter()
            .map(ToString::to_string)
            .collect(),
    )
}

#[test]
fn a_group_has_name_versions_and_release() {
    let (group, errors) =
        read("name = \"example.com\", versions = [v1, \"v1beta1\"], release = \"1.10\"");
    let group = group.unwrap();
    assert_eq!(errors, [""; 0]);
    assert_eq!(group.name, "example.com");
    let versions: Vec<&str> = group.versions.iter().map(|v| v.value.as_str()).collect();
    assert_eq!(versions, ["v1", "v1beta1"]);
    let release = Release {
        major: 1,
        minor: 10,
    };
    assert_eq!(group.release.map(|r| r.value), Some(release));
}

#[test]
fn all_errors_are_reported_at_once() {
    let (group, errors) = read("nam = \"x\", versions = [V1, v1, v1], release = 1.2");
    assert!(group.is_none());
    let ids: Vec<&str> = errors
        .iter()
        .map(|error| &error[error.len() - 6..])
        .collect();
    assert_eq!(ids, ["[E002]", "[E016]", "[E021]", "[E007]"], "{errors:#?}");
    let (_, errors) = read("name = , versions = [3, type]");
    let ids: Vec<&str> = errors
        .iter()
        .map(|error| &error[error.len() - 6..])
        .collect();
    assert_eq!(ids, ["[E001]", "[E062]"], "{errors:#?}");
    let (_, errors) = read("name = \"x\", versions = [3]");
    assert_eq!(errors, ["`versions` takes names [E007]"]);
}

#[test]
fn a_group_says_what_is_not_known_of_it() {
    for (keys, known) in [
        ("versions = [v1], release = \"1.0\"", (true, true)),
        ("versions = [v1]", (true, true)),
        ("versions = [v1], release = 1", (true, false)),
        ("versions = [v1], relase = \"1.0\"", (true, false)),
        ("versions = [v1, 2]", (false, true)),
    ] {
        let (group, _) = read(&format!("name = \"x\", {keys}"));
        let group = group.unwrap();
        let found = (group.versions_are_known, group.release_is_known);
        assert_eq!(found, known, "{keys}");
    }
}
