//! Tests of parsing `#[resource]` roots: models and errors.

use syn::DeriveInput;

use super::{
    ColumnSource, Deletion, Dependents, FieldRef, Kind, ObjectDeletion, Scope, Verb, parse_kind,
};
use crate::Diagnostics;

fn read(source: &str) -> (Option<Kind>, Vec<String>) {
    let item: DeriveInput = syn::parse_str(source).unwrap();
    let mut diagnostics = Diagnostics::default();
    let kind = parse_kind(&item, &mut diagnostics);
    (
        kind,
        diagnostics
            .errors()
            .iter()
            .map(ToString::to_string)
            .collect(),
    )
}

/// The kind with these additional keys, which must have no errors.
fn kind(keys: &str) -> Kind {
    let (kind, errors) = read(&format!(
        "#[resource(group = \"example.com\", version = \"v1\", {keys})] struct NetworkPolicy {{ metadata: ObjectMeta }}"
    ));
    assert_eq!(errors, [""; 0]);
    kind.unwrap()
}

#[test]
fn names_follow_from_the_struct() {
    let kind = kind("namespaced");
    assert_eq!(kind.kind, "NetworkPolicy");
    assert_eq!(kind.plural, "networkpolicies");
    assert_eq!(kind.singular, "networkpolicy");
    assert_eq!(kind.list_kind, "NetworkPolicyList");
    assert_eq!(
        (kind.api_version().as_str(), kind.scope),
        ("example.com/v1", Scope::Namespaced)
    );
}

#[test]
fn several_attributes_are_read_as_one() {
    let source = "#[apiloom::resource(group = \"\", version = \"v1\")] #[resource(cluster)] #[apiloom::api(title = \"T\")] \
                  struct A { metadata: ObjectMeta }";
    let (kind, errors) = read(source);
    let kind = kind.unwrap();
    assert_eq!(errors, [""; 0]);
    assert_eq!(
        (kind.api_version().as_str(), kind.scope),
        ("v1", Scope::Cluster)
    );
    assert_eq!(kind.root.rules.title.as_deref(), Some("T"));
}

#[test]
fn verbs_are_sorted_and_limited() {
    let check = |keys: &str, expected: &str| {
        let verbs: Vec<&str> = kind(keys).verbs.iter().map(|verb| verb.as_str()).collect();
        assert_eq!(verbs.join(" "), expected, "{keys}");
    };
    check("namespaced, readonly", "get list watch");
    check(
        "namespaced, verbs(only = [\"watch\", create])",
        "create watch",
    );
    check(
        "namespaced, verbs(skip = [deletecollection])",
        "create delete get list patch update watch",
    );
    assert_eq!(kind("namespaced").verbs, Verb::DEFAULT);
}

#[test]
fn kube_rs_spellings_and_ours_are_the_same() {
    let ours = kind(
        "namespaced, short = [\"np\"], category(\"all\"), column(name = \"A\", path = spec.a)",
    );
    let kubes = kind(
        "namespaced, shortname = \"np\", category = \"all\", printcolumn(name = \"A\", path = spec.a)",
    );
    assert_eq!(
        (&ours.short_names, &ours.categories),
        (&kubes.short_names, &kubes.categories)
    );
    assert_eq!(ours.columns.len(), kubes.columns.len());
}

#[test]
fn paths_are_rust_names_or_json_names() {
    let kind = kind(
        "namespaced, select(spec.r#type, \".spec.type\"), column(name = \"A\", with = Self::a)",
    );
    let paths: Vec<&FieldRef> = kind
        .selectable
        .iter()
        .flat_map(|field| &field.paths)
        .collect();
    let [FieldRef::Typed(names), FieldRef::Json(text)] = paths[..] else {
        panic!("{:?}", kind.selectable)
    };
    assert_eq!((names[1].text.as_str(), names[1].raw), ("type", true));
    assert_eq!(*text, ".spec.type");
    let ColumnSource::With(function) = &kind.columns[0].source else {
        panic!("{:?}", kind.columns)
    };
    assert_eq!(function.text(), "Self::a");
}

#[test]
fn a_selectable_field_may_have_a_name_and_several_paths() {
    let kind = kind("namespaced, selectable(a.b, source = [a.b, \".c\"], \"x.y\" = a)");
    let fields: Vec<(Option<&str>, usize)> = kind
        .selectable
        .iter()
        .map(|field| {
            let name = field.name.as_ref().map(|name| name.value.as_str());
            (name, field.paths.len())
        })
        .collect();
    assert_eq!(fields, [(None, 1), (Some("source"), 2), (Some("x.y"), 1)]);
}

#[test]
fn the_hub_keeps_the_path_that_was_written() {
    let spoke = kind("namespaced, spoke_of = v1beta1::NetworkPolicy");
    assert_eq!(
        spoke.spoke_of.map(|hub| hub.text()).as_deref(),
        Some("v1beta1::NetworkPolicy")
    );
}

#[test]
fn the_long_form_takes_names_from_serde() {
    let source = "#[derive(Clone, apiloom::Resource)] #[serde(rename_all = \"camelCase\")] \
                  #[resource(group = \"\", version = \"v1\", cluster)] \
                  struct A { metadata: ObjectMeta, #[serde(rename = \"IP\")] ip: String, long_name: String }";
    let (kind, errors) = read(source);
    assert_eq!(errors, [""; 0]);
    let names: Vec<String> = kind
        .unwrap()
        .root
        .fields
        .into_iter()
        .map(|field| field.json_name)
        .collect();
    assert_eq!(names, ["metadata", "IP", "longName"]);
}

#[test]
fn all_errors_of_an_item_are_reported_at_once() {
    let (_, errors) =
        read("#[resource(grp = \"x\", plural = 3, verbs(only = [lst]))] struct a { spec: String }");
    let ids: Vec<&str> = errors
        .iter()
        .map(|error| &error[error.len() - 6..])
        .collect();
    let expected = [
        "[E002]", "[E007]", "[E008]", "[E009]", "[E009]", "[E010]", "[E012]", "[E016]",
    ];
    assert_eq!(ids, expected, "{errors:#?}");
}

/// Checks that the errors of an item are exactly these.
#[track_caller]
fn check_errors(source: &str, expected: &[&str]) {
    assert_eq!(read(source).1, expected, "{source}");
}

#[test]
fn a_key_with_an_error_is_not_missing() {
    let check = |attributes: &str, expected: &[&str]| {
        check_errors(
            &format!("{attributes} struct A {{ metadata: M }}"),
            expected,
        );
    };
    check(
        "#[resource(gruop = \"x\", version = , namespced)]",
        &[
            "expected an expression [E001]",
            "unknown key `gruop` in #[resource] [E002]",
            "unknown key `namespced` in #[resource] [E002]",
        ],
    );
    check(
        "#[resource(\"group\" = \"x\", version = \"v1\" cluster status)]",
        &[
            "expected ident [E001]",
            "expected `,` [E001]",
            "expected `,` [E001]",
            "`A` has no field `status` [E031]",
        ],
    );
    check(
        "#[resource = \"x\"]",
        &["expected `#[resource(..)]` [E001]"],
    );
    let kind = "group = \"x\", version = \"v1\", cluster";
    check(
        &format!("#[resource({kind}, printcolumn(nmae = \"x\", pth = a.b))]"),
        &[
            "unknown key `nmae` in printcolumn(..) [E002]",
            "unknown key `pth` in printcolumn(..) [E002]",
        ],
    );
    check(
        &format!("#[resource({kind}, verbs(olny = [get]))]"),
        &["unknown key `olny` in verbs(..) [E002]"],
    );
    check(
        &format!("#[resource({kind}, lifecycle(replacement(\"g\", match, type)))]"),
        &[
            "`match` is a word of Rust [E062]",
            "`type` is a word of Rust [E062]",
        ],
    );
    check(
        &format!("#[resource({kind}, storage = false, selectable(a.match, a.b))]"),
        &[
            "`storage` takes no value [E006]",
            "`match` is a word of Rust [E062]",
        ],
    );
}

// Values that the generator compares with other kinds must not be guessed.
#[test]
fn a_kind_whose_names_are_unknown_is_none() {
    for (key, is_some) in [
        ("", true),
        ("shortname = 3", true),
        ("bananas", true),
        ("plural = 3", false),
        ("kind = ", false),
        ("spoke_off = v1::A", false),
    ] {
        let source = format!(
            "#[resource(group = \"x\", version = \"v1\", cluster, {key})] struct A {{ metadata: M }}"
        );
        assert_eq!(read(&source).0.is_some(), is_some, "{key}");
    }
    for keys in [
        "group = \"x\", version = \"v1\"",
        "version = \"v1\", cluster",
    ] {
        let source = format!("#[resource({keys})] struct A {{ metadata: M }}");
        assert!(read(&source).0.is_none(), "{keys}");
    }
}

#[test]
fn what_is_no_struct_is_read_too() {
    check_errors(
        "#[resource(bananas, group = \"x\", version = \"v1\", cluster)] #[api(bananas)]
         enum A { #[api(bananas)] B }",
        &[
            "unknown key `bananas` in #[resource] [E002]",
            "the root of a kind is a struct [E015]",
            "unknown key `bananas` in #[api] on an enum [E002]",
            "unknown key `bananas` in #[api] on a variant [E002]",
        ],
    );
    check_errors(
        "#[resource(group = \"x\", version = \"v1\", cluster)] #[api(bananas)]
         struct A<T> { #[api(bananas)] b: T }",
        &[
            "an API type has no generic parameters [E013]",
            "unknown key `bananas` in #[api] on a struct [E002]",
            "unknown key `bananas` in #[api] on a field [E002]",
            "`A` has no field `metadata` [E012]",
        ],
    );
}

#[test]
fn spans_have_line_and_column_for_the_generator() {
    let item: DeriveInput =
        syn::parse_str("#[resource(\n  bananas)]\nstruct A { metadata: M }").unwrap();
    let mut diagnostics = Diagnostics::default();
    parse_kind(&item, &mut diagnostics);
    let span = diagnostics.errors()[0].span;
    assert_eq!((span.start.start().line, span.start.start().column), (2, 2));
    assert_eq!(span.end.end().column, 9);
}

#[test]
fn no_input_panics() {
    for keys in [
        "",
        ",,,",
        "=",
        "()",
        "a(b(c(",
        "group = = \"x\"",
        "verbs(only)",
        "verbs(only = 1)",
        "column()",
        "lifecycle(removed)",
        "select()",
        "\u{e9} = 1",
        "printcolumn(path = a.b.c.0.1)",
    ] {
        let source = format!("#[resource({keys})] struct A {{ metadata: M }}");
        // Unbalanced tokens cannot be an attribute; all others must be parsed with errors.
        if syn::parse_str::<DeriveInput>(&source).is_ok() {
            assert_ne!(read(&source).1, [""; 0], "{keys}");
        }
    }
}

#[test]
fn a_status_may_be_written_with_metadata() {
    let source = "#[resource(group = \"\", version = \"v1\", cluster, \
                  subresource(name = \"status\", writes = with_metadata(status)))] \
                  struct A { metadata: ObjectMeta, status: Status }";
    let (kind, errors) = read(source);
    assert_eq!(errors, [""; 0]);
    let kind = kind.unwrap();
    let status = &kind.subresources[0];
    assert_eq!(
        status.writes,
        Some(super::Writes::WithMetadata("status".to_owned()))
    );
    // No create gives it.
    assert!(kind.root.fields[1].default.is_some());
}

#[test]
fn subresources_are_sorted_and_name_the_field_that_they_write() {
    let source = "#[resource(group = \"\", version = \"v1\", cluster, status, \
                  deletion(finalizers = spec.finalizers, phase = \".status.phase\"), \
                  subresource(name = \"finalize\", verbs = [update], writes = also(spec)), \
                  subresource(name = \"approval\", verbs(update, get), writes = only(long_name)), \
                  subresource(name = \"log\", verbs = [get]))] \
                  struct A { metadata: ObjectMeta, spec: Spec, long_name: Vec<String>, status: Status }";
    let (kind, errors) = read(source);
    assert_eq!(errors, [""; 0]);
    let kind = kind.unwrap();
    let shown: Vec<String> = kind
        .subresources
        .iter()
        .map(|sub| {
            let verbs: Vec<&str> = sub.verbs.iter().map(|verb| verb.as_str()).collect();
            format!("{} {} {:?}", sub.name.value, verbs.join("+"), sub.writes)
        })
        .collect();
    assert_eq!(
        shown,
        [
            "approval get+update Some(Only(\"longName\"))",
            "finalize update Some(Also(\"spec\"))",
            "log get None",
            "status get+patch+update Some(Only(\"status\"))",
        ]
    );
    let Deletion::Container { finalizers, phase } = kind.deletion else {
        panic!("{:?}", kind.deletion)
    };
    assert!(matches!(finalizers, FieldRef::Typed(names) if names.len() == 2));
    assert!(matches!(phase, FieldRef::Json(text) if text == ".status.phase"));
    // The field that a create cannot give has a default.
    let status = kind
        .root
        .fields
        .iter()
        .find(|field| field.json_name == "status");
    assert!(status.is_some_and(|field| field.default.is_some()));
    let spec = kind
        .root
        .fields
        .iter()
        .find(|field| field.json_name == "spec");
    assert!(spec.is_some_and(|field| field.default.is_none()));
}

#[test]
fn the_deletion_of_an_object_has_a_grace_period_and_a_policy() {
    let check = |keys: &str, expected: ObjectDeletion| {
        let Deletion::Object(rule) = kind(&format!("namespaced, {keys}")).deletion else {
            panic!("{keys}")
        };
        assert_eq!(rule, expected, "{keys}");
    };
    check("storage", ObjectDeletion::default());
    let graceful = ObjectDeletion {
        grace_seconds: Some(30),
        ..ObjectDeletion::default()
    };
    check("graceful_delete = 30", graceful);
    check(
        "deletion(dependents = orphan, returns = object), graceful_delete = 0",
        ObjectDeletion {
            grace_seconds: Some(0),
            dependents: Dependents::Orphan,
            returns_object: true,
        },
    );
    check(
        "graceful_delete = 30, deletion(dependents = delete, returns = status)",
        graceful,
    );
}

#[test]
fn a_kind_without_a_store_only_creates() {
    let review = kind("cluster, store = none");
    assert!(!review.has_store);
    assert_eq!(review.verbs, [Verb::Create]);
    assert!(kind("cluster").has_store);
}

#[test]
fn a_kind_of_code_is_read_unless_it_says_more() {
    let quote = kind("namespaced, store = code");
    assert!(!quote.has_store);
    assert_eq!(quote.verbs, [Verb::Get, Verb::List, Verb::Watch]);
    let listed = kind("namespaced, store = code, verbs(only = [list]), generation = none");
    assert_eq!(listed.verbs, [Verb::List]);
    let errors = |keys: &str| {
        let attribute = format!("#[resource(group = \"x\", version = \"v1\", cluster, {keys})]");
        read(&format!("{attribute} struct A {{ metadata: M }}")).1
    };
    for store in ["none", "code"] {
        let keys = format!("store = {store}, graceful_delete = 30");
        let expected = ["`graceful_delete` contradicts `store` [E011]"];
        assert_eq!(errors(&keys), expected, "{store}");
    }
    let expected = ["`readonly` contradicts `store` [E011]"];
    assert_eq!(errors("store = none, readonly"), expected);
}
