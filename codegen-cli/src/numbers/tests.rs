//! What the lock remembers, and which changes it refuses.

use apiloom_meta::kind::{ProtoField, ProtoMessage};

use super::*;

/// The file of a package with one message of these fields.
fn files(fields: &[(u32, &str, &str)]) -> BTreeMap<String, ProtoFile> {
    let fields = fields.iter().map(|(number, field_type, name)| {
        let field = ProtoField {
            description: Vec::new(),
            field_type: (*field_type).to_owned(),
            name: (*name).to_owned(),
        };
        (*number, field)
    });
    let spec = ProtoMessage {
        fields: fields.collect(),
        ..ProtoMessage::default()
    };
    let file = ProtoFile {
        package: "com.a.v1".to_owned(),
        messages: BTreeMap::from([("Spec".to_owned(), spec)]),
        ..ProtoFile::default()
    };
    let of_kubernetes = ProtoFile {
        package: "k8s.io.x".to_owned(),
        ..file.clone()
    };
    BTreeMap::from([
        ("a.com_v1.proto".to_owned(), file),
        ("k8s.io/x/generated.proto".to_owned(), of_kubernetes),
    ])
}

const NAME: (u32, &str, &str) = (1, "optional string", "name");
const SIZE: (u32, &str, &str) = (2, "optional int32", "size");

fn first() -> Numbers {
    let numbers = Numbers::default().after(&files(&[NAME, SIZE]));
    numbers.expect("no field had a number")
}

#[test]
fn a_lock_reads_back_as_it_was_written() {
    let numbers = first();
    let text = numbers.text();
    assert_eq!(
        text.strip_prefix(HEAD),
        Some("\n[com.a.v1.Spec]\n1 = \"optional string name\"\n2 = \"optional int32 size\"\n")
    );
    assert_eq!(Numbers::parse(&text), Ok(numbers.clone()));
    assert_eq!(Numbers::parse(&text.replace('\n', "\r\n")), Ok(numbers));
}

#[test]
fn a_removed_field_keeps_its_number() {
    let numbers = first().after(&files(&[NAME])).expect("a removal");
    assert!(
        numbers
            .text()
            .contains("2 = \"removed optional int32 size\"")
    );
    assert_eq!(Numbers::parse(&numbers.text()), Ok(numbers.clone()));
    let mut generated = files(&[NAME]);
    numbers.reserve(&mut generated);
    let spec = &generated["a.com_v1.proto"].messages["Spec"];
    assert!(spec.reserved.contains(&2) && spec.reserved_names.contains("size"));
    // The whole message, too; and it may come back.
    let none = numbers.after(&BTreeMap::new()).expect("a removal");
    assert!(none.text().contains("1 = \"removed optional string name\""));
    assert_eq!(none.after(&files(&[NAME, SIZE])), Ok(first()));
}

#[test]
fn what_would_break_clients_is_refused() {
    let removed = first().after(&files(&[NAME])).expect("a removal");
    let check = |numbers: &Numbers, fields: &[(u32, &str, &str)], expected: &str| {
        let error = numbers.after(&files(fields)).expect_err("refused");
        let expected = format!(
            "com.a.v1.Spec: {expected}\n  help: if no release has the earlier field, remove its line from apiloom.lock"
        );
        assert_eq!(error, expected);
    };
    check(
        &first(),
        &[NAME, (3, "optional int32", "size")],
        "the field `size` had the number 2, and has 3 now: write `proto = 2`",
    );
    check(
        &first(),
        &[NAME, (2, "optional int32", "count")],
        "the number 2 of the field `count` is that of `size`: write a number that no field had, such as 3",
    );
    check(
        &removed,
        &[NAME, (2, "optional int32", "count")],
        "the number 2 of the field `count` was that of `size`: write a number that no field had, such as 3",
    );
    check(
        &removed,
        &[NAME, (4, "optional int32", "size")],
        "the field `size` had the number 2, and has 4 now: write `proto = 2`",
    );
    check(
        &first(),
        &[NAME, (2, "optional string", "size")],
        "the field `size` = 2 was `optional int32`, and is `optional string` now: give the new one another name and number, such as 3",
    );
}

#[test]
fn a_damaged_lock_names_its_line() {
    for (text, line) in [
        ("1 = \"optional string a\"", 1),
        ("[a.B]\nx = \"optional string a\"", 2),
        ("[a.B]\n1 = optional string a", 2),
        ("[a.B]\n<<<<<<< HEAD", 2),
        (
            "[a.B]\n1 = \"optional string a\"\n1 = \"optional string b\"",
            3,
        ),
        ("[a.B]\n1 = \"a\"", 2),
    ] {
        let found = Numbers::parse(text).map_err(|(line, _)| line);
        assert_eq!(found, Err(line), "{text}");
    }
}
