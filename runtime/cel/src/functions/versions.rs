//! Quantities, semantic versions, and formats of names.

use std::cmp::Ordering;

use super::{arg, opaque, text};
use crate::meter::{Meter, tenth};
use crate::stop::Stop;
use crate::value::amount::Amount;
use crate::value::name_format::FORMATS;
use crate::value::semver::Semver;
use crate::value::{OpaqueValue, Outcome, Value};

fn charge_text<'a>(meter: &mut Meter<'a>, args: &[Value<'a>]) -> Result<(), Stop> {
    meter.charge(tenth(arg(args, 0)?.size()))
}

pub(crate) fn quantity<'a>(meter: &mut Meter<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    charge_text(meter, args)?;
    match text(arg(args, 0)?)?.parse() {
        Ok(found) => Ok(Value::opaque(OpaqueValue::Quantity(found))),
        Err(error) => {
            let error: apiloom_schema::types::ParseQuantityError = error;
            Err(Stop::error(error.to_string()))
        }
    }
}

pub(crate) fn is_quantity<'a>(meter: &mut Meter<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    charge_text(meter, args)?;
    Ok(Value::Bool(text(arg(args, 0)?)?.parse::<Amount>().is_ok()))
}

fn amount(args: &[Value<'_>], index: usize) -> Result<Amount, Stop> {
    match arg(args, index)? {
        Value::Int(number) => Ok(Amount::from(*number)),
        Value::Opaque(value) => match &**value {
            OpaqueValue::Quantity(quantity) => Ok(*quantity),
            _ => Err(Stop::overload()),
        },
        _ => Err(Stop::overload()),
    }
}

pub(crate) fn sign<'a>(meter: &mut Meter<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    meter.charge(1)?;
    Ok(Value::Int(i64::from(amount(args, 0)?.quantity().signum())))
}

pub(crate) fn is_integer<'a>(meter: &mut Meter<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    meter.charge(1)?;
    Ok(Value::Bool(amount(args, 0)?.to_i64().is_some()))
}

pub(crate) fn as_integer<'a>(meter: &mut Meter<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    meter.charge(1)?;
    amount(args, 0)?
        .to_i64()
        .map(Value::Int)
        .ok_or_else(|| Stop::error("cannot convert value to integer"))
}

pub(crate) fn as_approximate_float<'a>(meter: &mut Meter<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    meter.charge(1)?;
    Ok(Value::Double(amount(args, 0)?.to_f64()))
}

pub(crate) fn add<'a>(meter: &mut Meter<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    combined(meter, args, Amount::checked_add)
}

pub(crate) fn sub<'a>(meter: &mut Meter<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    combined(meter, args, Amount::checked_sub)
}

fn combined<'a>(
    meter: &mut Meter<'a>,
    args: &[Value<'a>],
    by: fn(Amount, Amount) -> Option<Amount>,
) -> Outcome<'a> {
    meter.charge(1)?;
    by(amount(args, 0)?, amount(args, 1)?)
        .map(|found| Value::opaque(OpaqueValue::Quantity(found)))
        .ok_or_else(|| Stop::error("quantity overflow"))
}

/// The order of two quantities or two versions.
fn order<'a>(meter: &mut Meter<'a>, args: &[Value<'a>]) -> Result<Ordering, Stop> {
    meter.charge(1)?;
    match (opaque(args, 0)?, opaque(args, 1)?) {
        (OpaqueValue::Quantity(a), OpaqueValue::Quantity(b)) => Ok(a.quantity().cmp(b.quantity())),
        (OpaqueValue::Semver(a), OpaqueValue::Semver(b)) => {
            meter.charge(tenth(a.pre.len().min(b.pre.len()) as u64))?;
            Ok(a.order(b))
        }
        _ => Err(Stop::overload()),
    }
}

pub(crate) fn is_greater_than<'a>(meter: &mut Meter<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    Ok(Value::Bool(order(meter, args)?.is_gt()))
}

pub(crate) fn is_less_than<'a>(meter: &mut Meter<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    Ok(Value::Bool(order(meter, args)?.is_lt()))
}

pub(crate) fn compare_to<'a>(meter: &mut Meter<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    Ok(Value::Int(order(meter, args)? as i64))
}

fn parse_semver(args: &[Value<'_>]) -> Result<Result<Semver, String>, Stop> {
    let text = text(arg(args, 0)?)?;
    match args.get(1) {
        Some(Value::Bool(true)) => Ok(Semver::parse_normalized(text)),
        None | Some(Value::Bool(false)) => Ok(Semver::parse(text)),
        Some(_) => Err(Stop::overload()),
    }
}

pub(crate) fn semver<'a>(meter: &mut Meter<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    charge_text(meter, args)?;
    parse_semver(args)?
        .map(|found| Value::opaque(OpaqueValue::Semver(found)))
        .map_err(Stop::error)
}

pub(crate) fn is_semver<'a>(meter: &mut Meter<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    charge_text(meter, args)?;
    Ok(Value::Bool(parse_semver(args)?.is_ok()))
}

fn number<'a>(meter: &mut Meter<'a>, args: &[Value<'a>], index: usize) -> Outcome<'a> {
    meter.charge(1)?;
    match opaque(args, 0)? {
        // As in kube-apiserver, a number above 2^63 is negative.
        OpaqueValue::Semver(version) => Ok(Value::Int(version.numbers[index].cast_signed())),
        _ => Err(Stop::overload()),
    }
}

pub(crate) fn major<'a>(meter: &mut Meter<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    number(meter, args, 0)
}

pub(crate) fn minor<'a>(meter: &mut Meter<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    number(meter, args, 1)
}

pub(crate) fn patch<'a>(meter: &mut Meter<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    number(meter, args, 2)
}

pub(crate) fn format_named<'a>(meter: &mut Meter<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    meter.charge(1)?;
    let name = text(arg(args, 0)?)?;
    let found = FORMATS.iter().find(|format| format.name == name);
    Ok(found.map_or(Value::Optional(None), |format| {
        Value::some(Value::opaque(OpaqueValue::Format(*format)))
    }))
}

/// The problems of a text; none if it has the format.
pub(crate) fn validate<'a>(meter: &mut Meter<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    let OpaqueValue::Format(format) = opaque(args, 0)? else {
        return Err(Stop::overload());
    };
    let value = arg(args, 1)?;
    meter.charge(tenth(value.size() + 1).saturating_mul(32))?;
    let problems = (format.problems)(text(value)?);
    if problems.is_empty() {
        return Ok(Value::Optional(None));
    }
    let texts = problems.into_iter().map(Value::text).collect();
    Ok(Value::some(Value::list(texts)))
}

macro_rules! formats {
    ($($function:ident = $name:literal),*) => {
        $(pub(crate) fn $function<'a>(meter: &mut Meter<'a>, _args: &[Value<'a>]) -> Outcome<'a> {
            let name = Value::Text(crate::value::Text::Borrowed($name));
            match format_named(meter, &[name])? {
                Value::Optional(Some(format)) => Ok((*format).clone()),
                _ => Err(Stop::overload()),
            }
        })*
    };
}

formats!(
    dns1123_label = "dns1123Label",
    dns1123_subdomain = "dns1123Subdomain",
    dns1035_label = "dns1035Label",
    qualified_name = "qualifiedName",
    dns1123_label_prefix = "dns1123LabelPrefix",
    dns1123_subdomain_prefix = "dns1123SubdomainPrefix",
    dns1035_label_prefix = "dns1035LabelPrefix",
    label_value = "labelValue",
    uri = "uri",
    uuid = "uuid",
    byte = "byte",
    date = "date",
    datetime = "datetime"
);
