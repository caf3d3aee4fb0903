//! Reads the parts of an item that are not our own keys: attributes, doc comments, derives, serde's names.

use syn::{Attribute, Expr, ExprLit, Lit, Meta};

use crate::diagnostics::DiagnosticId as Id;
use crate::{Diagnostics, SourceSpan, SpannedValue};

/// Whether the attribute is `#[NAME]` or `#[apiloom::NAME]`.
pub fn is_attribute(attribute: &Attribute, name: &str) -> bool {
    let segments: Vec<String> = attribute
        .path()
        .segments
        .iter()
        .map(|s| s.ident.to_string())
        .collect();
    match segments.as_slice() {
        [only] => only == name,
        [first, second] => first == "apiloom" && second == name,
        _ => false,
    }
}

/// Which serde and schemars derives an item has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Those of our attribute macros, with attributes of their own.
    Attribute,
    /// The user's own; ours is only `#[derive(Resource)]`.
    Derive,
}

/// The doc comment as plain text: lines joined, one leading space of each removed.
pub(crate) fn description(attrs: &[Attribute]) -> String {
    let mut lines: Vec<String> = Vec::new();
    for attribute in attrs.iter().filter(|a| a.path().is_ident("doc")) {
        let Meta::NameValue(meta) = &attribute.meta else {
            continue;
        };
        let Expr::Lit(ExprLit {
            lit: Lit::Str(text),
            ..
        }) = &meta.value
        else {
            continue;
        };
        lines.extend(
            text.value()
                .split('\n')
                .map(|line| line.strip_prefix(' ').unwrap_or(line).trim_end().to_owned()),
        );
    }
    lines.join("\n").trim().to_owned()
}

/// The last segments of the derives on an item.
pub(crate) fn derives(attrs: &[Attribute]) -> Vec<String> {
    let mut names = Vec::new();
    for attribute in attrs.iter().filter(|a| a.path().is_ident("derive")) {
        // rustc reports a derive that is not a list of paths.
        let _ = attribute.parse_nested_meta(|meta| {
            names.extend(
                meta.path
                    .segments
                    .last()
                    .map(|segment| segment.ident.to_string()),
            );
            Ok(())
        });
    }
    names
}

/// A key inside `#[serde(..)]` or `#[schemars(..)]`.
struct ForeignKey {
    attribute: &'static str,
    name: String,
    text: Option<SpannedValue<String>>,
    span: SourceSpan,
}

fn foreign_keys(attrs: &[Attribute]) -> Vec<ForeignKey> {
    let mut keys = Vec::new();
    for (attribute, owner) in attrs
        .iter()
        .flat_map(|a| ["serde", "schemars"].map(|owner| (a, owner)))
    {
        if !attribute.path().is_ident(owner) {
            continue;
        }
        // serde and schemars report attributes that they cannot read.
        let _ = attribute.parse_nested_meta(|meta| {
            let name = meta
                .path
                .get_ident()
                .map(ToString::to_string)
                .unwrap_or_default();
            let span = SourceSpan::of(&meta.path);
            let mut text = None;
            if meta.input.peek(syn::Token![=]) {
                if let Expr::Lit(ExprLit {
                    lit: Lit::Str(value),
                    ..
                }) = meta.value()?.parse::<Expr>()?
                {
                    text = Some(SpannedValue::new(value.value(), value.span()));
                }
            } else if meta.input.peek(syn::token::Paren) {
                let inner;
                syn::parenthesized!(inner in meta.input);
                inner.parse::<proc_macro2::TokenStream>()?;
            }
            keys.push(ForeignKey {
                attribute: owner,
                name,
                text,
                span,
            });
            Ok(())
        });
    }
    keys
}

/// Whether serde has this key on the item.
pub(crate) fn has_serde_key(attrs: &[Attribute], name: &str) -> bool {
    foreign_keys(attrs)
        .iter()
        .any(|key| key.attribute == "serde" && key.name == name)
}

/// The text of one of serde's keys, such as `rename_all`.
pub(crate) fn serde_text(attrs: &[Attribute], name: &str) -> Option<String> {
    let keys = foreign_keys(attrs).into_iter();
    keys.filter(|key| key.attribute == "serde" && key.name == name)
        .find_map(|key| key.text)
        .map(|text| text.value)
}

/// The position of an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Struct,
    Enum,
    Field,
    Variant,
}

use Place::{Enum, Field, Struct, Variant};

const ANYWHERE: &[Place] = &[Struct, Enum, Field, Variant];

const SERDE: &[&str] = &["serde"];
const BOTH: &[&str] = &["serde", "schemars"];

/// A key of another crate that conflicts with `#[api]`.
struct Foreign {
    names: &'static [&'static str],
    owners: &'static [&'static str],
    places: &'static [Place],
    /// What to write instead.
    advice: &'static str,
}

const fn foreign(
    names: &'static [&'static str],
    owners: &'static [&'static str],
    places: &'static [Place],
    advice: &'static str,
) -> Foreign {
    Foreign {
        names,
        owners,
        places,
        advice,
    }
}

/// The keys that change the JSON form, or make the schema differ from it.
const FOREIGN: &[Foreign] = &[
    foreign(
        &["rename"],
        BOTH,
        ANYWHERE,
        "write `#[api(json = \"..\")]`, so that paths, columns and conversions know the name too",
    ),
    foreign(
        &["rename_all", "rename_all_fields"],
        BOTH,
        ANYWHERE,
        "names are camelCase already; write `#[api(json = \"..\")]` for a single one",
    ),
    foreign(
        &["alias"],
        BOTH,
        ANYWHERE,
        "the schema knows one name and drops others; let an older version have the old name",
    ),
    foreign(
        &["default"],
        BOTH,
        ANYWHERE,
        "write `#[api(default = ..)]`; the server applies it, serde never does",
    ),
    foreign(
        &["skip_serializing_if"],
        BOTH,
        ANYWHERE,
        "empty options, lists and maps are left out already",
    ),
    foreign(
        &["skip", "skip_serializing", "skip_deserializing"],
        BOTH,
        &[Field, Variant],
        "what is declared here is on the wire both ways; keep other values in a type of your own",
    ),
    foreign(&["flatten"], BOTH, ANYWHERE, "write `#[api(flatten)]`"),
    foreign(
        &["deny_unknown_fields"],
        BOTH,
        ANYWHERE,
        "the server reports unknown fields as the client asks for it",
    ),
    foreign(
        &["with", "serialize_with", "deserialize_with"],
        SERDE,
        &[Field, Variant],
        "the schema does not follow: give a type of your own `Serialize`, `Deserialize` and `JsonSchema`, or say the schema with `#[schemars(with = \"..\")]`",
    ),
    foreign(
        &["from", "try_from", "into", "remote", "transparent"],
        BOTH,
        &[Struct, Enum],
        "write the type as it is on the wire, and convert it in your code",
    ),
    foreign(
        &["getter"],
        SERDE,
        &[Field],
        "write the type as it is on the wire, and convert it in your code",
    ),
    foreign(
        &["tag"],
        BOTH,
        &[Struct],
        "declare the field, for example as an enum of one variant",
    ),
    foreign(
        &["untagged", "other"],
        BOTH,
        &[Variant],
        "write `#[api(unknown)]` on a variant that holds a `String`",
    ),
    foreign(
        &["field_identifier", "variant_identifier"],
        SERDE,
        &[Enum],
        "an enum of strings needs no attribute",
    ),
    foreign(&["crate"], BOTH, ANYWHERE, "`#[api]` gives the crate path"),
];

/// Reports serde and schemars attributes that conflict with ours. With the user's own derives only those are reported
/// that the schema does not follow.
pub(crate) fn check_foreign(attrs: &[Attribute], place: Place, form: Form, d: &mut Diagnostics) {
    let keys = foreign_keys(attrs);
    let says_schema = keys
        .iter()
        .any(|key| key.attribute == "schemars" && matches!(&*key.name, "with" | "schema_with"));
    let ours = match form {
        Form::Attribute => "`#[api]`",
        Form::Derive => "the schema",
    };
    for key in &keys {
        let name = key.name.as_str();
        let found = FOREIGN.iter().find(|foreign| {
            foreign.names.contains(&name)
                && foreign.owners.contains(&key.attribute)
                && foreign.places.contains(&place)
        });
        let Some(found) = found else { continue };
        let is_followed = says_schema && found.names.contains(&"with");
        if is_followed || form == Form::Derive && name != "alias" {
            continue;
        }
        d.error(
            Id::ForeignAttribute,
            key.span,
            format!("`{}({name})` works against {ours}", key.attribute),
        )
        .help(found.advice);
    }
}
