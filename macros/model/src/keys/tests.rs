//! The tables of keys in the documentation have the keys that the parser knows, and the advice for markers names no others.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::*;

/// The keys of these targets are in a page of the documentation.
const PAGES: [(&str, &[Target]); 3] = [
    (
        "resource.md",
        &[
            Resource,
            Column,
            Verbs,
            Subresource,
            Connect,
            Scale,
            Deletion,
            Lifecycle,
            Method,
            Index,
            ProtoKind,
        ],
    ),
    (
        "api.md",
        &[
            Struct,
            Enum,
            Newtype,
            Field,
            Variant,
            Each,
            Keys,
            Bounds,
            Patch,
            Cel,
            Union,
            Convert,
            FieldConvert,
            ProtoType,
            ProtoField,
        ],
    ),
    ("group.md", &[Group]),
];

fn page(name: &str) -> String {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../runtime/src/docs");
    fs::read_to_string(docs.join(name)).expect("a page of the documentation")
}

/// The words in the code of a text, but for those in quotes.
fn words(text: &str) -> BTreeSet<&str> {
    let code = text.split('`').skip(1).step_by(2);
    let unquoted = code.flat_map(|code| code.split('"').step_by(2));
    let words =
        unquoted.flat_map(|code| code.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')));
    words.filter(|word| !word.is_empty()).collect()
}

/// The keys that the cells at the beginning of rows name.
fn keys_of_table(text: &str) -> Vec<&str> {
    let rows = text.lines().filter(|line| line.starts_with("| `"));
    let cells = rows.filter_map(|row| row.split(" | ").next());
    let code = cells.flat_map(|cell| cell.split('`').skip(1).step_by(2));
    code.map(|code| code.split(['(', ' ']).next().unwrap_or(code))
        .collect()
}

#[test]
fn every_key_is_in_the_documentation() {
    for (name, targets) in PAGES {
        let text = page(name);
        let known = words(&text);
        let missing: BTreeSet<&str> = targets
            .iter()
            .flat_map(|target| keys_at(*target))
            .filter(|key| !known.contains(key.name))
            .map(|key| key.name)
            .collect();
        assert_eq!(missing, BTreeSet::new(), "{name}");
    }
}

#[test]
fn the_table_of_a_kind_has_its_keys_and_no_others() {
    let text = page("resource.md");
    let rows = keys_of_table(&text);
    let missing: Vec<&str> = keys_at(Resource)
        .map(|key| key.name)
        .filter(|key| !rows.contains(key))
        .collect();
    assert_eq!(missing, [""; 0]);
    for row in rows {
        assert!(
            keys_at(Resource).any(|key| key.name == row),
            "{row} is no key of a kind"
        );
    }
}

/// The position of the arguments of a key.
fn below(target: Target, key: &str) -> Option<Target> {
    Some(match (key, target) {
        ("len" | "bytes" | "items" | "props", _) => Bounds,
        ("patch", _) => Patch,
        ("union", _) => Union,
        ("cel", _) => Cel,
        ("each", _) => Each,
        ("keys", _) => Keys,
        ("convert", Field) => FieldConvert,
        ("convert", _) => Convert,
        ("proto", Field) => ProtoField,
        ("verbs", _) => Verbs,
        ("printcolumn", _) => Column,
        ("lifecycle", _) => Lifecycle,
        ("scale", _) => Scale,
        _ => return None,
    })
}

/// Checks that a list of keys, as advice spells them, has only keys of a target. What stands for the user's own is `..`.
fn check(keys: &str, target: Target) {
    let mut depth = 0;
    let parts = keys.split(|c| {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        c == ',' && depth == 0
    });
    for part in parts
        .map(str::trim)
        .filter(|part| !matches!(*part, "" | ".."))
    {
        let name = part.split(['(', ' ']).next().unwrap_or(part);
        assert!(
            keys_at(target).any(|key| key.name == name),
            "`{name}` of {keys} is no key of {}",
            target.shown()
        );
        let inner = part
            .strip_prefix(name)
            .and_then(|rest| rest.strip_prefix('(')?.strip_suffix(')'));
        if let (Some(inner), Some(target)) = (
            inner.filter(|inner| !inner.starts_with('"')),
            below(target, name),
        ) {
            check(inner, target);
        }
    }
}

/// Checks what an advice tells to write.
fn check_advice(help: &str) {
    let (on_type, on_field) = (help.contains("on the type"), !help.contains("on the type"));
    for (begin, target) in [
        ("`#[api(", if on_type { Struct } else { Field }),
        ("`#[apiloom::resource(", Resource),
    ] {
        for rest in help.split(begin).skip(1) {
            let keys = rest.split(")]`").next().unwrap_or(rest);
            let is_of_type = target == Field && on_field && keys.starts_with("convert(peer");
            check(keys, if is_of_type { Struct } else { target });
        }
    }
    let in_resource = help
        .split(" in `#[apiloom::resource")
        .next()
        .filter(|before| before.len() < help.len());
    for keys in in_resource
        .into_iter()
        .flat_map(|before| before.split('`').skip(1).step_by(2))
    {
        check(keys, Resource);
    }
}

#[test]
fn advice_for_markers_names_keys_of_today() {
    let mut count = 0;
    for name in markers::names() {
        for prefix in [
            "+kubebuilder:",
            "+kubebuilder:validation:",
            "+k8s:",
            "+kubebuilder:validation:items:",
        ] {
            for value in [
                "",
                "=1",
                "=retainKeys",
                "=someName",
                "=k8s-label-key",
                "=date-time",
                "=\"a b\"",
            ] {
                let line = format!("{prefix}{name}{value}");
                let marker = markers::of_comment(&line).expect(&line);
                let is_told = marker.help != "nothing replaces it yet";
                assert!(is_told || prefix.ends_with("items:"), "{line}");
                check_advice(&marker.help);
                count += 1;
            }
        }
    }
    assert!(count > 1000, "{count}");
}

#[test]
#[should_panic(expected = "`limits` of limits = 3 is no key of #[api] on a field")]
fn advice_with_another_key_is_seen() {
    check_advice("write `#[api(limits = 3)]` on the field");
}
