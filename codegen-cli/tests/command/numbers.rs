//! The history of field numbers, as the command keeps it: `.proto` files and `apiloom.lock` of a package with a stub runtime.

use std::fs;

use super::Package;

/// Exit code, stdout, and the errors of stderr without the phases.
type Answer = (Option<i32>, String, String);

impl Package {
    /// Lets the server say that its one message has these fields.
    fn fields(&self, fields: &[(u32, &str, &str)]) {
        let fields = fields.iter().map(|(number, field_type, name)| {
            format!(r#""{number}": {{"description": ["About {name}."], "fieldType": "{field_type}", "name": "{name}"}}"#)
        });
        let fields: Vec<String> = fields.collect();
        let file = format!(
            r#"{{"package": "com.example.solo.v1", "messages": {{"Thing": {{"fields": {{{}}}}}}}}}"#,
            fields.join(",")
        );
        let dump = format!(r#"{{"proto/solo.example.com_v1.proto": {file}}}"#);
        let path = self.root.path().join("runtime/src/dump.json");
        fs::write(path, dump).expect("written");
    }

    fn read(&self, file: &str) -> String {
        fs::read_to_string(self.path(file)).expect("a file")
    }

    fn generate(&self, flags: &[&str]) -> Answer {
        let output = self.apiloom("generate", flags);
        let text = |bytes: &[u8]| {
            let root = self.root.path().display().to_string();
            String::from_utf8_lossy(bytes).replace(&root, "ROOT")
        };
        let told = text(&output.stderr);
        let error = told.split_once("error: ").map_or("", |(_, error)| error);
        (output.status.code(), text(&output.stdout), error.to_owned())
    }
}

const NAME: (u32, &str, &str) = (1, "optional string", "name");
const SIZE: (u32, &str, &str) = (2, "optional int32", "size");
const PROTO: &str = "generated/proto/solo.example.com_v1.proto";
const LOCK: &str = "apiloom.lock";

#[test]
fn numbers_are_kept_from_one_generation_to_the_next() {
    let package = Package::new();
    package.fields(&[NAME, SIZE]);
    let (code, said, error) = package.generate(&[]);
    assert_eq!((code, &*error), (Some(0), ""), "{said}");
    let (_, text) = package.read(PROTO).split_once('\n').map_or_else(
        || panic!("one line"),
        |(head, text)| (head.to_owned(), text.to_owned()),
    );
    assert_eq!(
        text,
        "syntax = \"proto2\";\n\npackage com.example.solo.v1;\n\nmessage Thing {\n  // About name.\n  \
         optional string name = 1;\n  // About size.\n  optional int32 size = 2;\n}\n"
    );
    let lock = package.read(LOCK);
    assert!(
        lock.ends_with("\n[com.example.solo.v1.Thing]\n1 = \"optional string name\"\n2 = \"optional int32 size\"\n"),
        "{lock}"
    );
    assert_eq!(package.generate(&["--check"]).0, Some(0));

    // A removed field: the check finds it, its number is reserved, and never comes back.
    package.fields(&[NAME]);
    let (code, said, _) = package.generate(&["--check"]);
    assert_eq!(code, Some(1));
    assert!(said.contains("outdated: apiloom.lock\n"), "{said}");
    assert_eq!(package.read(LOCK), lock, "a check writes nothing");
    assert_eq!(package.generate(&[]).0, Some(0));
    let reserved = "  optional string name = 1;\n  reserved 2;\n  reserved \"size\";\n}\n";
    assert!(package.read(PROTO).ends_with(reserved));
    assert!(
        package
            .read(LOCK)
            .ends_with("2 = \"removed optional int32 size\"\n")
    );

    let (files, lock) = (package.read(PROTO), package.read(LOCK));
    package.fields(&[NAME, (2, "optional bool", "flag")]);
    for flags in [&[][..], &["--check"], &["--force"]] {
        let (code, _, error) = package.generate(flags);
        assert_eq!(code, Some(1), "{flags:?}");
        assert_eq!(
            error,
            "com.example.solo.v1.Thing: the number 2 of the field `flag` was that of `size`: write a number that no field \
             had, such as 3\n  help: if no release has the earlier field, remove its line from apiloom.lock\n"
        );
        assert_eq!(
            (package.read(PROTO), package.read(LOCK)),
            (files.clone(), lock.clone())
        );
    }
    // What the help says, for a field that was never released.
    let path = package.path(LOCK);
    fs::write(
        &path,
        lock.replace("2 = \"removed optional int32 size\"\n", ""),
    )
    .expect("written");
    assert_eq!(package.generate(&[]).0, Some(0));
    assert!(package.read(LOCK).ends_with("2 = \"optional bool flag\"\n"));
}

#[test]
fn a_lock_that_was_lost_or_damaged_is_noticed() {
    let package = Package::new();
    package.fields(&[NAME]);
    assert_eq!(package.generate(&[]).0, Some(0));
    let path = package.path(LOCK);
    let lock = package.read(LOCK);
    fs::remove_file(&path).expect("it was generated");
    let (code, said, error) = package.generate(&["--check"]);
    assert_eq!(code, Some(1));
    assert_eq!(said, "missing: apiloom.lock\n");
    assert!(
        error.starts_with("1 generated file is not fresh\n"),
        "{error}"
    );

    fs::write(&path, format!("{lock}<<<<<<< HEAD\n")).expect("written");
    let (code, _, error) = package.generate(&[]);
    assert_eq!(code, Some(1));
    assert_eq!(
        error,
        "solo/apiloom.lock:6: this is no line of numbers, such as `1 = \"optional string name\"`\n  \
         help: restore the file from version control: it is the only record of numbers that fields had\n"
    );
}
