//! Text of others as Markdown that reads as that text: no HTML, links, headings, tables or emphasis come of it, and no code
//! but blocks that are marked as no Rust, so that rustdoc runs none of it.
//!
//! Only code, in backticks or in blocks, and lists stay what they are. `apiloom_meta::schema::plain_text` gives the text back.

/// The longest indentation that never begins a block of code, in a list neither.
const MAX_INDENT: usize = 3;

/// Languages that blocks of code may name: rustdoc takes a block for Rust unless its words are of another language.
const LANGUAGES: [&str; 16] = [
    "bash", "cel", "console", "go", "html", "ini", "json", "promql", "python", "sh", "shell",
    "sql", "text", "toml", "xml", "yaml",
];

/// The language of a block that names none.
const NO_LANGUAGE: &str = "text";

/// The lines of a text.
pub(crate) fn lines(text: &str) -> Vec<String> {
    let text = plain(text);
    let mut writer = Writer::default();
    let mut input = text.lines().map(expanded).peekable();
    while let Some(line) = input.next() {
        if line.is_empty() {
            writer.blank();
        } else if let Some(fence) = Fence::opens(&line) {
            let inside: Vec<String> = input
                .by_ref()
                .take_while(|line| !fence.closes(line))
                .collect();
            let shown = inside.iter().map(|line| without_indent(line, fence.indent));
            writer.code(fence.language, &shown.collect::<Vec<_>>());
        } else if writer.begins_code(&line) {
            let mut block = vec![line];
            let least = writer.code_indent();
            while let Some(line) = input.next_if(|line| line.is_empty() || indent_of(line) >= least)
            {
                block.push(line);
            }
            let indent = block
                .iter()
                .filter(|line| !line.is_empty())
                .map(|line| indent_of(line))
                .min();
            let shown = block
                .iter()
                .map(|line| without_indent(line, indent.unwrap_or_default()));
            writer.code(NO_LANGUAGE, &shown.collect::<Vec<_>>());
        } else {
            writer.text(&line);
        }
    }
    writer.finish()
}

/// A text in one line, such as a cell of a table.
pub(crate) fn inline(text: &str) -> String {
    let text = plain(text);
    let words: Vec<&str> = text.split_whitespace().collect();
    let text = words.join(" ");
    let mut out = String::with_capacity(text.len());
    let mut rest = text.as_str();
    let mut before = ' ';
    while let Some(c) = rest.chars().next() {
        let length = if c == '`' {
            code_span(rest, &mut out)
        } else {
            let after = rest[c.len_utf8()..].chars().next();
            if is_special(before, c, after) {
                out.push('\\');
            }
            out.push(c);
            c.len_utf8()
        };
        before = rest[..length].chars().next_back().unwrap_or(' ');
        rest = &rest[length..];
    }
    out
}

/// A text without control characters, and without those that change the direction of what follows, which rustc refuses.
fn plain(text: &str) -> String {
    let is_shown = |c: char| match c {
        '\n' | '\t' => true,
        '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}' => false,
        other => !other.is_control(),
    };
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    text.chars()
        .map(|c| {
            if is_shown(c) {
                c
            } else {
                char::REPLACEMENT_CHARACTER
            }
        })
        .collect()
}

/// A line without white space at its end, and with spaces in place of the tabs at its beginning.
fn expanded(line: &str) -> String {
    let line = line.trim_end();
    let body = line.trim_start();
    let mut column = 0;
    for c in line[..line.len() - body.len()].chars() {
        column += if c == '\t' { 4 - column % 4 } else { 1 };
    }
    format!("{:column$}{body}", "")
}

fn indent_of(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

/// A line with so many spaces less at its beginning, if it has them.
fn without_indent(line: &str, indent: usize) -> &str {
    &line[indent.min(indent_of(line))..]
}

/// The line that begins a block of code.
struct Fence {
    mark: char,
    length: usize,
    indent: usize,
    language: &'static str,
}

impl Fence {
    fn opens(line: &str) -> Option<Self> {
        let body = line.trim_start();
        let mark = body.chars().next().filter(|c| matches!(c, '`' | '~'))?;
        let info = body.trim_start_matches(mark);
        let length = body.len() - info.len();
        if length < 3 || mark == '`' && info.contains('`') {
            return None;
        }
        let word = info.trim().to_ascii_lowercase();
        let known = LANGUAGES.into_iter().find(|language| *language == word);
        Some(Self {
            mark,
            length,
            indent: indent_of(line),
            language: known.unwrap_or(NO_LANGUAGE),
        })
    }

    fn closes(&self, line: &str) -> bool {
        let body = line.trim();
        body.len() >= self.length && body.chars().all(|c| c == self.mark)
    }
}

/// The lines that were written, and in what the next one stands.
#[derive(Default)]
struct Writer {
    out: Vec<String>,
    /// The column of the text of the last item, in a list.
    item: Option<usize>,
}

impl Writer {
    fn is_after_blank(&self) -> bool {
        self.out.last().is_none_or(String::is_empty)
    }

    fn blank(&mut self) {
        if !self.is_after_blank() {
            self.out.push(String::new());
        }
    }

    /// The indentation at which a block of code begins here.
    fn code_indent(&self) -> usize {
        self.item.unwrap_or_default() + MAX_INDENT + 1
    }

    /// Whether a line begins a block of code that has no fence: one that ends no paragraph, and is indented.
    fn begins_code(&self, line: &str) -> bool {
        self.is_after_blank() && indent_of(line) >= self.code_indent()
    }

    /// Writes a block of code, which belongs to no list, and whose fence is longer than any in it.
    fn code(&mut self, language: &str, lines: &[&str]) {
        let end = lines.iter().rposition(|line| !line.is_empty());
        let Some(end) = end else { return };
        let runs = lines.iter().flat_map(|line| line.split(|c| c != '`'));
        let longest = runs.map(str::len).max().unwrap_or_default();
        let fence = "`".repeat(3.max(longest + 1));
        self.blank();
        self.out.push(format!("{fence}{language}"));
        self.out
            .extend(lines[..=end].iter().map(|line| (*line).to_owned()));
        self.out.push(fence);
        self.out.push(String::new());
        self.item = None;
    }

    fn text(&mut self, line: &str) {
        let indent = indent_of(line);
        let body = line.trim_start();
        let shown = " ".repeat(indent.min(MAX_INDENT));
        let marker = marker(body).unwrap_or_default();
        let rest = body[marker.len()..].trim_start();
        if !marker.is_empty() && !rest.is_empty() {
            self.item = Some(indent + marker.len() + 1);
            self.out
                .push(format!("{shown}{marker} {}", beginning(rest)));
            return;
        }
        if self.is_after_blank() && indent == 0 {
            self.item = None;
        }
        self.out.push(format!("{shown}{}", beginning(body)));
    }

    fn finish(mut self) -> Vec<String> {
        if self.out.last().is_some_and(String::is_empty) {
            self.out.pop();
        }
        self.out
    }
}

/// The mark of an item of a list with which a line begins: `-`, `*` or `1.`.
fn marker(body: &str) -> Option<&str> {
    let digits = body.len() - body.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let length = match body[digits..].chars().next()? {
        '-' | '*' if digits == 0 => 1,
        '.' | ')' if (1..=9).contains(&digits) => digits + 1,
        _ => return None,
    };
    body[length..]
        .starts_with([' ', '\t'])
        .then(|| &body[..length])
}

/// The text at the beginning of a line or of an item, where more is special than inside.
fn beginning(text: &str) -> String {
    let mut chars = text.chars();
    let (first, after) = (chars.next().unwrap_or(' '), chars.next());
    let is_special = match first {
        '#' | '>' | '|' | '+' => true,
        '-' => after.is_none_or(|c| matches!(c, '-' | ' ' | '\t' | '|' | ':')),
        '=' => after.is_none_or(|c| matches!(c, '=' | ' ')),
        ':' => after == Some('-'),
        _ => false,
    };
    let shown = inline(text);
    if is_special {
        return format!("\\{shown}");
    }
    match marker(text) {
        Some(marker) if first.is_ascii_digit() => {
            let at = marker.len() - 1;
            format!("{}\\{}", &shown[..at], &shown[at..])
        }
        _ => shown,
    }
}

/// Writes the code at the beginning of a text, or its backticks as text. Returns the length of what was read.
fn code_span(text: &str, out: &mut String) -> usize {
    let run = text.len() - text.trim_start_matches('`').len();
    let mut at = run;
    while let Some(found) = text[at..].find('`') {
        let begin = at + found;
        let length = text[begin..].len() - text[begin..].trim_start_matches('`').len();
        at = begin + length;
        if length == run {
            out.push_str(&text[..at]);
            return at;
        }
    }
    out.push_str(&"\\`".repeat(run));
    run
}

/// Whether a character between others has a meaning in Markdown.
fn is_special(before: char, c: char, after: Option<char>) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    match c {
        '[' | ']' | '*' | '~' => true,
        '_' => !(is_word(before) && after.is_some_and(is_word)),
        '<' => after.is_some_and(|c| c.is_ascii_alphabetic() || matches!(c, '/' | '!' | '?')),
        '&' => after.is_some_and(|c| c.is_ascii_alphanumeric() || c == '#'),
        '\\' => after.is_none_or(|c| c.is_ascii_punctuation()),
        _ => false,
    }
}

#[cfg(test)]
pub(crate) mod tests;
