//! The schema engine enforces every key of the macros: both agree on every keyword.

use apiloom::meta::schema::Schema;
use apiloom::prelude::*;
use serde_json::{Value, json};

use super::{conversion, definition, hooks, json as shapes, keywords, wardle};

fn schema<T: schemars::JsonSchema + apiloom::meta::kind::ApiType>() -> Schema {
    Schema::for_type::<T>().unwrap_or_else(|errors| panic!("{errors}"))
}

#[test]
fn every_kind_has_a_structural_schema() {
    for def in [
        definition::Policy::definition(),
        definition::Gizmo::definition(),
        conversion::v1::Box::definition(),
        conversion::v1alpha1::Box::definition(),
        wardle::v1beta1::Flunder::definition(),
        wardle::v1alpha1::Flunder::definition(),
        wardle::v1alpha1::Fischer::definition(),
    ] {
        let schema = def
            .schema
            .schema()
            .unwrap_or_else(|errors| panic!("{}: {errors}", def.kind));
        for column in &def.columns {
            if let apiloom::meta::kind::CellSource::Path(path) = &column.source {
                assert!(schema.has_path(path), "{} of {}", path, def.kind);
            }
        }
    }
    schema::<keywords::Part>();
    schema::<shapes::Part>();
    schema::<shapes::Choice>();
}

fn errors<T: schemars::JsonSchema + apiloom::meta::kind::ApiType>(value: &Value) -> Vec<String> {
    schema::<T>()
        .validate(value)
        .iter()
        .map(|error| error.to_string())
        .collect()
}

/// The part below with one field changed.
fn part(field: &str, value: Value) -> Value {
    let mut part = json!({
        "text": "abcd", "float": 1.0, "small": 1, "ports": [{"name": "x", "protocol": "TCP"}],
    });
    part[field] = value;
    part
}

#[test]
fn a_declared_bound_rejects() {
    assert_eq!(errors::<keywords::Part>(&part("small", json!(9))), [""; 0]);
    for (field, bad) in [
        ("text", json!("")),
        ("text", json!("abc")),
        ("text", json!("b")),
        ("text", json!("aB")),
        ("number", json!(5)),
        ("number", json!(-2)),
        ("number", json!(5_000_000_002_i64)),
        ("float", json!(0.5)),
        ("small", json!(10)),
        ("tags", json!(["a", "b", "c", "d"])),
        ("tags", json!(["a", "a"])),
        ("tags", json!(["abcde"])),
        ("ports", json!([])),
        (
            "ports",
            json!([{"name": "x", "protocol": "TCP"}, {"name": "x", "protocol": "TCP"}]),
        ),
        ("counts", json!({"": 1})),
        ("counts", json!({"k": 0})),
        ("matrix", json!([[0]])),
        ("never", json!("x")),
        ("a", json!("x")),
        ("b", json!("x")),
    ] {
        let found = errors::<keywords::Part>(&part(field, bad.clone()));
        assert!(
            found
                .iter()
                .any(|error| error.contains(field) || field.len() == 1),
            "{field} = {bad}: {found:?}"
        );
    }
}

#[test]
fn a_declared_default_defaults() {
    let mut value = part("ports", json!([{"name": "x"}]));
    schema::<keywords::Part>().default(&mut value);
    assert_eq!(
        (&value["number"], &value["ports"][0]["protocol"]),
        (&json!(4), &json!("TCP"))
    );
    let mut spec = json!({"reference": "x"});
    schema::<wardle::v1alpha1::FlunderSpec>().default(&mut spec);
    assert_eq!(spec, json!({"reference": "x", "referenceType": "Flunder"}));
}

#[test]
fn a_declared_transition_is_kept() {
    let transition = |field: &str, old: Value, new: Value| {
        schema::<keywords::Part>()
            .validate_update(&part(field, new), &part(field, old))
            .len()
    };
    assert_eq!(transition("text", json!("abcd"), json!("abcd")), 0);
    assert_eq!(transition("text", json!("abcd"), json!("abce")), 1);
    assert_eq!(transition("number", json!(4), json!(2)), 1);
    assert_eq!(transition("tags", json!(["a", "b"]), json!(["a"])), 1);
}

#[test]
fn checks_inside_variants_run() {
    let found = errors::<hooks::Choice>(&json!({"many": {"userName": "root"}}));
    assert_eq!(
        found,
        [r#"many.userName: Invalid value: "root": must not be root"#]
    );
    assert_eq!(errors::<hooks::Choice>(&json!("Plain")), [""; 0]);
}

/// A check below serde's tag has no place in the schema: building the server fails, instead of ignoring it.
#[test]
fn checks_below_a_tag_are_refused() {
    #[apiloom::api]
    #[serde(tag = "kind")]
    pub enum Tagged {
        First(hooks::Inner),
    }
    let errors = Schema::for_type::<Tagged>().expect_err("a check is out of reach");
    assert!(
        errors.to_string().contains("there are checks for `First`"),
        "{errors}"
    );
}

#[test]
fn enum_values_keep_their_order_whatever_is_documented() {
    #[apiloom::api]
    pub enum Size {
        Small,
        /// In between.
        Medium,
        Large,
    }
    let schema = schema::<Size>().to_openapi(&apiloom::meta::schema::Metadata::Open);
    assert_eq!(schema["enum"], json!(["Small", "Medium", "Large"]));
}

#[test]
fn a_custom_check_runs_where_it_is_declared() {
    let spec = json!({"flunderReference": "x", "referenceType": "Fish"});
    let found = errors::<wardle::v1beta1::FlunderSpec>(&spec);
    assert!(
        found
            .iter()
            .any(|error| error
                == r#"referenceType: Invalid value: "Fish": must be Flunder or Fischer"#),
        "{found:?}"
    );
}

#[test]
fn a_required_value_is_not_empty_and_a_nullable_one_may_be_null() {
    #[apiloom::api]
    pub struct Pair {
        #[api(required)]
        pub name: String,
        #[api(required)]
        pub list: Vec<String>,
        #[api(nullable)]
        pub cleared: Option<String>,
        pub plain: Option<String>,
    }
    let found = errors::<Pair>(&json!({"name": "", "list": []}));
    assert_eq!(found, ["name: Required value", "list: Required value"]);
    assert_eq!(
        errors::<Pair>(&json!({"name": "x", "list": ["y"], "cleared": null})),
        [""; 0]
    );
    let mut value = json!({"name": "x", "list": ["y"], "cleared": null, "plain": null});
    schema::<Pair>().prune(&mut value);
    assert_eq!(value, json!({"name": "x", "list": ["y"], "cleared": null}));
}

#[test]
fn shapes_of_every_field_survive_a_round_trip_through_the_schema() {
    let value = json!({
        "plainName": "x", "someList": ["x"], "someMap": {"k": 1}, "hashed": {"k": 1}, "clusterIP": "x", "type": "x",
        "cleared": null, "ownerName": "x",
    });
    let mut pruned = value.clone();
    schema::<shapes::Part>().prune(&mut pruned);
    assert_eq!(pruned, value);
    assert_eq!(errors::<shapes::Part>(&value), [""; 0]);
    for value in [
        json!({"hostPath": {"ownerName": "x"}}),
        json!({"emptyDir": {"sizeLimit": "1"}}),
        json!("Nothing"),
    ] {
        let mut pruned = value.clone();
        schema::<shapes::Choice>().prune(&mut pruned);
        assert_eq!(pruned, value);
        assert_eq!(errors::<shapes::Choice>(&value), [""; 0]);
    }
}

/// A status as Kubernetes' own kinds have it.
#[apiloom::api]
pub struct Observed {
    #[api(list = map(type))]
    pub conditions: Vec<Condition>,
}

#[test]
fn conditions_are_a_list_map_by_their_type() {
    let condition = json!({
        "type": "Ready", "status": "True", "reason": "Done", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    });
    let conditions = |list: Value| errors::<Observed>(&json!({"conditions": list}));
    assert_eq!(conditions(json!([condition])), [""; 0]);
    assert_eq!(
        conditions(json!([condition, condition])),
        [r#"conditions[1]: Duplicate value: {"type":"Ready"}"#]
    );
}
