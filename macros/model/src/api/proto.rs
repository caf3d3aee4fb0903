//! Reads the numbers of Protobuf fields, and checks them. The keys are `proto = N` on fields and variants, and
//! `proto(name = "..", reserved = [..], reserved_names = [..])` on types.

use syn::Attribute;

use super::{ApiEnum, Content, Field, Shape, Variant};
use crate::args::Arg;
use crate::diagnostics::DiagnosticId as Id;
use crate::item;
use crate::keys::Target;
use crate::values::{ProtoMessage, ProtoNumber};
use crate::{Diagnostics, Name, SpannedValue};

/// The largest number of a field: 29 bits.
const MAX: u32 = (1 << 29) - 1;
/// Numbers that Protobuf keeps for itself.
const OF_PROTOBUF: std::ops::RangeInclusive<u32> = 19_000..=19_999;

/// `proto = 1`, or `proto(number = 1, omit_empty)`.
pub(super) fn read_number(arg: &Arg, d: &mut Diagnostics) -> ProtoNumber {
    let (mut number, mut omit_empty) = (None, false);
    if arg.is_list() {
        let args = arg.list(Target::ProtoField, d);
        for arg in args.iter().flatten() {
            match arg.key {
                "number" => number = arg.integers(d).into_iter().next(),
                "omit_empty" => omit_empty = arg.flag(d),
                _ => {}
            }
        }
        if args.is_some_and(|args| !args.has("number")) {
            d.error(Id::MissingKey, arg.span(), "`number` is missing")
                .help("add `number = 1`");
        }
    } else {
        number = arg.integers(d).into_iter().next();
    }
    let valid = number.and_then(|number| in_range(&number, d));
    ProtoNumber {
        number: valid.map_or(0, |number| number.value),
        omit_empty,
        span: number.map_or_else(|| arg.span(), |number| number.span),
    }
}

/// `proto(name = "Part", reserved = [4, 8], reserved_names = ["x"])`.
pub(super) fn read_message(arg: &Arg, d: &mut Diagnostics) -> ProtoMessage {
    let mut message = ProtoMessage {
        span: Some(arg.span()),
        ..ProtoMessage::default()
    };
    let Some(args) = arg.list(Target::ProtoType, d) else {
        return message;
    };
    for arg in &args {
        match arg.key {
            "name" => message.name = arg.string(d).inspect(|name| check_name(name, d)),
            "reserved" => {
                let numbers = arg.integers(d);
                message.reserved = numbers.iter().filter_map(|n| in_range(n, d)).collect();
            }
            "reserved_names" => message.reserved_names = arg.strings(d),
            _ => {}
        }
    }
    message
}

fn check_name(name: &SpannedValue<String>, d: &mut Diagnostics) {
    let is_word = name.chars().all(|c| c.is_ascii_alphanumeric());
    if !is_word || !name.starts_with(|c: char| c.is_ascii_uppercase()) {
        d.error(
            Id::BadName,
            name.span,
            format!("{:?} is no name of a message", name.value),
        )
        .help("write a CamelCase word");
    }
}

fn in_range(number: &SpannedValue<i64>, d: &mut Diagnostics) -> Option<SpannedValue<u32>> {
    let valid = u32::try_from(number.value)
        .ok()
        .filter(|n| (1..=MAX).contains(n));
    match valid {
        None => d
            .error(
                Id::ProtoNumber,
                number.span,
                format!("{} is no number of a Protobuf field", number.value),
            )
            .help(format!("the numbers are 1 to {MAX}")),
        Some(n) if OF_PROTOBUF.contains(&n) => {
            d.error(
                Id::ProtoNumber,
                number.span,
                format!("Protobuf keeps the number {n} for itself"),
            )
            .help("take one that is not between 19000 and 19999");
            return None;
        }
        Some(_) => {}
    }
    valid.map(|n| SpannedValue::new(n, number.span))
}

/// The key of serde's that gives a field another JSON form than its type has.
pub(super) fn json_form_key(attrs: &[Attribute]) -> Option<&'static str> {
    let mut keys = ["with", "serialize_with", "deserialize_with"].into_iter();
    keys.find(|key| item::has_serde_key(attrs, key))
}

/// Reports a number of a field whose JSON form is not that of its type.
pub(super) fn check_json_form(field: &Field, attrs: &[Attribute], d: &mut Diagnostics) {
    let Some(number) = &field.proto else { return };
    if let Some(key) = json_form_key(attrs) {
        d.error(
            Id::ProtoShape,
            number.span,
            format!("`serde({key})` gives the field a JSON form of its own, and Protobuf does not know it"),
        )
        .help("give the field a type with that form, or leave the numbers of this type out");
    }
}

/// Reports numbers in a type that keeps unknown fields.
pub(super) fn check_keeps(keeps_unknown: bool, fields: &[Field], d: &mut Diagnostics) {
    let number = fields.iter().find_map(|field| field.proto.as_ref());
    if let Some(number) = number.filter(|_| keeps_unknown) {
        d.error(
            Id::ProtoShape,
            number.span,
            "the type keeps unknown fields, which Protobuf would lose",
        )
        .help("leave its numbers out, or `preserve_unknown`");
    }
}

/// A field or a variant of a message.
struct Member<'a> {
    name: &'a Name,
    json_name: &'a str,
    number: Option<&'a ProtoNumber>,
}

/// Gives the metadata of a kind whose other fields have numbers its number, which is 1 in all kinds.
pub(super) fn number_metadata(fields: &mut [Field]) {
    let has_numbers = fields.iter().any(|field| field.proto.is_some());
    let metadata = fields
        .iter_mut()
        .find(|field| field.json_name == "metadata");
    if let Some(metadata) = metadata.filter(|field| has_numbers && field.proto.is_none()) {
        metadata.proto = Some(ProtoNumber {
            number: 1,
            omit_empty: false,
            span: metadata.name.span.into(),
        });
    }
}

/// Checks the numbers of the fields of a struct, or of a variant.
pub(super) fn check_fields(
    owner: &str,
    fields: &[Field],
    message: &ProtoMessage,
    d: &mut Diagnostics,
) {
    let members: Vec<Member<'_>> = fields
        .iter()
        .map(|field| Member {
            name: &field.name,
            json_name: &field.json_name,
            number: field.proto.as_ref(),
        })
        .collect();
    check_members(owner, &members, message, d);
    for field in fields {
        let Some(number) = &field.proto else { continue };
        if field.flatten && !matches!(field.shape, Shape::Other) {
            d.error(
                Id::ProtoShape,
                number.span,
                "only a struct that is flattened is a message of its own in Protobuf",
            )
            .help("flatten a struct with numbers, or leave the numbers of this type out");
        }
        if number.omit_empty && matches!(field.shape, Shape::List | Shape::Map) {
            d.error(
                Id::ProtoShape,
                number.span,
                "an empty list or map is always omitted",
            )
            .help(format!("write `proto = {}`", number.number));
        }
    }
}

/// Checks that all members have numbers or none, and each another one.
fn check_members(owner: &str, members: &[Member<'_>], message: &ProtoMessage, d: &mut Diagnostics) {
    let numbers = || members.iter().filter_map(|member| member.number);
    if numbers().next().is_none() {
        let span = message.span.filter(|_| !members.is_empty());
        if let Some(span) = span {
            d.error(
                Id::ProtoMissing,
                span,
                format!("`{owner}` is no Protobuf message: its parts have no numbers"),
            )
            .help("add `#[api(proto = 1)]` to them, or remove `proto(..)`");
        }
        return;
    }
    let reserved = message.reserved.iter().map(|n| n.value);
    let largest = numbers().map(|n| n.number).chain(reserved).max();
    let largest = largest.unwrap_or_default();
    let mut free = largest;
    for (index, member) in members.iter().enumerate() {
        let Some(ProtoNumber { number, span, .. }) = member.number else {
            free += 1;
            d.error(
                Id::ProtoMissing,
                member.name.span,
                format!(
                    "`{}` has no number, and other parts of `{owner}` have",
                    member.name.text
                ),
            )
            .help(format!(
                "add `#[api(proto = {free})]`: Protobuf would lose it"
            ));
            continue;
        };
        if *number == 0 {
            continue;
        }
        let mut earlier = members[..index].iter();
        if let Some(twin) = earlier.find(|m| m.number.is_some_and(|n| n.number == *number)) {
            d.error(
                Id::ProtoNumber,
                *span,
                format!("`{}` has the number {number} too", twin.name.text),
            )
            .help(format!("take {}", largest + 1));
        }
        if message.reserved.iter().any(|n| n.value == *number) {
            d.error(
                Id::ProtoNumber,
                *span,
                format!("the number {number} is reserved: an earlier field had it"),
            )
            .help(format!("take {}", largest + 1));
        }
        if message
            .reserved_names
            .iter()
            .any(|n| n.value == member.json_name)
        {
            d.error(
                Id::ProtoNumber,
                member.name.span,
                format!(
                    "the name {:?} is reserved: an earlier field had it",
                    member.json_name
                ),
            )
            .help("give the field another name");
        }
    }
}

/// Checks the numbers of variants. Only an enum whose variants are all objects is a message.
pub(super) fn check_variants(model: &ApiEnum, is_tagged: bool, d: &mut Diagnostics) {
    for variant in &model.variants {
        check_fields(
            &variant.name.text,
            variant.fields(),
            &ProtoMessage::default(),
            d,
        );
    }
    let members: Vec<Member<'_>> = model
        .variants
        .iter()
        .map(|variant| Member {
            name: &variant.name,
            json_name: &variant.json_name,
            number: variant.proto.as_ref(),
        })
        .collect();
    let Some(first) = members.iter().find_map(|member| member.number) else {
        let fields = model.variants.iter().flat_map(Variant::fields);
        for number in fields.filter_map(|field| field.proto.as_ref()).take(1) {
            d.error(
                Id::ProtoMissing,
                number.span,
                "the fields of a variant have numbers, and the variant has none",
            )
            .help("add `#[api(proto = 1)]` to each variant");
        }
        return;
    };
    if model.is_plain() {
        d.error(
            Id::ProtoShape,
            first.span,
            format!("`{}` is a string, also in Protobuf", model.name.text),
        )
        .help("remove the numbers of its variants");
        return;
    }
    if is_tagged {
        d.error(
            Id::ProtoShape,
            first.span,
            "an enum with a tag of serde's is no Protobuf message",
        )
        .help("write a struct with `#[api(union(tag = field))]`");
        return;
    }
    let mut strings = model.variants.iter();
    let string = strings.find(|variant| matches!(variant.content, Content::Unit));
    match string {
        Some(variant) => d
            .error(
                Id::ProtoShape,
                variant.name.span,
                format!(
                    "`{}` is a string in JSON, so the enum is no Protobuf message",
                    variant.name.text
                ),
            )
            .help(format!(
                "write `{} {{}}`, which is an object",
                variant.name.text
            )),
        None => check_members(&model.name.text, &members, &model.proto, d),
    }
}
