//! The table of all errors with their ids, and the collector that reports all errors of an item together.

use std::fmt;

use proc_macro2::TokenStream;
use quote::quote_spanned;

use crate::SourceSpan;

macro_rules! diagnostics {
    ($($(#[$doc:meta])* $variant:ident = $code:literal $name:literal,)+) => {
        /// The id of an error; each has a UI test of its name in `tests/ui`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum DiagnosticId { $($(#[$doc])* $variant,)+ }

        impl DiagnosticId {
            /// The table of all errors.
            pub const ALL: &'static [DiagnosticId] = &[$(DiagnosticId::$variant,)+];
            /// The number: `E002`.
            pub fn code(self) -> &'static str {
                match self { $(Self::$variant => $code,)+ }
            }
            /// The name: `unknown-key`.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }
        }
    };
}

diagnostics! {
    /// The arguments are not a list of keys.
    Syntax = "E001" "syntax",
    /// No attribute knows the key.
    UnknownKey = "E002" "unknown-key",
    /// The key belongs elsewhere.
    MisplacedKey = "E003" "misplaced-key",
    /// The key belongs to a later version of apiloom.
    NotSupportedYet = "E004" "not-supported-yet",
    /// The key stands there twice.
    DuplicateKey = "E005" "duplicate-key",
    /// The key takes another form: a flag, `= value` or `(..)`.
    KeyForm = "E006" "key-form",
    /// The value has another type.
    ValueType = "E007" "value-type",
    /// The word is not one of those known here.
    UnknownValue = "E008" "unknown-value",
    /// A mandatory key is missing.
    MissingKey = "E009" "missing-key",
    /// Neither `namespaced` nor `cluster`.
    MissingScope = "E010" "missing-scope",
    /// Two keys say opposite things.
    Contradiction = "E011" "contradiction",
    /// The root has no `metadata`.
    MissingMetadata = "E012" "missing-metadata",
    /// The type has generic parameters.
    Generics = "E013" "generics",
    /// Not a struct with named fields.
    NotNamedFields = "E014" "not-named-fields",
    /// The root is not a struct.
    RootNotStruct = "E015" "root-not-struct",
    /// A name breaks the grammar of Kubernetes' names.
    BadName = "E016" "bad-name",
    /// Not a chain of field names.
    BadPath = "E017" "bad-path",
    /// Not a release such as `1.2`.
    BadRelease = "E018" "bad-release",
    /// Removed before deprecated, or deprecated before introduced.
    LifecycleOrder = "E019" "lifecycle-order",
    /// No value satisfies the bounds.
    EmptyRange = "E020" "empty-range",
    /// The same name twice.
    DuplicateName = "E021" "duplicate-name",
    /// The root holds `apiVersion` or `kind`.
    ReservedField = "E022" "reserved-field",
    /// No such field beside this one.
    UnknownField = "E023" "unknown-field",
    /// Members without a union or a union without members.
    UnionShape = "E024" "union-shape",
    /// An `unknown` variant that cannot hold a string.
    UnknownVariant = "E025" "unknown-variant",
    /// A variant with several unnamed values.
    VariantShape = "E026" "variant-shape",
    /// A serde or schemars attribute that works against ours.
    ForeignAttribute = "E027" "foreign-attribute",
    /// A computed default on a field that is never absent.
    DefaultTarget = "E028" "default-target",
    /// The enum has no variant.
    EmptyEnum = "E029" "empty-enum",
    /// Null for a field that has no value for it.
    NullableTarget = "E030" "nullable-target",
    /// A subresource such as `status` without a field that a new object can have.
    StatusField = "E031" "status-field",
    /// An `Option` inside of a list, a map, a box or another option.
    NestedOption = "E040" "nested-option",
    /// A kind that no request could be made of.
    NoVerbs = "E041" "no-verbs",
    /// A rule of lists or texts on bytes.
    RuleOfBytes = "E042" "rule-of-bytes",
    /// The `unknown` variant is not the last one.
    UnknownNotLast = "E060" "unknown-not-last",
    /// A variant with a number.
    VariantNumber = "E061" "variant-number",
    /// A word of Rust where the name of a field is expected.
    Keyword = "E062" "keyword",
    /// A number that no Protobuf field can have, or not this one.
    ProtoNumber = "E063" "proto-number",
    /// A part of a Protobuf message without a number.
    ProtoMissing = "E064" "proto-missing",
    /// A number on what is no Protobuf field.
    ProtoShape = "E065" "proto-shape",
}

impl fmt::Display for DiagnosticId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

/// One error at one place.
#[derive(Clone, Debug)]
pub struct Diagnostic {
    /// The id of the error.
    pub id: DiagnosticId,
    /// The message; lower case, no full stop.
    pub message: String,
    /// Advice, if there is any.
    pub help: Option<String>,
    /// The span of the user's token.
    pub span: SourceSpan,
}

impl Diagnostic {
    /// Converts the error to a `compile_error!` at the user's token.
    pub fn to_compile_error(&self) -> TokenStream {
        let help = self
            .help
            .as_ref()
            .map(|help| format!("\n  help: {help}"))
            .unwrap_or_default();
        let text = format!("{} [{}]{help}", self.message, self.id);
        let (start, end) = (self.span.start, self.span.end);
        let body = quote_spanned!(end=> { #text });
        quote_spanned!(start=> ::core::compile_error! #body)
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} [{}]", self.message, self.id)
    }
}

/// Collects every error of an item.
#[derive(Clone, Debug, Default)]
pub struct Diagnostics {
    errors: Vec<Diagnostic>,
}

impl Diagnostics {
    /// Reports an error; add `.help(..)` when there is advice.
    pub fn error(
        &mut self,
        id: DiagnosticId,
        span: impl Into<SourceSpan>,
        message: impl Into<String>,
    ) -> &mut Diagnostic {
        self.errors.push(Diagnostic {
            id,
            message: message.into(),
            help: None,
            span: span.into(),
        });
        self.errors.last_mut().expect("it was pushed just above")
    }
    /// Whether there are no errors.
    pub fn is_empty(&self) -> bool {
        self.errors.is_empty()
    }
    /// The errors, in the order of discovery.
    pub fn errors(&self) -> &[Diagnostic] {
        &self.errors
    }
    /// All errors as `compile_error!` items.
    pub fn to_compile_errors(&self) -> TokenStream {
        self.errors
            .iter()
            .map(Diagnostic::to_compile_error)
            .collect()
    }
}

impl Diagnostic {
    /// Adds advice.
    pub fn help(&mut self, help: impl Into<String>) {
        self.help = Some(help.into());
    }
    /// Adds "did you mean" if a candidate is similar.
    pub fn suggest<'a>(&mut self, written: &str, candidates: impl IntoIterator<Item = &'a str>) {
        if let Some(near) = nearest(written, candidates) {
            self.help = Some(format!("did you mean `{near}`?"));
        }
    }
}

/// The candidate most similar to a misspelt word, if at most a third of the letters differ.
pub fn nearest<'a>(
    written: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let folded = written.to_ascii_lowercase().replace('-', "_");
    let limit = (folded.len() / 3).max(1);
    let scored = candidates.into_iter().map(|c| {
        (
            distance(&folded, &c.to_ascii_lowercase().replace('-', "_")),
            c,
        )
    });
    scored
        .filter(|(d, _)| *d <= limit)
        .min_by_key(|(d, _)| *d)
        .map(|(_, c)| c)
}

/// Edit distance where swapping two neighbours counts as one edit (optimal string alignment).
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows: Vec<Vec<usize>> = vec![(0..=b.len()).collect()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let change = usize::from(a[i - 1] != b[j - 1]);
            let mut best = (rows[i - 1][j] + 1)
                .min(row[j - 1] + 1)
                .min(rows[i - 1][j - 1] + change);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn near_spellings_are_found_and_far_ones_are_not() {
        let known = ["shortname", "storage", "get", "list", "delete_collection"];
        for (written, expected) in [
            ("shrotname", Some("shortname")),
            ("Storage", Some("storage")),
            ("lst", Some("list")),
            ("gte", Some("get")),
            ("delete-collection", Some("delete_collection")),
            ("deleteCollection", Some("delete_collection")),
            ("bananas", None),
            ("", None),
        ] {
            assert_eq!(nearest(written, known), expected, "{written}");
        }
    }
}
