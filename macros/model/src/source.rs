//! Values with the span where the user wrote them.

use std::ops::Deref;

use proc_macro2::{Ident, Span, TokenStream};
use quote::ToTokens;
use syn::ext::IdentExt as _;

/// A span from the first to the last token.
///
/// Two spans because stable proc macros cannot join them; with `span-locations` (the generator) both have line and column.
#[derive(Clone, Copy, Debug)]
pub struct SourceSpan {
    /// The first token.
    pub start: Span,
    /// The last token.
    pub end: Span,
}

impl SourceSpan {
    /// The span of these tokens; the macro's call site when there are none.
    pub fn of(tokens: &impl ToTokens) -> Self {
        let mut all = tokens.to_token_stream().into_iter();
        let start = all
            .next()
            .map_or_else(Span::call_site, |token| token.span());
        let end = all.last().map_or(start, |token| token.span());
        Self { start, end }
    }
    /// The span from the start of this one to the end of another.
    pub fn to(self, last: Self) -> Self {
        Self {
            start: self.start,
            end: last.end,
        }
    }
}

impl From<Span> for SourceSpan {
    fn from(span: Span) -> Self {
        Self {
            start: span,
            end: span,
        }
    }
}

/// A value with its span. Comparisons use the value only.
#[derive(Clone, Copy, Debug)]
pub struct SpannedValue<T> {
    /// The value.
    pub value: T,
    /// The span of the value.
    pub span: SourceSpan,
}

impl<T> SpannedValue<T> {
    /// Creates a value with its span.
    pub fn new(value: T, span: impl Into<SourceSpan>) -> Self {
        Self {
            value,
            span: span.into(),
        }
    }
}

impl<T> Deref for SpannedValue<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T: PartialEq> PartialEq for SpannedValue<T> {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl PartialEq<&str> for SpannedValue<String> {
    fn eq(&self, other: &&str) -> bool {
        self.value == *other
    }
}

/// A Rust name: of a type, a field or a variant.
#[derive(Clone, Debug)]
pub struct Name {
    /// The name without `r#`.
    pub text: String,
    /// Whether it is written `r#name`.
    pub raw: bool,
    /// The span of the name.
    pub span: Span,
}

impl Name {
    /// The name as the user wrote it, for quoting.
    pub fn to_ident(&self) -> Ident {
        if self.raw {
            Ident::new_raw(&self.text, self.span)
        } else {
            Ident::new(&self.text, self.span)
        }
    }
    /// The name as Rust source: with `r#` where the user wrote it.
    pub fn to_source(&self) -> String {
        if self.raw {
            format!("r#{}", self.text)
        } else {
            self.text.clone()
        }
    }
}

impl From<&Ident> for Name {
    fn from(ident: &Ident) -> Self {
        let text = ident.unraw().to_string();
        Self {
            raw: *ident != text,
            text,
            span: ident.span(),
        }
    }
}

impl PartialEq for Name {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Name {}

/// Rust code of the user (an expression, a path or a type) that is emitted unchanged: only rustc interprets it.
#[derive(Clone)]
pub struct Code {
    tokens: TokenStream,
}

impl Code {
    /// Code of these tokens.
    pub fn new(tokens: &impl ToTokens) -> Self {
        Self {
            tokens: tokens.to_token_stream(),
        }
    }
    /// The code as text, in the spacing of `TokenStream`'s printer with paths closed up: `v1beta1::Flunder`.
    pub fn text(&self) -> String {
        self.tokens
            .to_string()
            .replace(" :: ", "::")
            .replace(":: ", "::")
            .replace("- ", "-")
    }
    /// Whether it is `{}`, which as a default is the object without fields.
    pub fn is_empty_object(&self) -> bool {
        syn::parse2::<syn::ExprBlock>(self.tokens.clone()).is_ok_and(|block| {
            block.attrs.is_empty() && block.label.is_none() && block.block.stmts.is_empty()
        })
    }
    /// The span of the code.
    pub fn span(&self) -> SourceSpan {
        SourceSpan::of(&self.tokens)
    }
}

impl std::fmt::Debug for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Code({})", self.text())
    }
}

impl ToTokens for Code {
    fn to_tokens(&self, out: &mut TokenStream) {
        self.tokens.to_tokens(out);
    }
}
