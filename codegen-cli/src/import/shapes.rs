//! From a structural schema to Rust types: what type a value has, and the keys of `#[api(..)]` that say its rules.
//!
//! What neither types nor keys can say stays in the key `schema`, as JSON; a value whose type cannot be said at all is a
//! `serde_json::Value` with its whole schema there. So nothing of a schema is lost here; `check.rs` proves it.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::compare::union_of;
use super::definition::{entries, items, text, texts};
use super::known::{self, Known};
use super::markers::{AGAIN, COMPONENT, DUPLICATES};
use super::names;
use super::rules::{self, Literal, Rules};

/// A Rust type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    /// A type of the standard library, or of apiloom's prelude.
    Plain(&'static str),
    /// One of the shapes.
    Named(usize),
    List(Box<Type>),
    Map(Box<Type>),
    /// One of the shapes, which contains the field.
    Boxed(usize),
    /// A component that is being read; `Shapes::close` makes a named type of it.
    Again(String),
}

impl Type {
    fn is_container(&self) -> bool {
        matches!(self, Type::List(_) | Type::Map(_))
    }

    /// The shape inside of lists and maps.
    pub(crate) fn named(&self) -> Option<usize> {
        match self {
            Type::Plain(_) | Type::Again(_) => None,
            Type::Named(id) | Type::Boxed(id) => Some(*id),
            Type::List(inner) | Type::Map(inner) => inner.named(),
        }
    }
}

/// A struct or an enum that has no name yet.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    /// The CamelCase names from the kind down to it.
    pub(crate) path: Vec<String>,
    /// The component that it was, in a document of OpenAPI.
    pub(crate) component: Option<String>,
    /// Its schema without descriptions: shapes with the same are one type if they have one name.
    pub(crate) identity: Value,
    pub(crate) doc: Option<String>,
    /// The arguments of `#[api(..)]`.
    pub(crate) keys: Vec<String>,
    pub(crate) body: Body,
}

#[derive(Clone, Debug)]
pub(crate) enum Body {
    Struct(Vec<Field>),
    /// The variants, with the values that they have in JSON.
    Enum(Vec<(String, String)>),
}

/// A field of a struct.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) json: String,
    pub(crate) doc: Option<String>,
    pub(crate) ty: Type,
    pub(crate) is_option: bool,
    /// The default of an enum, whose variant has no path before the enum has a name.
    pub(crate) default: Option<Literal>,
    /// The arguments of `#[api(..)]` but for the default.
    pub(crate) keys: Vec<String>,
}

/// The type of a value, with the rules for its place.
#[derive(Debug)]
struct ConstrainedType {
    ty: Type,
    rules: Rules,
}

/// The types of one version of a kind.
#[derive(Debug, Default)]
pub(crate) struct Shapes {
    pub(crate) all: Vec<Shape>,
    /// The number of lists and maps around the value that is being read.
    depth: usize,
}

/// The keywords of the root that every object has.
const OF_EVERY_OBJECT: [&str; 3] = ["apiVersion", "kind", "metadata"];

impl Shapes {
    /// Reads the schema of a version; the last shape is the root.
    pub(crate) fn read(kind: &str, schema: &Value) -> Self {
        let mut shapes = Self::default();
        let path = [names::camel(kind)];
        let mut root = schema.clone();
        if let Some(properties) = root.get_mut("properties").and_then(Value::as_object_mut) {
            properties.retain(|name, _| !OF_EVERY_OBJECT.contains(&name.as_str()));
        }
        if let Some(required) = root.get_mut("required").and_then(Value::as_array_mut) {
            required.retain(|name| OF_EVERY_OBJECT.iter().all(|known| name != known));
        }
        let doc = doc(&root);
        let mut rules = Rules::of(&root);
        rules.take("type");
        rules.take("properties");
        rules.take("required");
        // kube-apiserver gives no meaning to these at the root.
        for name in ["default", "nullable"] {
            rules.take(name);
        }
        let mut fields = shapes.fields(&root, &path);
        // Only the subresource writes it, so a create cannot be asked for it.
        for field in fields.iter_mut().filter(|field| field.json == "status") {
            if !field.is_option && !field.ty.is_container() {
                field.is_option = true;
            }
            field.keys.retain(|key| key != "present");
        }
        let keys = shapes.keys_of_struct(&root, rules, &mut fields);
        shapes.all.push(Shape {
            path: path.to_vec(),
            component: None,
            identity: json!(null),
            doc,
            keys,
            body: Body::Struct(fields),
        });
        shapes.close();
        shapes
    }

    /// Leads references back to components to the types that were made of them; to any value where none was.
    fn close(&mut self) {
        fn of_type(ty: &mut Type, ids: &BTreeMap<String, usize>, is_direct: bool) {
            match ty {
                Type::Again(name) => {
                    *ty = match ids.get(name) {
                        Some(id) if is_direct => Type::Boxed(*id),
                        Some(id) => Type::Named(*id),
                        None => Type::Map(Box::new(Type::Plain("Value"))),
                    };
                }
                Type::List(inner) | Type::Map(inner) => of_type(inner, ids, false),
                Type::Plain(_) | Type::Named(_) | Type::Boxed(_) => {}
            }
        }
        let mut ids = BTreeMap::new();
        for (id, shape) in self.all.iter().enumerate() {
            if let Some(name) = &shape.component {
                ids.entry(name.clone()).or_insert(id);
            }
        }
        for shape in &mut self.all {
            if let Body::Struct(fields) = &mut shape.body {
                fields
                    .iter_mut()
                    .for_each(|field| of_type(&mut field.ty, &ids, true));
            }
        }
    }

    fn value(&mut self, schema: &Value, path: &[String]) -> ConstrainedType {
        if let Some(name) = schema[AGAIN].as_str() {
            let mut rules = Rules::of(schema);
            for keyword in [
                AGAIN,
                "type",
                "x-kubernetes-preserve-unknown-fields",
                "default",
            ] {
                rules.take(keyword);
            }
            rules.keys.push("preserve_unknown".to_owned());
            return ConstrainedType {
                ty: Type::Again(name.to_owned()),
                rules,
            };
        }
        // A component is one type wherever it is used, so its name does not come from the fields.
        let component = schema[COMPONENT].as_str();
        let own_path: Vec<String> = component
            .into_iter()
            .flat_map(|name| name.split(['.', '/']))
            .map(names::camel)
            .filter(|word| !word.is_empty())
            .collect();
        let path = if own_path.is_empty() { path } else { &own_path };
        if let Some(Known { ty, takes }) = known::of(schema) {
            let mut rules = Rules::of(schema);
            takes.iter().for_each(|name| rules.take(name));
            return self.finish(Type::Plain(ty), rules, schema);
        }
        let mut rules = Rules::of(schema);
        if schema["type"].is_string() {
            // Only values of the type are taken.
            rules.take("x-kubernetes-int-or-string");
        }
        if !matches!(schema["type"].as_str(), None | Some("array" | "object")) {
            // A scalar has no unknown fields.
            rules.take("x-kubernetes-preserve-unknown-fields");
        }
        let ty = match schema["type"].as_str() {
            Some("string") => self.text(schema, path, &mut rules),
            Some("boolean") => Some(Type::Plain("bool")),
            Some("integer") => rules::integer(schema, &mut rules).map(Type::Plain),
            Some("number") => rules::float(schema, &mut rules).map(Type::Plain),
            Some("array") => self.list(schema, path, &mut rules),
            Some("object") => self.object(schema, path, &mut rules),
            None if schema["x-kubernetes-preserve-unknown-fields"] == true => {
                rules.take("x-kubernetes-preserve-unknown-fields");
                Some(Type::Plain("Value"))
            }
            _ => None,
        };
        match ty {
            Some(ty) => {
                rules.take("type");
                self.finish(ty, rules, schema)
            }
            None => ConstrainedType {
                ty: Type::Plain("Value"),
                rules: Rules::whole(schema),
            },
        }
    }

    /// Reads the default, which fits the type or stays JSON.
    fn finish(&mut self, ty: Type, mut rules: Rules, schema: &Value) -> ConstrainedType {
        if let Some(default) = schema.get("default").filter(|default| !default.is_null()) {
            rules.default = self.literal(&ty, default);
            if rules.default.is_some() {
                rules.take("default");
            }
        }
        ConstrainedType { ty, rules }
    }

    fn literal(&self, ty: &Type, value: &Value) -> Option<Literal> {
        match (ty, value) {
            (Type::Plain(name), Value::Object(fields)) => {
                let is_said = fields.is_empty() && known::is_struct(name);
                is_said.then(|| Literal::Code("{}".to_owned()))
            }
            (Type::Plain(name), value) => rules::literal(name, value).map(Literal::Code),
            (Type::Named(id), Value::String(text)) => {
                let Body::Enum(variants) = &self.all[*id].body else {
                    return None;
                };
                let found = variants.iter().find(|(_, json)| json == text)?;
                Some(Literal::Variant(*id, found.0.clone()))
            }
            (Type::List(inner), Value::Array(values)) => {
                let of_item = |value| match self.literal(inner, value)? {
                    // Only a text that stands alone becomes a `String` by itself.
                    Literal::Code(code) if **inner == Type::Plain("String") => {
                        Some(Literal::Code(format!("{code}.to_owned()")))
                    }
                    other => Some(other),
                };
                values
                    .iter()
                    .map(of_item)
                    .collect::<Option<_>>()
                    .map(Literal::List)
            }
            (Type::Map(_), Value::Object(fields)) if fields.is_empty() => {
                Some(Literal::Code("BTreeMap::new()".to_owned()))
            }
            (Type::Named(id), Value::Object(fields))
                if fields.is_empty() && matches!(self.all[*id].body, Body::Struct(_)) =>
            {
                Some(Literal::Code("{}".to_owned()))
            }
            _ => None,
        }
    }

    fn text(&mut self, schema: &Value, path: &[String], rules: &mut Rules) -> Option<Type> {
        let values: Vec<&Value> = items(&schema["enum"])
            .iter()
            .filter(|value| !value.is_null())
            .collect();
        if values.is_empty() {
            rules.text(schema);
            return Some(Type::Plain("String"));
        }
        let texts: Option<Vec<String>> = values
            .iter()
            .map(|value| value.as_str().map(str::to_owned))
            .collect();
        rules.take("enum");
        let mut known = Vec::new();
        let variants = texts?.into_iter().map(|text| {
            let name = names::free(names::variant(&text), &known);
            known.push(name.clone());
            (name, text)
        });
        let body = Body::Enum(variants.collect());
        let mut sorted = values;
        sorted.sort_by_key(|value| value.as_str());
        Some(Type::Named(self.add(Shape {
            path: path.to_vec(),
            component: None,
            identity: json!({ "enum": sorted }),
            doc: None,
            keys: Vec::new(),
            body,
        })))
    }

    fn list(&mut self, schema: &Value, path: &[String], rules: &mut Rules) -> Option<Type> {
        let items = schema.get("items").filter(|items| items.is_object())?;
        let item = self.element(items, path);
        rules.take("items");
        rules.list(schema);
        if rules.takes_flag("x-kubernetes-preserve-unknown-fields") {
            rules.keys.push("preserve_unknown".to_owned());
        }
        let accepts_duplicates = rules.takes_flag(DUPLICATES);
        if let Some(keys) = self.list_keys(schema, &item.ty) {
            rules.take("x-kubernetes-list-type");
            rules.take("x-kubernetes-list-map-keys");
            rules.keys.push(keys);
            if accepts_duplicates {
                rules.keys.push("duplicates".to_owned());
            }
        }
        rules.patch(self.is_composite(&item.ty), |json| {
            self.field_of(&item.ty, json)
        });
        rules.each(item.rules);
        Some(Type::List(Box::new(item.ty)))
    }

    /// `list = ..`, if a key can say it.
    fn list_keys(&self, schema: &Value, item: &Type) -> Option<String> {
        match schema["x-kubernetes-list-type"].as_str()? {
            "atomic" => Some("list = atomic".to_owned()),
            "set" if !self.is_composite(item) => Some("list = set".to_owned()),
            "map" => {
                let names = texts(&schema["x-kubernetes-list-map-keys"]);
                let names = names.iter().map(|json| self.field_of(item, json));
                let names: Vec<String> = names.collect::<Option<_>>()?;
                (!names.is_empty()).then(|| format!("list = map({})", names.join(", ")))
            }
            _ => None,
        }
    }

    fn is_composite(&self, ty: &Type) -> bool {
        match ty {
            Type::Named(id) => matches!(self.all[*id].body, Body::Struct(_)),
            Type::Plain(name) => *name == "Value" || known::is_struct(name),
            Type::List(_) | Type::Map(_) | Type::Boxed(_) | Type::Again(_) => true,
        }
    }

    /// The Rust name of a field that can identify an item of this type.
    fn field_of(&self, item: &Type, json: &str) -> Option<String> {
        match item {
            Type::Plain(ty) => known::field(ty, json),
            Type::Named(id) => {
                let Body::Struct(fields) = &self.all[*id].body else {
                    return None;
                };
                let field = fields.iter().find(|field| field.json == json)?;
                (!self.is_composite(&field.ty)).then(|| field.name.clone())
            }
            Type::List(_) | Type::Map(_) | Type::Boxed(_) | Type::Again(_) => None,
        }
    }

    /// An item of a list or a value of a map. Null is none of either in Rust, and no key gives it a default.
    fn element(&mut self, schema: &Value, path: &[String]) -> ConstrainedType {
        let before = self.all.len();
        self.depth += 1;
        let element = self.value(schema, path);
        self.depth -= 1;
        if schema["nullable"] != true && schema.get("default").is_none_or(Value::is_null) {
            if let Type::Named(id) = element.ty {
                let doc = doc(schema);
                let shape = &mut self.all[id];
                shape.doc = shape.doc.take().or(doc);
            }
            return element;
        }
        self.all.truncate(before);
        ConstrainedType {
            ty: Type::Plain("Value"),
            rules: Rules::whole(schema),
        }
    }

    fn object(&mut self, schema: &Value, path: &[String], rules: &mut Rules) -> Option<Type> {
        let properties = schema["properties"].as_object();
        let additional = &schema["additionalProperties"];
        let is_open = schema["x-kubernetes-preserve-unknown-fields"] == true;
        let is_embedded = schema["x-kubernetes-embedded-resource"] == true;
        rules.object(schema);
        rules.patch(false, |_| None);
        match (properties, additional) {
            // Its fields are implicit in part, and its other fields too.
            (_, _) if is_embedded => {
                let is_plain = properties.is_none() && is_open && !additional.is_object();
                if !is_plain {
                    return None;
                }
                rules.take("x-kubernetes-embedded-resource");
                rules.take("x-kubernetes-preserve-unknown-fields");
                rules.keys.push("embedded_resource".to_owned());
                Some(Type::Plain("Value"))
            }
            (Some(properties), Value::Null | Value::Bool(_)) if additional != true => {
                if !properties.keys().all(|name| is_sayable(name)) {
                    return None;
                }
                let of_type = rules.of_type();
                let mut identity = without_docs(&of_type.identity(schema));
                identity["is_union"] = self.has_union(schema).into();
                let mut fields = self.fields(schema, path);
                let keys = self.keys_of_struct(schema, of_type, &mut fields);
                Some(Type::Named(self.add(Shape {
                    path: path.to_vec(),
                    component: text(&schema[COMPONENT]),
                    identity,
                    doc: None,
                    keys,
                    body: Body::Struct(fields),
                })))
            }
            (Some(_), _) => None,
            (None, Value::Object(values)) if !values.is_empty() => {
                if is_open {
                    return None;
                }
                let below = self.element(additional, path);
                rules.take("additionalProperties");
                rules.each(below.rules);
                Some(Type::Map(Box::new(below.ty)))
            }
            (None, Value::Object(_) | Value::Bool(true)) => {
                rules.take("additionalProperties");
                rules.take("x-kubernetes-preserve-unknown-fields");
                Some(Type::Map(Box::new(Type::Plain("Value"))))
            }
            (None, _) if is_open => {
                rules.take("additionalProperties");
                rules.take("x-kubernetes-preserve-unknown-fields");
                Some(Type::Map(Box::new(Type::Plain("Value"))))
            }
            (None, _) => {
                rules.take("additionalProperties");
                let of_type = rules.of_type();
                let keys = self.keys_of_struct(schema, of_type, &mut []);
                Some(Type::Named(self.add(Shape {
                    path: path.to_vec(),
                    component: None,
                    identity: json!({ "keys": keys }),
                    doc: None,
                    keys,
                    body: Body::Struct(Vec::new()),
                })))
            }
        }
    }

    fn fields(&mut self, schema: &Value, path: &[String]) -> Vec<Field> {
        let required = texts(&schema["required"]);
        let mut known = Vec::new();
        if path.len() == 1 {
            known.push("metadata".to_owned());
        }
        let mut fields = Vec::new();
        for (json, property) in entries(&schema["properties"]) {
            let (name, _) = names::field(json);
            let name = names::free(name, &known);
            known.push(name.clone());
            let one = names::singular(json);
            let is_item = is_list(property) && schema["properties"].get(&one).is_none();
            let word = if is_item { &one } else { json };
            let mut below = path.to_vec();
            below.push(names::camel(word));
            let value = self.value(property, &below);
            let is_required = required.contains(json);
            fields.push(self.field(json, name, property, value, is_required));
        }
        fields
    }

    fn field(
        &self,
        json: &str,
        name: String,
        schema: &Value,
        value: ConstrainedType,
        is_required: bool,
    ) -> Field {
        let ConstrainedType { ty, mut rules } = value;
        let has_default = rules.default.is_some();
        // A default in JSON: rustc does not know that the value is always there.
        let has_plain_default = rules.has("default");
        let is_nullable = rules.takes_flag("nullable");
        let is_container = ty.is_container();
        // Bytes are a list in Rust, which is left out when it is empty.
        let is_list = is_container || ty == Type::Plain("Vec<u8>");
        let is_back = matches!(ty, Type::Again(_));
        let is_option = is_nullable
            || is_back
            || has_plain_default
            || (!is_container && !is_required && !has_default);
        if is_nullable {
            rules.keys.push("nullable".to_owned());
        }
        // Rust says the same of other types that have no default.
        let is_unsaid = is_list || is_nullable || is_back || has_default;
        if is_required && !has_plain_default && is_unsaid {
            rules.keys.push("present".to_owned());
        }
        let mut keys = Vec::new();
        if names::json_of(&name) != json {
            keys.push(format!("json = {}", rules::quoted(json)));
        }
        let default = rules.default.take();
        keys.extend(rules.into_keys());
        Field {
            name,
            json: json.to_owned(),
            doc: doc(schema),
            ty,
            is_option,
            default,
            keys,
        }
    }

    /// The keys of a struct, of the rules for its whole value.
    fn keys_of_struct(
        &self,
        schema: &Value,
        mut rules: Rules,
        fields: &mut [Field],
    ) -> Vec<String> {
        if let Some(members) = self.union_of(schema) {
            rules.take("oneOf");
            rules.keys.push("union()".to_owned());
            for field in fields
                .iter_mut()
                .filter(|field| members.contains(&field.json))
            {
                field
                    .keys
                    .push(format!("member = {}", rules::quoted(&field.json)));
            }
        }
        if rules.takes_flag("x-kubernetes-preserve-unknown-fields") {
            rules.keys.push("preserve_unknown".to_owned());
        }
        rules.cel(|json| {
            let field = fields.iter().find(|field| field.json == json)?;
            // The path of the rule is made of the name in JSON; one that is quoted there is spelled in several ways.
            let is_plain = json.bytes().all(|byte| byte.is_ascii_alphanumeric());
            is_plain.then(|| field.name.clone())
        });
        let required = texts(&schema["required"]);
        let is_described = |name: &String| schema["properties"].get(name).is_some();
        let others: Vec<String> = required
            .into_iter()
            .filter(|name| !is_described(name))
            .collect();
        if !others.is_empty() {
            rules.put("required", json!(others));
        }
        rules.into_keys()
    }

    /// The fields of which exactly one is set. Below lists and maps the rule that a union prints would have no cost that
    /// kube-apiserver takes; `oneOf` has none.
    fn union_of(&self, schema: &Value) -> Option<Vec<String>> {
        let keywords = schema.as_object().filter(|_| self.depth == 0)?;
        let required = texts(&schema["required"]);
        union_of(keywords).filter(|members| !members.iter().any(|member| required.contains(member)))
    }

    fn has_union(&self, schema: &Value) -> bool {
        self.union_of(schema).is_some()
    }

    /// The place of a shape: that of an equal one with the same path, or a new one.
    fn add(&mut self, shape: Shape) -> usize {
        let equal = |known: &Shape| known.path == shape.path && known.identity == shape.identity;
        if let Some(at) = self.all.iter().position(equal) {
            return at;
        }
        self.all.push(shape);
        self.all.len() - 1
    }
}

/// Whether `#[api(json = "..")]` can say the name of a field.
fn is_sayable(name: &str) -> bool {
    !name.is_empty() && !name.contains(['.', '[', ']', '/', ' ', '"'])
}

fn is_list(schema: &Value) -> bool {
    schema["type"] == "array"
        || schema["type"] == "object" && schema["additionalProperties"].is_object()
}

/// The documentation of a value.
fn doc(schema: &Value) -> Option<String> {
    let text = schema["description"].as_str()?.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// A schema without what only readers see.
pub(super) fn without_docs(schema: &Value) -> Value {
    fn copy(schema: &Value) -> Value {
        let Value::Object(keywords) = schema else {
            return schema.clone();
        };
        let mut out = Map::new();
        for (name, value) in keywords {
            let value = match (name.as_str(), value) {
                ("description" | "title" | "example" | "externalDocs" | COMPONENT, _) => continue,
                ("properties", Value::Object(fields)) => {
                    let fields = fields
                        .iter()
                        .map(|(name, field)| (name.clone(), copy(field)));
                    Value::Object(fields.collect())
                }
                ("items" | "additionalProperties", schema) => copy(schema),
                _ => value.clone(),
            };
            out.insert(name.clone(), value);
        }
        Value::Object(out)
    }
    copy(schema)
}
