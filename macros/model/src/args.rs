//! Parses `key`, `key = value` and `key(..)`, and continues after an error so that all errors of an item are reported.
//! One file, because every form of a value is read by the same few functions, whose errors are alike.

mod text;

use proc_macro2::{Ident, TokenStream, TokenTree};
use syn::ext::IdentExt as _;
use syn::parse::{ParseStream, Parser as _};
use syn::{Attribute, Expr, ExprLit, Lit, Member, Meta, RangeLimits, Token};

use crate::diagnostics::DiagnosticId as Id;
use crate::keys::{self, Target};
use crate::names::is_identifier;
use crate::values::{Bounds, FieldRef, SelectableField};
use crate::{Code, Diagnostics, Name, SourceSpan, SpannedValue, is_attribute};

/// One argument, with its key resolved.
pub(crate) struct Arg {
    /// The canonical key, also if the user wrote an alias.
    pub(crate) key: &'static str,
    /// The key as written.
    pub(crate) written: Name,
    value: Value,
}

enum Value {
    Flag,
    One(Expr),
    List(TokenStream),
}

/// The arguments of an item, a field or a list.
#[derive(Default)]
pub(crate) struct Args {
    read: Vec<Arg>,
    /// Keys that were given, but misspelt or with a value that is not valid Rust.
    unread: Vec<&'static str>,
    /// Whether an attribute has no readable keys at all.
    is_unclear: bool,
}

impl Args {
    /// The arguments that could be read, in source order.
    pub(crate) fn iter(&self) -> std::slice::Iter<'_, Arg> {
        self.read.iter()
    }

    pub(crate) fn find(&self, key: &str) -> Option<&Arg> {
        self.iter().find(|arg| arg.key == key)
    }

    /// Whether the key was given, or intended: a key with a reported error is not reported as missing too.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.is_unclear || self.unread.contains(&key) || self.find(key).is_some()
    }
}

impl<'a> IntoIterator for &'a Args {
    type Item = &'a Arg;
    type IntoIter = std::slice::Iter<'a, Arg>;
    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// An argument before its key is resolved; `None` for a value with a reported error.
type RawArg = (Name, Option<Value>);

/// The arguments of all attributes of this name on an item. Keys are checked for their target, and contradictions are
/// reported.
pub(crate) fn of_attributes(
    attrs: &[Attribute],
    name: &str,
    target: Target,
    d: &mut Diagnostics,
) -> Args {
    let mut raw = Vec::new();
    let mut is_unclear = false;
    for attribute in attrs.iter().filter(|a| is_attribute(a, name)) {
        match &attribute.meta {
            Meta::Path(_) => {}
            Meta::List(list) => raw.extend(raw_args(list.tokens.clone(), d)),
            Meta::NameValue(value) => {
                is_unclear = true;
                d.error(
                    Id::Syntax,
                    value.eq_token.spans[0],
                    format!("expected `#[{name}(..)]`"),
                );
            }
        }
    }
    Args {
        is_unclear,
        ..resolve(raw, target, d)
    }
}

/// The arguments inside a list such as `verbs(..)`.
pub(crate) fn of_tokens(tokens: TokenStream, target: Target, d: &mut Diagnostics) -> Args {
    let raw = raw_args(tokens, d);
    resolve(raw, target, d)
}

fn resolve(raw: Vec<RawArg>, target: Target, d: &mut Diagnostics) -> Args {
    let mut args = Args::default();
    for (written, value) in raw {
        let key = match keys::resolve(target, &written, d) {
            Ok(key) => key,
            Err(meant) => {
                args.unread.extend(meant);
                continue;
            }
        };
        if !key.repeats && args.find(key.name).is_some() {
            d.error(
                Id::DuplicateKey,
                written.span,
                format!("`{}` stands here twice", written.text),
            );
            continue;
        }
        match value {
            Some(value) => args.read.push(Arg {
                key: key.name,
                written,
                value,
            }),
            None => args.unread.push(key.name),
        }
    }
    check_contradictions(target, &args, d);
    args
}

/// Reports pairs of keys that cannot both hold.
fn check_contradictions(target: Target, args: &Args, d: &mut Diagnostics) {
    for (first, second) in keys::contradictions(target) {
        let (key, word) = match first.split_once(" = ") {
            Some((key, word)) => (key, Some(word)),
            None => (first, None),
        };
        let a = args
            .find(key)
            .filter(|arg| word.is_none_or(|word| arg.is_word(word)));
        if let (Some(a), Some(b)) = (a, args.find(second)) {
            d.error(
                Id::Contradiction,
                b.span(),
                format!("`{}` contradicts `{}`", b.written.text, a.written.text),
            );
        }
    }
}

fn raw_args(tokens: TokenStream, d: &mut Diagnostics) -> Vec<RawArg> {
    let parts = separated(tokens, raw_arg, d).into_iter();
    parts
        .filter_map(|part| match part {
            Ok((name, value)) => Some((name, Some(value))),
            Err(tokens) => Some((first_name(tokens)?, None)),
        })
        .collect()
}

/// A part between commas, or the tokens of a part with a reported error.
fn separated<T>(
    tokens: TokenStream,
    part: fn(ParseStream<'_>) -> syn::Result<T>,
    d: &mut Diagnostics,
) -> Vec<Result<T, TokenStream>> {
    let mut parts = Vec::new();
    let parser = |input: ParseStream<'_>| {
        while !input.is_empty() {
            let start = input.fork();
            match part(input) {
                Ok(parsed) => parts.push(Ok(parsed)),
                Err(error) => {
                    let tokens = remaining(&start);
                    report_syntax(&error, input.is_empty(), &tokens, d);
                    parts.push(Err(tokens));
                    skip_to_comma(input)?;
                }
            }
            if input.is_empty() {
                break;
            }
            if !input.peek(Token![,]) {
                d.error(Id::Syntax, input.span(), "expected `,`");
                if begins_argument(input) {
                    continue;
                }
                skip_to_comma(input)?;
            }
            input.parse::<Option<Token![,]>>()?;
        }
        Ok(())
    };
    // All errors are already diagnostics, including tokens left over in a part.
    let _ = parser.parse2(tokens);
    parts
}

/// Whether only the comma before the argument is missing.
fn begins_argument(input: ParseStream<'_>) -> bool {
    let ahead = input.fork();
    Ident::parse_any(&ahead).is_ok_and(|word| {
        ahead.peek(Token![=])
            || ahead.peek(syn::token::Paren)
            || keys::is_key(&word.unraw().to_string())
    })
}

/// The name at the start of a part, also if it is in quotes.
fn first_name(tokens: TokenStream) -> Option<Name> {
    match tokens.into_iter().next()? {
        TokenTree::Ident(word) => Some(Name::from(&word)),
        TokenTree::Literal(literal) => {
            let text: syn::LitStr = syn::parse2(TokenTree::Literal(literal).into()).ok()?;
            let word = text.parse_with(Ident::parse_any).ok()?;
            keys::is_key(&word.to_string()).then(|| Name::from(&word))
        }
        _ => None,
    }
}

fn raw_arg(input: ParseStream<'_>) -> syn::Result<(Name, Value)> {
    let key = Name::from(&Ident::parse_any(input)?);
    if input.peek(Token![=]) {
        input.parse::<Token![=]>()?;
        let is_expression = input.fork().parse::<Expr>().is_ok();
        let value = match key.text.as_str() {
            "list" if !is_expression => topology(input)?,
            "key" if !is_expression => field_name(input)?,
            _ => input.parse()?,
        };
        return Ok((key, Value::One(value)));
    }
    if input.peek(syn::token::Paren) {
        let inner;
        syn::parenthesized!(inner in input);
        return Ok((key, Value::List(inner.parse()?)));
    }
    Ok((key, Value::Flag))
}

/// Reports an invalid expression. The usual cause is a field whose name is a Rust keyword.
fn report_syntax(error: &syn::Error, at_end: bool, tokens: &TokenStream, d: &mut Diagnostics) {
    let words = keywords_in(tokens);
    if words.is_empty() {
        let text = error.to_string();
        // The end of the arguments has no span.
        let last = tokens.clone().into_iter().last().filter(|_| at_end);
        let span = last.map_or_else(|| error.span(), |last| last.span());
        let text = text
            .strip_prefix("unexpected end of input, ")
            .unwrap_or(&text);
        d.error(Id::Syntax, span, text);
    }
    for word in words {
        d.error(
            Id::Keyword,
            word.span(),
            format!("`{word}` is a word of Rust"),
        )
        .help(format!("write `r#{word}`"));
    }
}

/// The tokens up to the next comma.
fn remaining(input: ParseStream<'_>) -> TokenStream {
    let mut tokens = TokenStream::new();
    while !input.is_empty() && !input.peek(Token![,]) {
        // Any token is a token tree.
        tokens.extend(input.parse::<TokenTree>());
    }
    tokens
}

/// Field names that are Rust keywords: after a dot, or alone after `=` or between commas.
fn keywords_in(tokens: &TokenStream) -> Vec<Ident> {
    let trees: Vec<TokenTree> = tokens.clone().into_iter().collect();
    let is_punct = |tree: Option<&TokenTree>, characters: &str| match tree {
        Some(TokenTree::Punct(punct)) => characters.contains(punct.as_char()),
        Some(_) => false,
        None => characters.contains(','),
    };
    let words = |(at, tree): (usize, &TokenTree)| match tree {
        TokenTree::Group(group) => keywords_in(&group.stream()),
        TokenTree::Ident(word) => {
            let before = at.checked_sub(1).and_then(|at| trees.get(at));
            let is_name = is_punct(before, ".")
                || is_punct(before, ",=") && is_punct(trees.get(at + 1), ",.");
            let is_keyword = !is_identifier(&word.to_string());
            let has_raw_form = !["self", "Self", "super", "crate", "_"]
                .iter()
                .any(|other| word == other);
            let found = (is_name && is_keyword && has_raw_form).then(|| word.clone());
            found.into_iter().collect()
        }
        _ => Vec::new(),
    };
    trees.iter().enumerate().flat_map(words).collect()
}

/// Parses `map(type)`: the key of Kubernetes' own conditions is a Rust keyword, and so not an expression unless written
/// `r#type`.
fn topology(input: ParseStream<'_>) -> syn::Result<Expr> {
    let word = Ident::parse_any(input)?;
    let inner;
    syn::parenthesized!(inner in input);
    let keys = inner.parse_terminated(Ident::parse_any, Token![,])?;
    let keys = keys.iter().map(raw);
    syn::parse2(quote::quote!(#word(#(#keys),*)))
}

/// Parses `type` of `key = type`, as [`topology`].
fn field_name(input: ParseStream<'_>) -> syn::Result<Expr> {
    let ahead = input.fork();
    // Anything else is an error of the expression.
    if Ident::parse_any(&ahead).is_err() || !(ahead.is_empty() || ahead.peek(Token![,])) {
        return input.parse();
    }
    let name = raw(&Ident::parse_any(input)?);
    syn::parse2(quote::quote!(#name))
}

/// A word as the name of a field.
fn raw(word: &Ident) -> Ident {
    match word.to_string().as_str() {
        // These have no raw form; parsing the expression reports that.
        "self" | "Self" | "super" | "crate" => word.clone(),
        text => Ident::new_raw(text, word.span()),
    }
}

fn skip_to_comma(input: ParseStream<'_>) -> syn::Result<()> {
    while !input.is_empty() && !input.peek(Token![,]) {
        input.parse::<TokenTree>()?;
    }
    Ok(())
}

/// Unwraps the invisible groups around expressions from `macro_rules!`.
fn peel(expr: &Expr) -> &Expr {
    match expr {
        Expr::Group(group) => peel(&group.expr),
        other => other,
    }
}

fn string_of(expr: &Expr) -> Option<SpannedValue<String>> {
    match peel(expr) {
        Expr::Lit(ExprLit {
            lit: Lit::Str(text),
            ..
        }) => Some(SpannedValue::new(text.value(), text.span())),
        _ => None,
    }
}

fn ident_of(expr: &Expr) -> Option<Name> {
    match peel(expr) {
        Expr::Path(path) if path.qself.is_none() => path.path.get_ident().map(Name::from),
        _ => None,
    }
}

/// Whether a path has no generic arguments.
fn is_plain(path: &syn::Path) -> bool {
    let mut segments = path.segments.iter();
    segments.all(|segment| segment.arguments.is_none())
}

fn is_false(expr: &Expr) -> bool {
    matches!(peel(expr), Expr::Lit(ExprLit { lit: Lit::Bool(value), .. }) if !value.value)
}

/// A word, written bare or as a string: `get` or `"get"`.
fn word_of(expr: &Expr) -> Option<SpannedValue<String>> {
    string_of(expr).or_else(|| ident_of(expr).map(|name| SpannedValue::new(name.text, name.span)))
}

fn chain_of(expr: &Expr) -> Option<Vec<Name>> {
    match peel(expr) {
        Expr::Field(field) => {
            let Member::Named(name) = &field.member else {
                return None;
            };
            let mut chain = chain_of(&field.base)?;
            chain.push(Name::from(name));
            Some(chain)
        }
        other => ident_of(other).map(|name| vec![name]),
    }
}

impl Arg {
    pub(crate) fn span(&self) -> SourceSpan {
        self.written.span.into()
    }

    /// Whether the value is this word.
    fn is_word(&self, word: &str) -> bool {
        match &self.value {
            Value::One(expr) => word_of(expr).is_some_and(|written| written.value == word),
            Value::Flag | Value::List(_) => false,
        }
    }

    fn value_span(&self) -> SourceSpan {
        match &self.value {
            Value::One(expr) => SourceSpan::of(expr),
            Value::List(tokens) if !tokens.is_empty() => SourceSpan::of(tokens),
            _ => self.span(),
        }
    }

    fn bad_form(&self, d: &mut Diagnostics, form: &str) {
        let key = &self.written.text;
        d.error(
            Id::KeyForm,
            self.span(),
            format!("`{key}` is written `{}`", form.replace('@', key)),
        );
    }

    fn bad_value(&self, d: &mut Diagnostics, what: &str) {
        d.error(
            Id::ValueType,
            self.value_span(),
            format!("`{}` takes {what}", self.written.text),
        );
    }

    fn expr(&self, d: &mut Diagnostics, form: &str) -> Option<&Expr> {
        match &self.value {
            Value::One(expr) => Some(expr),
            _ => {
                self.bad_form(d, form);
                None
            }
        }
    }

    /// The elements of `key = x`, `key = [x, y]` or `key(x, y)`.
    fn exprs(&self, d: &mut Diagnostics, form: &str) -> Vec<Expr> {
        match &self.value {
            Value::Flag => {
                self.bad_form(d, form);
                Vec::new()
            }
            Value::One(expr) => match peel(expr) {
                Expr::Array(array) => array.elems.iter().cloned().collect(),
                other => vec![other.clone()],
            },
            Value::List(tokens) => {
                let parts = separated(tokens.clone(), |input| input.parse(), d);
                parts.into_iter().filter_map(Result::ok).collect()
            }
        }
    }

    /// `key`. `= false` turns it off and is reported.
    pub(crate) fn flag(&self, d: &mut Diagnostics) -> bool {
        if !matches!(self.value, Value::Flag) {
            d.error(
                Id::KeyForm,
                self.span(),
                format!("`{}` takes no value", self.written.text),
            );
        }
        !matches!(&self.value, Value::One(expr) if is_false(expr))
    }

    /// `key` or `key = true`.
    pub(crate) fn boolean(&self, d: &mut Diagnostics) -> Option<bool> {
        match &self.value {
            Value::Flag => Some(true),
            Value::One(expr) => match peel(expr) {
                Expr::Lit(ExprLit {
                    lit: Lit::Bool(value),
                    ..
                }) => Some(value.value),
                _ => {
                    self.bad_value(d, "`true` or `false`");
                    None
                }
            },
            Value::List(_) => {
                self.bad_form(d, "@ = true");
                None
            }
        }
    }

    /// `key = "text"`.
    pub(crate) fn string(&self, d: &mut Diagnostics) -> Option<SpannedValue<String>> {
        let text = string_of(self.expr(d, "@ = \"..\"")?);
        if text.is_none() {
            self.bad_value(d, "a string");
        }
        text
    }

    /// `key` or `key = "text"`.
    pub(crate) fn optional_string(&self, d: &mut Diagnostics) -> Option<String> {
        match &self.value {
            Value::Flag => Some(String::new()),
            _ => self.string(d).map(|text| text.value),
        }
    }

    /// `key = "x"`, `key = ["x", "y"]` or `key("x", "y")`.
    pub(crate) fn strings(&self, d: &mut Diagnostics) -> Vec<SpannedValue<String>> {
        let exprs = self.exprs(d, "@ = \"..\"` or `@ = [\"..\", \"..\"]");
        exprs
            .iter()
            .filter_map(|expr| self.or_bad(string_of(expr), expr, "strings", d))
            .collect()
    }

    /// `key = word` (or a string).
    pub(crate) fn word(&self, d: &mut Diagnostics) -> Option<SpannedValue<String>> {
        let word = word_of(self.expr(d, "@ = name")?);
        if word.is_none() {
            self.bad_value(d, "a name");
        }
        word
    }

    /// `key = [word, word]` or `key(word, word)`.
    pub(crate) fn words(&self, d: &mut Diagnostics) -> Vec<SpannedValue<String>> {
        let exprs = self.exprs(d, "@ = [..]");
        exprs
            .iter()
            .filter_map(|expr| self.or_bad(word_of(expr), expr, "names", d))
            .collect()
    }

    /// `key = field` or `key(field, field)`.
    pub(crate) fn names(&self, d: &mut Diagnostics) -> Vec<Name> {
        let exprs = self.exprs(d, "@(field)");
        exprs
            .iter()
            .filter_map(|expr| self.or_bad(ident_of(expr), expr, "field names", d))
            .collect()
    }

    fn or_bad<T>(
        &self,
        value: Option<T>,
        expr: &Expr,
        what: &str,
        d: &mut Diagnostics,
    ) -> Option<T> {
        if value.is_none() {
            d.error(
                Id::ValueType,
                SourceSpan::of(expr),
                format!("`{}` takes {what}", self.written.text),
            );
        }
        value
    }

    /// `key = -1`.
    pub(crate) fn integer(&self, d: &mut Diagnostics) -> Option<i32> {
        let number = match self.expr(d, "@ = 1").map(peel)? {
            Expr::Lit(ExprLit {
                lit: Lit::Int(number),
                ..
            }) => number.base10_parse().ok(),
            _ => None,
        };
        if number.is_none() {
            self.bad_value(d, "a whole number");
        }
        number
    }

    /// `key = 1` or `key = [1, 2]`.
    pub(crate) fn integers(&self, d: &mut Diagnostics) -> Vec<SpannedValue<i64>> {
        let integer_of = |expr: &Expr| match peel(expr) {
            Expr::Lit(ExprLit {
                lit: Lit::Int(number),
                ..
            }) => number.base10_parse().ok(),
            _ => None,
        };
        let exprs = self.exprs(d, "@ = 1");
        let read = |expr: &Expr, d: &mut Diagnostics| {
            let number = self.or_bad(integer_of(expr), expr, "a whole number", d)?;
            Some(SpannedValue::new(number, SourceSpan::of(expr)))
        };
        exprs.iter().filter_map(|expr| read(expr, d)).collect()
    }

    /// Whether it is written `key(..)`.
    pub(crate) fn is_list(&self) -> bool {
        matches!(self.value, Value::List(_))
    }

    /// `key = EXPRESSION`, which only rustc interprets.
    pub(crate) fn code(&self, d: &mut Diagnostics) -> Option<Code> {
        self.expr(d, "@ = ..").map(|expr| Code::new(peel(expr)))
    }

    /// `key = a::path`, which is the path of a crate or a module.
    pub(crate) fn path(&self, d: &mut Diagnostics) -> Option<Code> {
        self.path_of("a crate or a module", d)
    }

    /// `key = a::path`, which is the path of something.
    pub(crate) fn path_of(&self, what: &str, d: &mut Diagnostics) -> Option<Code> {
        match self.expr(d, "@ = path").map(peel)? {
            Expr::Path(path) if path.qself.is_none() && is_plain(&path.path) => {
                Some(Code::new(path))
            }
            _ => {
                self.bad_value(d, &format!("the path of {what}"));
                None
            }
        }
    }

    /// `key = (A, B)`.
    pub(crate) fn code_pair(&self, d: &mut Diagnostics) -> Option<(Code, Code)> {
        match self.expr(d, "@ = (to, from)").map(peel)? {
            Expr::Tuple(tuple) if tuple.elems.len() == 2 => {
                Some((Code::new(&tuple.elems[0]), Code::new(&tuple.elems[1])))
            }
            _ => {
                self.bad_value(d, "two functions: `(to, from)`");
                None
            }
        }
    }

    /// `key(field = EXPRESSION, ..)`.
    pub(crate) fn assignments(&self, d: &mut Diagnostics) -> Vec<(Name, Code)> {
        let Value::List(tokens) = &self.value else {
            self.bad_form(d, "@(field = ..)");
            return Vec::new();
        };
        let mut out = Vec::new();
        for (name, value) in raw_args(tokens.clone(), d) {
            match value {
                None => {}
                Some(Value::One(expr)) => out.push((name, Code::new(&expr))),
                Some(_) => {
                    d.error(
                        Id::KeyForm,
                        name.span,
                        format!("expected `{} = ..`", name.text),
                    );
                }
            }
        }
        out
    }

    /// `key(..)`, to be parsed with another target.
    pub(crate) fn list(&self, target: Target, d: &mut Diagnostics) -> Option<Args> {
        match &self.value {
            Value::List(tokens) => Some(of_tokens(tokens.clone(), target, d)),
            _ => {
                self.bad_form(d, "@(..)");
                None
            }
        }
    }

    /// The values inside `key(..)`.
    pub(crate) fn values(&self, d: &mut Diagnostics) -> Vec<Expr> {
        self.exprs(d, "@(..)")
    }

    /// One reference to a value inside the object: `a.b` or `".a.b"`.
    pub(crate) fn field_ref(&self, d: &mut Diagnostics) -> Option<FieldRef> {
        field_ref_of(self.expr(d, "@ = spec.field")?, d)
    }

    /// Fields of selectors: references as these, or `name = [spec.field, spec.other]`.
    pub(crate) fn selectable_fields(&self, d: &mut Diagnostics) -> Vec<SelectableField> {
        self.exprs(d, "@(spec.field)")
            .iter()
            .filter_map(|expr| selectable_field_of(expr, d))
            .collect()
    }

    /// `key = 1..=9` or `key(min = 1, max = 9)`.
    pub(crate) fn bounds(&self, d: &mut Diagnostics) -> Bounds {
        match &self.value {
            Value::Flag => {
                self.bad_form(d, "@ = 1..=9` or `@(min = 1, max = 9)");
                Bounds::default()
            }
            Value::One(expr) => self.range_of(expr, d),
            Value::List(tokens) => {
                let mut bounds = Bounds::default();
                for arg in &of_tokens(tokens.clone(), Target::Bounds, d) {
                    let side = if arg.key == "min" {
                        &mut bounds.min
                    } else {
                        &mut bounds.max
                    };
                    *side = arg.code(d);
                }
                bounds
            }
        }
    }

    fn range_of(&self, expr: &Expr, d: &mut Diagnostics) -> Bounds {
        match peel(expr) {
            Expr::Range(range)
                if range.end.is_none() || matches!(range.limits, RangeLimits::Closed(_)) =>
            {
                Bounds {
                    min: range.start.as_ref().map(Code::new),
                    max: range.end.as_ref().map(Code::new),
                }
            }
            Expr::Range(_) => {
                d.error(
                    Id::ValueType,
                    SourceSpan::of(expr),
                    "both ends of a range belong to it",
                )
                .help("write `..=`");
                Bounds::default()
            }
            _ => {
                self.bad_value(d, "a range such as `1..=9`");
                Bounds::default()
            }
        }
    }

    /// The word of `key = word` or `key = word(a, b)`, and the names in parentheses.
    pub(crate) fn call(&self, d: &mut Diagnostics) -> Option<(SpannedValue<String>, Vec<Name>)> {
        let expr = peel(self.expr(d, "@ = name")?);
        if let Expr::Call(call) = expr {
            let Some(word) = ident_of(&call.func) else {
                self.bad_value(d, "a name");
                return None;
            };
            let names = call
                .args
                .iter()
                .filter_map(|e| self.or_bad(ident_of(e), e, "field names", d))
                .collect();
            return Some((SpannedValue::new(word.text, word.span), names));
        }
        self.word(d).map(|word| (word, Vec::new()))
    }
}

/// Parses a reference to a field, or a name with the references that it stands for.
fn selectable_field_of(expr: &Expr, d: &mut Diagnostics) -> Option<SelectableField> {
    let Expr::Assign(named) = peel(expr) else {
        let paths = vec![field_ref_of(expr, d)?];
        return Some(SelectableField { name: None, paths });
    };
    let Some(name) = string_or_path(&named.left) else {
        d.error(Id::BadPath, SourceSpan::of(&*named.left), "expected a name")
            .help(
                "write `name = [spec.field, spec.other]`, with a string for a name that has dots",
            );
        return None;
    };
    let paths = match peel(&named.right) {
        Expr::Array(array) => array.elems.iter().collect(),
        one => vec![one],
    };
    let count = paths.len();
    let paths: Vec<FieldRef> = paths
        .into_iter()
        .filter_map(|path| field_ref_of(path, d))
        .collect();
    if count == 0 {
        d.error(
            Id::BadPath,
            SourceSpan::of(&*named.right),
            format!("the selectable field `{}` has no path", name.value),
        )
        .help("write `name = [spec.field, spec.other]`");
    }
    let name = Some(name);
    (!paths.is_empty()).then_some(SelectableField { name, paths })
}

/// Parses a chain of field names, or a string with JSON names.
fn field_ref_of(expr: &Expr, d: &mut Diagnostics) -> Option<FieldRef> {
    if let Some(text) = string_of(expr) {
        return json_ref(text, d);
    }
    let chain = chain_of(expr);
    if chain.is_none() {
        d.error(
            Id::BadPath,
            SourceSpan::of(expr),
            "expected a chain of field names",
        )
        .help("write `spec.field`, or `json_path = \".spec.field\"` for a type of another crate");
    }
    chain.map(FieldRef::Typed)
}

/// A path of JSON names.
pub(crate) fn json_ref(text: SpannedValue<String>, d: &mut Diagnostics) -> Option<FieldRef> {
    let path = text.value.strip_prefix('.').unwrap_or(&text.value);
    let plain =
        |name: &str| !name.is_empty() && !name.contains(['[', ']', '*', '?', '@', '$', ' ']);
    if path.split('.').all(plain) {
        return Some(FieldRef::Json(text));
    }
    d.error(
        Id::BadPath,
        text.span,
        format!("`{}` is not a chain of field names", text.value),
    )
    .help("write `.spec.field`; indexes, filters and wildcards are for columns alone");
    None
}

/// The string in an expression; used for lists with values of several types.
pub(crate) fn string_or_path(expr: &Expr) -> Option<SpannedValue<String>> {
    string_of(expr).or_else(|| ident_of(expr).map(|name| SpannedValue::new(name.text, name.span)))
}
