//! JSON whose scalars are kept as they are written, read in one pass.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::codec;

/// A value whose scalars have their text.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum LiteralValue {
    Fields(BTreeMap<String, LiteralValue>),
    Items(Vec<LiteralValue>),
    Scalar(Box<str>),
}

impl LiteralValue {
    /// Reads JSON that a parser has accepted, and whose nesting is bounded by that. `None` for anything else.
    pub(super) fn parse(json: &str) -> Option<Self> {
        let mut rest = Rest(json);
        let value = rest.value()?;
        rest.skip_space();
        rest.0.is_empty().then_some(value)
    }

    /// Whether a value is written so: the fields of objects in any order, white space between values ignored.
    pub(super) fn is(&self, value: &Value) -> bool {
        match (self, value) {
            (Self::Fields(expected), Value::Object(fields)) => {
                expected.len() == fields.len()
                    && expected.iter().all(|(name, expected)| {
                        let found = fields.get(name);
                        found.is_some_and(|value| expected.is(value))
                    })
            }
            (Self::Items(expected), Value::Array(items)) => {
                let mut pairs = expected.iter().zip(items);
                expected.len() == items.len() && pairs.all(|(expected, item)| expected.is(item))
            }
            (_, Value::Object(_) | Value::Array(_)) | (Self::Fields(_) | Self::Items(_), _) => {
                false
            }
            (Self::Scalar(text), scalar) => codec::Encoder::json(scalar) == text.as_bytes(),
        }
    }
}

/// The JSON that is not read yet.
struct Rest<'t>(&'t str);

impl<'t> Rest<'t> {
    fn skip_space(&mut self) {
        self.0 = self.0.trim_start_matches([' ', '\t', '\n', '\r']);
    }

    /// Takes a character, and the white space before it. Whether it was there.
    fn take(&mut self, character: char) -> bool {
        self.skip_space();
        let rest = self.0.strip_prefix(character);
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }

    fn value(&mut self) -> Option<LiteralValue> {
        if self.take('{') {
            return self.fields().map(LiteralValue::Fields);
        }
        if self.take('[') {
            return self.items().map(LiteralValue::Items);
        }
        Some(LiteralValue::Scalar(self.scalar()?.into()))
    }

    /// The fields of an object whose brace was taken. The last of several with the same name counts.
    fn fields(&mut self) -> Option<BTreeMap<String, LiteralValue>> {
        let mut fields = BTreeMap::new();
        if self.take('}') {
            return Some(fields);
        }
        loop {
            self.skip_space();
            let name: String = serde_json::from_str(self.scalar()?).ok()?;
            if !self.take(':') {
                return None;
            }
            fields.insert(name, self.value()?);
            if !self.take(',') {
                return self.take('}').then_some(fields);
            }
        }
    }

    /// The items of a list whose bracket was taken.
    fn items(&mut self) -> Option<Vec<LiteralValue>> {
        let mut items = Vec::new();
        if self.take(']') {
            return Some(items);
        }
        loop {
            items.push(self.value()?);
            if !self.take(',') {
                return self.take(']').then_some(items);
            }
        }
    }

    /// The text of a scalar that begins here.
    fn scalar(&mut self) -> Option<&'t str> {
        let end = codec::value_end(self.0.as_bytes(), 0)?;
        let (text, rest) = self.0.split_at_checked(end)?;
        self.0 = rest;
        // A number may have white space behind it.
        let text = text.trim_end();
        (!text.is_empty()).then_some(text)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(json: &str, value: &Value, expected: bool) {
        let written = LiteralValue::parse(json).expect("well-formed JSON");
        assert_eq!(written.is(value), expected, "{json} {value}");
    }

    #[test]
    fn scalars_are_compared_by_their_text() {
        check("1", &json!(1), true);
        check("1.0", &json!(1), false);
        check(r#" "a\\\"b" "#, &json!(r#"a\"b"#), true);
        check("null", &json!(null), true);
        check("true", &json!(false), false);
        check("[]", &json!({}), false);
        check("{}", &json!(0), false);
        check("1", &json!([1]), false);
        let value = json!({"a": [1, {"b": "c"}, []], "d": {}});
        check(
            "{ \"d\" : {\n},\t\"a\":[1 , {\"b\":\"c\"},[ ] ] }",
            &value,
            true,
        );
        check(r#"{"d":1,"a":[1,{"b":"c"},[]],"\u0064":{}}"#, &value, true);
        check(r#"{"a":[1,{"b":"c"}],"d":{}}"#, &value, false);
        for malformed in ["", "[1", "{\"a\"}", "{\"a\":}", "[1]]", "{1:2}", "\"a"] {
            assert_eq!(LiteralValue::parse(malformed), None, "{malformed}");
        }
    }
}
