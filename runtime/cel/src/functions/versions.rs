//! Quantities, semantic versions, and formats of names.

use std::cmp::Ordering;

use apiloom_meta::field::{echoed, go_quote, number_error};
use apiloom_meta::names;
use apiloom_meta::schema::has_format;

use super::amount::Amount;
use super::go_url::Url;
use super::{arg, opaque, text};
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

pub(crate) fn sign<'a>(run: &mut Run<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    run.charge(1)?;
    Ok(Value::Int(i64::from(amount(args, 0)?.quantity().signum())))
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
    combined(run, args, Amount::checked_add)
}

pub(crate) fn sub<'a>(run: &mut Run<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    combined(run, args, Amount::checked_sub)
}

fn combined<'a>(
    run: &mut Run<'a>,
    args: &[Value<'a>],
    by: fn(Amount, Amount) -> Option<Amount>,
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
        (OpaqueValue::Quantity(a), OpaqueValue::Quantity(b)) => Ok(a.quantity().cmp(b.quantity())),
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
    /// Reads a version, with the errors of the library that Kubernetes uses.
    fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("Version string empty".to_owned());
        }
        let mut parts = text.splitn(3, '.');
        let (Some(major), Some(minor), Some(rest)) = (parts.next(), parts.next(), parts.next())
        else {
            return Err("No Major.Minor.Patch elements found".to_owned());
        };
        let major = version_number("major", "Major", major)?;
        let minor = version_number("minor", "Minor", minor)?;
        let (rest, build) = match rest.split_once('+') {
            Some((rest, build)) => (rest, Some(build)),
            None => (rest, None),
        };
        let (patch, pre) = match rest.split_once('-') {
            Some((patch, pre)) => (patch, Some(pre)),
            None => (rest, None),
        };
        let patch = version_number("patch", "Patch", patch)?;
        for part in pre.into_iter().flat_map(|pre| pre.split('.')) {
            check_pre_release(part)?;
        }
        for part in build.into_iter().flat_map(|build| build.split('.')) {
            if part.is_empty() {
                return Err("Build meta data is empty".to_owned());
            }
            if !is_identifier(part) {
                let part = go_quote(&echoed(part));
                return Err(format!(
                    "Invalid character(s) found in build meta data {part}"
                ));
            }
        }
        Ok(Self {
            numbers: [major, minor, patch],
            pre: pre.unwrap_or_default().to_owned(),
        })
    }

    /// Reads a version that may begin with `v`, and may lack numbers or have leading zeros.
    fn parse_normalized(text: &str) -> Result<Self, String> {
        let text = text.strip_prefix('v').unwrap_or(text);
        let parts = text.splitn(3, '.').map(|part| {
            let digits = part.trim_start_matches('0');
            if part.len() < 2 {
                part.to_owned()
            } else if digits.starts_with(|c: char| c.is_ascii_digit()) {
                digits.to_owned()
            } else {
                format!("0{digits}")
            }
        });
        let mut parts: Vec<String> = parts.collect();
        let is_short = parts.len() < 3;
        if is_short && parts.last().is_some_and(|last| last.contains(['+', '-'])) {
            return Err("short version cannot contain PreRelease/Build meta data".to_owned());
        }
        parts.resize(3, "0".to_owned());
        Self::parse(&parts.join("."))
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

fn is_number(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_identifier(text: &str) -> bool {
    text.bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

fn has_leading_zeros(text: &str) -> bool {
    text.len() > 1 && text.starts_with('0')
}

/// A number of a version, by its name in errors.
fn version_number(name: &str, title: &str, text: &str) -> Result<u64, String> {
    let shown = || go_quote(&echoed(text));
    if !is_number(text) {
        let shown = shown();
        return Err(format!(
            "Invalid character(s) found in {name} number {shown}"
        ));
    }
    if has_leading_zeros(text) {
        let shown = shown();
        return Err(format!(
            "{title} number must not contain leading zeroes {shown}"
        ));
    }
    unsigned(text)
}

/// The number of digits.
fn unsigned(text: &str) -> Result<u64, String> {
    text.parse()
        .map_err(|error| number_error("ParseUint", text, &error))
}

fn check_pre_release(part: &str) -> Result<(), String> {
    if part.is_empty() {
        return Err("Prerelease is empty".to_owned());
    }
    let shown = || go_quote(&echoed(part));
    if !is_number(part) {
        return if is_identifier(part) {
            Ok(())
        } else {
            let shown = shown();
            Err(format!("Invalid character(s) found in prerelease {shown}"))
        };
    }
    if has_leading_zeros(part) {
        let shown = shown();
        return Err(format!(
            "Numeric PreRelease version must not contain leading zeroes {shown}"
        ));
    }
    unsigned(part).map(drop)
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

fn parse_semver(args: &[Value<'_>]) -> Result<Result<Semver, String>, Stop> {
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
        .map_err(Stop::error)
}

pub(crate) fn is_semver<'a>(run: &mut Run<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    charge_text(run, args)?;
    Ok(Value::Bool(parse_semver(args)?.is_ok()))
}

fn number<'a>(run: &mut Run<'a>, args: &[Value<'a>], index: usize) -> Outcome<'a> {
    run.charge(1)?;
    match opaque(args, 0)? {
        // As in kube-apiserver, a number above 2^63 is negative.
        OpaqueValue::Semver(version) => Ok(Value::Int(version.numbers[index].cast_signed())),
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

/// A name prefix as a name: a dash at its end is followed by more. Kubernetes replaces the byte before the dash too.
fn completed(prefix: &str) -> String {
    let before = prefix.strip_suffix('-').unwrap_or_default();
    match before.char_indices().next_back() {
        Some((last, _)) => format!("{}a", &before[..last]),
        None => prefix.to_owned(),
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
        problems: |text| Url::parse_request(text).err().into_iter().collect(),
    },
    Format {
        name: "uuid",
        problems: |text| one("does not match the UUID format", has_format("uuid", text)),
    },
    Format {
        name: "byte",
        problems: |text| one("invalid base64", has_format("byte", text)),
    },
    Format {
        name: "date",
        problems: |text| one("invalid date", has_format("date", text)),
    },
    Format {
        name: "datetime",
        problems: |text| one("invalid datetime", has_format("datetime", text)),
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
