//! Reads the rules of one value.

use syn::{Expr, Lit, UnOp};

use super::cel::read_cel;
use super::{ListTopology, MapTopology, PatchRule, Rules, Transition};
use crate::args::Arg;
use crate::diagnostics::DiagnosticId as Id;
use crate::formats::FORMATS;
use crate::keys::Target;
use crate::values::Bounds;
use crate::words::look_up;
use crate::{Code, Diagnostics, Name, SpannedValue};

const TRANSITIONS: &[(&str, Transition)] = &[
    ("no_set", Transition::NoSet),
    ("no_unset", Transition::NoUnset),
    ("no_modify", Transition::NoModify),
    ("no_add_item", Transition::NoAddItem),
    ("no_remove_item", Transition::NoRemoveItem),
];

/// Reads one key into the rules; the caller handles keys that are not rules. A flat table.
pub(crate) fn read_rule(rules: &mut Rules, arg: &Arg, d: &mut Diagnostics) {
    match arg.key {
        "required" => rules.required = arg.flag(d),
        "present" => rules.present = arg.flag(d),
        "forbidden" => rules.forbidden = arg.flag(d),
        "nullable" => rules.nullable = arg.flag(d),
        "min" => rules.min = arg.code(d),
        "max" => rules.max = arg.code(d),
        "gt" => rules.gt = arg.code(d),
        "lt" => rules.lt = arg.code(d),
        "range" => {
            let Bounds { min, max } = read_bounds(arg, d);
            (rules.min, rules.max) = (min, max);
        }
        "multiple_of" => rules.multiple_of = arg.code(d),
        "len" => rules.len = read_bounds(arg, d),
        "bytes" => rules.bytes = read_bounds(arg, d),
        "items" => rules.items = read_bounds(arg, d),
        "props" => rules.props = read_bounds(arg, d),
        "pattern" => rules.pattern = arg.string(d),
        "format" => rules.format = read_format(arg, d),
        "neq" => rules.neq = arg.code(d),
        "each" => rules.each = read_nested(arg, Target::Each, d),
        "keys" => rules.keys = read_nested(arg, Target::Keys, d),
        "requires" => rules.requires = arg.names(d),
        "conflicts" => rules.conflicts = arg.names(d),
        "unique" => rules.unique = arg.flag(d),
        "opaque" => rules.opaque = arg.flag(d),
        "immutable" if arg.flag(d) => rules.update.push(Transition::Immutable),
        "monotonic" if arg.flag(d) => rules.update.push(Transition::Monotonic),
        "update" => read_update(rules, arg, d),
        "custom" => rules.custom.extend(arg.code(d)),
        "cel" => rules.cel.extend(read_cel(arg, d)),
        "list" => rules.list = read_list(arg, d),
        "duplicates" => rules.duplicates = arg.flag(d),
        "map" => rules.map = read_map(arg, d),
        "patch" => rules.patch = read_patch(arg, d),
        "atomic" if arg.flag(d) => rules.atomic = true,
        "preserve_unknown" => rules.preserve_unknown = arg.flag(d),
        "embedded_resource" => rules.embedded_resource = arg.flag(d),
        "int_or_string" => rules.int_or_string = arg.flag(d),
        "schema" => rules.schema = arg.string(d),
        "example" => rules.example = arg.code(d),
        "title" => rules.title = arg.string(d).map(|text| text.value),
        "deprecated" => rules.deprecated = arg.optional_string(d),
        _ => {}
    }
    if matches!(arg.key, "min" | "max" | "gt" | "lt") {
        let strict = rules.gt.is_some() || rules.lt.is_some();
        let (low, high) = (
            rules.min.as_ref().or(rules.gt.as_ref()),
            rules.max.as_ref().or(rules.lt.as_ref()),
        );
        check_order(low, high, strict, d);
    }
}

fn read_bounds(arg: &Arg, d: &mut Diagnostics) -> Bounds {
    let bounds = arg.bounds(d);
    check_order(bounds.min.as_ref(), bounds.max.as_ref(), false, d);
    bounds
}

/// The value of a literal; constants are known to rustc only.
pub(crate) fn literal(code: &Code) -> Option<f64> {
    fn number(expr: &Expr) -> Option<f64> {
        match expr {
            Expr::Lit(lit) => match &lit.lit {
                Lit::Int(int) => int.base10_parse().ok(),
                Lit::Float(float) => float.base10_parse().ok(),
                _ => None,
            },
            Expr::Unary(unary) if matches!(unary.op, UnOp::Neg(_)) => {
                number(&unary.expr).map(|n| -n)
            }
            _ => None,
        }
    }
    number(&syn::parse2(quote::ToTokens::to_token_stream(code)).ok()?)
}

fn check_order(low: Option<&Code>, high: Option<&Code>, strict: bool, d: &mut Diagnostics) {
    let (Some(low), Some(high)) = (low, high) else {
        return;
    };
    let (Some(least), Some(most)) = (literal(low), literal(high)) else {
        return;
    };
    if least > most || strict && least >= most {
        d.error(
            Id::EmptyRange,
            high.span(),
            format!(
                "no value is at least {} and at most {}",
                low.text(),
                high.text()
            ),
        )
        .help("the lower bound comes first");
    }
}

fn read_format(arg: &Arg, d: &mut Diagnostics) -> Option<SpannedValue<String>> {
    let mut word = arg.word(d)?;
    word.value = word.value.replace('-', "_");
    let json = look_up(&word, "format", FORMATS, d)?;
    Some(SpannedValue {
        value: json.to_owned(),
        span: word.span,
    })
}

fn read_nested(arg: &Arg, target: Target, d: &mut Diagnostics) -> Option<Box<Rules>> {
    let mut rules = Rules::default();
    for arg in &arg.list(target, d)? {
        read_rule(&mut rules, arg, d);
    }
    Some(Box::new(rules))
}

fn read_update(rules: &mut Rules, arg: &Arg, d: &mut Diagnostics) {
    for word in arg.words(d) {
        let Some(transition) = look_up(&word, "transition", TRANSITIONS, d) else {
            continue;
        };
        if rules.update.contains(&transition) {
            d.error(
                Id::DuplicateName,
                word.span,
                format!("`{}` stands here twice", word.value),
            );
        }
        rules.update.push(transition);
    }
}

fn read_list(arg: &Arg, d: &mut Diagnostics) -> Option<ListTopology> {
    let before = d.errors().len();
    let (word, keys) = arg.call(d)?;
    let topology = look_up(
        &word,
        "list topology",
        &[("atomic", 0), ("set", 1), ("map", 2)],
        d,
    )?;
    if topology == 2 && keys.is_empty() && d.errors().len() == before {
        d.error(Id::MissingKey, word.span, "a list map has at least one key")
            .help("write `list = map(name)`");
    }
    if topology != 2 && !keys.is_empty() {
        d.error(
            Id::KeyForm,
            word.span,
            format!("`{}` takes no keys", word.value),
        );
    }
    check_twice(&keys, d);
    Some(match topology {
        0 => ListTopology::Atomic,
        1 => ListTopology::Set,
        _ => ListTopology::Map(keys),
    })
}

fn read_patch(arg: &Arg, d: &mut Diagnostics) -> Option<PatchRule> {
    let mut rule = PatchRule {
        merge: false,
        replace: false,
        retain_keys: false,
        key: None,
    };
    let args = arg.list(Target::Patch, d)?;
    for arg in &args {
        match arg.key {
            "merge" => rule.merge = arg.flag(d),
            "replace" => rule.replace = arg.flag(d),
            "retain_keys" => rule.retain_keys = arg.flag(d),
            "key" => rule.key = arg.names(d).into_iter().next(),
            _ => {}
        }
    }
    if args.has("key") && !args.has("merge") {
        d.error(Id::MissingKey, arg.span(), "`key` belongs to `merge`")
            .help("write `patch(merge, key = name)`");
    } else if rule.strategy().is_empty() && !args.has("key") {
        d.error(Id::MissingKey, arg.span(), "the patch strategy is missing")
            .help("write `patch(merge)`, `patch(replace)` or `patch(retain_keys)`");
    }
    Some(rule)
}

/// A merged list with one key is merged by it, if `patch(..)` has no other.
pub(crate) fn settle_patch_key(rules: &mut Rules, d: &mut Diagnostics) {
    let Some(rule) = rules
        .patch
        .as_mut()
        .filter(|rule| rule.merge && rule.key.is_none())
    else {
        return;
    };
    let Some(ListTopology::Map(keys)) = &rules.list else {
        return;
    };
    match keys.as_slice() {
        [key] => rule.key = Some(key.clone()),
        [first, ..] => {
            d.error(
                Id::MissingKey,
                first.span,
                "a list with several keys is merged by one of them",
            )
            .help(format!("write `patch(merge, key = {})`", first.text));
        }
        [] => {}
    }
}

fn check_twice(keys: &[Name], d: &mut Diagnostics) {
    for (index, key) in keys.iter().enumerate() {
        if keys[..index].contains(key) {
            d.error(
                Id::DuplicateName,
                key.span,
                format!("the key `{}` stands here twice", key.text),
            );
        }
    }
}

fn read_map(arg: &Arg, d: &mut Diagnostics) -> Option<MapTopology> {
    let word = arg.word(d)?;
    look_up(
        &word,
        "map topology",
        &[
            ("atomic", MapTopology::Atomic),
            ("granular", MapTopology::Granular),
        ],
        d,
    )
}
