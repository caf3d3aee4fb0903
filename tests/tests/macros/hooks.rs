//! The tree of checks and computed defaults that belongs to a schema.

use apiloom::meta::kind::{ApiType, Hooks};
use apiloom::prelude::*;
use serde_json::{Value, json};

use super::wardle::{v1alpha1, v1beta1};

#[apiloom::api(custom = Part::check)]
pub struct Part {
    #[api(custom = check_name)]
    pub name: Option<String>,
    #[api(each(custom = check_name))]
    pub names: Vec<String>,
    pub inner: BTreeMap<String, Inner>,
    #[api(opaque)]
    pub opaque: Option<Inner>,
    pub foreign: Option<Foreign>,
    pub again: Vec<Part>,
    #[api(flatten)]
    pub flat: Flat,
}

#[apiloom::api]
pub struct Inner {
    #[api(custom = check_positive)]
    pub count: i32,
}

#[apiloom::api]
pub struct Flat {
    #[api(custom = check_positive)]
    pub depth: Option<i32>,
}

/// A type without our attributes.
#[derive(Clone, PartialEq, Debug, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
pub struct Foreign {}

impl Part {
    fn check(&self, path: &FieldPath) -> Result<(), FieldError> {
        if self.names.is_empty() {
            Err(FieldError::required(&path.child("names"), ""))
        } else {
            Ok(())
        }
    }
}

fn check_name(name: &str, path: &FieldPath) -> Vec<FieldError> {
    if name == "root" {
        vec![FieldError::invalid(path, name, "must not be root")]
    } else {
        Vec::new()
    }
}

fn check_positive(number: &i32, path: &FieldPath) -> Option<FieldError> {
    (*number < 1).then(|| FieldError::invalid(path, number, "must be positive"))
}

fn field<'a>(hooks: &'a Hooks, name: &str) -> Option<&'a Hooks> {
    hooks
        .fields
        .iter()
        .find(|(field, _)| *field == name)
        .map(|(_, hooks)| hooks)
}

fn errors(hooks: &Hooks, value: &Value) -> Vec<String> {
    let path = FieldPath::new("x");
    hooks
        .checks
        .iter()
        .flat_map(|check| check(value, &path))
        .map(|error| error.to_string())
        .collect()
}

#[test]
fn checks_stand_where_they_are_declared() {
    let hooks = Part::hooks();
    let value = json!({"names": []});
    assert_eq!(errors(&hooks, &value), ["x.names: Required value"]);
    let name = field(&hooks, "name").expect("it has a check");
    assert_eq!(
        errors(name, &json!("root")),
        [r#"x: Invalid value: "root": must not be root"#]
    );
    assert_eq!(errors(name, &json!("user")), [""; 0]);
    let names = field(&hooks, "names")
        .and_then(|hooks| hooks.items.as_deref())
        .expect("its elements have a check");
    assert_eq!(errors(names, &json!("root")).len(), 1);
    let counts = field(&hooks, "inner")
        .and_then(|hooks| hooks.items.as_deref())
        .and_then(|inner| field(inner, "count"));
    assert_eq!(
        errors(counts.expect("found through the map"), &json!(0)),
        ["x: Invalid value: 0: must be positive"]
    );
    assert_eq!(
        errors(field(&hooks, "depth").expect("flattened"), &json!(0)).len(),
        1
    );
}

#[apiloom::api]
pub enum Choice {
    Plain,
    One(Inner),
    Many {
        #[api(custom = check_name)]
        user_name: String,
    },
}

#[test]
fn checks_inside_variants_stand_below_the_variants_field() {
    let hooks = Choice::hooks();
    let one = field(&hooks, "one").and_then(|one| field(one, "count"));
    assert_eq!(
        errors(one.expect("a type with a check"), &json!(0)).len(),
        1
    );
    let many = field(&hooks, "many").and_then(|many| field(many, "userName"));
    assert_eq!(
        errors(many.expect("a field with a check"), &json!("root")).len(),
        1
    );
    assert_eq!(hooks.fields.len(), 2);
}

#[test]
fn opaque_foreign_and_recursive_fields_have_no_hooks_of_their_type() {
    let hooks = Part::hooks();
    assert!(field(&hooks, "opaque").is_none());
    assert!(field(&hooks, "foreign").is_none());
    assert!(field(&hooks, "again").is_none());
}

#[test]
fn a_check_of_an_ill_formed_value_is_an_error_not_a_panic() {
    let hooks = Part::hooks();
    assert_eq!(errors(field(&hooks, "name").unwrap(), &json!(3)).len(), 1);
}

#[test]
fn a_default_is_computed_from_its_parent() {
    let hooks = v1alpha1::FlunderSpec::hooks();
    let [(name, default)] = hooks.defaults.as_slice() else {
        panic!("{hooks:?}")
    };
    assert_eq!(*name, "referenceType");
    assert_eq!(default(&json!({"reference": "x"})), Some(json!("Flunder")));
    assert_eq!(default(&json!({})), None);
    assert_eq!(default(&json!({"reference": 3})), None);
}

#[test]
fn the_root_knows_the_hooks_of_its_fields() {
    let hooks = v1beta1::Flunder::hooks();
    let kind = field(&hooks, "spec").and_then(|spec| field(spec, "referenceType"));
    let errors = errors(kind.expect("the enum has a check"), &json!("Fish"));
    assert_eq!(
        errors,
        [r#"x: Invalid value: "Fish": must be Flunder or Fischer"#]
    );
}
