//! The form of a structural schema: types everywhere, and alternatives that only validate what is described outside of
//! them.

use serde_json::Value;

use super::reading::{
    EMBEDDED, INT_OR_STRING, JUNCTORS, KEYWORDS, LIST_MAP_KEYS, LIST_TYPE, MAP_TYPE, PRESERVE,
    VALIDATIONS, branches, has, is_either, is_true, members, part, text, values_of_map,
};
use crate::field::{FieldError, FieldPath};
use crate::interrupt::is_interrupted;
use crate::regexp::Pattern;

#[derive(Clone, Copy, PartialEq)]
enum Level {
    Root,
    Item,
    Field,
}

impl Level {
    fn no_type(self) -> &'static str {
        match self {
            Self::Root => "must not be empty at the root",
            Self::Item => "must not be empty for specified array items",
            Self::Field => "must not be empty for specified object fields",
        }
    }
}

/// The violations of the form, sorted by their texts as in kube-apiserver.
pub(super) fn check(schema: &Value, path: &FieldPath) -> Vec<FieldError> {
    let mut check = Check::default();
    check.schema(schema, Level::Root, path);
    check.is_described(schema, Some(schema), path, path);
    check.found.sort_by_cached_key(ToString::to_string);
    check.found
}

/// What alternatives judge but the schema does not describe.
pub(super) fn undescribed(schema: &Value, path: &FieldPath) -> Vec<FieldError> {
    let mut check = Check::default();
    check.is_described(schema, Some(schema), path, path);
    check.found
}

#[derive(Default)]
struct Check {
    found: Vec<FieldError>,
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

    fn schema(&mut self, schema: &Value, level: Level, path: &FieldPath) {
        if is_interrupted() {
            return;
        }
        let json_type = text(schema, "type");
        match part(schema, "items") {
            Some(items) => self.schema(items, Level::Item, &path.child("items")),
            None if json_type == Some("array") => {
                self.required(&path.child("items"), "must be specified");
            }
            None => {}
        }
        for (name, field) in members(schema, "properties") {
            self.schema(field, Level::Field, &path.child("properties").key(name));
        }
        let values = path.child("additionalProperties");
        let is_embedded = is_true(schema, EMBEDDED);
        if part(schema, "additionalProperties").is_some() {
            if level == Level::Root {
                self.forbidden(&values, "must not be used at the root");
            }
            if is_embedded {
                let detail = "must not be used if x-kubernetes-embedded-resource is set";
                self.forbidden(&values, detail);
            }
        }
        if let Some(schema) = values_of_map(schema) {
            self.schema(schema, Level::Field, &values);
        }
        if is_true(schema, INT_OR_STRING) {
            for name in [PRESERVE, EMBEDDED] {
                if is_true(schema, name) {
                    let detail = "must be false if x-kubernetes-int-or-string is true";
                    self.invalid(&path.child(name), &Value::Bool(true), detail);
                }
            }
        }
        let (any, all) = self.exceptions(schema);
        self.judgments(schema, any, all, path);
        self.json_type(schema, level, path);
        self.fields_of_objects(schema, level, path);
        let has_fields = members(schema, "properties").next().is_some();
        if is_embedded && !is_true(schema, PRESERVE) && !has_fields {
            let detail = "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields";
            self.required(&path.child("properties"), detail);
        }
    }

    /// Whether `anyOf`, or that of the first branch of `allOf`, says that a value is an integer or a string.
    fn exceptions(&self, schema: &Value) -> (bool, bool) {
        let first = schema.get("allOf").and_then(|all| all.get(0));
        (is_either(schema), first.is_some_and(is_either))
    }

    fn json_type(&mut self, schema: &Value, level: Level, path: &FieldPath) {
        let at = path.child("type");
        let json_type = text(schema, "type");
        let shown = || Value::from(json_type.unwrap_or_default());
        let is_open = is_true(schema, INT_OR_STRING) || is_true(schema, PRESERVE);
        if is_true(schema, EMBEDDED) && json_type != Some("object") {
            let detail = "must be object if x-kubernetes-embedded-resource is true";
            match json_type {
                None => self.required(&at, detail),
                Some(_) => self.invalid(&at, &shown(), detail),
            }
        } else if !has(schema, "type") && !is_open {
            self.required(&at, level.no_type());
        }
        if level == Level::Root && json_type.is_some_and(|json_type| json_type != "object") {
            self.invalid(&at, &shown(), "must be object at the root");
        }
    }

    /// Checks what a schema says of the fields of every object.
    fn fields_of_objects(&mut self, schema: &Value, level: Level, path: &FieldPath) {
        let is_object = level == Level::Root || is_true(schema, EMBEDDED);
        for (name, field) in members(schema, "properties").filter(|_| is_object) {
            let expected = match name.as_str() {
                "apiVersion" | "kind" => "string",
                "metadata" => "object",
                _ => continue,
            };
            let at = path.child("properties").key(name);
            let json_type = text(field, "type").unwrap_or_default();
            if json_type != expected {
                let detail = format!("must be {expected}");
                self.invalid(&at.child("type"), &json_type.into(), &detail);
            }
            if name == "metadata" && level == Level::Root && !says_only_names(field) {
                self.forbidden(
                    &at,
                    "must not specify anything other than name and generateName, but metadata is implicitly specified",
                );
            }
        }
    }

    /// Checks the alternatives of a schema, and its pattern.
    fn judgments(&mut self, schema: &Value, any: bool, all: bool, path: &FieldPath) {
        for name in JUNCTORS {
            if name == "anyOf" && any {
                continue;
            }
            for (at, branch) in branches(schema, name) {
                let skips = name == "allOf" && at == 0 && all;
                self.judging(branch, skips, &path.child(name).index(at));
            }
        }
        if let Some(not) = part(schema, "not") {
            self.judging(not, false, &path.child("not"));
        }
        if let Some(pattern) = text(schema, "pattern")
            && let Err(error) = Pattern::new(pattern)
        {
            let detail = format!("must be a valid regular expression, but isn't: {error}");
            self.invalid(&path.child("pattern"), &pattern.into(), &detail);
        }
    }

    /// Checks a schema that judges values and describes none.
    fn judging(&mut self, schema: &Value, any: bool, path: &FieldPath) {
        self.judgments(schema, any, false, path);
        if let Some(items) = part(schema, "items") {
            self.judging(items, false, &path.child("items"));
        }
        for (name, field) in members(schema, "properties") {
            self.judging(field, false, &path.child("properties").key(name));
        }
        // `additionalProperties: false` counts as absent.
        if part(schema, "additionalProperties").is_some_and(|values| *values != Value::Bool(false))
        {
            let at = path.child("additionalProperties");
            self.forbidden(&at, "must be undefined to be structural");
        }
        for (name, detail) in [
            ("type", "must be empty to be structural"),
            ("default", "must be undefined to be structural"),
            ("title", "must be empty to be structural"),
            ("description", "must be empty to be structural"),
            ("nullable", "must be false to be structural"),
            (PRESERVE, "must be false to be structural"),
            (EMBEDDED, "must be false to be structural"),
            (INT_OR_STRING, "must be false to be structural"),
            (LIST_MAP_KEYS, "must be empty to be structural"),
            (LIST_TYPE, "must be undefined to be structural"),
            (MAP_TYPE, "must be undefined to be structural"),
            (VALIDATIONS, "must be empty to be structural"),
        ] {
            if has(schema, name) {
                self.forbidden(&path.child(name), detail);
            }
        }
        if schema
            .get("properties")
            .is_some_and(|fields| fields.get("metadata").is_some())
        {
            let at = path.child("properties").key("metadata");
            self.forbidden(&at, "must not be specified in a nested context");
        }
    }

    /// Checks that what alternatives judge is described outside of them. `structure` is that description, with its own
    /// path.
    fn is_described(
        &mut self,
        judging: &Value,
        structure: Option<&Value>,
        at: &FieldPath,
        path: &FieldPath,
    ) {
        let Some(structure) = structure else {
            let detail = format!("because it is defined in {path}");
            return self.required(at, &detail);
        };
        if let Some(not) = part(judging, "not") {
            self.is_described_below(not, structure, at, &path.child("not"));
        }
        for name in JUNCTORS {
            for (index, branch) in branches(judging, name) {
                let path = path.child(name).index(index);
                self.is_described_below(branch, structure, at, &path);
            }
        }
    }

    fn is_described_below(
        &mut self,
        judging: &Value,
        structure: &Value,
        at: &FieldPath,
        path: &FieldPath,
    ) {
        self.is_described(judging, Some(structure), at, path);
        if let Some(items) = part(judging, "items") {
            let (at, path) = (at.child("items"), path.child("items"));
            match part(structure, "items") {
                Some(structure) => self.is_described_below(items, structure, &at, &path),
                None => self.is_described(items, None, &at, &path),
            }
        }
        for (name, field) in members(judging, "properties") {
            let at = at.child("properties").key(name);
            let path = path.child("properties").key(name);
            let structure = structure.get("properties").and_then(|it| it.get(name));
            match structure {
                Some(structure) => self.is_described_below(field, structure, &at, &path),
                None => self.is_described(field, None, &at, &path),
            }
        }
    }
}

/// Whether the schema of the root's metadata only restricts the names.
fn says_only_names(metadata: &Value) -> bool {
    let has_others = KEYWORDS
        .iter()
        .any(|name| !matches!(*name, "type" | "default" | "properties") && has(metadata, name));
    let are_names = members(metadata, "properties")
        .all(|(name, _)| matches!(name.as_str(), "name" | "generateName"));
    !has_others && are_names
}
