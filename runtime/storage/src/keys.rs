//! Ranges of keys. Keys compare as bytes, and in UTF-8 the order of bytes is the order of code points.

/// The smallest string greater than every string with this prefix; `None` if there is none.
pub(crate) fn prefix_end(prefix: &str) -> Option<String> {
    let mut end = prefix.to_owned();
    while let Some(last) = end.pop() {
        if let Some(next) = successor(last) {
            end.push(next);
            return Some(end);
        }
    }
    None
}

/// The later of a prefix and the key at which a page starts.
pub(crate) fn range_start<'a>(prefix: &'a str, start: &'a str) -> &'a str {
    if start > prefix { start } else { prefix }
}

fn successor(c: char) -> Option<char> {
    // Surrogates are not characters: U+E000 follows U+D7FF.
    (c as u32 + 1..=char::MAX as u32).find_map(char::from_u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefix_end_is_the_next_string_that_does_not_match() {
        let check = |prefix: &str, end: Option<&str>| {
            assert_eq!(prefix_end(prefix).as_deref(), end, "{prefix:?}");
        };
        check("/a/", Some("/a0"));
        check("", None);
        check("a\u{10FFFF}", Some("b"));
        check("\u{10FFFF}", None);
        check("\u{D7FF}", Some("\u{E000}"));
        check("ü", Some("ý"));
    }
}
