//! Parses the JSONPath of a printer column: the grammar of client-go's package `jsonpath`, with what it takes for granted.

use std::ops::ControlFlow;
use std::str::Chars;

use apiloom_vocabulary::Comparison;
use serde_json::Value;

use super::json_query::JsonQuery;
use super::node::{Filter, Node, Operator, Slice};
use crate::path::JsonPath;

/// How deep the expressions of filters and keys can be within each other; client-go's grammar has no more than a few.
const MAX_DEPTH: usize = 16;

/// Why a text is not a JSONPath that a printer column can have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}, at byte {at} of {path:?}")]
pub struct QueryError {
    text: &'static str,
    at: usize,
    path: String,
}

impl JsonQuery {
    /// Parses a JSONPath as Kubernetes reads that of a column: field names, whose dots have a backslash
    /// (`.metadata.labels.app\.io/name`, `['app\.io/name']`), items and slices (`[0]`, `[-1:]`, `[*]`), all parts (`.*`),
    /// all values below (`..name`), unions (`['a','b']`) and filters that compare (`[?(@.type=="Ready")]`) or find a value
    /// (`[?(@.type)]`).
    ///
    /// ```
    /// use apiloom_schema::query::JsonQuery;
    /// let query = JsonQuery::parse(r#".status.conditions[?(@.type=="Ready")].status"#)?;
    /// let document = serde_json::json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
    /// assert_eq!(query.first(&document).unwrap().as_value().unwrap(), "True");
    /// # Ok::<(), apiloom_schema::query::QueryError>(())
    /// ```
    ///
    /// # Errors
    /// If the path is malformed, or does not begin with `.`, `[`, `$` or `@`.
    pub fn parse(text: &str) -> Result<Self, QueryError> {
        if !text.starts_with(['.', '[', '$', '@']) {
            let why = "it must begin with `.`";
            return Err(Parser::new(text, 0).error(why));
        }
        let mut further = template(text, 0)?;
        // The first brace is ours, so there is a first action.
        let steps = further.remove(0);
        if !further.is_empty() {
            return Ok(Self {
                start: JsonPath::new([""; 0]),
                steps,
                further,
            });
        }
        let mut names = Vec::new();
        let mut steps = steps.into_iter().peekable();
        let is_plain = |node: &Node| match node {
            Node::Field(name) => {
                JsonPath::parse(name).is_some_and(|path| path.names() == [&**name])
            }
            _ => false,
        };
        while let Some(Node::Field(name)) = steps.next_if(is_plain) {
            names.push(name);
        }
        Ok(Self {
            start: JsonPath::new(names),
            steps: steps.collect(),
            further,
        })
    }
}

/// The actions of a template, which is text with actions in braces. This text is within the first braces.
fn template(text: &str, depth: usize) -> Result<Vec<Vec<Node>>, QueryError> {
    let text = format!("{{{text}}}");
    let mut parser = Parser::new(&text, depth);
    let mut actions = Vec::new();
    while let Some(open) = parser.rest().find('{') {
        parser.at += open + 1;
        actions.push(parser.action()?);
    }
    Ok(actions)
}

/// The first action of a template that is a part of another action.
fn part(text: &str, depth: usize) -> Result<Vec<Node>, QueryError> {
    if depth > MAX_DEPTH {
        return Err(Parser::new(text, depth).error("the path is too deep"));
    }
    template(text, depth).map(|mut actions| actions.remove(0))
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str, depth: usize) -> Self {
        Self { text, at: 0, depth }
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += next.len_utf8();
        Some(next)
    }

    fn take(&mut self, token: &str) -> bool {
        let is_next = self.rest().starts_with(token);
        if is_next {
            self.at += token.len();
        }
        is_next
    }

    fn error(&self, text: &'static str) -> QueryError {
        QueryError {
            text,
            at: self.at,
            path: crate::field::echoed(self.text).into_owned(),
        }
    }

    /// The parts up to the closing brace.
    fn action(&mut self) -> Result<Vec<Node>, QueryError> {
        let mut nodes = Vec::new();
        while self.node(&mut nodes)?.is_continue() {}
        Ok(nodes)
    }

    /// Reads the next part, if there is any.
    fn node(&mut self, nodes: &mut Vec<Node>) -> Result<ControlFlow<()>, QueryError> {
        if self.take("}") {
            return Ok(ControlFlow::Break(()));
        }
        if self.take("[?(") {
            nodes.push(Node::Where(self.filter()?));
            return Ok(ControlFlow::Continue(()));
        }
        if self.rest().starts_with("..") {
            self.descend(nodes)?;
            return Ok(ControlFlow::Continue(()));
        }
        let start = self.at;
        match self.next() {
            None | Some('\r' | '\n') => return Err(self.error("the path ends too early")),
            // The present object needs no sign.
            Some(' ' | '@' | '$') => {}
            Some('[') => self.bracket(nodes)?,
            Some(quote @ ('"' | '\'')) => nodes.push(self.quoted(quote)?),
            Some('.') => nodes.push(self.field()),
            Some(c) if matches!(c, '+' | '-') || is_digit(c) => {
                self.at = start;
                nodes.push(self.number()?);
            }
            Some(c) if is_alphanumeric(c) => {
                self.at = start;
                nodes.push(self.word());
            }
            Some(_) => {
                self.at = start;
                return Err(self.error("this character cannot stand here"));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn descend(&mut self, nodes: &mut Vec<Node>) -> Result<(), QueryError> {
        if nodes.last() == Some(&Node::Descend) {
            return Err(self.error("`..` stands here twice"));
        }
        self.at += "..".len();
        nodes.push(Node::Descend);
        if self.peek().is_some_and(is_alphanumeric) {
            nodes.push(self.field());
        }
        Ok(())
    }

    /// A field name up to the next separator without a backslash.
    fn field(&mut self) -> Node {
        let start = self.at;
        while let Some(next) = self.peek() {
            if ends_name(next) {
                break;
            }
            self.at += next.len_utf8();
            if next == '\\' {
                self.next();
            }
        }
        match &self.text[start..self.at] {
            "*" => Node::Every,
            name => Node::Field(name.replace('\\', "")),
        }
    }

    fn word(&mut self) -> Node {
        let rest = self.rest();
        let word = &rest[..rest.find(ends_name).unwrap_or(rest.len())];
        self.at += word.len();
        match word {
            "true" => Node::Literal(Value::Bool(true)),
            "false" => Node::Literal(Value::Bool(false)),
            word => Node::Word(word.to_owned()),
        }
    }

    fn number(&mut self) -> Result<Node, QueryError> {
        let rest = self.rest();
        let digits = rest.strip_prefix(['+', '-']).unwrap_or(rest);
        let end = digits.find(|c| c != '.' && !is_digit(c));
        let sign = rest.len() - digits.len();
        let number = &rest[..sign + end.unwrap_or(digits.len())];
        if let Ok(integer) = number.parse() {
            self.at += number.len();
            return Ok(Node::Integer(integer));
        }
        let float = number.parse().ok().and_then(serde_json::Number::from_f64);
        let float = float.ok_or_else(|| self.error("this is no number"))?;
        self.at += number.len();
        Ok(Node::Literal(Value::Number(float)))
    }

    /// A text in quotes.
    fn quoted(&mut self, quote: char) -> Result<Node, QueryError> {
        let start = self.at;
        loop {
            match self.next() {
                None | Some('\n') => return Err(self.error("a quote is not closed")),
                Some(next) if next == quote && !self.text[..self.at - 1].ends_with('\\') => break,
                Some(_) => {}
            }
        }
        let inner = &self.text[start..self.at - 1];
        let text = unquoted(inner, quote).ok_or_else(|| self.error("a backslash is misplaced"))?;
        Ok(Node::Literal(Value::String(text)))
    }

    /// An item, a slice, a key or a union of these.
    fn bracket(&mut self, nodes: &mut Vec<Node>) -> Result<(), QueryError> {
        let rest = self.rest();
        let end = rest.find([']', '\n']);
        let Some(end) = end.filter(|end| rest[*end..].starts_with(']')) else {
            return Err(self.error("`[` is not closed"));
        };
        let inner = &rest[..end];
        if inner.contains(',') {
            let parts = inner.split(',').map(|one| one.trim_matches(' '));
            let parts = parts.map(|one| part(&format!("[{one}]"), self.depth + 1));
            nodes.push(Node::Union(parts.collect::<Result<_, _>>()?));
        } else if let Some(key) = key(inner) {
            // Dots in it separate names, as outside of brackets.
            nodes.extend(part(&format!(".{key}"), self.depth + 1)?);
        } else {
            let why = "in brackets stands a number, a slice, `*` or a key in single quotes";
            nodes.push(slice(inner).ok_or_else(|| self.error(why))?);
        }
        self.at += end + 1;
        Ok(())
    }

    fn filter(&mut self) -> Result<Filter, QueryError> {
        let inner = self.filter_text()?;
        let is_operator = |c: char| "!<>=".contains(c);
        let (left, rest) = inner.split_at(inner.find(is_operator).unwrap_or(inner.len()));
        let (mut operator, mut right) =
            rest.split_at(rest.find(|c| !is_operator(c)).unwrap_or(rest.len()));
        if right.is_empty() && operator.len() > 1 {
            (operator, right) = operator.split_at(operator.len() - 1);
        }
        let depth = self.depth + 1;
        if left.is_empty() || right.is_empty() {
            return Ok(Filter {
                left: part(inner, depth)?,
                test: None,
            });
        }
        let known = Comparison::ALL
            .into_iter()
            .find(|one| one.word() == operator);
        let operator = match known {
            Some(known) => Operator::Known(known),
            None => Operator::Unknown(operator.to_owned()),
        };
        Ok(Filter {
            left: part(left, depth)?,
            test: Some((operator, part(right, depth)?)),
        })
    }

    /// The text of a filter up to `)]`. One text in quotes can have parentheses.
    fn filter_text(&mut self) -> Result<&'a str, QueryError> {
        let start = self.at;
        let (mut quote, mut is_closed) = (None, false);
        loop {
            match (self.next(), quote) {
                (None | Some('\n'), _) => return Err(self.error("a filter is not closed")),
                (Some(next @ ('"' | '\'')), None) => quote = Some(next),
                (Some(next), Some(open)) if next == open => {
                    is_closed |= !self.text[..self.at - 1].ends_with('\\');
                }
                (Some(')'), quote) if quote.is_some() == is_closed => break,
                _ => {}
            }
        }
        let inner = &self.text[start..self.at - 1];
        if !self.take("]") {
            return Err(self.error("expected `]` after a filter"));
        }
        Ok(inner)
    }
}

/// The key of a bracket with nothing but a key in single quotes.
fn key(inner: &str) -> Option<&str> {
    let key = inner.strip_prefix('\'')?.strip_suffix('\'')?;
    (!key.contains('\'')).then_some(key)
}

/// An item or a slice.
fn slice(inner: &str) -> Option<Node> {
    if inner == "*" {
        return Some(Node::Slice(Slice::default()));
    }
    let mut bounds = inner.splitn(3, ':');
    let mut next = || match bounds.next() {
        None | Some("") => Some(None),
        Some(text) => {
            let digits = text.strip_prefix('-').unwrap_or(text);
            let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
            text.parse().ok().filter(|_| is_number).map(Some)
        }
    };
    let (from, to, step) = (next()?, next()?, next()?);
    Some(if inner.contains(':') {
        Node::Slice(Slice { from, to, step })
    } else {
        Node::Item(from.unwrap_or(0))
    })
}

/// A quoted text without the backslashes of Go's escapes.
fn unquoted(inner: &str, quote: char) -> Option<String> {
    let mut bytes = Vec::with_capacity(inner.len());
    let mut rest = inner.chars();
    while let Some(character) = rest.next() {
        match character {
            '\\' => escape(&mut rest, quote, &mut bytes)?,
            _ if character == quote => return None,
            other => push(other, &mut bytes),
        }
    }
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Reads what follows a backslash.
fn escape(rest: &mut Chars<'_>, quote: char, bytes: &mut Vec<u8>) -> Option<()> {
    let number = |rest: &mut Chars<'_>, first: u32, digits: usize, radix: u32| {
        (0..digits).try_fold(first, |number, _| {
            let digit = rest.next()?.to_digit(radix)?;
            number.checked_mul(radix)?.checked_add(digit)
        })
    };
    let byte = match rest.next()? {
        'a' => 0x07,
        'b' => 0x08,
        'f' => 0x0c,
        'n' => b'\n',
        'r' => b'\r',
        't' => b'\t',
        'v' => 0x0b,
        '\\' => b'\\',
        c if c == quote => {
            push(c, bytes);
            return Some(());
        }
        'x' => u8::try_from(number(rest, 0, 2, 16)?).ok()?,
        long @ ('u' | 'U') => {
            let digits = if long == 'u' { 4 } else { 8 };
            push(char::from_u32(number(rest, 0, digits, 16)?)?, bytes);
            return Some(());
        }
        first => {
            let first = first.to_digit(8)?;
            u8::try_from(number(rest, first, 2, 8)?).ok()?
        }
    };
    bytes.push(byte);
    Some(())
}

fn push(character: char, bytes: &mut Vec<u8>) {
    bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
}

/// Whether a character ends a name.
fn ends_name(c: char) -> bool {
    " \t\r\n.,[]$@{}".contains(c)
}

fn is_digit(c: char) -> bool {
    c.is_numeric() && !c.is_alphabetic()
}

fn is_alphanumeric(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}
