//! Reads the inside of `group! { .. }`.

use proc_macro2::TokenStream;

use super::Group;
use crate::Diagnostics;

/// Reads the tokens inside `apiloom::group! { .. }`.
pub fn parse_group(_tokens: TokenStream, _diagnostics: &mut Diagnostics) -> Option<Group> {
    todo!()
}
