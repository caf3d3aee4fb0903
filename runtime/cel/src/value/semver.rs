//! Semantic versions, with the errors of the library that Kubernetes uses.

use std::cmp::Ordering;

use apiloom_schema::field::{echoed, go_quote, number_error};

/// A version of semver 2. Two with different build metadata are equal.
#[derive(Clone, Debug)]
pub(crate) struct Semver {
    pub(crate) numbers: [u64; 3],
    pub(crate) pre: String,
}

impl PartialEq for Semver {
    fn eq(&self, other: &Self) -> bool {
        self.order(other).is_eq()
    }
}

impl Semver {
    /// Reads a version, with the errors of the library that Kubernetes uses.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
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
    pub(crate) fn parse_normalized(text: &str) -> Result<Self, String> {
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

    pub(crate) fn order(&self, other: &Self) -> Ordering {
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
