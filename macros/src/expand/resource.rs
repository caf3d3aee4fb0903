//! `impl Resource`: the declaration of a kind as data.

use apiloom_model::kind::{
    Column, ColumnSource, Deletion, FieldRef, Kind, Literal, NameFormat, ObjectDeletion, Query,
    QueryStep, Release, Scale, Scope, SelectableField, Subresource, Verb, Writes,
};
use apiloom_model::{Name, SpannedValue};
use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};

use super::fields;
use super::place::place;

/// `impl Resource`.
pub(crate) fn impl_resource(kind: &Kind) -> TokenStream {
    let name = kind.root.name.to_ident();
    let (group, version, kind_name, plural) = (
        &kind.group.value,
        &kind.version.value,
        &kind.kind.value,
        &kind.plural.value,
    );
    let definition = definition(kind);
    let metadata = metadata_field(kind);
    let verbs = verbs(kind).map(|verb| {
        quote! {
            #[automatically_derived]
            impl ::apiloom::codegen::verbs::#verb for #name {}
        }
    });
    let scope = scope(kind);
    let indexes = fields::index_checks(kind);
    quote! {
        #(#verbs)*
        #scope
        #indexes
        #[automatically_derived]
        impl ::apiloom::codegen::Resource for #name {
            const GROUP: &'static str = #group;
            const VERSION: &'static str = #version;
            const KIND: &'static str = #kind_name;
            const PLURAL: &'static str = #plural;
            fn definition() -> ::apiloom::codegen::ResourceDef {
                #definition
            }
            fn metadata(&self) -> &::apiloom::codegen::ObjectMeta {
                &self.#metadata
            }
            fn metadata_mut(&mut self) -> &mut ::apiloom::codegen::ObjectMeta {
                &mut self.#metadata
            }
        }
    }
}

/// The traits of what clients may do with the objects. Clients have no methods for other verbs than those of most kinds.
fn verbs(kind: &Kind) -> impl Iterator<Item = Ident> {
    let verbs = kind.verbs.iter().filter(|_| kind.has_client_verbs);
    let verbs = verbs.filter(|verb| Verb::DEFAULT.contains(verb));
    let verbs = verbs.map(|verb| verb.variant());
    let subresources = kind.subresources.iter();
    let of_subresources = subresources.filter_map(|sub| match &*sub.name.value {
        "status" => Some("HasStatus"),
        _ if sub.scale.is_some() => Some("HasScale"),
        _ => None,
    });
    let names = verbs.chain(of_subresources);
    names.map(|name| Ident::new(name, Span::call_site()))
}

/// The trait of the scope. The objects of a simple kind have no path of their own, and so no client.
fn scope(kind: &Kind) -> TokenStream {
    if kind.is_simple {
        return TokenStream::new();
    }
    let name = kind.root.name.to_ident();
    let scope = match kind.scope {
        Scope::Namespaced => quote!(NamespacedKind),
        Scope::Cluster => quote!(ClusterKind),
    };
    quote! {
        #[automatically_derived]
        impl ::apiloom::codegen::#scope for #name {}
    }
}

fn metadata_field(kind: &Kind) -> Ident {
    let field = kind
        .root
        .fields
        .iter()
        .find(|field| field.json_name == "metadata");
    field.map_or_else(
        || Ident::new("metadata", Span::call_site()),
        |field| field.name.to_ident(),
    )
}

/// The fields of `ResourceDef` that differ from those of most kinds.
fn definition(kind: &Kind) -> TokenStream {
    let mut fields = Vec::new();
    let mut set = |name: &str, is_set: bool, value: &dyn Fn() -> TokenStream| {
        if is_set {
            let (name, value) = (format_ident!("{name}"), value());
            fields.push(quote!(#name: #value));
        }
    };
    let kind_name = &kind.kind.value;
    let (list_kind, singular) = (&kind.list_kind.value, &kind.singular.value);
    set(
        "list_kind",
        *list_kind != format!("{kind_name}List"),
        &|| text(list_kind),
    );
    set("singular", *singular != kind_name.to_lowercase(), &|| {
        text(singular)
    });
    let short_names = || list(kind.short_names.iter().map(|name| text(&name.value)));
    set("short_names", !kind.short_names.is_empty(), &short_names);
    let categories = || list(kind.categories.iter().map(|name| text(&name.value)));
    set("categories", !kind.categories.is_empty(), &categories);
    let scope = || variant("Scope", kind.scope.variant());
    set("scope", kind.scope != Scope::Namespaced, &scope);
    let verbs = || {
        list(
            kind.verbs
                .iter()
                .map(|verb| variant("Verb", verb.variant())),
        )
    };
    set("verbs", kind.verbs != Verb::DEFAULT, &verbs);
    let subresources = || list(kind.subresources.iter().map(|sub| subresource(kind, sub)));
    set("subresources", !kind.subresources.is_empty(), &subresources);
    let is_deleted_as_most =
        matches!(&kind.deletion, Deletion::Object(rule) if *rule == ObjectDeletion::default());
    set("deletion", !is_deleted_as_most, &|| deletion(kind));
    set("has_store", !kind.has_store, &|| quote!(false));
    if let Some(path) = &kind.store_path {
        let path = text(&path.value);
        set(
            "store_path",
            true,
            &|| quote!(::core::option::Option::Some(#path)),
        );
    }
    set("storage", !kind.storage, &|| quote!(false));
    set("served", !kind.served, &|| quote!(false));
    set("disabled_by_default", kind.disabled_by_default, &|| {
        quote!(true)
    });
    set("conversion", kind.converts_to().is_some(), &|| {
        conversion(kind)
    });
    let columns = || list(kind.columns.iter().map(|column| self::column(kind, column)));
    set("columns", !kind.columns.is_empty(), &columns);
    let selectable = || {
        list(
            kind.selectable
                .iter()
                .map(|field| selectable_field(kind, field)),
        )
    };
    set("selectable", !kind.selectable.is_empty(), &selectable);
    set("lifecycle", kind.lifecycle.is_some(), &|| lifecycle(kind));
    let name_format = || variant("NameFormat", kind.name_format.variant());
    set(
        "name_format",
        kind.name_format != NameFormat::default(),
        &name_format,
    );
    set("generation", !kind.generation, &|| {
        variant("GenerationRule", "None")
    });
    set("unconditional_update", !kind.unconditional_update, &|| {
        quote!(false)
    });
    set("create_on_update", kind.create_on_update, &|| quote!(true));
    set("strategic_merge_patch", kind.strategic_merge_patch, &|| {
        quote!(true)
    });
    let description = &kind.root.description;
    set("description", !description.is_empty(), &|| {
        text(description)
    });
    set("place", true, &|| place(kind.root.name.span));
    let protobuf = match &kind.protobuf {
        Some(message) => Some(quote!(::core::option::Option::Some(&#message))),
        None if kind.root.is_message() => {
            Some(quote!(::apiloom::codegen::protobuf_message::<Self>()))
        }
        None => None,
    };
    set("protobuf", protobuf.is_some(), &|| quote!(#protobuf));
    quote! {
        ::apiloom::codegen::ResourceDef {
            #(#fields,)*
            ..::apiloom::codegen::ResourceDef::of_type::<Self>(::apiloom::codegen::Schema::for_resource::<Self>)
        }
    }
}

fn list(items: impl Iterator<Item = TokenStream>) -> TokenStream {
    quote!(::std::vec![#(#items),*])
}

fn subresource(kind: &Kind, sub: &Subresource) -> TokenStream {
    if let Some(scale) = &sub.scale {
        return self::scale(kind, scale);
    }
    let name = text(&sub.name.value);
    let verbs = sub.verbs.iter().map(|verb| variant("Verb", verb.variant()));
    let writes = match &sub.writes {
        None => variant("Writes", "Nothing"),
        Some(Writes::Only(field)) => {
            let field = text(field);
            quote!(::apiloom::codegen::Writes::Only(#field))
        }
        Some(Writes::WithMetadata(field)) => {
            let field = text(field);
            quote!(::apiloom::codegen::Writes::WithMetadata(#field))
        }
        Some(Writes::Also(field)) => {
            let field = text(field);
            quote!(::apiloom::codegen::Writes::Also(#field))
        }
    };
    let def = quote!(::apiloom::codegen::SubresourceDef::new(#name, &[#(#verbs),*], #writes));
    let Some(handler) = &sub.handler else {
        return def;
    };
    if sub.connects {
        let verbs = sub.verbs.iter().map(|verb| variant("Verb", verb.variant()));
        return quote_spanned! {handler.span().start=>
            ::apiloom::codegen::connect_subresource::<Self, #handler>(#name, &[#(#verbs),*])
        };
    }
    // Each verb is a trait of the type, whose absence rustc reports at its name.
    let verbs = sub.verbs.iter().map(|verb| {
        let verb = Ident::new(verb.word(), handler.span().start);
        quote_spanned!(handler.span().start=> .#verb())
    });
    quote_spanned! {handler.span().start=>
        ::apiloom::codegen::subresource_verbs::<Self, #handler>() #(#verbs)* .of(#def)
    }
}

fn scale(kind: &Kind, scale: &Scale) -> TokenStream {
    let spec = checked_path(kind, &scale.spec, "replicas_path");
    let status = checked_path(kind, &scale.status, "replicas_path");
    let selector = match &scale.selector {
        Some(selector) => {
            let selector = checked_path(kind, selector, "text_path");
            quote!(::core::option::Option::Some(#selector))
        }
        None => quote!(::core::option::Option::None),
    };
    quote! {
        ::apiloom::codegen::SubresourceDef::scale(::apiloom::codegen::ScalePaths {
            spec: #spec,
            status: #status,
            selector: #selector,
        })
    }
}

/// A path whose field a function checks, if rustc knows its type.
fn checked_path(kind: &Kind, field: &FieldRef, check: &str) -> TokenStream {
    let path = path_of(kind, field);
    let FieldRef::Typed(names) = field else {
        return path;
    };
    let root = kind.root.name.to_ident();
    let chain = fields::chain(&quote!(#root), names);
    let span = names
        .last()
        .map_or_else(Span::call_site, |name: &Name| name.span);
    let check = format_ident!("{check}");
    quote_spanned!(span=> ::apiloom::codegen::#check(&#chain, #path))
}

fn deletion(kind: &Kind) -> TokenStream {
    match &kind.deletion {
        Deletion::Object(rule) => object_deletion(*rule),
        Deletion::Container { finalizers, phase } => {
            let (finalizers, phase) = (path_of(kind, finalizers), path_of(kind, phase));
            quote! {
                ::apiloom::codegen::DeletionRule::Container { finalizers: #finalizers, phase: #phase }
            }
        }
    }
}

fn object_deletion(rule: ObjectDeletion) -> TokenStream {
    let grace_seconds = match rule.grace_seconds {
        Some(seconds) => quote!(::core::option::Option::Some(#seconds)),
        None => quote!(::core::option::Option::None),
    };
    let dependents = variant("Dependents", rule.dependents.variant());
    let returns_object = rule.returns_object;
    quote! {
        ::apiloom::codegen::DeletionRule::Object(::apiloom::codegen::ObjectDeletion {
            grace_seconds: #grace_seconds,
            dependents: #dependents,
            returns_object: #returns_object,
        })
    }
}

/// A static text of a definition.
pub(super) fn text(value: &str) -> TokenStream {
    quote!(::apiloom::codegen::SmolStr::new_static(#value))
}

fn variant(ty: &str, name: &str) -> TokenStream {
    let (ty, name) = (format_ident!("{ty}"), format_ident!("{name}"));
    quote!(::apiloom::codegen::#ty::#name)
}

fn path_of(kind: &Kind, field: &FieldRef) -> TokenStream {
    let root = kind.root.name.to_ident();
    match field {
        FieldRef::Typed(names) => fields::json_path(&quote!(#root), names),
        FieldRef::Json(text) => json_path(text),
    }
}

fn selectable_field(kind: &Kind, field: &SelectableField) -> TokenStream {
    let paths = field.paths.iter().map(|path| path_of(kind, path));
    match &field.name {
        None => quote!(#(::apiloom::codegen::SelectableField::from(#paths)),*),
        Some(name) => {
            let name = text(&name.value);
            quote! {
                ::apiloom::codegen::SelectableField { name: #name, paths: ::std::vec![#(#paths),*] }
            }
        }
    }
}

fn json_path(text: &SpannedValue<String>) -> TokenStream {
    let text = &text.value;
    quote!(::apiloom::codegen::json_path(#text))
}

fn column(kind: &Kind, column: &Column) -> TokenStream {
    let root = kind.root.name.to_ident();
    let Column { priority, .. } = column;
    let (name, format, description) = (
        text(&column.name.value),
        text(&column.format),
        text(&column.description),
    );
    let (inferred, source) = match &column.source {
        ColumnSource::Field(field) => {
            let path = path_of(kind, field);
            (
                inferred_type(kind, field),
                quote!(::apiloom::codegen::CellSource::Path(#path)),
            )
        }
        ColumnSource::Query(query) => {
            let query = expand_query(query);
            (
                variant("ColumnType", "String"),
                quote!(::apiloom::codegen::CellSource::Query(#query)),
            )
        }
        ColumnSource::With(function) => {
            let object = quote!(object: &#root);
            (
                quote!(::apiloom::codegen::column_type_with(|#object| (#function)(object))),
                quote!(::apiloom::codegen::CellSource::With(|value| ::apiloom::codegen::cell_with(value, |#object| (#function)(object)))),
            )
        }
    };
    let column_type = column
        .column_type
        .map_or(inferred, |ty| variant("ColumnType", ty.variant()));
    quote! {
        ::apiloom::codegen::Column {
            name: #name,
            column_type: #column_type,
            format: #format,
            priority: #priority,
            description: #description,
            source: #source,
        }
    }
}

fn expand_query(query: &Query) -> TokenStream {
    let path = |names: &[String]| quote!(::apiloom::codegen::path(&[#(#names),*]));
    let steps = query.steps.iter().map(|step| match step {
        QueryStep::Field(name) => quote!(Field(::std::string::String::from(#name))),
        QueryStep::Item(number) => quote!(Item(#number)),
        QueryStep::Every => quote!(Items),
        QueryStep::Where { path: names, test } => {
            let path = path(names);
            let filter = match test {
                None => quote!(exists(#path)),
                Some((comparison, literal)) => {
                    let comparison = variant("Comparison", comparison.variant());
                    let literal = match literal {
                        Literal::Text(text) => quote!(#text),
                        Literal::Integer(number) => quote!(#number),
                        Literal::Float(number) => quote!(#number),
                        Literal::Bool(value) => quote!(#value),
                    };
                    quote!(compares(#path, #comparison, #literal))
                }
            };
            quote!(Where(::apiloom::codegen::QueryFilter::#filter))
        }
    });
    let start = path(&query.start);
    quote!(::apiloom::codegen::JsonQuery::new(#start)#(.then(::apiloom::codegen::QueryStep::#steps))*)
}

fn inferred_type(kind: &Kind, field: &FieldRef) -> TokenStream {
    let root = kind.root.name.to_ident();
    match field {
        FieldRef::Typed(names) => {
            let chain = fields::chain(&quote!(#root), names);
            let span = names
                .last()
                .map_or_else(Span::call_site, |name: &Name| name.span);
            quote_spanned!(span=> ::apiloom::codegen::column_type_of(&#chain))
        }
        FieldRef::Json(_) => variant("ColumnType", "String"),
    }
}

fn conversion(kind: &Kind) -> TokenStream {
    let Some(hub) = kind.converts_to() else {
        return quote!(::core::option::Option::None);
    };
    quote! {
        ::core::option::Option::Some(::apiloom::codegen::Conversion {
            hub_resource: ::apiloom::codegen::resource_of_other_group::<Self, #hub>(),
            hub_version: ::apiloom::codegen::SmolStr::new_static(<#hub as ::apiloom::codegen::Resource>::VERSION),
            hub_kind: ::apiloom::codegen::SmolStr::new_static(<#hub as ::apiloom::codegen::Resource>::KIND),
            method: ::apiloom::codegen::ConversionMethod::InMemory(::apiloom::codegen::InMemoryConversion {
                to_hub: ::apiloom::codegen::convert_document::<Self, #hub>,
                from_hub: ::apiloom::codegen::convert_document::<#hub, Self>,
                json: ::core::option::Option::Some(::apiloom::codegen::JsonConversion {
                    to_hub: ::apiloom::codegen::convert_json::<Self, #hub>,
                    from_hub: ::apiloom::codegen::convert_json::<#hub, Self>,
                }),
            }),
        })
    }
}

fn lifecycle(kind: &Kind) -> TokenStream {
    let Some(lifecycle) = &kind.lifecycle else {
        return quote!(::core::option::Option::None);
    };
    let release = |release: &Option<SpannedValue<Release>>| match release {
        Some(release) => {
            let (major, minor) = (release.major, release.minor);
            quote!(::core::option::Option::Some(::apiloom::codegen::Release { major: #major, minor: #minor }))
        }
        None => quote!(::core::option::Option::None),
    };
    let (introduced, deprecated, removed) = (
        release(&lifecycle.introduced),
        release(&lifecycle.deprecated),
        release(&lifecycle.removed),
    );
    let replacement = match &lifecycle.replacement {
        Some((group, version, kind)) => {
            quote!(::core::option::Option::Some(::apiloom::codegen::GroupVersionKind::new(#group, #version, #kind)))
        }
        None => quote!(::core::option::Option::None),
    };
    quote! {
        ::core::option::Option::Some(::apiloom::codegen::Lifecycle {
            introduced: #introduced,
            deprecated: #deprecated,
            removed: #removed,
            replacement: #replacement,
        })
    }
}
