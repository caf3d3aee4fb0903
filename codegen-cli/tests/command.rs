//! The command as a process, on a package whose runtime is a stand-in: both phases, and the way into the server.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Copies of `solo` and of the stand-in runtime, side by side.
struct Package {
    root: tempfile::TempDir,
}

impl Package {
    fn new() -> Package {
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/generator");
        let root = tempfile::tempdir().expect("a temporary folder");
        for name in ["solo", "runtime"] {
            copy(&fixtures.join(name), &root.path().join(name));
        }
        Package { root }
    }

    fn path(&self, file: &str) -> PathBuf {
        self.root.path().join("solo").join(file)
    }

    /// `apiloom COMMAND solo FLAGS`, from the folder around the package.
    fn apiloom(&self, command: &str, flags: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_apiloom"))
            .current_dir(self.root.path())
            .args([command, "solo"])
            .args(flags)
            .env_remove("CARGO_TARGET_DIR")
            .stdin(Stdio::null())
            .output()
            .expect("the command")
    }

    /// Runs, and compares the exit code, stdout and stderr.
    fn check(&self, command: &str, flags: &[&str], code: i32, out: &str, err: &str) {
        let output = self.apiloom(command, flags);
        let text = |bytes: &[u8]| {
            String::from_utf8_lossy(bytes).replace(&self.root.path().display().to_string(), "ROOT")
        };
        let (said, told) = (text(&output.stdout), text(&output.stderr));
        assert_eq!(
            (output.status.code(), said.as_str(), told.as_str()),
            (Some(code), out, err)
        );
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder") {
        let path = entry.expect("an entry").path();
        let target = to.join(path.file_name().expect("it has a name"));
        if path.is_dir() {
            copy(&path, &target);
        } else {
            fs::copy(&path, &target).expect("a copy");
        }
    }
}

const CRD: &str = include_str!("golden/things.solo.example.com.yaml");

#[test]
fn schema_documents_follow_from_the_built_server() {
    let package = Package::new();
    package.check(
        "generate",
        &[],
        0,
        "solo: 10 generated files, 4 changed\n",
        "",
    );
    let read = |file: &str| fs::read_to_string(package.path(file)).expect("a generated file");
    assert_eq!(read("generated/crds/things.solo.example.com.yaml"), CRD);
    assert_eq!(
        read("generated/openapi/v2.json"),
        "{\n  \"paths\": {},\n  \"swagger\": \"2.0\"\n}\n"
    );
    assert!(read("generated/openapi/v3/solo.example.com_v1.json").contains("3.0.0"));
    assert!(read("generated/openapi/v3/api_v1.json").contains("3.0.0"));

    package.check(
        "generate",
        &[],
        0,
        "solo: 10 generated files, 0 changed\n",
        "",
    );
    package.check(
        "generate",
        &["--check"],
        0,
        "solo: 10 generated files, all fresh\n",
        "",
    );
    // The first phase leaves the second one's files alone.
    package.check(
        "generate",
        &["--fast"],
        0,
        "solo: 6 generated files, 0 changed\n",
        "",
    );
    assert!(package.path("generated/openapi/v2.json").exists());
}

#[test]
fn schema_documents_are_checked() {
    let package = Package::new();
    let out = "missing: generated/crds/things.solo.example.com.yaml\n\
               missing: generated/openapi/v2.json\n\
               missing: generated/openapi/v3/api_v1.json\n\
               missing: generated/openapi/v3/solo.example.com_v1.json\n";
    let err = "error: 4 generated files are not fresh\n  help: run: apiloom generate solo\n";
    package.check("generate", &["--check"], 1, out, err);
}

#[test]
fn schema_documents_are_not_checked_against_outdated_code() {
    let package = Package::new();
    fs::remove_file(package.path("src/generated/mod.rs")).expect("a generated file");
    let err = "note: OpenAPI and CRDs were not checked: the server would be built from outdated files\n\
               error: 1 generated file is not fresh\n  help: run: apiloom generate solo\n";
    package.check(
        "generate",
        &["--check"],
        1,
        "missing: src/generated/mod.rs\n",
        err,
    );
}

#[test]
fn deleting_everything_generated_changes_nothing() {
    let package = Package::new();
    package.check(
        "generate",
        &[],
        0,
        "solo: 10 generated files, 4 changed\n",
        "",
    );
    let kept = package.root.path().join("kept");
    for folder in ["generated", "src/generated"] {
        copy(&package.path(folder), &kept.join(folder));
        fs::remove_dir_all(package.path(folder)).expect("a folder");
    }
    package.check(
        "generate",
        &[],
        0,
        "solo: 10 generated files, 10 changed\n",
        "",
    );
    let status = Command::new("diff")
        .arg("-r")
        .args([kept.join("generated"), package.path("generated")])
        .status();
    assert!(status.expect("diff").success());
    let folders = [kept.join("src/generated"), package.path("src/generated")];
    assert!(
        Command::new("diff")
            .arg("-r")
            .args(folders)
            .status()
            .expect("diff")
            .success()
    );
}

#[test]
fn run_becomes_the_server() {
    let package = Package::new();
    fs::remove_dir_all(package.path("src/generated")).expect("a folder");
    let out = "solo-server 1 [\"--data-dir\", \"ROOT/solo/target/apiloom/solo\", \"-v\"]\n\
               solo.example.com [\"v1\"]\nsolo::Thing\n";
    package.check("run", &["--", "-v"], 7, out, "");
    assert!(
        package.path("generated/openapi/v2.json").exists(),
        "run generates both phases"
    );
}

#[test]
fn build_failure_is_shown() {
    let package = Package::new();
    fs::write(package.path("src/lib.rs"), {
        let text = fs::read_to_string(package.path("src/lib.rs")).expect("the root");
        format!("{text}\npub fn f() -> u8 {{ \"no number\" }}\n")
    })
    .expect("the root");
    let output = package.apiloom("run", &[]);
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        told.contains("mismatched types") && told.contains("building `solo-server` failed"),
        "{told}"
    );
}

#[test]
fn wrong_source_ends_with_one() {
    let package = Package::new();
    fs::write(package.path("src/lib.rs"), "pub mod generated;\n").expect("the root");
    let err = "error: the package declares no kind\n |\n = help: put `#[apiloom::resource(group = \"..\", version = \"..\", namespaced, storage)]` on a struct with `metadata: ObjectMeta`\n";
    package.check("generate", &["--fast"], 1, "", err);
    package.check("run", &[], 1, "", err);
}
