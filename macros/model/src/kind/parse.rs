//! Reads `#[resource(..)]`.

use syn::{Data, DeriveInput};

use super::client;
use super::deletion;
use super::naming::{bad_name, check_camel, check_group, check_label, check_store_path};
use super::subresource::{self, SubresourceDeclaration};
use super::{
    Column, ColumnSource, ColumnType, Deletion, FieldRef, Index, Kind, Lifecycle, Method,
    NameFormat, Query, Release, Scope, SelectableField, Subresource, Verb,
};
use crate::api::{ApiStruct, parse_api, parse_struct, read_cel, read_struct};
use crate::args::{self, Arg, Args, string_or_path};
use crate::crate_path;
use crate::diagnostics::DiagnosticId as Id;
use crate::item::{self, Form};
use crate::keys::Target;
use crate::words::{look_up, look_up_verb};
use crate::{Code, Diagnostics, SourceSpan, SpannedValue, is_attribute, names};

/// Reads a root struct with `#[resource(..)]` attributes (also spelled `#[apiloom::resource(..)]`).
///
/// `None` if the item cannot be read at all; `diagnostics` then has the reason. A kind may be returned with diagnostics
/// too.
pub fn parse_kind(item: &DeriveInput, diagnostics: &mut Diagnostics) -> Option<Kind> {
    let derives = item::derives(&item.attrs);
    let form = if derives.iter().any(|name| name == "Resource") {
        Form::Derive
    } else {
        Form::Attribute
    };
    parse(item, form, diagnostics)
}

/// Reads the root struct of a `#[derive(Resource)]`, whose serde and schemars derives are the user's own.
pub fn parse_derived_kind(item: &DeriveInput, diagnostics: &mut Diagnostics) -> Option<Kind> {
    parse(item, Form::Derive, diagnostics)
}

fn parse(item: &DeriveInput, form: Form, d: &mut Diagnostics) -> Option<Kind> {
    let args = args::of_attributes(&item.attrs, "resource", Target::Resource, d);
    let span = attribute_span(item);
    let mut keys = Keys::read(&args, span, d);
    if !matches!(item.data, Data::Struct(_)) {
        d.error(
            Id::RootNotStruct,
            item.ident.span(),
            "the root of a kind is a struct",
        )
        .help("give it `metadata: ObjectMeta` and put the enum into a field");
        read_other(item, form, d);
        return None;
    }
    let mut root = parse_struct(item, form, d)?;
    check_root(&root, d);
    let rules = args.iter().filter(|arg| arg.key == "cel");
    root.rules
        .cel
        .extend(rules.filter_map(|arg| read_cel(arg, d)));
    let declared = std::mem::take(&mut keys.subresources);
    let subresources = subresource::settle(declared, &mut root, item, form, d);
    keys.into_kind(root, subresources, span, &args, d)
}

/// Reports the remaining errors of a root that is not a struct.
fn read_other(item: &DeriveInput, form: Form, d: &mut Diagnostics) {
    if let Data::Union(_) = item.data {
        read_struct(item, form, d);
    } else if form == Form::Attribute {
        parse_api(item, d);
    }
}

fn attribute_span(item: &DeriveInput) -> SourceSpan {
    let attribute = item.attrs.iter().find(|a| is_attribute(a, "resource"));
    attribute.map_or_else(|| item.ident.span().into(), |a| SourceSpan::of(a.path()))
}

fn check_root(root: &ApiStruct, d: &mut Diagnostics) {
    if !root
        .fields
        .iter()
        .any(|field| field.json_name == "metadata")
    {
        d.error(
            Id::MissingMetadata,
            root.name.span,
            format!("`{}` has no field `metadata`", root.name.text),
        )
        .help("add `pub metadata: ObjectMeta`");
    }
    if let Some(name) = &root.proto.name {
        d.error(
            Id::MisplacedKey,
            name.span,
            "the message of a kind has the name of the kind",
        )
        .help("remove `name`");
    }
    for field in &root.fields {
        if matches!(field.json_name.as_str(), "apiVersion" | "kind") {
            d.error(
                Id::ReservedField,
                field.name.span,
                format!("`{}` is not a field of the type", field.json_name),
            )
            .help("remove it: `#[resource(..)]` says it, the codec writes it");
        }
    }
}

/// What answers the requests for a kind without a store.
#[derive(Clone, Copy)]
enum WithoutStore {
    /// A handler of creates.
    Review,
    /// A reader, and a writer if the kind has their verbs.
    Code,
}

/// The arguments, before defaults that need the struct.
#[derive(Default)]
struct Keys {
    group: Option<SpannedValue<String>>,
    version: Option<SpannedValue<String>>,
    kind: Option<SpannedValue<String>>,
    plural: Option<SpannedValue<String>>,
    singular: Option<SpannedValue<String>>,
    list_kind: Option<SpannedValue<String>>,
    short_names: Vec<SpannedValue<String>>,
    categories: Vec<SpannedValue<String>>,
    scope: Option<Scope>,
    is_simple: bool,
    subresources: Vec<SubresourceDeclaration>,
    deletion: Option<Deletion>,
    grace_seconds: Option<SpannedValue<u32>>,
    /// What answers in place of a store.
    without_store: Option<WithoutStore>,
    store_path: Option<SpannedValue<String>>,
    verbs: Option<Vec<Verb>>,
    columns: Vec<Column>,
    selectable: Vec<SelectableField>,
    hub: bool,
    spoke_of: Option<Code>,
    stored_as: Option<Code>,
    storage: bool,
    served: Option<bool>,
    disabled_by_default: bool,
    no_client: bool,
    no_client_verbs: bool,
    methods: Vec<Method>,
    indexes: Vec<Index>,
    lifecycle: Option<Lifecycle>,
    name_format: NameFormat,
    generation: Option<bool>,
    unconditional_update: Option<bool>,
    create_on_update: bool,
    strategic_merge_patch: bool,
    protobuf: Option<Code>,
    proto_package: Option<SpannedValue<String>>,
}

impl Keys {
    fn read(args: &Args, span: SourceSpan, d: &mut Diagnostics) -> Self {
        let mut keys = Self::default();
        for arg in args {
            keys.read_one(arg, d);
        }
        for (key, example) in [("group", "wardle.example.com"), ("version", "v1alpha1")] {
            if !args.has(key) {
                d.error(Id::MissingKey, span, format!("`{key}` is missing"))
                    .help(format!("add `{key} = \"{example}\"`"));
            }
        }
        let has_scope = |key| args.has(key);
        if !["namespaced", "cluster", "simple"]
            .into_iter()
            .any(has_scope)
        {
            d.error(Id::MissingScope, span, "the scope is missing")
                .help("add `namespaced` or `cluster`");
        }
        keys
    }

    /// A flat table of keys.
    fn read_one(&mut self, arg: &Arg, d: &mut Diagnostics) {
        match arg.key {
            "crate" => crate_path::check(arg, d),
            "group" => self.group = arg.string(d).inspect(|name| check_group(name, d)),
            "version" => {
                self.version = arg
                    .string(d)
                    .inspect(|name| check_label("version", name, d));
            }
            "kind" => self.kind = arg.string(d).inspect(|name| check_camel("kind", name, d)),
            "list_kind" => {
                self.list_kind = arg
                    .string(d)
                    .inspect(|name| check_camel("list kind", name, d));
            }
            "plural" => self.plural = arg.string(d).inspect(|name| check_label("plural", name, d)),
            "singular" => {
                self.singular = arg
                    .string(d)
                    .inspect(|name| check_label("singular", name, d));
            }
            "shortname" => add_labels(&mut self.short_names, "short name", arg, d),
            "category" => add_labels(&mut self.categories, "category", arg, d),
            "namespaced" if arg.flag(d) => self.scope = Some(Scope::Namespaced),
            "cluster" if arg.flag(d) => self.scope = Some(Scope::Cluster),
            "simple" => self.is_simple = arg.flag(d),
            "status" | "scale" | "subresource" | "connect" => {
                subresource::add(&mut self.subresources, arg, d);
            }
            "store" => {
                let known = [("none", WithoutStore::Review), ("code", WithoutStore::Code)];
                self.without_store = one_of(arg, "store", &known, d);
            }
            "store_path" => {
                self.store_path = arg.string(d).inspect(|path| check_store_path(path, d));
            }
            "deletion" => self.deletion = deletion::read(arg, d),
            "graceful_delete" => self.grace_seconds = deletion::read_grace(arg, d),
            "verbs" => self.verbs = Some(read_verbs(arg, d)),
            "readonly" if arg.flag(d) => {
                self.verbs = Some(vec![Verb::Get, Verb::List, Verb::Watch]);
            }
            "printcolumn" => self.add_column(arg, d),
            "selectable" => self.selectable.extend(arg.selectable_fields(d)),
            "hub" => self.hub = arg.flag(d),
            "spoke_of" => self.spoke_of = arg.code(d),
            "stored_as" => self.stored_as = arg.code(d),
            "storage" => self.storage = arg.flag(d),
            "served" => self.served = arg.boolean(d),
            "disabled_by_default" => self.disabled_by_default = arg.flag(d),
            "no_client" => self.no_client = arg.flag(d),
            "no_client_verbs" => self.no_client_verbs = arg.flag(d),
            "method" => client::read_method(&mut self.methods, arg, d),
            "index" => client::read_index(&mut self.indexes, arg, d),
            "lifecycle" => self.lifecycle = read_lifecycle(arg, d),
            "name_format" => self.name_format = read_name_format(arg, d).unwrap_or_default(),
            "generation" => {
                self.generation = one_of(
                    arg,
                    "generation rule",
                    &[("spec", true), ("none", false)],
                    d,
                );
            }
            "unconditional_update" => self.unconditional_update = arg.boolean(d),
            "create_on_update" => self.create_on_update = arg.boolean(d).unwrap_or_default(),
            "strategic_merge_patch" => self.strategic_merge_patch = arg.flag(d),
            "protobuf" => self.protobuf = arg.code(d),
            "proto" => self.proto_package = read_package(arg, d),
            _ => {}
        }
    }

    fn add_column(&mut self, arg: &Arg, d: &mut Diagnostics) {
        let Some(column) = read_column(arg, d) else {
            return;
        };
        if self
            .columns
            .iter()
            .any(|earlier| earlier.name == column.name)
        {
            d.error(
                Id::DuplicateName,
                column.name.span,
                format!("there are two columns {:?}", column.name.value),
            );
        }
        self.columns.push(column);
    }

    /// `None` if the parts that are compared with other kinds are unknown: names, version, scope, hub.
    fn into_kind(
        self,
        root: ApiStruct,
        subresources: Vec<Subresource>,
        span: SourceSpan,
        args: &Args,
        d: &mut Diagnostics,
    ) -> Option<Kind> {
        let is_unread = [
            ("kind", self.kind.is_none()),
            ("plural", self.plural.is_none()),
            ("singular", self.singular.is_none()),
            ("list_kind", self.list_kind.is_none()),
            ("spoke_of", self.spoke_of.is_none()),
        ]
        .into_iter()
        .any(|(key, is_none)| is_none && args.has(key));
        let kind = match self.kind {
            Some(kind) => kind,
            None => {
                let name = SpannedValue::new(root.name.text.clone(), root.name.span);
                if !args.has("kind") {
                    check_camel("kind", &name, d);
                }
                name
            }
        };
        if is_unread {
            return None;
        }
        let derived = |name: String| SpannedValue::new(name, kind.span);
        let has_store = self.without_store.is_none() && !self.is_simple;
        let all_verbs: &[Verb] = match self.without_store {
            _ if self.is_simple => &[],
            None => &Verb::DEFAULT,
            Some(WithoutStore::Review) => &[Verb::Create],
            Some(WithoutStore::Code) => &[Verb::Get, Verb::List, Verb::Watch],
        };
        let verbs = self.verbs.unwrap_or_else(|| all_verbs.to_vec());
        client::check_methods(&self.methods, &subresources, &verbs, d);
        // The objects of a simple kind have the scope of those whose subresource they belong to.
        let scope = self.scope.or(self.is_simple.then_some(Scope::Namespaced));
        Some(Kind {
            group: self.group?,
            version: self.version?,
            plural: self.plural.unwrap_or_else(|| derived(names::plural(&kind))),
            singular: self
                .singular
                .unwrap_or_else(|| derived(kind.to_ascii_lowercase())),
            list_kind: self
                .list_kind
                .unwrap_or_else(|| derived(format!("{}List", kind.value))),
            kind,
            short_names: self.short_names,
            categories: self.categories,
            scope: scope?,
            is_simple: self.is_simple,
            subresources,
            deletion: deletion::with_grace(self.deletion, self.grace_seconds, d),
            has_store,
            store_path: self.store_path,
            verbs,
            columns: self.columns,
            selectable: self.selectable,
            hub: self.hub,
            spoke_of: self.spoke_of,
            stored_as: self.stored_as,
            storage: self.storage,
            served: self.served.unwrap_or(true),
            disabled_by_default: self.disabled_by_default,
            has_client: !self.no_client,
            has_client_verbs: !self.no_client_verbs,
            methods: self.methods,
            indexes: self.indexes,
            lifecycle: self.lifecycle,
            name_format: self.name_format,
            generation: self.generation.unwrap_or(true),
            unconditional_update: self.unconditional_update.unwrap_or(true),
            create_on_update: self.create_on_update,
            strategic_merge_patch: self.strategic_merge_patch,
            protobuf: self
                .protobuf
                .inspect(|path| check_no_numbers(path, &root, d)),
            proto_package: self.proto_package.inspect(|package| {
                if !root.is_message() {
                    d.error(Id::ProtoMissing, package.span, "the fields of the kind have no numbers")
                        .help("add `#[api(proto = 2)]` to the fields beside `metadata`, or remove `proto(..)`");
                }
            }),
            root,
            span,
        })
    }
}

/// Reports numbers of a kind that describes its Protobuf form itself.
fn check_no_numbers(path: &Code, root: &ApiStruct, d: &mut Diagnostics) {
    if root.fields.iter().any(|field| field.proto.is_some()) {
        d.error(
            Id::Contradiction,
            path.span(),
            "the fields have numbers, which describe the Protobuf form already",
        )
        .help("remove `protobuf`");
    }
}

/// `proto(package = "example.apps.v1")`.
fn read_package(arg: &Arg, d: &mut Diagnostics) -> Option<SpannedValue<String>> {
    let args = arg.list(Target::ProtoKind, d)?;
    let package = args.find("package")?.string(d)?;
    let is_word = |word: &str| {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
        word.chars().all(is_plain) && word.starts_with(|c: char| !c.is_ascii_digit())
    };
    if !package.split('.').all(is_word) {
        d.error(
            Id::BadName,
            package.span,
            format!("{:?} is not a package of Protobuf", package.value),
        )
        .help(
            "write words of letters, digits and `_` with dots between, such as `example.apps.v1`",
        );
    }
    Some(package)
}

/// The value of a word from a fixed list.
fn one_of<T: Copy>(arg: &Arg, what: &str, known: &[(&str, T)], d: &mut Diagnostics) -> Option<T> {
    let word = arg.word(d)?;
    look_up(&word, what, known, d)
}

fn read_verbs(arg: &Arg, d: &mut Diagnostics) -> Vec<Verb> {
    let before = d.errors().len();
    let Some(args) = arg.list(Target::Verbs, d) else {
        return Verb::DEFAULT.to_vec();
    };
    let mut verbs = Vec::new();
    let mut skip = Vec::new();
    for arg in &args {
        let side = if arg.key == "only" {
            &mut verbs
        } else {
            &mut skip
        };
        for mut word in arg.words(d) {
            if word == "deletecollection" {
                word.value = Verb::DeleteCollection.word().to_owned();
            }
            let Some(verb) = look_up_verb(&word, "verb", &Verb::ALL, d) else {
                continue;
            };
            if side.contains(&verb) {
                d.error(
                    Id::DuplicateName,
                    word.span,
                    format!("the verb `{}` stands here twice", word.value),
                );
            }
            side.push(verb);
        }
    }
    if args.has("skip") {
        verbs = Verb::DEFAULT.to_vec();
    }
    verbs.retain(|verb| !skip.contains(verb));
    verbs.sort_unstable();
    verbs.dedup();
    // After another error the intended verbs are unknown.
    if verbs.is_empty() && d.errors().len() == before {
        let span = args.iter().next().map_or(arg.span(), Arg::span);
        d.error(Id::NoVerbs, span, "the kind has no verb")
            .help("name at least one; a version that is not to be served has `served = false`, a client without verbs `no_client_verbs`");
    }
    verbs
}

fn read_column(arg: &Arg, d: &mut Diagnostics) -> Option<Column> {
    let types = ColumnType::ALL.map(|ty| (ty.word(), ty));
    let args = arg.list(Target::Column, d)?;
    let (mut name, mut source, mut column_type) = (None, None, None);
    let (mut format, mut priority, mut description) = (String::new(), 0, String::new());
    for arg in &args {
        match arg.key {
            "name" => name = arg.string(d),
            "path" => source = arg.field_ref(d).map(ColumnSource::Field),
            "json_path" => source = arg.string(d).and_then(|text| read_json_path(text, d)),
            "condition" => {
                let condition = arg.string(d).filter(|text| check_condition(text, d));
                source = condition
                    .as_ref()
                    .map(|text| ColumnSource::Query(Query::of_condition(text)));
                name = name.or(condition);
            }
            "with" => source = arg.code(d).map(ColumnSource::With),
            "type" => column_type = one_of(arg, "column type", &types, d),
            "format" => format = arg.string(d).map(|text| text.value).unwrap_or_default(),
            "wide" if arg.flag(d) => priority = 1,
            "priority" => priority = arg.integer(d).unwrap_or_default(),
            "doc" => description = arg.string(d).map(|text| text.value).unwrap_or_default(),
            _ => {}
        }
    }
    let has = |key: &str| args.has(key);
    if !has("name") && !has("condition") {
        d.error(Id::MissingKey, arg.span(), "`name` is missing")
            .help("add `name = \"Type\"`, the column's header");
    }
    if !["path", "json_path", "condition", "with"]
        .into_iter()
        .any(has)
    {
        d.error(Id::MissingKey, arg.span(), "the column's source is missing")
            .help("add `path = spec.field`, `condition = \"Ready\"` or `with = function`");
    }
    Some(Column {
        name: name?,
        source: source?,
        column_type,
        format,
        priority,
        description,
    })
}

/// Parses the path of a column: plain fields, which may be followed by filters and indexes.
fn read_json_path(text: SpannedValue<String>, d: &mut Diagnostics) -> Option<ColumnSource> {
    match Query::parse(&text.value) {
        Ok(query) if query.steps.is_empty() => Some(ColumnSource::Field(FieldRef::Json(text))),
        Ok(query) => Some(ColumnSource::Query(query)),
        Err(reason) => {
            d.error(
                Id::BadPath,
                text.span,
                format!("`{}` is not the path of a column: {reason}", text.value),
            )
            .help("write `.spec.field`, or with a filter `.status.conditions[?(@.type==\"Ready\")].status`");
            None
        }
    }
}

/// Checks the type of a condition: a name, optionally with a DNS subdomain and a slash before it.
fn check_condition(text: &SpannedValue<String>, d: &mut Diagnostics) -> bool {
    let is_inner = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    let is_edge = |c: char| c.is_ascii_alphanumeric();
    let valid = text.starts_with(is_edge) && text.ends_with(is_edge) && text.chars().all(is_inner);
    if !valid {
        bad_name(
            "type of a condition",
            text,
            "write its type as in the status, such as \"Ready\"",
            d,
        );
    }
    valid
}

fn read_lifecycle(arg: &Arg, d: &mut Diagnostics) -> Option<Lifecycle> {
    let mut lifecycle = Lifecycle::default();
    for arg in &arg.list(Target::Lifecycle, d)? {
        match arg.key {
            "introduced" => lifecycle.introduced = read_release(arg, d),
            "deprecated" => lifecycle.deprecated = read_release(arg, d),
            "removed" => lifecycle.removed = read_release(arg, d),
            "replacement" => lifecycle.replacement = read_replacement(arg, d),
            _ => {}
        }
    }
    let releases = [
        ("introduced", &lifecycle.introduced),
        ("deprecated", &lifecycle.deprecated),
        ("removed", &lifecycle.removed),
    ];
    let said: Vec<_> = releases
        .iter()
        .filter_map(|(name, release)| release.as_ref().map(|r| (*name, r)))
        .collect();
    for pair in said.windows(2) {
        let ((earlier, first), (later, second)) = (pair[0], pair[1]);
        if second.value <= first.value {
            d.error(
                Id::LifecycleOrder,
                second.span,
                format!("`{later}` does not come after `{earlier}`"),
            );
        }
    }
    Some(lifecycle)
}

/// Reads a release, which is a string because `"1.10"` is not the number 1.1.
pub(crate) fn read_release(arg: &Arg, d: &mut Diagnostics) -> Option<SpannedValue<Release>> {
    let text = arg.string(d)?;
    let release = text.value.parse::<Release>().ok();
    if release.is_none() {
        d.error(
            Id::BadRelease,
            text.span,
            format!("{:?} is not a release", text.value),
        )
        .help("write major and minor number: \"1.2\"");
    }
    release.map(|value| SpannedValue {
        value,
        span: text.span,
    })
}

fn read_replacement(arg: &Arg, d: &mut Diagnostics) -> Option<(String, String, String)> {
    let before = d.errors().len();
    let words: Vec<String> = arg
        .values(d)
        .iter()
        .filter_map(string_or_path)
        .map(|word| word.value)
        .collect();
    match <[String; 3]>::try_from(words) {
        Ok([group, version, kind]) => Some((group, version, kind)),
        Err(_) if d.errors().len() > before => None,
        Err(_) => {
            d.error(
                Id::KeyForm,
                arg.span(),
                "`replacement` is written `replacement(\"group\", \"version\", Kind)`",
            );
            None
        }
    }
}

fn read_name_format(arg: &Arg, d: &mut Diagnostics) -> Option<NameFormat> {
    let known = NameFormat::ALL.map(|format| (format.word(), format));
    one_of(arg, "name format", &known, d)
}

fn add_labels(names: &mut Vec<SpannedValue<String>>, what: &str, arg: &Arg, d: &mut Diagnostics) {
    for name in arg.strings(d) {
        check_label(what, &name, d);
        if names.contains(&name) {
            d.error(
                Id::DuplicateName,
                name.span,
                format!("the {what} {:?} stands here twice", name.value),
            );
        }
        names.push(name);
    }
}
