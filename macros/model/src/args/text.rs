//! Parses `key("text", ..)`: a text, and further arguments.

use proc_macro2::{TokenStream, TokenTree};
use syn::Expr;

use super::{Arg, Args, Value, of_tokens, string_of};
use crate::diagnostics::DiagnosticId as Id;
use crate::keys::Target;
use crate::{Diagnostics, SpannedValue};

impl Arg {
    /// `key = "text"` or `key("text", ..)`, of which the rest is parsed with another target.
    pub(crate) fn text_and_list(
        &self,
        target: Target,
        d: &mut Diagnostics,
    ) -> Option<(SpannedValue<String>, Args)> {
        let Value::List(tokens) = &self.value else {
            return Some((self.string(d)?, Args::default()));
        };
        let mut rest = tokens.clone().into_iter();
        let first = rest.next().into_iter().collect::<TokenStream>();
        let text = syn::parse2::<Expr>(first).ok();
        let Some(text) = text.as_ref().and_then(string_of) else {
            self.bad_form(d, "@(\"..\")");
            return None;
        };
        match rest.next() {
            Some(TokenTree::Punct(comma)) if comma.as_char() == ',' => {}
            None => {}
            Some(other) => {
                d.error(Id::Syntax, other.span(), "expected `,`");
                return None;
            }
        }
        Some((text, of_tokens(rest.collect(), target, d)))
    }
}
