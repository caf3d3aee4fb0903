//! Converts documentation comments to descriptions for clients, without Rust-specific syntax.

use std::ops::Range;

use pulldown_cmark::{BrokenLink, CowStr, Event, LinkType, Options, Parser, Tag, TagEnd};

/// Converts a documentation comment to plain text. A link is replaced by its text, and its address if that is a URL.
/// Definitions of references, backslashes of escapes, and markers of Go's generators (`+optional`) are removed. Code keeps its
/// backticks, as in Kubernetes' descriptions.
///
/// ```
/// use apiloom_schema::plain_text;
/// assert_eq!(plain_text("See [`Flunder`](crate::Flunder).\n+optional"), "See `Flunder`.");
/// assert_eq!(plain_text("See [here](https://example.com)."), "See here (https://example.com).");
/// assert_eq!(plain_text(r"From \[0, 100\]."), "From [0, 100].");
/// ```
pub fn plain_text(doc: &str) -> String {
    let doc = without_markers(doc);
    let mut text = String::with_capacity(doc.len());
    let mut end = 0;
    for (range, replacement) in replacements(&doc) {
        text.push_str(&doc[end..range.start]);
        text.push_str(&replacement);
        end = range.end;
    }
    text.push_str(&doc[end..]);
    text.trim().to_owned()
}

/// Removes markers of Go's generators.
fn without_markers(doc: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let mut fence = None;
    let mut is_after_marker = false;
    for line in doc.lines() {
        let text = line.trim_start();
        let mark = ["```", "~~~"].into_iter().find(|m| text.starts_with(m));
        if fence.is_none() {
            fence = mark;
        } else if mark == fence {
            fence = None;
        }
        let starts_paragraph = kept.last().is_none_or(|last| last.trim().is_empty());
        if fence.is_none() && mark.is_none() && is_marker(text) {
            is_after_marker = true;
        } else if !(is_after_marker && starts_paragraph && text.is_empty()) {
            // A removed line leaves no double empty line.
            kept.push(line);
            is_after_marker = false;
        }
    }
    kept.join("\n")
}

/// Whether a line is a marker of Go's generators: `+name`, `+name=value` or `+owner:name`.
fn is_marker(line: &str) -> bool {
    let Some(body) = line.trim().strip_prefix('+') else {
        return false;
    };
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, ':' | '-' | '_' | '.');
    let end = body.find(|c| !is_of_name(c)).unwrap_or(body.len());
    let (name, rest) = body.split_at(end);
    name.starts_with(|c: char| c.is_ascii_lowercase())
        && (rest.is_empty() || rest.starts_with('=') || name.contains(':'))
}

/// A Markdown link.
struct Link {
    range: Range<usize>,
    /// Range of its text.
    label: Range<usize>,
    target: String,
}

/// Replacements for links, definitions of references and escapes, by range.
fn replacements(doc: &str) -> Vec<(Range<usize>, String)> {
    // rustdoc supports links that are only the name of their target.
    let name_as_link = |link: BrokenLink<'_>| {
        let is_of_reference = link.link_type == LinkType::ReferenceUnknown;
        let path = path_in_label(&link.reference, is_of_reference)?;
        Some((path.to_owned().into(), CowStr::from("")))
    };
    let parser = Parser::new_with_broken_link_callback(doc, Options::empty(), Some(name_as_link));
    let definitions = parser.reference_definitions().iter();
    let mut replacements: Vec<(Range<usize>, String)> = definitions
        .map(|(_, definition)| (with_line_ends(doc, &definition.span), String::new()))
        .collect();
    // Of nested links only the outer one is replaced.
    let mut current: Option<Link> = None;
    // The end of the last text, and whether it is that of a block of code, which has no escapes.
    let (mut end, mut in_block) = (0, false);
    for (event, range) in parser.into_offset_iter() {
        match event {
            Event::Start(Tag::CodeBlock(_)) => in_block = true,
            Event::End(TagEnd::CodeBlock) => in_block = false,
            Event::Text(_)
                if current.is_none() && !in_block && is_escaped(doc, end, range.start) =>
            {
                replacements.push((range.start - 1..range.start, String::new()));
            }
            _ => {}
        }
        if matches!(event, Event::Text(_) | Event::Code(_)) {
            end = range.end;
        }
        match (event, &mut current) {
            (Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }), None) => {
                current = Some(Link {
                    label: range.end..range.start,
                    range,
                    target: dest_url.into_string(),
                });
            }
            (Event::End(TagEnd::Link | TagEnd::Image), Some(link)) if link.range == range => {
                replacements.extend(current.take().and_then(|link| replacement(doc, &link)));
            }
            (_, Some(link)) => {
                link.label.start = link.label.start.min(range.start);
                link.label.end = link.label.end.max(range.end);
            }
            (_, None) => {}
        }
    }
    replacements.sort_by_key(|(range, _)| range.start);
    replacements
}

/// Whether a text that begins here has a backslash before it that is no part of the text that ended there.
fn is_escaped(doc: &str, end: usize, start: usize) -> bool {
    let between = doc.get(end..start).unwrap_or_default();
    between.ends_with('\\') && doc[start..].starts_with(|c: char| c.is_ascii_punctuation())
}

/// Extends a range by the line breaks after it.
fn with_line_ends(doc: &str, range: &Range<usize>) -> Range<usize> {
    let behind = &doc[range.end..];
    let more = behind.len() - behind.trim_start_matches('\n').len();
    range.start..range.end + more
}

/// The replacement for a link; `None` if it is not a link.
fn replacement(doc: &str, link: &Link) -> Option<(Range<usize>, String)> {
    let (label, target) = (doc.get(link.label.clone())?, link.target.as_str());
    let before = doc[..link.range.start].chars().next_back();
    // `values[i](x)`, `#[Name]` and `&[Name]` are code, not links.
    let is_glued = before.is_some_and(|c| c.is_alphanumeric() || "_)]#!&\"$".contains(c));
    if label.trim().is_empty() || !is_target(target) || is_glued && !is_of_web(target) {
        return None;
    }
    let text = if is_of_web(target) && label.trim_matches('`') != target {
        format!("{label} ({target})")
    } else {
        label.to_owned()
    };
    // The parser does not include the empty brackets of `[name][]`.
    let is_collapsed = doc[link.range.end..].starts_with("[]");
    let end = link.range.end + if is_collapsed { "[]".len() } else { 0 };
    Some((link.range.start..end, text))
}

/// Whether a text can be the target of a link: a URL, a file or a Rust path.
fn is_target(text: &str) -> bool {
    let is_file = text.contains(['.', '/', '#'])
        && text
            .chars()
            .all(|c| c.is_alphanumeric() || "_-./#".contains(c));
    is_of_web(text) || is_file || is_rust_path(text)
}

fn is_of_web(target: &str) -> bool {
    (target.contains("://") || target.starts_with("mailto:"))
        && !target.contains(char::is_whitespace)
}

/// Whether a text can be the name of a target in rustdoc: `Foo`, `struct@Foo`, `crate::Foo::bar()`, `Vec<T>`.
fn is_rust_path(text: &str) -> bool {
    let is_spaced = text.contains(' ') && !text.contains('<');
    text.starts_with(|c: char| c.is_alphabetic() || matches!(c, '_' | ':'))
        && !is_spaced
        && text
            .chars()
            .all(|c| c.is_alphanumeric() || "_:<>,()!@#& ".contains(c))
}

/// Whether a name in brackets is a link even without a target: `Self::size`, `FlunderSpec`, `size()`.
fn is_evident_rust_path(text: &str) -> bool {
    let mut pairs = text.chars().zip(text.chars().skip(1));
    let has_inner_capital = pairs.any(|(a, b)| a.is_lowercase() && b.is_uppercase());
    is_rust_path(text) && (has_inner_capital || text.contains("::") || text.ends_with("()"))
}

/// The Rust path in a label: the text in backticks, or the whole label if it is a path.
fn path_in_label(label: &str, is_of_reference: bool) -> Option<&str> {
    let code = label
        .strip_prefix('`')
        .and_then(|inner| inner.strip_suffix('`'));
    let found = code.unwrap_or(label);
    let is_path = if code.is_some() || is_of_reference {
        is_rust_path(found)
    } else {
        is_evident_rust_path(found)
    };
    is_path.then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(doc: &str, text: &str) {
        assert_eq!(plain_text(doc), text, "{doc}");
        assert_eq!(
            plain_text(text),
            text,
            "a plain text stays as it is: {text}"
        );
    }

    #[test]
    fn links_of_the_code_are_their_text() {
        for (doc, text) in [
            ("See [`Foo`].", "See `Foo`."),
            (
                "See [`Vec<Foo>`] and [`Self::size()`].",
                "See `Vec<Foo>` and `Self::size()`.",
            ),
            (
                "See [FlunderSpec] and [crate::v1::Foo].",
                "See FlunderSpec and crate::v1::Foo.",
            ),
            (
                "See [`Foo`](crate::Foo), [that](struct@Foo).",
                "See `Foo`, that.",
            ),
            (
                "The [rules\nof it](Rules::check()) hold.",
                "The rules\nof it hold.",
            ),
            (
                "See [the text][crate::Foo] and [it][].\n\n[it]: Foo",
                "See the text and it.",
            ),
            ("[a `b` c][D] e\n\n[d]: super::E \"title\"", "a `b` c e"),
            (
                "See [below](#limits), [there](../guide.html).",
                "See below, there.",
            ),
            ("([`A`], [`B`])", "(`A`, `B`)"),
        ] {
            check(doc, text);
        }
    }

    #[test]
    fn escapes_are_what_they_stand_for() {
        for (doc, text) in [
            (r"From \[0, 100\].", "From [0, 100]."),
            (
                r"\# no heading \<b> \\\* \+optional",
                r"# no heading <b> \* +optional",
            ),
            (r"`\[a\]` and \d", r"`\[a\]` and \d"),
            ("```text\n\\[a\\]\n```", "```text\n\\[a\\]\n```"),
            ("\\+optional", "+optional"),
            ("\\[FooBar] [", "[FooBar] ["),
        ] {
            assert_eq!(plain_text(doc), text, "{doc}");
        }
    }

    #[test]
    fn links_of_the_web_keep_their_address() {
        for (doc, text) in [
            (
                "See [RFC 3339](https://example.com/a_(b)).",
                "See RFC 3339 (https://example.com/a_(b)).",
            ),
            (
                "See [it][1].\n\n[1]: <https://example.com>\n",
                "See it (https://example.com).",
            ),
            (
                "See [RFC].\n\n[rfc]: https://example.com 'title'\nMore.",
                "See RFC (https://example.com).\n\nMore.",
            ),
            (
                "<https://example.com> and <b>",
                "https://example.com and <b>",
            ),
            (
                "[https://example.com](https://example.com)",
                "https://example.com",
            ),
            (
                "An ![image](https://example.com/x.png)",
                "An image (https://example.com/x.png)",
            ),
        ] {
            assert_eq!(plain_text(doc), text, "{doc}");
        }
    }

    #[test]
    fn code_and_other_brackets_stay() {
        for text in [
            "",
            "`[`Foo`]`",
            "`[Foo](bar)` and ``[a](`b`)``",
            "```\n[FooBar](x)\n\n+optional\n[x]: y\n```",
            "~~~\n+optional\n~~~",
            "must match [a-z0-9]([-a-z0-9]*[a-z0-9])?",
            "in [0, 100], [optional] and [Required]",
            "`spec.containers[x]` is list[i](x), map[string][]Name and [][]FooBar",
            "#[FooBar] and &[FooBar]",
            "an open ` [ ( and [a](b c) and [x] (y)",
            "[]string and [ ](x y)",
            "a: [b]: c",
            "+1 for this, + 2",
            "+Inf is a number\n+inf is one, too",
            "- [x] done\n- [ ] open",
            "ends with \\",
        ] {
            check(text, text);
        }
    }

    #[test]
    fn markers_of_go_are_left_out() {
        for (doc, text) in [
            ("+optional", ""),
            ("Name of it.\n+optional", "Name of it."),
            (
                "+genclient\n+k8s:deepcopy-gen:interfaces=x.y/z.Object\n\nA kind.",
                "A kind.",
            ),
            (
                "One.\n\n+kubebuilder:validation:Pattern=`^a+$`\n+kubebuilder:default:={}\n\nTwo.",
                "One.\n\nTwo.",
            ),
            (
                "One.\n+listType=map\n+k8s:ifEnabled(X)=+k8s:required\nTwo.",
                "One.\nTwo.",
            ),
            ("  +listMapKey=name  \nThree.", "Three."),
        ] {
            check(doc, text);
        }
    }
}
