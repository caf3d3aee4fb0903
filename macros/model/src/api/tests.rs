//! Tests of parsing `#[api]` items: models and errors.

use syn::DeriveInput;

use super::{ApiEnum, ApiStruct, ApiType, Content, ListTopology, Shape, Transition, parse_api};
use crate::Diagnostics;

fn read(source: &str) -> (Option<ApiType>, Vec<String>) {
    let item: DeriveInput = syn::parse_str(source).unwrap();
    let mut diagnostics = Diagnostics::default();
    let ty = parse_api(&item, &mut diagnostics);
    (
        ty,
        diagnostics
            .errors()
            .iter()
            .map(ToString::to_string)
            .collect(),
    )
}

fn structure(source: &str) -> ApiStruct {
    match read(source) {
        (Some(ApiType::Struct(model)), errors) if errors.is_empty() => model,
        other => panic!("{other:?}"),
    }
}

fn enumeration(source: &str) -> ApiEnum {
    match read(source) {
        (Some(ApiType::Enum(model)), errors) if errors.is_empty() => model,
        other => panic!("{other:?}"),
    }
}

#[test]
fn fields_have_names_shapes_and_documentation() {
    let model = structure(
        "#[api] struct A {
            /// First line.
            ///
            ///   indented
            r#type: Option<String>,
            #[api(json = \"podIPs\")] pod_ips: std::vec::Vec<String>,
            some_map: BTreeMap<String, i32>,
            other: Thing,
        }",
    );
    let names: Vec<&str> = model.fields.iter().map(|f| f.json_name.as_str()).collect();
    assert_eq!(names, ["type", "podIPs", "someMap", "other"]);
    assert_eq!(model.fields[0].description, "First line.\n\n  indented");
    let shapes: Vec<char> = model
        .fields
        .iter()
        .map(|field| match field.shape {
            Shape::Option(_) => 'o',
            Shape::List => 'l',
            Shape::Map => 'm',
            Shape::Other => '-',
        })
        .collect();
    assert_eq!(shapes, ['o', 'l', 'm', '-']);
}

#[test]
fn bounds_have_two_spellings() {
    let model = structure(
        "#[api] struct A { #[api(len = 1..=63)] a: String, #[api(len(min = 1, max = 63))] b: String,
         #[api(bytes = ..=9, items = 2..)] c: String }",
    );
    let text = |bounds: &super::Bounds| {
        (
            bounds.min.as_ref().map(crate::Code::text),
            bounds.max.as_ref().map(crate::Code::text),
        )
    };
    let [a, b, c] = model.fields.as_slice() else {
        panic!()
    };
    assert_eq!(text(&a.rules.len), text(&b.rules.len));
    assert_eq!(text(&c.rules.bytes), (None, Some("9".to_owned())));
    assert_eq!(text(&c.rules.items), (Some("2".to_owned()), None));
}

#[test]
fn rules_nest() {
    let model = structure(
        "#[api] struct A { #[api(list = map(name, r#type), immutable, update(no_set), each(each(min = -1)), \
         format = \"dns-label\")] a: Vec<B>, name: String }",
    );
    let rules = &model.fields[0].rules;
    let Some(ListTopology::Map(keys)) = &rules.list else {
        panic!("{rules:?}")
    };
    assert_eq!(keys[1].to_source(), "r#type");
    assert_eq!(rules.update, [Transition::Immutable, Transition::NoSet]);
    let innermost = rules.each.as_ref().and_then(|each| each.each.as_ref());
    let min = innermost.and_then(|rules| rules.min.as_ref());
    assert_eq!(min.map(crate::Code::text).as_deref(), Some("-1"));
    assert!(rules.format.as_ref().is_some_and(|f| *f == "dns-label"));
}

#[test]
fn enum_variants_have_json_names_by_what_they_hold() {
    let model = enumeration(
        "#[api] enum A { RollingUpdate, #[api(json = \"TCP\")] Tcp, #[api(unknown)] Other(String) }",
    );
    let names: Vec<&str> = model
        .variants
        .iter()
        .map(|v| v.json_name.as_str())
        .collect();
    assert_eq!(names[..2], ["RollingUpdate", "TCP"]);
    assert!(model.is_plain() && model.unknown().is_some());
    let model = enumeration("#[api] enum A { HostPath(X), EmptyDir { size: i32 } }");
    assert!(!model.is_plain());
    assert_eq!(model.variants[0].json_name, "hostPath");
    assert!(matches!(model.variants[1].content, Content::Fields(_)));
}

#[test]
fn conversions_are_read_from_type_and_field() {
    let model = structure(
        "#[api(convert(peer = v1::A, hub_only(x = 1), lossy(y)))]
         struct A { #[api(convert(rename = b, with = (to, from)))] a: i32, #[api(convert(drop, default = 3))] c: i32 }",
    );
    let conversion = &model.conversions[0];
    assert_eq!(conversion.peer.text(), "v1::A");
    assert_eq!((conversion.hub_only.len(), conversion.lossy.len()), (1, 1));
    assert!(model.fields[0].convert.with.is_some() && model.fields[1].convert.drop);
}

#[test]
fn all_errors_of_an_item_are_reported_at_once() {
    let (_, errors) = read(
        "#[api(immutable)] struct A { #[api(requred)] a: String, #[api(gate = \"x\", len = 3)] b: String }",
    );
    let ids: Vec<&str> = errors
        .iter()
        .map(|error| &error[error.len() - 6..])
        .collect();
    assert_eq!(ids, ["[E003]", "[E002]", "[E004]", "[E007]"], "{errors:#?}");
}

#[test]
fn rules_in_cel_are_read() {
    let model = structure(
        "#[api(cel(\"self.min <= self.max\", message = \"min is above max\", path = min, reason = forbidden))]
         struct A { #[api(cel = \"self > 0\", cel(\"self >= oldSelf\", optional_old))] min: i32, max: i32 }",
    );
    let rule = &model.rules.cel[0];
    assert_eq!(rule.rule.value, "self.min <= self.max");
    assert_eq!(rule.message.as_deref(), Some("min is above max"));
    assert_eq!(rule.reason, Some("FieldValueForbidden"));
    assert!(rule.path.as_ref().is_some_and(|path| path.text == "min"));
    let rules = &model.fields[0].rules.cel;
    assert_eq!((rules.len(), rules[1].has_optional_old), (2, true));
    check_errors(
        "#[api(cel)] struct A { #[api(cel(x))] a: i32, #[api(cel(\"x\" \"y\"))] b: i32, #[api(cel(\"x\", reason = bad))] c: i32 }",
        &[
            "`cel` is written `cel = \"..\"` [E006]",
            "`cel` is written `cel(\"..\")` [E006]",
            "expected `,` [E001]",
            "unknown reason `bad` [E008]",
        ],
    );
}

/// Checks that the errors of an item are exactly these.
#[track_caller]
fn check_errors(source: &str, expected: &[&str]) {
    assert_eq!(read(source).1, expected, "{source}");
}

#[test]
fn every_group_and_field_is_read_whatever_the_others_are() {
    check_errors(
        "#[api(bananas)] #[api(oranges)] struct A {
             #[api(mni = 3)] #[api(max = , gt = )] #[api(formt = uuid)] a: i32,
             #[api(requires(type, match, a c, d.e))] b: i32,
         }",
        &[
            "unknown key `bananas` in #[api] on a struct [E002]",
            "unknown key `oranges` in #[api] on a struct [E002]",
            "expected an expression [E001]",
            "expected an expression [E001]",
            "unknown key `mni` in #[api] on a field [E002]",
            "unknown key `formt` in #[api] on a field [E002]",
            "`type` is a word of Rust [E062]",
            "`match` is a word of Rust [E062]",
            "expected `,` [E001]",
            "`requires` takes field names [E007]",
        ],
    );
}

#[test]
fn a_type_of_another_shape_is_read_too() {
    check_errors(
        "#[api(bananas)] struct A(#[api(bananas)] String, #[api(nullable)] Vec<Option<u8>>);",
        &[
            "`A` has no named fields [E014]",
            "unknown key `bananas` in #[api] on a struct [E002]",
            "unknown key `bananas` in #[api] on a field [E002]",
            "null is no element of a list [E040]",
            "`1` has no value that null could be [E030]",
        ],
    );
    check_errors(
        "#[api(bananas)] union A { #[api(bananas)] a: u8 }",
        &[
            "`A` has no named fields [E014]",
            "unknown key `bananas` in #[api] on a struct [E002]",
            "unknown key `bananas` in #[api] on a field [E002]",
        ],
    );
    check_errors(
        "#[api] enum A { #[api(json = 3)] B(#[serde(flatten)] u8, Vec<Option<u8>>) = 3, #[api(json = 3)] C }",
        &[
            "a variant holds one value or named fields [E026]",
            "`serde(flatten)` works against `#[api]` [E027]",
            "null is no element of a list [E040]",
            "`B` is a string in JSON and has no number [E061]",
            "`json` takes a string [E007]",
            "`json` takes a string [E007]",
        ],
    );
}

#[test]
fn rules_of_the_value_of_a_variant_are_refused() {
    check_errors(
        "#[api] enum A { B(#[api(min = 3, bananas)] i32) }",
        &[
            "unknown key `bananas` in #[api] on a field [E002]",
            "`min` has no meaning inside the parentheses [E003]",
        ],
    );
}

#[test]
fn nothing_is_reported_that_follows_from_another_error() {
    let check = |item: &str, attribute: &str, field: &str, expected: &[&str]| {
        check_errors(
            &format!("#[api] {item} struct A {{ {attribute} {field}, kind: String }}"),
            expected,
        );
    };
    let member = "#[api(member = \"B\")] b: Option<i32>";
    check(
        "#[api(union)]",
        "",
        member,
        &["`union` is written `union(..)` [E006]"],
    );
    check(
        "#[api(unoin(tag = kind))]",
        "",
        member,
        &["unknown key `unoin` in #[api] on a struct [E002]"],
    );
    check(
        "#[api(union(tag = kind))]",
        "#[api(member = 3)]",
        "b: Option<i32>",
        &["`member` takes strings [E007]"],
    );
    check(
        "",
        "#[api(member = )]",
        "b: Option<i32>",
        &["expected an expression [E001]"],
    );
    check(
        "",
        "#[api(list = map(3))]",
        "b: Vec<B>",
        &["`list` takes field names [E007]"],
    );
    check(
        "",
        "#[api(list = a::map(b))]",
        "b: Vec<B>",
        &["`list` takes a name [E007]"],
    );
    check(
        "",
        "#[api(convert(dorp, default = 3))]",
        "b: i32",
        &["unknown key `dorp` in convert(..) on a field [E002]"],
    );
    check(
        "#[api(convert(pere = B))]",
        "",
        "b: i32",
        &["unknown key `pere` in convert(..) on a type [E002]"],
    );
    check(
        "",
        "#[api(min = 3, gtt = 3, len = , items = 1..=2)]",
        "b: i32",
        &[
            "expected an expression [E001]",
            "unknown key `gtt` in #[api] on a field [E002]",
        ],
    );
}

#[test]
fn a_key_may_be_a_word_of_rust() {
    check_errors(
        "#[api] struct A {
             #[api(patch(merge, key = type))] a: Vec<C>,
             #[api(list = map(type), patch(merge))] b: Vec<C>,
             #[api(patch(merge, key = r#type))] c: Vec<C>,
             #[api(patch(key = match, merge), items = 1..)] d: Vec<C>,
         }",
        &[],
    );
}
