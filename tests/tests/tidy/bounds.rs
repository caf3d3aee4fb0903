//! The table of what a client can make the server keep: each bound stands in the sources as the table says, and a test tries it.
//! A second table has all state that outlives a request, so that nothing new is kept without a word on its bound.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use apiloom_tests::repository;

const TABLE: &str = include_str!("bounds.txt");

/// What is shared between requests, with what bounds it.
const STATE: &str = include_str!("state.txt");

/// The crates that a server keeps state in.
const CRATES: [&str; 17] = [
    "server",
    "parts/admission",
    "parts/aggregator",
    "parts/apiextensions",
    "parts/audit",
    "parts/authentication",
    "parts/authorization",
    "parts/encryption",
    "parts/garbage",
    "parts/namespaces",
    "http",
    "kinds",
    "registry",
    "storage",
    "meta",
    "schema",
    "cel",
];

/// State that several requests can change is behind one of these.
const SHARED: [&str; 5] = ["Mutex<", "RwLock<", "ArcSwap<", "ArcSwapOption<", "Family<"];

/// The lines that are wrong.
fn wrong_lines(table: &str) -> Vec<String> {
    let lines = table.lines().filter(|line| !line.starts_with('#'));
    lines
        .filter_map(|line| wrong(line).map(|why| format!("{line}: {why}")))
        .collect()
}

fn wrong(line: &str) -> Option<String> {
    let [_, bound_file, bound, test_file, test] = line.split(" | ").collect::<Vec<_>>()[..] else {
        return Some("it has not five parts".to_owned());
    };
    let read = |file: &str| fs::read_to_string(repository().join(file)).unwrap_or_default();
    if !read(bound_file).contains(bound) {
        return Some("the bound is not there".to_owned());
    }
    // A test has its attribute, or one that makes several, on a line before it.
    let text = read(test_file);
    let name = format!("fn {test}()");
    let mut before = text.split(&name);
    let is_test = before.next().is_some_and(|before| {
        let attributes = before.rsplit('}').next().unwrap_or_default();
        attributes.contains("#[test]") || attributes.contains("#[tokio::test")
    });
    (!is_test || before.next().is_none()).then(|| "the test is not there".to_owned())
}

#[test]
fn what_clients_can_make_the_server_keep_has_a_bound_and_a_test() {
    assert_eq!(wrong_lines(TABLE), Vec::<String>::new());
}

#[test]
fn a_bound_or_a_test_that_is_gone_is_found() {
    let line = TABLE.lines().nth(2).unwrap();
    for (from, to) in [
        ("20_000", "30_000"),
        ("silent_", "quiet_"),
        ("listener.rs", "listeners.rs"),
        (" | const", " const"),
    ] {
        assert_eq!(wrong_lines(&line.replace(from, to)).len(), 1, "{from}");
    }
}

/// The lines of a source that declare shared state: fields, statics and types around it. Tests have their own.
fn declared(source: &str) -> impl Iterator<Item = &str> {
    let product = source.split("#[cfg(test)]\nmod tests").next();
    let lines = product.unwrap_or_default().lines().map(str::trim);
    lines.filter(|line| {
        let is_declared = |begin: &str| line.starts_with(begin);
        let is_code = ["//", "let ", "fn ", "use ", "impl", "Self"]
            .iter()
            .all(|begin| !is_declared(begin));
        let is_field = line.ends_with(',') && line.contains(": ") && !line.contains(": &");
        let is_type = line.contains("struct ") || line.contains("static ");
        is_code && (is_field || is_type) && SHARED.iter().any(|shared| line.contains(shared))
    })
}

/// The declarations of a folder, each after its file.
fn declarations(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_dir() {
            if name != "tests" && name != "conformance" {
                declarations(&path, found);
            }
        } else if name.ends_with(".rs") && !name.ends_with("tests.rs") && name != "testing.rs" {
            let file = path.strip_prefix(repository()).expect("in it").display();
            let source = fs::read_to_string(&path).expect("a text");
            found.extend(declared(&source).map(|line| format!("{file} | {line}")));
        }
    }
}

#[test]
fn what_is_shared_between_requests_says_what_bounds_it() {
    let mut found = BTreeSet::new();
    for name in CRATES {
        declarations(
            &repository().join("runtime").join(name).join("src"),
            &mut found,
        );
    }
    let lines = STATE.lines().filter(|line| !line.starts_with('#'));
    let told = lines.filter_map(|line| {
        let (declaration, bound) = line.rsplit_once(" | ")?;
        (!bound.is_empty()).then(|| declaration.to_owned())
    });
    let told: BTreeSet<String> = told.collect();
    let missing: Vec<_> = found.difference(&told).collect();
    assert!(
        missing.is_empty(),
        "new state that outlives a request: write a line into state.txt on what bounds it, and into bounds.txt if a client can fill it: {missing:#?}"
    );
    let gone: Vec<_> = told.difference(&found).collect();
    assert!(
        gone.is_empty(),
        "state that is not there any more: {gone:#?}"
    );
}

#[test]
fn shared_state_is_found_where_it_is_declared() {
    let source = "struct Kept {\n    all: Mutex<HashMap<String, Kept>>,\n}\nstatic ALL: LazyLock<Mutex<Table>> = LazyLock::new(Mutex::default);\n\
                  /// A Mutex<()>,\nfn take(\n    all: &Mutex<()>,\n) {\n    let all: Mutex<()> = x;\n}\npub(crate) struct Recent<T>(Mutex<Entries<T>>);\n\
                  #[cfg(test)]\nmod tests {\n    static OF_TESTS: Mutex<()> = Mutex::new(());\n}\n";
    assert_eq!(declared(source).count(), 3);
}
