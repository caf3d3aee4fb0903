//! Text of descriptions as Markdown: what could be read as HTML or end a cell of a table is escaped.

/// The paragraphs of a text.
pub(super) fn paragraphs(text: &str) -> Vec<String> {
    text.split("\n\n")
        .map(|paragraph| escape(paragraph.trim()))
        .filter(|paragraph| !paragraph.is_empty())
        .collect()
}

/// A text in a cell of a table: one line.
pub(super) fn cell(text: &str) -> String {
    let lines: Vec<&str> = text.trim().lines().map(str::trim).collect();
    escape(&lines.join("\n"))
        .replace("\n\n", "<br><br>")
        .replace("\n- ", "<br>- ")
        .replace('\n', " ")
        .replace('|', "\\|")
}

/// A value as code in a cell of a table.
pub(super) fn code(text: &str) -> String {
    // A fence longer than any in the text; a space at the ends where the text has a backtick there.
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    let pad = if longest > 0 { " " } else { "" };
    let text = text.replace(['\n', '\r'], " ").replace('|', "\\|");
    format!("{fence}{pad}{text}{pad}{fence}")
}

/// Escapes what begins an HTML tag or a link, outside of code.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    // A last backtick without its pair begins no code.
    let pairs = text.matches('`').count() / 2 * 2;
    let mut seen = 0;
    for c in text.chars() {
        let in_code = seen % 2 == 1 && seen < pairs;
        match c {
            '`' => {
                seen += 1;
                out.push(c);
            }
            '<' if !in_code => out.push_str("&lt;"),
            '[' | ']' | '*' if !in_code => {
                out.push('\\');
                out.push(c);
            }
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_one_line() {
        let check = |text: &str, expected: &str| assert_eq!(cell(text), expected, "{text:?}");
        check("a\nb", "a b");
        check("a\n\nb | c", "a<br><br>b \\| c");
        check(
            "Known values:\n - `\"A\"`\n - `\"B\"`",
            "Known values:<br>- `\"A\"`<br>- `\"B\"`",
        );
        check("Vec<T> and `Vec<T>`", "Vec&lt;T> and `Vec<T>`");
        check("an odd ` and <b>", "an odd ` and &lt;b>");
        check("[a](b) *c*", "\\[a\\](b) \\*c\\*");
    }

    #[test]
    fn code_keeps_its_text() {
        let check = |text: &str, expected: &str| assert_eq!(code(text), expected, "{text:?}");
        check("a<b>", "`a<b>`");
        check("^(a|b)$", "`^(a\\|b)$`");
        check("a`b", "`` a`b ``");
    }

    #[test]
    fn paragraphs_are_apart() {
        assert_eq!(
            paragraphs("One\nline.\n\n\nTwo <b>."),
            ["One\nline.", "Two &lt;b>."]
        );
        assert!(paragraphs("").is_empty());
    }
}
