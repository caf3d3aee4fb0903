//! `ResourceDef`: the arguments of `#[resource(..)]` and their defaults.

use apiloom::meta::JsonPath;
use apiloom::meta::kind::{
    CellSource, ColumnType, DeletionRule, Dependents, GenerationRule, Lifecycle, NameFormat,
    ObjectDeletion, Place, Release, ResourceDef, Scope, SmolStr, SubresourceDef, Verb, Writes,
};
use apiloom::prelude::*;
use serde_json::json;

use super::wardle;

/// Rules of conduct.
///
/// In two paragraphs.
#[apiloom::resource(group = "", version = "v1", cluster)]
pub struct Policy {
    pub metadata: ObjectMeta,
}

#[test]
fn a_bare_kind_follows_from_its_name() {
    let def = Policy::definition();
    assert_eq!(
        (def.api_version().as_str(), &*def.kind, &*def.plural),
        ("v1", "Policy", "policies")
    );
    assert_eq!(
        (def.singular.as_str(), def.list_kind.as_str()),
        ("policy", "PolicyList")
    );
    assert_eq!(
        (def.scope, def.verbs.as_slice()),
        (Scope::Cluster, Verb::DEFAULT.as_slice())
    );
    assert!(def.served && def.unconditional_update);
    assert!(!def.has_status() && !def.storage && !def.create_on_update);
    assert!(
        def.conversion.is_none()
            && def.lifecycle.is_none()
            && def.columns.is_empty()
            && def.selectable.is_empty()
    );
    assert_eq!(
        (def.name_format, def.generation),
        (NameFormat::DnsSubdomain, GenerationRule::Spec)
    );
    assert_eq!(def.description, "Rules of conduct.\n\nIn two paragraphs.");
}

#[apiloom::api(title = "Rule")]
#[apiloom::resource(group = "", version = "v1", cluster)]
pub struct Rule {
    pub metadata: ObjectMeta,
}

// Rustc expands only the first attribute.
#[test]
fn a_kind_may_begin_with_the_attribute_of_a_type() {
    assert_eq!(Rule::definition().plural, "rules");
    let schema = apiloom::codegen::schemars::schema_for!(Rule);
    assert_eq!(schema.get("title"), Some(&json!("Rule")));
}

#[apiloom::resource(
    group = "example.com",
    version = "v1",
    kind = "Gadget",
    plural = "gadgetry",
    singular = "gadgetty",
    list_kind = "Gadgets",
    short = ["ga", "gt"],
    categories = ["all", "tools"],
    namespaced,
    readonly,
    served = false,
    name_format = dns_label,
    generation = none,
    unconditional_update = false,
    create_on_update = true,
    lifecycle(introduced = "1.0", deprecated = "1.9", removed = "1.10", replacement("example.com", "v2", Gadget)),
    column(name = "Size", path = spec.size, wide, doc = "How big."),
    column(name = "Upper", with = Gizmo::upper, priority = 2),
    column(name = "Foreign", json_path = ".spec.limits", type = "integer", format = "int32"),
    column(name = "Since", path = spec.since),
    column(name = "On", path = spec.on),
    column(name = "Ratio", path = spec.ratio),
    column(name = "Mode", path = spec.r#type),
    column(name = "Age", path = metadata.creation_timestamp),
    select(spec.r#type, ".spec.limits"),
    protobuf = wire::GIZMO
)]
pub struct Gizmo {
    pub metadata: ObjectMeta,
    pub spec: GizmoSpec,
}

#[apiloom::api]
pub struct GizmoSpec {
    pub size: Option<i32>,
    pub since: Option<Time>,
    pub on: bool,
    pub ratio: f64,
    pub r#type: Option<Mode>,
    pub limits: Option<serde_json::Value>,
}

#[apiloom::api]
pub enum Mode {
    Fast,
    Slow,
}

mod wire {
    use apiloom::meta::kind::protobuf::OBJECT_META;
    use apiloom::meta::kind::{ProtobufField, ProtobufMessage, ProtobufType};

    pub(super) static GIZMO: ProtobufMessage =
        ProtobufMessage::new("Gizmo").fields(&[ProtobufField::new(
            1,
            "metadata",
            ProtobufType::Message(|| &OBJECT_META),
        )]);
}

impl Gizmo {
    fn upper(&self) -> Option<String> {
        self.metadata.name.as_ref().map(|name| name.to_uppercase())
    }
}

#[apiloom::resource(
    group = "example.com",
    version = "v2alpha1",
    namespaced,
    disabled_by_default
)]
pub struct Trial {
    pub metadata: ObjectMeta,
}

#[test]
fn a_kind_may_be_off_until_it_is_enabled() {
    assert!(Trial::definition().disabled_by_default);
    assert!(!Gizmo::definition().disabled_by_default);
}

#[test]
fn a_declared_kind_is_what_it_says() {
    let def = Gizmo::definition();
    assert_eq!(
        (
            &*def.kind,
            &*def.plural,
            def.singular.as_str(),
            def.list_kind.as_str()
        ),
        ("Gadget", "gadgetry", "gadgetty", "Gadgets")
    );
    assert_eq!(def.short_names, ["ga", "gt"]);
    assert_eq!(def.categories, ["all", "tools"]);
    assert_eq!(def.verbs, [Verb::Get, Verb::List, Verb::Watch]);
    assert!(!def.served && !def.unconditional_update && def.create_on_update);
    assert_eq!(def.protobuf.map(|message| message.name), Some("Gizmo"));
    assert_eq!(
        (def.name_format, def.generation),
        (NameFormat::DnsLabel, GenerationRule::None)
    );
    let release = |minor| Some(Release { major: 1, minor });
    let Lifecycle {
        introduced,
        deprecated,
        removed,
        replacement,
    } = def.lifecycle.expect("it is declared");
    assert_eq!(
        (introduced, deprecated, removed),
        (release(0), release(9), release(10))
    );
    assert_eq!(replacement.map(|gvk| gvk.version).as_deref(), Some("v2"));
    assert_eq!(
        def.selectable,
        [
            JsonPath::new(["spec", "type"]).into(),
            JsonPath::new(["spec", "limits"]).into()
        ]
    );
}

#[apiloom::resource(group = "example.com", version = "v1", cluster, status,
    subresource(name = "finalize", verbs = [update], writes = also(spec)),
    subresource(name = "trace", verbs = [get]),
    deletion(finalizers = spec.own_finalizers, phase = status.phase))]
pub struct Room {
    pub metadata: ObjectMeta,
    pub spec: Option<RoomSpec>,
    pub status: Option<RoomStatus>,
}

#[apiloom::api]
pub struct RoomSpec {
    pub own_finalizers: Vec<String>,
}

#[apiloom::api]
pub struct RoomStatus {
    pub phase: Option<String>,
}

#[test]
fn subresources_and_deletion_are_data_of_the_definition() {
    let def = Room::definition();
    assert_eq!(
        def.subresources,
        [
            SubresourceDef::new("finalize", &[Verb::Update], Writes::Also("spec".into())),
            SubresourceDef::status(),
            SubresourceDef::new("trace", &[Verb::Get], Writes::Nothing),
        ]
    );
    assert_eq!(
        def.deletion,
        DeletionRule::Container {
            finalizers: JsonPath::new(["spec", "ownFinalizers"]),
            phase: JsonPath::new(["status", "phase"]),
        }
    );
}

#[apiloom::resource(group = "example.com", version = "v1", namespaced, graceful_delete = 30,
    deletion(dependents = orphan, returns = object))]
pub struct Task {
    pub metadata: ObjectMeta,
}

#[apiloom::resource(group = "example.com", version = "v1", namespaced, deletion(dependents = unsupported))]
pub struct Note {
    pub metadata: ObjectMeta,
}

#[test]
fn the_deletion_of_objects_is_data_of_the_definition() {
    let expected = ObjectDeletion {
        grace_seconds: Some(30),
        dependents: Dependents::Orphan,
        returns_object: true,
    };
    assert_eq!(Task::definition().deletion, DeletionRule::Object(expected));
    let expected = ObjectDeletion {
        dependents: Dependents::Unsupported,
        ..ObjectDeletion::default()
    };
    assert_eq!(Note::definition().deletion, DeletionRule::Object(expected));
    assert_eq!(Gizmo::definition().deletion, DeletionRule::default());
}

#[test]
fn columns_take_their_type_from_the_field() {
    let columns: Vec<(SmolStr, ColumnType, String)> = Gizmo::definition()
        .columns
        .iter()
        .map(|column| {
            (
                column.name.clone(),
                column.column_type,
                format!("{:?}", column.source),
            )
        })
        .collect();
    let expected = [
        ("Size", ColumnType::Integer, "Path(.spec.size)"),
        ("Upper", ColumnType::String, "With(fn)"),
        ("Foreign", ColumnType::Integer, "Path(.spec.limits)"),
        ("Since", ColumnType::Date, "Path(.spec.since)"),
        ("On", ColumnType::Boolean, "Path(.spec.on)"),
        ("Ratio", ColumnType::Number, "Path(.spec.ratio)"),
        ("Mode", ColumnType::String, "Path(.spec.type)"),
        ("Age", ColumnType::Date, "Path(.metadata.creationTimestamp)"),
    ];
    assert_eq!(
        columns,
        expected.map(|(name, ty, source)| (name.into(), ty, source.to_owned()))
    );
    let priorities: Vec<i32> = Gizmo::definition()
        .columns
        .iter()
        .map(|column| column.priority)
        .collect();
    assert_eq!(priorities, [1, 2, 0, 0, 0, 0, 0, 0]);
}

#[test]
fn a_computed_column_calls_the_users_function() {
    let def = Gizmo::definition();
    let CellSource::With(cell) = &def.columns[1].source else {
        panic!("{:?}", def.columns[1])
    };
    let document = |name| json!({"metadata": {"name": name}, "spec": {"on": true, "ratio": 1.0}});
    assert_eq!(cell(&document("gear")), Ok(json!("GEAR")));
    assert!(cell(&json!({"metadata": {}, "spec": 3})).is_err());
}

#[test]
fn verbs_are_limited_as_declared() {
    #[apiloom::resource(group = "example.com", version = "v1", cluster, verbs(only = [watch, create]))]
    pub struct Only {
        pub metadata: ObjectMeta,
    }
    #[apiloom::resource(group = "example.com", version = "v1", cluster, verbs(skip = [delete_collection, update]))]
    pub struct Skip {
        pub metadata: ObjectMeta,
    }
    let verbs = |def: ResourceDef| {
        def.verbs
            .iter()
            .map(|verb| verb.as_str())
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(verbs(Only::definition()), "create watch");
    assert_eq!(
        verbs(Skip::definition()),
        "create delete get list patch watch"
    );
}

#[test]
fn the_long_form_needs_no_attribute_macro() {
    use schemars::JsonSchema;
    use serde::{Deserialize, Serialize};

    #[derive(Clone, Debug, Serialize, Deserialize, JsonSchema, Resource)]
    #[serde(rename_all = "camelCase")]
    #[resource(group = "example.com", version = "v1", namespaced)]
    #[resource(shortname = "lo", selectable(spec.time_out, spec.other))]
    pub struct Long {
        pub metadata: ObjectMeta,
        pub spec: LongSpec,
    }

    #[apiloom::api]
    pub struct LongSpec {
        pub time_out: Option<i32>,
        #[api(json = "OTHER")]
        pub other: Option<String>,
    }

    let def = Long::definition();
    assert_eq!(def.plural, "longs");
    assert_eq!(def.short_names, ["lo"]);
    assert_eq!(
        def.selectable,
        [
            JsonPath::new(["spec", "timeOut"]).into(),
            JsonPath::new(["spec", "OTHER"]).into()
        ]
    );
}

#[test]
fn a_group_is_a_constant() {
    assert_eq!(wardle::GROUP.name, "wardle.example.com");
    assert_eq!(*wardle::GROUP.versions, ["v1beta1", "v1alpha1"]);
    assert_eq!(wardle::GROUP.release, Some(Release { major: 1, minor: 2 }));
}

#[test]
fn kinds_and_groups_know_the_line_of_their_declaration() {
    const START: u32 = line!();

    #[apiloom::resource(group = "example.com", version = "v1", cluster)]
    /// What it is.
    #[allow(clippy::exhaustive_structs)]
    pub struct Marked {
        pub metadata: ObjectMeta,
    }

    mod group {
        apiloom::group! {
            name = "example.com", versions = [v1]
        }
    }

    macro_rules! kind {
        ($name:ident) => {
            #[apiloom::resource(group = "example.com", version = "v1", cluster)]
            pub struct $name {
                pub metadata: ObjectMeta,
            }
        };
    }
    kind!(Stamped);

    let at = |lines: u32| {
        Some(Place {
            file: file!(),
            line: START + lines,
        })
    };
    assert_eq!(Marked::definition().place, at(5));
    assert_eq!(group::GROUP.place, at(10));
    assert_eq!(Stamped::definition().place, at(23));
}

#[test]
fn columns_choose_among_items_of_lists() {
    #[apiloom::api]
    pub struct RobotStatus {
        #[api(list = map(type))]
        pub conditions: Vec<Condition>,
    }
    #[apiloom::resource(
        group = "example.com", version = "v1", namespaced, status,
        printcolumn(condition = "Ready"),
        printcolumn(name = "Is synced", condition = "example.com/Synced", wide),
        printcolumn(name = "Since", json_path = ".status.conditions[?( @.type == 'Ready' )].lastTransitionTime", type = date),
        printcolumn(name = "First", json_path = "status.conditions[0].reason"),
        printcolumn(name = "New", json_path = ".status.conditions[?(@.observedGeneration>=2)].message"),
        printcolumn(name = "Team", json_path = ".metadata.labels['example.com/team']"),
    )]
    pub struct Robot {
        pub metadata: ObjectMeta,
        pub status: Option<RobotStatus>,
    }
    let def = Robot::definition();
    let schema = def.schema.schema().expect("structural");
    let columns: Vec<(SmolStr, ColumnType, String)> = def
        .columns
        .iter()
        .map(|column| {
            let CellSource::Query(query) = &column.source else {
                panic!("{:?}", column.source)
            };
            assert!(schema.has_query(query), "{query}");
            (column.name.clone(), column.column_type, query.to_string())
        })
        .collect();
    let expected = [
        (
            "Ready",
            ColumnType::String,
            r#".status.conditions[?(@.type=="Ready")].status"#,
        ),
        (
            "Is synced",
            ColumnType::String,
            r#".status.conditions[?(@.type=="example.com/Synced")].status"#,
        ),
        (
            "Since",
            ColumnType::Date,
            r#".status.conditions[?(@.type=="Ready")].lastTransitionTime"#,
        ),
        ("First", ColumnType::String, ".status.conditions[0].reason"),
        (
            "New",
            ColumnType::String,
            ".status.conditions[?(@.observedGeneration>=2)].message",
        ),
        (
            "Team",
            ColumnType::String,
            r".metadata.labels['example\.com/team']",
        ),
    ];
    assert_eq!(
        columns,
        expected.map(|(name, ty, path)| (name.into(), ty, path.to_owned()))
    );
}
