//! Searches JSON from this codec without decoding it; it is compact and well-formed.
//!
//! In other input some values may not be found; nothing panics.

use std::borrow::Cow;

use memchr::memchr2;

use crate::path::JsonPath;

/// Paths whose values are searched for together in one walk.
#[derive(Clone, Debug)]
pub struct Finder(Vec<JsonPath>);

/// Number of paths per walk: one for each bit of a set.
const TOGETHER: usize = u64::BITS as usize;

impl Finder {
    /// A finder for the values at these paths.
    pub fn new(paths: impl IntoIterator<Item = JsonPath>) -> Self {
        Self(paths.into_iter().collect())
    }

    /// The JSON at each path; `None` if a step is missing or not an object.
    ///
    /// ```
    /// use apiloom_meta::{JsonPath, codec::Finder};
    /// let finder = Finder::new([JsonPath::new(["spec", "size"]), JsonPath::new(["spec", "color"])]);
    /// let found = finder.find(br#"{"metadata":{"name":"a"},"spec":{"color":"red"}}"#);
    /// assert_eq!(found, [None, Some(&b"\"red\""[..])]);
    /// ```
    pub fn find<'a>(&self, json: &'a [u8]) -> Vec<Option<&'a [u8]>> {
        self.find_beside(json, (0, 0))
    }

    /// As [`Finder::find`], in JSON one of whose values has a known start and end: no more of it is read than the paths
    /// into it need.
    pub fn find_beside<'a>(&self, json: &'a [u8], known: (usize, usize)) -> Vec<Option<&'a [u8]>> {
        let mut found = vec![None; self.0.len()];
        for (paths, found) in self.0.chunks(TOGETHER).zip(found.chunks_mut(TOGETHER)) {
            let all = (0..paths.len()).fold(0, |all, number| all | 1 << number);
            let mut walk = Walk {
                json,
                known,
                paths,
                found,
                left: all,
            };
            walk.object(0, 0, all);
        }
        found
    }
}

struct Walk<'p, 'f, 'a> {
    json: &'a [u8],
    /// Start and end of a value; (0, 0) if none is known.
    known: (usize, usize),
    paths: &'p [JsonPath],
    found: &'f mut [Option<&'a [u8]>],
    /// The set of paths without a value so far.
    left: u64,
}

impl Walk<'_, '_, '_> {
    /// Searches the object at a position, to which the paths in `set` lead in `depth` steps.
    fn object(&mut self, at: usize, depth: usize, set: u64) -> Option<()> {
        let known = self.known;
        for member in members_beside(self.json, at, known) {
            let (mut here, mut below) = (0, 0);
            for number in ones(set) {
                let names = self.paths[number].names();
                if names.get(depth).is_some_and(|name| *name == member.name) {
                    if names.len() == depth + 1 {
                        here |= 1 << number;
                    } else {
                        below |= 1 << number;
                    }
                }
            }
            if below != 0 && self.json.get(member.value) == Some(&b'{') {
                self.object(member.value, depth + 1, below);
            }
            if here != 0 {
                let value = self
                    .json
                    .get(member.value..end_beside(self.json, member.value, known)?);
                for number in ones(here) {
                    self.found[number] = value;
                }
                self.left &= !here;
            }
            if self.left & set == 0 {
                break;
            }
        }
        Some(())
    }
}

/// Indexes of the bits that are set.
fn ones(mut set: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let number = set.trailing_zeros() as usize;
        (number < TOGETHER).then(|| {
            set &= set - 1;
            number
        })
    })
}

pub(crate) struct Member<'a> {
    /// Start of the member.
    pub(crate) start: usize,
    pub(crate) name: Cow<'a, str>,
    /// Start of its value.
    pub(crate) value: usize,
}

/// The members of the object at a position. A value is skipped only if the next member is requested.
pub(crate) fn members(json: &[u8], at: usize) -> impl Iterator<Item = Member<'_>> {
    members_beside(json, at, (0, 0))
}

/// As [`members`], in JSON one of whose values has a known start and end.
fn members_beside(
    json: &[u8],
    at: usize,
    known: (usize, usize),
) -> impl Iterator<Item = Member<'_>> {
    let mut value: Option<usize> = None;
    std::iter::from_fn(move || {
        let (separator, end) = match value {
            None => (b'{', at),
            Some(value) => (b',', end_beside(json, value, known)?),
        };
        let member = (json.get(end) == Some(&separator)).then(|| member(json, end + 1))??;
        value = Some(member.value);
        Some(member)
    })
}

/// The member at `at`; `None` at the end of the object.
pub(crate) fn member(json: &[u8], at: usize) -> Option<Member<'_>> {
    let end = string_end(json, at)?;
    let name = unquoted(json.get(at..end)?)?;
    (json.get(end) == Some(&b':')).then_some(Member {
        start: at,
        name,
        value: end + 1,
    })
}

/// The name of the member at `at`.
pub(super) fn member_name(json: &[u8], at: usize) -> Option<Cow<'_, str>> {
    unquoted(json.get(at..string_end(json, at)?)?)
}

fn unquoted(quoted: &[u8]) -> Option<Cow<'_, str>> {
    Some(if quoted.contains(&b'\\') {
        Cow::Owned(serde_json::from_slice(quoted).ok()?)
    } else {
        Cow::Borrowed(std::str::from_utf8(quoted.get(1..quoted.len() - 1)?).ok()?)
    })
}

/// As [`value_end`], in JSON one of whose values has a known start and end. No value starts at 0 but the whole.
fn end_beside(json: &[u8], at: usize, known: (usize, usize)) -> Option<usize> {
    if at > 0 && at == known.0 {
        Some(known.1)
    } else {
        value_end(json, at)
    }
}

/// End of the value at `at`; `None` if it is malformed.
pub fn value_end(json: &[u8], at: usize) -> Option<usize> {
    match json.get(at)? {
        b'"' => string_end(json, at),
        b'{' | b'[' => {
            let mut depth = 0usize;
            let mut at = at;
            loop {
                let byte = *json.get(at)?;
                at += 1;
                match byte {
                    b'"' => at = end_of_text(json, at)?,
                    b'{' | b'[' => depth += 1,
                    b'}' | b']' => {
                        depth -= 1;
                        if depth == 0 {
                            return Some(at);
                        }
                    }
                    _ => {}
                }
            }
        }
        _ => {
            let rest = json.get(at..)?;
            let len = rest
                .iter()
                .position(|byte| matches!(byte, b',' | b'}' | b']'));
            Some(at + len.unwrap_or(rest.len()))
        }
    }
}

/// End of the string at `at`, after its quote.
pub(crate) fn string_end(json: &[u8], at: usize) -> Option<usize> {
    if json.get(at) != Some(&b'"') {
        return None;
    }
    end_of_text(json, at + 1)
}

/// Number of words in which the end of a string is searched without the setup of a search, which takes longer.
const SHORT_WORDS: usize = 4;

/// End of the string whose text begins at `at`, after its quote.
fn end_of_text(json: &[u8], at: usize) -> Option<usize> {
    let mut at = at;
    for _ in 0..SHORT_WORDS {
        let Some(word) = json.get(at..)?.first_chunk() else {
            break;
        };
        match quote_or_backslash(u64::from_le_bytes(*word)) {
            None => at += size_of_val(word),
            Some(found) if json[at + found] == b'"' => return Some(at + found + 1),
            // The character after a backslash does not end the string.
            Some(found) => at += found + 2,
        }
    }
    loop {
        let rest = json.get(at..)?;
        at += memchr2(b'"', b'\\', rest)?;
        match json[at] {
            b'"' => return Some(at + 1),
            // The character after a backslash does not end the string.
            _ => at += 2,
        }
    }
}

/// The first byte of a word that is a quote or a backslash.
fn quote_or_backslash(word: u64) -> Option<usize> {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    // Sets the highest bit of each byte that is zero, and perhaps of later ones.
    let zeros = |word: u64| word.wrapping_sub(ONES) & !word & (ONES << 7);
    let found = zeros(word ^ (ONES * u64::from(b'"'))) | zeros(word ^ (ONES * u64::from(b'\\')));
    (found != 0).then(|| (found.trailing_zeros() / u8::BITS) as usize)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::codec::Encoder;

    fn check(document: &Value, paths: &[&str]) {
        let paths: Vec<JsonPath> = paths
            .iter()
            .map(|path| JsonPath::parse(path).unwrap())
            .collect();
        let json = Encoder::json(document);
        let found: Vec<Option<Value>> = Finder::new(paths.clone())
            .find(&json)
            .into_iter()
            .map(|found| found.map(|found| serde_json::from_slice(found).unwrap()))
            .collect();
        let expected: Vec<Option<Value>> = paths
            .iter()
            .map(|path| path.get(document).cloned())
            .collect();
        assert_eq!(found, expected, "{document}");
        let finder = Finder::new(paths);
        for member in members(&json, 0).filter(|member| member.value > 0) {
            let known = (member.value, value_end(&json, member.value).unwrap());
            assert_eq!(finder.find_beside(&json, known), finder.find(&json));
        }
    }

    #[test]
    fn values_are_found_wherever_they_stand() {
        let document = json!({
            "metadata": {"name": "a", "annotations": {"x": "\"}{\\", "spec": "no"}},
            "spec": {"size": 3, "nested": {"deep": [1, {"a": "]"}], "on": true}, "none": null, "text": "ü<>&\u{2028}"},
            "status": {},
            "last": -1.5e300,
        });
        check(&document, &["metadata.name", "spec.size", "last"]);
        check(
            &document,
            &["spec.nested.deep", "spec.nested", "spec.nested.on"],
        );
        check(
            &document,
            &[
                "spec.none",
                "spec.text",
                "status",
                "status.x",
                "spec.size.x",
            ],
        );
        check(&document, &["nothing", "metadata.annotations.x", "spec"]);
        check(&document, &["spec.size", "spec.size"]);
        check(&json!({}), &["a"]);
        check(&document, &[]);
    }

    #[test]
    fn escaped_names_are_compared_as_what_they_mean() {
        check(&json!({"a<b": {"c\"d": 1}, "e": 2}), &["a<b.c\"d", "e"]);
    }

    #[test]
    fn any_number_of_paths_is_found() {
        let document: Value = (0..150).map(|n| (format!("f{n}"), json!(n))).collect();
        let paths: Vec<String> = (0..150).rev().map(|n| format!("f{n}")).collect();
        let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
        check(&document, &paths);
    }

    #[test]
    fn strings_of_any_length_end_at_their_quote() {
        for len in 0..100 {
            for escape in ["", "\\\"", "\\\\", "é"] {
                for at in 0..=len {
                    let text = format!("{}{escape}{}", "a".repeat(at), "b".repeat(len - at));
                    let json = format!("[\"{text}\",1]");
                    assert_eq!(
                        string_end(json.as_bytes(), 1),
                        Some(json.len() - 3),
                        "{json}"
                    );
                    assert_eq!(value_end(json.as_bytes(), 0), Some(json.len()), "{json}");
                    assert_eq!(string_end(&json.as_bytes()[..json.len() - 4], 1), None);
                }
            }
        }
    }

    #[test]
    fn what_is_no_json_is_no_panic() {
        let whole = Encoder::json(&json!({"a": {"b": "c\\\"", "d": [1, {}]}, "e": 1}));
        let finder = Finder::new(["a.b", "a.d.x", "e"].map(|path| JsonPath::parse(path).unwrap()));
        for end in 0..whole.len() {
            finder.find(&whole[..end]);
            finder.find(&whole[end..]);
            value_end(&whole[end..], 0);
        }
        for text in [
            "",
            "}",
            "{\"a\"",
            "{\"a\":",
            "]]",
            "{\"\\",
            "{\"\\ud800\":1}",
        ] {
            finder.find(text.as_bytes());
            value_end(text.as_bytes(), 0);
        }
    }
}
