//! What is read from `#[api]` items, and what is refused.

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
        "#[api(immutable)] struct A { #[api(requred)] a: String, #[api(cel(\"x\"), len = 3)] b: String }",
    );
    let ids: Vec<&str> = errors
        .iter()
        .map(|error| &error[error.len() - 6..])
        .collect();
    assert_eq!(ids, ["[E003]", "[E002]", "[E004]", "[E007]"], "{errors:#?}");
}
