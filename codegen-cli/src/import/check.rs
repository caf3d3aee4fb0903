//! Proves what was written: reads the Rust code as the macros do, and makes the schemas that the compiled types would have.
//!
//! `tests/tests/import.rs` compares these schemas with those of compiled packages.

use std::collections::BTreeMap;

use apiloom_meta::schema::Schema;
use apiloom_model::api::{ApiEnum, ApiStruct, Bounds, CelRule, ListTopology, MapTopology, Shape};
use apiloom_model::{
    ApiType, Code, Diagnostics, Field, Kind, Name, Rules, is_attribute, parse_api, parse_kind,
};
use quote::ToTokens;
use serde_json::{Map, Value, json};
use syn::{Expr, GenericArgument, Item, Lit, PathArguments, Type, UnOp};

use super::known;

/// The schema, in a CRD, of the kind of a module; `others` has the code of modules whose types it uses.
///
/// # Errors
/// What the macros or the schema engine would refuse.
pub(crate) fn schema_of(text: &str, others: &[&str]) -> Result<Value, Vec<String>> {
    let mut reader = Reader::default();
    for other in others {
        reader.add(other)?;
    }
    let Some(kind) = reader.add(text)? else {
        reader.problems.push("no kind was written".to_owned());
        return Err(reader.problems);
    };
    let mut definitions = known::definitions();
    let mut reading = Schemas {
        modules: &reader.modules,
        at: 0,
        problems: reader.problems,
    };
    for (at, types) in reader.modules.iter().enumerate() {
        reading.at = at;
        for (name, model) in types {
            let schema = match model {
                Model::Struct(model) => reading.of_struct(model),
                Model::Enum(model) => of_enum(model),
            };
            definitions.insert(key(at, name), schema);
        }
    }
    let mut root = reading.of_struct(&kind.root);
    root["$defs"] = Value::Object(definitions);
    if !reading.problems.is_empty() {
        return Err(reading.problems);
    }
    let schema = Schema::of_root(&root).map_err(|errors| errors.0)?;
    Ok(schema.to_crd().schema)
}

/// The name of the schema of a type of a module.
fn key(module: usize, name: &str) -> String {
    format!("{module}.{name}")
}

/// The items of modules.
#[derive(Default)]
struct Reader {
    /// The types of each module, by their names. A module may use those of the modules before it.
    modules: Vec<BTreeMap<String, Model>>,
    problems: Vec<String>,
}

/// A type that an import writes.
enum Model {
    Struct(Box<ApiStruct>),
    Enum(Box<ApiEnum>),
}

impl Reader {
    /// Reads a module. Returns its kind.
    fn add(&mut self, text: &str) -> Result<Option<Kind>, Vec<String>> {
        let file = syn::parse_file(text).map_err(|error| vec![error.to_string()])?;
        let (mut found, mut types) = (None, BTreeMap::new());
        for item in file.items {
            let item: syn::DeriveInput = match item {
                Item::Struct(item) => item.into(),
                Item::Enum(item) => item.into(),
                _ => continue,
            };
            let mut diagnostics = Diagnostics::default();
            if item
                .attrs
                .iter()
                .any(|attribute| is_attribute(attribute, "resource"))
            {
                found = parse_kind(&item, &mut diagnostics);
            } else {
                let name = item.ident.to_string();
                match parse_api(&item, &mut diagnostics) {
                    Some(ApiType::Struct(model)) => {
                        types.insert(name, Model::Struct(Box::new(model)));
                    }
                    Some(ApiType::Enum(model)) => {
                        types.insert(name, Model::Enum(Box::new(model)));
                    }
                    Some(ApiType::Newtype(_)) | None => {}
                }
            }
            let errors = diagnostics.errors().iter();
            self.problems
                .extend(errors.map(|error| format!("{}: {}", item.ident, error.message)));
        }
        self.modules.push(types);
        Ok(found)
    }
}

fn of_enum(model: &ApiEnum) -> Value {
    let values = model
        .variants
        .iter()
        .map(|variant| Value::from(&*variant.json_name));
    json!({ "type": "string", "enum": values.collect::<Vec<_>>() })
}

/// Makes the schemas of models.
struct Schemas<'a> {
    modules: &'a [BTreeMap<String, Model>],
    /// The module whose code is read.
    at: usize,
    problems: Vec<String>,
}

impl<'a> Schemas<'a> {
    /// The type of a name, and its module. One of the module itself hides those that it has from others.
    fn find(&self, name: &str) -> Option<(usize, &'a Model)> {
        let visible = self.modules.iter().enumerate().take(self.at + 1);
        visible
            .rev()
            .find_map(|(at, types)| Some((at, types.get(name)?)))
    }

    fn of_struct(&mut self, model: &ApiStruct) -> Value {
        let (mut properties, mut required) = (Map::new(), Vec::new());
        for field in &model.fields {
            let is_always_there = match field.shape {
                Shape::Other => field.default.is_none(),
                Shape::Option(_) | Shape::List | Shape::Map => false,
            };
            if is_always_there || field.rules.present {
                required.push(Value::from(&*field.json_name));
            }
            properties.insert(field.json_name.clone(), self.of_field(field));
        }
        let mut schema =
            json!({ "type": "object", "properties": properties, "required": required });
        self.keywords(&mut schema, &model.rules, None);
        if let Some(rules) = validations(&model.rules, &model.fields) {
            schema["x-kubernetes-validations"] = rules;
        }
        if let Some(union) = &model.union {
            let members = model
                .fields
                .iter()
                .filter(|field| !field.members.is_empty());
            let members = members.map(|field| {
                let values = field
                    .members
                    .iter()
                    .map(|member| Value::from(&*member.value));
                (field.json_name.clone(), Value::Array(values.collect()))
            });
            let members: Map<String, Value> = members.collect();
            schema["x-apiloom-union"] =
                json!({ "members": members, "allowNone": union.allow_none });
        }
        schema
    }

    fn of_field(&mut self, field: &Field) -> Value {
        let ty = match syn::parse2::<Type>(field.ty.to_token_stream()) {
            Ok(ty) => ty,
            Err(error) => {
                self.problems.push(error.to_string());
                return Value::Null;
            }
        };
        let mut schema = self.of_type(&ty);
        self.keywords(&mut schema, &field.rules, Some(&ty));
        let default = field
            .default
            .as_ref()
            .filter(|default| default.text() != "None");
        if let Some(default) = default {
            let expr = syn::parse2::<Expr>(default.to_token_stream());
            match expr.ok().and_then(|expr| self.literal(&expr)) {
                Some(value) => schema["x-apiloom-default"] = value,
                None => self.problems.push(format!(
                    "{}: the default {} is no literal",
                    field.name.text,
                    default.text()
                )),
            }
        }
        schema
    }

    /// The schema of a type by its tokens.
    fn of_type(&mut self, ty: &Type) -> Value {
        let (name, inner) = parts(ty);
        let is_byte = |ty: &Type| matches!(ty, Type::Path(path) if path.path.is_ident("u8"));
        match (name.as_str(), inner.as_slice()) {
            ("Option" | "Box", [inner]) => self.of_type(inner),
            ("Vec", [inner]) if is_byte(inner) => {
                json!({ "type": "string", "format": "byte", "x-apiloom-canonical": "bytes" })
            }
            ("Vec", [inner]) => json!({ "type": "array", "items": self.of_type(inner) }),
            ("BTreeMap", [_, inner]) => {
                json!({ "type": "object", "additionalProperties": self.of_type(inner) })
            }
            ("String", []) => json!({ "type": "string" }),
            ("bool", []) => json!({ "type": "boolean" }),
            ("i32", []) => json!({ "type": "integer", "format": "int32" }),
            ("i64", []) => json!({ "type": "integer", "format": "int64" }),
            ("f32", []) => json!({ "type": "number", "format": "float" }),
            ("f64", []) => json!({ "type": "number", "format": "double" }),
            ("Value", []) => json!({}),
            ("Condition" | "LabelSelector" | "OwnerReference", []) => {
                json!({ "$ref": format!("#/$defs/{name}") })
            }
            (name, _) => self.of_name(name),
        }
    }

    fn of_name(&mut self, name: &str) -> Value {
        if let Some((at, _)) = self.find(name) {
            return json!({ "$ref": format!("#/$defs/{}", key(at, name)) });
        }
        known::schema_of(name).unwrap_or_else(|| {
            self.problems
                .push(format!("the type {name} is not known here"));
            Value::Null
        })
    }

    /// Adds the keywords of rules; a flat list. The type is that of the value, if lists may be in it.
    fn keywords(&mut self, schema: &mut Value, rules: &Rules, ty: Option<&Type>) {
        let mut put = |name: &str, value: Value| schema[name] = value;
        for (name, bound) in [
            ("minimum", &rules.min),
            ("maximum", &rules.max),
            ("exclusiveMinimum", &rules.gt),
            ("exclusiveMaximum", &rules.lt),
            ("multipleOf", &rules.multiple_of),
        ] {
            if let Some(bound) = bound {
                put(name, self.number(bound));
            }
        }
        for (least, most, Bounds { min, max }) in [
            ("minLength", "maxLength", &rules.len),
            ("minItems", "maxItems", &rules.items),
            ("minProperties", "maxProperties", &rules.props),
        ] {
            for (name, bound) in [(least, min), (most, max)] {
                if let Some(bound) = bound {
                    put(name, self.number(bound));
                }
            }
        }
        for (name, said) in [
            ("x-apiloom-nullable", rules.nullable),
            (
                "x-kubernetes-preserve-unknown-fields",
                rules.preserve_unknown,
            ),
            ("x-kubernetes-embedded-resource", rules.embedded_resource),
            ("x-apiloom-duplicates", rules.duplicates),
        ] {
            if said {
                put(name, Value::Bool(true));
            }
        }
        for (name, text) in [
            ("pattern", &rules.pattern),
            ("format", &rules.format),
            ("x-apiloom-schema", &rules.schema),
        ] {
            if let Some(text) = text {
                put(name, Value::from(&*text.value));
            }
        }
        match &rules.list {
            None => {}
            Some(ListTopology::Atomic) => put("x-kubernetes-list-type", json!("atomic")),
            Some(ListTopology::Set) => put("x-kubernetes-list-type", json!("set")),
            Some(ListTopology::Map(keys)) => {
                put("x-kubernetes-list-type", json!("map"));
                put(
                    "x-kubernetes-list-map-keys",
                    json!(self.json_names(keys, ty)),
                );
            }
        }
        if let Some(patch) = &rules.patch {
            put("x-kubernetes-patch-strategy", json!(patch.strategy()));
            if let Some(key) = &patch.key {
                let key = self.json_names(std::slice::from_ref(key), ty);
                put("x-kubernetes-patch-merge-key", json!(key.concat()));
            }
        }
        if let Some(rules) = validations(rules, &[]) {
            put("x-kubernetes-validations", rules);
        }
        if let Some(map) = rules.map {
            let name = match map {
                MapTopology::Atomic => "atomic",
                MapTopology::Granular => "granular",
            };
            put("x-kubernetes-map-type", json!(name));
        }
        if let Some(each) = &rules.each {
            let below = if schema["items"].is_object() {
                "items"
            } else {
                "additionalProperties"
            };
            let mut element = schema[below].take();
            self.keywords(&mut element, each, ty.and_then(element_of));
            schema[below] = element;
        }
    }

    /// The names in JSON of the fields that identify the items of a list.
    fn json_names(&self, keys: &[Name], ty: Option<&Type>) -> Vec<String> {
        let item = ty.and_then(element_of).map(|item| parts(item).0);
        let item = item.and_then(|name| self.find(&name));
        let json = |key: &Name| {
            let (_, Model::Struct(item)) = item? else {
                return None;
            };
            let field = item.fields.iter().find(|field| field.name == *key)?;
            Some(field.json_name.clone())
        };
        keys.iter()
            .map(|key| json(key).unwrap_or_else(|| key.text.clone()))
            .collect()
    }

    /// The value of a literal with a sign.
    fn number(&self, code: &Code) -> Value {
        let expr = syn::parse2::<Expr>(code.to_token_stream());
        expr.ok()
            .and_then(|expr| self.literal(&expr))
            .unwrap_or_default()
    }

    /// The value of an expression, as an import writes them.
    fn literal(&self, expr: &Expr) -> Option<Value> {
        match expr {
            Expr::Lit(lit) => match &lit.lit {
                Lit::Str(text) => Some(Value::from(text.value())),
                Lit::Bool(value) => Some(Value::from(value.value)),
                Lit::Int(number) => number.base10_parse::<i64>().ok().map(Value::from),
                Lit::Float(number) => number.base10_parse::<f64>().ok().map(Value::from),
                _ => None,
            },
            Expr::Unary(unary) if matches!(unary.op, UnOp::Neg(_)) => negative(&unary.expr),
            Expr::Block(block) if block.block.stmts.is_empty() => Some(json!({})),
            Expr::MethodCall(call) if call.method == "to_owned" => self.literal(&call.receiver),
            Expr::Macro(call) if call.mac.path.is_ident("vec") => {
                let parser = syn::punctuated::Punctuated::<Expr, syn::Token![,]>::parse_terminated;
                let items = call.mac.parse_body_with(parser).ok()?;
                items
                    .iter()
                    .map(|item| self.literal(item))
                    .collect::<Option<Vec<_>>>()
                    .map(Value::Array)
            }
            Expr::Call(_) if expr.to_token_stream().to_string() == "BTreeMap :: new ()" => {
                Some(json!({}))
            }
            Expr::Path(path) => {
                let names: Vec<String> = path
                    .path
                    .segments
                    .iter()
                    .map(|segment| segment.ident.to_string())
                    .collect();
                let [of, variant] = names.as_slice() else {
                    return None;
                };
                let (_, Model::Enum(of)) = self.find(of)? else {
                    return None;
                };
                let found = of
                    .variants
                    .iter()
                    .find(|known| known.name.text == *variant)?;
                Some(Value::from(&*found.json_name))
            }
            _ => None,
        }
    }
}

/// The rules in CEL of a value with these fields.
fn validations(rules: &Rules, fields: &[Field]) -> Option<Value> {
    let of_rule = |rule: &CelRule| {
        let mut entries = json!({ "rule": rule.rule.value });
        let path = rule.path.as_ref().map(|name| {
            let field = fields.iter().find(|field| field.name == *name);
            format!(".{}", field.map_or(&name.text, |field| &field.json_name))
        });
        for (name, text) in [
            ("message", rule.message.as_deref()),
            ("messageExpression", rule.message_expression.as_deref()),
            ("reason", rule.reason),
            ("fieldPath", path.as_deref()),
        ] {
            if let Some(text) = text {
                entries[name] = text.into();
            }
        }
        if rule.has_optional_old {
            entries["optionalOldSelf"] = true.into();
        }
        entries
    };
    (!rules.cel.is_empty()).then(|| rules.cel.iter().map(of_rule).collect())
}

/// A negative number.
fn negative(expr: &Expr) -> Option<Value> {
    let Expr::Lit(syn::ExprLit { lit, .. }) = expr else {
        return None;
    };
    match lit {
        Lit::Int(number) => format!("-{}", number.base10_digits())
            .parse::<i64>()
            .ok()
            .map(Value::from),
        Lit::Float(number) => number
            .base10_parse::<f64>()
            .ok()
            .map(|number| Value::from(-number)),
        _ => None,
    }
}

/// The last word of a type, and the types in its brackets.
fn parts(ty: &Type) -> (String, Vec<&Type>) {
    let Type::Path(path) = ty else {
        return (String::new(), Vec::new());
    };
    let Some(last) = path.path.segments.last() else {
        return (String::new(), Vec::new());
    };
    let mut inner = Vec::new();
    if let PathArguments::AngleBracketed(generics) = &last.arguments {
        inner.extend(generics.args.iter().filter_map(|argument| match argument {
            GenericArgument::Type(ty) => Some(ty),
            _ => None,
        }));
    }
    (last.ident.to_string(), inner)
}

/// The type of the items of a list, or of the values of a map.
fn element_of(ty: &Type) -> Option<&Type> {
    let (name, inner) = parts(ty);
    match name.as_str() {
        "Option" | "Box" => element_of(inner.first()?),
        _ => inner.last().copied(),
    }
}
