//! Phase 1 as a command: goldens, freshness, edits by hand, stale files, exit codes, on copies of fixture packages.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use apiloom_cli::{Console, execute};

/// The fixtures' folder.
fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/generator")
}

/// The result of a command.
#[derive(Debug)]
struct Answer {
    code: u8,
    out: String,
    err: String,
}

/// A fixture package copied to a folder where it can be changed.
struct Package {
    root: tempfile::TempDir,
    name: &'static str,
}

impl Package {
    fn of(name: &'static str) -> Package {
        let root = tempfile::tempdir().expect("a temporary folder");
        copy(&fixtures().join(name), &root.path().join(name));
        copy(&fixtures().join("runtime"), &root.path().join("runtime"));
        Package { root, name }
    }

    fn path(&self, file: &str) -> PathBuf {
        self.root.path().join(self.name).join(file)
    }

    fn generate(&self, flags: &[&str]) -> Answer {
        run(&[&["generate", "--fast"], flags].concat(), &self.path(""))
    }

    fn edit(&self, file: &str, from: &str, to: &str) {
        let text = fs::read_to_string(self.path(file)).expect("the file");
        assert!(text.contains(from), "{file} has {from}");
        fs::write(self.path(file), text.replace(from, to)).expect("the file");
    }

    fn generated(&self) -> BTreeMap<String, Vec<u8>> {
        generated(&self.path(""))
    }
}

fn run(flags: &[&str], path: &Path) -> Answer {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let mut arguments = vec!["apiloom".into()];
    arguments.extend(flags.iter().map(Into::into));
    arguments.push(path.as_os_str().to_owned());
    let mut console = Console {
        out: &mut out,
        err: &mut err,
        terminal: false,
    };
    let code = execute(arguments, &mut console);
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    Answer {
        code,
        out: text(out),
        err: text(err),
    }
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push(path);
        }
    }
    found
}

fn copy(from: &Path, to: &Path) {
    for file in files(from) {
        let target = to.join(file.strip_prefix(from).expect("it is inside"));
        fs::create_dir_all(target.parent().expect("it has a parent")).expect("a folder");
        fs::copy(&file, &target).expect("a copy");
    }
}

/// Every file in a folder called `generated`, by its path in the package.
fn generated(package: &Path) -> BTreeMap<String, Vec<u8>> {
    let inside = |path: &Path| {
        path.components()
            .any(|part| part.as_os_str() == "generated")
    };
    files(package)
        .into_iter()
        .map(|path| {
            (
                path.strip_prefix(package)
                    .expect("it is inside")
                    .to_path_buf(),
                path,
            )
        })
        .filter(|(relative, _)| inside(relative))
        .map(|(relative, path)| {
            let name = relative.to_string_lossy().replace('\\', "/");
            (name, fs::read(path).expect("the file"))
        })
        .collect()
}

#[test]
fn markers_of_go_in_comments_are_warnings() {
    let package = Package::of("solo");
    let text = fs::read_to_string(package.path("src/lib.rs")).expect("the file");
    let marked = text.replacen(
        "pub metadata: ObjectMeta",
        "/// +optional\n    // +kubebuilder:validation:MaxLength=3\n    pub metadata: ObjectMeta",
        1,
    );
    let marked = marked.replacen(
        "#[apiloom::resource",
        "// +genclient\n// +k8s:deepcopy-gen:interfaces=x\n/// Kept.\n#[apiloom::resource",
        1,
    );
    assert_ne!(marked, text);
    fs::write(package.path("src/lib.rs"), marked).expect("the file");
    let answer = package.generate(&[]);
    assert_eq!(answer.code, 0, "{}", answer.err);
    let lines = |start: &str| answer.err.matches(start).count();
    assert_eq!(lines("warning: "), 4, "{}", answer.err);
    assert_eq!(lines("error"), 0, "{}", answer.err);
    for part in [
        "src/lib.rs:",
        "+genclient",
        "no replacement is needed: every API type is `Clone`",
        "make the field an `Option`",
        "write `#[api(len(max = 3))]` on the field",
    ] {
        assert!(answer.err.contains(part), "{part}: {}", answer.err);
    }
    assert!(answer.out.contains("generated files"), "{}", answer.out);
}

// See `field_not_api` among the errors, too.
#[test]
fn field_types_may_get_their_schema_elsewhere() {
    let package = Package::of("solo");
    let fields = "pub metadata: ObjectMeta,
    pub derived: Derived,
    pub written: Vec<Written>,
    pub hidden: Option<Hidden>,
    pub by_macro: ByMacro,
    pub by_attribute: ByAttribute,
    pub by_other_derive: ByOtherDerive,
    #[schemars(with = \"String\")]
    pub other_form: NoSchema,
    pub marker: std::marker::PhantomData<NoSchema>,
    pub conditional: Conditional,
    pub later: made_by_a_macro::Later,
}

#[derive(Clone, schemars::JsonSchema)]
pub struct Derived;
pub struct Written;
impl schemars::JsonSchema for Written {}
pub struct Hidden;
const _: () = { impl schemars::JsonSchema for Hidden {} };
pub struct ByMacro;
described!(ByMacro);
#[described]
pub struct ByAttribute;
#[derive(Described)]
pub struct ByOtherDerive;
pub struct NoSchema;
#[cfg_attr(feature = \"x\", derive(schemars::JsonSchema))]
pub struct Conditional;

#[derive(Clone, Resource)]
#[resource(group = \"solo.example.com\", version = \"v1\", namespaced, storage)]
pub struct ByHand {
    pub metadata: ObjectMeta,
    pub spec: NoSchema,";
    package.edit("src/lib.rs", "pub metadata: ObjectMeta,", fields);
    let answer = package.generate(&[]);
    assert_eq!((answer.code, answer.err.as_str()), (0, ""));
}

fn check_golden(name: &'static str) {
    let committed = generated(&fixtures().join(name));
    let package = Package::of(name);
    for file in committed.keys() {
        fs::remove_file(package.path(file)).expect("a generated file");
    }
    let answer = package.generate(&[]);
    assert_eq!((answer.code, answer.err.as_str()), (0, ""));
    let made = package.generated();
    assert_eq!(
        made.keys().collect::<Vec<_>>(),
        committed.keys().collect::<Vec<_>>()
    );
    for (file, bytes) in &made {
        let (made, committed) = (
            String::from_utf8_lossy(bytes),
            String::from_utf8_lossy(&committed[file]),
        );
        assert_eq!(made, committed, "{file}");
    }
    package.generate(&[]);
    assert_eq!(package.generated(), made, "a second run changes nothing");
}

/// Checks the exit code of `--check`, and the files that it lists.
fn check_freshness(package: &Package, code: u8, said: &[&str]) {
    let before = package.generated();
    let answer = package.generate(&["--check"]);
    assert_eq!(answer.code, code, "{answer:?}");
    for line in said {
        assert!(
            answer.out.lines().any(|other| other == *line),
            "{line:?} in {answer:?}"
        );
    }
    assert_eq!(package.generated(), before, "a check writes nothing");
}

#[test]
fn shop_is_generated_as_committed() {
    check_golden("shop");
}

#[test]
fn forms_are_generated_as_committed() {
    check_golden("forms");
}

// Its package, modules, fields, plurals and indexes are called as keywords.
#[test]
fn keywords_are_generated_as_committed() {
    check_golden("gen");
}

/// All files of a folder, by their paths in it.
fn contents(folder: &Path) -> BTreeMap<PathBuf, String> {
    let all = files(folder).into_iter().map(|path| {
        let text = fs::read_to_string(&path).expect("a text");
        let path = path.strip_prefix(folder).expect("it is inside");
        (path.to_path_buf(), text)
    });
    all.collect()
}

#[test]
fn clients_may_be_a_package_of_their_own() {
    let package = Package::of("forms");
    let client = package.root.path().join("forms-client");
    let folder = client.to_string_lossy().into_owned();
    let generate = |flags: &[&str]| {
        let all = [flags, &["--client-crate", &folder]].concat();
        package.generate(&all)
    };
    let missing = generate(&["--check"]);
    assert_eq!(missing.code, 1, "{missing:?}");
    assert!(
        missing.err.contains("Cargo.toml does not exist"),
        "{missing:?}"
    );
    assert!(!client.exists(), "a check writes nothing");

    assert_eq!(generate(&[]).code, 0);
    let made = contents(&client);
    assert_eq!(made, contents(&fixtures().join("forms-client")));
    let fresh = generate(&["--check"]);
    assert_eq!(fresh.code, 0, "{fresh:?}");
    assert!(
        fresh
            .out
            .contains("forms-client: 7 generated files, all fresh"),
        "{fresh:?}"
    );

    // What is written once belongs to the user, who may take features out.
    let manifest = client.join("Cargo.toml");
    let own = "[package]\nname = \"own\"\n[features]\nfake = []\n";
    fs::write(&manifest, own).expect("a file");
    assert_eq!(generate(&[]).code, 0);
    let text = fs::read_to_string(&manifest).expect("the file");
    assert_eq!(text, own);
    let generated = client.join("src/generated");
    let modules = fs::read_to_string(generated.join("mod.rs")).expect("the file");
    assert!(modules.contains("mod fake;") && !modules.contains("kube"));
    assert!(generated.join("fake.rs").exists() && !generated.join("kube.rs").exists());

    let methods = client.join("src/generated/methods.rs");
    fs::write(&methods, "// mine").expect("a file");
    let edited = generate(&["--check"]);
    assert_eq!(edited.code, 1, "{edited:?}");
    assert!(
        edited
            .out
            .contains("edited by hand: src/generated/methods.rs"),
        "{edited:?}"
    );
    let kept = generate(&[]);
    assert_eq!(kept.code, 1, "{kept:?}");
    assert_eq!(fs::read_to_string(&methods).expect("the file"), "// mine");
    assert_eq!(generate(&["--force"]).code, 0);
    assert_ne!(fs::read_to_string(&methods).expect("the file"), "// mine");
}

// The package of the kinds need not have clients itself.
#[test]
fn a_package_of_clients_has_builders_and_the_fake_of_a_package_without() {
    let package = Package::of("shop");
    let client = package.root.path().join("shop-client");
    let folder = client.to_string_lossy().into_owned();
    assert_eq!(package.generate(&["--client-crate", &folder]).code, 0);
    let read = |file: &str| fs::read_to_string(client.join(file)).expect(file);
    let manifest = read("Cargo.toml");
    assert!(
        manifest.contains("fake = [\"apiloom/testing\"]"),
        "{manifest}"
    );
    assert!(!manifest.contains("kube"), "{manifest}");
    assert!(read("src/generated/fake.rs").contains("(::shop::generated::install)"));
    let builders = read("src/generated/apply.rs");
    assert!(builders.contains(" of ::shop::"), "{builders}");
    assert!(!builders.contains("crate::"), "{builders}");
    assert!(!package.path("src/generated/apply.rs").exists());
}

#[test]
fn solo_is_generated_as_committed() {
    check_golden("solo");
}

#[test]
fn model_is_printed_as_committed() {
    let answer = run(&["model"], &fixtures().join("shop"));
    assert_eq!((answer.code, answer.err.as_str()), (0, ""));
    insta::assert_snapshot!(answer.out);
}

#[test]
fn package_may_be_named_by_its_manifest() {
    let answer = run(
        &["generate", "--fast", "--check"],
        &fixtures().join("shop/Cargo.toml"),
    );
    assert_eq!(answer.code, 0, "{answer:?}");
}

#[test]
fn fresh_files_pass_the_check() {
    check_freshness(
        &Package::of("shop"),
        0,
        &["shop: 6 generated files, all fresh"],
    );
}

#[test]
fn edited_type_fails_the_check_until_generated() {
    let package = Package::of("solo");
    package.edit("src/lib.rs", "namespaced", "namespaced, readonly");
    check_freshness(&package, 1, &["outdated: generated/manifests/rbac.yaml"]);
    assert_eq!(package.generate(&[]).code, 0);
    check_freshness(&package, 0, &[]);
}

#[test]
fn hub_may_be_named_by_an_alias() {
    let package = Package::of("shop");
    package.edit("src/v1beta1/order.rs", "newer::Order,", "Latest,");
    package.edit(
        "src/v1beta1/order.rs",
        "use crate::v1 as newer;",
        "type Latest = crate::v1::Order;",
    );
    check_freshness(&package, 0, &[]);
}

#[test]
fn check_shows_the_changed_lines() {
    let package = Package::of("solo");
    package.edit(
        "src/lib.rs",
        "namespaced",
        "namespaced, verbs(skip = [list])",
    );
    check_freshness(
        &package,
        1,
        &["  -  verbs: [get, list, watch]", "  +  verbs: [get, watch]"],
    );
}

#[test]
fn missing_file_fails_the_check() {
    let package = Package::of("solo");
    fs::remove_file(package.path("src/generated/mod.rs")).expect("a generated file");
    check_freshness(&package, 1, &["missing: src/generated/mod.rs"]);
}

#[test]
fn missing_manifest_fails_the_check() {
    let package = Package::of("solo");
    fs::remove_file(package.path("generated/manifest.json")).expect("the manifest");
    check_freshness(&package, 1, &["missing: generated/manifest.json"]);
}

#[test]
fn hand_edit_is_not_overwritten() {
    let package = Package::of("solo");
    package.edit("src/generated/install.rs", "thing_v1", "thing_v2");
    check_freshness(&package, 1, &["edited by hand: src/generated/install.rs"]);
    let before = package.generated();
    let answer = package.generate(&[]);
    assert_eq!(answer.code, 1);
    assert!(
        answer
            .err
            .contains("src/generated/install.rs (edited by hand)"),
        "{answer:?}"
    );
    assert_eq!(package.generated(), before);
}

#[test]
fn hand_edit_is_not_overwritten_when_the_record_is_missing() {
    let package = Package::of("solo");
    fs::remove_file(package.path("generated/manifest.json")).expect("the manifest");
    package.edit("src/generated/install.rs", "thing_v1", "thing_v2");
    check_freshness(&package, 1, &["not on record: src/generated/install.rs"]);
    let before = package.generated();
    let answer = package.generate(&[]);
    assert_eq!(answer.code, 1);
    for said in [
        "could lose what was written by hand",
        "src/generated/install.rs (not on record)",
        "note: generated/manifest.json records what was generated",
        "--force",
    ] {
        assert!(answer.err.contains(said), "{answer:?}");
    }
    assert_eq!(package.generated(), before);
    assert_eq!(package.generate(&["--force"]).code, 0);
    assert_eq!(package.generated(), generated(&fixtures().join("solo")));
}

/// As after a merge that took the manifest of one side and the files of the other.
#[test]
fn hand_edit_is_not_overwritten_when_the_record_leaves_the_file_out() {
    let package = Package::of("solo");
    let manifest = package.path("generated/manifest.json");
    let text = fs::read_to_string(&manifest).expect("the manifest");
    let mut record: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let files = record["files"].as_object_mut().expect("an object");
    files
        .remove("src/generated/install.rs")
        .expect("it is on record");
    fs::write(&manifest, record.to_string()).expect("the manifest");
    package.edit("src/generated/install.rs", "thing_v1", "thing_v2");
    let before = package.generated();
    assert_eq!(package.generate(&[]).code, 1);
    assert_eq!(package.generated(), before);
}

/// Fresh files need no manifest.
#[test]
fn missing_record_is_written_again() {
    let package = Package::of("solo");
    fs::remove_file(package.path("generated/manifest.json")).expect("the manifest");
    assert_eq!(package.generate(&[]).code, 0);
    assert_eq!(package.generated(), generated(&fixtures().join("solo")));
}

#[test]
fn hand_edit_is_overwritten_by_force() {
    let package = Package::of("solo");
    package.edit("src/generated/install.rs", "thing_v1", "thing_v2");
    let answer = package.generate(&["--force"]);
    assert_eq!(answer.code, 0);
    assert!(
        answer.err.starts_with("overwriting ")
            && answer
                .err
                .ends_with("src/generated/install.rs (edited by hand)\n"),
        "{answer:?}"
    );
    assert_eq!(package.generated(), generated(&fixtures().join("solo")));
}

#[test]
fn file_of_someone_else_is_not_overwritten() {
    let package = Package::of("solo");
    fs::remove_file(package.path("generated/manifest.json")).expect("the manifest");
    fs::write(package.path("generated/main.rs"), "fn main() {}\n").expect("a file");
    let answer = package.generate(&[]);
    assert_eq!(answer.code, 1);
    assert!(
        answer
            .err
            .contains("generated/main.rs (not written by apiloom)"),
        "{answer:?}"
    );
}

#[test]
fn stale_file_is_removed() {
    let package = Package::of("solo");
    // The server moves into a package of its own.
    fs::create_dir_all(package.path("server")).expect("a folder");
    let manifest = fs::read_to_string(package.path("Cargo.toml")).expect("the file");
    let server = manifest
        .replace("\"solo\"", "\"solo-own\"")
        .replace("../runtime", "../../runtime");
    fs::write(package.path("server/Cargo.toml"), server).expect("a file");
    check_freshness(
        &package,
        1,
        &[
            "stale: generated/main.rs",
            "missing: server/generated/main.rs",
        ],
    );
    assert_eq!(package.generate(&[]).code, 0);
    assert!(!package.path("generated/main.rs").exists());
    check_freshness(&package, 0, &[]);
}

#[test]
fn server_may_be_anywhere() {
    let package = Package::of("solo");
    let manifest = fs::read_to_string(package.path("Cargo.toml")).expect("the file");
    let server = manifest.replace("\"solo\"", "\"solo-own\"");
    fs::create_dir_all(package.path("../server")).expect("a folder");
    fs::write(package.path("../server/Cargo.toml"), server).expect("a file");
    let manifest = format!("{manifest}\n[package.metadata.apiloom]\nserver = \"../server\"\n");
    fs::write(package.path("Cargo.toml"), manifest).expect("the file");
    assert_eq!(package.generate(&[]).code, 0);
    assert!(package.path("../server/generated/main.rs").exists());
    check_freshness(&package, 0, &[]);

    package.edit("Cargo.toml", "../server", "../nowhere");
    let answer = package.generate(&[]);
    assert_eq!(answer.code, 1);
    assert!(answer.err.contains("no server package"), "{answer:?}");
    // The files generated for the other server are stale, although they are outside the package.
    package.edit("Cargo.toml", "../nowhere", ".");
    assert_eq!(package.generate(&[]).code, 0);
    assert!(!package.path("../server/generated/main.rs").exists());
}

#[test]
fn broken_generated_files_do_not_stop_generation() {
    let package = Package::of("solo");
    fs::write(package.path("src/generated/mod.rs"), "pub mod {").expect("a file");
    assert_eq!(package.generate(&["--force"]).code, 0);
    assert_eq!(package.generated(), generated(&fixtures().join("solo")));
}

#[test]
fn damaged_manifest_is_told() {
    let package = Package::of("solo");
    for (text, said) in [
        ("{", "manifest.json is damaged"),
        (
            "{\n<<<<<<< HEAD\n",
            "manifest.json has the conflict markers of a merge",
        ),
    ] {
        fs::write(package.path("generated/manifest.json"), text).expect("a file");
        let answer = package.generate(&[]);
        assert_eq!(answer.code, 1);
        assert!(answer.err.contains(said), "{answer:?}");
        let help = "help: restore it, or remove it and run: apiloom generate ";
        assert!(answer.err.contains(help), "{answer:?}");
    }
    // Following the help loses nothing.
    fs::remove_file(package.path("generated/manifest.json")).expect("the manifest");
    package.edit("src/generated/install.rs", "thing_v1", "thing_v2");
    assert_eq!(package.generate(&[]).code, 1);
    package.edit("src/generated/install.rs", "thing_v2", "thing_v1");
    assert_eq!(package.generate(&[]).code, 0);
}

#[test]
fn damaged_manifest_is_written_anew_by_force() {
    let package = Package::of("solo");
    fs::write(package.path("generated/manifest.json"), "{").expect("a file");
    assert_eq!(package.generate(&["--force"]).code, 0);
    assert_eq!(package.generated(), generated(&fixtures().join("solo")));
}

#[test]
fn manifest_cannot_name_files_outside() {
    let package = Package::of("solo");
    package.edit(
        "generated/manifest.json",
        "src/generated/mod.rs",
        "src/generated/../lib.rs",
    );
    let answer = package.generate(&[]);
    assert_eq!(answer.code, 1, "{answer:?}");
    assert!(package.path("src/lib.rs").exists());
}

#[test]
fn checkout_with_other_line_ends_is_fresh() {
    let package = Package::of("solo");
    package.edit("src/generated/install.rs", "\n", "\r\n");
    check_freshness(&package, 0, &[]);
}

#[test]
fn generated_rust_is_formatted() {
    for name in [
        "shop/src/generated/mod.rs",
        "shop/server/generated/main.rs",
        "solo/generated/main.rs",
    ] {
        let status = std::process::Command::new("rustfmt")
            .args(["--edition", "2024", "--check"])
            .arg(fixtures().join(name))
            .status()
            .expect("rustfmt");
        assert!(status.success(), "{name}");
    }
}

#[test]
fn generator_and_runtime_agree_on_the_contract() {
    assert_eq!(apiloom_cli::generate::CONTRACT, apiloom::codegen::CONTRACT);
}

#[test]
fn generated_main_is_short() {
    let main =
        fs::read_to_string(fixtures().join("shop/server/generated/main.rs")).expect("a golden");
    let code = main.lines().filter(|line| !line.starts_with("//"));
    assert!(code.count() <= 10, "{main}");
}

fn check_usage(arguments: &[&str], code: u8, said: &str) {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let all = std::iter::once("apiloom")
        .chain(arguments.iter().copied())
        .map(Into::into);
    let mut console = Console {
        out: &mut out,
        err: &mut err,
        terminal: false,
    };
    assert_eq!(execute(all, &mut console), code);
    let text = [String::from_utf8_lossy(&out), String::from_utf8_lossy(&err)].concat();
    assert!(text.contains(said), "{said:?} in {text}");
}

#[test]
fn wrong_flags_end_with_two() {
    check_usage(&["generate"], 2, "<PATH>");
    check_usage(&["generate", "x", "--chek"], 2, "--check");
    check_usage(
        &["generate", "x", "--check", "--force"],
        2,
        "cannot be used with",
    );
    check_usage(&["--help"], 0, "generate");
}

#[test]
fn wrong_paths_end_with_one() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let write = |path: &str, text: &str| {
        let path = dir.path().join(path);
        fs::create_dir_all(path.parent().expect("it has a parent")).expect("a folder");
        fs::write(path, text).expect("a file");
    };
    let check = |path: &str, said: &str| {
        check_usage(
            &["generate", &dir.path().join(path).display().to_string()],
            1,
            said,
        );
    };
    let head = "[workspace]\n[package]\nname = \"p\"\nedition = \"2024\"\n";
    write("inner/package/Cargo.toml", head);
    write("inner/package/src/main.rs", "");
    write("bare/src/lib.rs", "");
    write("bare/Cargo.toml", head);
    write("no_bin/src/lib.rs", "");
    write(
        "no_bin/Cargo.toml",
        &format!("{head}[dependencies]\napiloom = \"0.1\"\n"),
    );
    write("renamed/src/lib.rs", "");
    write(
        "renamed/Cargo.toml",
        &format!("{head}[dependencies]\nloom = {{ package = \"apiloom\", version = \"0.1\" }}\n"),
    );
    write(
        "space/Cargo.toml",
        "[workspace]\nmembers = [\"member\"]\nresolver = \"3\"\n",
    );
    write("space/member/src/lib.rs", "");
    write(
        "space/member/Cargo.toml",
        "[package]\nname = \"m\"\nedition = \"2024\"\n[dependencies]\napiloom = \"0.1\"\n",
    );
    write("broken/Cargo.toml", "[package");

    check("nothing", "no such path");
    check("brooken", "did you mean");
    check("inner", "did you mean");
    check("bare/src/lib.rs", "neither a directory nor a Cargo.toml");
    check("inner/package", "has no library");
    check("bare", "does not depend on apiloom");
    check("no_bin", "[[bin]]");
    check("renamed", "keep the name `apiloom`");
    check("space", "is a workspace, not a package");
    check("space", "space/member");
    check("broken", "cargo cannot read");
}

#[test]
fn types_for_kube_rs_need_a_feature_with_the_crate() {
    let package = Package::of("solo");
    let kube = "\n[package.metadata.apiloom]\nkube = true\n\n[workspace]";
    package.edit("Cargo.toml", "\n[workspace]", kube);
    let answer = package.generate(&[]);
    assert_eq!(answer.code, 1, "{answer:?}");
    for part in [
        "no cargo feature `kube` with the dependency",
        "`kube = [\"dep:kube\"]` to [features] in ",
    ] {
        assert!(answer.err.contains(part), "{part}: {}", answer.err);
    }
    let dependency = "[dependencies]\nkube = { version = \"5\", optional = true }\n";
    package.edit("Cargo.toml", "[dependencies]\n", dependency);
    let answer = package.generate(&[]);
    assert_eq!((answer.code, answer.err.as_str()), (0, ""));
    let generated = |file: &str| {
        let text = fs::read_to_string(package.path(&format!("src/generated/{file}")));
        text.expect("the file")
    };
    insta::assert_snapshot!("types_for_kube_rs", generated("kube.rs"));
    let modules = generated("mod.rs");
    assert!(
        modules.contains("#[cfg(feature = \"kube\")]\n#[rustfmt::skip]\npub mod kube;"),
        "{modules}"
    );
    check_freshness(&package, 0, &[]);
}
