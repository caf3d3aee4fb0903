//! Reads `#[resource(..)]`.

use syn::DeriveInput;

use super::Kind;
use crate::Diagnostics;

/// Reads a root struct with `#[resource(..)]` attributes (also spelled `#[apiloom::resource(..)]`).
///
/// `None` when the item is too broken to go on; `diagnostics` then says why. There may be diagnostics beside a kind too.
pub fn parse_kind(_item: &DeriveInput, _diagnostics: &mut Diagnostics) -> Option<Kind> {
    todo!()
}
