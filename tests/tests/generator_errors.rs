//! Invalid crate roots with the generator's errors: file, line, caret, help; all at once. Then roots that only the
//! built server refuses, or whose definition kube-apiserver would refuse.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use apiloom_cli::{Console, execute};
use apiloom_tests::{Server, build, repository};

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

/// The output of `apiloom generate --fast` for a package with this root.
fn complaint(root: &str) -> String {
    let dir = tempfile::tempdir().expect("a temporary folder");
    fs::create_dir(dir.path().join("src")).expect("a folder");
    let manifest = format!("{MANIFEST}\n[package.metadata.apiloom]\nclients = true\n");
    fs::write(dir.path().join("Cargo.toml"), manifest).expect("a file");
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

// Errors of the built server with file and line, to the end of the command.
#[test]
fn documents_of_kinds_with_problems_are_not_written() {
    let package = Package::new();
    for fixture in ["nullable_key", "unfit_kinds"] {
        package.fill(fixture);
        let output = package.run(Command::new(build("apiloom")).args(["generate", "refused"]));
        let said = failure(&output);
        let said = said.replace(&package.dir.path().display().to_string(), "ROOT");
        // Before this comes the output of the build.
        let (_, end) = said
            .split_once("generating OpenAPI documents and CRDs of refused\n")
            .expect(&said);
        let golden = Package::fixture(fixture, "stderr");
        if std::env::var_os("UPDATE_GOLDENS").is_some() {
            fs::write(&golden, end).expect("a golden");
        }
        assert_eq!(end, fs::read_to_string(&golden).unwrap_or_default());
        for folder in ["generated/openapi", "generated/crds"] {
            let folder = package.folder().join(folder);
            assert!(!folder.exists(), "{} is written", folder.display());
        }
    }

    // A server that was built all the same answers requests for these kinds with the same errors.
    let server = Server::start_binary(
        &package
            .folder()
            .join("target/apiloom-builds/debug/refused-server"),
        &[],
    );
    let golden = Package::fixture("unfit_kinds", "stderr");
    let expected = fs::read_to_string(golden).expect("a golden");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    for (resource, kind) in [("paints", "Paint"), ("rooms", "Room"), ("things", "Thing")] {
        let url = format!("/apis/example.com/v1/{resource}");
        let answer = runtime.block_on(server.client().get(&url));
        assert_eq!(answer.code, 500, "{}", answer.text());
        let message = answer.json()["message"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        let of_kind = format!(": {kind} of example.com/v1: ");
        let lines = expected.lines().filter(|line| line.contains(&of_kind));
        let lines: Vec<&str> = lines
            .filter_map(|line| line.strip_prefix("error: "))
            .collect();
        assert_eq!(
            message,
            format!("Internal error occurred: {}", lines.join("; "))
        );
        assert!(!lines.is_empty(), "{expected}");
    }
}

// The traits of handlers need the server, which packages of the UI tests do not have.
#[test]
fn a_handler_that_does_not_answer_its_verbs_does_not_compile() {
    let package = Package::new();
    package.fill("unhandled_verbs");
    let output = package.run(Command::new(build("apiloom")).args(["generate", "refused"]));
    let said = failure(&output);
    let error = |message: &str, at: &str| {
        let found = said.split("\n\n").find(|error| error.contains(message));
        let found = found.unwrap_or_else(|| panic!("{message}\n{said}"));
        assert!(found.contains(at), "{found}");
        assert!(found.contains("= note: write `"), "{found}");
    };
    let verb = |ty: &str, verb: &str| {
        format!("`{ty}` does not answer the verb `{verb}` of a subresource of `Machine`")
    };
    error(&verb("Restarter", "get"), "lib.rs:16:");
    error(
        "`Power` is not the code of a subresource of `Machine`",
        "lib.rs:17:",
    );
}

/// A package called `refused` in a temporary folder.
struct Package {
    dir: tempfile::TempDir,
}

impl Package {
    fn new() -> Self {
        let package = Self {
            dir: tempfile::tempdir().expect("a temporary folder"),
        };
        fs::create_dir_all(package.folder().join("src")).expect("a folder");
        let runtime = format!("apiloom = {{ path = {:?} }}", repository().join("runtime"));
        let manifest = MANIFEST
            .replace("apiloom = \"0.1\"", &runtime)
            .replace("wrong", "refused");
        fs::write(package.folder().join("Cargo.toml"), manifest).expect("a file");
        package
    }

    fn folder(&self) -> PathBuf {
        self.dir.path().join("refused")
    }

    fn fixture(name: &str, extension: &str) -> PathBuf {
        let folder = repository().join("tests/fixtures/generator/definitions");
        folder.join(name).with_extension(extension)
    }

    /// Copies a fixture to the crate root.
    fn fill(&self, fixture: &str) {
        fs::copy(
            Self::fixture(fixture, "rs"),
            self.folder().join("src/lib.rs"),
        )
        .expect("a copy");
    }

    /// Runs a command beside the package.
    fn run(&self, command: &mut Command) -> Output {
        command
            .current_dir(self.dir.path())
            .env_remove("CARGO_TARGET_DIR")
            .stdin(Stdio::null())
            .output()
            .expect("the command")
    }
}

/// The stderr of a command that must fail without other output.
fn failure(output: &Output) -> String {
    let said = String::from_utf8(output.stderr.clone()).expect("UTF-8");
    assert_eq!(
        (output.status.code(), output.stdout.as_slice()),
        (Some(1), &b""[..]),
        "{said}"
    );
    said
}
