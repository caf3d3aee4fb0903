//! What a kind says of its clients: the keys `method(..)` and `index(..)`.

use super::naming::{bad_name, check_label};
use super::{FieldRef, Index, Kind, Method, MethodVerb, Subresource, Verb};
use crate::args::Arg;
use crate::diagnostics::DiagnosticId as Id;
use crate::keys::Target;
use crate::names::is_identifier;
use crate::words::look_up;
use crate::{Diagnostics, Name, SpannedValue};

impl MethodVerb {
    /// All of them, as they are written.
    const KNOWN: [(&'static str, MethodVerb); 6] = [
        ("get", Self::Get),
        ("list", Self::List),
        ("create", Self::Create),
        ("update", Self::Update),
        ("patch", Self::Patch),
        ("apply", Self::Apply),
    ];

    /// The name of the request: `get`.
    pub fn as_str(self) -> &'static str {
        let known = Self::KNOWN.iter().find(|(_, verb)| *verb == self);
        known.map_or("", |(name, _)| *name)
    }

    /// The verb of the server.
    pub fn verb(self) -> Verb {
        match self {
            Self::Get => Verb::Get,
            Self::List => Verb::List,
            Self::Create => Verb::Create,
            Self::Update => Verb::Update,
            Self::Patch | Self::Apply => Verb::Patch,
        }
    }

    /// Whether the request has a body of a kind.
    pub fn has_input(self) -> bool {
        matches!(self, Self::Create | Self::Update | Self::Apply)
    }
}

impl Kind {
    /// The methods of its client besides those of the verbs: the declared ones, and one for each verb of a subresource that
    /// has none of this name. `status` and `scale` are not among them: all clients have methods for these.
    pub fn client_methods(&self) -> Vec<Method> {
        let mut methods = self.methods.clone();
        for sub in &self.subresources {
            if sub.connects || sub.scale.is_some() || sub.name.value == "status" {
                continue;
            }
            let is_served = |verb: &Verb| sub.handler.is_some() || self.verbs.contains(verb);
            let served = |verb: &MethodVerb| {
                let verb = verb.verb();
                sub.verbs.contains(&verb) && is_served(&verb)
            };
            // A subresource has no list.
            let all = MethodVerb::KNOWN.into_iter().map(|(_, verb)| verb);
            for verb in all.filter(|verb| *verb != MethodVerb::List).filter(served) {
                let name = format!("{}_{}", verb.as_str(), sub.name.value.replace('-', "_"));
                if methods.iter().any(|other| other.name.value == name) {
                    continue;
                }
                methods.push(Method {
                    name: SpannedValue::new(name, sub.name.span),
                    verb: SpannedValue::new(verb, sub.name.span),
                    subresource: Some(sub.name.clone()),
                    input: None,
                    output: None,
                });
            }
        }
        methods
    }

    /// The subresource of a method.
    pub fn subresource_of(&self, method: &Method) -> Option<&Subresource> {
        let name = method.subresource.as_ref()?;
        self.subresources.iter().find(|sub| sub.name == *name)
    }
}

/// Verbs of the Go generator that a method cannot have: the clients have them, and they take no other types.
const FIXED: [&str; 5] = [
    "delete",
    "deleteCollection",
    "delete_collection",
    "watch",
    "updateStatus",
];

/// The methods that every client has, and that a method of the same name would be hidden by.
const TAKEN: [&str; 29] = [
    "apply",
    "apply_as",
    "apply_status",
    "client",
    "clone",
    "connect",
    "create",
    "create_as",
    "delete",
    "delete_collection",
    "get",
    "get_as",
    "in_namespace",
    "list",
    "list_as",
    "metadata_only",
    "patch",
    "patch_as",
    "patch_status",
    "resource",
    "scale",
    "scope",
    "subresource",
    "update",
    "update_as",
    "update_status",
    "update_status_with",
    "update_with",
    "watch",
];

/// Reads `method(name = "approve", verb = create, subresource = "approval", input = Approval, output = Flunder)`.
pub(super) fn read_method(methods: &mut Vec<Method>, arg: &Arg, d: &mut Diagnostics) {
    let before = d.errors().len();
    let Some(args) = arg.list(Target::Method, d) else {
        return;
    };
    if args.iter().next().is_none() && d.errors().len() > before {
        return;
    }
    let (mut name, mut verb, mut subresource) = (None, None, None);
    let (mut input, mut output) = (None, None);
    for arg in &args {
        match arg.key {
            "name" => name = arg.string(d).filter(|name| check_function(name, d)),
            "verb" => verb = read_verb(arg, d),
            "subresource" => {
                subresource = arg
                    .string(d)
                    .inspect(|name| check_label("subresource", name, d));
            }
            "input" => input = arg.path_of("a kind", d),
            "output" => output = arg.path_of("a type", d),
            _ => {}
        }
    }
    for (key, example) in [
        ("name", "name = \"approve\"`, the function of the client"),
        (
            "verb",
            "verb = create`, or get, list, update, patch or apply",
        ),
    ] {
        if !args.has(key) {
            d.error(Id::MissingKey, arg.span(), format!("`{key}` is missing"))
                .help(format!("add `{example}"));
        }
    }
    let (Some(name), Some(verb)) = (name, verb) else {
        return;
    };
    if let Some(input) = input.as_ref().filter(|_| !verb.has_input()) {
        let verb = verb.as_str();
        d.error(
            Id::Contradiction,
            input.span(),
            format!("the request `{verb}` has no body of a kind"),
        )
        .help("remove `input`: create, update and apply have one");
    }
    if methods.iter().any(|other| other.name == name) {
        d.error(
            Id::DuplicateName,
            name.span,
            format!("there are two methods {:?}", name.value),
        );
    }
    methods.push(Method {
        name,
        verb,
        subresource,
        input,
        output,
    });
}

fn read_verb(arg: &Arg, d: &mut Diagnostics) -> Option<SpannedValue<MethodVerb>> {
    let word = arg.word(d)?;
    if FIXED.contains(&word.value.as_str()) {
        d.error(
            Id::UnknownValue,
            word.span,
            format!("a method cannot have the verb `{}`", word.value),
        )
        .help(
            "one of: get, list, create, update, patch, apply; clients have the others themselves",
        );
        return None;
    }
    let verb = look_up(&word, "verb of a method", &MethodVerb::KNOWN, d)?;
    Some(SpannedValue::new(verb, word.span))
}

/// Checks the name of a function of a client.
fn check_function(name: &SpannedValue<String>, d: &mut Diagnostics) -> bool {
    let is_inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let is_name = name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(is_inner)
        && is_identifier(name);
    if !is_name {
        bad_name(
            "name of a method",
            name,
            "write the name of a Rust function, such as \"approve\"",
            d,
        );
        return false;
    }
    if TAKEN.contains(&name.value.as_str()) {
        d.error(
            Id::DuplicateName,
            name.span,
            format!("every client has a method `{}`", name.value),
        )
        .help("choose another name");
        return false;
    }
    true
}

/// Checks that the kind serves what its methods request.
pub(super) fn check_methods(
    methods: &[Method],
    subresources: &[Subresource],
    verbs: &[Verb],
    d: &mut Diagnostics,
) {
    for method in methods {
        let verb = method.verb.value.verb();
        let Some(name) = &method.subresource else {
            if !verbs.contains(&verb) {
                d.error(
                    Id::Contradiction,
                    method.verb.span,
                    format!("the kind has no verb `{}`", verb.word()),
                )
                .help("add it to its `verbs`, or name the subresource of the method");
            }
            continue;
        };
        let Some(sub) = subresources.iter().find(|sub| sub.name == *name) else {
            let known = subresources.iter().map(|sub| sub.name.value.as_str());
            let known: Vec<&str> = known.collect();
            let error = d.error(
                Id::UnknownValue,
                name.span,
                format!("the kind has no subresource {:?}", name.value),
            );
            error.help(format!(
                "add `subresource(name = {:?}, ..)`, whose verbs the server has",
                name.value
            ));
            error.suggest(name, known);
            continue;
        };
        if sub.connects {
            d.error(
                Id::Contradiction,
                name.span,
                format!("{:?} opens streams, which have no objects", name.value),
            )
            .help("remove the method: the client has one that opens the stream");
        } else if !sub.verbs.contains(&verb) || sub.handler.is_none() && !verbs.contains(&verb) {
            d.error(
                Id::Contradiction,
                method.verb.span,
                format!(
                    "the subresource {:?} has no verb `{}`",
                    name.value,
                    verb.word()
                ),
            )
            .help("add it to the `verbs` of the subresource, and of the kind if no handler answers it");
        }
    }
}

/// Reads `index(name = "reference", path = spec.reference)`.
pub(super) fn read_index(indexes: &mut Vec<Index>, arg: &Arg, d: &mut Diagnostics) {
    let before = d.errors().len();
    let Some(args) = arg.list(Target::Index, d) else {
        return;
    };
    if args.iter().next().is_none() && d.errors().len() > before {
        return;
    }
    let (mut name, mut path) = (None, None);
    for arg in &args {
        match arg.key {
            "name" => {
                name = arg
                    .string(d)
                    .inspect(|name| check_label("name of an index", name, d));
            }
            "path" => path = read_path(arg, d),
            _ => {}
        }
    }
    for (key, example) in [("name", "name = \"node\""), ("path", "path = spec.node")] {
        if !args.has(key) {
            d.error(Id::MissingKey, arg.span(), format!("`{key}` is missing"))
                .help(format!("add `{example}`"));
        }
    }
    let (Some(name), Some(path)) = (name, path) else {
        return;
    };
    if indexes.iter().any(|other| other.name == name) {
        d.error(
            Id::DuplicateName,
            name.span,
            format!("there are two indexes {:?}", name.value),
        );
    }
    indexes.push(Index { name, path });
}

/// The field of an index, which is read from typed objects.
fn read_path(arg: &Arg, d: &mut Diagnostics) -> Option<Vec<Name>> {
    match arg.field_ref(d)? {
        FieldRef::Typed(path) => Some(path),
        FieldRef::Json(text) => {
            d.error(
                Id::BadPath,
                text.span,
                "the field of an index is a chain of Rust fields",
            )
            .help("write `path = spec.node`; for a value that is computed, implement `Index`");
            None
        }
    }
}
