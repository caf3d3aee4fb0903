//! Tokens of an expression.

use crate::ast::Literal;
use crate::issue::Issue;

/// A token.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Token {
    Literal(Literal),
    Identifier(String),
    /// An operator or a bracket.
    Symbol(&'static str),
    End,
}

impl Token {
    /// The length in the source, if the token says it.
    pub(crate) fn len(&self) -> Option<usize> {
        match self {
            Self::Symbol(symbol) => Some(symbol.len()),
            Self::Identifier(name) => Some(name.len()),
            Self::Literal(_) | Self::End => None,
        }
    }
}

/// Operators, the longest first.
const SYMBOLS: [&str; 26] = [
    "==", "!=", "<=", ">=", "&&", "||", "<", ">", "!", "?", ":", "+", "-", "*", "/", "%", ".", ",",
    "(", ")", "[", "]", "{", "}", "=", "&",
];

/// Maximum number of texts that are no tokens, as in cel-go. What follows them is not looked at.
const MAX_UNKNOWN: usize = 100;

/// Splits a source into tokens with their places. What is no token is skipped, as in cel-go: its issues stand beside those of the
/// parser.
pub(crate) fn tokens(source: &str) -> (Vec<(Token, u32)>, Vec<Issue>) {
    let mut lexer = Lexer {
        source,
        bytes: source.as_bytes(),
        at: 0,
        malformed: Vec::new(),
    };
    let (mut found, mut unknown) = (Vec::new(), Vec::new());
    while unknown.len() < MAX_UNKNOWN {
        lexer.skip_space();
        let start = lexer.at;
        match lexer.token() {
            Ok(Token::End) => break,
            Ok(token) => found.push((token, start as u32)),
            Err(Unknown { at, end }) => {
                let shown = source.get(at..end).unwrap_or_default();
                let text = format!("Syntax error: token recognition error at: '{shown}'");
                unknown.push(Issue::new(at, text));
                lexer.at = end;
            }
        }
    }
    found.push((Token::End, source.len() as u32));
    unknown.append(&mut lexer.malformed);
    (found, unknown)
}

/// A text that is no token.
struct Unknown {
    at: usize,
    end: usize,
}

struct Lexer<'s> {
    source: &'s str,
    bytes: &'s [u8],
    at: usize,
    /// The issues of tokens whose values cannot be read.
    malformed: Vec<Issue>,
}

impl Lexer<'_> {
    fn peek(&self, ahead: usize) -> u8 {
        self.bytes.get(self.at + ahead).copied().unwrap_or(0)
    }

    /// What begins here is no token up to the character at a place, which is skipped with it.
    fn unknown(&self, start: usize, at: usize) -> Unknown {
        let next = self.source.get(at..).and_then(|rest| rest.chars().next());
        let end = (at + next.map_or(0, char::len_utf8)).min(self.source.len());
        Unknown { at: start, end }
    }

    /// Notes that the value of a token cannot be read; the token has another one.
    fn malformed(&mut self, at: usize, text: &str, instead: Literal) -> Token {
        self.malformed.push(Issue::new(at, text));
        Token::Literal(instead)
    }

    fn skip_space(&mut self) {
        loop {
            match self.peek(0) {
                b' ' | b'\t' | b'\n' | b'\r' | 0x0c if self.at < self.bytes.len() => self.at += 1,
                b'/' if self.peek(1) == b'/' => {
                    while self.at < self.bytes.len() && self.bytes[self.at] != b'\n' {
                        self.at += 1;
                    }
                }
                _ => return,
            }
        }
    }

    fn token(&mut self) -> Result<Token, Unknown> {
        if self.at >= self.bytes.len() {
            return Ok(Token::End);
        }
        let first = self.peek(0);
        if first.is_ascii_digit() || (first == b'.' && self.peek(1).is_ascii_digit()) {
            return Ok(self.number());
        }
        if first == b'"' || first == b'\'' {
            return self.string(false, false);
        }
        if first.is_ascii_alphabetic() || first == b'_' {
            if let Some((is_raw, is_bytes, len)) = self.string_prefix() {
                self.at += len;
                return self.string(is_raw, is_bytes);
            }
            let start = self.at;
            while self.peek(0).is_ascii_alphanumeric() || self.peek(0) == b'_' {
                self.at += 1;
            }
            let name = &self.source[start..self.at];
            return Ok(match name {
                "true" => Token::Literal(Literal::Bool(true)),
                "false" => Token::Literal(Literal::Bool(false)),
                "null" => Token::Literal(Literal::Null),
                "in" => Token::Symbol("in"),
                _ => Token::Identifier(name.to_owned()),
            });
        }
        let rest = &self.source[self.at..];
        let symbol = SYMBOLS.iter().find(|symbol| rest.starts_with(**symbol));
        match symbol {
            Some(symbol) if !matches!(*symbol, "=" | "&") => {
                self.at += symbol.len();
                Ok(Token::Symbol(symbol))
            }
            _ => {
                // A single `=`, `&` or `|` is read as the beginning of a longer operator.
                let is_begun = matches!(first, b'=' | b'&' | b'|');
                Err(self.unknown(self.at, self.at + usize::from(is_begun)))
            }
        }
    }

    /// The prefix of a string literal here: raw, bytes, length of the prefix.
    fn string_prefix(&self) -> Option<(bool, bool, usize)> {
        let is_quote = |byte: u8| byte == b'"' || byte == b'\'';
        let (a, b) = (
            self.peek(0).to_ascii_lowercase(),
            self.peek(1).to_ascii_lowercase(),
        );
        match (a, b) {
            (b'r', q) if is_quote(q) => Some((true, false, 1)),
            (b'b', q) if is_quote(q) => Some((false, true, 1)),
            (b'r', b'b') | (b'b', b'r') if is_quote(self.peek(2)) => Some((true, true, 2)),
            _ => None,
        }
    }

    fn number(&mut self) -> Token {
        let start = self.at;
        let digits = |lexer: &mut Self| {
            while lexer.peek(0).is_ascii_digit() {
                lexer.at += 1;
            }
        };
        let is_hex = self.peek(0) == b'0'
            && matches!(self.peek(1), b'x' | b'X')
            && self.peek(2).is_ascii_hexdigit();
        if is_hex {
            self.at += 2;
            let from = self.at;
            while self.peek(0).is_ascii_hexdigit() {
                self.at += 1;
            }
            return self.whole(start, from, 16);
        }
        digits(self);
        let mut is_float = false;
        if self.peek(0) == b'.' && self.peek(1).is_ascii_digit() {
            is_float = true;
            self.at += 1;
            digits(self);
        }
        let signed = usize::from(matches!(self.peek(1), b'+' | b'-'));
        if matches!(self.peek(0), b'e' | b'E') && self.peek(1 + signed).is_ascii_digit() {
            is_float = true;
            self.at += 1 + signed;
            digits(self);
        }
        if !is_float {
            return self.whole(start, start, 10);
        }
        let number = self.source[start..self.at].parse().ok();
        match number.filter(|number: &f64| number.is_finite()) {
            Some(number) => Token::Literal(Literal::Double(number)),
            None => self.malformed(start, "invalid double literal", Literal::Double(0.0)),
        }
    }

    fn whole(&mut self, start: usize, from: usize, radix: u32) -> Token {
        let number = u64::from_str_radix(&self.source[from..self.at], radix);
        if matches!(self.peek(0), b'u' | b'U') {
            self.at += 1;
            return match number {
                Ok(number) => Token::Literal(Literal::Uint(number)),
                Err(_) => self.malformed(start, "invalid uint literal", Literal::Uint(0)),
            };
        }
        // The magnitude of the smallest integer has no positive literal; the parser adds its sign.
        match number {
            Ok(number) if number == 1 << 63 => Token::Literal(Literal::Int(i64::MIN)),
            Ok(number) if number < 1 << 63 => Token::Literal(Literal::Int(number as i64)),
            _ => self.malformed(start, "invalid int literal", Literal::Int(0)),
        }
    }

    /// Reads a string whose prefix was read.
    fn string(&mut self, is_raw: bool, is_bytes: bool) -> Result<Token, Unknown> {
        let start = self.at - usize::from(is_raw) - usize::from(is_bytes);
        let (quoted, quote) = (self.at, self.peek(0));
        let is_long = self.peek(1) == quote && self.peek(2) == quote;
        self.at += if is_long { 3 } else { 1 };
        let mut content = Content {
            is_of_bytes: is_bytes,
            ..Content::default()
        };
        match self.content(&mut content, (quote, is_long), is_raw) {
            Ok(()) => {}
            // Its first two quotes are an empty string.
            Err(_) if is_long => {
                self.at = quoted + 2;
                content.bytes.clear();
                content.problem = None;
            }
            // What looked like its prefix is a name.
            Err(_) if start < quoted => {
                self.at = quoted;
                let name = self.source[start..quoted].to_owned();
                return Ok(Token::Identifier(name));
            }
            Err(at) => return Err(self.unknown(start, at)),
        }
        let Content { bytes, problem, .. } = content;
        let literal = if is_bytes {
            Literal::Bytes(bytes.into())
        } else {
            // Escape sequences stand for whole characters.
            Literal::Text(String::from_utf8(bytes).unwrap_or_default().into())
        };
        Ok(match problem {
            Some(problem) => self.malformed(start, problem, literal),
            None => Token::Literal(literal),
        })
    }

    /// Reads the content of a string, and its end. The error is the place where it cannot go on.
    fn content(
        &mut self,
        out: &mut Content,
        (quote, is_long): (u8, bool),
        is_raw: bool,
    ) -> Result<(), usize> {
        loop {
            if self.at >= self.bytes.len() || (!is_long && matches!(self.peek(0), b'\n' | b'\r')) {
                return Err(self.at);
            }
            let byte = self.peek(0);
            if byte == quote {
                if !is_long {
                    self.at += 1;
                    return Ok(());
                }
                if self.peek(1) == quote && self.peek(2) == quote {
                    self.at += 3;
                    return Ok(());
                }
            }
            if byte == b'\\' && !is_raw {
                self.escape(out)?;
            } else {
                if byte == b'\\' && is_raw && self.peek(1) == quote {
                    out.bytes.push(byte);
                    self.at += 1;
                }
                out.bytes.push(self.bytes[self.at]);
                self.at += 1;
            }
        }
    }

    /// Reads an escape sequence. The error is the place where it cannot go on.
    fn escape(&mut self, out: &mut Content) -> Result<(), usize> {
        let kind = self.peek(1);
        let plain = match kind {
            b'a' => Some(7),
            b'b' => Some(8),
            b'f' => Some(12),
            b'n' => Some(b'\n'),
            b'r' => Some(b'\r'),
            b't' => Some(b'\t'),
            b'v' => Some(11),
            b'\\' | b'?' | b'"' | b'\'' | b'`' => Some(kind),
            _ => None,
        };
        if let Some(byte) = plain {
            self.at += 2;
            out.bytes.push(byte);
            return Ok(());
        }
        let (skipped, digits, radix) = match kind {
            b'x' | b'X' => (2, 2, 16),
            b'u' => (2, 4, 16),
            b'U' => (2, 8, 16),
            b'0'..=b'3' => (1, 3, 8),
            _ => return Err(self.at + 1),
        };
        let from = self.at + skipped;
        let is_digit = |at: &usize| char::from(self.peek(at - self.at)).is_digit(radix);
        if let Some(wrong) = (from..from + digits).find(|at| !is_digit(at)) {
            return Err(wrong.min(self.bytes.len()));
        }
        self.at = from + digits;
        let digits = self.source.get(from..self.at).unwrap_or_default();
        out.push_number(u32::from_str_radix(digits, radix).unwrap_or_default(), kind);
        Ok(())
    }
}

/// The content of a string.
#[derive(Default)]
struct Content {
    bytes: Vec<u8>,
    is_of_bytes: bool,
    /// What is wrong with an escape sequence.
    problem: Option<&'static str>,
}

impl Content {
    /// Adds what an escape sequence of this kind stands for.
    fn push_number(&mut self, number: u32, kind: u8) {
        if self.is_of_bytes {
            match u8::try_from(number)
                .ok()
                .filter(|_| !matches!(kind, b'u' | b'U'))
            {
                Some(byte) => self.bytes.push(byte),
                None => self.problem = Some("unable to unescape string"),
            }
            return;
        }
        match char::from_u32(number) {
            Some(c) => self
                .bytes
                .extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
            None => self.problem = Some("invalid unicode code point"),
        }
    }
}
