//! Reads `#[api(..)]`.

use syn::DeriveInput;

use super::ApiType;
use crate::Diagnostics;

/// Reads a struct or an enum with `#[api(..)]` attributes (also spelled `#[apiloom::api(..)]`).
///
/// `None` when the item is too broken to go on; `diagnostics` then says why. There may be diagnostics beside a type too.
pub fn parse_api(_item: &DeriveInput, _diagnostics: &mut Diagnostics) -> Option<ApiType> {
    todo!()
}
