//! The builders of apply configurations: for each group and version its kinds, and the structs and unions that they reach.
//!
//! A builder exists where the JSON form is known from the source. Other types are given whole, as the Rust type that the
//! field has; a type that generated code cannot name is given as JSON, which is a warning.

mod types;

use std::collections::{HashMap, HashSet};

use apiloom_model::api::{self, Content, holds_bytes};
use apiloom_model::names::identifier;
use apiloom_model::{ApiStruct, ApiType, Code, Name};
use syn::spanned::Spanned as _;
use syn::{Attribute, Type};

use self::types::{Part, has_serde_word, is_text, leaves, names, plain_name, text_of, value_of};
use crate::collect::{ApiItem, Declarations};
use crate::model::{Builder, BuilderField, BuilderRole, Configurations, Kind, Model};
use crate::problem::Problem;
use crate::source::{self, Crate, Definition, Lookup, ModuleId, Namespace};
use crate::view::snake_case;

/// The methods of builders of kinds, besides their setters.
const METHODS: [&str; 10] = [
    "annotations",
    "extract",
    "extract_status",
    "finalizers",
    "labels",
    "new",
    "of",
    "owner_references",
    "resource_version",
    "uid",
];

/// The type of a value without a type that can be named.
const JSON: &str = "::apiloom::codegen::serde_json::Value";

/// The builders of a package's kinds, and warnings.
pub(crate) fn collect(
    krate: &Crate,
    found: &Declarations,
    model: &Model,
) -> (Vec<Configurations>, Vec<Problem>) {
    let mut all = Vec::new();
    let mut warnings = Warnings::default();
    for group in &model.groups {
        for version in &group.versions {
            let kinds = group.kinds.iter();
            let kinds = kinds.filter(|kind| kind.version == *version && is_applied(kind));
            let mut reach = Reach::new(krate, found);
            for kind in kinds {
                let mut declared = found.kinds.iter();
                let declared = declared.find(|declared| {
                    let value = &declared.value;
                    value.group.value == group.name
                        && value.version.value == *version
                        && value.kind.value == kind.kind
                });
                if let Some(declared) = declared {
                    let name = declared.value.root.name.text.clone();
                    reach.add(Key::of(declared.module, name), Some(kind));
                }
            }
            reach.follow();
            if !reach.items.is_empty() {
                all.push(Configurations {
                    group: group.name.clone(),
                    version: version.clone(),
                    builders: reach.builders(&mut warnings),
                });
            }
        }
    }
    (all, warnings.problems)
}

/// Warnings, each type once.
#[derive(Default)]
struct Warnings {
    told: HashSet<(ModuleId, String)>,
    problems: Vec<Problem>,
}

/// Whether clients apply objects of the kind, or one of their subresources.
fn is_applied(kind: &Kind) -> bool {
    let has_patch = |verbs: &[String]| verbs.iter().any(|verb| verb == "patch");
    let mut subresources = kind.subresources.iter();
    let is_patched = has_patch(&kind.verbs)
        || subresources.any(|sub| sub.name == "status" && has_patch(&sub.verbs));
    kind.has_client && kind.served && is_patched
}

/// A type with a builder: a struct, a union, or a variant of a union with fields of its own.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    module: ModuleId,
    name: String,
    variant: Option<String>,
}

impl Key {
    fn of(module: ModuleId, name: String) -> Key {
        let variant = None;
        Key {
            module,
            name,
            variant,
        }
    }

    /// The name of the builder, if no other has it.
    fn short_name(&self) -> String {
        let variant = self.variant.as_deref().unwrap_or_default();
        format!("{}{variant}", self.name)
    }
}

/// A field of a builder in the source.
struct Input {
    /// The module in which the type is written.
    module: ModuleId,
    name: Name,
    json_name: String,
    ty: InputType,
    is_nullable: bool,
    is_flat: bool,
    attributes: Vec<Attribute>,
}

enum InputType {
    Written(Box<Type>),
    /// The fields of a variant.
    Variant(Key),
}

/// A type inside of containers, as a builder takes it.
enum Leaf {
    Plain(&'static str),
    Builder(Key),
    Path(String),
    Unnamed,
}

/// The types that the kinds of one version reach, in the order in which they are found.
struct Reach<'a> {
    krate: &'a Crate,
    found: &'a Declarations,
    items: Vec<(Key, Option<&'a Kind>)>,
    known: HashSet<Key>,
}

impl<'a> Reach<'a> {
    fn new(krate: &'a Crate, found: &'a Declarations) -> Reach<'a> {
        Reach {
            krate,
            found,
            items: Vec::new(),
            known: HashSet::new(),
        }
    }

    fn add(&mut self, key: Key, kind: Option<&'a Kind>) {
        if self.known.insert(key.clone()) {
            self.items.push((key, kind));
        }
    }

    /// Adds what the types reach.
    fn follow(&mut self) {
        let mut next = 0;
        while let Some((key, _)) = self.items.get(next) {
            let mut reached = Vec::new();
            for input in self.inputs(&key.clone()) {
                match &input.ty {
                    InputType::Variant(key) => reached.push(key.clone()),
                    InputType::Written(_) if has_own_form(&input) => {}
                    InputType::Written(ty) => {
                        let leaves = leaves(ty).into_iter();
                        reached.extend(leaves.filter_map(|ty| match self.leaf(input.module, ty) {
                            Leaf::Builder(key) => Some(key),
                            _ => None,
                        }));
                    }
                }
            }
            reached.into_iter().for_each(|key| self.add(key, None));
            next += 1;
        }
    }

    fn item(&self, key: &Key) -> Option<&'a ApiItem> {
        self.found.types.get(&(key.module, key.name.clone()))
    }

    /// The fields of a type; those of structs that are inlined take their place.
    fn inputs(&self, key: &Key) -> Vec<Input> {
        let Some(item) = self.item(key) else {
            return Vec::new();
        };
        let module = key.module;
        match (&item.value, &item.source.data) {
            (ApiType::Struct(model), syn::Data::Struct(data)) => {
                self.struct_inputs(module, &model.fields, &data.fields)
            }
            (ApiType::Enum(model), syn::Data::Enum(data)) => {
                let variants = model.variants.iter().zip(&data.variants);
                let Some(name) = &key.variant else {
                    let inputs = variants.filter_map(|(variant, source)| {
                        let ty = match &variant.content {
                            Content::Unit => return None,
                            Content::Value(ty) => InputType::Written(Box::new(parsed(ty)?)),
                            Content::Fields(_) => InputType::Variant(Key {
                                variant: Some(variant.name.text.clone()),
                                ..key.clone()
                            }),
                        };
                        Some(Input {
                            module,
                            name: Name {
                                text: snake_case(&variant.name.text),
                                raw: false,
                                span: variant.name.span,
                            },
                            json_name: variant.json_name.clone(),
                            ty,
                            is_nullable: false,
                            is_flat: false,
                            attributes: source.attrs.clone(),
                        })
                    });
                    return inputs.collect();
                };
                let mut variants = variants.filter(|(variant, _)| variant.name.text == *name);
                let found = variants.next().map(|(variant, source)| {
                    self.struct_inputs(module, variant.fields(), &source.fields)
                });
                found.unwrap_or_default()
            }
            _ => Vec::new(),
        }
    }

    fn struct_inputs(
        &self,
        module: ModuleId,
        fields: &[api::Field],
        sources: &syn::Fields,
    ) -> Vec<Input> {
        let mut inputs = Vec::new();
        for (field, source) in fields.iter().zip(sources) {
            let Some(ty) = parsed(&field.ty) else {
                continue;
            };
            if has_serde_word(&source.attrs, &["skip", "skip_serializing"]) {
                continue;
            }
            if field.flatten
                && let Leaf::Builder(key) = self.leaf(module, value_of(&ty))
                && self.as_struct(&key).is_some()
            {
                inputs.extend(self.inputs(&key));
                continue;
            }
            inputs.push(Input {
                module,
                name: field.name.clone(),
                json_name: field.json_name.clone(),
                ty: InputType::Written(Box::new(ty)),
                is_nullable: field.rules.nullable,
                is_flat: field.flatten,
                attributes: source.attrs.clone(),
            });
        }
        inputs
    }

    fn as_struct(&self, key: &Key) -> Option<&'a ApiStruct> {
        match &self.item(key)?.value {
            ApiType::Struct(model) => Some(model),
            _ => None,
        }
    }

    fn leaf(&self, module: ModuleId, ty: &Type) -> Leaf {
        if let Some(plain) = plain_name(ty) {
            return Leaf::Plain(plain);
        }
        let Part::Named(path) = Part::of(ty) else {
            return Leaf::Unnamed;
        };
        let found = self.krate.resolve(module, path, Namespace::Type);
        if let Lookup::Found(Definition::Item(home, name)) = &found {
            if let Lookup::Found(Definition::Item(home, name)) =
                self.krate.behind_alias(found.clone())
            {
                let key = Key::of(home, name);
                if self.has_builder(&key) {
                    return Leaf::Builder(key);
                }
            }
            let path = self.krate.public_path(*home, name, Namespace::Type);
            return path.map_or(Leaf::Unnamed, |path| {
                Leaf::Path(format!("crate::{}", joined(&path)))
            });
        }
        let path = self.krate.foreign_path(module, &names(path));
        path.map_or(Leaf::Unnamed, |path| {
            Leaf::Path(format!("::{}", joined(&path)))
        })
    }

    /// Whether the JSON of a type is an object of fields that the source shows.
    fn has_builder(&self, key: &Key) -> bool {
        const OTHER_FORMS: [&str; 9] = [
            "content",
            "from",
            "into",
            "remote",
            "rename_all",
            "tag",
            "transparent",
            "try_from",
            "untagged",
        ];
        let Some(item) = self.item(key) else {
            return false;
        };
        let is_object = match &item.value {
            ApiType::Struct(_) => true,
            ApiType::Enum(model) => {
                !model.variants.is_empty()
                    && model.variants.iter().all(|variant| {
                        !variant.unknown && !matches!(variant.content, Content::Unit)
                    })
            }
            ApiType::Newtype(_) => false,
        };
        is_object && !has_serde_word(&item.source.attrs, &OTHER_FORMS)
    }

    /// The builders, kinds first.
    fn builders(&self, warnings: &mut Warnings) -> Vec<Builder> {
        let names = self.names();
        let mut builders = Vec::new();
        for (key, kind) in &self.items {
            let role = match kind {
                Some(kind) => BuilderRole::Kind {
                    rust_type: kind.rust_type.clone(),
                    namespaced: kind.namespaced,
                    has_status: kind.subresources.iter().any(|sub| sub.name == "status"),
                },
                None if key.variant.is_none() && self.as_struct(key).is_none() => {
                    BuilderRole::Union
                }
                None => BuilderRole::Part,
            };
            builders.push(Builder {
                name: names[key].clone(),
                fields: self.fields(key, kind.is_some(), &names, warnings),
                role,
            });
        }
        let rank = |builder: &Builder| !matches!(builder.role, BuilderRole::Kind { .. });
        builders.sort_by(|a, b| (rank(a), &a.name).cmp(&(rank(b), &b.name)));
        builders
    }

    /// The names of the builders: those of the types and, of several with the same name, with their modules in front.
    fn names(&self) -> HashMap<Key, String> {
        let mut names = HashMap::new();
        let mut taken = HashSet::new();
        let is_alone = |name: &str| {
            let same = self
                .items
                .iter()
                .filter(|(key, _)| key.short_name() == *name);
            same.count() == 1
        };
        // Kinds are named first.
        let (kinds, parts): (Vec<_>, Vec<_>) = self.items.iter().partition(|item| item.1.is_some());
        for (key, kind) in kinds.into_iter().chain(parts) {
            let short = key.short_name();
            let around = self.krate.module(key.module).path.iter();
            let around: String = around.map(|name| camel_case(name)).collect();
            let keeps = kind.is_some() || is_alone(&short);
            let long = format!("{around}{short}");
            let first = if keeps { short } else { long.clone() };
            let numbered = (2..).map(|number| format!("{long}{number}"));
            let free = std::iter::once(first)
                .chain(numbered)
                .find(|name| taken.insert(name.clone()));
            names.insert(key.clone(), free.unwrap_or(long));
        }
        names
    }

    fn fields(
        &self,
        key: &Key,
        is_kind: bool,
        names: &HashMap<Key, String>,
        warnings: &mut Warnings,
    ) -> Vec<BuilderField> {
        let inputs = self.inputs(key).into_iter();
        let inputs = inputs.filter(|input| !is_kind || input.json_name != "metadata");
        let inputs: Vec<Input> = inputs.collect();
        let methods: &[&str] = if is_kind { &METHODS } else { &["new"] };
        let mut taken: HashSet<String> = methods.iter().map(|name| (*name).to_owned()).collect();
        let mut unique = |name: &str| {
            let others = (2..).map(|number| format!("set_{name}_{number}"));
            let free = [name.to_owned(), format!("set_{name}")];
            let mut free = free.into_iter().chain(others);
            let free = free.find(|name| taken.insert(name.clone()));
            free.unwrap_or_else(|| name.to_owned())
        };
        let setters: Vec<String> = inputs
            .iter()
            .map(|input| unique(&nameable(&input.name.text)))
            .collect();
        let writer = Writer { reach: self, names };
        let inputs = inputs.iter().zip(setters);
        let fields = inputs.map(|(input, setter)| {
            let edit = unique(&format!("edit_{}", input.name.text));
            BuilderField {
                conditions: source::all_conditions(&[], &input.attributes),
                name: identifier(&setter),
                json_name: input.json_name.clone(),
                form: writer.form(input, &edit, warnings),
            }
        });
        fields.collect()
    }
}

/// Writes types of fields, for builders with these names.
struct Writer<'a> {
    reach: &'a Reach<'a>,
    names: &'a HashMap<Key, String>,
}

impl Writer<'_> {
    /// The form of a field, as `configurations!` reads it.
    fn form(&self, input: &Input, edit: &str, warnings: &mut Warnings) -> String {
        let ty = match &input.ty {
            InputType::Variant(key) => return format!("part({}, {edit})", self.names[key]),
            InputType::Written(ty) => ty,
        };
        let value = value_of(ty);
        let mut spell = |ty: &Type| self.spell(input.module, ty, warnings);
        if has_own_form(input) {
            return format!("value({JSON})");
        }
        if holds_bytes(&Code::new(ty)) {
            let value = spell(value);
            return if input.is_nullable {
                format!("bytes(Option<{value}>)")
            } else {
                format!("bytes({value})")
            };
        }
        if input.is_flat {
            return format!("flat({})", spell(value));
        }
        if input.is_nullable {
            return format!("nullable({})", spell(value));
        }
        let (inner, [text, part, other]) = match Part::of(value) {
            Part::List(inner) => (value_of(inner), ["texts", "parts", "list"]),
            Part::Map(key, inner) if is_text(key) => {
                (value_of(inner), ["text_map", "part_map", "map"])
            }
            Part::Named(_) => (value, ["text", "part", "value"]),
            Part::Map(..) | Part::Transparent(_) | Part::Other => {
                return format!("value({})", spell(value));
            }
        };
        if is_text(inner) {
            return text.to_owned();
        }
        match (Part::of(inner), self.reach.leaf(input.module, inner)) {
            (_, Leaf::Builder(key)) => format!("{part}({}, {edit})", self.names[&key]),
            (Part::Named(_), _) => format!("{other}({})", spell(inner)),
            // Containers in containers.
            _ => format!("value({})", spell(value)),
        }
    }

    /// A type as generated code writes it, with builders in place of their types.
    fn spell(&self, module: ModuleId, ty: &Type, warnings: &mut Warnings) -> String {
        match Part::of(ty) {
            Part::Transparent(inner) => self.spell(module, inner, warnings),
            Part::List(inner) => format!("Vec<{}>", self.spell(module, inner, warnings)),
            Part::Map(key, inner) => {
                let (key, inner) = (
                    self.spell(module, key, warnings),
                    self.spell(module, inner, warnings),
                );
                let map = if text_of(ty).contains("HashMap") && key != "String" {
                    "HashMap"
                } else {
                    "BTreeMap"
                };
                format!("::std::collections::{map}<{key}, {inner}>")
            }
            Part::Named(_) | Part::Other => match self.reach.leaf(module, ty) {
                Leaf::Plain(name) => name.to_owned(),
                Leaf::Builder(key) => self.names[&key].clone(),
                Leaf::Path(path) => path,
                Leaf::Unnamed => {
                    let text = text_of(ty);
                    if warnings.told.insert((module, text.clone())) {
                        let problem = Problem::warning(format!(
                            "apply configurations take `{text}` as JSON: generated code cannot name it"
                        ))
                        .at(self.reach.krate.locate(module, ty.span()))
                        .help("import it by name, or re-export it from a public module");
                        warnings.problems.push(problem);
                    }
                    JSON.to_owned()
                }
            },
        }
    }
}

/// Whether the field has another JSON form than its type.
fn has_own_form(input: &Input) -> bool {
    has_serde_word(&input.attributes, &["with", "serialize_with"])
}

fn parsed(ty: &Code) -> Option<Type> {
    syn::parse2(quote::ToTokens::to_token_stream(ty)).ok()
}

/// The name, with an underscore if it is a keyword that cannot be written raw: a variant may be called `Crate`.
fn nameable(name: &str) -> String {
    match name {
        "crate" | "self" | "super" | "Self" => format!("{name}_"),
        _ => name.to_owned(),
    }
}

fn joined(names: &[String]) -> String {
    let names: Vec<String> = names.iter().map(|name| identifier(name)).collect();
    names.join("::")
}

fn camel_case(name: &str) -> String {
    let words = name.split('_').filter(|word| !word.is_empty());
    words
        .map(|word| {
            let (first, rest) = word.split_at(word.chars().next().map_or(0, char::len_utf8));
            first.to_uppercase() + rest
        })
        .collect()
}

#[cfg(test)]
mod tests;
