//! A value that is an integer or a string, such as a port or a percentage.

use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::field::go_quote;

/// Either an integer or a string.
///
/// ```
/// use apiloom_meta::IntOrString;
/// assert_eq!(IntOrString::from("25%").scaled_up(10), Ok(3));
/// assert_eq!(IntOrString::from(4).scaled_up(10), Ok(4));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(untagged, expecting = "a 32-bit integer or a string")]
pub enum IntOrString {
    /// An integer.
    Int(i32),
    /// A string, often a percentage.
    String(String),
}

impl IntOrString {
    /// An integer if the text is one, else a string.
    pub fn parse(text: &str) -> Self {
        text.parse().map_or_else(|_| Self::from(text), Self::Int)
    }

    /// The integer, or the percentage of `total`, rounded up.
    ///
    /// # Errors
    /// If the string is not a percentage, with the text of Kubernetes.
    pub fn scaled_up(&self, total: i32) -> Result<i64, String> {
        self.scaled(total, |share| {
            share.div_euclid(100) + i64::from(share.rem_euclid(100) != 0)
        })
    }

    /// The integer, or the percentage of `total`, rounded down.
    ///
    /// # Errors
    /// As [`IntOrString::scaled_up`].
    pub fn scaled_down(&self, total: i32) -> Result<i64, String> {
        self.scaled(total, |share| share.div_euclid(100))
    }

    fn scaled(&self, total: i32, hundredth: fn(i64) -> i64) -> Result<i64, String> {
        let text = match self {
            Self::Int(number) => return Ok(i64::from(*number)),
            Self::String(text) => text,
        };
        let why = |why: String| format!("invalid value for IntOrString: {why}");
        let percent = text
            .strip_suffix('%')
            .ok_or_else(|| why("invalid type: string is not a percentage".to_owned()))?;
        // A product of two i32 fits an i64.
        let percent: i32 = percent.parse().map_err(|_| {
            why(format!(
                "invalid value {}: strconv.Atoi: parsing {}: invalid syntax",
                go_quote(text),
                go_quote(percent)
            ))
        })?;
        Ok(hundredth(i64::from(percent) * i64::from(total)))
    }
}

impl fmt::Display for IntOrString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(number) => write!(f, "{number}"),
            Self::String(text) => f.write_str(text),
        }
    }
}

impl Default for IntOrString {
    fn default() -> Self {
        Self::Int(0)
    }
}

impl From<i32> for IntOrString {
    fn from(number: i32) -> Self {
        Self::Int(number)
    }
}

impl From<&str> for IntOrString {
    fn from(text: &str) -> Self {
        Self::String(text.to_owned())
    }
}

impl From<String> for IntOrString {
    fn from(text: String) -> Self {
        Self::String(text)
    }
}

impl JsonSchema for IntOrString {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "IntOrString".into()
    }
    fn schema_id() -> std::borrow::Cow<'static, str> {
        concat!(module_path!(), "::IntOrString").into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "description": "IntOrString is an integer or a string.", "format": "int-or-string", "x-kubernetes-int-or-string": true })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn keeps_its_type_in_json() {
        for value in [json!(5), json!(-1), json!("5"), json!("25%"), json!("")] {
            let read: IntOrString = serde_json::from_value(value.clone()).unwrap();
            assert_eq!(serde_json::to_value(read).unwrap(), value);
        }
        for value in [
            json!(1.5),
            json!(3_000_000_000_i64),
            json!(true),
            json!(null),
        ] {
            let refused = serde_json::from_value::<IntOrString>(value).unwrap_err();
            assert_eq!(refused.to_string(), "a 32-bit integer or a string");
        }
    }

    #[test]
    fn percentages_are_scaled_and_numbers_are_not() {
        for (value, up, down) in [
            (IntOrString::from(7), 7, 7),
            (IntOrString::from("0%"), 0, 0),
            (IntOrString::from("25%"), 3, 2),
            (IntOrString::from("30%"), 3, 3),
            (IntOrString::from("100%"), 10, 10),
            (IntOrString::from("150%"), 15, 15),
            (IntOrString::from("-25%"), -2, -3),
        ] {
            assert_eq!(
                (value.scaled_up(10), value.scaled_down(10)),
                (Ok(up), Ok(down)),
                "{value}"
            );
        }
        assert_eq!(
            IntOrString::from("2147483647%").scaled_up(i32::MAX),
            Ok(46_116_860_141_324_207)
        );
    }

    #[test]
    fn other_strings_are_no_percentages() {
        let check = |text: &str, why: &str| {
            assert_eq!(IntOrString::from(text).scaled_up(1).unwrap_err(), why);
        };
        check(
            "5",
            "invalid value for IntOrString: invalid type: string is not a percentage",
        );
        check(
            "x%",
            r#"invalid value for IntOrString: invalid value "x%": strconv.Atoi: parsing "x": invalid syntax"#,
        );
    }

    #[test]
    fn parse_takes_numbers_as_numbers() {
        assert_eq!(IntOrString::parse("80"), IntOrString::Int(80));
        assert_eq!(IntOrString::parse("http"), IntOrString::from("http"));
        assert_eq!(
            IntOrString::parse("3000000000"),
            IntOrString::from("3000000000")
        );
    }
}
