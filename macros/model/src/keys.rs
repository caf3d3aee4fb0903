//! The table of keys: where each is allowed, which are not supported yet, and which contradict each other.

use crate::diagnostics::{DiagnosticId as Id, nearest};
use crate::{Diagnostics, Name, markers};

/// The position of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Resource,
    Column,
    Verbs,
    Subresource,
    Connect,
    Scale,
    Deletion,
    Lifecycle,
    Method,
    Index,
    Struct,
    Enum,
    Newtype,
    Field,
    Variant,
    Each,
    Keys,
    Bounds,
    Patch,
    Cel,
    Union,
    Convert,
    FieldConvert,
    /// `proto(..)` on a kind.
    ProtoKind,
    /// `proto(..)` on a type.
    ProtoType,
    /// `proto(..)` on a field or a variant.
    ProtoField,
    Group,
}

impl Target {
    fn shown(self) -> &'static str {
        match self {
            Self::Resource => "#[resource]",
            Self::Column => "printcolumn(..)",
            Self::Verbs => "verbs(..)",
            Self::Subresource => "subresource(..)",
            Self::Connect => "connect(..)",
            Self::Scale => "scale(..)",
            Self::Deletion => "deletion(..)",
            Self::Lifecycle => "lifecycle(..)",
            Self::Method => "method(..)",
            Self::Index => "index(..)",
            Self::Struct => "#[api] on a struct",
            Self::Enum => "#[api] on an enum",
            Self::Newtype => "#[api] on a struct of one value",
            Self::Field => "#[api] on a field",
            Self::Variant => "#[api] on a variant",
            Self::Each => "each(..)",
            Self::Keys => "keys(..)",
            Self::Bounds => "len(..), bytes(..), items(..), props(..) and range(..)",
            Self::Patch => "patch(..)",
            Self::Cel => "cel(..)",
            Self::Union => "union(..)",
            Self::Convert => "convert(..) on a type",
            Self::FieldConvert => "convert(..) on a field",
            Self::ProtoKind => "proto(..) of #[resource]",
            Self::ProtoType => "proto(..) on a type",
            Self::ProtoField => "proto(..) on a field or a variant",
            Self::Group => "group!",
        }
    }
}

/// A key of the attributes.
pub(crate) struct Key {
    pub(crate) name: &'static str,
    /// Whether it may be given more than once.
    pub(crate) repeats: bool,
    aliases: &'static [&'static str],
    targets: &'static [Target],
    later: bool,
}

use Target::{
    Bounds, Cel, Column, Connect, Convert, Deletion, Each, Enum, Field, FieldConvert, Group, Index,
    Keys, Lifecycle, Method, Newtype, Patch, ProtoField, ProtoKind, ProtoType, Resource, Scale,
    Struct, Subresource, Union, Variant, Verbs,
};

const fn key(name: &'static str, targets: &'static [Target]) -> Key {
    Key {
        name,
        repeats: false,
        aliases: &[],
        targets,
        later: false,
    }
}
const fn alias(
    name: &'static str,
    aliases: &'static [&'static str],
    targets: &'static [Target],
) -> Key {
    Key {
        aliases,
        ..key(name, targets)
    }
}
const fn many(
    name: &'static str,
    aliases: &'static [&'static str],
    targets: &'static [Target],
) -> Key {
    Key {
        repeats: true,
        ..alias(name, aliases, targets)
    }
}
const fn later(name: &'static str, targets: &'static [Target]) -> Key {
    Key {
        repeats: true,
        later: true,
        ..key(name, targets)
    }
}

/// Positions of the rules of a value.
const VALUE: &[Target] = &[Field, Each, Newtype];
const TEXT: &[Target] = &[Field, Each, Keys, Newtype];
/// Positions of `#[api]` on a type.
const TYPE: &[Target] = &[Struct, Enum];
const API: &[Target] = &[Struct, Enum, Field, Variant, Each, Keys];

/// Every key. A name may be listed several times with different meanings in different positions.
const KEYS: &[Key] = &[
    // #[resource] and group!
    key("crate", &[Resource, Struct, Enum, Newtype, Group]),
    key("group", &[Resource]),
    key("version", &[Resource]),
    key("kind", &[Resource]),
    key("plural", &[Resource]),
    key("singular", &[Resource]),
    key("list_kind", &[Resource]),
    many("shortname", &["short"], &[Resource]),
    many("category", &["categories"], &[Resource]),
    key("namespaced", &[Resource]),
    key("cluster", &[Resource]),
    key("simple", &[Resource]),
    key("status", &[Resource]),
    many("subresource", &[], &[Resource]),
    many("connect", &[], &[Resource]),
    key("scale", &[Resource]),
    key("deletion", &[Resource]),
    key("graceful_delete", &[Resource]),
    key("store", &[Resource]),
    key("verbs", &[Resource, Subresource, Connect]),
    key("readonly", &[Resource]),
    many("printcolumn", &["column"], &[Resource]),
    many("selectable", &["select"], &[Resource]),
    key("hub", &[Resource]),
    key("spoke_of", &[Resource]),
    key("stored_as", &[Resource]),
    key("storage", &[Resource]),
    key("served", &[Resource]),
    key("disabled_by_default", &[Resource]),
    key("lifecycle", &[Resource]),
    key("name_format", &[Resource]),
    key("generation", &[Resource]),
    key("unconditional_update", &[Resource]),
    key("create_on_update", &[Resource]),
    key("strategic_merge_patch", &[Resource]),
    key("protobuf", &[Resource]),
    key("proto", &[Resource, Struct, Enum, Field, Variant]),
    key("package", &[ProtoKind]),
    key("reserved", &[ProtoType]),
    key("reserved_names", &[ProtoType]),
    key("number", &[ProtoField]),
    key("omit_empty", &[ProtoField]),
    key(
        "name",
        &[
            Column,
            Group,
            Subresource,
            Connect,
            Method,
            Index,
            ProtoType,
        ],
    ),
    key("writes", &[Subresource]),
    key("handler", &[Subresource, Connect]),
    key("finalizers", &[Deletion]),
    key("phase", &[Deletion]),
    key("spec", &[Scale]),
    key("status", &[Scale]),
    key("selector", &[Scale]),
    key("dependents", &[Deletion]),
    key("returns", &[Deletion]),
    key("path", &[Column]),
    alias("path", &["field"], &[Index]),
    key("with", &[Column, Convert, FieldConvert]),
    key("json_path", &[Column]),
    key("condition", &[Column]),
    alias("type", &["type_"], &[Column]),
    key("format", &[Column]),
    key("wide", &[Column]),
    key("priority", &[Column]),
    alias("doc", &["description"], &[Column]),
    key("only", &[Verbs]),
    key("skip", &[Verbs]),
    key("introduced", &[Lifecycle]),
    key("deprecated", &[Lifecycle]),
    key("removed", &[Lifecycle]),
    key("replacement", &[Lifecycle]),
    key("versions", &[Group]),
    key("release", &[Group]),
    key("store_path", &[Resource]),
    many("method", &[], &[Resource]),
    key("no_client", &[Resource]),
    key("no_client_verbs", &[Resource]),
    many("index", &[], &[Resource]),
    key("verb", &[Method]),
    key("subresource", &[Method]),
    key("input", &[Method]),
    alias("output", &["result"], &[Method]),
    later("strategy", &[Resource]),
    later("rbac", &[Resource]),
    later("crd", &[Resource]),
    later("labels", &[Resource]),
    later("annotations", &[Resource]),
    later("model", &[Resource]),
    later("gate", &[Resource]),
    later("warning", &[Lifecycle]),
    // #[api]
    key("required", &[Field]),
    key("present", &[Field]),
    key("forbidden", &[Field]),
    key("nullable", &[Field]),
    key("default", &[Field]),
    key("default_with", &[Field]),
    key("min", VALUE),
    key("max", VALUE),
    key("range", VALUE),
    key("gt", VALUE),
    key("lt", VALUE),
    key("multiple_of", VALUE),
    key("len", TEXT),
    key("bytes", TEXT),
    key("pattern", TEXT),
    key("format", TEXT),
    key("neq", TEXT),
    key("items", VALUE),
    key("props", &[Struct, Field, Each, Newtype]),
    key("each", VALUE),
    key("keys", VALUE),
    key("requires", &[Field]),
    key("conflicts", &[Field]),
    key("unique", VALUE),
    key("opaque", &[Field]),
    key("sensitive", &[Field]),
    key("immutable", &[Field]),
    key("update", &[Field]),
    key("monotonic", &[Field]),
    many("custom", &[], &[Struct, Enum, Field, Each, Newtype]),
    many("cel", &[], &[Resource, Struct, Enum, Field, Each, Newtype]),
    key("union", &[Struct]),
    key("member", &[Field]),
    key("unknown", &[Variant]),
    key("list", VALUE),
    key("duplicates", VALUE),
    key("map", &[Struct, Field, Each]),
    key("patch", &[Field]),
    key("atomic", &[Struct, Field, Each]),
    many("convert", &[], TYPE),
    key("convert", &[Field]),
    key("json", &[Field, Variant]),
    key("flatten", &[Field]),
    key("preserve_unknown", &[Struct, Field, Each]),
    key("embedded_resource", VALUE),
    key("int_or_string", VALUE),
    key("schema", &[Struct, Field, Each, Newtype]),
    key("example", &[Struct, Enum, Field, Newtype]),
    key("title", &[Struct, Enum, Field, Newtype]),
    key("deprecated", &[Struct, Enum, Field, Newtype]),
    key("min", &[Bounds]),
    key("max", &[Bounds]),
    key("merge", &[Patch]),
    key("replace", &[Patch]),
    key("retain_keys", &[Patch]),
    key("key", &[Patch]),
    key("message", &[Cel]),
    key("message_expression", &[Cel]),
    key("reason", &[Cel]),
    alias("path", &["field_path"], &[Cel]),
    alias("optional_old", &["optional_old_self"], &[Cel]),
    key("tag", &[Union]),
    key("allow_none", &[Union]),
    key("peer", &[Convert]),
    key("manual", &[Convert]),
    key("hub_only", &[Convert]),
    key("lossy", &[Convert]),
    key("rename", &[FieldConvert]),
    key("drop", &[FieldConvert]),
    key("default", &[FieldConvert]),
    later("union", &[Enum]),
    later("cel", &[Variant, Keys]),
    later("gate", API),
    later("if_gate", API),
    later("unless_gate", API),
    later("alpha", API),
    later("beta", API),
    later("item", &[Field]),
    later("at", &[Field]),
    later("when", &[Field]),
    later("since", API),
    later("schema_with", &[Struct, Enum, Field]),
    later("schema_doc", &[Struct, Enum, Field]),
];

/// Keys that cannot be given together. The first one may have the value with which it cannot.
const CONTRADICTIONS: &[(&[Target], &str, &str)] = &[
    (&[Resource], "namespaced", "cluster"),
    // A simple kind is the body of subresources, and has no path of its own.
    (&[Resource], "simple", "namespaced"),
    (&[Resource], "simple", "cluster"),
    (&[Resource], "simple", "shortname"),
    (&[Resource], "simple", "category"),
    (&[Resource], "simple", "verbs"),
    (&[Resource], "simple", "readonly"),
    (&[Resource], "simple", "status"),
    (&[Resource], "simple", "scale"),
    (&[Resource], "simple", "subresource"),
    (&[Resource], "simple", "connect"),
    (&[Resource], "simple", "deletion"),
    (&[Resource], "simple", "store"),
    (&[Resource], "simple", "store_path"),
    (&[Resource], "simple", "selectable"),
    (&[Resource], "simple", "hub"),
    (&[Resource], "simple", "spoke_of"),
    (&[Resource], "simple", "stored_as"),
    (&[Resource], "simple", "storage"),
    (&[Resource], "simple", "served"),
    (&[Resource], "simple", "disabled_by_default"),
    (&[Resource], "served", "disabled_by_default"),
    (&[Resource], "simple", "lifecycle"),
    (&[Resource], "simple", "generation"),
    (&[Resource], "simple", "unconditional_update"),
    (&[Resource], "simple", "create_on_update"),
    (&[Resource], "simple", "strategic_merge_patch"),
    (&[Resource], "simple", "no_client"),
    (&[Resource], "simple", "no_client_verbs"),
    (&[Resource], "simple", "method"),
    (&[Resource], "simple", "index"),
    (&[Resource], "no_client", "method"),
    (&[Resource], "no_client", "index"),
    (&[Resource], "no_client", "no_client_verbs"),
    // A local copy lists and watches.
    (&[Resource], "no_client_verbs", "index"),
    // A handler writes what it wants to.
    (&[Subresource], "handler", "writes"),
    (&[Resource], "hub", "spoke_of"),
    // Its objects are those of the other kind.
    (&[Resource], "stored_as", "hub"),
    (&[Resource], "stored_as", "spoke_of"),
    (&[Resource], "stored_as", "storage"),
    (&[Resource], "stored_as", "store"),
    (&[Resource], "stored_as", "store_path"),
    (&[Resource], "readonly", "verbs"),
    // A review is only created.
    (&[Resource], "store = none", "verbs"),
    (&[Resource], "store = none", "readonly"),
    (&[Resource], "store = none", "index"),
    (&[Resource], "store = none", "selectable"),
    (&[Resource], "store = none", "printcolumn"),
    (&[Resource], "store = none", "generation"),
    (&[Resource], "store = none", "unconditional_update"),
    (&[Resource], "store = none", "create_on_update"),
    (&[Resource], "store = none", "strategic_merge_patch"),
    // Code has the objects of a kind without a store, and what else is of them.
    (&[Resource], "store", "status"),
    (&[Resource], "store", "scale"),
    (&[Resource], "store", "subresource"),
    (&[Resource], "store", "connect"),
    (&[Resource], "store", "deletion"),
    (&[Resource], "store", "graceful_delete"),
    (&[Resource], "store", "store_path"),
    (&[Resource], "store", "storage"),
    (&[Column], "path", "with"),
    (&[Column], "path", "json_path"),
    (&[Column], "with", "json_path"),
    (&[Column], "condition", "path"),
    (&[Column], "condition", "json_path"),
    (&[Column], "condition", "with"),
    (&[Column], "wide", "priority"),
    (&[Verbs], "only", "skip"),
    // Propagation policies do not apply to containers, and the response to their deletion is the object.
    (&[Deletion], "finalizers", "dependents"),
    (&[Deletion], "finalizers", "returns"),
    (&[Deletion], "phase", "dependents"),
    (&[Deletion], "phase", "returns"),
    (&[Patch], "merge", "replace"),
    (&[Field], "required", "forbidden"),
    // An empty value is refused by the one and taken by the other.
    (&[Field], "present", "required"),
    (&[Field], "present", "forbidden"),
    (&[Field], "present", "default_with"),
    (&[Field], "present", "flatten"),
    (&[Field], "required", "default"),
    (&[Field], "required", "default_with"),
    (&[Field], "forbidden", "default"),
    (&[Field], "forbidden", "default_with"),
    (&[Field], "default", "default_with"),
    (&[Field], "flatten", "json"),
    (&[Field], "flatten", "default"),
    (&[Field], "flatten", "default_with"),
    (&[Field], "flatten", "required"),
    (&[Field], "flatten", "member"),
    (VALUE, "min", "gt"),
    (VALUE, "max", "lt"),
    (VALUE, "range", "min"),
    (VALUE, "range", "max"),
    (VALUE, "range", "gt"),
    (VALUE, "range", "lt"),
    (VALUE, "list", "map"),
    (VALUE, "duplicates", "unique"),
    (&[Struct, Field, Each], "atomic", "list"),
    (&[Struct, Field, Each], "atomic", "map"),
    (VALUE, "int_or_string", "embedded_resource"),
    (VALUE, "len", "items"),
    (VALUE, "len", "props"),
    (VALUE, "items", "props"),
    (&[Variant], "unknown", "json"),
    (&[Convert], "manual", "with"),
    (&[Convert], "with", "hub_only"),
    (&[Convert], "with", "lossy"),
    (&[Convert], "manual", "hub_only"),
    (&[Convert], "manual", "lossy"),
    (&[FieldConvert], "drop", "rename"),
    (&[FieldConvert], "drop", "with"),
];

fn spelled(key: &Key, written: &str) -> bool {
    key.name == written || key.aliases.contains(&written)
}

/// Whether the word is a key anywhere.
pub(crate) fn is_key(word: &str) -> bool {
    KEYS.iter().any(|key| spelled(key, word))
}

/// The key with this name at a target. Reports why there is none; the error is the key that may have been intended.
pub(crate) fn resolve(
    target: Target,
    written: &Name,
    d: &mut Diagnostics,
) -> Result<&'static Key, Option<&'static str>> {
    let word = written.text.as_str();
    if let Some(key) = KEYS
        .iter()
        .find(|key| key.targets.contains(&target) && spelled(key, word))
    {
        if key.later {
            report_later(written, d);
            return Err(None);
        }
        return Ok(key);
    }
    let elsewhere: Vec<&str> = KEYS
        .iter()
        .filter(|key| spelled(key, word) && !key.later)
        .flat_map(|key| key.targets)
        .map(|t| t.shown())
        .collect();
    if let Some((last, others)) = elsewhere.split_last() {
        let places = if others.is_empty() {
            (*last).to_owned()
        } else {
            format!("{} and {last}", others.join(", "))
        };
        let help = match nearest(word, names_at(target)) {
            Some(near) => format!("did you mean `{near}`? `{word}` is a key of {places}"),
            None => format!("it is a key of {places}"),
        };
        d.error(
            Id::MisplacedKey,
            written.span,
            format!("`{word}` has no meaning in {}", target.shown()),
        )
        .help(help);
        return Err(None);
    }
    if is_key(word) {
        report_later(written, d);
        return Err(None);
    }
    Err(report_unknown(target, written, d))
}

fn report_later(written: &Name, d: &mut Diagnostics) {
    d.error(
        Id::NotSupportedYet,
        written.span,
        format!("`{}` is not supported yet", written.text),
    );
}

/// The keys of a target that are supported.
fn keys_at(target: Target) -> impl Iterator<Item = &'static Key> {
    let here = move |key: &&Key| key.targets.contains(&target) && !key.later;
    KEYS.iter().filter(here)
}

/// All spellings of a key.
fn names(key: &'static Key) -> impl Iterator<Item = &'static str> {
    std::iter::once(key.name).chain(key.aliases.iter().copied())
}

/// All spellings of the keys of a target.
fn names_at(target: Target) -> impl Iterator<Item = &'static str> {
    keys_at(target).flat_map(names)
}

/// Returns the key of the target that the help names.
fn report_unknown(target: Target, written: &Name, d: &mut Diagnostics) -> Option<&'static str> {
    let word = written.text.as_str();
    let here = || keys_at(target);
    let error = d.error(
        Id::UnknownKey,
        written.span,
        format!("unknown key `{word}` in {}", target.shown()),
    );
    let supported = || KEYS.iter().filter(|key| !key.later);
    if let Some(advice) = markers::of_key(word) {
        error.help(advice);
    } else if let Some(near) = nearest(word, names_at(target)) {
        error.help(format!("did you mean `{near}`?"));
        return here().find(|key| spelled(key, near)).map(|key| key.name);
    } else if let Some(near) = nearest(word, supported().flat_map(names)) {
        let place = supported()
            .find(|key| spelled(key, near))
            .and_then(|key| key.targets.first());
        let place = place.map_or("", |target| target.shown());
        error.help(format!("did you mean `{near}`? It is a key of {place}"));
    } else {
        let mut known: Vec<&str> = here().map(|key| key.name).collect();
        known.sort_unstable();
        error.help(format!("the keys are: {}", known.join(", ")));
    }
    None
}

/// Pairs of keys that cannot both be given at a target.
pub(crate) fn contradictions(target: Target) -> impl Iterator<Item = (&'static str, &'static str)> {
    CONTRADICTIONS
        .iter()
        .filter(move |(targets, ..)| targets.contains(&target))
        .map(|(_, first, second)| (*first, *second))
}

#[cfg(test)]
mod tests;
