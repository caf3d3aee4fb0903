//! Quantities, semantic versions, and formats of names.

use std::cmp::Ordering;

use apiloom_meta::{Quantity, names};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::{arg, network::Url, opaque, text};
use crate::run::{Outcome, Run, Stop, tenth};
use crate::value::{OpaqueValue, Value};

fn charge_text<'a>(run: &mut Run<'a>, args: &[Value<'a>]) -> Result<(), Stop> {
    run.charge(tenth(arg(args, 0)?.size()))
}

pub(crate) fn quantity<'a>(run: &mut Run<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    charge_text(run, args)?;
    match text(arg(args, 0)?)?.parse() {
        Ok(found) => Ok(Value::opaque(OpaqueValue::Quantity(found))),
        Err(error) => {
            let error: apiloom_meta::types::ParseQuantityError = error;
            Err(Stop::error(error.to_string()))
        }
    }
}

pub(crate) fn is_quantity<'a>(run: &mut Run<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    charge_text(run, args)?;
    Ok(Value::Bool(
        text(arg(args, 0)?)?.parse::<Quantity>().is_ok(),
    ))
}

fn amount(args: &[Value<'_>], index: usize) -> Result<Quantity, Stop> {
    match arg(args, index)? {
        Value::Int(number) => Ok(Quantity::from(*number)),
        Value::Opaque(value) => match &**value {
            OpaqueValue::Quantity(quantity) => Ok(*quantity),
            _ => Err(Stop::overload()),
        },
        _ => Err(Stop::overload()),
    }
}

pub(crate) fn sign<'a>(run: &mut Run<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    run.charge(1)?;
    Ok(Value::Int(i64::from(amount(args, 0)?.signum())))
}

pub(crate) fn is_integer<'a>(run: &mut Run<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    run.charge(1)?;
    Ok(Value::Bool(amount(args, 0)?.to_i64().is_some()))
}

pub(crate) fn as_integer<'a>(run: &mut Run<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    run.charge(1)?;
    amount(args, 0)?
        .to_i64()
        .map(Value::Int)
        .ok_or_else(|| Stop::error("cannot convert value to integer"))
}

pub(crate) fn as_approximate_float<'a>(run: &mut Run<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    run.charge(1)?;
    Ok(Value::Double(amount(args, 0)?.to_f64()))
}

pub(crate) fn add<'a>(run: &mut Run<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    combined(run, args, Quantity::checked_add)
}

pub(crate) fn sub<'a>(run: &mut Run<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    combined(run, args, Quantity::checked_sub)
}

fn combined<'a>(
    run: &mut Run<'a>,
    args: &[Value<'a>],
    by: fn(Quantity, Quantity) -> Option<Quantity>,
) -> Outcome<'a> {
    run.charge(1)?;
    by(amount(args, 0)?, amount(args, 1)?)
        .map(|found| Value::opaque(OpaqueValue::Quantity(found)))
        .ok_or_else(|| Stop::error("quantity overflow"))
}

/// The order of two quantities or two versions.
fn order<'a>(run: &mut Run<'a>, args: &[Value<'a>]) -> Result<Ordering, Stop> {
    run.charge(1)?;
    match (opaque(args, 0)?, opaque(args, 1)?) {
        (OpaqueValue::Quantity(a), OpaqueValue::Quantity(b)) => Ok(a.cmp(b)),
        (OpaqueValue::Semver(a), OpaqueValue::Semver(b)) => {
            run.charge(tenth(a.pre.len().min(b.pre.len()) as u64))?;
            Ok(a.order(b))
        }
        _ => Err(Stop::overload()),
    }
}

pub(crate) fn is_greater_than<'a>(run: &mut Run<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    Ok(Value::Bool(order(run, args)?.is_gt()))
}

pub(crate) fn is_less_than<'a>(run: &mut Run<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    Ok(Value::Bool(order(run, args)?.is_lt()))
}

pub(crate) fn compare_to<'a>(run: &mut Run<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    Ok(Value::Int(order(run, args)? as i64))
}

/// A version of semver 2. Two with different build metadata are equal.
#[derive(Clone, Debug)]
pub(crate) struct Semver {
    numbers: [u64; 3],
    pre: String,
}

impl PartialEq for Semver {
    fn eq(&self, other: &Self) -> bool {
        self.order(other).is_eq()
    }
}

impl Semver {
    fn parse(text: &str) -> Option<Self> {
        let (rest, build) = match text.split_once('+') {
            Some((rest, build)) => (rest, Some(build)),
            None => (text, None),
        };
        let (numbers, pre) = match rest.split_once('-') {
            Some((numbers, pre)) => (numbers, Some(pre)),
            None => (rest, None),
        };
        let is_part = |part: &str| {
            !part.is_empty()
                && part
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        };
        let is_number =
            |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        let is_canonical = |part: &str| part.len() == 1 || !part.starts_with('0');
        if build.is_some_and(|build| !build.split('.').all(is_part)) {
            return None;
        }
        let is_pre = |part: &str| is_part(part) && (!is_number(part) || is_canonical(part));
        if pre.is_some_and(|pre| !pre.split('.').all(is_pre)) {
            return None;
        }
        let mut parsed = numbers.split('.').map(|part| {
            let is_valid = is_number(part) && is_canonical(part);
            is_valid.then(|| part.parse().ok()).flatten()
        });
        let found = [parsed.next()??, parsed.next()??, parsed.next()??];
        parsed.next().is_none().then(|| Self {
            numbers: found,
            pre: pre.unwrap_or_default().to_owned(),
        })
    }

    /// Reads a version that may begin with `v`, and may lack numbers or have leading zeros.
    fn parse_normalized(text: &str) -> Option<Self> {
        let text = text.strip_prefix('v').unwrap_or(text);
        let end = text.find(['-', '+']).unwrap_or(text.len());
        let mut parts: Vec<&str> = text[..end].split('.').collect();
        if parts.len() < 3 && end < text.len() {
            return None;
        }
        while parts.len() < 3 {
            parts.push("0");
        }
        let parts = parts.iter().map(|part| {
            let trimmed = part.trim_start_matches('0');
            if trimmed.is_empty() && !part.is_empty() {
                "0"
            } else {
                trimmed
            }
        });
        let numbers: Vec<&str> = parts.collect();
        Self::parse(&format!("{}{}", numbers.join("."), &text[end..]))
    }

    fn order(&self, other: &Self) -> Ordering {
        self.numbers.cmp(&other.numbers).then_with(|| {
            match (self.pre.is_empty(), other.pre.is_empty()) {
                (true, true) => Ordering::Equal,
                (true, false) => Ordering::Greater,
                (false, true) => Ordering::Less,
                (false, false) => self
                    .pre
                    .split('.')
                    .map(Part::of)
                    .cmp(other.pre.split('.').map(Part::of)),
            }
        })
    }
}

/// A part of a pre-release: numbers come before texts.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Part<'t> {
    /// Without leading zeros, so that the longer one is larger.
    Number(usize, &'t str),
    Text(&'t str),
}

impl<'t> Part<'t> {
    fn of(part: &'t str) -> Self {
        if part.bytes().all(|byte| byte.is_ascii_digit()) {
            Self::Number(part.len(), part)
        } else {
            Self::Text(part)
        }
    }
}

fn parse_semver(args: &[Value<'_>]) -> Result<Option<Semver>, Stop> {
    let text = text(arg(args, 0)?)?;
    match args.get(1) {
        Some(Value::Bool(true)) => Ok(Semver::parse_normalized(text)),
        None | Some(Value::Bool(false)) => Ok(Semver::parse(text)),
        Some(_) => Err(Stop::overload()),
    }
}

pub(crate) fn semver<'a>(run: &mut Run<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    charge_text(run, args)?;
    parse_semver(args)?
        .map(|found| Value::opaque(OpaqueValue::Semver(found)))
        .ok_or_else(|| Stop::error("No Major.Minor.Patch elements found"))
}

pub(crate) fn is_semver<'a>(run: &mut Run<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    charge_text(run, args)?;
    Ok(Value::Bool(parse_semver(args)?.is_some()))
}

fn number<'a>(run: &mut Run<'a>, args: &[Value<'a>], index: usize) -> Outcome<'a> {
    run.charge(1)?;
    match opaque(args, 0)? {
        OpaqueValue::Semver(version) => {
            let number = i64::try_from(version.numbers[index]);
            number
                .map(Value::Int)
                .map_err(|_| Stop::error("integer overflow"))
        }
        _ => Err(Stop::overload()),
    }
}

pub(crate) fn major<'a>(run: &mut Run<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    number(run, args, 0)
}

pub(crate) fn minor<'a>(run: &mut Run<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    number(run, args, 1)
}

pub(crate) fn patch<'a>(run: &mut Run<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    number(run, args, 2)
}

/// A format of texts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Format {
    name: &'static str,
    problems: fn(&str) -> Vec<String>,
}

impl PartialEq for Format {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

/// A name prefix as a name: a dash at its end is followed by more.
fn completed(prefix: &str) -> String {
    match prefix.strip_suffix('-') {
        Some(rest) if !rest.is_empty() => format!("{}a", &prefix[..prefix.len() - 1]),
        _ => prefix.to_owned(),
    }
}

fn one(text: &str, is_valid: bool) -> Vec<String> {
    if is_valid {
        Vec::new()
    } else {
        vec![text.to_owned()]
    }
}

const FORMATS: [Format; 13] = [
    Format {
        name: "dns1123Label",
        problems: names::dns_label,
    },
    Format {
        name: "dns1123Subdomain",
        problems: names::dns_subdomain,
    },
    Format {
        name: "dns1035Label",
        problems: names::dns1035_label,
    },
    Format {
        name: "qualifiedName",
        problems: names::qualified_name,
    },
    Format {
        name: "dns1123LabelPrefix",
        problems: |text| names::dns_label(&completed(text)),
    },
    Format {
        name: "dns1123SubdomainPrefix",
        problems: |text| names::dns_subdomain(&completed(text)),
    },
    Format {
        name: "dns1035LabelPrefix",
        problems: |text| names::dns1035_label(&completed(text)),
    },
    Format {
        name: "labelValue",
        problems: names::label_value,
    },
    Format {
        name: "uri",
        problems: |text| one("invalid URI", Url::parse(text).is_some()),
    },
    Format {
        name: "uuid",
        problems: |text| {
            one(
                "does not match the UUID format",
                names::uuid(text).is_empty(),
            )
        },
    },
    Format {
        name: "byte",
        problems: |text| one("invalid base64", STANDARD.decode(text).is_ok()),
    },
    Format {
        name: "date",
        problems: |text| {
            let moment = format!("{text}T00:00:00Z");
            one(
                "invalid date",
                super::time::parse_timestamp(&moment).is_some(),
            )
        },
    },
    Format {
        name: "datetime",
        problems: |text| {
            one(
                "invalid datetime",
                super::time::parse_timestamp(text).is_some(),
            )
        },
    },
];

pub(crate) fn format_named<'a>(run: &mut Run<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    run.charge(1)?;
    let name = text(arg(args, 0)?)?;
    let found = FORMATS.iter().find(|format| format.name == name);
    Ok(found.map_or(Value::Optional(None), |format| {
        Value::some(Value::opaque(OpaqueValue::Format(*format)))
    }))
}

/// The problems of a text; none if it has the format.
pub(crate) fn validate<'a>(run: &mut Run<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    let OpaqueValue::Format(format) = opaque(args, 0)? else {
        return Err(Stop::overload());
    };
    let value = arg(args, 1)?;
    run.charge(tenth(value.size() + 1).saturating_mul(32))?;
    let problems = (format.problems)(text(value)?);
    if problems.is_empty() {
        return Ok(Value::Optional(None));
    }
    let texts = problems.into_iter().map(Value::text).collect();
    Ok(Value::some(Value::list(texts)))
}

macro_rules! formats {
    ($($function:ident = $name:literal),*) => {
        $(pub(crate) fn $function<'a>(run: &mut Run<'a>, _args: &[Value<'a>]) -> Outcome<'a> {
            let name = Value::Text(crate::value::Text::Borrowed($name));
            match format_named(run, &[name])? {
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
