//! The parser of label selectors: tokens, then requirements; errors name the unexpected token.

use super::requirement::{Operator, Requirement, key_error};
use crate::field::FieldPath;

/// Parses all requirements, in the order of the text.
pub(super) fn requirements(text: &str) -> Result<Vec<Requirement>, String> {
    Parser {
        tokens: tokens(text),
        position: 0,
    }
    .selector()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token {
    End,
    Comma,
    Open,
    Close,
    Not,
    Equals,
    DoubleEquals,
    NotEquals,
    Greater,
    Less,
    In,
    NotIn,
    Identifier,
}

fn is_symbol(byte: u8) -> bool {
    matches!(byte, b'=' | b'!' | b'(' | b')' | b',' | b'>' | b'<')
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

/// The tokens with their texts; the last one is `End`, with an empty text.
fn tokens(text: &str) -> Vec<(Token, &str)> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start_matches([' ', '\t', '\r', '\n']);
    while !rest.is_empty() {
        let (token, len) = match symbol(rest) {
            Some(found) => found,
            None => {
                let len = rest
                    .bytes()
                    .position(|b| is_symbol(b) || is_space(b))
                    .unwrap_or(rest.len());
                (word(&rest[..len]), len)
            }
        };
        tokens.push((token, &rest[..len]));
        rest = rest[len..].trim_start_matches([' ', '\t', '\r', '\n']);
    }
    tokens.push((Token::End, ""));
    tokens
}

fn symbol(rest: &str) -> Option<(Token, usize)> {
    let token = match rest.as_bytes() {
        [b'=', b'=', ..] => return Some((Token::DoubleEquals, 2)),
        [b'!', b'=', ..] => return Some((Token::NotEquals, 2)),
        [b'=', ..] => Token::Equals,
        [b'!', ..] => Token::Not,
        [b'(', ..] => Token::Open,
        [b')', ..] => Token::Close,
        [b',', ..] => Token::Comma,
        [b'>', ..] => Token::Greater,
        [b'<', ..] => Token::Less,
        _ => return None,
    };
    Some((token, 1))
}

fn word(text: &str) -> Token {
    match text {
        "in" => Token::In,
        "notin" => Token::NotIn,
        _ => Token::Identifier,
    }
}

struct Parser<'t> {
    tokens: Vec<(Token, &'t str)>,
    position: usize,
}

impl<'t> Parser<'t> {
    /// The next token; `in` and `notin` are identifiers here.
    fn peek(&self) -> (Token, &'t str) {
        match self.peek_operator() {
            (Token::In | Token::NotIn, text) => (Token::Identifier, text),
            other => other,
        }
    }

    fn next(&mut self) -> (Token, &'t str) {
        let token = self.peek();
        self.position += 1;
        token
    }

    /// The next token where an operator is expected, which is the only place where `in` and `notin` are keywords.
    fn peek_operator(&self) -> (Token, &'t str) {
        self.tokens
            .get(self.position)
            .copied()
            .unwrap_or((Token::End, ""))
    }

    fn selector(&mut self) -> Result<Vec<Requirement>, String> {
        let mut requirements = Vec::new();
        loop {
            match self.peek() {
                (Token::Identifier | Token::Not, _) => {}
                (Token::End, _) => return Ok(requirements),
                (_, found) => {
                    return Err(format!(
                        "found '{found}', expected: !, identifier, or 'end of string'"
                    ));
                }
            }
            requirements.push(
                self.requirement()
                    .map_err(|why| format!("unable to parse requirement: {why}"))?,
            );
            match self.next() {
                (Token::End, _) => return Ok(requirements),
                (Token::Comma, _) => {}
                (_, found) => {
                    return Err(format!("found '{found}', expected: ',' or 'end of string'"));
                }
            }
            let (token, found) = self.peek();
            if !matches!(token, Token::Identifier | Token::Not) {
                return Err(format!("found '{found}', expected: identifier after ','"));
            }
        }
    }

    fn requirement(&mut self) -> Result<Requirement, String> {
        let (mut token, mut key) = self.next();
        let negated = token == Token::Not;
        if negated {
            (token, key) = self.next();
        }
        if token != Token::Identifier {
            return Err(format!("found '{key}', expected: identifier"));
        }
        if let Some(error) = key_error(key, FieldPath::root) {
            return Err(error.to_string());
        }
        if negated {
            return Requirement::with_valid_key(key, Operator::DoesNotExist, Vec::new());
        }
        if matches!(self.peek().0, Token::End | Token::Comma) {
            return Requirement::with_valid_key(key, Operator::Exists, Vec::new());
        }
        let operator = self.operator()?;
        let values = match operator {
            Operator::In | Operator::NotIn => self.values()?,
            _ => vec![self.exact_value()?],
        };
        Requirement::with_valid_key(
            key,
            operator,
            values.into_iter().map(str::to_owned).collect(),
        )
    }

    fn operator(&mut self) -> Result<Operator, String> {
        let (token, found) = self.peek_operator();
        self.position += 1;
        Ok(match token {
            Token::In => Operator::In,
            Token::NotIn => Operator::NotIn,
            Token::Equals => Operator::Equals,
            Token::DoubleEquals => Operator::DoubleEquals,
            Token::NotEquals => Operator::NotEquals,
            Token::Greater => Operator::GreaterThan,
            Token::Less => Operator::LessThan,
            _ => {
                return Err(format!(
                    "found '{found}', expected: in, notin, =, ==, !=, gt, lt"
                ));
            }
        })
    }

    /// The value after `=`; empty if there is none.
    fn exact_value(&mut self) -> Result<&'t str, String> {
        if matches!(self.peek().0, Token::End | Token::Comma) {
            return Ok("");
        }
        match self.next() {
            (Token::Identifier, value) => Ok(value),
            (_, found) => Err(format!("found '{found}', expected: identifier")),
        }
    }

    /// The values in parentheses; a missing value is the empty string.
    fn values(&mut self) -> Result<Vec<&'t str>, String> {
        let (token, found) = self.next();
        if token != Token::Open {
            return Err(format!("found '{found}' expected: '('"));
        }
        match self.peek() {
            (Token::Close, _) => {
                self.position += 1;
                return Ok(vec![""]);
            }
            (Token::Identifier | Token::Comma, _) => {}
            (_, found) => return Err(format!("found '{found}', expected: ',', ')' or identifier")),
        }
        let mut values = Vec::new();
        loop {
            match self.next() {
                (Token::Identifier, value) => {
                    values.push(value);
                    match self.peek() {
                        (Token::Comma | Token::Close, _) => {}
                        (_, found) => return Err(format!("found '{found}', expected: ',' or ')'")),
                    }
                }
                (Token::Comma, _) => {
                    if values.is_empty() || matches!(self.peek().0, Token::Comma | Token::Close) {
                        values.push("");
                    }
                }
                (_, found) => return Err(format!("found '{found}', expected: ',', or identifier")),
            }
            if self.peek().0 == Token::Close {
                self.position += 1;
                return Ok(values);
            }
        }
    }
}
