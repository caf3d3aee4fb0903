//! Evaluates `cfg` as far as possible without a build: only `test` is known (it is off).

use quote::ToTokens as _;
use syn::punctuated::Punctuated;
use syn::{Attribute, Meta, Token};

/// Whether an item is part of the build.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Presence {
    /// Part of every build.
    Present,
    /// Only part of tests.
    Absent,
    /// Depends on features, the platform or flags.
    Unknown,
}

/// The presence of an item with these attributes.
pub(crate) fn presence(attrs: &[Attribute]) -> Presence {
    let conditions = attrs.iter().filter(|attr| attr.path().is_ident("cfg"));
    all(conditions.map(|attr| {
        attr.parse_args::<Meta>()
            .map_or(Presence::Unknown, |meta| evaluate(&meta))
    }))
}

/// The `cfg` attributes that cannot be evaluated here, as they are written: those of what is around an item, then its own.
pub(crate) fn all_conditions(around: &[String], attrs: &[Attribute]) -> Vec<String> {
    let own = attrs.iter().filter(|attr| {
        attr.path().is_ident("cfg") && presence(std::slice::from_ref(attr)) == Presence::Unknown
    });
    let own = own.map(|attr| attr.to_token_stream().to_string());
    let mut all = around.to_vec();
    for condition in own {
        if !all.contains(&condition) {
            all.push(condition);
        }
    }
    all
}

fn evaluate(condition: &Meta) -> Presence {
    match condition {
        Meta::Path(path) if path.is_ident("test") => Presence::Absent,
        Meta::Path(path) if path.is_ident("true") => Presence::Present,
        Meta::Path(path) if path.is_ident("false") => Presence::Absent,
        Meta::List(list) => {
            let Ok(parts) = list.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated)
            else {
                return Presence::Unknown;
            };
            let parts = parts.iter().map(evaluate);
            if list.path.is_ident("all") {
                all(parts)
            } else if list.path.is_ident("any") {
                not(all(parts.map(not)))
            } else if list.path.is_ident("not") {
                not(all(parts))
            } else {
                Presence::Unknown
            }
        }
        _ => Presence::Unknown,
    }
}

fn all(parts: impl Iterator<Item = Presence>) -> Presence {
    parts.fold(Presence::Present, |left, right| match (left, right) {
        (Presence::Absent, _) | (_, Presence::Absent) => Presence::Absent,
        (Presence::Present, Presence::Present) => Presence::Present,
        _ => Presence::Unknown,
    })
}

fn not(presence: Presence) -> Presence {
    match presence {
        Presence::Present => Presence::Absent,
        Presence::Absent => Presence::Present,
        Presence::Unknown => Presence::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(attributes: &str, expected: Presence) {
        let item: syn::ItemStruct =
            syn::parse_str(&format!("{attributes} struct S;")).expect("the test's own Rust");
        assert_eq!(presence(&item.attrs), expected, "{attributes}");
    }

    #[test]
    fn only_test_is_known() {
        check("", Presence::Present);
        check("#[cfg(test)]", Presence::Absent);
        check("#[cfg(not(test))]", Presence::Present);
        check("#[cfg(all(test, unix))]", Presence::Absent);
        check("#[cfg(any(test, unix))]", Presence::Unknown);
        check("#[cfg(any(test, not(test)))]", Presence::Present);
        check("#[cfg(feature = \"x\")]", Presence::Unknown);
        check("#[cfg(unix)] #[cfg(test)]", Presence::Absent);
    }
}
