//! Finds the kinds and groups of a crate, in all of its modules and through its imports, and parses each.
//!
//! Attributes are resolved, not recognized by their spelling: `use apiloom::resource as kind` works, another crate's
//! `resource` is ignored, and one that cannot be resolved is a problem.

mod fields;
mod hidden;
mod markers;

use std::collections::{HashMap, HashSet};

use apiloom_model::{ApiType, Diagnostics, SourceSpan};
use proc_macro2::{Span, TokenStream};
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{Attribute, DeriveInput, Item, Token};

use crate::problem::{Location, Problem};
use crate::source::{self, Crate, Definition, Lookup, Module, ModuleId, Namespace};

/// All declarations of a package.
#[derive(Debug, Default)]
pub(crate) struct Declarations {
    /// Kinds, in source order.
    pub(crate) kinds: Vec<Declaration<apiloom_model::Kind>>,
    /// Groups, in source order.
    pub(crate) groups: Vec<Declaration<apiloom_model::Group>>,
    /// API types and the roots of kinds, by module and name.
    pub(crate) types: HashMap<(ModuleId, String), ApiItem>,
    /// Whether the crate root has `pub fn configure`.
    pub(crate) configure: bool,
    /// Whether some declaration could not be read in full: items that seem to be missing may be in it.
    pub(crate) incomplete: bool,
    /// Whether a `group!` has no name or no versions that could be read.
    pub(crate) unread_group: bool,
    /// Errors in single items.
    pub(crate) problems: Vec<Problem>,
    /// Warnings.
    pub(crate) warnings: Vec<Problem>,
}

/// A declaration with the module that contains it.
#[derive(Debug)]
pub(crate) struct Declaration<T> {
    /// The declaration.
    pub(crate) value: T,
    /// The module that contains it.
    pub(crate) module: ModuleId,
    /// The `cfg` attributes on which it depends, as they are written.
    pub(crate) conditions: Vec<String>,
}

/// An API type.
#[derive(Debug)]
pub(crate) struct ApiItem {
    /// The type.
    pub(crate) value: ApiType,
    /// Its source, with attributes.
    pub(crate) source: DeriveInput,
}

/// Collects the declarations of all modules.
pub(crate) fn collect(krate: &Crate) -> Declarations {
    let mut collector = Collector {
        krate,
        found: Declarations::default(),
        told: HashSet::new(),
    };
    for (id, module) in krate.modules() {
        for item in &module.items {
            collector.item(id, module, item);
        }
    }
    collector.configure();
    collector.found
}

/// The location of a span of the shared model.
pub(crate) fn location(krate: &Crate, module: ModuleId, span: SourceSpan) -> Location {
    let start = krate.locate(module, span.start);
    let end = krate.locate(module, span.end);
    Location {
        file: start.file,
        range: start.range.start..end.range.end.max(start.range.end),
    }
}

struct Collector<'a> {
    krate: &'a Crate,
    found: Declarations,
    /// Types that were already reported as not being API types.
    told: HashSet<(ModuleId, String)>,
}

/// The effect of an item's attributes.
#[derive(Default)]
struct Doors {
    /// The first attribute that makes it a kind.
    resource: Option<Span>,
    /// Whether `Resource` is derived, so that the user writes the derives of serde and schemars too.
    is_derived: bool,
    api: bool,
    /// A `#[resource]` that cannot be resolved to a visible definition.
    unresolved: Option<Span>,
}

impl Collector<'_> {
    fn item(&mut self, id: ModuleId, module: &Module, item: &Item) {
        match item {
            Item::Macro(invocation) => self.invocation(id, invocation),
            Item::Struct(item) => self.data(id, module, item.clone().into()),
            Item::Enum(item) => self.data(id, module, item.clone().into()),
            Item::Union(item) => self.data(id, module, item.clone().into()),
            other => self.code(id, other),
        }
    }

    fn problem(&mut self, problem: Problem) {
        self.found.problems.push(problem);
    }

    /// Handles a struct, enum or union.
    fn data(&mut self, id: ModuleId, module: &Module, mut item: DeriveInput) {
        let doors = self.doors(id, &item.attrs);
        if doors.resource.is_none()
            && let Some(span) = doors.unresolved
        {
            self.found.incomplete = true;
            self.problem(
                Problem::error("cannot tell what `resource` is here")
                    .at(self.krate.locate(id, span))
                    .label("not brought into scope by name")
                    .help("write `#[apiloom::resource(..)]`"),
            );
        }
        if doors.resource.is_some() || doors.api {
            let found = markers::warnings(self.krate, id, &item);
            self.found.warnings.extend(found);
            if !doors.is_derived {
                let found = fields::problems(self.krate, id, &item, &mut self.told);
                self.found.problems.extend(found);
            }
        }
        if let Some(span) = doors.resource {
            self.kind(id, module, &mut item, span);
        } else if doors.api {
            self.canonical_paths(id, &mut item.attrs);
            let mut diagnostics = Diagnostics::default();
            let parsed = apiloom_model::parse_api(&item, &mut diagnostics);
            self.diagnostics(id, item.ident.span(), &diagnostics);
            if let Some(value) = parsed {
                self.api_type(id, value, item);
            }
        }
    }

    fn api_type(&mut self, id: ModuleId, value: ApiType, source: DeriveInput) {
        let name = source::unraw(&source.ident);
        let item = ApiItem { value, source };
        self.found.types.entry((id, name)).or_insert(item);
    }

    fn kind(&mut self, id: ModuleId, module: &Module, item: &mut DeriveInput, span: Span) {
        let conditions = source::all_conditions(&module.conditions, &item.attrs);
        self.check_reachable(id, item);
        self.canonical_paths(id, &mut item.attrs);
        let mut diagnostics = Diagnostics::default();
        let kind = apiloom_model::parse_kind(item, &mut diagnostics);
        self.diagnostics(id, item.ident.span(), &diagnostics);
        match kind {
            Some(value) => {
                self.api_type(id, ApiType::Struct(value.root.clone()), item.clone());
                self.found.kinds.push(Declaration {
                    value,
                    module: id,
                    conditions,
                });
            }
            None => {
                self.found.incomplete = true;
                if diagnostics.is_empty() {
                    self.problem(
                        Problem::error(format!("`{}` is not a well-formed kind", item.ident))
                            .at(self.krate.locate(id, span)),
                    );
                }
            }
        }
    }

    /// Checks that generated code, which is in `crate::generated`, can name the type.
    fn check_reachable(&mut self, id: ModuleId, item: &DeriveInput) {
        let path = &self.krate.module(id).path;
        if !source::reachable(&item.vis, path) {
            self.problem(
                Problem::error(format!("the kind `{}` is private", item.ident))
                    .at(self.krate.locate(id, item.ident.span()))
                    .help(format!(
                        "write `pub struct {}`: generated code names it",
                        item.ident
                    )),
            );
        }
        let name = source::unraw(&item.ident);
        let what = format!("the kind `{name}`");
        let private = self
            .krate
            .problem_of_privacy(&what, id, &name, Namespace::Type);
        if let Some(problem) = private {
            self.problem(problem.at(self.krate.locate(id, item.ident.span())));
        }
    }

    fn doors(&mut self, id: ModuleId, attrs: &[Attribute]) -> Doors {
        let mut doors = Doors::default();
        let mut derives_foreign = false;
        // Skips doc comments, the most frequent attribute, early.
        for attr in attrs.iter().filter(|attr| !attr.path().is_ident("doc")) {
            if attr.path().is_ident("derive") {
                match self.derive(id, attr) {
                    Some(true) => {
                        doors.resource = doors.resource.or(Some(attr.span()));
                        doors.is_derived = true;
                    }
                    Some(false) => derives_foreign = true,
                    None => {}
                }
            } else if attr.path().is_ident("cfg_attr") {
                self.conditional_attribute(id, attr);
            } else {
                match self.krate.resolve(id, attr.path(), Namespace::Macro) {
                    Lookup::Found(Definition::Apiloom(name)) if name == "resource" => {
                        doors.resource = doors.resource.or(Some(attr.span()));
                    }
                    Lookup::Found(Definition::Apiloom(name)) if name == "api" => doors.api = true,
                    Lookup::Found(_) => {}
                    Lookup::Missing | Lookup::Unknown if attr.path().is_ident("resource") => {
                        doors.unresolved = Some(attr.path().span());
                    }
                    Lookup::Missing | Lookup::Unknown => {}
                }
            }
        }
        // Another derive may have a helper attribute called `resource` too.
        if derives_foreign {
            doors.unresolved = None;
        }
        doors
    }

    /// Whether apiloom's `Resource` is derived (true), or another `Resource` (false).
    fn derive(&self, id: ModuleId, attr: &Attribute) -> Option<bool> {
        let paths = attr
            .parse_args_with(Punctuated::<syn::Path, Token![,]>::parse_terminated)
            .ok()?;
        let mut answer = None;
        for path in &paths {
            match self.krate.resolve(id, path, Namespace::Macro) {
                Lookup::Found(Definition::Apiloom(name)) if name == "Resource" => {
                    return Some(true);
                }
                Lookup::Found(Definition::Foreign)
                    if path.segments.last().is_some_and(|s| s.ident == "Resource") =>
                {
                    answer = Some(false);
                }
                _ => {}
            }
        }
        answer
    }

    fn conditional_attribute(&mut self, id: ModuleId, attr: &Attribute) {
        let syn::Meta::List(list) = &attr.meta else {
            return;
        };
        if hidden::names_resource_inside(self.krate, id, &list.tokens) {
            self.problem(
                Problem::error("a kind cannot depend on a `cfg`")
                    .at(self.krate.locate(id, attr.span()))
                    .help("write `#[apiloom::resource(..)]` without `cfg_attr`"),
            );
        }
    }

    /// Renames apiloom's attributes to the paths that the shared parser knows, since imports may rename them.
    fn canonical_paths(&self, id: ModuleId, attrs: &mut [Attribute]) {
        for attr in attrs {
            let Lookup::Found(Definition::Apiloom(name)) =
                self.krate.resolve(id, attr.path(), Namespace::Macro)
            else {
                continue;
            };
            if !matches!(name.as_str(), "resource" | "api") {
                continue;
            }
            let span = attr
                .path()
                .segments
                .last()
                .map_or_else(Span::call_site, |last| last.ident.span());
            let ident = proc_macro2::Ident::new(&name, span);
            let path = match &mut attr.meta {
                syn::Meta::Path(path) => path,
                syn::Meta::List(list) => &mut list.path,
                syn::Meta::NameValue(pair) => &mut pair.path,
            };
            *path = ident.into();
        }
    }

    fn invocation(&mut self, id: ModuleId, item: &syn::ItemMacro) {
        let path = &item.mac.path;
        match self.krate.resolve(id, path, Namespace::Macro) {
            Lookup::Found(Definition::Apiloom(name)) if name == "group" => {
                let around = &self.krate.module(id).conditions;
                let conditions = source::all_conditions(around, &item.attrs);
                self.group(id, path.span(), item.mac.tokens.clone(), conditions);
            }
            Lookup::Missing | Lookup::Unknown if path.is_ident("group") => {
                self.found.incomplete = true;
                self.problem(
                    Problem::error("cannot tell what `group!` is here")
                        .at(self.krate.locate(id, path.span()))
                        .label("not brought into scope by name")
                        .help("write `apiloom::group! { .. }`"),
                );
            }
            _ => self.hidden(id, &item.mac.tokens, "a macro's braces"),
        }
    }

    fn group(&mut self, id: ModuleId, span: Span, tokens: TokenStream, conditions: Vec<String>) {
        let mut diagnostics = Diagnostics::default();
        match apiloom_model::parse_group(tokens, &mut diagnostics) {
            Some(value) => self.found.groups.push(Declaration {
                value,
                module: id,
                conditions,
            }),
            None => self.found.unread_group = true,
        }
        self.diagnostics(id, span, &diagnostics);
    }

    /// Handles functions, impls and the like: a kind inside their bodies has no path that generated code could name.
    fn code(&mut self, id: ModuleId, item: &Item) {
        let doors = self.doors(id, source::attributes(item));
        if let Some(span) = doors.resource {
            self.problem(
                Problem::error("`#[apiloom::resource]` goes on a struct")
                    .at(self.krate.locate(id, span)),
            );
        }
        match item {
            Item::Fn(item) => self.hidden(
                id,
                &quote::ToTokens::to_token_stream(&item.block),
                "a function body",
            ),
            Item::Impl(_) | Item::Trait(_) | Item::Const(_) | Item::Static(_) => {
                self.hidden(id, &quote::ToTokens::to_token_stream(item), "a body");
            }
            _ => {}
        }
    }

    fn hidden(&mut self, id: ModuleId, tokens: &TokenStream, place: &str) {
        if let Some(span) = hidden::resource_attribute(self.krate, id, tokens.clone()) {
            self.found.incomplete = true;
            self.problem(
                Problem::error(format!(
                    "a kind inside {place} cannot be seen by the generator"
                ))
                .at(self.krate.locate(id, span))
                .help("move the struct with its `#[apiloom::resource(..)]` to a module"),
            );
        }
    }

    fn configure(&mut self) {
        let configure = "configure";
        match self.krate.member(Crate::ROOT, configure, Namespace::Value) {
            Lookup::Found(definition) => {
                self.found.configure = true;
                let private = match (&definition, self.krate.import(Crate::ROOT, configure)) {
                    (Definition::Item(Crate::ROOT, _), _) => self.private_function(configure),
                    (_, Some(import)) => (!import.public).then_some(import.span),
                    _ => None,
                };
                if let Some(span) = private {
                    self.problem(
                        Problem::error("`configure` is private")
                            .at(self.krate.locate(Crate::ROOT, span))
                            .help("make it `pub`: the generated main calls it"),
                    );
                }
            }
            Lookup::Missing | Lookup::Unknown => {}
        }
    }

    fn private_function(&self, name: &str) -> Option<Span> {
        self.krate
            .module(Crate::ROOT)
            .items
            .iter()
            .find_map(|item| match item {
                Item::Fn(item)
                    if item.sig.ident == name
                        && !matches!(item.vis, syn::Visibility::Public(_)) =>
                {
                    Some(item.sig.ident.span())
                }
                _ => None,
            })
    }

    /// Adds the parser's diagnostics; those without a token are shown at `item`.
    fn diagnostics(&mut self, id: ModuleId, item: Span, diagnostics: &Diagnostics) {
        self.found.incomplete |= !diagnostics.is_empty();
        for error in diagnostics.errors() {
            let mut place = location(self.krate, id, error.span);
            if place.range.is_empty() {
                place = self.krate.locate(id, item);
            }
            let mut problem = Problem::error(error.message.clone())
                .id(error.id.code())
                .at(place);
            if let Some(help) = &error.help {
                problem = problem.help(help.clone());
            }
            self.problem(problem);
        }
    }
}
