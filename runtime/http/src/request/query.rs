//! The query of a URL, decoded as in Go's net/url: `+` is a space, malformed pairs are dropped.

use apiloom_meta::field::number_error;

/// The decoded pairs of a query, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query(Vec<(String, String)>);

impl Query {
    /// Decodes a raw query. Pairs with an invalid escape or a `;` are dropped, as in Go.
    pub fn parse(raw: &str) -> Self {
        let pairs = raw
            .split('&')
            .filter(|pair| !pair.is_empty() && !pair.contains(';'));
        Self(pairs.filter_map(decode_pair).collect())
    }

    /// Decodes the query of a URI.
    pub fn of(uri: &http::Uri) -> Self {
        uri.query().map_or_else(Self::default, Self::parse)
    }

    /// Decodes one parameter of the query of a URI; the others are dropped.
    pub fn of_parameter(uri: &http::Uri, name: &str) -> Self {
        let Some(raw) = uri.query() else {
            return Self::default();
        };
        let named = raw.split('&').filter(|pair| {
            let key = pair.split_once('=').map_or(*pair, |(key, _)| key);
            // Percent-encoding makes a key at most three times as long.
            !pair.contains(';') && key.len() <= 3 * name.len() && {
                decode_form(key).as_deref() == Some(name)
            }
        });
        Self(named.filter_map(decode_pair).collect())
    }

    /// Decoded length in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let pairs = self.0.iter();
        // Two for the equals sign and the ampersand.
        pairs.map(|(key, value)| key.len() + value.len() + 2).sum()
    }

    /// The first value of a parameter; `Some("")` for `?name` and `?name=`.
    pub fn first(&self, name: &str) -> Option<&str> {
        self.0
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    }

    /// All values of a parameter, in order.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> + 'a {
        self.0
            .iter()
            .filter(move |(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    }

    /// The first value of a parameter; empty if it is absent.
    pub fn text(&self, name: &str) -> &str {
        self.first(name).unwrap_or_default()
    }

    /// A boolean: `None` if absent; `0` and `false` in any case are false; all other values, even the empty one, are
    /// true.
    pub fn boolean(&self, name: &str) -> Option<bool> {
        self.first(name)
            .map(|value| !(value == "0" || value.eq_ignore_ascii_case("false")))
    }

    /// An integer.
    ///
    /// # Errors
    /// The message of the API's BadRequest.
    pub fn integer(&self, name: &str) -> Result<Option<i64>, String> {
        self.first(name).map(parse_int).transpose()
    }
}

/// Parses a decimal number, with the error texts of Go's strconv.
fn parse_int(text: &str) -> Result<i64, String> {
    text.parse()
        .map_err(|error| number_error("ParseInt", text, &error))
}

fn decode_pair(pair: &str) -> Option<(String, String)> {
    let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
    Some((decode_form(key)?, decode_form(value)?))
}

/// Decodes a key or a value, where `+` is a space.
fn decode_form(text: &str) -> Option<String> {
    if text.contains('+') {
        decode(&text.replace('+', " "))
    } else {
        decode(text)
    }
}

/// Decodes percent-encoding; `None` for an invalid escape. Bytes that are not UTF-8 become U+FFFD.
pub fn decode(text: &str) -> Option<String> {
    if !text.contains('%') {
        return Some(text.to_owned());
    }
    let out = decode_bytes(text)?;
    Some(
        String::from_utf8(out)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()),
    )
}

/// Decodes percent-encoding to the bytes that were sent; `None` for an invalid escape.
pub(crate) fn decode_bytes(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte == b'%' {
            out.push(hex(bytes.next()?)? << 4 | hex(bytes.next()?)?);
        } else {
            out.push(byte);
        }
    }
    Some(out)
}

fn hex(byte: u8) -> Option<u8> {
    // A hexadecimal digit is below 16, so the conversion loses nothing.
    char::from(byte)
        .to_digit(16)
        .and_then(|digit| u8::try_from(digit).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(raw: &str, expected: &[(&str, &str)]) {
        let expected = expected
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
            .collect();
        assert_eq!(Query::parse(raw), Query(expected), "{raw}");
    }

    #[test]
    fn pairs_are_decoded_and_bad_ones_left_out() {
        check("", &[]);
        check("a=1&b", &[("a", "1"), ("b", "")]);
        check("a=x+y&b=%2B", &[("a", "x y"), ("b", "+")]);
        check("a=%zz&b=1", &[("b", "1")]);
        check("a=%2&b=1", &[("b", "1")]);
        check("a=1;c=2&b=1", &[("b", "1")]);
        check("&&a=b=c", &[("a", "b=c")]);
        check("a=%ff", &[("a", "\u{fffd}")]);
    }

    #[test]
    fn booleans_are_true_unless_zero_or_false() {
        for (raw, expected) in [
            ("x=1", None),
            ("watch", Some(true)),
            ("watch=", Some(true)),
            ("watch=1", Some(true)),
            ("watch=yes", Some(true)),
            ("watch=0", Some(false)),
            ("watch=False", Some(false)),
            ("watch=false&watch=true", Some(false)),
        ] {
            assert_eq!(Query::parse(raw).boolean("watch"), expected, "{raw}");
        }
    }

    #[test]
    fn integers_fail_with_the_text_of_the_api() {
        for (raw, expected) in [
            ("", Ok(None)),
            ("limit=5", Ok(Some(5))),
            ("limit=-1", Ok(Some(-1))),
            (
                "limit=",
                Err("strconv.ParseInt: parsing \"\": invalid syntax"),
            ),
            (
                "limit=x",
                Err("strconv.ParseInt: parsing \"x\": invalid syntax"),
            ),
            (
                "limit=99999999999999999999",
                Err("strconv.ParseInt: parsing \"99999999999999999999\": value out of range"),
            ),
        ] {
            assert_eq!(
                Query::parse(raw).integer("limit"),
                expected.map_err(str::to_owned),
                "{raw}"
            );
        }
    }
}
