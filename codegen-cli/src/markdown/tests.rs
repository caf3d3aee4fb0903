//! What is written is read as rustdoc and the readers of a reference do, and gives the text back.

use apiloom_meta::schema::plain_text;
use proptest::prelude::*;
use pulldown_cmark::{BrokenLink, CodeBlockKind, CowStr, Event, Options, Parser, Tag};

use super::{LANGUAGES, inline, lines};

/// What would be more than text, code of another language or a list; empty of what is safe.
pub(crate) fn dangers(markdown: &str) -> Vec<String> {
    // The extensions of rustdoc.
    let options = Options::ENABLE_TABLES
        | Options::ENABLE_FOOTNOTES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS;
    // rustdoc looks for an item with each name in brackets.
    let any_link =
        |link: BrokenLink<'_>| Some((link.reference.to_string().into(), CowStr::from("")));
    let parser = Parser::new_with_broken_link_callback(markdown, options, Some(any_link));
    let is_safe = |event: &Event<'_>| match event {
        Event::Text(_) | Event::Code(_) | Event::SoftBreak | Event::End(_) => true,
        Event::Start(Tag::Paragraph | Tag::List(_) | Tag::Item) => true,
        Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(language))) => {
            LANGUAGES.contains(&&**language)
        }
        _ => false,
    };
    let unsafe_ones = parser.filter(|event| !is_safe(event));
    unsafe_ones.map(|event| format!("{event:?}")).collect()
}

/// Words of a text, without the fences of blocks of code.
fn words(text: &str) -> Vec<String> {
    let is_fence = |word: &str| word.starts_with("```") || word.starts_with("~~~");
    let words = text.split_whitespace().filter(|word| !is_fence(word));
    words.map(str::to_owned).collect()
}

/// Texts that are hostile: what begins something in Markdown, Rust, HTML or a shell, in any order.
pub(crate) fn hostile() -> impl Strategy<Value = String> {
    const PARTS: [&str; 62] = [
        "```",
        "````",
        "```rust\n",
        "~~~",
        "~~~\n",
        "`",
        "``",
        "\n",
        "\n\n",
        "\n    ",
        "\n\t",
        "    ",
        "\t",
        " ",
        "- ",
        "* ",
        "+ ",
        "1. ",
        "12) ",
        "-",
        "> ",
        ">",
        "# ",
        "=",
        "===",
        "---",
        "\n---\n",
        "_",
        "*",
        "**",
        "~~",
        "[",
        "]",
        "[a](b)",
        "[`Vec`]",
        "[x]: y\n",
        "![i](j)",
        "<b>",
        "</script>",
        "<!--",
        "-->",
        "<https://a.b>",
        "&lt;",
        "\\",
        "|",
        "\n|-|-|\n",
        "a | b",
        ":-",
        "*/",
        "/*",
        "//",
        "\"",
        "\"#",
        "'",
        "\r",
        "\u{202E}",
        "\u{0}",
        "panic!();",
        "fn main() {}",
        "$(ls)",
        "word",
        "é",
    ];
    let part = prop_oneof![8 => prop::sample::select(&PARTS[..]).prop_map(str::to_owned), 1 => any::<String>()];
    prop::collection::vec(part, 0..24).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4096, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_text_is_more_than_text(text in hostile()) {
        // One line stands inside of others, such as in a cell.
        for markdown in [lines(&text).join("\n"), format!("x {}", inline(&text))] {
            prop_assert_eq!(dangers(&markdown), Vec::<String>::new(), "{} of {:?}", markdown, text);
        }
        prop_assert!(!inline(&text).contains('\n'));
    }

    #[test]
    fn words_are_given_back(words_of in prop::collection::vec("[ -~&&[^`~]]{1,8}", 0..12)) {
        let text = words_of.join("\n");
        let back = plain_text(&lines(&text).join("\n"));
        prop_assert_eq!(words(&back), words(&text), "{:?}", text);
    }
}

#[track_caller]
fn check(text: &str, expected: &str) {
    assert_eq!(lines(text).join("\n"), expected, "{text:?}");
    assert_eq!(dangers(expected), [""; 0]);
}

#[test]
fn plain_words_stay_as_they_are() {
    for text in [
        "The size, in bytes; see https://example.com/a_b?c=d.",
        "One\nparagraph.\n\nAnother: 1 < 2 && `Vec<T>` | x.",
        "- one\n- two\n   - below\n1. first",
    ] {
        check(text, text);
    }
}

#[test]
fn marks_are_escaped() {
    check("# Title", "\\# Title");
    check("a <b>c</b> &lt;", "a \\<b>c\\</b> \\&lt;");
    check("[0, 100] and [a](b)", "\\[0, 100\\] and \\[a\\](b)");
    check(
        "*bold* _thin_ snake_case",
        "\\*bold\\* \\_thin\\_ snake_case",
    );
    check("a\n---\nb | c\n|-|-|", "a\n\\---\nb | c\n\\|-|-|");
    check("an odd ` and <b>", "an odd \\` and \\<b>");
    check("+optional", "\\+optional");
}

#[test]
fn code_is_never_rust() {
    let yaml = "```yaml\na:\n  b: 1\n```";
    check(yaml, yaml);
    check(
        "Example:\n```\nlet a;\n```\nEnd.",
        "Example:\n\n```text\nlet a;\n```\n\nEnd.",
    );
    check("~~~rust,should_panic\nx\n", "```text\nx\n```");
    check(
        "Example:\n\n\tkind: X\n\tspec:\n\t  a: b\n\nEnd.",
        "Example:\n\n```text\nkind: X\nspec:\n  a: b\n```\n\nEnd.",
    );
    check(
        "- item\n\n        code\n- next",
        "- item\n\n```text\ncode\n```\n\n- next",
    );
    check("- a\n\n  more\n    deep", "- a\n\n  more\n   deep");
    check(">     code", "\\> code");
    check("-     code", "- code");
    check("1. - ```rust", "1. \\- \\`\\`\\`rust");
}
