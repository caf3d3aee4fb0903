//! Which messages files get, and which kinds have none.

use serde_json::json;

use super::*;
use crate::gvk::GroupVersionKind;
use crate::kind::{SchemaSource, Scope};
use crate::protobuf::{OBJECT_META, ProtobufField as Field};
use crate::schema::SchemaErrors;

use ProtobufType::{Bytes, Int64, List, Map, Message, MicroTime, Quantity, RawExtension, Text};

static PART: ProtobufMessage = ProtobufMessage {
    reserved: &[4],
    reserved_names: &["old-name"],
    ..ProtobufMessage::new("Part").fields(&[
        Field::new(1, "parts", List(&Message(|| &PART))),
        Field::new(3, "matrix", List(&List(&Int64))),
        Field::new(2, "x-data", Map(&Map(&List(&Bytes)))),
    ])
};

static THING: ProtobufMessage = ProtobufMessage::new("Thing").fields(&[
    Field::new(1, "metadata", Message(|| &OBJECT_META)),
    Field::new(2, "part", Message(|| &PART)),
    Field::new(3, "at", MicroTime),
    Field::new(4, "limits", Map(&Quantity)),
    Field::new(5, "any", RawExtension),
]);

/// A kind with this form.
fn kind(name: &'static str, protobuf: Option<&'static ProtobufMessage>) -> ResourceDef {
    let schema = SchemaSource::Type(|| Err(SchemaErrors(Vec::new())));
    let gvk = GroupVersionKind::new("ex.a-b.com", "v1", name);
    ResourceDef {
        scope: Scope::Cluster,
        protobuf,
        ..ResourceDef::new(&gvk, name.to_lowercase(), schema)
    }
}

fn message(file: &ProtoFile, name: &str) -> Vec<String> {
    let fields = file.messages[name].fields.iter();
    fields
        .map(|(number, field)| format!("{} {} = {number}", field.field_type, field.name))
        .collect()
}

#[test]
fn a_kind_has_a_file_and_kubernetes_has_its_own() {
    let mut files = ProtoFiles::default();
    let schema = json!({
        "description": "Thing is one.",
        "properties": {"part": {"description": "A part.\nOf it.", "properties": {"matrix": {"description": "Numbers."}}}},
    });
    files.add(&kind("Thing", Some(&THING)), &schema);
    let files = files.finish().expect("no problems");
    assert_eq!(
        files.keys().collect::<Vec<_>>(),
        [
            "ex.a-b.com_v1.proto",
            "k8s.io/apimachinery/pkg/api/resource/generated.proto",
            "k8s.io/apimachinery/pkg/apis/meta/v1/generated.proto",
            "k8s.io/apimachinery/pkg/runtime/generated.proto",
        ]
    );
    let file = &files["ex.a-b.com_v1.proto"];
    assert_eq!(file.package, "com.a_b.ex.v1");
    assert_eq!(file.imports.len(), 3);
    assert_eq!(
        file.messages.keys().collect::<Vec<_>>(),
        [
            "Part",
            "PartMatrixItems",
            "PartXDataItems",
            "PartXDataItemsItems",
            "Thing",
            "ThingList"
        ]
    );
    assert_eq!(
        message(file, "Thing"),
        [
            "optional .k8s.io.apimachinery.pkg.apis.meta.v1.ObjectMeta metadata = 1",
            "optional Part part = 2",
            "optional .k8s.io.apimachinery.pkg.apis.meta.v1.MicroTime at = 3",
            "map<string, .k8s.io.apimachinery.pkg.api.resource.Quantity> limits = 4",
            "optional .k8s.io.apimachinery.pkg.runtime.RawExtension any = 5",
        ]
    );
    assert_eq!(
        message(file, "Part"),
        [
            "repeated Part parts = 1",
            "map<string, PartXDataItems> x_data = 2",
            "repeated PartMatrixItems matrix = 3",
        ]
    );
    assert_eq!(
        message(file, "PartMatrixItems"),
        ["repeated int64 items = 1"]
    );
    assert_eq!(
        message(file, "PartXDataItems"),
        ["map<string, PartXDataItemsItems> items = 1"]
    );
    let part = &file.messages["Part"];
    assert!(part.reserved.contains(&4) && part.reserved_names.contains("old_name"));
    assert_eq!(file.messages["Thing"].description, ["Thing is one."]);
    assert_eq!(
        file.messages["Thing"].fields[&2].description,
        ["A part.", "Of it."]
    );
    assert_eq!(part.fields[&3].description, ["Numbers."]);
}

#[test]
fn what_no_file_can_have_is_a_problem() {
    static TWIN: ProtobufMessage =
        ProtobufMessage::new("Part").fields(&[Field::new(1, "name", Text)]);
    static OTHER: ProtobufMessage = ProtobufMessage {
        package: Some("a.b"),
        reserved: &[9],
        ..ProtobufMessage::new("Other").fields(&[
            Field::new(1, "metadata", Message(|| &OBJECT_META)),
            Field::new(2, "part", Message(|| &TWIN)),
            Field::new(3, "a-b", Text),
            Field::new(4, "a_b", Text),
            Field::new(1, "twin", Text),
            Field::new(9, "reserved", Text),
        ])
    };
    let mut files = ProtoFiles::default();
    files.add(&kind("Thing", Some(&THING)), &Value::Null);
    files.add(&kind("Other", Some(&OTHER)), &Value::Null);
    assert_eq!(
        files.finish().expect_err("problems"),
        [
            "the kinds of ex.a-b.com/v1 name two Protobuf packages, com.a_b.ex.v1 and a.b: write the same `proto(package = \"..\")` on all",
            "two types would be the message Part of ex.a-b.com_v1.proto: write `#[api(proto(name = \"..\"))]` on one of them",
            "two fields of Other would be a_b in ex.a-b.com_v1.proto: give one another name in JSON",
            "the number 1 of the field twin of Other is that of another field, or reserved: take another one",
            "the number 9 of the field reserved of Other is that of another field, or reserved: take another one",
        ]
    );
}

#[test]
fn a_kind_without_numbers_has_no_file() {
    let mut files = ProtoFiles::default();
    files.add(&kind("Thing", None), &Value::Null);
    assert_eq!(files.finish(), Ok(BTreeMap::new()));
}
