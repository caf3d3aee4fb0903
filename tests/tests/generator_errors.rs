//! Crate roots that are wrong, each with what the generator says about it: file, line, caret, help; all at once.

use std::fs;
use std::path::Path;

use apiloom_cli::{Console, execute};

const MANIFEST: &str = r#"
[package]
name = "wrong"
version = "0.1.0"
edition = "2024"

[[bin]]
name = "wrong-server"
path = "generated/main.rs"

[dependencies]
apiloom = "0.1"

[workspace]
"#;

/// What `apiloom generate --fast` says to a package with this root.
fn complaint(root: &str) -> String {
    let dir = tempfile::tempdir().expect("a temporary folder");
    fs::create_dir(dir.path().join("src")).expect("a folder");
    fs::write(dir.path().join("Cargo.toml"), MANIFEST).expect("a file");
    fs::write(dir.path().join("src/lib.rs"), root).expect("a file");
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let path = dir.path().as_os_str().to_owned();
    let arguments = ["apiloom".into(), "generate".into(), "--fast".into(), path];
    let mut console = Console {
        out: &mut out,
        err: &mut err,
        terminal: false,
    };
    let code = execute(arguments, &mut console);
    let said = String::from_utf8(err).expect("UTF-8");
    assert_eq!(
        (code, String::from_utf8_lossy(&out).as_ref()),
        (1, ""),
        "{said}"
    );
    assert!(!dir.path().join("generated").exists(), "nothing is written");
    said.replace(&dir.path().display().to_string(), "wrong")
}

#[test]
fn each_mistake_is_shown_at_its_place() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/generator/errors");
    let update = std::env::var_os("UPDATE_GOLDENS").is_some();
    let mut wrong = Vec::new();
    let mut count = 0;
    for entry in fs::read_dir(&folder).expect("the folder of fixtures") {
        let path = entry.expect("an entry").path();
        if path.extension().is_none_or(|extension| extension != "rs") {
            continue;
        }
        count += 1;
        let said = complaint(&fs::read_to_string(&path).expect("a fixture"));
        let golden = path.with_extension("stderr");
        if update {
            fs::write(&golden, &said).expect("a golden");
        } else if fs::read_to_string(&golden).unwrap_or_default() != said {
            wrong.push(format!("{}:\n{said}", path.display()));
        }
    }
    assert!(count > 0, "there are fixtures");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
