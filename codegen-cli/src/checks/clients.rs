//! The parts of a kind's client that name other types: methods and indexes. Finds the path of each type, and reports those
//! that generated code cannot name.

use apiloom_model::kind::{Index, Method, MethodVerb};
use apiloom_model::names::identifier;
use apiloom_model::{Code, Kind, SourceSpan};
use syn::{Fields, GenericArgument, Item, PathArguments, Type};

use super::Checker;
use super::assembly::{rust_path, rust_type};
use crate::collect::Declaration;
use crate::model;
use crate::problem::Problem;
use crate::source::{self, Definition, Lookup, ModuleId, Namespace};

/// Types without a module that can be keys of an index, with the paths by which generated code names them.
const KEYS: &[(&str, &str)] = &[
    ("String", "::std::string::String"),
    ("bool", "bool"),
    ("char", "char"),
    ("i8", "i8"),
    ("i16", "i16"),
    ("i32", "i32"),
    ("i64", "i64"),
    ("isize", "isize"),
    ("u8", "u8"),
    ("u16", "u16"),
    ("u32", "u32"),
    ("u64", "u64"),
    ("usize", "usize"),
];

/// Containers whose index has a key for each element; of maps for each key.
const COLLECTIONS: [&str; 7] = [
    "Vec",
    "VecDeque",
    "BTreeSet",
    "HashSet",
    "BTreeMap",
    "HashMap",
    "SortedMap",
];

/// A field of a path: its type without `Option` and `Box`, and where that is written.
pub(super) struct FieldType<'a> {
    module: ModuleId,
    visibility: &'a syn::Visibility,
    ty: &'a Type,
    is_optional: bool,
}

impl<'a> Checker<'a> {
    /// The client parts of each kind, in the order of the kinds.
    pub(super) fn clients(&mut self) -> Vec<model::ClientParts> {
        let kinds = self.found.kinds.iter();
        kinds.map(|kind| self.client_parts(kind)).collect()
    }

    fn client_parts(&mut self, kind: &'a Declaration<Kind>) -> model::ClientParts {
        if !kind.value.has_client {
            return model::ClientParts::default();
        }
        let mut methods = Vec::new();
        for method in kind.value.client_methods() {
            let is_declared = kind.value.methods.iter().any(|own| own.name == method.name);
            // The types of handlers are named only by the code of clients.
            if is_declared || self.has_clients {
                methods.extend(self.method(kind, &method));
            }
        }
        let mut connections = Vec::new();
        for sub in kind.value.subresources.iter().filter(|sub| sub.connects) {
            let name = format!("connect_{}", sub.name.value.replace('-', "_"));
            if !methods
                .iter()
                .any(|method: &model::Method| method.name == name)
            {
                connections.push(model::Connection {
                    name,
                    subresource: sub.name.value.clone(),
                    verbs: sub
                        .verbs
                        .iter()
                        .map(|verb| verb.as_str().to_owned())
                        .collect(),
                });
            }
        }
        let indexes = kind.value.indexes.iter();
        let indexes = indexes.filter_map(|index| self.index(kind, index));
        model::ClientParts {
            indexes: indexes.collect(),
            methods,
            connections,
        }
    }

    fn method(&mut self, kind: &Declaration<Kind>, method: &Method) -> Option<model::Method> {
        let own = rust_type(self.krate, kind);
        let handler = kind
            .value
            .subresource_of(method)
            .and_then(|sub| sub.handler.as_ref());
        let needs_handler = method.output.is_none() || method.input.is_none();
        let handler = match handler.filter(|_| needs_handler) {
            Some(code) => Some(self.nameable(kind.module, code)?),
            None => None,
        };
        let of_handler = |part: &str| match &handler {
            Some(handler) => {
                format!("::apiloom::codegen::{part}Of<{own}, {handler}>")
            }
            None => own.clone(),
        };
        let input = match &method.input {
            Some(code) => self.nameable(kind.module, code)?,
            None => of_handler("Input"),
        };
        let output = match &method.output {
            Some(code) => self.nameable(kind.module, code)?,
            // The items of a list are objects of the kind.
            None if method.verb.value == MethodVerb::List => own.clone(),
            None => of_handler("Output"),
        };
        Some(model::Method {
            name: method.name.value.clone(),
            verb: method.verb.value.as_str().to_owned(),
            subresource: method.subresource.as_ref().map(|name| name.value.clone()),
            input: method.verb.value.has_input().then_some(input),
            output,
        })
    }

    /// The path of a type that is valid in generated code; reports a type that has none.
    fn nameable(&mut self, module: ModuleId, code: &Code) -> Option<String> {
        let path = syn::parse2::<syn::Path>(quote::ToTokens::to_token_stream(code));
        let problem = match path {
            Ok(path) => match self.path_of_type(module, &path) {
                Ok(path) => return Some(path),
                Err(problem) => problem,
            },
            Err(_) => boxed(Problem::error(format!(
                "`{}` is not the path of a type",
                code.text()
            ))),
        };
        self.report(module, code.span(), *problem);
        None
    }

    fn report(&mut self, module: ModuleId, span: SourceSpan, problem: Problem) {
        self.problems.push(problem.at(self.at(module, span)));
    }

    fn path_of_type(&self, module: ModuleId, path: &syn::Path) -> Result<String, Box<Problem>> {
        let text = quote::ToTokens::to_token_stream(path)
            .to_string()
            .replace(' ', "");
        let is_whole = path.leading_colon.is_some() || self.begins_with_a_crate(module, path);
        match self.krate.resolve(module, path, Namespace::Type) {
            Lookup::Found(Definition::Item(home, name)) => {
                let what = format!("the type `{name}`");
                let private = self
                    .krate
                    .problem_of_privacy(&what, home, &name, Namespace::Type);
                if let Some(problem) = private {
                    return Err(boxed(problem));
                }
                let around = &self.krate.module(home).path;
                let mut items = self.krate.module(home).items.iter();
                let hidden = items.find_map(|item| visibility(item, &name));
                if hidden.is_some_and(|vis| !source::reachable(vis, around)) {
                    let help = format!("make `{name}` public: the generated client names it");
                    let problem = Problem::error(format!("the type `{name}` is private"));
                    return Err(boxed(problem.help(help)));
                }
                Ok(rust_path(self.krate, home, &name, Namespace::Type))
            }
            Lookup::Found(Definition::Apiloom(_) | Definition::Foreign) if is_whole => {
                Ok(format!("::{}", text.trim_start_matches("::")))
            }
            // The prelude has it.
            _ if text == "Status" => Ok("::apiloom::meta::Status".to_owned()),
            Lookup::Found(Definition::Module(_)) | Lookup::Missing => Err(boxed(Problem::error(
                format!("cannot find the type `{text}` in this package"),
            ))),
            Lookup::Found(_) | Lookup::Unknown => Err(boxed(
                Problem::error(format!("cannot tell which type `{text}` is"))
                    .help("write its whole path: generated code in another module names it"),
            )),
        }
    }

    /// Whether the first name of a path is that of another crate, so that the path is valid in every module.
    fn begins_with_a_crate(&self, module: ModuleId, path: &syn::Path) -> bool {
        let Some(first) = path.segments.first().filter(|_| path.segments.len() > 1) else {
            return false;
        };
        let found = self
            .krate
            .resolve(module, &first.ident.clone().into(), Namespace::Type);
        let is_imported = self
            .krate
            .import(module, &source::unraw(&first.ident))
            .is_some();
        let is_crate = matches!(
            found,
            Lookup::Found(Definition::Apiloom(_) | Definition::Foreign)
        );
        is_crate && !is_imported
    }

    fn index(&mut self, kind: &'a Declaration<Kind>, index: &Index) -> Option<model::Index> {
        let span = index
            .path
            .last()
            .map_or(index.name.span, |name| name.span.into());
        match self.key_of(kind, index) {
            Ok((key, value)) => Some(model::Index {
                name: index.name.value.clone(),
                field: field_text(index),
                key,
                value,
            }),
            Err(problem) => {
                self.report(kind.module, span, *problem);
                None
            }
        }
    }

    /// The type of an index's keys, and the expression of the value that has them.
    fn key_of(
        &self,
        kind: &'a Declaration<Kind>,
        index: &Index,
    ) -> Result<(String, String), Box<Problem>> {
        let (mut module, mut owner) = (kind.module, kind.value.root.name.text.clone());
        let mut value = "object".to_owned();
        // Whether `value` is an `Option` of a reference, because a field before was optional.
        let mut is_option = false;
        let count = index.path.len();
        for (number, name) in index.path.iter().enumerate() {
            let field = self.field_of(module, &owner, &name.text).ok_or_else(|| {
                let problem = Problem::error(format!(
                    "cannot find the field `{}` of `{owner}` in this package",
                    name.text
                ));
                boxed(problem.help(ELSEWHERE))
            })?;
            let around = &self.krate.module(field.module).path;
            if !source::reachable(field.visibility, around) {
                let problem = Problem::error(format!("the field `{}` is private", name.text));
                return Err(boxed(
                    problem.help("make it public: generated code reads it"),
                ));
            }
            let ident = identifier(&name.text);
            if number + 1 == count {
                value = if is_option {
                    format!("{value}.map(|value| &value.{ident})")
                } else {
                    format!("{value}.{ident}")
                };
                return Ok((self.key(&field)?, value));
            }
            value = match (is_option, field.is_optional) {
                (false, false) => format!("{value}.{ident}"),
                (false, true) => format!("{value}.{ident}.as_ref()"),
                (true, false) => format!("{value}.map(|value| &value.{ident})"),
                (true, true) => format!("{value}.and_then(|value| value.{ident}.as_ref())"),
            };
            is_option |= field.is_optional;
            (module, owner) = self.struct_of(&field).ok_or_else(|| {
                let problem =
                    Problem::error(format!("`{}` is not a struct of this package", name.text));
                boxed(problem.help(ELSEWHERE))
            })?;
        }
        Err(boxed(Problem::error("the index names no field")))
    }

    /// The field of a struct of this package.
    pub(super) fn field_of(
        &self,
        module: ModuleId,
        owner: &str,
        name: &str,
    ) -> Option<FieldType<'a>> {
        let items = &self.krate.module(module).items;
        let fields = items.iter().find_map(|item| match item {
            Item::Struct(item) if item.ident == owner => Some(&item.fields),
            _ => None,
        })?;
        let Fields::Named(fields) = fields else {
            return None;
        };
        let field = fields.named.iter().find(|field| {
            field
                .ident
                .as_ref()
                .is_some_and(|ident| source::unraw(ident) == name)
        })?;
        let (ty, is_optional) = without_option(&field.ty);
        Some(FieldType {
            module,
            visibility: &field.vis,
            ty,
            is_optional,
        })
    }

    /// The struct that a field holds.
    pub(super) fn struct_of(&self, field: &FieldType<'_>) -> Option<(ModuleId, String)> {
        let Type::Path(path) = field.ty else {
            return None;
        };
        let found = self
            .krate
            .resolve(field.module, &path.path, Namespace::Type);
        match self.krate.behind_alias(found) {
            Lookup::Found(Definition::Item(module, name)) => Some((module, name)),
            _ => None,
        }
    }

    /// The type of the keys of a field.
    fn key(&self, field: &FieldType<'_>) -> Result<String, Box<Problem>> {
        let collected = arguments(field.ty)
            .filter(|(container, _)| COLLECTIONS.iter().any(|name| container == name));
        let ty = collected.map_or(field.ty, |(_, element)| without_option(element).0);
        let Type::Path(path) = ty else {
            return Err(boxed(no_key(ty)));
        };
        let own = path.path.get_ident().map(ToString::to_string);
        let known = KEYS.iter().find(|(name, _)| own.as_deref() == Some(name));
        match self
            .krate
            .resolve(field.module, &path.path, Namespace::Type)
        {
            Lookup::Found(Definition::Item(..)) => self.path_of_type(field.module, &path.path),
            _ if known.is_some() => Ok(known.map_or("", |(_, path)| path).to_owned()),
            _ => Err(boxed(no_key(ty))),
        }
    }
}

/// The advice for fields that cannot be read.
const ELSEWHERE: &str =
    "an index reads the fields of structs of its own package; for another value implement `Index`";

fn boxed(problem: Problem) -> Box<Problem> {
    Box::new(problem)
}

fn no_key(ty: &Type) -> Problem {
    let text = quote::ToTokens::to_token_stream(ty)
        .to_string()
        .replace(' ', "");
    Problem::error(format!("a field of the type `{text}` cannot be the key of an index"))
        .help("keys are texts, integers, `bool` and enums of the package, or lists and maps of them; for another value implement `Index`")
}

fn field_text(index: &Index) -> String {
    let names: Vec<&str> = index.path.iter().map(|name| name.text.as_str()).collect();
    names.join(".")
}

fn visibility<'a>(item: &'a Item, name: &str) -> Option<&'a syn::Visibility> {
    match item {
        Item::Struct(item) if item.ident == name => Some(&item.vis),
        Item::Enum(item) if item.ident == name => Some(&item.vis),
        Item::Type(item) if item.ident == name => Some(&item.vis),
        _ => None,
    }
}

/// The name of a generic type, and its first argument.
fn arguments(ty: &Type) -> Option<(&syn::Ident, &Type)> {
    let Type::Path(path) = ty else {
        return None;
    };
    let last = path.path.segments.last()?;
    let PathArguments::AngleBracketed(inner) = &last.arguments else {
        return None;
    };
    let first = inner.args.iter().find_map(|argument| match argument {
        GenericArgument::Type(ty) => Some(ty),
        _ => None,
    });
    Some((&last.ident, first?))
}

/// The type inside of `Option` and `Box`, and whether there is an `Option`.
fn without_option(ty: &Type) -> (&Type, bool) {
    let (mut ty, mut is_optional) = (ty, false);
    loop {
        ty = match ty {
            Type::Group(group) => &group.elem,
            Type::Paren(paren) => &paren.elem,
            other => match arguments(other) {
                Some((name, inner)) if name == "Option" || name == "Box" => {
                    is_optional |= name == "Option";
                    inner
                }
                _ => return (ty, is_optional),
            },
        };
    }
}
