//! Reads `#[api(..)]` on structs, enums, fields and variants.

use proc_macro2::Ident;
use syn::ext::IdentExt as _;
use syn::{Data, DeriveInput, Fields};

use super::conversion::{read_conversion, read_field_conversion};
use super::proto;
use super::rules::{literal, read_rule, settle_patch_key};
use super::types::{
    check_options, check_present, check_rule_of_bytes, check_variant_value, shape_of, without_self,
};
use super::{
    ApiEnum, ApiNewtype, ApiStruct, ApiType, Content, Field, FieldConversion, ProtoMessage, Rules,
    Shape, Union, Variant,
};
use crate::args::{self, Arg};
use crate::crate_path;
use crate::diagnostics::DiagnosticId as Id;
use crate::item::{self, Form, Place};
use crate::keys::Target;
use crate::{Code, Diagnostics, Name, SourceSpan, SpannedValue, names};

/// Reads a struct or an enum with `#[api(..)]` attributes (also spelled `#[apiloom::api(..)]`).
///
/// `None` if the item cannot be read at all; `diagnostics` then has the reason. A type may be returned with diagnostics
/// too.
pub fn parse_api(item: &DeriveInput, diagnostics: &mut Diagnostics) -> Option<ApiType> {
    match &item.data {
        Data::Struct(data) if is_newtype(&data.fields) => {
            parse_newtype(item, &data.fields, diagnostics).map(ApiType::Newtype)
        }
        Data::Struct(_) => parse_struct(item, Form::Attribute, diagnostics).map(ApiType::Struct),
        Data::Enum(_) => parse_enum(item, diagnostics).map(ApiType::Enum),
        Data::Union(_) => parse_struct(item, Form::Attribute, diagnostics).map(ApiType::Struct),
    }
}

/// Whether a struct has exactly one field, without a name.
fn is_newtype(fields: &Fields) -> bool {
    matches!(fields, Fields::Unnamed(fields) if fields.unnamed.len() == 1)
}

fn parse_newtype(item: &DeriveInput, fields: &Fields, d: &mut Diagnostics) -> Option<ApiNewtype> {
    check_generics(item, d);
    item::check_foreign(&item.attrs, Place::Struct, Form::Attribute, d);
    let field = fields.iter().next()?;
    item::check_foreign(&field.attrs, Place::Field, Form::Attribute, d);
    if matches!(shape_of(&field.ty), Shape::Option(_)) {
        d.error(
            Id::NestedOption,
            SourceSpan::of(&field.ty),
            "a struct of one value has a value",
        )
        .help("write the type without `Option`, and the `Option` where the struct is used");
    }
    check_options(&field.ty, d);
    for arg in &args::of_attributes(&field.attrs, "api", Target::Newtype, d) {
        inside_parentheses(arg, "put `#[api(..)]` above the struct", d);
    }
    let mut rules = Rules::default();
    for arg in &args::of_attributes(&item.attrs, "api", Target::Newtype, d) {
        read_type_rule(&mut rules, arg, d);
    }
    Some(ApiNewtype {
        name: Name::from(&item.ident),
        description: item::description(&item.attrs),
        rules,
        inner: Code::new(&field.ty),
        has_own_form: proto::json_form_key(&field.attrs).is_some(),
        derives: item::derives(&item.attrs),
    })
}

/// A key of a type that any kind of type may have.
fn read_type_rule(rules: &mut Rules, arg: &Arg, d: &mut Diagnostics) {
    match arg.key {
        "crate" => crate_path::check(arg, d),
        _ => read_rule(rules, arg, d),
    }
}

fn inside_parentheses(arg: &Arg, help: &str, d: &mut Diagnostics) {
    d.error(
        Id::MisplacedKey,
        arg.span(),
        format!(
            "`{}` has no meaning inside the parentheses",
            arg.written.text
        ),
    )
    .help(help);
}

fn not_named_fields(item: &DeriveInput, d: &mut Diagnostics) {
    d.error(
        Id::NotNamedFields,
        item.ident.span(),
        format!("`{}` has no named fields", item.ident),
    )
    .help("an API type is a struct with named fields, an enum, or one value in parentheses");
}

fn check_generics(item: &DeriveInput, d: &mut Diagnostics) {
    if !item.generics.params.is_empty() {
        d.error(
            Id::Generics,
            SourceSpan::of(&item.generics),
            "an API type has no generic parameters",
        )
        .help("write one type for each use: its schema has one name");
    }
}

/// Reads a struct, a root or not; `None` when its fields have no names.
pub(crate) fn parse_struct(
    item: &DeriveInput,
    form: Form,
    d: &mut Diagnostics,
) -> Option<ApiStruct> {
    let has_names =
        matches!(&item.data, Data::Struct(data) if matches!(data.fields, Fields::Named(_)));
    if !has_names {
        not_named_fields(item, d);
    }
    let model = read_struct(item, form, d);
    has_names.then_some(model)
}

/// Reads the attributes of an item and of its fields, whether it is a struct or not.
pub(crate) fn read_struct(item: &DeriveInput, form: Form, d: &mut Diagnostics) -> ApiStruct {
    check_generics(item, d);
    item::check_foreign(&item.attrs, Place::Struct, form, d);
    let args = args::of_attributes(&item.attrs, "api", Target::Struct, d);
    let (mut rules, mut union, mut conversions) = (Rules::default(), None, Vec::new());
    let mut message = ProtoMessage::default();
    for arg in &args {
        match arg.key {
            "union" => union = read_union(arg, d),
            "proto" => message = proto::read_message(arg, d),
            "convert" => conversions.extend(read_conversion(arg, d)),
            _ => read_type_rule(&mut rules, arg, d),
        }
    }
    let rename_all = item::serde_text(&item.attrs, "rename_all");
    let camel = form == Form::Attribute || rename_all.as_deref() == Some("camelCase");
    let before = d.errors().len();
    let of = FieldOwner {
        item: &item.ident,
        form,
        camel,
    };
    let mut fields: Vec<Field> = declared_fields(&item.data)
        .enumerate()
        .map(|(at, field)| parse_field((at, field), of, d))
        .collect();
    if item.attrs.iter().any(|a| item::is_attribute(a, "resource")) {
        proto::number_metadata(&mut fields);
    }
    check_siblings(&fields, d);
    let owner = item.ident.unraw().to_string();
    proto::check_fields(&owner, &fields, &message, d);
    proto::check_keeps(rules.preserve_unknown, &fields, d);
    let derives = item::derives(&item.attrs);
    check_sensitive(&fields, form, &derives, d);
    // After another error the intended arguments are unknown.
    let has_error = d.errors().len() > before;
    match &union {
        Some(union) => check_union(union, &fields, has_error, d),
        None if args.has("union") => {}
        None => check_no_union(&fields, d),
    }
    ApiStruct {
        name: Name::from(&item.ident),
        description: item::description(&item.attrs),
        rules,
        union,
        conversions,
        fields,
        proto: message,
        derives,
    }
}

/// Reports sensitive fields that a `Debug` of the user's own would print.
fn check_sensitive(fields: &[Field], form: Form, derives: &[String], d: &mut Diagnostics) {
    let help = match form {
        Form::Derive => {
            "write `Debug` by hand so that it hides the field, and leave `sensitive` out"
        }
        Form::Attribute if derives.iter().any(|name| name == "Debug") => {
            "leave `Debug` out of the derives: the attribute writes one that hides the field"
        }
        Form::Attribute => return,
    };
    for field in fields {
        if let Some(span) = field.sensitive {
            d.error(
                Id::Contradiction,
                span,
                format!(
                    "the `Debug` of the type is not written here, so it prints `{}`",
                    field.name.text
                ),
            )
            .help(help);
        }
    }
}

fn declared_fields(data: &Data) -> impl Iterator<Item = &syn::Field> {
    let fields = match data {
        Data::Struct(data) => Some(data.fields.iter()),
        _ => None,
    };
    let of_union = match data {
        Data::Union(data) => Some(data.fields.named.iter()),
        _ => None,
    };
    fields
        .into_iter()
        .flatten()
        .chain(of_union.into_iter().flatten())
}

/// What has a field, and how its fields are named.
#[derive(Clone, Copy)]
struct FieldOwner<'a> {
    item: &'a Ident,
    form: Form,
    /// Whether the names in JSON are in camelCase.
    camel: bool,
}

/// An enum, whose variants hold fields.
fn of_variant(item: &Ident) -> FieldOwner<'_> {
    FieldOwner {
        item,
        form: Form::Attribute,
        camel: true,
    }
}

/// Reads a field, with its index.
fn parse_field(
    (at, field): (usize, &syn::Field),
    of: FieldOwner<'_>,
    d: &mut Diagnostics,
) -> Field {
    let FieldOwner { item, form, camel } = of;
    let name = field.ident.as_ref().map_or_else(
        || Name {
            text: at.to_string(),
            raw: false,
            span: SourceSpan::of(field).start,
        },
        Name::from,
    );
    item::check_foreign(&field.attrs, Place::Field, form, d);
    let ty = without_self(&field.ty, item);
    if form == Form::Attribute {
        check_options(&ty, d);
    }
    let args = args::of_attributes(&field.attrs, "api", Target::Field, d);
    let written = if form == Form::Derive {
        item::serde_text(&field.attrs, "rename")
    } else {
        None
    };
    let by_rule = if camel {
        names::json_name(&name.text)
    } else {
        name.text.clone()
    };
    let mut out = Field {
        json_name: written.unwrap_or(by_rule),
        ty: Code::new(&ty),
        shape: shape_of(&ty),
        description: item::description(&field.attrs),
        rules: Rules::default(),
        flatten: form == Form::Derive && item::has_serde_key(&field.attrs, "flatten"),
        default: None,
        default_with: None,
        members: Vec::new(),
        convert: FieldConversion::default(),
        sensitive: None,
        proto: None,
        name,
    };
    for arg in &args {
        read_field_key(&mut out, arg, d);
        if form == Form::Attribute {
            check_rule_of_bytes(&ty, arg, &out.rules, d);
        }
        if arg.key == "nullable" && !matches!(out.shape, Shape::Option(_)) {
            d.error(
                Id::NullableTarget,
                arg.span(),
                format!("`{}` has no value that null could be", out.name.text),
            )
            .help("make the field an `Option`");
        }
    }
    check_present(&out, &args, d);
    settle_patch_key(&mut out.rules, d);
    proto::check_json_form(&out, &field.attrs, d);
    out
}

fn read_field_key(field: &mut Field, arg: &Arg, d: &mut Diagnostics) {
    match arg.key {
        "json" => {
            field.json_name = read_json_name(arg, d).unwrap_or_else(|| field.json_name.clone());
        }
        "flatten" => field.flatten = arg.flag(d),
        "default" => field.default = arg.code(d),
        "default_with" => {
            field.default_with = arg.code(d);
            if matches!(field.shape, Shape::List | Shape::Map) {
                d.error(
                    Id::DefaultTarget,
                    arg.span(),
                    "a list or a map cannot be told absent from empty",
                )
                .help("make the field an `Option`");
            }
        }
        "member" => field.members = read_members(arg, d),
        "sensitive" => field.sensitive = arg.flag(d).then(|| arg.span()),
        "proto" => field.proto = Some(proto::read_number(arg, d)),
        "convert" => field.convert = read_field_conversion(arg, d).unwrap_or_default(),
        _ => read_rule(&mut field.rules, arg, d),
    }
}

fn read_members(arg: &Arg, d: &mut Diagnostics) -> Vec<SpannedValue<String>> {
    let before = d.errors().len();
    let members = arg.strings(d);
    if members.is_empty() && d.errors().len() == before {
        d.error(
            Id::UnionShape,
            arg.span(),
            "no value of the tag selects this member",
        );
    }
    members
}

fn read_json_name(arg: &Arg, d: &mut Diagnostics) -> Option<String> {
    let name = arg.string(d)?;
    if name.is_empty() || name.contains(['.', '[', ']', '/', ' ', '"']) {
        d.error(
            Id::BadName,
            name.span,
            format!("{:?} is not a JSON name", name.value),
        )
        .help("write a camelCase word");
    }
    Some(name.value)
}

fn read_union(arg: &Arg, d: &mut Diagnostics) -> Option<Union> {
    let mut union = Union {
        tag: None,
        allow_none: false,
        span: arg.span(),
    };
    for arg in &arg.list(Target::Union, d)? {
        match arg.key {
            "tag" => union.tag = arg.names(d).into_iter().next(),
            "allow_none" => union.allow_none = arg.flag(d),
            _ => {}
        }
    }
    Some(union)
}

/// Reports a name that is not a field.
fn check_name(name: &Name, fields: &[Field], d: &mut Diagnostics) {
    let names = || fields.iter().map(|field| field.name.text.as_str());
    if !names().any(|known| known == name.text) {
        d.error(
            Id::UnknownField,
            name.span,
            format!("there is no field `{}` here", name.text),
        )
        .suggest(&name.text, names());
    }
}

/// Checks the references of a field to its siblings.
fn check_siblings(fields: &[Field], d: &mut Diagnostics) {
    let mut json_names: Vec<&str> = Vec::new();
    for field in fields {
        field
            .rules
            .requires
            .iter()
            .chain(&field.rules.conflicts)
            .for_each(|name| check_name(name, fields, d));
        check_requires(field, d);
        check_default(field, d);
        if !field.flatten && json_names.contains(&field.json_name.as_str()) {
            d.error(
                Id::DuplicateName,
                field.name.span,
                format!("two fields are {:?} in JSON", field.json_name),
            );
        }
        json_names.push(&field.json_name);
    }
}

fn check_requires(field: &Field, d: &mut Diagnostics) {
    for name in field
        .rules
        .requires
        .iter()
        .filter(|name| field.rules.conflicts.contains(name))
    {
        d.error(
            Id::Contradiction,
            name.span,
            format!(
                "`{}` is both required and refused beside this field",
                name.text
            ),
        );
    }
    for name in field
        .rules
        .requires
        .iter()
        .chain(&field.rules.conflicts)
        .filter(|name| **name == field.name)
    {
        d.error(
            Id::Contradiction,
            name.span,
            format!("`{}` is the field itself", name.text),
        );
    }
}

/// Reports a default that violates the field's own bounds, if both are literals.
fn check_default(field: &Field, d: &mut Diagnostics) {
    let Some(default) = &field.default else {
        return;
    };
    let Some(value) = literal(default) else {
        return;
    };
    let rules = &field.rules;
    let breaks = |bound: &Option<Code>, broken: fn(f64, f64) -> bool| {
        bound
            .as_ref()
            .and_then(literal)
            .is_some_and(|bound| broken(value, bound))
    };
    for (key, broken) in [
        ("min", breaks(&rules.min, |value, bound| value < bound)),
        ("max", breaks(&rules.max, |value, bound| value > bound)),
        ("gt", breaks(&rules.gt, |value, bound| value <= bound)),
        ("lt", breaks(&rules.lt, |value, bound| value >= bound)),
    ] {
        if broken {
            let text = format!("the default {} breaks `{key}`", default.text());
            d.error(Id::Contradiction, default.span(), text);
        }
    }
}

/// Reports members in a struct that is not a union.
fn check_no_union(fields: &[Field], d: &mut Diagnostics) {
    for member in fields.iter().flat_map(|field| &field.members) {
        d.error(Id::UnionShape, member.span, "`member` needs a union")
            .help("put `#[api(union(tag = field))]` on the struct");
    }
}

/// Checks a union. A field with an error may be the only member, so a missing member is then not reported.
fn check_union(union: &Union, fields: &[Field], has_error: bool, d: &mut Diagnostics) {
    if let Some(tag) = &union.tag {
        check_name(tag, fields, d);
    }
    let members: Vec<&SpannedValue<String>> =
        fields.iter().flat_map(|field| &field.members).collect();
    if members.is_empty() && !has_error {
        d.error(Id::UnionShape, union.span, "the union has no members")
            .help("put `#[api(member = \"Name\")]` on its fields");
    }
    for (index, member) in members.iter().enumerate() {
        if members[..index].contains(member) {
            d.error(
                Id::DuplicateName,
                member.span,
                format!("two members are {:?}", member.value),
            );
        }
    }
    for field in fields
        .iter()
        .filter(|field| !field.members.is_empty() && union.tag.as_ref() == Some(&field.name))
    {
        d.error(
            Id::UnionShape,
            field.name.span,
            "the tag cannot be a member",
        );
    }
}

fn parse_enum(item: &DeriveInput, d: &mut Diagnostics) -> Option<ApiEnum> {
    check_generics(item, d);
    let Data::Enum(data) = &item.data else {
        return None;
    };
    item::check_foreign(&item.attrs, Place::Enum, Form::Attribute, d);
    let args = args::of_attributes(&item.attrs, "api", Target::Enum, d);
    let (mut rules, mut conversions) = (Rules::default(), Vec::new());
    let mut message = ProtoMessage::default();
    for arg in &args {
        match arg.key {
            "convert" => conversions.extend(read_conversion(arg, d)),
            "proto" => message = proto::read_message(arg, d),
            _ => read_type_rule(&mut rules, arg, d),
        }
    }
    if data.variants.is_empty() {
        d.error(
            Id::EmptyEnum,
            item.ident.span(),
            format!("`{}` has no variants, so no value is valid", item.ident),
        );
    }
    let tagged = ["tag", "untagged"]
        .iter()
        .any(|key| item::has_serde_key(&item.attrs, key));
    let variants: Vec<Variant> = data
        .variants
        .iter()
        .filter_map(|variant| parse_variant(variant, &item.ident, tagged, d))
        .collect();
    check_variants(&variants, d);
    let wire_names = if tagged {
        let keys = ["tag", "content"].into_iter();
        keys.filter_map(|key| item::serde_text(&item.attrs, key))
            .collect()
    } else {
        let with_content = variants
            .iter()
            .filter(|variant| !variant.unknown && !matches!(variant.content, Content::Unit));
        with_content
            .map(|variant| variant.json_name.clone())
            .collect()
    };
    let model = ApiEnum {
        name: Name::from(&item.ident),
        description: item::description(&item.attrs),
        rules,
        conversions,
        variants,
        wire_names,
        proto: message,
        derives: item::derives(&item.attrs),
    };
    proto::check_variants(&model, tagged, d);
    Some(model)
}

fn parse_variant(
    variant: &syn::Variant,
    item: &Ident,
    tagged: bool,
    d: &mut Diagnostics,
) -> Option<Variant> {
    item::check_foreign(&variant.attrs, Place::Variant, Form::Attribute, d);
    let args = args::of_attributes(&variant.attrs, "api", Target::Variant, d);
    let name = Name::from(&variant.ident);
    let content = read_content(variant, item, d);
    if let Some((_, number)) = &variant.discriminant {
        d.error(
            Id::VariantNumber,
            SourceSpan::of(number),
            format!("`{}` is a string in JSON and has no number", name.text),
        )
        .help("remove the number; for numbers in JSON, make the field an integer with `#[api(range = 1..=3)]`");
    }
    let (mut written, mut unknown, mut proto) = (None, false, None);
    for arg in &args {
        match arg.key {
            "proto" => proto = Some(proto::read_number(arg, d)),
            "json" => written = arg.string(d).map(|name| name.value),
            "unknown" => unknown = arg.flag(d),
            _ => {}
        }
    }
    let content = content?;
    // Variants that are strings keep their names, as in Kubernetes' enums; variants that are fields of an object are
    // camelCase.
    let is_field = !tagged && !matches!(content, Content::Unit);
    let by_rule = || {
        if is_field {
            lower_first(&name.text)
        } else {
            name.text.clone()
        }
    };
    Some(Variant {
        json_name: written.unwrap_or_else(by_rule),
        description: item::description(&variant.attrs),
        unknown: unknown && check_unknown(variant, &content, d),
        content,
        proto,
        name,
    })
}

fn lower_first(name: &str) -> String {
    let mut chars = name.chars();
    chars
        .next()
        .map(|first| first.to_ascii_lowercase().to_string() + chars.as_str())
        .unwrap_or_default()
}

fn read_content(variant: &syn::Variant, item: &Ident, d: &mut Diagnostics) -> Option<Content> {
    match &variant.fields {
        Fields::Unit => Some(Content::Unit),
        Fields::Unnamed(values) if values.unnamed.len() == 1 => {
            let field = values.unnamed.first()?;
            item::check_foreign(&field.attrs, Place::Field, Form::Attribute, d);
            for arg in &args::of_attributes(&field.attrs, "api", Target::Field, d) {
                inside_parentheses(
                    arg,
                    "give the value a type of its own, or write named fields: `{ .. }`",
                    d,
                );
            }
            let ty = without_self(&field.ty, item);
            check_variant_value(&ty, d);
            Some(Content::Value(Code::new(&ty)))
        }
        Fields::Unnamed(values) => {
            d.error(
                Id::VariantShape,
                SourceSpan::of(values),
                "a variant holds one value or named fields",
            )
            .help("JSON objects have named fields: write `{ .. }`");
            for field in values.unnamed.iter().enumerate() {
                parse_field(field, of_variant(item), d);
            }
            None
        }
        Fields::Named(named) => {
            let fields: Vec<Field> = named
                .named
                .iter()
                .enumerate()
                .map(|field| parse_field(field, of_variant(item), d))
                .collect();
            for span in fields.iter().filter_map(|field| field.sensitive) {
                d.error(
                    Id::MisplacedKey,
                    span,
                    "`sensitive` has no meaning inside a variant",
                )
                .help("move the fields of the variant into a struct");
            }
            for field in fields.iter().filter(|field| field.rules.present) {
                d.error(
                    Id::MisplacedKey,
                    field.name.span,
                    "`present` has no meaning inside a variant",
                )
                .help("move the fields of the variant into a struct");
            }
            for compute in fields.iter().filter_map(|f| f.default_with.as_ref()) {
                d.error(
                    Id::DefaultTarget,
                    compute.span(),
                    "a variant has no type that a default could be computed from",
                )
                .help("move its fields into a struct");
            }
            check_siblings(&fields, d);
            check_no_union(&fields, d);
            Some(Content::Fields(fields))
        }
    }
}

fn check_unknown(variant: &syn::Variant, content: &Content, d: &mut Diagnostics) -> bool {
    let holds_string = matches!(content, Content::Value(ty) if ty.text() == "String" || ty.text().ends_with("::String"));
    if !holds_string {
        d.error(
            Id::UnknownVariant,
            variant.ident.span(),
            "an `unknown` variant holds the string that was sent",
        )
        .help(format!("write `{}(String)`", variant.ident));
    }
    holds_string
}

fn check_variants(variants: &[Variant], d: &mut Diagnostics) {
    let unknown: Vec<&Variant> = variants.iter().filter(|variant| variant.unknown).collect();
    for second in unknown.iter().skip(1) {
        d.error(
            Id::UnknownVariant,
            second.name.span,
            "there is an `unknown` variant already",
        );
    }
    if let (Some(open), Some(data)) = (
        unknown.first(),
        variants
            .iter()
            .find(|v| !v.unknown && !matches!(v.content, Content::Unit)),
    ) {
        d.error(
            Id::UnknownVariant,
            open.name.span,
            format!(
                "an enum with values, such as `{}`, cannot be open",
                data.name.text
            ),
        )
        .help("only an enum that is a string on the wire can keep what it does not know");
    }
    if let [open] = unknown[..]
        && variants.last().is_some_and(|last| !last.unknown)
    {
        d.error(
            Id::UnknownNotLast,
            open.name.span,
            format!("`{}` is not the last variant", open.name.text),
        )
        .help("move it to the end: it takes what the variants before it do not know");
    }
    for (index, variant) in variants
        .iter()
        .enumerate()
        .filter(|(_, variant)| !variant.unknown)
    {
        if variants[..index]
            .iter()
            .any(|earlier| earlier.json_name == variant.json_name)
        {
            d.error(
                Id::DuplicateName,
                variant.name.span,
                format!("two variants are {:?} in JSON", variant.json_name),
            );
        }
    }
}
