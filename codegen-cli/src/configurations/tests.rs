//! From source to the builders' declarations.

use std::fs;

use super::*;
use crate::checks;
use crate::package::{Package, ServerPackage};
use crate::source::Externs;
use crate::view::ApplyView;

/// The declarations of a package with this `lib.rs`, and its warnings.
fn declarations(source: &str) -> (String, Vec<String>) {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("lib.rs");
    let head = "//! Test.\npub mod generated;\nuse apiloom::prelude::*;\n\
        apiloom::group! { name = \"x.com\", versions = [v1] }\n";
    fs::write(&root, format!("{head}{source}")).unwrap();
    let externs = Externs {
        apiloom: vec!["apiloom".to_owned()],
        others: vec!["serde_json".to_owned(), "other".to_owned()],
    };
    let krate = Crate::load(&root, externs, &|path| path.display().to_string());
    let found = crate::collect::collect(&krate);
    assert!(
        krate.problems.is_empty() && found.problems.is_empty(),
        "{:?}",
        found.problems
    );
    let package = Package {
        dir: dir.path().to_owned(),
        name: "p".to_owned(),
        crate_name: "p".to_owned(),
        root,
        externs: Externs::default(),
        server: ServerPackage::None {
            crate_path: "p".to_owned(),
        },
        openapi_v2: false,
        clients: true,
        kube: false,
        fake: false,
        target_dir: dir.path().to_owned(),
        apiloom: None,
        apiloom_version: String::new(),
        has_client_crate: false,
    };
    let mut model = checks::check(&krate, &found, &package).unwrap();
    let (configurations, warnings) = collect(&krate, &found, &model);
    model.configurations = configurations;
    let mut text = String::new();
    for module in ApplyView::new(&model).modules {
        for builder in module.builders {
            text += &format!("{}\n", builder.head);
            builder
                .lines
                .iter()
                .for_each(|line| text += &format!("  {line}\n"));
        }
    }
    let warnings = warnings.iter().map(|warning| format!("{warning:?}"));
    (text, warnings.collect())
}

fn check(source: &str, expected: &str) {
    let (text, warnings) = declarations(source);
    let expected: Vec<&str> = expected.lines().map(str::trim_end).collect();
    let got: Vec<&str> = text.lines().collect();
    assert_eq!(got, expected, "{text}");
    assert!(warnings.is_empty(), "{warnings:?}");
}

/// A kind with these fields.
fn kind(fields: &str) -> String {
    format!(
        "#[apiloom::resource(group = \"x.com\", version = \"v1\", namespaced, storage)]\n\
         pub struct Thing {{ pub metadata: ObjectMeta, {fields} }}\n"
    )
}

#[test]
fn each_type_has_its_form() {
    let fields = "pub a: String, pub b: Option<i32>, pub c: Vec<String>, pub d: BTreeMap<String, String>,
        pub e: Option<Quantity>, pub f: Vec<Time>, pub g: BTreeMap<String, serde_json::Value>,
        pub h: Option<Vec<u8>>, pub i: BTreeMap<String, Vec<u8>>, #[api(nullable)] pub j: Option<String>,
        pub k: Vec<Vec<i64>>, pub r#type: bool, pub l: Option<Word>, pub m: BTreeMap<Word, i32>,
        #[api(json = \"oTher\")] pub n: Option<Box<other::Whole>>, #[cfg(feature = \"x\")] pub o: bool,
        pub labels: String, #[api(nullable)] pub p: Option<Vec<u8>>, pub q: BTreeMap<String, BTreeMap<String, String>>,
        pub s: SortedMap<String, String>,";
    let word = "#[apiloom::api]\npub enum Word { A, B }\n";
    check(
        &(kind(fields) + word),
        "kind Thing(namespaced) of crate::Thing:
  a \"a\": text,
  b \"b\": value(i32),
  c \"c\": texts,
  d \"d\": text_map,
  e \"e\": value(::apiloom::prelude::Quantity),
  f \"f\": list(::apiloom::prelude::Time),
  g \"g\": map(::serde_json::Value),
  h \"h\": bytes(Vec<u8>),
  i \"i\": bytes(::std::collections::BTreeMap<String, Vec<u8>>),
  j \"j\": nullable(String),
  k \"k\": value(Vec<Vec<i64>>),
  r#type \"type\": value(bool),
  l \"l\": value(crate::Word),
  m \"m\": value(::std::collections::BTreeMap<crate::Word, i32>),
  n \"oTher\": value(::other::Whole),
  #[cfg(feature = \"x\")] o \"o\": value(bool),
  set_labels \"labels\": text,
  p \"p\": bytes(Option<Vec<u8>>),
  q \"q\": value(::std::collections::BTreeMap<String, ::std::collections::BTreeMap<String, String>>),
  s \"s\": text_map;",
    );
}

#[test]
fn structs_and_unions_that_a_kind_reaches_have_builders() {
    let source = kind(
        "pub spec: Option<inner::Spec>, pub all: Vec<inner::Spec>, pub by_name: BTreeMap<String, inner::Spec>,
        #[api(flatten)] pub common: inner::Common, pub deep: Vec<Vec<inner::Spec>>, pub edit_spec: bool,",
    ) + "mod inner {
        use apiloom::prelude::*;
        type Again = Spec;
        #[apiloom::api] pub struct Spec { pub new: String, pub child: Option<Box<Again>>, pub source: Source, #[api(nullable)] pub none: Option<Common> }
        #[apiloom::api] pub struct Common { pub shared: bool, pub of_other: super::other_module::Spec }
        #[apiloom::api] pub enum Source { Inline(String), File { path: String }, Type(Common) }
        #[apiloom::api] pub struct Unreached { pub a: bool }
    }
    mod other_module { use apiloom::prelude::*; #[apiloom::api] pub struct Spec {} }
    ";
    check(
        &source,
        "kind Thing(namespaced) of crate::Thing:
  spec \"spec\": part(InnerSpec, set_edit_spec),
  all \"all\": parts(InnerSpec, edit_all),
  by_name \"byName\": part_map(InnerSpec, edit_by_name),
  shared \"shared\": value(bool),
  of_other \"ofOther\": part(OtherModuleSpec, edit_of_other),
  deep \"deep\": value(Vec<Vec<InnerSpec>>),
  edit_spec \"editSpec\": value(bool);
part Common:
  shared \"shared\": value(bool),
  of_other \"ofOther\": part(OtherModuleSpec, edit_of_other);
part InnerSpec:
  set_new \"new\": text,
  child \"child\": part(InnerSpec, edit_child),
  source \"source\": part(Source, edit_source),
  none \"none\": nullable(Common);
part OtherModuleSpec: ;
union Source:
  inline \"inline\": text,
  file \"file\": part(SourceFile, edit_file),
  r#type \"type\": part(Common, edit_type);
part SourceFile:
  path \"path\": text;",
    );
}

#[test]
fn variants_called_as_keywords_have_setters() {
    let source = "#[apiloom::api] pub enum Source { Crate(String), Super(String), Gen(String) }";
    check(
        &(kind("pub source: Source,") + source),
        "kind Thing(namespaced) of crate::Thing:
  source \"source\": part(Source, edit_source);
union Source:
  crate_ \"crate\": text,
  super_ \"super\": text,
  r#gen \"gen\": text;",
    );
}

#[test]
fn kinds_without_clients_or_patch_have_none() {
    let source = kind("").replace("storage", "storage, no_client")
        + &kind("")
            .replace("Thing", "Other")
            .replace("storage", "storage, verbs(skip = [patch])")
        + &kind("")
            .replace("Thing", "Cluster")
            .replace("namespaced", "cluster, status")
            .replace("}", "pub status: Option<bool> }");
    check(
        &source,
        "kind Cluster(cluster, status) of crate::Cluster:
  status \"status\": value(bool);",
    );
}

#[test]
fn what_cannot_be_named_is_json_with_a_warning() {
    let source = kind(
        "pub a: Hidden, pub b: Vec<Hidden>, pub c: (i32, i32), pub d: inner::Private,
        #[serde(with = \"other::form\")] #[schemars(with = \"i32\")] pub e: i32,",
    ) + "use other::*;
    mod inner { pub use self::deep::Private; mod deep { pub struct Private; impl schemars::JsonSchema for Private {} } }";
    let (text, warnings) = declarations(&source);
    let json = "::apiloom::codegen::serde_json::Value";
    assert_eq!(
        text,
        format!(
            "kind Thing(namespaced) of crate::Thing:
  a \"a\": value({json}),
  b \"b\": list({json}),
  c \"c\": value({json}),
  d \"d\": value(crate::inner::Private),
  e \"e\": value({json});
"
        )
    );
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    assert!(warnings[0].contains("`Hidden`"), "{warnings:?}");
    assert!(warnings[1].contains("`(i32,i32)`"), "{warnings:?}");
}
