//! The names of a new package: checked, or made of others.

use apiloom_meta::names::dns_subdomain;
use apiloom_model::names::is_identifier;

/// Maximum length of a package's name, which is a label of its group.
const MAX_NAME: usize = 63;

/// Names that would be those of other crates in the package, or of its modules.
const TAKEN: [&str; 10] = [
    "alloc",
    "apiloom",
    "controller",
    "core",
    "generated",
    "proc-macro",
    "serde",
    "std",
    "test",
    "tokio",
];

/// Those that are taken in packages with types for kube-rs.
const TAKEN_WITH_KUBE: [&str; 2] = ["k8s-openapi", "kube"];

/// Types that the files of a new package name, and those of every Rust file.
const USED: [&str; 29] = [
    "Action",
    "Api",
    "Box",
    "CancellationToken",
    "Client",
    "Clientset",
    "Context",
    "Control",
    "Controller",
    "Duration",
    "Err",
    "ExitCode",
    "Fault",
    "InformerFactory",
    "Informers",
    "Lister",
    "None",
    "ObjectKey",
    "ObjectMeta",
    "Ok",
    "Option",
    "PostParams",
    "Request",
    "Result",
    "Some",
    "String",
    "SyncErrors",
    "TestServer",
    "Verb",
];

/// Checks that a name is good for a package, a group and a server.
///
/// # Errors
/// The reason, with a name that would do.
pub(crate) fn check_package(name: &str, with_kube: bool) -> Result<(), String> {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let is_good = name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.ends_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit())
        && name.chars().all(is_plain)
        && name.len() <= MAX_NAME;
    if !is_good {
        return Err(format!(
            "`{name}` cannot be the name of a package: it must have lower case letters, digits and `-`, begin with a \
             letter, not end with `-`, and have at most {MAX_NAME} characters\n  help: {}",
            suggestion(name)
        ));
    }
    let is_keyword = !is_identifier(&name.replace('-', "_"));
    let is_taken = TAKEN.contains(&name)
        || name.starts_with("apiloom-")
        || (with_kube && TAKEN_WITH_KUBE.contains(&name));
    if is_keyword || is_taken {
        let what = if is_keyword {
            "a keyword of Rust"
        } else {
            "the name of another crate, or of a module of the package"
        };
        return Err(format!(
            "`{name}` cannot be the name of a package: it is {what}\n  help: choose another one with --name, such as `{name}-api`"
        ));
    }
    Ok(())
}

/// How to go on after a bad name.
fn suggestion(name: &str) -> String {
    let mut near = String::new();
    for c in name.chars() {
        match c.to_ascii_lowercase() {
            c if c.is_ascii_alphanumeric() => near.push(c),
            _ if near.ends_with('-') => {}
            _ => near.push('-'),
        }
    }
    let near = near
        .trim_start_matches(|c: char| !c.is_ascii_lowercase())
        .trim_end_matches('-');
    if near.is_empty() || near.len() > MAX_NAME {
        "give the name with --name".to_owned()
    } else {
        format!("--name {near}")
    }
}

/// Checks the name of an API group.
///
/// # Errors
/// The reason.
pub(crate) fn check_group(group: &str) -> Result<(), String> {
    let reasons = dns_subdomain(group);
    let reason = match reasons.first() {
        Some(reason) => reason.clone(),
        None if !group.contains('.') => "it must be a domain, with a dot".to_owned(),
        None => return Ok(()),
    };
    Err(format!(
        "`{group}` cannot be the name of an API group: {reason}\n  help: groups are domains that you own, such as `--group zoo.example.com`"
    ))
}

/// The kind of a package: `zoo-keeper` is `ZooKeeper`.
pub(super) fn kind_of(name: &str) -> String {
    name.split('-')
        .map(|word| {
            let mut chars = word.chars();
            let first = chars.next().map(|c| c.to_ascii_uppercase());
            first.into_iter().chain(chars).collect::<String>()
        })
        .collect()
}

/// Checks the name of a kind.
///
/// # Errors
/// The reason.
pub(crate) fn check_kind(kind: &str) -> Result<(), String> {
    let is_good = kind.starts_with(|c: char| c.is_ascii_uppercase())
        && kind.chars().all(|c| c.is_ascii_alphanumeric())
        && kind.len() <= MAX_NAME
        && is_identifier(kind);
    if !is_good {
        return Err(format!(
            "`{kind}` cannot be the name of a kind: it must begin with an upper case letter, have only letters and \
             digits, and at most {MAX_NAME} characters\n  help: name the kind as in `--kind Animal`"
        ));
    }
    if USED.contains(&kind) || kind.ends_with("Error") {
        return Err(format!(
            "`{kind}` cannot be the name of the kind: the files of the package use this name for another type\n  \
             help: name the kind as in `--kind {}Set`",
            kind.trim_end_matches("Error")
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_follow_from_names() {
        for (name, kind) in [("zoo", "Zoo"), ("zoo-keeper", "ZooKeeper"), ("a1-b", "A1B")] {
            check_package(name, false).expect(name);
            assert_eq!(kind_of(name), kind);
            check_kind(kind).expect(kind);
        }
    }

    #[track_caller]
    fn check(result: &Result<(), String>, part: &str) {
        let error = result.as_ref().expect_err(part);
        assert!(error.contains(part), "{error}");
    }

    #[test]
    fn bad_names_are_told_with_better_ones() {
        check(&check_package("My_Zoo", false), "help: --name my-zoo");
        check(&check_package("9lives", false), "help: --name lives");
        check(&check_package("", false), "help: give the name with --name");
        check(
            &check_package("-", false),
            "help: give the name with --name",
        );
        check(&check_package("zoo-", false), "help: --name zoo");
        check(&check_package("zoö", false), "help: --name zo");
        check(&check_package(&"a".repeat(64), false), "at most 63");
        check(&check_package("async", false), "a keyword of Rust");
        check(&check_package("gen", false), "such as `gen-api`");
        check(&check_package("tokio", false), "the name of another crate");
        check(
            &check_package("apiloom-meta", false),
            "the name of another crate",
        );
        check(
            &check_package("controller", false),
            "a module of the package",
        );
        check(
            &check_package("generated", false),
            "--name, such as `generated-api`",
        );
    }

    #[test]
    fn bad_kinds_and_groups_are_told() {
        check(&check_kind("animal"), "upper case letter");
        check(&check_kind("Self"), "upper case letter");
        check(&check_kind("A-B"), "upper case letter");
        check(&check_kind("Option"), "--kind OptionSet");
        check(&check_kind("TypeError"), "--kind TypeSet");
        check(&check_group("zoo"), "with a dot");
        check(&check_group("Zoo.example.com"), "lower case");
        check_group("zoo.example.com").expect("a domain");
    }
}
