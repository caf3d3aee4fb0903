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

/// Splits a source into tokens with their places.
pub(crate) fn tokens(source: &str) -> Result<Vec<(Token, u32)>, Issue> {
    let mut lexer = Lexer {
        source,
        bytes: source.as_bytes(),
        at: 0,
    };
    let mut found = Vec::new();
    loop {
        lexer.skip_space();
        let start = lexer.at;
        let token = lexer.token()?;
        let is_end = token == Token::End;
        found.push((token, start as u32));
        if is_end {
            return Ok(found);
        }
    }
}

struct Lexer<'s> {
    source: &'s str,
    bytes: &'s [u8],
    at: usize,
}

impl Lexer<'_> {
    fn peek(&self, ahead: usize) -> u8 {
        self.bytes.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn issue(&self, at: usize, text: impl Into<String>) -> Issue {
        Issue::new(at, format!("Syntax error: {}", text.into()))
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

    fn token(&mut self) -> Result<Token, Issue> {
        if self.at >= self.bytes.len() {
            return Ok(Token::End);
        }
        let first = self.peek(0);
        if first.is_ascii_digit() || (first == b'.' && self.peek(1).is_ascii_digit()) {
            return self.number();
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
                let count = if matches!(first, b'=' | b'&' | b'|') {
                    2
                } else {
                    1
                };
                let shown: String = rest.chars().take(count).collect();
                Err(self.issue(self.at, format!("token recognition error at: '{shown}'")))
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

    fn number(&mut self) -> Result<Token, Issue> {
        let start = self.at;
        let digits = |lexer: &mut Self| {
            while lexer.peek(0).is_ascii_digit() {
                lexer.at += 1;
            }
        };
        if self.peek(0) == b'0' && matches!(self.peek(1), b'x' | b'X') {
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
        let text = &self.source[start..self.at];
        let number: f64 = text
            .parse()
            .ok()
            .filter(|number: &f64| number.is_finite())
            .ok_or_else(|| Issue::new(start, "invalid double literal"))?;
        Ok(Token::Literal(Literal::Double(number)))
    }

    fn whole(&mut self, start: usize, from: usize, radix: u32) -> Result<Token, Issue> {
        let text = &self.source[from..self.at];
        if matches!(self.peek(0), b'u' | b'U') {
            self.at += 1;
            let number = u64::from_str_radix(text, radix)
                .map_err(|_| Issue::new(start, "invalid uint literal"))?;
            return Ok(Token::Literal(Literal::Uint(number)));
        }
        // The magnitude of the smallest integer has no positive literal; the parser adds its sign.
        match u64::from_str_radix(text, radix) {
            Ok(number) if number == 1 << 63 => Ok(Token::Literal(Literal::Int(i64::MIN))),
            Ok(number) if number < 1 << 63 => Ok(Token::Literal(Literal::Int(number as i64))),
            _ => Err(Issue::new(start, "invalid int literal")),
        }
    }

    fn string(&mut self, is_raw: bool, is_bytes: bool) -> Result<Token, Issue> {
        let start = self.at;
        let quote = self.peek(0);
        let is_long = self.peek(1) == quote && self.peek(2) == quote;
        self.at += if is_long { 3 } else { 1 };
        let mut text: Vec<u8> = Vec::new();
        loop {
            if self.at >= self.bytes.len() || (!is_long && matches!(self.peek(0), b'\n' | b'\r')) {
                let shown: String = self.source[start..].chars().take(20).collect();
                return Err(self.issue(start, format!("token recognition error at: '{shown}'")));
            }
            let byte = self.peek(0);
            if byte == quote {
                if !is_long {
                    self.at += 1;
                    break;
                }
                if self.peek(1) == quote && self.peek(2) == quote {
                    self.at += 3;
                    break;
                }
            }
            if byte == b'\\' && !is_raw {
                self.escape(&mut text, is_bytes)?;
            } else {
                if byte == b'\\' && is_raw && self.peek(1) == quote {
                    text.push(byte);
                    self.at += 1;
                }
                text.push(self.bytes[self.at]);
                self.at += 1;
            }
        }
        if is_bytes {
            return Ok(Token::Literal(Literal::Bytes(text.into())));
        }
        let text = String::from_utf8(text)
            .map_err(|_| self.issue(start, "the string is not valid UTF-8"))?;
        Ok(Token::Literal(Literal::Text(text.into())))
    }

    fn escape(&mut self, out: &mut Vec<u8>, is_bytes: bool) -> Result<(), Issue> {
        let start = self.at;
        let kind = self.peek(1);
        self.at += 2;
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
            out.push(byte);
            return Ok(());
        }
        let (digits, radix) = match kind {
            b'x' | b'X' => (2, 16),
            b'u' if !is_bytes => (4, 16),
            b'U' if !is_bytes => (8, 16),
            b'0'..=b'3' => {
                self.at -= 1;
                (3, 8)
            }
            _ => return Err(self.issue(start, "invalid escape sequence in a string literal")),
        };
        let number = self
            .source
            .get(self.at..self.at + digits)
            .filter(|text| text.bytes().all(|byte| byte.is_ascii_hexdigit()))
            .and_then(|text| u32::from_str_radix(text, radix).ok());
        let wrong = || self.issue(start, "invalid escape sequence in a string literal");
        let number = number.ok_or_else(wrong)?;
        if is_bytes {
            out.push(u8::try_from(number).map_err(|_| wrong())?);
        } else {
            let c = char::from_u32(number).ok_or_else(wrong)?;
            out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        }
        self.at += digits;
        Ok(())
    }
}
