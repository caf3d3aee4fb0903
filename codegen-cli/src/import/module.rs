//! The Rust module of one version of a kind, as the view of its template.

use serde::Serialize;

use super::definition::{Column, Definition, Version};
use super::naming::{NamedType, NamedTypes};
use super::rules::{Literal, quoted};
use super::shapes::{Body, Field, Type};
use crate::markdown;

/// The name of the hub's module in those of other versions.
pub(super) const HUB: &str = "stored";

/// The view of a module.
#[derive(Debug, Serialize)]
pub(crate) struct ModuleView {
    /// The line that says what it is.
    pub(crate) about: String,
    /// The lines that begin with `use`.
    pub(crate) uses: Vec<String>,
    pub(crate) types: Vec<TypeView>,
}

/// A struct or an enum.
#[derive(Debug, Serialize)]
pub(crate) struct TypeView {
    pub(crate) doc: Vec<String>,
    /// Attributes, whole.
    pub(crate) attributes: Vec<String>,
    /// `struct` or `enum`.
    pub(crate) keyword: &'static str,
    pub(crate) name: String,
    pub(crate) parts: Vec<PartView>,
}

/// A field or a variant.
#[derive(Debug, Serialize)]
pub(crate) struct PartView {
    pub(crate) doc: Vec<String>,
    pub(crate) attributes: Vec<String>,
    /// `pub name: Type` or `Name`.
    pub(crate) code: String,
}

/// What a module of a version knows of the others.
#[derive(Debug, Default)]
pub(crate) struct Relations {
    /// The arguments of `#[resource(..)]` about versions.
    pub(crate) of_kind: Vec<String>,
    /// Types that are those of another module, which is used.
    pub(crate) shared: Vec<String>,
    /// The path of that module.
    pub(crate) module: String,
    /// Types that are those of the module of the version, and its path; they belong to this module too.
    pub(crate) of_version: Option<(String, Vec<String>)>,
    /// Arguments of `#[api(..)]` of types, by their names.
    pub(crate) of_types: Vec<(String, String)>,
    /// Arguments of `#[api(..)]` of fields, by type and field.
    pub(crate) of_fields: Vec<(String, String, String)>,
}

/// The names of Rust types that `serde_json` has.
const VALUE: &str = "Value";

impl ModuleView {
    pub(crate) fn new(
        definition: &Definition,
        version: &Version,
        named: &NamedTypes,
        relations: &Relations,
    ) -> Self {
        let own: Vec<&NamedType> = named
            .types
            .iter()
            .filter(|ty| !relations.shared.contains(&ty.name))
            .filter(|ty| {
                let of_version = relations.of_version.as_ref();
                of_version.is_none_or(|(_, names)| !names.contains(&ty.name))
            })
            .collect();
        let mut uses = uses_of(&own);
        if let Some((path, names)) = &relations.of_version
            && !names.is_empty()
        {
            uses.push(format!("pub use {path}::*;"));
        }
        if !relations.module.is_empty() {
            uses.push(format!("use {} as {HUB};", relations.module));
        }
        let mut used: Vec<&str> = relations
            .shared
            .iter()
            .filter(|name| {
                own.iter()
                    .any(|ty| named_by(ty, named).any(|used| used == **name))
            })
            .map(String::as_str)
            .collect();
        used.sort_unstable();
        match used.as_slice() {
            [] => {}
            [one] => uses.push(format!("use {}::{one};", relations.module)),
            several => uses.push(format!(
                "use {}::{{{}}};",
                relations.module,
                several.join(", ")
            )),
        }
        uses.sort();
        let types = own.iter().map(|ty| {
            let is_root = ty.name == named.types[0].name;
            let attributes = is_root.then(|| resource(definition, version, ty, relations));
            of_type(attributes.into_iter().collect(), ty, named, relations)
        });
        Self {
            about: format!(
                "{} of {}/{}.",
                definition.kind, definition.group, version.name
            ),
            uses,
            types: types.collect(),
        }
    }

    /// The view of the module with these types, which several kinds have.
    pub(super) fn of_shared(
        group: &str,
        version: &str,
        types: &[(&NamedTypes, &NamedType)],
    ) -> Self {
        let own: Vec<&NamedType> = types.iter().map(|(_, ty)| *ty).collect();
        let relations = Relations::default();
        let shown = types
            .iter()
            .map(|(named, ty)| of_type(Vec::new(), ty, named, &relations));
        let of = if group.is_empty() {
            "the core group"
        } else {
            group
        };
        Self {
            about: format!("Types that several kinds of {of}/{version} have."),
            uses: uses_of(&own),
            types: shown.collect(),
        }
    }

    /// Whether the code names types of `serde_json`.
    pub(super) fn uses_json(&self) -> bool {
        self.uses.iter().any(|line| line.contains("serde_json"))
    }
}

/// The lines that all modules with these types need.
fn uses_of(types: &[&NamedType]) -> Vec<String> {
    let mut uses = vec!["use apiloom::prelude::*;".to_owned()];
    let has_value = types.iter().any(|ty| match &ty.shape.body {
        Body::Struct(fields) => fields
            .iter()
            .any(|field| innermost(&field.ty) == Some(VALUE)),
        Body::Enum(_) => false,
    });
    if has_value {
        uses.push("use serde_json::Value;".to_owned());
    }
    uses
}

#[cfg(test)]
impl ModuleView {
    /// A view for tests of the template.
    pub(crate) fn example(is_full: bool) -> Self {
        let part = PartView {
            doc: vec![" A field.".to_owned(), String::new(), " More.".to_owned()],
            attributes: vec!["#[api(min = 1)]".to_owned()],
            code: "pub size: i32".to_owned(),
        };
        let ty = TypeView {
            doc: vec![" A door.".to_owned()],
            attributes: vec!["#[apiloom::api]".to_owned()],
            keyword: "struct",
            name: "Door".to_owned(),
            parts: is_full.then_some(part).into_iter().collect(),
        };
        Self {
            about: "Doors.".to_owned(),
            uses: vec!["use apiloom::prelude::*;".to_owned()],
            types: vec![ty],
        }
    }
}

/// The names of the types that a type's fields and defaults have.
fn named_by<'a>(ty: &'a NamedType, named: &'a NamedTypes) -> impl Iterator<Item = &'a str> {
    let fields: &[Field] = match &ty.shape.body {
        Body::Struct(fields) => fields,
        Body::Enum(_) => &[],
    };
    fields
        .iter()
        .filter_map(|field| Some(named.types[field.ty.named()?].name.as_str()))
}

fn innermost(ty: &Type) -> Option<&'static str> {
    match ty {
        Type::Plain(name) => Some(name),
        Type::Named(_) | Type::Boxed(_) | Type::Again(_) => None,
        Type::List(inner) | Type::Map(inner) => innermost(inner),
    }
}

/// The view of a type; that of a kind is given the attribute of its root.
fn of_type(
    mut attributes: Vec<String>,
    ty: &NamedType,
    named: &NamedTypes,
    relations: &Relations,
) -> TypeView {
    let is_root = !attributes.is_empty();
    let shape = &ty.shape;
    let mut keys = shape.keys.clone();
    keys.extend(
        relations
            .of_types
            .iter()
            .filter(|(name, _)| *name == ty.name)
            .map(|(_, key)| key.clone()),
    );
    let (keyword, mut parts) = match &shape.body {
        Body::Struct(fields) => (
            "struct",
            fields
                .iter()
                .map(|field| of_field(ty, field, named, relations))
                .collect(),
        ),
        Body::Enum(variants) => (
            "enum",
            variants
                .iter()
                .map(|(name, json)| of_variant(name, json))
                .collect::<Vec<_>>(),
        ),
    };
    if is_root {
        if !keys.is_empty() {
            attributes.push(attribute("api", &keys));
        }
        parts.insert(
            0,
            PartView {
                doc: Vec::new(),
                attributes: Vec::new(),
                code: "pub metadata: ObjectMeta".to_owned(),
            },
        );
    } else {
        attributes.push(attribute("apiloom::api", &keys));
    }
    TypeView {
        doc: doc(shape.doc.as_deref()),
        attributes,
        keyword,
        name: ty.name.clone(),
        parts,
    }
}

fn of_field(ty: &NamedType, field: &Field, named: &NamedTypes, relations: &Relations) -> PartView {
    let mut keys = field.keys.clone();
    if let Some(default) = &field.default {
        keys.insert(0, format!("default = {}", literal(default, named)));
    }
    let more = relations
        .of_fields
        .iter()
        .filter(|(of, name, _)| *of == ty.name && *name == field.name);
    keys.extend(more.map(|(.., key)| key.clone()));
    let shown = rust_type(&field.ty, named);
    let shown = if field.is_option {
        format!("Option<{shown}>")
    } else {
        shown
    };
    PartView {
        doc: doc(field.doc.as_deref()),
        attributes: (!keys.is_empty())
            .then(|| attribute("api", &keys))
            .into_iter()
            .collect(),
        code: format!("pub {}: {shown}", field.name),
    }
}

fn of_variant(name: &str, json: &str) -> PartView {
    let keys = (name != json).then(|| attribute("api", &[format!("json = {}", quoted(json))]));
    PartView {
        doc: Vec::new(),
        attributes: keys.into_iter().collect(),
        code: name.to_owned(),
    }
}

pub(crate) fn rust_type(ty: &Type, named: &NamedTypes) -> String {
    match ty {
        Type::Plain(name) => (*name).to_owned(),
        Type::Named(id) => named.types[*id].name.clone(),
        Type::Boxed(id) => format!("Box<{}>", named.types[*id].name),
        Type::Again(_) => "Value".to_owned(),
        Type::List(inner) => format!("Vec<{}>", rust_type(inner, named)),
        Type::Map(inner) => format!("BTreeMap<String, {}>", rust_type(inner, named)),
    }
}

pub(super) fn literal(value: &Literal, named: &NamedTypes) -> String {
    match value {
        Literal::Code(code) => code.clone(),
        Literal::Variant(id, variant) => format!("{}::{variant}", named.types[*id].name),
        Literal::List(items) => {
            let items: Vec<String> = items.iter().map(|item| literal(item, named)).collect();
            format!("vec![{}]", items.join(", "))
        }
    }
}

/// An attribute; a long one has its arguments on lines of their own.
fn attribute(name: &str, arguments: &[String]) -> String {
    const WIDTH: usize = 95;
    if arguments.is_empty() {
        return format!("#[{name}]");
    }
    let line = format!("#[{name}({})]", arguments.join(", "));
    if line.len() <= WIDTH || arguments.len() == 1 {
        return line;
    }
    format!("#[{name}(\n    {}\n)]", arguments.join(",\n    "))
}

/// The lines of a documentation comment.
pub(crate) fn doc(text: Option<&str>) -> Vec<String> {
    let lines = text.into_iter().flat_map(markdown::lines);
    let begun = |line: String| {
        if line.is_empty() {
            line
        } else {
            format!(" {line}")
        }
    };
    lines.map(begun).collect()
}

/// `#[apiloom::resource(..)]`.
fn resource(
    definition: &Definition,
    version: &Version,
    root: &NamedType,
    relations: &Relations,
) -> String {
    let mut keys = vec![
        format!("group = {}", quoted(&definition.group)),
        format!("version = {}", quoted(&version.name)),
    ];
    let kind = &definition.kind;
    keys.push(
        if definition.is_namespaced {
            "namespaced"
        } else {
            "cluster"
        }
        .to_owned(),
    );
    for (key, said, derived) in [
        ("kind", kind, root.name.clone()),
        (
            "plural",
            &definition.plural,
            apiloom_model::names::plural(kind),
        ),
        ("singular", &definition.singular, kind.to_ascii_lowercase()),
        ("list_kind", &definition.list_kind, format!("{kind}List")),
    ] {
        if *said != derived {
            keys.push(format!("{key} = {}", quoted(said)));
        }
    }
    for (key, words) in [
        ("shortname", &definition.short_names),
        ("category", &definition.categories),
    ] {
        keys.extend(words.iter().map(|word| format!("{key} = {}", quoted(word))));
    }
    if version.has_status {
        let status = if definition.status_writes_metadata {
            "subresource(name = \"status\", writes = with_metadata(status))"
        } else {
            "status"
        };
        keys.push(status.to_owned());
    }
    if let Some(scale) = version
        .scale
        .as_ref()
        .and_then(|scale| scale_key(scale, root))
    {
        keys.push(scale);
    }
    if definition.has_strategic_patch {
        keys.push("strategic_merge_patch".to_owned());
    }
    if let Some(verbs) = &definition.verbs {
        keys.push(format!("verbs(only = [{}])", verbs.join(", ")));
    }
    keys.extend(relations.of_kind.iter().cloned());
    if !version.is_served {
        keys.push("served = false".to_owned());
    }
    if version.is_deprecated {
        keys.push("lifecycle(deprecated = \"1.0\")".to_owned());
    }
    keys.extend(columns(&version.columns));
    keys.extend(
        version
            .selectable
            .iter()
            .filter_map(|path| selectable(path)),
    );
    attribute("apiloom::resource", &keys)
}

/// The Rust path of a plain JSONPath.
fn rust_path(json_path: &str) -> Option<String> {
    let names = json_path.strip_prefix('.')?.split('.').map(|name| {
        let is_plain = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric());
        is_plain.then(|| super::names::field(name).0)
    });
    Some(names.collect::<Option<Vec<_>>>()?.join("."))
}

fn scale_key(scale: &super::definition::Scale, _root: &NamedType) -> Option<String> {
    let mut arguments = vec![
        format!("spec = {}", rust_path(&scale.spec)?),
        format!("status = {}", rust_path(&scale.status)?),
    ];
    if let Some(selector) = &scale.selector {
        arguments.push(format!("selector = {}", rust_path(selector)?));
    }
    Some(format!("scale({})", arguments.join(", ")))
}

fn selectable(path: &str) -> Option<String> {
    Some(format!("selectable({})", rust_path(path)?))
}

/// The columns. Without a column of the age among them, one named `Name` keeps the server from adding one.
fn columns(columns: &[Column]) -> Vec<String> {
    let mut keys: Vec<String> = Vec::new();
    let has_age = columns
        .iter()
        .any(|column| column.name.eq_ignore_ascii_case("age"));
    if !columns.is_empty() && !has_age {
        keys.push("printcolumn(name = \"Name\", json_path = \".metadata.name\", type = string, format = \"name\")".to_owned());
    }
    keys.extend(columns.iter().map(column));
    keys
}

pub(super) fn column(column: &Column) -> String {
    let mut arguments = vec![
        format!("name = {}", quoted(&column.name)),
        format!("json_path = {}", super::rules::raw(&column.json_path)),
        format!("type = {}", column.column_type),
    ];
    if !column.format.is_empty() {
        arguments.push(format!("format = {}", quoted(&column.format)));
    }
    match column.priority {
        0 => {}
        1 => arguments.push("wide".to_owned()),
        other => arguments.push(format!("priority = {other}")),
    }
    if !column.description.is_empty() {
        arguments.push(format!("doc = {}", quoted(&column.description)));
    }
    format!("printcolumn({})", arguments.join(", "))
}
