//! The markers of Go's generators in comments (`+kubebuilder:validation:Minimum=1`), and their replacements.

use Advice::{Kind, Nothing, OnField, OnFieldAlone, OnType, Other};

use crate::formats::format_word;

/// The advice for a marker without a replacement.
const NOTHING: &str = "nothing replaces it yet";

/// The replacement of a marker.
#[derive(Clone, Copy, Debug)]
enum Advice {
    /// A key of `#[api(..)]` on the field; `{}` is the marker's value.
    OnField(&'static str),
    /// A key of `#[api(..)]` on the field that items of lists have not.
    OnFieldAlone(&'static str),
    /// A key of `#[api(..)]` on the type.
    OnType(&'static str),
    /// A key of `#[apiloom::resource(..)]`.
    Kind(&'static str),
    /// No replacement is needed, for this reason.
    Nothing(&'static str),
    /// Other advice.
    Other(&'static str),
}

/// Markers by their names in lower case, without `k8s:`, `kubebuilder:` and `validation:`. A flat table.
const MARKERS: &[(&str, Advice)] = &[
    // Values.
    ("minimum", OnField("min = {}")),
    ("maximum", OnField("max = {}")),
    ("exclusiveminimum", OnField("gt = ..")),
    ("exclusivemaximum", OnField("lt = ..")),
    ("multipleof", OnField("multiple_of = {}")),
    ("minlength", OnField("len(min = {})")),
    ("maxlength", OnField("len(max = {})")),
    ("maxbytes", OnField("bytes(max = {})")),
    ("minitems", OnField("items(min = {})")),
    ("maxitems", OnField("items(max = {})")),
    ("minproperties", OnField("props(min = {})")),
    ("maxproperties", OnField("props(max = {})")),
    ("uniqueitems", OnField("unique")),
    ("pattern", OnField("pattern = \"..\"")),
    ("format", OnField("format = {}")),
    ("neq", OnField("neq = {}")),
    ("nullable", OnFieldAlone("nullable")),
    ("default", OnFieldAlone("default = {}")),
    ("example", OnFieldAlone("example = ..")),
    ("title", OnFieldAlone("title = \"..\"")),
    ("forbidden", OnFieldAlone("forbidden")),
    ("immutable", OnFieldAlone("immutable")),
    ("monotonic", OnFieldAlone("monotonic")),
    ("update", OnFieldAlone("update(..)")),
    ("eachval", OnField("each(..)")),
    ("eachkey", OnField("keys(..)")),
    ("opaquetype", OnFieldAlone("opaque")),
    ("unique", OnField("unique")),
    ("customunique", OnField("custom = function")),
    ("customvalidation", OnField("custom = function")),
    ("xvalidation", OnField("cel(\"..\")")),
    ("dependentrequired", OnFieldAlone("requires(..)")),
    ("dependentforbidden", OnFieldAlone("conflicts(..)")),
    ("listtype", OnField("list = {}")),
    ("listmapkey", OnField("list = map({})")),
    ("maptype", OnField("map = {}")),
    ("structtype", OnField("map = {}")),
    ("patchmergekey", OnFieldAlone("patch(merge, key = {})")),
    ("patchstrategy", OnFieldAlone("patch({})")),
    ("pruning:preserveunknownfields", OnField("preserve_unknown")),
    ("preserveunknownfields", OnField("preserve_unknown")),
    ("xpreserveunknownfields", OnField("preserve_unknown")),
    ("schemaless", OnField("preserve_unknown")),
    ("embeddedresource", OnField("embedded_resource")),
    ("xembeddedresource", OnField("embedded_resource")),
    ("xintorstring", OnField("int_or_string")),
    ("unionmember", OnFieldAlone("member = \"..\"")),
    ("union", OnType("union(tag = ..)")),
    ("uniondiscriminator", OnType("union(tag = ..)")),
    ("atmostoneof", OnType("union(allow_none)")),
    ("exactlyoneof", OnType("union()")),
    ("atleastoneof", OnType("custom = function")),
    ("zerooroneofmember", OnField("custom = function")),
    ("type", Nothing("the Rust type says it")),
    (
        "externaldocs",
        Nothing("the doc comment may have the address"),
    ),
    (
        "enum",
        Other("make the type of the field a Rust enum with `#[apiloom::api]`"),
    ),
    (
        "enumexclude",
        Other("leave the variant out of the Rust enum"),
    ),
    (
        "required",
        Other(
            "a field that is no `Option`, list or map is required; write `#[api(required)]` to refuse an empty value too",
        ),
    ),
    (
        "optional",
        Other("make the field an `Option`, a list or a map, or write `#[api(default = ..)]`"),
    ),
    // Kinds.
    ("resource:shortname", Kind("shortname = \"{}\"")),
    ("resource:categories", Kind("category = \"{}\"")),
    ("resource:path", Kind("plural = \"{}\"")),
    ("resource:singular", Kind("singular = \"{}\"")),
    ("resource:scope", Kind("namespaced` or `cluster")),
    (
        "resource",
        Kind("plural`, `singular`, `shortname`, `category`, `namespaced` or `cluster"),
    ),
    ("subresource:status", Kind("status")),
    ("subresource:scale", Kind("scale(spec = .., status = ..)")),
    ("supportssubresource", Kind("status")),
    ("printcolumn", Kind("printcolumn(name = \"..\", path = ..)")),
    ("selectablefield", Kind("selectable(..)")),
    ("storageversion", Kind("storage")),
    ("unservedversion", Kind("served = false")),
    ("deprecatedversion", Kind("lifecycle(deprecated = \"..\")")),
    (
        "prerelease-lifecycle-gen:introduced",
        Kind("lifecycle(introduced = \"{}\")"),
    ),
    (
        "prerelease-lifecycle-gen:deprecated",
        Kind("lifecycle(deprecated = \"{}\")"),
    ),
    (
        "prerelease-lifecycle-gen:removed",
        Kind("lifecycle(removed = \"{}\")"),
    ),
    (
        "prerelease-lifecycle-gen:replacement",
        Kind("lifecycle(replacement(..))"),
    ),
    ("groupname", Kind("group = \"{}\"")),
    ("versionname", Kind("version = \"{}\"")),
    (
        "genclient",
        Nothing("`clients = true` in `[package.metadata.apiloom]` makes a client of every kind"),
    ),
    ("genclient:method", Kind("method(..)")),
    ("genclient:nonnamespaced", Kind("cluster")),
    ("genclient:onlyverbs", Kind("verbs(only = [..])")),
    ("genclient:skipverbs", Kind("verbs(skip = [..])")),
    ("genclient:readonly", Kind("readonly")),
    ("genclient:noverbs", Kind("no_client_verbs")),
    (
        "genclient:nostatus",
        Other("leave `status` out of `#[apiloom::resource(..)]`"),
    ),
    // Markers of code that is always generated.
    ("deepcopy-gen", Nothing("every API type is `Clone`")),
    ("object", Nothing("every API type is `Clone`")),
    ("openapi-gen", Nothing("every API type is in OpenAPI")),
    (
        "openapi-model-package",
        Nothing("every API type is in OpenAPI"),
    ),
    (
        "register-gen",
        Nothing("`apiloom generate` registers every kind"),
    ),
    (
        "protobuf-gen",
        Other("number the fields: `#[api(proto = 1)]`"),
    ),
    ("protobuf", Other("number the fields: `#[api(proto = 1)]`")),
    (
        "validation-gen",
        Nothing("the rules of `#[api(..)]` are always checked"),
    ),
    (
        "validation-gen-input",
        Nothing("the rules of `#[api(..)]` are always checked"),
    ),
    (
        "client-gen",
        Nothing("a client needs nothing from the server's types"),
    ),
    (
        "lister-gen",
        Nothing("a client needs nothing from the server's types"),
    ),
    (
        "informer-gen",
        Nothing("a client needs nothing from the server's types"),
    ),
    (
        "applyconfiguration-gen",
        Nothing("a client needs nothing from the server's types"),
    ),
    (
        "ac",
        Nothing("a client needs nothing from the server's types"),
    ),
    (
        "rbac",
        Nothing("`apiloom generate` writes roles from the served verbs"),
    ),
    ("skip", Nothing("what has no attribute is no API type")),
    (
        "conversion-gen",
        Other(
            "write `spoke_of = ..` in `#[apiloom::resource(..)]` and `#[api(convert(peer = ..))]` on the types inside",
        ),
    ),
    (
        "conversion-gen-external-types",
        Nothing("`#[api(convert(peer = ..))]` names the other type"),
    ),
    (
        "defaulter-gen",
        Other("write `#[api(default = ..)]` or `#[api(default_with = ..)]` on the fields"),
    ),
    (
        "defaulter-gen-input",
        Nothing("`#[api(default = ..)]` stands on the fields"),
    ),
    (
        "webhook",
        Other("register an admission plugin in `configure`"),
    ),
];

/// Markers without a prefix, beside those that begin with `k8s:` or `kubebuilder:`.
const BARE: &[&str] = &[
    "genclient",
    "optional",
    "required",
    "nullable",
    "default",
    "enum",
    "listtype",
    "listmapkey",
    "maptype",
    "structtype",
    "patchstrategy",
    "patchmergekey",
    "union",
    "uniondiscriminator",
    "groupname",
    "versionname",
    "protobuf",
];

/// The names of all markers that have advice.
#[cfg(test)]
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    MARKERS.iter().map(|(name, _)| *name)
}

/// A marker in a comment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Marker {
    /// Its text: `+kubebuilder:validation:Minimum=1`.
    pub text: String,
    /// The advice.
    pub help: String,
}

/// The marker in a line of a comment, without the comment's slashes.
pub fn of_comment(line: &str) -> Option<Marker> {
    let text = line.trim();
    let body = text.strip_prefix('+')?;
    let end = body
        .find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, ':' | '-' | '_' | '.')))
        .unwrap_or(body.len());
    let (name, rest) = body.split_at(end);
    let value = rest.strip_prefix('=').unwrap_or_default().trim();
    let name = name.trim_end_matches([':', '.']).to_ascii_lowercase();
    let root = name.split([':', '.']).next().unwrap_or_default();
    if !matches!(root, "k8s" | "kubebuilder") && !BARE.contains(&root) {
        return None;
    }
    Some(Marker {
        text: text.to_owned(),
        help: help(&name, value),
    })
}

/// The replacement of a marker's word that was written as a key: `maxLength`.
pub(crate) fn of_key(word: &str) -> Option<String> {
    let word = word.to_ascii_lowercase().replace('_', "");
    let (_, advice) = MARKERS.iter().find(|(name, _)| *name == word)?;
    Some(say(*advice, "", false))
}

fn help(name: &str, value: &str) -> String {
    let bare = ["kubebuilder:validation:", "kubebuilder:", "k8s:"]
        .iter()
        .find_map(|prefix| name.strip_prefix(prefix))
        .unwrap_or(name);
    let (bare, is_of_items) = match bare.strip_prefix("items:") {
        Some(inner) => (inner, true),
        None => (bare, false),
    };
    let value = match (bare, value) {
        ("resource:scope", "Cluster") => return say(Kind("cluster"), "", false),
        // A marker may have several keys: `path=flunders,shortName=fl`.
        (name, value) if name.starts_with("resource:") && value.contains(',') => {
            return help("resource", "");
        }
        ("listtype", "map") => "map(..)",
        ("format", "k8s-short-name") => "dns_label",
        ("format", "k8s-long-name") => "dns_subdomain",
        ("format", "k8s-path-segment-name") => "path_segment",
        ("format", other) => {
            format_word(other.strip_prefix("k8s-").unwrap_or(other)).unwrap_or("..")
        }
        ("patchstrategy", "retainKeys") => "retain_keys",
        ("patchstrategy", other) if !["merge", "replace"].contains(&other) => "..",
        // The name of a field in JSON; Rust has another.
        ("listmapkey" | "patchmergekey", name)
            if name.contains(|c: char| c.is_ascii_uppercase()) =>
        {
            ".."
        }
        _ => value,
    };
    let known = |name: &str| MARKERS.iter().find(|(known, _)| *known == name);
    // `deepcopy-gen:interfaces` has the advice of `deepcopy-gen`.
    let found = known(bare).or_else(|| {
        let shorter = bare.rmatch_indices([':', '.']).map(|(at, _)| &bare[..at]);
        shorter.into_iter().find_map(known)
    });
    match found {
        Some((_, advice)) => say(*advice, value, is_of_items),
        None => NOTHING.to_owned(),
    }
}

fn say(advice: Advice, value: &str, is_of_items: bool) -> String {
    let value = if is_plain(value) { value } else { ".." };
    let filled = |key: &str| key.replace("{}", value);
    match advice {
        OnField(key) if is_of_items => {
            format!("write `#[api(each({}))]` on the field", filled(key))
        }
        OnFieldAlone(_) if is_of_items => NOTHING.to_owned(),
        OnField(key) | OnFieldAlone(key) => {
            format!("write `#[api({})]` on the field", filled(key))
        }
        OnType(key) => format!("write `#[api({})]` on the type", filled(key)),
        Kind(key) => format!("write `{}` in `#[apiloom::resource(..)]`", filled(key)),
        Nothing(why) => format!("no replacement is needed: {why}"),
        Other(text) => text.to_owned(),
    }
}

/// Whether a value has the same meaning in Rust: a number, a boolean or a name.
fn is_plain(value: &str) -> bool {
    !value.is_empty()
        && value
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
        || value == "map(..)"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, help: Option<&str>) {
        let found = of_comment(line).map(|marker| marker.help);
        assert_eq!(found.as_deref(), help, "{line}");
    }

    #[test]
    fn markers_have_their_replacement() {
        for (line, help) in [
            (
                " +kubebuilder:validation:Minimum=1",
                "write `#[api(min = 1)]` on the field",
            ),
            (
                "+k8s:maxLength=63",
                "write `#[api(len(max = 63))]` on the field",
            ),
            (
                "+kubebuilder:validation:items:MaxLength=9",
                "write `#[api(each(len(max = 9)))]` on the field",
            ),
            (
                "+kubebuilder:validation:Pattern=`^a+$`",
                "write `#[api(pattern = \"..\")]` on the field",
            ),
            (
                "+kubebuilder:default:={}",
                "write `#[api(default = ..)]` on the field",
            ),
            ("+default=3", "write `#[api(default = 3)]` on the field"),
            (
                "+listType=map",
                "write `#[api(list = map(..))]` on the field",
            ),
            ("+listType=set", "write `#[api(list = set)]` on the field"),
            (
                "+k8s:format=k8s-short-name",
                "write `#[api(format = dns_label)]` on the field",
            ),
            (
                "+k8s:format=k8s-label-key",
                "write `#[api(format = label_key)]` on the field",
            ),
            (
                "+kubebuilder:validation:Format=int32",
                "write `#[api(format = ..)]` on the field",
            ),
            (
                "+kubebuilder:validation:XValidation:rule=\"self > 1\"",
                "write `#[api(cel(\"..\"))]` on the field",
            ),
            (
                "+patchStrategy=retainKeys",
                "write `#[api(patch(retain_keys))]` on the field",
            ),
            (
                "+listMapKey=containerPort",
                "write `#[api(list = map(..))]` on the field",
            ),
            (
                "+listMapKey=name",
                "write `#[api(list = map(name))]` on the field",
            ),
            (
                "+kubebuilder:subresource:status",
                "write `status` in `#[apiloom::resource(..)]`",
            ),
            (
                "+kubebuilder:resource:shortName=fl",
                "write `shortname = \"fl\"` in `#[apiloom::resource(..)]`",
            ),
            (
                "+kubebuilder:resource:path=flunders,shortName=fl",
                "write `plural`, `singular`, `shortname`, `category`, `namespaced` or `cluster` in `#[apiloom::resource(..)]`",
            ),
            (
                "+kubebuilder:resource:scope=Cluster",
                "write `cluster` in `#[apiloom::resource(..)]`",
            ),
            (
                "+kubebuilder:storageversion",
                "write `storage` in `#[apiloom::resource(..)]`",
            ),
            (
                "+genclient:nonNamespaced",
                "write `cluster` in `#[apiloom::resource(..)]`",
            ),
            (
                "+genclient",
                "no replacement is needed: `clients = true` in `[package.metadata.apiloom]` makes a client of every kind",
            ),
            (
                "+k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object",
                "no replacement is needed: every API type is `Clone`",
            ),
            (
                "+k8s:unionMember",
                "write `#[api(member = \"..\")]` on the field",
            ),
            (
                "+k8s:prerelease-lifecycle-gen:introduced=1.2",
                "write `lifecycle(introduced = \"1.2\")` in `#[apiloom::resource(..)]`",
            ),
            (
                "+kubebuilder:subresource:scale:specpath=.a",
                "write `scale(spec = .., status = ..)` in `#[apiloom::resource(..)]`",
            ),
            ("+k8s:ifEnabled(X)=+k8s:required", "nothing replaces it yet"),
            (
                "+protobuf.options.(gogoproto.goproto_stringer)=false",
                "number the fields: `#[api(proto = 1)]`",
            ),
        ] {
            check(line, Some(help));
        }
    }

    #[test]
    fn other_comments_are_not_markers() {
        for line in [
            "",
            "+",
            "+ optional",
            "+1 for this",
            "a +optional b",
            "optional",
            "+foo",
        ] {
            check(line, None);
        }
    }
}
