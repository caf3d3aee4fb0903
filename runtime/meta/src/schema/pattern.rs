//! Regular expressions of schemas, which mean what they mean to Kubernetes.

/// A pattern whose `\d`, `\w`, `\s` and `\b` know ASCII alone, as in Go: a name that must match `^\w+$` has no umlauts.
/// `\B` stays as it is, as its ASCII form could split a character.
pub(super) fn with_ascii_classes(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len());
    let mut in_class = false;
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        match c {
            '[' => in_class = true,
            ']' => in_class = false,
            _ => {}
        }
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next() {
            // A class inside of a class is one more part of it.
            Some('d') => out.push_str("[0-9]"),
            Some('D') => out.push_str("[^0-9]"),
            Some('w') => out.push_str("[0-9A-Za-z_]"),
            Some('W') => out.push_str("[^0-9A-Za-z_]"),
            Some('s') => out.push_str(r"[\t\n\f\r ]"),
            Some('S') => out.push_str(r"[^\t\n\f\r ]"),
            Some('b') if !in_class => out.push_str(r"(?-u:\b)"),
            other => {
                out.push('\\');
                out.extend(other);
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use regex::Regex;

    use super::*;

    #[test]
    fn classes_know_ascii_alone() {
        for (pattern, good, bad) in [
            (r"^\w+$", "aZ_9", "é"),
            (r"^\d+$", "09", "\u{661}"),
            (r"^\s$", " ", "\u{a0}"),
            (r"^\S$", "\u{a0}", "\t"),
            (r"^\W$", "é", "a"),
            (r"^\D$", "\u{661}", "1"),
            (r"^[\w.-]+$", "a.b-c", "é"),
            (r"^[^\d]$", "\u{661}", "1"),
            (r"^[\D]$", "a", "1"),
            (r"^é\b.$", "éa", "é "),
            (r"^\\d\[\d\]$", r"\d[1]", "1[1]"),
            (r"^\p{Lu}$", "É", "é"),
        ] {
            let regex = Regex::new(&with_ascii_classes(pattern)).expect(pattern);
            assert!(regex.is_match(good), "{pattern} {good:?}");
            assert!(!regex.is_match(bad), "{pattern} {bad:?}");
        }
    }
}
