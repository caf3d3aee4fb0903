//! Tests of `apiloom store` as a process: its output and exit codes.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

const LINES: &str = concat!(
    r#"{"key":"/registry/g/pods/ns/a","revision":3,"value":{"kind":"Pod"}}"#,
    "\n",
    r#"{"revision":5,"objects":1}"#,
    "\n"
);

/// Runs a command with this standard input; returns the exit code, stdout and stderr.
fn store(command: &str, dir: &Path, input: &str) -> (Option<i32>, String, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_apiloom"))
        .args(["store", command])
        .arg(dir)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command");
    let mut stdin = child.stdin.take().expect("it is piped");
    // A command that reads no input may have ended already.
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    let output = child.wait_with_output().expect("its end");
    let text =
        |bytes: &[u8]| String::from_utf8_lossy(bytes).replace(&dir.display().to_string(), "DIR");
    (
        output.status.code(),
        text(&output.stdout),
        text(&output.stderr),
    )
}

fn said(code: i32, out: &str, err: &str) -> (Option<i32>, String, String) {
    (Some(code), out.to_owned(), err.to_owned())
}

#[test]
fn import_check_and_export_agree() {
    let dir = tempfile::tempdir().expect("a folder");
    let (code, out, err) = store("import", dir.path(), LINES);
    assert_eq!((code, out.as_str()), (Some(0), ""));
    let revision = err.strip_prefix("imported 1 objects at revision ");
    let revision = revision.and_then(|rest| rest.strip_suffix('\n'));
    let revision: u64 = revision.expect("the revision").parse().expect("a number");
    // A new store begins at the clock, so that revisions that clients know from another store are too old.
    assert!(revision > 1_700_000_000_000_000, "{revision}");
    assert_eq!(
        store("check", dir.path(), ""),
        said(
            0,
            &format!(
                "DIR: no damage; 1 objects at revision {revision}, history after revision {revision}\n"
            ),
            ""
        )
    );
    assert_eq!(
        store("export", dir.path(), ""),
        said(
            0,
            &LINES.replace("\"revision\":5", &format!("\"revision\":{revision}")),
            &format!("exported 1 objects at revision {revision}\n")
        )
    );
    assert_eq!(
        store("import", dir.path(), LINES),
        said(
            1,
            "",
            "error: there is a store in DIR; an import fills a directory without one\n"
        )
    );
}

/// Values in Protobuf, with bytes that are not UTF-8, and values that are nearly JSON.
#[test]
fn values_that_are_not_json_survive_export_and_import() {
    let lines = concat!(
        // k8s\0, and bytes from 0xff downwards.
        r#"{"key":"/registry/events/ns/a","revision":3,"expires":4102444800000,"base64":"azhzAP/+/fwA"}"#,
        "\n",
        r#"{"key":"/registry/events/ns/b","revision":4,"base64":""}"#,
        "\n",
        // JSON with a line break after it.
        r#"{"key":"/registry/g/pods/ns/c","revision":5,"base64":"e30K"}"#,
        "\n",
        r#"{"key":"/registry/g/pods/ns/d","revision":6,"value":{"kind":"Pod","a":"\u00e4"}}"#,
        "\n",
        r#"{"revision":7,"objects":4}"#,
        "\n"
    );
    let objects = |lines: &str| -> Vec<String> {
        let mut lines: Vec<String> = lines.lines().map(str::to_owned).collect();
        lines.pop();
        lines
    };
    let mut export = lines.to_owned();
    for _ in 0..2 {
        let dir = tempfile::tempdir().expect("a folder");
        let (code, _, err) = store("import", dir.path(), &export);
        assert_eq!(code, Some(0), "{err}");
        let (code, out, err) = store("check", dir.path(), "");
        assert_eq!(code, Some(0), "{err}");
        assert!(out.starts_with("DIR: no damage; 4 objects"), "{out}");
        export = store("export", dir.path(), "").1;
        assert_eq!(objects(&export), objects(lines));
    }
}

#[test]
fn failures_are_told_and_end_with_1() {
    let dir = tempfile::tempdir().expect("a folder");
    for command in ["check", "export"] {
        assert_eq!(
            store(command, dir.path(), ""),
            said(1, "", "error: there is no store in DIR\n")
        );
    }
    let (code, out, err) = store("import", dir.path(), "{}");
    assert_eq!((code, out.as_str()), (Some(1), ""));
    assert!(err.starts_with("error: line 1: "), "{err}");
    store("import", dir.path(), LINES);
    let file = dir.path().join("store.db");
    let mut bytes = std::fs::read(&file).expect("the file");
    let at = bytes
        .windows(14)
        .position(|window| window == br#"{"kind":"Pod"}"#)
        .expect("the value");
    bytes[at + 9] ^= 1;
    std::fs::write(&file, bytes).expect("the file");
    let (code, out, err) = store("check", dir.path(), "");
    assert_eq!(
        (code, err.as_str()),
        (Some(1), "error: DIR is damaged: 1 found\n")
    );
    assert!(out.contains("key \"/registry/g/pods/ns/a\""), "{out}");
    assert_eq!(store("export", dir.path(), "").0, Some(1));
}
