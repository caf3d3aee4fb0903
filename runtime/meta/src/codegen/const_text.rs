//! Strings in constant evaluation, where there is no `==` and no `format!`.

/// Maximum length of a text; longer ones are cut.
const MAX_LEN: usize = 1024;

/// `==` for strings. Names of fields differ in length or at their end more often than at their start.
pub(super) const fn same_text(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    if a.len() != b.len() {
        return false;
    }
    let mut index = a.len();
    while index > 0 && a[index - 1] == b[index - 1] {
        index -= 1;
    }
    index == 0
}

/// Whether a list contains a text, most likely at this index.
const fn is_among_at(texts: &[&str], index: usize, text: &str) -> bool {
    index < texts.len() && same_text(texts[index], text) || is_among(texts, text)
}

/// Whether a list contains a text, most likely at this index; or is unknown.
pub const fn may_be_among_at(texts: Option<&[&str]>, index: usize, text: &str) -> bool {
    match texts {
        Some(texts) => is_among_at(texts, index, text),
        None => true,
    }
}

/// The first text of a list that another list does not contain, from an index on. The lists are equal in most cases.
pub(super) const fn next_not_among(
    texts: &[&str],
    mut index: usize,
    others: &[&str],
) -> Option<usize> {
    while index < texts.len() {
        if !is_among_at(others, index, texts[index]) {
            return Some(index);
        }
        index += 1;
    }
    None
}

/// Whether a list contains a text.
pub(super) const fn is_among(mut texts: &[&str], text: &str) -> bool {
    while let [first, rest @ ..] = texts {
        if same_text(first, text) {
            return true;
        }
        texts = rest;
    }
    false
}

/// Whether a list contains a text, or is unknown.
pub const fn may_be_among(texts: Option<&[&str]>, text: &str) -> bool {
    match texts {
        Some(texts) => is_among(texts, text),
        None => true,
    }
}

/// A text of several parts.
#[derive(Debug)]
pub(super) struct ConstText {
    bytes: [u8; MAX_LEN],
    len: usize,
}

impl ConstText {
    pub(super) const fn new() -> Self {
        Self {
            bytes: [0; MAX_LEN],
            len: 0,
        }
    }

    pub(super) const fn push(&mut self, part: &str) {
        let mut rest = part.as_bytes();
        while let [first, behind @ ..] = rest {
            if self.len < MAX_LEN {
                self.bytes[self.len] = *first;
                self.len += 1;
            }
            rest = behind;
        }
    }

    /// The text, or `other` if cutting it split a character.
    pub(super) const fn as_str_or<'a>(&'a self, other: &'a str) -> &'a str {
        match std::str::from_utf8(self.bytes.split_at(self.len).0) {
            Ok(text) => text,
            Err(_) => other,
        }
    }
}
