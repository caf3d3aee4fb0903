//! Strings in constant evaluation, where there is no `==` and no `format!`.

/// Maximum length of a text; longer ones are cut.
const MAX_LEN: usize = 1024;

/// `==` for strings.
pub(super) const fn same_text(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut index = 0;
    while index < a.len() && index < b.len() && a[index] == b[index] {
        index += 1;
    }
    a.len() == b.len() && index == a.len()
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

    pub(super) const fn is_empty(&self) -> bool {
        self.len == 0
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
