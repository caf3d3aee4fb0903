//! Whether two schemas of CustomResourceDefinitions are equivalent: they have one canonical form, without order,
//! documentation, and what says nothing.

use serde_json::{Map, Value, json};

use super::markers::MARKERS;

/// Kubernetes' pattern of a quantity. The type `Quantity` has a shorter one for the same values.
pub(super) const QUANTITY: &str = r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$";

/// The pattern that the type `Quantity` prints, for the same values.
pub(super) const OWN_QUANTITY: &str =
    r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?$";

/// The canonical form of the schema of a version: without what the server adds to every root.
pub(crate) fn canonical_root(schema: &Value) -> Value {
    let mut root = canonical(schema);
    forget_of_every_object(&mut root);
    if let Value::Object(keywords) = &mut root {
        for name in ["default", "nullable"] {
            keywords.remove(name);
        }
    }
    root
}

/// The canonical form of a schema.
pub(crate) fn canonical(schema: &Value) -> Value {
    let Value::Object(keywords) = schema else {
        return schema.clone();
    };
    let mut out = keywords.clone();
    out.retain(|name, value| !is_documentation(name) && !says_nothing(name, value));
    for below in ["items", "additionalProperties", "not"] {
        if let Some(schema) = out.get_mut(below) {
            *schema = canonical(schema);
        }
    }
    if let Some(Value::Object(fields)) = out.get_mut("properties") {
        fields
            .values_mut()
            .for_each(|field| *field = canonical(field));
    }
    for junctor in ["allOf", "anyOf", "oneOf"] {
        if let Some(Value::Array(branches)) = out.get_mut(junctor) {
            branches
                .iter_mut()
                .for_each(|branch| *branch = canonical(branch));
            branches.sort_by_key(Value::to_string);
        }
    }
    numbers(&mut out);
    int_or_string(&mut out);
    scalar(&mut out);
    flatten(&mut out);
    open_map(&mut out);
    any_field(&mut out);
    required(&mut out);
    for list in [
        "enum",
        "x-kubernetes-list-map-keys",
        "x-kubernetes-validations",
    ] {
        if let Some(Value::Array(values)) = out.get_mut(list) {
            values.retain(|value| !value.is_null());
            values.sort_by_key(Value::to_string);
            values.dedup();
        }
    }
    union(&mut out);
    let mut out = Value::Object(out);
    if out["x-kubernetes-embedded-resource"] == true {
        out["type"] = json!("object");
        forget_of_every_object(&mut out);
    }
    out
}

/// Keywords about strategic merge patches, which definitions do not have.
const OF_PATCHES: [&str; 2] = [
    "x-kubernetes-patch-strategy",
    "x-kubernetes-patch-merge-key",
];

/// A canonical form without what only documents of OpenAPI say.
pub(crate) fn without_patches(schema: &Value) -> Value {
    without(schema, &OF_PATCHES)
}

/// A schema without the keywords of the import and of patches, as a server reads it.
pub(super) fn without_markers(schema: &Value) -> Value {
    without(&without(schema, &OF_PATCHES), &MARKERS)
}

/// A schema without keywords, at all of its levels.
fn without(schema: &Value, left_out: &[&str]) -> Value {
    match schema {
        Value::Object(keywords) => {
            let kept = keywords
                .iter()
                .filter(|(name, _)| !left_out.contains(&name.as_str()));
            let kept = kept.map(|(name, value)| (name.clone(), without(value, left_out)));
            Value::Object(kept.collect())
        }
        Value::Array(items) => items.iter().map(|item| without(item, left_out)).collect(),
        other => other.clone(),
    }
}

fn is_documentation(name: &str) -> bool {
    matches!(
        name,
        "description" | "title" | "example" | "externalDocs" | "$schema" | "id"
    ) || MARKERS.contains(&name)
}

fn says_nothing(name: &str, value: &Value) -> bool {
    match name {
        "nullable"
        | "uniqueItems"
        | "exclusiveMinimum"
        | "exclusiveMaximum"
        | "additionalProperties" => value == false,
        "minLength" | "minItems" | "minProperties" => value == 0,
        "required" | "enum" | "allOf" | "anyOf" | "oneOf" => value == &json!([]),
        "properties" => value == &json!({}),
        // A format without a meaning, beside the keyword that has one.
        "format" => value == "" || value == "int-or-string",
        "pattern" => value == "",
        "x-kubernetes-map-type" => value == "granular",
        "default" => value.is_null(),
        _ if name.starts_with("x-kubernetes-") => value == false || value == &json!([]),
        _ => false,
    }
}

/// Numbers have 64 bits unless their format says otherwise.
fn numbers(schema: &mut Map<String, Value>) {
    let wide = match schema.get("type").and_then(Value::as_str) {
        Some("integer") => "int64",
        Some("number") => "double",
        _ => "",
    };
    if schema.get("format").is_some_and(|format| format == wide) {
        schema.remove("format");
    }
    for name in ["minimum", "maximum", "multipleOf", "default", "enum"] {
        if let Some(value) = schema.get_mut(name) {
            as_floats(value);
        }
    }
}

/// Spells numbers alike: `1` and `1.0` are one.
fn as_floats(value: &mut Value) {
    match value {
        Value::Number(number) => {
            let is_exact = number
                .as_i64()
                .is_none_or(|number| number.unsigned_abs() < 1 << 53);
            if let Some(float) = number.as_f64().filter(|_| is_exact) {
                *value = json!(float);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(as_floats),
        Value::Object(fields) => fields.values_mut().for_each(as_floats),
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

/// The types of an int-or-string are implied. One that also has a type takes only values of that type.
fn int_or_string(schema: &mut Map<String, Value>) {
    if schema.get("x-kubernetes-int-or-string") != Some(&Value::Bool(true)) {
        return;
    }
    if schema.contains_key("type") {
        schema.remove("x-kubernetes-int-or-string");
        return;
    }
    let both = json!([{ "type": "integer" }, { "type": "string" }]);
    if schema.get("anyOf") == Some(&both) {
        schema.remove("anyOf");
    }
    if let Some(Value::Array(parts)) = schema.get_mut("allOf") {
        parts.retain(|part| part != &json!({ "anyOf": both }));
        if parts.is_empty() {
            schema.remove("allOf");
        }
    }
    schema.remove("format");
    if schema
        .get("pattern")
        .is_some_and(|pattern| pattern == OWN_QUANTITY)
    {
        schema.insert("pattern".to_owned(), QUANTITY.into());
    }
}

/// A scalar has no unknown fields that could be kept.
fn scalar(schema: &mut Map<String, Value>) {
    let is_scalar = match schema.get("type").and_then(Value::as_str) {
        Some(name) => !matches!(name, "object" | "array"),
        None => schema.contains_key("x-kubernetes-int-or-string"),
    };
    if is_scalar {
        schema.remove("x-kubernetes-preserve-unknown-fields");
    }
}

/// A choice of one, and parts of `allOf` with other keywords, hold as the schema itself does.
fn flatten(schema: &mut Map<String, Value>) {
    for junctor in ["anyOf", "oneOf"] {
        let is_single = schema
            .get(junctor)
            .is_some_and(|branches| items(branches).len() == 1);
        if is_single && let Some(Value::Array(branches)) = schema.remove(junctor) {
            let parts = schema.entry("allOf").or_insert_with(|| json!([]));
            parts
                .as_array_mut()
                .into_iter()
                .for_each(|parts| parts.extend(branches.clone()));
        }
    }
    let Some(Value::Array(parts)) = schema.remove("allOf") else {
        return;
    };
    let mut kept = Vec::new();
    for part in parts {
        let Value::Object(keywords) = part else {
            continue;
        };
        let rest = merge(schema, keywords);
        if !rest.is_empty() {
            kept.push(Value::Object(rest));
        }
    }
    if !kept.is_empty() {
        schema.insert("allOf".to_owned(), kept.into());
    }
}

/// Adds keywords to those of a schema that hold beside them. Returns those that cannot be said in one schema with its own.
fn merge(schema: &mut Map<String, Value>, keywords: Map<String, Value>) -> Map<String, Value> {
    let mut rest = Map::new();
    for (name, value) in keywords {
        match (name.as_str(), schema.get_mut(&name), &value) {
            (_, None, _) => {
                schema.insert(name, value);
            }
            (_, Some(own), value) if own == value => {}
            ("required", Some(Value::Array(own)), Value::Array(more)) => {
                own.extend(more.iter().cloned());
            }
            // A value of both lists is left.
            ("enum", Some(Value::Array(own)), Value::Array(more))
                if own.iter().any(|value| more.contains(value)) =>
            {
                own.retain(|value| more.contains(value));
            }
            ("properties", Some(Value::Object(own)), Value::Object(more)) => {
                let left = merge_fields(own, more);
                if !left.is_empty() {
                    rest.insert(name, left.into());
                }
            }
            _ => {
                rest.insert(name, value);
            }
        }
    }
    rest
}

/// [`merge`] for the schemas of fields that both have.
fn merge_fields(own: &mut Map<String, Value>, more: &Map<String, Value>) -> Map<String, Value> {
    let mut rest = Map::new();
    for (name, value) in more {
        let left = match (own.get_mut(name), value) {
            (Some(Value::Object(own)), Value::Object(more)) => merge(own, more.clone()).into(),
            _ => value.clone(),
        };
        if left != json!({}) {
            rest.insert(name.clone(), left);
        }
    }
    rest
}

/// A field of any value says nothing where unknown fields are kept.
fn any_field(schema: &mut Map<String, Value>) {
    let any = json!({ "x-kubernetes-preserve-unknown-fields": true });
    if schema.get("x-kubernetes-preserve-unknown-fields") != Some(&Value::Bool(true)) {
        return;
    }
    if let Some(Value::Object(fields)) = schema.get_mut("properties") {
        fields.retain(|_, field| *field != any);
        if fields.is_empty() {
            schema.remove("properties");
        }
    }
}

/// An object of any values keeps what it does not know.
fn open_map(schema: &mut Map<String, Value>) {
    let Some(values) = schema.get("additionalProperties") else {
        return;
    };
    let preserve = json!({ "x-kubernetes-preserve-unknown-fields": true });
    if *values == preserve || *values == true || *values == json!({}) {
        schema.remove("additionalProperties");
        schema.insert(
            "x-kubernetes-preserve-unknown-fields".to_owned(),
            Value::Bool(true),
        );
    }
}

/// Sorts the names, without those that a default gives.
fn required(schema: &mut Map<String, Value>) {
    let Some(Value::Array(mut names)) = schema.remove("required") else {
        return;
    };
    let has_default = |name: &Value| {
        let field = schema
            .get("properties")
            .and_then(|fields| fields.get(name.as_str()?));
        field.is_some_and(|field| field.get("default").is_some())
    };
    names.retain(|name| !has_default(name));
    names.sort_by_key(Value::to_string);
    names.dedup();
    if !names.is_empty() {
        schema.insert("required".to_owned(), names.into());
    }
}

/// The keyword of the canonical form for a union: exactly one of these fields is set.
const UNION: &str = "exactly one of";

/// `oneOf` of single required fields, and the rule that `#[api(union)]` prints for the same.
fn union(schema: &mut Map<String, Value>) {
    if let Some(members) = union_of(schema) {
        schema.remove("oneOf");
        schema.insert(UNION.to_owned(), json!(members));
    }
    let mut found = None;
    if let Some(Value::Array(rules)) = schema.get_mut("x-kubernetes-validations") {
        rules.retain(|rule| {
            let members = rule["rule"].as_str().and_then(members_of_rule);
            let is_other = members.is_none() || found.is_some();
            if !is_other {
                found = members;
            }
            is_other
        });
    }
    if schema.get("x-kubernetes-validations") == Some(&json!([])) {
        schema.remove("x-kubernetes-validations");
    }
    if let Some(members) = found {
        schema.insert(UNION.to_owned(), json!(members));
    }
}

/// The sorted names of a `oneOf` of single required fields that are all structs.
pub(super) fn union_of(schema: &Map<String, Value>) -> Option<Vec<String>> {
    let branches = items(schema.get("oneOf")?);
    if branches.len() < 2 {
        return None;
    }
    let fields = schema.get("properties")?;
    let member = |branch: &Value| {
        let keywords = branch.as_object().filter(|keywords| keywords.len() == 1)?;
        let [name] = items(keywords.get("required")?) else {
            return None;
        };
        let name = name.as_str()?;
        let field = fields.get(name)?;
        // Only a struct is set as soon as it is present.
        let is_struct = field["type"] == "object"
            && field["properties"].is_object()
            && field["nullable"] != true
            && field.get("default").is_none();
        let is_word = name.bytes().all(|byte| byte.is_ascii_alphanumeric())
            && name.starts_with(|c: char| c.is_ascii_alphabetic())
            && !is_word_of_cel(name);
        (is_struct && is_word).then(|| name.to_owned())
    };
    let mut members = branches.iter().map(member).collect::<Option<Vec<_>>>()?;
    let count = members.len();
    members.sort();
    members.dedup();
    (members.len() == count).then_some(members)
}

/// Words that CEL has a use for: a field of this name is escaped there.
fn is_word_of_cel(name: &str) -> bool {
    matches!(
        name,
        "as" | "break"
            | "const"
            | "continue"
            | "else"
            | "false"
            | "for"
            | "function"
            | "if"
            | "import"
            | "in"
            | "let"
            | "loop"
            | "namespace"
            | "null"
            | "package"
            | "return"
            | "true"
            | "var"
            | "void"
            | "while"
    )
}

/// The sorted names in `(has(self.a) ? 1 : 0) + (has(self.b) ? 1 : 0) == 1`.
fn members_of_rule(rule: &str) -> Option<Vec<String>> {
    let sum = rule.strip_suffix(" == 1")?;
    let member = |part: &str| {
        let name = part
            .strip_prefix("(has(self.")?
            .strip_suffix(") ? 1 : 0)")?;
        let is_word = name.bytes().all(|byte| byte.is_ascii_alphanumeric());
        is_word.then(|| name.to_owned())
    };
    let mut members = sum.split(" + ").map(member).collect::<Option<Vec<_>>>()?;
    members.sort();
    (members.len() > 1).then_some(members)
}

/// Forgets the plain fields that every object has.
fn forget_of_every_object(schema: &mut Value) {
    let plain = [
        ("apiVersion", json!({ "type": "string" })),
        ("kind", json!({ "type": "string" })),
        ("metadata", json!({ "type": "object" })),
    ];
    let Value::Object(keywords) = schema else {
        return;
    };
    for (name, form) in &plain {
        if let Some(Value::Object(fields)) = keywords.get_mut("properties")
            && fields.get(*name) == Some(form)
        {
            fields.remove(*name);
        }
        if let Some(Value::Array(required)) = keywords.get_mut("required") {
            required.retain(|known| known != name);
        }
    }
    keywords.retain(|name, value| !says_nothing(name, value));
}

/// The differences of two canonical forms, a line each: what `imported` says at a path, and what `written` says.
pub(crate) fn differences(imported: &Value, written: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    collect(imported, written, "", &mut lines);
    lines
}

fn collect(imported: &Value, written: &Value, path: &str, lines: &mut Vec<String>) {
    if imported == written {
        return;
    }
    let (Value::Object(ours), Value::Object(theirs)) = (written, imported) else {
        lines.push(format!("{}: {imported} became {written}", shown(path)));
        return;
    };
    let names: std::collections::BTreeSet<&String> = ours.keys().chain(theirs.keys()).collect();
    for name in names {
        match (name.as_str(), theirs.get(name), ours.get(name)) {
            (_, theirs, ours) if theirs == ours => {}
            ("properties", theirs, ours) => fields(theirs, ours, path, lines),
            ("items", Some(theirs), Some(ours)) => {
                collect(theirs, ours, &format!("{path}[]"), lines);
            }
            ("additionalProperties", Some(theirs), Some(ours)) => {
                collect(theirs, ours, &format!("{path}{{}}"), lines);
            }
            (_, Some(theirs), Some(ours)) => {
                lines.push(format!("{}: {name} {theirs} became {ours}", shown(path)));
            }
            (_, Some(theirs), None) => {
                lines.push(format!("{}: {name} {theirs} is left out", shown(path)));
            }
            // Of these formats this server checks more than kube-apiserver, and says so.
            ("pattern", None, Some(_)) if is_checked_more(&imported["format"]) => {}
            (_, None, Some(ours)) => lines.push(format!("{}: {name} {ours} is added", shown(path))),
            (_, None, None) => {}
        }
    }
}

fn is_checked_more(format: &Value) -> bool {
    ["duration", "email", "uri", "uuid"]
        .iter()
        .any(|known| format == known)
}

fn fields(theirs: Option<&Value>, ours: Option<&Value>, path: &str, lines: &mut Vec<String>) {
    let empty = json!({});
    let (theirs, ours) = (theirs.unwrap_or(&empty), ours.unwrap_or(&empty));
    let keys = |fields: &Value| {
        fields
            .as_object()
            .map(|fields| fields.keys().cloned().collect::<Vec<_>>())
    };
    let names: std::collections::BTreeSet<String> = [keys(theirs), keys(ours)]
        .into_iter()
        .flatten()
        .flatten()
        .collect();
    for name in names {
        let dot = if path.is_empty() { "" } else { "." };
        let below = format!("{path}{dot}{name}");
        match (theirs.get(&name), ours.get(&name)) {
            (Some(theirs), Some(ours)) => collect(theirs, ours, &below, lines),
            (Some(_), None) => lines.push(format!("{below}: the field is left out")),
            (None, _) => lines.push(format!("{below}: the field is added")),
        }
    }
}

fn shown(path: &str) -> &str {
    if path.is_empty() { "the object" } else { path }
}

/// The items of a list; none if it is something else.
fn items(list: &Value) -> &[Value] {
    list.as_array().map_or(&[], Vec::as_slice)
}
