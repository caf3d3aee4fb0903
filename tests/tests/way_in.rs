//! The first steps of a new user: the package of the README, created outside this workspace, and the crates that are
//! compiled for it. Compiling a crate twice would double the waiting time.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on panics, and says where"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};

use apiloom_tests::transcript::words;
use apiloom_tests::{Kubectl, Output, Server, build, repository, stdout};
use regex::Regex;

/// The first code block of this language in the README.
fn block(readme: &str, language: &str) -> String {
    let (_, rest) = readme.split_once(&format!("```{language}\n")).unwrap();
    rest.split_once("```").unwrap().0.to_owned()
}

fn readme() -> String {
    fs::read_to_string(repository().join("README.md")).unwrap()
}

/// Runs kubectl with the words of a line.
fn run_line(kubectl: &Kubectl, line: &str, input: &str) -> Output {
    let words = words(line);
    let words: Vec<_> = words.iter().map(String::as_str).collect();
    kubectl.run(&words, input)
}

/// Runs the commands of a block with a console, and returns the block as it is then; all ages are a second.
fn replayed(block: &str, kubectl: &Kubectl) -> String {
    let age = Regex::new(r"\b[0-9]+s\b").unwrap();
    let mut replayed = String::new();
    let mut lines = block.lines().peekable();
    while let Some(line) = lines.next() {
        let Some(arguments) = line.strip_prefix("$ kubectl ") else {
            continue;
        };
        let (mut shown, mut input) = (format!("{line}\n"), String::new());
        while let Some(line) = lines.next_if(|line| line.starts_with("> ")) {
            shown += &format!("{line}\n");
            input += &format!("{}\n", &line[2..]);
        }
        let output = run_line(kubectl, arguments, &input);
        replayed += &shown;
        replayed += &age.replace_all(&output.stdout, "1s");
        replayed += &output.stderr;
    }
    replayed
}

/// Writes the README's package under another name.
fn write_package(root: &Path, name: &str) {
    let readme = readme();
    let (_, own) = readme.split_once("## A kind of your own").unwrap();
    let runtime = repository().join("runtime");
    let manifest = block(own, "toml")
        .replace("zoo", name)
        .replace("../apiloom/runtime", runtime.to_str().unwrap());
    assert!(manifest.contains(runtime.to_str().unwrap()), "{manifest}");
    fs::create_dir_all(root.join(name).join("src")).unwrap();
    fs::write(root.join(name).join("Cargo.toml"), manifest).unwrap();
    fs::write(root.join(name).join("src/lib.rs"), block(own, "rust")).unwrap();
}

/// Number of crates compiled for a package that was generated for the first time.
fn compiled_for(root: &Path, name: &str) -> u32 {
    let output = Command::new(build("apiloom"))
        .args(["generate", name])
        .current_dir(root)
        .env_remove("CARGO_TARGET_DIR")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{told}");
    assert!(!told.contains("warning"), "{told}");
    let sharing = format!(
        "building {name}-server, sharing {}/target\n",
        repository().display()
    );
    assert!(told.contains(&sharing), "{told}");
    let (_, count) = told
        .split_once(&format!("built {name}-server: "))
        .unwrap_or_else(|| panic!("{told}"));
    count.split(' ').next().unwrap().parse().unwrap()
}

fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// The crates that a package in a folder is built from, a line each, in no order; some have several.
fn tree(package: &str, folder: &Path, arguments: &[&str]) -> Vec<String> {
    let mut tree = cargo();
    tree.args(["tree", "--offline", "--prefix=none", "--package", package])
        .args(arguments)
        .current_dir(folder);
    // The mark of a crate whose own crates were listed before.
    let without_mark = |line: &str| line.trim_end_matches(" (*)").to_owned();
    stdout(&mut tree).lines().map(without_mark).collect()
}

/// The crates that a package in a folder is built from, with the features of each build of a crate. Those of one version with the same
/// features are one build, also for packages outside of this workspace: all share its folder.
fn builds_of(package: &str, folder: &Path) -> BTreeMap<String, BTreeSet<String>> {
    let mut builds = BTreeMap::<String, BTreeSet<String>>::new();
    let arguments = ["--edges", "normal,build", "--format", "{p}|{f}"];
    for line in tree(package, folder, &arguments) {
        let (name, features) = line.split_once('|').unwrap();
        builds
            .entry(name.to_owned())
            .or_default()
            .insert(features.to_owned());
    }
    builds
}

/// Checks that the crates of a package that those of the other need too are the same builds.
#[track_caller]
fn check_shared(
    builds: &BTreeMap<String, BTreeSet<String>>,
    others: &BTreeMap<String, BTreeSet<String>>,
    is_apart: impl Fn(&str) -> bool,
) {
    let common: Vec<_> = builds
        .iter()
        .filter(|(id, _)| !is_apart(id))
        .filter_map(|(id, features)| Some((id, features, others.get(id)?)))
        .collect();
    let is_common = |name: &str| common.iter().any(|(id, ..)| id.starts_with(name));
    assert!(
        is_common("apiloom-meta ") && is_common("serde_json "),
        "{common:#?}"
    );
    let twice: Vec<_> = common
        .iter()
        .filter(|(_, features, others)| features != others)
        .collect();
    assert!(
        twice.is_empty(),
        "compiled twice, with these features: {twice:#?}\nhelp: `cargo tree --edges features --invert CRATE` shows what needs them"
    );
}

#[test]
fn every_crate_is_compiled_once() {
    let server = builds_of("hello", &repository());
    // The command needs the types of the built-in kinds, a server their rules too: its build of that crate is another one.
    let command = builds_of("apiloom-cli", &repository());
    check_shared(&command, &server, |id| id.starts_with("apiloom-kinds "));

    let root = tempfile::tempdir().unwrap();
    write_package(root.path(), "way-in-one");
    compiled_for(root.path(), "way-in-one");
    let outside = builds_of("way-in-one", &root.path().join("way-in-one"));
    check_shared(&outside, &server, |_| false);
    let binary = root
        .path()
        .join("way-in-one/target/apiloom-builds/debug/way-in-one-server");
    let server = Server::start_binary(&binary, &[]);
    let kubectl = Kubectl::new("1.36", server.kubeconfig());
    let console = block(&readme(), "console");
    assert_eq!(replayed(&console, &kubectl), console);

    // One with clients shares the server too.
    write_package(root.path(), "way-in-two");
    let manifest = root.path().join("way-in-two/Cargo.toml");
    let text = fs::read_to_string(&manifest).unwrap();
    let with_clients = text.replace("runtime\" }", "runtime\", features = [\"client\"] }");
    assert_ne!(with_clients, text);
    fs::write(manifest, with_clients).unwrap();
    let compiled = compiled_for(root.path(), "way-in-two");
    assert!(
        compiled <= 1 + 2,
        "{compiled} crates were compiled for the facade with clients, a library and a server"
    );
}

#[test]
fn the_commands_that_the_readme_shows_succeed() {
    let server = Server::start(&[]);
    let kubectl = Kubectl::new("1.36", server.kubeconfig());
    let readme = readme();
    let of_kubectl = |line: &str| Some(line.strip_prefix("kubectl ")?.to_owned());
    let commands: Vec<_> = readme.lines().filter_map(of_kubectl).collect();
    assert!(commands.len() > 3, "{commands:?}");
    for command in commands {
        // kubectl runs in a folder of the tests.
        let command = command.replace("examples/", "../../examples/");
        let output = run_line(&kubectl, &command, "");
        assert_eq!(output.code, 0, "{command}: {output:?}");
        assert_ne!(output.stdout, "", "{command}");
    }
    for path in [
        "examples/wardle",
        "codegen-cli",
        "tests/all",
        "examples/hello",
        "examples/backend",
    ] {
        assert!(
            readme.contains(path) && repository().join(path).exists(),
            "{path}"
        );
    }
    let flags = stdout(Command::new(build("apiloom")).args(["serve", "--help"]));
    for flag in ["--crds", "--kubeconfig"] {
        assert!(
            readme.contains(flag) && flags.contains(flag),
            "{flag}: {flags}"
        );
    }
}

/// The crates that a package is built from, without its default features and without tools of its build.
fn crates_of(package: &str) -> BTreeSet<String> {
    let arguments = ["--edges", "normal", "--no-default-features"];
    tree(package, &repository(), &arguments)
        .into_iter()
        .collect()
}

#[test]
fn client_without_tls_has_few_crates() {
    const MAX: usize = 70;
    let crates = crates_of("apiloom-client");
    assert!(
        crates.iter().any(|name| name.starts_with("hyper v")),
        "{crates:#?}"
    );
    assert!(
        crates.len() <= MAX,
        "apiloom-client without features is built from {} crates, more than {MAX}: {crates:#?}\nhelp: make a new one optional, behind a feature of its crate",
        crates.len()
    );
}

/// A clone with only the scripts that provide protoc, and a PATH without it.
fn without_protoc(root: &Path) -> Command {
    let clone = root.join("clone");
    for script in [".cargo/protoc", "tests/protoc"] {
        fs::create_dir_all(clone.join(script).parent().unwrap()).unwrap();
        symlink(repository().join(script), clone.join(script)).unwrap();
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let dirs = std::env::split_paths(&path).filter(|dir| !dir.join("protoc").exists());
    let mut command = Command::new(clone.join(".cargo/protoc"));
    command
        .arg("--version")
        .current_dir(root)
        .env("PATH", std::env::join_paths(dirs).unwrap());
    command
}

// `cargo build -p wardle-server --features etcd` by itself provides protoc or says how to get it.
#[test]
fn protoc_is_brought() {
    let config = fs::read_to_string(repository().join(".cargo/config.toml")).unwrap();
    let setting = "PROTOC = { value = \".cargo/protoc\", relative = true }";
    assert!(config.contains(setting), "{config}");

    let root = tempfile::tempdir().unwrap();
    let mut command = without_protoc(root.path());
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.starts_with("libprotoc "), "{output:?}");
    let tools = root.path().join("clone/target/tools");
    let left: Vec<_> = fs::read_dir(&tools)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(left, ["protoc"]);

    // The second run needs no cargo.
    let again = command.env("CARGO", "/no/cargo").output().unwrap();
    assert_eq!(again.stdout, output.stdout, "{again:?}");
}

#[test]
fn protoc_that_cannot_be_brought_is_one_line() {
    let root = tempfile::tempdir().unwrap();
    let output = without_protoc(root.path())
        .env("CARGO", "/no/cargo")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(told.lines().count(), 1, "{told}");
    let start = "the feature etcd needs protoc: install it, or name it in PROTOC (none is on PATH, and it could not be";
    assert!(told.starts_with(start), "{told}");
    assert!(told.contains("/no/cargo"), "{told}");
}

#[test]
fn protoc_on_the_path_is_taken() {
    let root = tempfile::tempdir().unwrap();
    let mut command = without_protoc(root.path());
    let own = root.path().join("bin");
    fs::create_dir(&own).unwrap();
    symlink("/bin/echo", own.join("protoc")).unwrap();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let dirs = [own].into_iter().chain(std::env::split_paths(&path));
    command.env("PATH", std::env::join_paths(dirs).unwrap());
    let output = command.args(["is", "mine"]).output().unwrap();
    assert!(
        output.stdout.ends_with(b"is mine\n"),
        "it is handed its arguments: {output:?}"
    );
    assert!(!root.path().join("clone/target").exists());
}
