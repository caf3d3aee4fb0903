//! Reads the inside of `group! { .. }`.

use proc_macro2::{Span, TokenStream};

use super::Group;
use crate::args;
use crate::crate_path;
use crate::diagnostics::DiagnosticId as Id;
use crate::keys::Target;
use crate::kind::{check_group, check_label, read_release};
use crate::{Diagnostics, SourceSpan, SpannedValue};

/// Reads the tokens inside `apiloom::group! { .. }`.
///
/// `None` if the name or the versions are missing; `diagnostics` then has the reason.
pub fn parse_group(tokens: TokenStream, diagnostics: &mut Diagnostics) -> Option<Group> {
    let d = diagnostics;
    let span = if tokens.is_empty() {
        Span::call_site().into()
    } else {
        SourceSpan::of(&tokens)
    };
    let (mut name, mut versions, mut release) = (None, None, None);
    let mut versions_are_known = true;
    let args = args::of_tokens(tokens, Target::Group, d);
    for arg in &args {
        match arg.key {
            "crate" => crate_path::check(arg, d),
            "name" => name = arg.string(d).inspect(|name| check_group(name, d)),
            "versions" => {
                let before = d.errors().len();
                versions = Some(read_versions(arg, d));
                versions_are_known = d.errors().len() == before;
            }
            "release" => release = read_release(arg, d),
            _ => {}
        }
    }
    for (key, example) in [
        ("name", "name = \"wardle.example.com\""),
        ("versions", "versions = [v1beta1, v1alpha1]"),
    ] {
        if !args.has(key) {
            d.error(Id::MissingKey, span, format!("`{key}` is missing"))
                .help(format!("add `{example}`"));
        }
    }
    Some(Group {
        name: name?,
        versions: versions?,
        versions_are_known,
        release_is_known: release.is_some() || !args.has("release"),
        release,
    })
}

fn read_versions(arg: &args::Arg, d: &mut Diagnostics) -> Vec<SpannedValue<String>> {
    let before = d.errors().len();
    let mut versions: Vec<SpannedValue<String>> = Vec::new();
    for version in arg.words(d) {
        check_label("version", &version, d);
        if versions.contains(&version) {
            d.error(
                Id::DuplicateName,
                version.span,
                format!("the version `{}` stands here twice", version.value),
            );
        }
        versions.push(version);
    }
    if versions.is_empty() && d.errors().len() == before {
        d.error(
            Id::MissingKey,
            arg.span(),
            "a group has at least one version",
        )
        .help("write `versions = [v1]`");
    }
    versions
}
