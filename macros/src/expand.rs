//! Generates Rust from the model: one file per trait that an expansion implements.
//!
//! An item with errors is still emitted, with every trait that its users need, so that rustc reports no follow-up
//! errors.

mod broken;
mod checked;
mod convert;
mod crate_path;
mod debug;
mod derives;
mod fields;
mod group;
mod hooks;
mod place;
mod protobuf;
mod record;
mod resource;
mod schema;
mod test;

use apiloom_model::api::Variant;
use apiloom_model::{
    ApiStruct, ApiType, Diagnostics, crate_path_of_group, crate_path_of_item, is_attribute,
    parse_api, parse_derived_kind, parse_kind,
};
use proc_macro2::TokenStream;
use quote::quote;
use syn::DeriveInput;
use syn::ext::IdentExt as _;

pub(crate) use group::group;
use protobuf::MessageName;
pub(crate) use test::test;

/// The expansion of an item with the path that its attributes set; `macro_name` is the macro's name.
pub(crate) fn with_crate_path(
    expansion: TokenStream,
    item: &DeriveInput,
    macro_name: &str,
) -> TokenStream {
    let name = format!("{macro_name}_{}", item.ident.unraw());
    crate_path::replace(expansion, crate_path_of_item(item), &name)
}

/// The expansion of `group!` with the path that it sets.
pub(crate) fn with_crate_path_of_group(expansion: TokenStream, tokens: TokenStream) -> TokenStream {
    crate_path::replace(expansion, crate_path_of_group(tokens), "group")
}

/// `#[resource(..)]` on a root struct.
pub(crate) fn kind(item: &DeriveInput, d: &mut Diagnostics) -> TokenStream {
    let kind = parse_kind(item, d);
    let Some(kind) = kind.filter(|_| d.is_empty()) else {
        return broken::kind(item);
    };
    let types = checked::field_types(item);
    let item = struct_item(item, &kind.root);
    let message = MessageName {
        name: &kind.kind.value,
        package: kind.proto_package.as_ref().map(|package| &*package.value),
    };
    let impls = struct_impls(&kind.root, message);
    let conversion = convert::of_root(&kind);
    let resource = resource::impl_resource(&kind);
    quote! { #types #item #impls #conversion #resource }
}

/// `#[derive(Resource)]`: only the trait impls.
pub(crate) fn derived_kind(item: &DeriveInput, d: &mut Diagnostics) -> TokenStream {
    let Some(kind) = parse_derived_kind(item, d).filter(|_| d.is_empty()) else {
        return broken::derived_kind(item);
    };
    let hooks = hooks::of_struct(&kind.root, None);
    let fields = fields::impl_has_fields(&kind.root);
    let conversion = convert::of_root(&kind);
    let resource = resource::impl_resource(&kind);
    quote! { #hooks #fields #conversion #resource }
}

/// `#[api(..)]` on a struct or an enum.
pub(crate) fn api_type(item: &DeriveInput, d: &mut Diagnostics) -> TokenStream {
    // rustc expands only the first attribute of a kind, which removes the others.
    if item.attrs.iter().any(|a| is_attribute(a, "resource")) && !broken::derives(item, "Resource")
    {
        return kind(item, d);
    }
    let parsed = parse_api(item, d);
    if !d.is_empty() {
        return broken::api_type(item, parsed.as_ref());
    }
    let types = checked::field_types(item);
    let expansion = match parsed {
        None => TokenStream::new(),
        Some(ApiType::Struct(model)) => {
            let item = struct_item(item, &model);
            let name = protobuf::message_name(&model.proto, &model.name.text);
            let impls = struct_impls(&model, MessageName::new(name));
            let conversions: TokenStream = model
                .conversions
                .iter()
                .map(|c| convert::of_struct(&model, c))
                .collect();
            quote! { #item #impls #conversions }
        }
        Some(ApiType::Newtype(model)) => {
            let item = derives::decorated_newtype(item, &model);
            let hooks = hooks::of_newtype(&model);
            let column = fields::newtype_column_value(&model);
            let proofs = schema::newtype_proofs(&model);
            quote! { #item #hooks #column #proofs }
        }
        Some(ApiType::Enum(model)) => {
            let item = derives::decorated_enum(item, &model);
            let hooks = hooks::of_enum(&model);
            let column = fields::impl_column_value(&model);
            let keys = fields::impl_index_keys(&model);
            let proofs = schema::proofs(model.variants.iter().flat_map(Variant::fields));
            let checked = checked::of_enum(&model);
            let conversions: TokenStream = model
                .conversions
                .iter()
                .map(|c| convert::of_enum(&model, c))
                .collect();
            quote! { #item #hooks #column #keys #proofs #checked #conversions }
        }
    };
    quote!(#types #expansion)
}

/// The struct, with what makes it JSON.
fn struct_item(item: &DeriveInput, model: &ApiStruct) -> TokenStream {
    if !record::is_record(item, model) {
        return derives::decorated_struct(item, model);
    }
    let bare = derives::record(item, model);
    let impls = record::impls(item, model);
    quote!(#bare #impls)
}

/// `message` is the name of the struct's message in Protobuf.
fn struct_impls(model: &ApiStruct, message: MessageName<'_>) -> TokenStream {
    let hooks = hooks::of_struct(model, Some(message));
    let fields = fields::impl_has_fields(model);
    let proofs = schema::proofs(model.fields.iter());
    let checked = checked::of_struct(model);
    let debug = debug::of_struct(model);
    quote! { #hooks #fields #proofs #checked #debug }
}
