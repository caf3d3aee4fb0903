//! Checks whether kube-apiserver accepts a schema in a CustomResourceDefinition.

use serde_json::{Map, Value};

use crate::field::{FieldError, FieldPath};

/// String formats that kube-apiserver validates, without dashes, which it ignores.
const STRING_FORMATS: [&str; 27] = [
    "bsonobjectid",
    "byte",
    "cidr",
    "creditcard",
    "date",
    "datetime",
    "duration",
    "email",
    "hexcolor",
    "hostname",
    "ipv4",
    "ipv6",
    "isbn",
    "isbn10",
    "isbn13",
    "k8slongname",
    "k8sshortname",
    "mac",
    "password",
    "quantity",
    "rgbcolor",
    "ssn",
    "uri",
    "uuid",
    "uuid3",
    "uuid4",
    "uuid5",
];

/// Whether kube-apiserver validates a format for values of a type. Other formats are ignored with a warning. A schema
/// without a type counts as one of strings.
pub fn is_known_format(json_type: Option<&str>, format: &str) -> bool {
    match json_type {
        None | Some("string") => STRING_FORMATS.contains(&format.replace('-', "").as_str()),
        Some("integer") => matches!(format, "int32" | "int64"),
        Some("number") => matches!(format, "float" | "double"),
        Some(_) => false,
    }
}

/// The reasons why kube-apiserver would refuse a schema as `openAPIV3Schema` of a CustomResourceDefinition, or ignore
/// a format in it.
///
/// ```
/// use apiloom_meta::{FieldPath, schema::structural::problems};
/// use serde_json::json;
/// let schema = json!({"type": "object", "properties": {"spec": {"type": "array"}}});
/// let found = problems(&schema, &FieldPath::new("schema"));
/// assert_eq!(found[0].to_string(), "schema.properties[spec].items: Required value: must be specified");
/// ```
pub fn problems(schema: &Value, path: &FieldPath) -> Vec<FieldError> {
    let mut check = Check::default();
    check.root(schema, path);
    check.schema(schema, path, NO_ROOT_TYPE);
    check.found
}

/// Keywords of JSON Schema that CRDs do not support, or only without a value.
const UNSUPPORTED: [&str; 12] = [
    "$defs",
    "$ref",
    "additionalItems",
    "const",
    "definitions",
    "dependencies",
    "deprecated",
    "id",
    "patternProperties",
    "prefixItems",
    "propertyNames",
    "unevaluatedProperties",
];

const JUNCTORS: [&str; 3] = ["allOf", "anyOf", "oneOf"];

const NO_ROOT_TYPE: &str = "must not be empty at the root";
const NO_FIELD_TYPE: &str = "must not be empty for specified object fields";
const NO_ITEM_TYPE: &str = "must not be empty for specified array items";

/// State of the walk over a schema.
#[derive(Debug, Default)]
struct Check {
    found: Vec<FieldError>,
    /// The outermost list without correlation of its items: `oldSelf` is not available to rules below it.
    uncorrelated: Option<FieldPath>,
}

fn is_true(schema: &Value, name: &str) -> bool {
    schema.get(name) == Some(&Value::Bool(true))
}

fn text<'a>(schema: &'a Value, name: &str) -> Option<&'a str> {
    schema.get(name).and_then(Value::as_str)
}

/// The members of an object; none for other values.
fn members<'a>(schema: &'a Value, name: &str) -> impl Iterator<Item = (&'a String, &'a Value)> {
    let members = schema.get(name).and_then(Value::as_object);
    members.into_iter().flatten()
}

/// The branches of a junctor, each with its path.
fn branches<'a>(
    schema: &'a Value,
    path: &FieldPath,
) -> impl Iterator<Item = (&'a Value, FieldPath)> {
    let path = path.clone();
    JUNCTORS.into_iter().flat_map(move |junctor| {
        let path = path.child(junctor);
        let branches = schema.get(junctor).and_then(Value::as_array);
        let branches = branches.into_iter().flatten().enumerate();
        branches.map(move |(at, branch)| (branch, path.index(at)))
    })
}

/// Whether an expression refers to a variable, outside of its string literals.
fn names(expression: &str, variable: &str) -> bool {
    let (mut quote, mut is_escaped, mut word) = (None, false, String::new());
    for character in expression.chars().chain([' ']) {
        if let Some(open) = quote {
            if !is_escaped && character == open {
                quote = None;
            }
            is_escaped = !is_escaped && character == '\\';
        } else if character.is_alphanumeric() || character == '_' {
            word.push(character);
        } else {
            if word == variable {
                return true;
            }
            word.clear();
            if matches!(character, '\'' | '"') {
                quote = Some(character);
            }
        }
    }
    false
}

impl Check {
    fn required(&mut self, path: &FieldPath, detail: &str) {
        self.found.push(FieldError::required(path, detail));
    }

    fn forbidden(&mut self, path: &FieldPath, detail: &str) {
        self.found.push(FieldError::forbidden(path, detail));
    }

    fn invalid(&mut self, path: &FieldPath, value: &Value, detail: &str) {
        self.found.push(FieldError::invalid(path, value, detail));
    }

    /// Checks that apply only to the schema of a whole object.
    fn root(&mut self, schema: &Value, path: &FieldPath) {
        if let Some(other) = schema
            .get("type")
            .filter(|json_type| *json_type != "object")
        {
            self.invalid(&path.child("type"), other, "must be object at the root");
        }
        if schema.get("additionalProperties").is_some() {
            self.forbidden(
                &path.child("additionalProperties"),
                "must not be used at the root",
            );
        }
    }

    fn schema(&mut self, schema: &Value, path: &FieldPath, no_type: &str) {
        if !schema.is_object() {
            self.invalid(path, schema, "must be a schema");
            return;
        }
        self.json_type(schema, path, no_type);
        self.unsupported(schema, path);
        self.format(schema, path);
        self.topology(schema, path);
        self.validations(schema, path);
        if no_type == NO_ROOT_TYPE || is_true(schema, "x-kubernetes-embedded-resource") {
            self.object_fields(schema, path);
        }
        if schema.get("properties").is_some() && schema.get("additionalProperties").is_some() {
            self.forbidden(
                &path.child("additionalProperties"),
                "must not be used beside properties",
            );
        }
        for (name, field) in members(schema, "properties") {
            self.schema(field, &path.child("properties").key(name), NO_FIELD_TYPE);
        }
        if let Some(values) = schema
            .get("additionalProperties")
            .filter(|values| !values.is_boolean())
        {
            self.schema(values, &path.child("additionalProperties"), NO_FIELD_TYPE);
        }
        match schema.get("items") {
            Some(list @ Value::Array(_)) => {
                self.invalid(
                    &path.child("items"),
                    list,
                    "must be a schema and not a list of schemas",
                );
            }
            Some(items) => {
                let around = self.uncorrelated.clone();
                if text(schema, "x-kubernetes-list-type") != Some("map") {
                    self.uncorrelated = around.clone().or_else(|| Some(path.clone()));
                }
                self.schema(items, &path.child("items"), NO_ITEM_TYPE);
                self.uncorrelated = around;
            }
            None if text(schema, "type") == Some("array") => {
                self.required(&path.child("items"), "must be specified");
            }
            None => {}
        }
        self.junctors(schema, schema, path);
    }

    fn json_type(&mut self, schema: &Value, path: &FieldPath, no_type: &str) {
        let at = path.child("type");
        let open = is_true(schema, "x-kubernetes-preserve-unknown-fields");
        let int_or_string = is_true(schema, "x-kubernetes-int-or-string");
        let embedded = is_true(schema, "x-kubernetes-embedded-resource");
        let json_type = schema.get("type").unwrap_or(&Value::Null);
        match json_type.as_str() {
            Some("object") if !int_or_string => {}
            Some("array" | "string" | "integer" | "number" | "boolean") if !int_or_string => {
                if open {
                    let detail = "must be object if x-kubernetes-preserve-unknown-fields is true";
                    self.invalid(&at, json_type, detail);
                }
                if embedded {
                    let detail = "must be object if x-kubernetes-embedded-resource is true";
                    self.invalid(&at, json_type, detail);
                }
            }
            Some("object" | "array" | "string" | "integer" | "number" | "boolean") => {
                let detail = "must be empty if x-kubernetes-int-or-string is true";
                self.invalid(&at, json_type, detail);
            }
            Some(_) => self.invalid(&at, json_type, "must be the name of a type"),
            None if !json_type.is_null() || schema.get("type").is_some() => {
                self.invalid(&at, json_type, "must be the name of one type");
            }
            None if embedded => {
                self.required(
                    &at,
                    "must be object if x-kubernetes-embedded-resource is true",
                );
            }
            None if !open && !int_or_string => self.required(&at, no_type),
            None => {}
        }
    }

    fn unsupported(&mut self, schema: &Value, path: &FieldPath) {
        for name in UNSUPPORTED
            .iter()
            .filter(|name| schema.get(**name).is_some())
        {
            self.forbidden(&path.child(name), "is not supported");
        }
        if is_true(schema, "uniqueItems") {
            self.forbidden(
                &path.child("uniqueItems"),
                "uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
            );
        }
    }

    fn format(&mut self, schema: &Value, path: &FieldPath) {
        let Some(format) = text(schema, "format") else {
            return;
        };
        if !is_known_format(text(schema, "type"), format) {
            let detail = "is a format that kube-apiserver ignores";
            self.invalid(&path.child("format"), &Value::from(format), detail);
        }
    }

    /// Checks for the fields of every object.
    fn object_fields(&mut self, schema: &Value, path: &FieldPath) {
        let fields = path.child("properties");
        for (name, expected) in [
            ("apiVersion", "string"),
            ("kind", "string"),
            ("metadata", "object"),
        ] {
            let Some(field) = schema.get("properties").and_then(|fields| fields.get(name)) else {
                continue;
            };
            let json_type = field.get("type").unwrap_or(&Value::Null);
            if json_type != expected {
                let detail = format!("must be {expected}");
                self.invalid(&fields.key(name).child("type"), json_type, &detail);
            }
        }
        let metadata = schema
            .get("properties")
            .and_then(|fields| fields.get("metadata"));
        let Some(Value::Object(metadata)) = metadata else {
            return;
        };
        let says_more = metadata
            .iter()
            .any(|(keyword, value)| match keyword.as_str() {
                "type" | "description" => false,
                "properties" => value.as_object().is_none_or(|fields| {
                    fields
                        .keys()
                        .any(|name| name != "name" && name != "generateName")
                }),
                _ => true,
            });
        if says_more {
            self.forbidden(
                &fields.key("metadata"),
                "must not specify anything other than name and generateName, but metadata is implicitly specified",
            );
        }
    }

    /// Checks of CEL rules that need no compilation.
    fn validations(&mut self, schema: &Value, path: &FieldPath) {
        let path = path.child("x-kubernetes-validations");
        let rules = match schema.get("x-kubernetes-validations") {
            None => return,
            Some(Value::Array(rules)) => rules,
            Some(other) => return self.invalid(&path, other, "must be a list of rules"),
        };
        if schema.get("type").is_none() && !is_true(schema, "x-kubernetes-int-or-string") {
            self.forbidden(&path, "must not be used where no type is specified");
        }
        for (at, rule) in rules.iter().enumerate() {
            self.validation(rule, &path.index(at));
        }
    }

    fn validation(&mut self, rule: &Value, path: &FieldPath) {
        const REASONS: [&str; 4] = [
            "FieldValueDuplicate",
            "FieldValueForbidden",
            "FieldValueInvalid",
            "FieldValueRequired",
        ];
        const KNOWN: [&str; 6] = [
            "rule",
            "message",
            "messageExpression",
            "reason",
            "fieldPath",
            "optionalOldSelf",
        ];
        let has_break = |text: &str| text.contains(['\n', '\r']);
        let expression = text(rule, "rule").unwrap_or_default();
        if expression.trim().is_empty() {
            self.required(&path.child("rule"), "rule is not specified");
        }
        if let Some(list) = self
            .uncorrelated
            .clone()
            .filter(|_| names(expression, "oldSelf"))
        {
            let detail = format!(
                "oldSelf cannot be used on the uncorrelatable portion of the schema within {list}"
            );
            self.invalid(&path.child("rule"), &Value::from(expression), &detail);
        }
        match text(rule, "message") {
            Some(message) if message.trim().is_empty() => {
                let detail = "message must be non-empty if specified";
                self.invalid(&path.child("message"), &Value::from(message), detail);
            }
            Some(message) if has_break(message) => {
                let detail = "message must not contain line breaks";
                self.invalid(&path.child("message"), &Value::from(message), detail);
            }
            None if has_break(expression.trim()) => {
                let detail = "message must be specified if rule contains line breaks";
                self.required(&path.child("message"), detail);
            }
            _ => {}
        }
        if let Some(reason) = rule.get("reason")
            && !reason
                .as_str()
                .is_some_and(|reason| REASONS.contains(&reason))
        {
            let detail = format!("must be one of {}", REASONS.join(", "));
            self.invalid(&path.child("reason"), reason, &detail);
        }
        let words = rule.as_object().into_iter().flat_map(Map::keys);
        for word in words.filter(|word| !KNOWN.contains(&word.as_str())) {
            self.forbidden(&path.child(word), "is no field of a rule");
        }
    }

    /// Checks of the identity of list items, and of the merging of maps.
    fn topology(&mut self, schema: &Value, path: &FieldPath) {
        let json_type = schema.get("type").unwrap_or(&Value::Null);
        if schema.get("x-kubernetes-map-type").is_some() && json_type != "object" {
            let detail = "must be object if x-kubernetes-map-type is specified";
            self.invalid(&path.child("type"), json_type, detail);
        }
        let Some(list_type) = schema.get("x-kubernetes-list-type") else {
            if schema.get("x-kubernetes-list-map-keys").is_some() {
                let detail = "must be map if x-kubernetes-list-map-keys is non-empty";
                self.required(&path.child("x-kubernetes-list-type"), detail);
            }
            return;
        };
        if json_type != "array" {
            let detail = "must be array if x-kubernetes-list-type is specified";
            self.invalid(&path.child("type"), json_type, detail);
        }
        let items = schema.get("items").unwrap_or(&Value::Null);
        match list_type.as_str() {
            Some("atomic") => {}
            Some("set") => self.set_items(items, &path.child("items")),
            Some("map") => self.map_items(schema, items, path),
            _ => self.invalid(
                &path.child("x-kubernetes-list-type"),
                list_type,
                "must be atomic, set or map",
            ),
        }
        if matches!(list_type.as_str(), Some("set" | "map")) && is_true(items, "nullable") {
            self.forbidden(
                &path.child("items").child("nullable"),
                "cannot be nullable when x-kubernetes-list-type is set or map",
            );
        }
    }

    fn set_items(&mut self, items: &Value, path: &FieldPath) {
        let detail = "must be atomic as item of a list with x-kubernetes-list-type=set";
        match text(items, "type") {
            Some("object") if text(items, "x-kubernetes-map-type") != Some("atomic") => {
                self.required(&path.child("x-kubernetes-map-type"), detail);
            }
            Some("array")
                if text(items, "x-kubernetes-list-type").is_some_and(|of| of != "atomic") =>
            {
                self.required(&path.child("x-kubernetes-list-type"), detail);
            }
            _ => {}
        }
    }

    fn map_items(&mut self, schema: &Value, items: &Value, path: &FieldPath) {
        let json_type = items.get("type").unwrap_or(&Value::Null);
        if json_type != "object" {
            let detail = "must be object if parent array's x-kubernetes-list-type is map";
            self.invalid(&path.child("items").child("type"), json_type, detail);
        }
        let keys = schema
            .get("x-kubernetes-list-map-keys")
            .and_then(Value::as_array);
        let keys: Vec<&str> = keys
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let keys_path = path.child("x-kubernetes-list-map-keys");
        if keys.is_empty() {
            self.required(
                &keys_path,
                "must not be empty if x-kubernetes-list-type is map",
            );
        }
        let required = items.get("required").and_then(Value::as_array);
        for (at, key) in keys.iter().enumerate() {
            let Some(field) = items.get("properties").and_then(|fields| fields.get(key)) else {
                let detail = "entries must all be names of item properties";
                self.invalid(&keys_path.index(at), &Value::from(*key), detail);
                continue;
            };
            let at = path.child("items").child("properties").key(key);
            if matches!(text(field, "type"), Some("array" | "object")) {
                let detail =
                    "must be a scalar type if parent array's x-kubernetes-list-type is map";
                self.invalid(&at.child("type"), &field["type"], detail);
            }
            if is_true(field, "nullable") {
                let detail =
                    "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
                self.forbidden(&at.child("nullable"), detail);
            }
            let is_required = required.is_some_and(|names| names.iter().any(|name| name == key));
            if !is_required && field.get("default").is_none() {
                let detail = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property";
                self.required(&at.child("default"), detail);
            }
        }
    }

    /// Checks of `allOf`, `anyOf`, `oneOf` and `not`.
    fn junctors(&mut self, schema: &Value, structure: &Value, path: &FieldPath) {
        for (branch, at) in branches(schema, path) {
            let is_pattern = is_true(structure, "x-kubernetes-int-or-string")
                && matches!(text(branch, "type"), Some("integer" | "string"))
                && branch.as_object().is_some_and(|branch| branch.len() == 1);
            if !is_pattern {
                self.judging(branch, structure, &at);
            }
        }
        if let Some(not) = schema.get("not") {
            self.judging(not, structure, &path.child("not"));
        }
    }

    /// Checks of a schema in a junctor, which validates values but describes none.
    fn judging(&mut self, schema: &Value, structure: &Value, path: &FieldPath) {
        for name in schema.as_object().into_iter().flat_map(Map::keys) {
            let detail = match name.as_str() {
                "type" | "title" | "description" => "must be empty to be structural",
                "default"
                | "additionalProperties"
                | "x-kubernetes-list-type"
                | "x-kubernetes-list-map-keys"
                | "x-kubernetes-map-type" => "must be undefined to be structural",
                name if name == "nullable" || name.starts_with("x-kubernetes-") => {
                    "must be false to be structural"
                }
                _ => continue,
            };
            self.forbidden(&path.child(name), detail);
        }
        self.unsupported(schema, path);
        // kube-apiserver does not use the type of the structure here.
        self.format(schema, path);
        for (name, field) in members(schema, "properties") {
            let at = path.child("properties").key(name);
            match structure
                .get("properties")
                .and_then(|fields| fields.get(name))
            {
                Some(known) => self.judging(field, known, &at),
                None => self.required(
                    &at,
                    "must be described outside of allOf, anyOf, oneOf and not",
                ),
            }
        }
        if let Some(items) = schema.get("items") {
            let at = path.child("items");
            match structure.get("items") {
                Some(known) => self.judging(items, known, &at),
                None => self.required(
                    &at,
                    "must be described outside of allOf, anyOf, oneOf and not",
                ),
            }
        }
        self.junctors(schema, structure, path);
    }
}

#[cfg(test)]
mod tests;
