//! The key `crate`: the path that expansions use instead of `::apiloom`.

use proc_macro2::TokenStream;
use syn::DeriveInput;

use crate::args::{self, Arg, Args};
use crate::keys::Target;
use crate::{Code, Diagnostics};

const KEY: &str = "crate";

/// The path that the attributes of an item set. It is known also for items with errors, whose expansions need it too.
pub fn crate_path_of_item(item: &DeriveInput) -> Option<Code> {
    let attributes = [("resource", Target::Resource), ("api", Target::Struct)];
    attributes.into_iter().find_map(|(name, target)| {
        find(&args::of_attributes(
            &item.attrs,
            name,
            target,
            &mut ignored(),
        ))
    })
}

/// The path that `group!` sets.
pub fn crate_path_of_group(tokens: TokenStream) -> Option<Code> {
    find(&args::of_tokens(tokens, Target::Group, &mut ignored()))
}

/// Reports a value that is not a path.
pub(crate) fn check(arg: &Arg, d: &mut Diagnostics) {
    arg.path(d);
}

fn find(args: &Args) -> Option<Code> {
    args.find(KEY)?.path(&mut ignored())
}

/// The parser of the item reports the same errors.
fn ignored() -> Diagnostics {
    Diagnostics::default()
}
