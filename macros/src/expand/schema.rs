//! The schema keywords of `#[api(..)]`, and the checks that a rule fits the type of its field.

use std::collections::{BTreeMap, BTreeSet};

use apiloom_model::api::{
    Bounds, Field, ListTopology, MapTopology, Rules, Shape, Union, holds_bytes,
};
use apiloom_model::{ApiEnum, ApiNewtype, ApiStruct, Code, Name, SourceSpan};
use proc_macro2::TokenStream;
use quote::{ToTokens, format_ident, quote, quote_spanned};

/// Keywords of a struct, a table: field order, union, rules of the whole value.
pub(crate) fn of_struct(model: &ApiStruct) -> TokenStream {
    let this = model.name.to_ident();
    let order = model
        .fields
        .iter()
        .filter(|field| !field.flatten)
        .map(|field| &field.json_name);
    let union = model
        .union
        .as_ref()
        .map(|union| union_keyword(union, &model.fields));
    let present = model.fields.iter().filter(|field| field.rules.present);
    let present: Vec<&String> = present.map(|field| &field.json_name).collect();
    let present = (!present.is_empty()).then(|| keyword("Required", &quote!(&[#(#present),*])));
    let rules = keywords(&quote!(#this), &model.rules, &model.fields, false);
    let order = order_keyword(order);
    quote!(&[#order #present #union #rules])
}

/// The names in declared order, which a JSON object does not keep.
fn order_keyword<'a>(names: impl Iterator<Item = &'a String>) -> TokenStream {
    named("Texts", "x-apiloom-order", &quote!(&[#(#names),*]))
}

/// An element of a table of keywords.
fn keyword(variant: &str, content: &TokenStream) -> TokenStream {
    let variant = format_ident!("{variant}");
    quote!(::apiloom::codegen::Keyword::#variant(#content),)
}

/// An element of a table of keywords with the name of a JSON keyword.
fn named(variant: &str, name: &str, value: &TokenStream) -> TokenStream {
    keyword(variant, &quote!(#name, #value))
}

/// An element of a table of keywords whose value is an expression of the user.
fn computed(name: &str, value: &TokenStream) -> TokenStream {
    named(
        "Value",
        name,
        &quote!(|| ::apiloom::codegen::keyword_value(#value)),
    )
}

/// Keywords of a struct of one value.
pub(crate) fn of_newtype(model: &ApiNewtype) -> TokenStream {
    let rules = keywords(
        &model.inner.to_token_stream(),
        &model.rules,
        &[],
        holds_bytes(&model.inner),
    );
    quote!(&[#rules])
}

/// Keywords of an enum: the known values of an open one.
pub(crate) fn of_enum(model: &ApiEnum) -> TokenStream {
    let this = model.name.to_ident();
    let known = model
        .variants
        .iter()
        .filter(|variant| !variant.unknown)
        .map(|variant| &variant.json_name);
    let order = model.variants.iter().map(|variant| &variant.json_name);
    // An open enum already lists its known values in order.
    let order = model.unknown().is_none().then(|| order_keyword(order));
    let open = model
        .unknown()
        .map(|_| keyword("OpenEnum", &quote!(&[#(#known),*])));
    let rules = keywords(&quote!(#this), &model.rules, &[], false);
    quote!(&[#order #open #rules])
}

/// Keywords of a field, `None` when it has no rules.
pub(crate) fn of_field(field: &Field, siblings: &[Field]) -> Option<TokenStream> {
    let ty = inner_type(field);
    let in_base64 = holds_bytes(&field.ty);
    let rules = &field.rules;
    let keywords = keywords(&ty, rules, siblings, in_base64);
    let default = field.default.as_ref().map(|default| {
        if rules.nullable && default.text() == "None" {
            keyword("Flag", &quote!("x-apiloom-default-null"))
        } else if default.is_empty_object() {
            let empty = quote!(::apiloom::codegen::serde_json::json!({}));
            computed("x-apiloom-default", &empty)
        } else {
            computed("x-apiloom-default", &typed(&ty, default, in_base64))
        }
    });
    let optional = (field.default.is_some() && !rules.present)
        .then(|| keyword("Flag", &quote!("x-apiloom-optional")));
    let omits_empty = omits_empty(field).then(|| keyword("Flag", &quote!("x-apiloom-omit-empty")));
    let sensitive = field.sensitive.is_some();
    let sensitive = sensitive.then(|| keyword("Flag", &quote!("x-apiloom-sensitive")));
    let table = quote!(#default #optional #omits_empty #sensitive #keywords);
    (!table.is_empty()).then(|| quote!(&[#table]))
}

/// Whether an empty list or map is omitted, as serialization of the type does, or an empty value as Go omits it. If elements are
/// required, the bound refuses an empty one.
fn omits_empty(field: &Field) -> bool {
    let rules = &field.rules;
    let is_omitted = match field.shape {
        Shape::List | Shape::Map => true,
        Shape::Option(_) => field.proto.as_ref().is_some_and(|number| number.omit_empty),
        _ => false,
    };
    is_omitted
        && !field.flatten
        && !rules.required
        && !rules.present
        && !rules.nullable
        && field.default.is_none()
        && rules.items.min.is_none()
        && rules.props.min.is_none()
}

/// The type of the value inside an option.
fn inner_type(field: &Field) -> TokenStream {
    match &field.shape {
        Shape::Option(inner) => inner.to_token_stream(),
        _ => field.ty.to_token_stream(),
    }
}

/// An expression of a given type, as JSON; a literal string or byte string is converted to a type that can be made from
/// it.
fn typed(ty: &TokenStream, value: &Code, in_base64: bool) -> TokenStream {
    let literal = syn::parse2::<syn::Lit>(value.to_token_stream());
    let value = match literal {
        Ok(literal @ (syn::Lit::Str(_) | syn::Lit::ByteStr(_))) => {
            quote!({ let value: #ty = ::core::convert::From::from(#literal); value })
        }
        _ => quote!({ let value: #ty = #value; value }),
    };
    if in_base64 {
        quote!(::apiloom::codegen::Base64(#value))
    } else {
        value
    }
}

fn union_keyword(union: &Union, fields: &[Field]) -> TokenStream {
    let json_name = |name: &Name| json_name_of(name, fields);
    let tag = match &union.tag {
        Some(tag) => json_name(tag).to_token_stream(),
        None => quote!(null),
    };
    let members = fields.iter().filter_map(|field| {
        let (members, json) = (
            field.members.iter().map(|member| &member.value),
            &field.json_name,
        );
        (!field.members.is_empty()).then(|| quote!(#json: [#(#members),*]))
    });
    let allow_none = union.allow_none;
    computed(
        "x-apiloom-union",
        &quote! {
            ::apiloom::codegen::serde_json::json!({
                "discriminator": #tag, "members": { #(#members),* }, "allowNone": #allow_none
            })
        },
    )
}

fn json_name_of(name: &Name, fields: &[Field]) -> String {
    let field = fields.iter().find(|field| field.name == *name);
    field.map_or_else(
        || apiloom_model::names::json_name(&name.text),
        |field| field.json_name.clone(),
    )
}

/// The elements of a table of keywords for these rules. A flat list.
fn keywords(ty: &TokenStream, rules: &Rules, siblings: &[Field], in_base64: bool) -> TokenStream {
    let mut out = TokenStream::new();
    for (keyword, bound) in [
        ("minimum", &rules.min),
        ("maximum", &rules.max),
        ("exclusiveMinimum", &rules.gt),
        ("exclusiveMaximum", &rules.lt),
        ("multipleOf", &rules.multiple_of),
    ] {
        let Some(bound) = bound else { continue };
        // Literals are data; `check_rules` makes rustc check their type.
        out.extend(match integer(bound) {
            Some(number) => named("Integer", keyword, &quote!(#number)),
            None => computed(keyword, &typed_bound(ty, bound)),
        });
    }
    for (least, most, Bounds { min, max }) in [
        ("minLength", "maxLength", &rules.len),
        ("x-apiloom-min-bytes", "x-apiloom-max-bytes", &rules.bytes),
        ("minItems", "maxItems", &rules.items),
        ("minProperties", "maxProperties", &rules.props),
    ] {
        for (keyword, bound) in [(least, min), (most, max)] {
            let Some(bound) = bound else { continue };
            out.extend(match integer(bound) {
                Some(number) => named("Integer", keyword, &quote!(#number)),
                None => computed(keyword, &typed_count(bound)),
            });
        }
    }
    for (keyword, said) in [
        ("x-apiloom-required", rules.required),
        ("x-apiloom-forbidden", rules.forbidden),
        ("x-apiloom-nullable", rules.nullable),
        ("x-apiloom-unique", rules.unique),
        ("x-apiloom-duplicates", rules.duplicates),
        (
            "x-kubernetes-preserve-unknown-fields",
            rules.preserve_unknown,
        ),
        ("x-kubernetes-embedded-resource", rules.embedded_resource),
        ("x-kubernetes-int-or-string", rules.int_or_string),
    ] {
        if said {
            out.extend(self::keyword("Flag", &quote!(#keyword)));
        }
    }
    for (keyword, text) in [
        ("pattern", &rules.pattern),
        ("format", &rules.format),
        ("x-apiloom-schema", &rules.schema),
    ] {
        if let Some(text) = text {
            out.extend(named("Text", keyword, &text.value.to_token_stream()));
        }
    }
    for (keyword, names) in [
        ("x-apiloom-requires", &rules.requires),
        ("x-apiloom-conflicts", &rules.conflicts),
    ] {
        if !names.is_empty() {
            let names = names.iter().map(|name| json_name_of(name, siblings));
            out.extend(named("Texts", keyword, &quote!(&[#(#names),*])));
        }
    }
    if let Some(neq) = &rules.neq {
        out.extend(computed("x-apiloom-not-equal", &typed(ty, neq, in_base64)));
    }
    if let Some(example) = &rules.example {
        out.extend(computed("example", &typed(ty, example, in_base64)));
    }
    if let Some(title) = &rules.title {
        out.extend(named("Text", "title", &title.to_token_stream()));
    }
    if !rules.update.is_empty() {
        let transitions = rules.update.iter().map(|transition| transition.as_str());
        out.extend(named(
            "Texts",
            "x-apiloom-update",
            &quote!(&[#(#transitions),*]),
        ));
    }
    out.extend(validations(rules, siblings));
    out.extend(topology(ty, rules));
    if let Some(note) = &rules.deprecated {
        out.extend(keyword("Deprecated", &note.to_token_stream()));
    }
    out.extend(nested(ty, rules, in_base64));
    out
}

/// The rules in CEL.
fn validations(rules: &Rules, fields: &[Field]) -> Option<TokenStream> {
    if rules.cel.is_empty() {
        return None;
    }
    let entries = rules.cel.iter().map(|rule| {
        let entry = |name: &str, text: Option<&str>| text.map(|text| quote!(#name: #text,));
        let text = &rule.rule.value;
        let message = entry("message", rule.message.as_deref());
        let expression = entry("messageExpression", rule.message_expression.as_deref());
        let reason = entry("reason", rule.reason);
        let path = rule.path.as_ref().map(|name| {
            let name = json_name_of(name, fields);
            if name.contains(['.', '[', ']', '\'']) {
                format!("['{}']", name.replace('\'', "\\'"))
            } else {
                format!(".{name}")
            }
        });
        let path = entry("fieldPath", path.as_deref());
        let old = rule
            .has_optional_old
            .then(|| quote!("optionalOldSelf": true,));
        quote!({ "rule": #text, #message #expression #reason #path #old })
    });
    Some(computed(
        "x-kubernetes-validations",
        &quote!(::apiloom::codegen::serde_json::json!([#(#entries),*])),
    ))
}

/// A bound of a number, with the type of the number.
fn typed_bound(ty: &TokenStream, bound: &Code) -> TokenStream {
    let span = bound.span().start;
    quote_spanned!(span=> ::apiloom::codegen::Bound::<#ty>::of(#bound))
}

/// A number of characters, bytes, elements or entries.
fn typed_count(bound: &Code) -> TokenStream {
    quote!({ let count: usize = #bound; count })
}

/// The value of an integer literal.
fn integer(code: &Code) -> Option<i128> {
    let (negative, literal) = match syn::parse2::<syn::Expr>(code.to_token_stream()).ok()? {
        syn::Expr::Unary(syn::ExprUnary {
            op: syn::UnOp::Neg(_),
            expr,
            ..
        }) => (true, *expr),
        other => (false, other),
    };
    let syn::Expr::Lit(syn::ExprLit {
        lit: syn::Lit::Int(literal),
        ..
    }) = literal
    else {
        return None;
    };
    // With the suffix of a floating-point type it is no integer.
    let number: i128 = literal.base10_parse().ok()?;
    let is_integer = !literal.suffix().starts_with('f');
    is_integer.then_some(if negative { -number } else { number })
}

fn topology(ty: &TokenStream, rules: &Rules) -> TokenStream {
    let text = |keyword: &str, text: &str| named("Text", keyword, &quote!(#text));
    let list_type = |name: &str| text("x-kubernetes-list-type", name);
    let list = rules.list.as_ref().map(|list| match list {
        ListTopology::Atomic => list_type("atomic"),
        ListTopology::Set => list_type("set"),
        ListTopology::Map(keys) => {
            let element = element_of(ty);
            let keys = keys.iter().map(|key| {
                let chain = super::fields::chain(&element, std::slice::from_ref(key));
                quote_spanned!(key.span=> ::apiloom::codegen::name_of(&#chain))
            });
            let keys = computed("x-kubernetes-list-map-keys", &quote!([#(#keys),*]));
            let list_type = list_type("map");
            quote!(#list_type #keys)
        }
    });
    let patch = rules.patch.as_ref().map(|patch| {
        let strategy = text("x-kubernetes-patch-strategy", &patch.strategy());
        let key = patch.key.as_ref().map(|key| {
            let chain = super::fields::chain(&element_of(ty), std::slice::from_ref(key));
            let key = quote_spanned!(key.span=> ::apiloom::codegen::name_of(&#chain));
            computed("x-kubernetes-patch-merge-key", &key)
        });
        quote!(#strategy #key)
    });
    let map = rules.map.map(|map| match map {
        MapTopology::Atomic => text("x-kubernetes-map-type", "atomic"),
        MapTopology::Granular => text("x-kubernetes-map-type", "granular"),
    });
    let atomic = rules
        .atomic
        .then(|| quote!(::apiloom::codegen::Keyword::Atomic,));
    quote!(#list #patch #map #atomic)
}

/// The type of the elements of a list or map, with errors about it shown at the field's type.
fn element_of(ty: &TokenStream) -> TokenStream {
    let span = SourceSpan::of(ty).start;
    quote_spanned!(span=> <#ty as ::apiloom::codegen::Container>::Element)
}

/// The type of the keys of a map, with errors about it shown at the field's type.
fn key_of(ty: &TokenStream) -> TokenStream {
    let span = SourceSpan::of(ty).start;
    quote_spanned!(span=> <#ty as ::apiloom::codegen::Map>::Key)
}

fn nested(ty: &TokenStream, rules: &Rules, in_base64: bool) -> TokenStream {
    let part = |variant: &str, ty: TokenStream, rules: &Rules, in_base64: bool| {
        let keywords = keywords(&ty, rules, &[], in_base64);
        keyword(variant, &quote!(&[#keywords]))
    };
    let each = rules
        .each
        .as_ref()
        .map(|rules| part("Each", element_of(ty), rules, in_base64));
    let keys = rules
        .keys
        .as_ref()
        .map(|rules| part("Keys", key_of(ty), rules, false));
    quote!(#each #keys)
}

/// Trait bounds that hold only if each rule fits the type of the value.
pub(crate) fn newtype_proofs(model: &ApiNewtype) -> TokenStream {
    let mut proofs = Proofs::default();
    check_rules(&mut proofs, &model.inner.to_token_stream(), &model.rules);
    proofs.item()
}

/// Trait bounds that hold only if each rule fits its field's type and the type has the shape that its tokens show.
pub(crate) fn proofs<'a>(fields: impl Iterator<Item = &'a Field>) -> TokenStream {
    let (mut proofs, mut types) = (Proofs::default(), BTreeSet::new());
    for field in fields {
        let ty = &field.ty;
        check_rules(&mut proofs, &inner_type(field), &field.rules);
        if field.rules.forbidden || !field.members.is_empty() || field.default_with.is_some() {
            proofs.bound("CanBeAbsent", &ty.to_token_stream());
        }
        if matches!(field.shape, Shape::Other) && !field.flatten {
            let text = format!(
                "write out the Option, Vec or map of `{}`: whether it is left out when empty depends on it",
                field.name.text
            );
            let span = ty.span().start;
            // One error for each type is enough, and constants are expensive.
            if types.insert(ty.to_token_stream().to_string()) {
                proofs.checks.extend(quote_spanned!(span=> const _: () = ::core::assert!(!::apiloom::codegen::Shape::<#ty>::HIDES_CONTAINER, #text);));
            }
        }
    }
    proofs.item()
}

/// Checks that rustc evaluates.
#[derive(Default)]
struct Proofs {
    /// The functions that the checks call, by the names of their bounds.
    functions: BTreeMap<&'static str, TokenStream>,
    checks: TokenStream,
}

impl Proofs {
    /// A function that is never called.
    fn item(self) -> TokenStream {
        let (functions, checks) = (self.functions.into_values(), self.checks);
        if checks.is_empty() {
            return TokenStream::new();
        }
        quote! {
            const _: () = {
                #[allow(unused_imports)]
                use ::apiloom::codegen::{BoundOther as _, ShapeOther as _};
                #[allow(dead_code)]
                fn proofs() { #(#functions)* #checks }
            };
        }
    }

    /// A trait bound of a type.
    fn bound(&mut self, bound: &'static str, ty: &TokenStream) {
        let (function, name) = (
            format_ident!("{}", bound.to_lowercase()),
            format_ident!("{bound}"),
        );
        self.functions.entry(bound).or_insert_with(
            || quote!(const fn #function<T: ::apiloom::codegen::#name + ?Sized>() {}),
        );
        let span = SourceSpan::of(ty).start;
        self.checks
            .extend(quote_spanned!(span=> #function::<#ty>();));
    }
}

fn check_rules(proofs: &mut Proofs, ty: &TokenStream, rules: &Rules) {
    let said = |bounds: &Bounds| bounds.min.is_some() || bounds.max.is_some();
    let changes_items = |name: &str| {
        rules
            .update
            .iter()
            .any(|transition| transition.as_str() == name)
    };
    for (bound, needed) in [
        (
            "Number",
            [
                &rules.min,
                &rules.max,
                &rules.gt,
                &rules.lt,
                &rules.multiple_of,
            ]
            .into_iter()
            .any(Option::is_some),
        ),
        (
            "Text",
            said(&rules.len)
                || said(&rules.bytes)
                || rules.pattern.is_some()
                || rules.format.is_some(),
        ),
        (
            "List",
            said(&rules.items)
                || rules.list.is_some()
                || rules.unique
                || rules.patch.as_ref().is_some_and(|patch| patch.merge),
        ),
        (
            "Container",
            rules.each.is_some() || changes_items("NoAddItem") || changes_items("NoRemoveItem"),
        ),
        ("Map", rules.keys.is_some()),
    ] {
        if needed {
            proofs.bound(bound, ty);
        }
    }
    let numbers = [
        &rules.min,
        &rules.max,
        &rules.gt,
        &rules.lt,
        &rules.multiple_of,
    ];
    let counts = [&rules.len, &rules.bytes, &rules.items, &rules.props];
    let counts = counts
        .into_iter()
        .flat_map(|bounds| [&bounds.min, &bounds.max]);
    for bound in numbers
        .into_iter()
        .flatten()
        .filter(|b| integer(b).is_some())
    {
        let bound = typed_bound(ty, bound);
        proofs.checks.extend(quote!(let _ = #bound;));
    }
    for count in counts.flatten().filter(|count| integer(count).is_some()) {
        let count = typed_count(count);
        proofs.checks.extend(quote!(let _ = #count;));
    }
    if let Some(each) = &rules.each {
        check_rules(proofs, &element_of(ty), each);
    }
    if let Some(keys) = &rules.keys {
        check_rules(proofs, &key_of(ty), keys);
    }
}
