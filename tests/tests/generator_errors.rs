//! Crate roots that are wrong, each with what the generator says about it: file, line, caret, help; all at once. Then one
//! whose definition kube-apiserver would refuse, which the built server tells.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use apiloom_cli::{Console, execute};
use apiloom_tests::{build, repository};

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

// Issue 10, point 5: from the checker of structural rules to the end of the command.
#[test]
fn a_definition_that_kubernetes_refuses_is_not_written() {
    let fixture = repository().join("tests/fixtures/generator/definitions/nullable_key.rs");
    let dir = tempfile::tempdir().expect("a temporary folder");
    let package = dir.path().join("refused");
    fs::create_dir_all(package.join("src")).expect("a folder");
    let runtime = format!("apiloom = {{ path = {:?} }}", repository().join("runtime"));
    let manifest = MANIFEST
        .replace("apiloom = \"0.1\"", &runtime)
        .replace("wrong", "refused");
    fs::write(package.join("Cargo.toml"), manifest).expect("a file");
    fs::copy(&fixture, package.join("src/lib.rs")).expect("a copy");
    let output = Command::new(build("apiloom"))
        .args(["generate", "refused"])
        .current_dir(dir.path())
        .env_remove("CARGO_TARGET_DIR")
        .stdin(Stdio::null())
        .output()
        .expect("the command");
    let said = String::from_utf8(output.stderr).expect("UTF-8");
    let said = said.replace(&dir.path().display().to_string(), "ROOT");
    assert_eq!(
        (output.status.code(), output.stdout.as_slice()),
        (Some(1), &b""[..]),
        "{said}"
    );
    // Before this stands what was built.
    let (_, end) = said
        .split_once("generating OpenAPI documents and CRDs of refused\n")
        .expect(&said);
    let golden = fixture.with_extension("stderr");
    if std::env::var_os("UPDATE_GOLDENS").is_some() {
        fs::write(&golden, end).expect("a golden");
    }
    assert_eq!(end, fs::read_to_string(&golden).unwrap_or_default());
    for folder in ["generated/openapi", "generated/crds"] {
        assert!(!package.join(folder).exists(), "{folder} is written");
    }
}
