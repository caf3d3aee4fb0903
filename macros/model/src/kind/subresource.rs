//! Subresources: the keys `status`, `scale(..)` and `subresource(..)`.

use quote::quote_spanned;
use syn::{Data, DeriveInput};

use super::naming::check_label;
use super::{FieldRef, Scale, Subresource, Verb, Writes};
use crate::api::{ApiStruct, Field, Shape};
use crate::args::Arg;
use crate::diagnostics::DiagnosticId as Id;
use crate::item::{self, Form};
use crate::keys::Target;
use crate::words::{look_up, look_up_verb};
use crate::{Code, Diagnostics, Name, SourceSpan, SpannedValue, names};

/// The name of the subresource that writes the field `status`.
const STATUS: &str = "status";

/// The name of the subresource with objects of the kind Scale.
const SCALE: &str = "scale";

/// The key of a subresource that opens streams.
const CONNECT: &str = "connect";

/// A subresource as it is written, before its field is looked up in the struct.
pub(super) struct SubresourceDeclaration {
    name: SpannedValue<String>,
    verbs: Vec<Verb>,
    writes: Option<(WriteRule, Name)>,
    scale: Option<Scale>,
    handler: Option<Code>,
    connects: bool,
    /// Whether the short form `status` declares it.
    is_short: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum WriteRule {
    Only,
    WithMetadata,
    Also,
}

/// The verbs that a subresource can have.
const VERBS: [Verb; 3] = [Verb::Get, Verb::Patch, Verb::Update];

/// The verbs by which streams can be opened.
const CONNECTING: [Verb; 5] = [
    Verb::Create,
    Verb::Delete,
    Verb::Get,
    Verb::Patch,
    Verb::Update,
];

/// The verbs that a handler can have.
const HANDLED: [Verb; 3] = [Verb::Create, Verb::Get, Verb::Update];

impl SubresourceDeclaration {
    /// `status`.
    fn status(key: SourceSpan) -> Self {
        let field = Name {
            text: STATUS.to_owned(),
            raw: false,
            span: key.start,
        };
        Self {
            name: SpannedValue::new(STATUS.to_owned(), key),
            verbs: VERBS.to_vec(),
            writes: Some((WriteRule::Only, field)),
            scale: None,
            handler: None,
            connects: false,
            is_short: true,
        }
    }

    /// `scale(spec = spec.replicas, status = status.replicas, selector = status.selector)`.
    fn scale(key: SourceSpan, scale: Scale) -> Self {
        Self {
            name: SpannedValue::new(SCALE.to_owned(), key),
            verbs: VERBS.to_vec(),
            writes: None,
            scale: Some(scale),
            handler: None,
            connects: false,
            is_short: false,
        }
    }
}

/// Reads `status`, `scale(..)` or `subresource(..)` into the subresources of a kind.
pub(super) fn add(subresources: &mut Vec<SubresourceDeclaration>, arg: &Arg, d: &mut Diagnostics) {
    let read = match arg.key {
        STATUS => arg
            .flag(d)
            .then(|| SubresourceDeclaration::status(arg.span())),
        CONNECT => read_connect(arg, d),
        SCALE => read_scale(arg, d).map(|scale| SubresourceDeclaration::scale(arg.span(), scale)),
        _ => read(arg, d),
    };
    let Some(new) = read else {
        return;
    };
    if subresources.iter().any(|other| other.name == new.name) {
        d.error(
            Id::DuplicateName,
            new.name.span,
            format!("there are two subresources {:?}", new.name.value),
        );
    }
    subresources.push(new);
}

fn read(arg: &Arg, d: &mut Diagnostics) -> Option<SubresourceDeclaration> {
    let before = d.errors().len();
    let args = arg.list(Target::Subresource, d)?;
    if args.iter().next().is_none() && d.errors().len() > before {
        return None;
    }
    let (mut name, mut verbs, mut writes, mut handler) = (None, None, None, None);
    let known = if args.has("handler") {
        &HANDLED
    } else {
        &VERBS
    };
    for arg in &args {
        match arg.key {
            "name" => {
                name = arg
                    .string(d)
                    .inspect(|name| check_label("subresource", name, d));
            }
            "verbs" => verbs = Some(read_verbs(arg, known, d)),
            "writes" => writes = read_writes(arg, d),
            "handler" => handler = arg.code(d),
            _ => {}
        }
    }
    if !args.has("name") {
        d.error(Id::MissingKey, arg.span(), "`name` is missing")
            .help("add `name = \"approval\"`, the last part of the path");
    }
    let has_handler = args.has("handler");
    if has_handler && !args.has("verbs") {
        d.error(Id::MissingKey, arg.span(), "`verbs` is missing")
            .help("add the verbs that the handler answers, for example `verbs = [create]`");
    }
    let verbs = verbs.unwrap_or_else(|| VERBS.to_vec());
    let is_written = verbs.iter().any(|verb| *verb != Verb::Get);
    if is_written && !has_handler && !args.has("writes") {
        d.error(Id::MissingKey, arg.span(), "`writes` is missing").help(
            "add `writes = only(field)`, `writes = with_metadata(field)` or `writes = also(field)`, or code: `handler = Type`; without a field it is only read: `verbs = [get]`",
        );
    }
    Some(SubresourceDeclaration {
        name: name?,
        verbs,
        writes,
        scale: None,
        handler,
        connects: false,
        is_short: false,
    })
}

/// `connect(name = "log", verbs = [get], handler = Logs)`.
fn read_connect(arg: &Arg, d: &mut Diagnostics) -> Option<SubresourceDeclaration> {
    let args = arg.list(Target::Connect, d)?;
    let (mut name, mut verbs, mut handler) = (None, None, None);
    for arg in &args {
        match arg.key {
            "name" => {
                name = arg
                    .string(d)
                    .inspect(|name| check_label("subresource", name, d));
            }
            "verbs" => verbs = Some(read_verbs(arg, &CONNECTING, d)),
            "handler" => handler = arg.code(d),
            _ => {}
        }
    }
    for (key, example) in [
        ("name", "name = \"log\"`, the part of the path"),
        ("verbs", "verbs = [get]`: a GET has `get`, a POST `create`"),
        (
            "handler",
            "handler = Logs`, a type that implements `ConnectSubresource`",
        ),
    ] {
        if !args.has(key) {
            d.error(Id::MissingKey, arg.span(), format!("`{key}` is missing"))
                .help(format!("add `{example}"));
        }
    }
    Some(SubresourceDeclaration {
        name: name?,
        verbs: verbs?,
        writes: None,
        scale: None,
        handler: Some(handler?),
        connects: true,
        is_short: false,
    })
}

/// Reads `scale(..)`.
fn read_scale(arg: &Arg, d: &mut Diagnostics) -> Option<Scale> {
    let args = arg.list(Target::Scale, d)?;
    let (mut spec, mut status, mut selector) = (None, None, None);
    for arg in &args {
        match arg.key {
            "spec" => spec = scale_field(arg, &["spec"], d),
            "status" => status = scale_field(arg, &["status"], d),
            "selector" => selector = scale_field(arg, &["spec", "status"], d),
            _ => {}
        }
    }
    for (key, example) in [("spec", "spec.replicas"), ("status", "status.replicas")] {
        if !args.has(key) {
            d.error(Id::MissingKey, arg.span(), format!("`{key}` is missing"))
                .help(format!("add `{key} = {example}`"));
        }
    }
    Some(Scale {
        spec: spec?,
        status: status?,
        selector,
    })
}

/// Reads a path of `scale(..)`, which begins with one of these fields, as in a CustomResourceDefinition.
fn scale_field(arg: &Arg, roots: &[&str], d: &mut Diagnostics) -> Option<FieldRef> {
    let field = arg.field_ref(d)?;
    let (root, is_below) = match &field {
        FieldRef::Typed(names) => (names.first().map(|name| name.text.clone()), names.len() > 1),
        FieldRef::Json(text) => {
            let mut names = text.value.trim_start_matches('.').split('.');
            (names.next().map(str::to_owned), names.next().is_some())
        }
    };
    if is_below && root.is_some_and(|root| roots.contains(&root.as_str())) {
        return Some(field);
    }
    let roots: Vec<String> = roots.iter().map(|root| format!("`{root}`")).collect();
    let roots = roots.join(" or ");
    d.error(
        Id::BadPath,
        arg.span(),
        format!("`{}` is a field below {roots}", arg.key),
    )
    .help("Kubernetes allows no other place in a CustomResourceDefinition either");
    None
}

fn read_verbs(arg: &Arg, known: &[Verb], d: &mut Diagnostics) -> Vec<Verb> {
    let before = d.errors().len();
    let mut verbs = Vec::new();
    for word in arg.words(d) {
        let Some(verb) = look_up_verb(&word, "verb of a subresource", known, d) else {
            continue;
        };
        if verbs.contains(&verb) {
            d.error(
                Id::DuplicateName,
                word.span,
                format!("the verb `{}` stands here twice", word.value),
            );
        }
        verbs.push(verb);
    }
    verbs.sort_unstable();
    verbs.dedup();
    if verbs.is_empty() && d.errors().len() == before {
        d.error(Id::NoVerbs, arg.span(), "the subresource has no verb")
            .help("name at least one");
    }
    verbs
}

/// `writes = only(field)`, `writes = with_metadata(field)` or `writes = also(field)`.
fn read_writes(arg: &Arg, d: &mut Diagnostics) -> Option<(WriteRule, Name)> {
    let (word, fields) = arg.call(d)?;
    let known = [
        ("only", WriteRule::Only),
        ("with_metadata", WriteRule::WithMetadata),
        ("also", WriteRule::Also),
    ];
    let rule = look_up(&word, "rule of what is written", &known, d)?;
    match <[Name; 1]>::try_from(fields) {
        Ok([field]) => Some((rule, field)),
        Err(_) => {
            d.error(
                Id::KeyForm,
                word.span,
                format!("`{}` names one field: `{}(spec)`", word.value, word.value),
            );
            None
        }
    }
}

/// The subresources with their fields, sorted by name.
///
/// A field that a subresource alone writes is dropped from a create, so it must be optional or have a default; otherwise
/// it gets the default of its type.
pub(super) fn settle(
    declared: Vec<SubresourceDeclaration>,
    root: &mut ApiStruct,
    item: &DeriveInput,
    form: Form,
    d: &mut Diagnostics,
) -> Vec<Subresource> {
    let mut subresources: Vec<Subresource> = declared
        .into_iter()
        .map(|declared| {
            let writes = settle_field(&declared, root, (item, form), d);
            check_status(&declared, writes.as_ref(), d);
            Subresource {
                name: declared.name,
                verbs: declared.verbs,
                writes,
                scale: declared.scale,
                handler: declared.handler,
                connects: declared.connects,
            }
        })
        .collect();
    subresources.sort_by(|a, b| a.name.value.cmp(&b.name.value));
    subresources
}

/// kubectl and CustomResourceDefinitions know a subresource `status` that writes the field `status`, and no other but the
/// metadata.
fn check_status(declared: &SubresourceDeclaration, writes: Option<&Writes>, d: &mut Diagnostics) {
    let is_status = declared.name.value == STATUS;
    let is_unread = declared.writes.is_some() && writes.is_none();
    let is_fit = matches!(writes, Some(Writes::Only(field) | Writes::WithMetadata(field)) if field == STATUS);
    if is_status && !is_unread && !is_fit {
        d.error(
            Id::StatusField,
            declared.name.span,
            "the subresource `status` writes the field `status` and no other",
        )
        .help("write `writes = only(status)` or `writes = with_metadata(status)`, or choose another name");
    }
}

fn settle_field(
    declared: &SubresourceDeclaration,
    root: &mut ApiStruct,
    (item, form): (&DeriveInput, Form),
    d: &mut Diagnostics,
) -> Option<Writes> {
    let (rule, written) = declared.writes.as_ref()?;
    let rule = *rule;
    let writes = |json: &str| match rule {
        WriteRule::Only => Writes::Only(json.to_owned()),
        WriteRule::WithMetadata => Writes::WithMetadata(json.to_owned()),
        WriteRule::Also => Writes::Also(json.to_owned()),
    };
    // The field may be one of a flattened type, which is not visible here.
    let flattens = root.fields.iter().any(|field| field.flatten);
    let is_named = |field: &Field| {
        if declared.is_short {
            field.json_name == STATUS
        } else {
            field.name.text == written.text
        }
    };
    let found = root
        .fields
        .iter()
        .position(|field| !field.flatten && is_named(field));
    let Some(index) = found else {
        if flattens {
            return Some(writes(&names::json_name(&written.text)));
        }
        report_missing(declared, written, root, d);
        return None;
    };
    let field = &mut root.fields[index];
    if field.json_name == "metadata" {
        d.error(
            Id::ReservedField,
            written.span,
            "`metadata` cannot belong to a subresource",
        )
        .help("name another field");
        return None;
    }
    let writes = writes(&field.json_name);
    if rule != WriteRule::Also {
        settle_default(field, item, form, d);
    }
    Some(writes)
}

fn report_missing(
    declared: &SubresourceDeclaration,
    written: &Name,
    root: &ApiStruct,
    d: &mut Diagnostics,
) {
    let (root_name, field) = (&root.name.text, &written.text);
    let message = format!("`{root_name}` has no field `{field}`");
    if declared.is_short {
        d.error(Id::StatusField, written.span, message).help(
            "add the field, for example `pub status: Option<Status>`, or remove `status` here",
        );
        return;
    }
    let known: Vec<&str> = root
        .fields
        .iter()
        .filter(|field| field.json_name != "metadata")
        .map(|field| field.name.text.as_str())
        .collect();
    let error = d.error(Id::UnknownField, written.span, message);
    if !known.is_empty() {
        error.help(format!("its fields are: {}", known.join(", ")));
    }
    error.suggest(field, known);
}

/// Checks that a new object can have the field, which no create can give.
fn settle_default(field: &mut Field, item: &DeriveInput, form: Form, d: &mut Diagnostics) {
    let name = &field.json_name;
    if field.rules.required {
        d.error(
            Id::StatusField,
            field.name.span,
            format!("no create can give `{name}`: only the subresource writes it"),
        )
        .help("remove `required`");
        return;
    }
    let has_value = !matches!(field.shape, Shape::Other)
        || field.default.is_some()
        || field.default_with.is_some();
    match form {
        _ if has_value => {}
        Form::Attribute => field.default = Some(default_of(&field.ty)),
        Form::Derive if has_serde_default(item, field) => {}
        Form::Derive => {
            d.error(
                Id::StatusField,
                field.name.span,
                format!("no create can give `{name}`, and it has no default"),
            )
            .help("make the field an `Option`, or add `#[serde(default)]`");
        }
    }
}

/// The default of a type, with rustc's error at the type when it has none.
fn default_of(ty: &Code) -> Code {
    let span = ty.span().start;
    Code::new(&quote_spanned!(span=> <#ty as ::core::default::Default>::default()))
}

/// Whether serde has a default for the absent field.
fn has_serde_default(item: &DeriveInput, field: &Field) -> bool {
    let Data::Struct(data) = &item.data else {
        return false;
    };
    let own = data.fields.iter().find(|other| {
        let name = other.ident.as_ref().map(Name::from);
        name.is_some_and(|name| name == field.name)
    });
    item::has_serde_key(&item.attrs, "default")
        || own.is_some_and(|own| item::has_serde_key(&own.attrs, "default"))
}
