//! Text of descriptions in the Markdown of a reference: in paragraphs, in cells of tables, and as code.

use crate::markdown::{inline, lines};

/// The paragraphs of a text.
pub(crate) fn paragraphs(text: &str) -> Option<String> {
    let lines = lines(text);
    let is_said = lines.iter().any(|line| !line.is_empty());
    is_said.then(|| lines.join("\n").trim_matches('\n').to_owned())
}

/// A text in a cell of a table: one line.
pub(crate) fn cell(text: &str) -> String {
    let paragraphs = text.trim().split("\n\n").map(|paragraph| {
        let items: Vec<String> = items(paragraph).iter().map(|item| inline(item)).collect();
        items.join("<br>- ")
    });
    let paragraphs: Vec<String> = paragraphs.filter(|text| !text.is_empty()).collect();
    paragraphs.join("<br><br>").replace('|', "\\|")
}

/// A paragraph, apart from the items of a list after it.
fn items(paragraph: &str) -> Vec<String> {
    let mut items = vec![String::new()];
    for line in paragraph.lines() {
        let line = line.trim();
        match (line.strip_prefix("- "), items.last_mut()) {
            (None, Some(last)) => {
                last.push('\n');
                last.push_str(line);
            }
            (Some(item), Some(first)) if first.is_empty() => *first = format!("- {item}"),
            (item, _) => items.push(item.unwrap_or(line).to_owned()),
        }
    }
    items
}

/// A value as code in a cell of a table.
pub(crate) fn code(text: &str) -> String {
    let is_plain = |c: char| !c.is_control() && c != '`';
    if !text.is_empty()
        && !text.contains("\\|")
        && !text.ends_with('\\')
        && text.chars().all(is_plain)
    {
        return format!("`{}`", text.replace('|', "\\|"));
    }
    let mut out = String::from("<code>");
    for c in text.chars() {
        match c {
            // As numbers, they have no meaning in any Markdown.
            c if c.is_ascii_punctuation() => out.push_str(&format!("&#{};", u32::from(c))),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out.push_str("</code>");
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use pulldown_cmark::{Event, Options, Parser, Tag};

    use super::*;
    use crate::markdown::tests::{dangers, hostile};

    #[test]
    fn cells_are_one_line() {
        let check = |text: &str, expected: &str| assert_eq!(cell(text), expected, "{text:?}");
        check("a\nb", "a b");
        check("a\n\nb | c", "a<br><br>b \\| c");
        check(
            "Known values:\n - `\"A\"`\n - `\"B\"`",
            "Known values:<br>- `\"A\"`<br>- `\"B\"`",
        );
        check("Vec<T> and `Vec<T>`", "Vec\\<T> and `Vec<T>`");
        check("an odd ` and <b>", "an odd \\` and \\<b>");
        check("[a](b) *c*", "\\[a\\](b) \\*c\\*");
    }

    #[test]
    fn code_keeps_its_text() {
        let check = |text: &str, expected: &str| assert_eq!(code(text), expected, "{text:?}");
        check("a<b>", "`a<b>`");
        check("^(a|b)$", "`^(a\\|b)$`");
        check("a`b", "<code>a&#96;b</code>");
        check(r"a\|b", "<code>a&#92;&#124;b</code>");
        check("", "<code></code>");
    }

    #[test]
    fn paragraphs_are_apart() {
        let text = "One\nline.\n\n\nTwo <b>.";
        assert_eq!(
            paragraphs(text).as_deref(),
            Some("One\nline.\n\nTwo \\<b>.")
        );
        assert_eq!(paragraphs("\n"), None);
    }

    /// The cells of the rows of a table, and what else is there; HTML that this module writes is none.
    fn cells(markdown: &str) -> (usize, Vec<String>) {
        let parser = Parser::new_ext(markdown, Options::ENABLE_TABLES);
        let (mut cells, mut others) = (0, Vec::new());
        for event in parser {
            match event {
                Event::Start(Tag::TableCell) => cells += 1,
                Event::Start(Tag::Table(_) | Tag::TableHead | Tag::TableRow) => {}
                Event::Text(_) | Event::Code(_) | Event::End(_) => {}
                Event::InlineHtml(html) if matches!(&*html, "<br>" | "<code>" | "</code>") => {}
                other => others.push(format!("{other:?}")),
            }
        }
        (cells, others)
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2048, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn no_text_leaves_its_place(text in hostile()) {
            let table = format!("| a | b |\n|---|---|\n| {} | {} |\n| {} | c |", cell(&text), code(&text), code(&text));
            prop_assert_eq!(cells(&table), (6, Vec::new()), "{} of {:?}", table, text);
            let said = paragraphs(&text).unwrap_or_default();
            prop_assert_eq!(dangers(&said), Vec::<String>::new(), "{:?}", text);
        }
    }
}
