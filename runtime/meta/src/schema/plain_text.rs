//! Descriptions as clients read them: documentation comments without the syntax that only readers of the Rust code need.

use std::collections::BTreeMap;

/// Where the labels of a documentation comment lead, by label in lower case.
type References = BTreeMap<String, String>;

/// A documentation comment as plain text. A link becomes its text, followed by its address if that is one of the web.
/// Definitions of references and markers of Go's generators (`+optional`) are left out. Code stays as it is, with its
/// backticks, as in Kubernetes' own descriptions.
///
/// ```
/// use apiloom_meta::schema::plain_text;
/// assert_eq!(plain_text("See [`Flunder`](crate::Flunder).\n+optional"), "See `Flunder`.");
/// assert_eq!(plain_text("See [here](https://example.com)."), "See here (https://example.com).");
/// ```
pub fn plain_text(doc: &str) -> String {
    let (text, references) = without_lines(doc);
    without_links(text.trim(), &references)
}

/// The text without its markers and definitions of references, and those definitions.
fn without_lines(doc: &str) -> (String, References) {
    let mut kept: Vec<&str> = Vec::new();
    let mut references = References::new();
    let mut fence = None;
    let mut is_after_left_out = false;
    for line in doc.lines() {
        let text = line.trim_start();
        let mark = ["```", "~~~"].into_iter().find(|m| text.starts_with(m));
        if fence.is_none() {
            fence = mark;
        } else if mark == fence {
            fence = None;
        }
        let is_prose = fence.is_none() && mark.is_none();
        let starts_paragraph = kept.last().is_none_or(|last| last.trim().is_empty());
        if is_prose && is_marker(text) {
            is_after_left_out = true;
            continue;
        }
        if is_prose
            && (starts_paragraph || is_after_left_out)
            && let Some((label, target)) = definition(text)
        {
            references.entry(label).or_insert(target);
            is_after_left_out = true;
            continue;
        }
        // What was left out leaves no second empty line behind.
        if !(is_after_left_out && starts_paragraph && text.is_empty()) {
            kept.push(line);
            is_after_left_out = false;
        }
    }
    (kept.join("\n"), references)
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

/// The label and the target of `[label]: target`.
fn definition(line: &str) -> Option<(String, String)> {
    let (label, rest) = line.strip_prefix('[')?.split_once("]:")?;
    let target = target(rest)?;
    let is_label = !label.trim().is_empty() && !label.contains(['[', ']']);
    is_label.then(|| (label.trim().to_lowercase(), target.to_owned()))
}

/// The target of a link, without its title: an address, a file or a Rust path.
fn target(text: &str) -> Option<&str> {
    let text = text.trim();
    let target = match text.find(['"', '\'']) {
        Some(title) if text[..title].ends_with(char::is_whitespace) => text[..title].trim_end(),
        _ => text,
    };
    let bare = target
        .strip_prefix('<')
        .and_then(|inner| inner.strip_suffix('>'))
        .unwrap_or(target);
    let is_file = bare.contains(['.', '/', '#'])
        && bare
            .chars()
            .all(|c| c.is_alphanumeric() || "_-./#".contains(c));
    (is_of_web(bare) || is_file || is_rust_path(bare)).then_some(bare)
}

fn is_of_web(target: &str) -> bool {
    (target.contains("://") || target.starts_with("mailto:"))
        && !target.contains(char::is_whitespace)
}

/// Whether a text can be what Rust's documentation links to by its name: `Foo`, `struct@Foo`, `crate::Foo::bar()`,
/// `Vec<T>`.
fn is_rust_path(text: &str) -> bool {
    let is_spaced = text.contains(' ') && !text.contains('<');
    text.starts_with(|c: char| c.is_alphabetic() || matches!(c, '_' | ':'))
        && !is_spaced
        && text
            .chars()
            .all(|c| c.is_alphanumeric() || "_:<>,()!@#& ".contains(c))
}

/// Whether a name in brackets is meant as a link even without a target: `Self::size`, `FlunderSpec`, `size()`.
fn is_evident_rust_path(text: &str) -> bool {
    let mut pairs = text.chars().zip(text.chars().skip(1));
    let has_inner_capital = pairs.any(|(a, b)| a.is_lowercase() && b.is_uppercase());
    is_rust_path(text) && (has_inner_capital || text.contains("::") || text.ends_with("()"))
}

/// The text with every link replaced by what it shows.
fn without_links(text: &str, references: &References) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['`', '[', '<', '\\']) {
        let (before, special) = rest.split_at(at);
        out.push_str(before);
        let taken = match special.as_bytes().first() {
            Some(b'`') => verbatim(&mut out, special, code_len(special)),
            // An escaped character, which may be of several bytes.
            Some(b'\\') => {
                let len = special.chars().take(2).map(char::len_utf8).sum();
                verbatim(&mut out, special, len)
            }
            Some(b'<') => match address(special) {
                Some(address) => {
                    out.push_str(address);
                    address.len() + 2
                }
                None => verbatim(&mut out, special, 1),
            },
            _ => match link(special, out.chars().next_back(), references) {
                Some(link) => {
                    if link.is_image {
                        out.pop();
                    }
                    out.push_str(&link.shown);
                    link.len
                }
                None => verbatim(&mut out, special, 1),
            },
        };
        rest = &special[taken..];
    }
    out.push_str(rest);
    out
}

/// Copies the first bytes of a text; gives their number.
fn verbatim(out: &mut String, text: &str, len: usize) -> usize {
    out.push_str(&text[..len]);
    len
}

/// The length of the code at the beginning of a text, or of its backticks when no others close them.
fn code_len(text: &str) -> usize {
    let opening = text.bytes().take_while(|byte| *byte == b'`').count();
    // Code inside a line ends with its paragraph, a block of code does not.
    let end = if opening < 3 {
        paragraph(text).len()
    } else {
        text.len()
    };
    let mut at = opening;
    while let Some(next) = text[at..end].find('`') {
        at += next;
        let run = text[at..end].bytes().take_while(|b| *b == b'`').count();
        at += run;
        if run == opening {
            return at;
        }
    }
    opening
}

/// What stands before the first empty line.
fn paragraph(text: &str) -> &str {
    text.split_once("\n\n").map_or(text, |(first, _)| first)
}

/// The address in `<https://example.com>`.
fn address(text: &str) -> Option<&str> {
    let (address, _) = text.strip_prefix('<')?.split_once('>')?;
    is_of_web(address).then_some(address)
}

/// A link that was found.
struct Link {
    /// What stands for it in plain text.
    shown: String,
    /// How long it is.
    len: usize,
    /// Whether it is an image, which begins with a `!` before it.
    is_image: bool,
}

/// The link at the beginning of a text, which begins with `[`.
fn link(text: &str, before: Option<char>, references: &References) -> Option<Link> {
    let label = enclosed(text, '[', ']')?;
    let behind = &text[label.len() + 2..];
    let named = |name: &str| references.get(&name.trim().to_lowercase());
    let inline =
        enclosed(behind, '(', ')').and_then(|inner| Some((target(inner)?, inner.len() + 2)));
    let reference = enclosed(behind, '[', ']').and_then(|name| {
        let full = if name.is_empty() { label } else { name };
        let target = named(full).map(String::as_str);
        let target = target.or_else(|| path_in_label(full, !name.is_empty()));
        Some((target?, name.len() + 2))
    });
    let shortcut = || {
        let target = named(label).map(String::as_str);
        Some((target.or_else(|| path_in_label(label, false))?, 0))
    };
    let (target, more) = inline.or(reference).or_else(shortcut)?;
    // `values[i](x)`, `#[Name]` and `&[Name]` are code, not links.
    let is_glued = before.is_some_and(|c| c.is_alphanumeric() || "_)]#!&\"$".contains(c));
    if label.trim().is_empty() || is_glued && !is_of_web(target) {
        return None;
    }
    Some(Link {
        shown: if is_of_web(target) && label.trim_matches('`') != target {
            format!("{label} ({target})")
        } else {
            label.to_owned()
        },
        len: label.len() + 2 + more,
        is_image: before == Some('!'),
    })
}

/// The Rust path that a label names by itself: any in backticks, or else one that is nothing else.
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

/// What stands between the bracket at the beginning of a text and the one that closes it in the same paragraph.
fn enclosed(text: &str, open: char, close: char) -> Option<&str> {
    let inner = paragraph(text).strip_prefix(open)?;
    let mut depth = 0;
    let mut at = 0;
    while let Some(next) = inner[at..].find([open, close, '`', '\\']) {
        at += next;
        let rest = &inner[at..];
        if rest.starts_with('`') {
            at += code_len(rest);
        } else if rest.starts_with('\\') {
            at += rest.chars().take(2).map(char::len_utf8).sum::<usize>();
        } else if rest.starts_with(open) {
            depth += 1;
            at += 1;
        } else if depth == 0 {
            return Some(&inner[..at]);
        } else {
            depth -= 1;
            at += 1;
        }
    }
    None
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

    // Issue 10, point 12.
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
            "\\[FooBar] [",
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

    // Issue 10, point 2.
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
