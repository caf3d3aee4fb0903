//! Runs the command as a process, on a package with a stub runtime: both phases, and the start of the server.

#[path = "command/numbers.rs"]
mod numbers;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Copies of `solo` and of the stub runtime, side by side.
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

/// The output of a command that builds, in a pipe.
fn phases(compiled: u32, reused: u32) -> String {
    format!(
        "generating code of solo\n\
         building solo-server, sharing ROOT/runtime/target\n\
         built solo-server: {compiled} crates compiled, {reused} reused\n\
         generating OpenAPI documents and CRDs of solo\n"
    )
}

const CRD: &str = include_str!("golden/things.solo.example.com.yaml");

#[test]
fn schema_documents_follow_from_the_built_server() {
    let package = Package::new();
    package.check(
        "generate",
        &[],
        0,
        "solo: 9 generated files, 3 changed\n",
        &phases(4, 0),
    );
    let read = |file: &str| fs::read_to_string(package.path(file)).expect("a generated file");
    assert_eq!(read("generated/crds/things.solo.example.com.yaml"), CRD);
    assert!(read("generated/openapi/v3/solo.example.com_v1.json").contains("3.0.0"));
    assert!(read("generated/openapi/v3/api_v1.json").contains("3.0.0"));

    package.check(
        "generate",
        &[],
        0,
        "solo: 9 generated files, 0 changed\n",
        &phases(0, 4),
    );
    package.check(
        "generate",
        &["--check"],
        0,
        "solo: 9 generated files, all fresh\n",
        &phases(0, 4),
    );
    // The first phase does not change the second one's files.
    package.check(
        "generate",
        &["--fast"],
        0,
        "solo: 6 generated files, 0 changed\n",
        "",
    );
    assert!(package.path("generated/openapi/v3/api_v1.json").exists());
}

#[test]
fn the_openapi_v2_document_is_an_option() {
    let package = Package::new();
    let manifest = package.path("Cargo.toml");
    let text = fs::read_to_string(&manifest).expect("a manifest");
    let with = |value: &str| {
        let text = format!("{text}\n[package.metadata.apiloom]\nopenapi-v2 = {value}\n");
        fs::write(&manifest, text).expect("written");
    };
    with("true");
    let out = "solo: 10 generated files, 4 changed\n";
    package.check("generate", &[], 0, out, &phases(4, 0));
    let v2 = package.path("generated/openapi/v2.json");
    assert_eq!(
        fs::read_to_string(&v2).expect("a generated file"),
        "{\n  \"paths\": {},\n  \"swagger\": \"2.0\"\n}\n"
    );

    with("false");
    let out = "solo: 9 generated files, 1 changed\n";
    package.check("generate", &[], 0, out, &phases(0, 4));
    assert!(!v2.exists(), "it is removed");

    with("\"yes\"");
    let err = "error: package.metadata.apiloom.openapi-v2 must be `true` or `false`\n";
    package.check("generate", &[], 1, "", err);
}

#[test]
fn schema_documents_are_checked() {
    let package = Package::new();
    let out = "missing: generated/crds/things.solo.example.com.yaml\n\
               missing: generated/openapi/v3/api_v1.json\n\
               missing: generated/openapi/v3/solo.example.com_v1.json\n";
    let err = "error: 3 generated files are not fresh\n  help: run: apiloom generate solo\n";
    package.check("generate", &["--check"], 1, out, &(phases(4, 0) + err));
}

#[test]
fn a_server_that_was_built_before_is_not_built_again() {
    let package = Package::new();
    assert!(package.apiloom("generate", &[]).status.success());
    let built = package.path("target/apiloom-builds/debug/solo-server");
    let built = built.to_str().expect("a path in Unicode");
    let phases = "generating code of solo\ngenerating OpenAPI documents and CRDs of solo\n";
    let flags = ["--check", "--server", built];
    let out = "solo: 9 generated files, all fresh\n";
    package.check("generate", &flags, 0, out, phases);

    let source = package.path("src/lib.rs");
    let text = fs::read(&source).expect("the source");
    fs::write(&source, text).expect("the same source, written later");
    let err = format!(
        "generating code of solo\n\
         error: {} was built before solo/src/lib.rs changed\n  help: build it again, or leave out --server\n",
        built.replace(&package.root.path().display().to_string(), "ROOT")
    );
    package.check("generate", &flags, 1, "", &err);
}

#[test]
fn what_cargo_built_is_not_replaced() {
    let package = Package::new();
    let built = package.path("target/debug/solo-server");
    fs::create_dir_all(built.parent().expect("a folder")).expect("a folder");
    fs::write(&built, "with other features").expect("a binary");
    assert!(package.apiloom("generate", &[]).status.success());
    let text = fs::read_to_string(&built).expect("the binary");
    assert_eq!(text, "with other features");
}

#[test]
fn schema_documents_are_not_checked_against_outdated_code() {
    let package = Package::new();
    fs::remove_file(package.path("src/generated/mod.rs")).expect("a generated file");
    let err = "generating code of solo\n\
               note: OpenAPI and CRDs were not checked: the server would be built from outdated files\n\
               error: 1 generated file is not fresh\n  help: run: apiloom generate solo\n";
    package.check(
        "generate",
        &["--check"],
        1,
        "missing: src/generated/mod.rs\n",
        err,
    );
}

/// Follows a command's help literally: moves the listed files away, then runs the command that it names.
fn follow_help(package: &Package, told: &str, kept: &Path) -> Output {
    let root = package.root.path();
    for line in told.lines() {
        let Some((file, _)) = line.trim().split_once(" (") else {
            continue;
        };
        let target = kept.join(file);
        fs::create_dir_all(target.parent().expect("it has a parent")).expect("a folder");
        fs::rename(root.join(file), target).expect("a listed file");
    }
    let (_, command) = told
        .split_once("elsewhere, then run: apiloom ")
        .or_else(|| told.split_once("help: run: apiloom "))
        .unwrap_or_else(|| panic!("no help in {told}"));
    let line = command.lines().next().expect("a command");
    let words: Vec<&str> = line.split(' ').collect();
    assert_eq!(words, ["generate", "solo"]);
    package.apiloom("generate", &[])
}

#[test]
fn help_of_the_check_keeps_what_was_written_by_hand() {
    let package = Package::new();
    assert!(package.apiloom("generate", &[]).status.success());
    let edited = [
        "src/generated/install.rs",
        "generated/main.rs",
        "generated/crds/things.solo.example.com.yaml",
    ];
    for edited in [&edited[..1], &edited[2..], &edited[..]] {
        let kept = tempfile::tempdir().expect("a temporary folder");
        for file in edited {
            let mut text = fs::read_to_string(package.path(file)).expect("a generated file");
            text.push_str("# by hand\n");
            fs::write(package.path(file), text).expect("a generated file");
        }
        let check = package.apiloom("generate", &["--check"]);
        assert_eq!(check.status.code(), Some(1));
        let told = String::from_utf8_lossy(&check.stderr);
        let followed = follow_help(&package, &told, kept.path());
        assert!(followed.status.success(), "{told}\n{followed:?}");
        assert!(package.apiloom("generate", &["--check"]).status.success());
        for file in edited {
            let text = fs::read_to_string(kept.path().join("solo").join(file)).expect("a file");
            assert!(text.ends_with("# by hand\n"), "{file}: {text}");
        }
    }
}

#[test]
fn deleting_everything_generated_changes_nothing() {
    let package = Package::new();
    package.check(
        "generate",
        &[],
        0,
        "solo: 9 generated files, 3 changed\n",
        &phases(4, 0),
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
        "solo: 9 generated files, 9 changed\n",
        &phases(2, 2),
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
    let out = "solo-server 1 [\"-v\", \"--data-dir\", \"ROOT/solo/target/apiloom/solo\"]\n\
               solo.example.com [\"v1\"]\nsolo::Thing\n";
    let err = phases(4, 0) + "starting solo-server\n";
    package.check("run", &["--", "-v"], 7, out, &err);
    assert!(
        package.path("generated/openapi/v3/api_v1.json").exists(),
        "run generates both phases"
    );
}

/// A root without public modules that re-exports all items: by name, under another name, by globs, in steps.
const PRIVATE_MODULES: &str = r#"
pub mod generated;

pub mod v1 {
    mod group {
        apiloom::group! { name = "solo.example.com", versions = [v1] }
    }
    mod things {
        use apiloom::prelude::*;

        #[apiloom::resource(group = "solo.example.com", version = "v1", namespaced)]
        pub struct Thing {
            pub metadata: ObjectMeta,
        }

        #[apiloom::resource(group = "solo.example.com", version = "v1", namespaced, kind = "Part")]
        pub struct PartV1 {
            pub metadata: ObjectMeta,
        }

        pub mod more {
            mod deep {
                #[apiloom::resource(group = "solo.example.com", version = "v1", namespaced)]
                pub struct Box {
                    pub metadata: apiloom::prelude::ObjectMeta,
                }
            }
            pub use deep::*;
        }
    }

    pub use group::GROUP;
    pub use self::things::more as boxes;
    pub use things::PartV1 as Part;
    pub use things::*;
}
"#;

#[test]
fn kinds_of_private_modules_are_named_where_they_are_public() {
    let package = Package::new();
    fs::write(package.path("src/lib.rs"), PRIVATE_MODULES).expect("the root");
    let output = package.apiloom("run", &[]);
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(7), "{told}");
    let registry = fs::read_to_string(package.path("src/generated/registry.rs")).expect("a file");
    for name in [
        "crate::v1::Thing",
        "crate::v1::Part",
        "crate::v1::boxes::Box",
    ] {
        let call = format!("builder.lazy_kind::<{name}>()");
        assert!(registry.contains(&call), "{call}: {registry}");
    }
    let install = fs::read_to_string(package.path("src/generated/install.rs")).expect("a file");
    assert!(install.contains("crate::v1::GROUP"), "{install}");
}

#[test]
fn manifests_leave_out_what_is_disabled_by_default() {
    let package = Package::new();
    let check = |key: &str, is_named: bool| {
        let root = format!(
            "pub mod generated;\n\
             use apiloom::prelude::*;\n\
             apiloom::group! {{ name = \"solo.example.com\", versions = [v1, v2alpha1] }}\n\
             #[apiloom::resource(group = \"solo.example.com\", version = \"v1\", namespaced)]\n\
             pub struct Thing {{ pub metadata: ObjectMeta }}\n\
             #[apiloom::resource(group = \"solo.example.com\", version = \"v2alpha1\", namespaced{key})]\n\
             pub struct Trial {{ pub metadata: ObjectMeta }}\n"
        );
        fs::write(package.path("src/lib.rs"), root).expect("the root");
        let output = package.apiloom("generate", &["--fast"]);
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{told}");
        let has = |file: &str, name: &str| {
            let text = fs::read_to_string(package.path(file)).expect("a file");
            text.contains(name)
        };
        assert!(has("generated/manifests/rbac.yaml", "things"));
        assert_eq!(has("generated/manifests/rbac.yaml", "trials"), is_named);
        let services = "generated/manifests/apiservice.yaml";
        assert_eq!(has(services, "v2alpha1"), is_named);
        // It is registered, so that a flag can enable it.
        assert!(has("src/generated/registry.rs", "Trial"));
    };
    check("", true);
    check(", disabled_by_default", false);
}

// Cargo takes two packages of one name and version for the same one.
#[test]
fn packages_of_one_name_share_a_folder() {
    let package = Package::new();
    let old = package.root.path().join("old");
    copy(&package.path(""), &old.join("solo"));
    fs::write(old.join("solo/src/lib.rs"), {
        let text = fs::read_to_string(package.path("src/lib.rs")).expect("the root");
        text.replace(
            "pub mod generated;",
            "pub mod generated;\npub const BROKEN: u8 = \"no number\";",
        )
    })
    .expect("the root");
    copy(&package.root.path().join("runtime"), &old.join("runtime"));
    // In another workspace, with the same dependency, and written long before the first is built.
    let manifest = fs::read_to_string(old.join("solo/Cargo.toml")).expect("the manifest");
    let runtime = package.root.path().join("runtime");
    let manifest = manifest.replace("../runtime", &runtime.display().to_string());
    fs::write(old.join("solo/Cargo.toml"), manifest).expect("the manifest");
    let output = package.apiloom("generate", &[]);
    assert!(output.status.success());

    let output = Command::new(env!("CARGO_BIN_EXE_apiloom"))
        .current_dir(&old)
        .args(["generate", "solo"])
        .env_remove("CARGO_TARGET_DIR")
        .stdin(Stdio::null())
        .output()
        .expect("the command");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(told.contains("mismatched types"), "{told}");
}

#[test]
fn folder_that_the_user_names_is_used() {
    let package = Package::new();
    let own = package.root.path().join("own");
    let dir = own.to_str().expect("UTF-8");
    let alone = "generating code of solo\n\
         building solo-server\n\
         built solo-server: 4 crates compiled, 0 reused\n\
         generating OpenAPI documents and CRDs of solo\n";
    package.check(
        "generate",
        &["--target-dir", dir],
        0,
        "solo: 9 generated files, 3 changed\n",
        alone,
    );
    assert!(own.join("debug/solo-server").is_file());
    for used in ["solo", "runtime"] {
        assert!(!package.root.path().join(used).join("target").exists());
    }
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
