//! The syntax of Go's package `regexp`, by which Kubernetes accepts patterns, with its texts of errors.

/// Maximum number of repetitions, of nested ones together.
const MAX_REPEAT: u64 = 1000;

/// Why Go would refuse a pattern, with the part that it names; `None` if it is right.
pub fn go_pattern_problem(pattern: &str) -> Option<String> {
    let mut parser = Parser {
        pattern,
        at: 0,
        names: Vec::new(),
    };
    parser.run().err()
}

/// The part of a pattern between brackets: the whole if none is open.
#[derive(Clone, Copy, Debug, Default)]
struct Level {
    /// How often the last operand is repeated at most; `None` without an operand.
    operand: Option<u64>,
    /// The most of all operands.
    most: u64,
}

impl Level {
    fn push(&mut self, repeats: u64) {
        self.operand = Some(repeats);
        self.most = self.most.max(repeats);
    }
}

struct Parser<'p> {
    pattern: &'p str,
    at: usize,
    names: Vec<&'p str>,
}

type Checked<T> = Result<T, String>;

fn problem<T>(kind: &str, part: &str) -> Checked<T> {
    Err(format!("{kind}: `{part}`"))
}

impl<'p> Parser<'p> {
    fn rest(&self) -> &'p str {
        self.pattern.get(self.at..).unwrap_or_default()
    }

    fn since(&self, start: usize) -> &'p str {
        self.pattern.get(start..self.at).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += next.len_utf8();
        Some(next)
    }

    fn take(&mut self, text: &str) -> bool {
        let is_next = self.rest().starts_with(text);
        if is_next {
            self.at += text.len();
        }
        is_next
    }

    fn run(&mut self) -> Checked<()> {
        let mut open: Vec<Level> = Vec::new();
        let mut level = Level::default();
        let mut last_repeat: Option<usize> = None;
        while let Some(c) = self.peek() {
            let start = self.at;
            let mut repeat = None;
            match c {
                '(' => {
                    if self.group()? {
                        open.push(std::mem::take(&mut level));
                    }
                }
                ')' => {
                    self.at += 1;
                    let Some(outer) = open.pop() else {
                        return problem("unexpected )", self.pattern);
                    };
                    let inner = std::mem::replace(&mut level, outer);
                    level.push(inner.most.max(1));
                }
                '|' => {
                    self.at += 1;
                    level.operand = None;
                }
                '*' | '+' | '?' => {
                    self.at += 1;
                    repeat = Some(1);
                }
                '{' => match self.bounds()? {
                    Some(most) => repeat = Some(most),
                    None => {
                        self.at += 1;
                        level.push(1);
                    }
                },
                '[' => {
                    self.class()?;
                    level.push(1);
                }
                '\\' => {
                    if self.escape()? {
                        level.push(1);
                    }
                }
                _ => {
                    self.next();
                    level.push(1);
                }
            }
            let Some(most) = repeat else {
                last_repeat = None;
                continue;
            };
            self.take("?");
            if let Some(last) = last_repeat {
                return problem("invalid nested repetition operator", self.since(last));
            }
            let Some(inner) = level.operand else {
                let part = self.since(start);
                return problem("missing argument to repetition operator", part);
            };
            let all = inner.saturating_mul(most.max(1));
            if most >= 2 && all > MAX_REPEAT {
                return problem("invalid repeat count", self.since(start));
            }
            level.push(if most == 0 { 1 } else { all });
            last_repeat = Some(start);
        }
        if open.is_empty() {
            Ok(())
        } else {
            problem("missing closing )", self.pattern)
        }
    }

    /// `{n}`, `{n,}` or `{n,m}`: the larger number. Anything else is a literal.
    fn bounds(&mut self) -> Checked<Option<u64>> {
        let start = self.at;
        let Some((inner, _)) = self.rest().get(1..).and_then(|rest| rest.split_once('}')) else {
            return Ok(None);
        };
        let number = |text: &str| {
            let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            let is_short = text.len() == 1 || !text.starts_with('0');
            (is_number && is_short).then(|| text.parse::<u64>().unwrap_or(u64::MAX))
        };
        let (least, most) = match inner.split_once(',') {
            None => (number(inner), number(inner)),
            Some((least, "")) => (number(least), number(least)),
            Some((least, most)) => (number(least), number(most)),
        };
        let (Some(least), Some(most)) = (least, most) else {
            return Ok(None);
        };
        self.at += inner.len() + 2;
        if least > MAX_REPEAT || most > MAX_REPEAT || least > most {
            return problem("invalid repeat count", self.since(start));
        }
        Ok(Some(most))
    }

    /// The beginning of a group. Returns whether it is one, and not only flags.
    fn group(&mut self) -> Checked<bool> {
        let start = self.at;
        self.at += 1;
        if !self.rest().starts_with('?') {
            return Ok(true);
        }
        self.at += 1;
        if self.take("P<") || self.take("<") {
            let from = self.at;
            let Some(length) = self.rest().find('>') else {
                let whole = self.pattern.get(start..).unwrap_or_default();
                return problem("invalid named capture", whole);
            };
            self.at += length;
            let name = self.since(from);
            self.at += 1;
            let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
            if name.is_empty() || !name.chars().all(is_word) {
                return problem("invalid named capture", self.since(start));
            }
            if self.names.contains(&name) {
                return problem("duplicate capture group name", name);
            }
            self.names.push(name);
            return Ok(true);
        }
        let (mut is_negative, mut has_flag) = (false, false);
        while let Some(flag) = self.next() {
            match flag {
                'i' | 'm' | 's' | 'U' => has_flag = true,
                '-' if !is_negative => {
                    is_negative = true;
                    has_flag = false;
                }
                ':' | ')' if !is_negative || has_flag => return Ok(flag == ':'),
                _ => break,
            }
        }
        problem("invalid or unsupported Perl syntax", self.since(start))
    }

    /// An escape outside of a class. Returns whether it is an operand.
    fn escape(&mut self) -> Checked<bool> {
        let start = self.at;
        let rest = self.rest();
        if let Some(quoted) = rest.strip_prefix(r"\Q") {
            let length = quoted.find(r"\E").map_or(quoted.len(), |end| end + 2);
            self.at += length + 2;
            return Ok(!quoted.is_empty() && !quoted.starts_with(r"\E"));
        }
        match rest.chars().nth(1) {
            Some('A' | 'b' | 'B' | 'z' | 'd' | 'D' | 's' | 'S' | 'w' | 'W') => self.at += 2,
            Some('p' | 'P') => self.property()?,
            Some('C') => {
                self.at += 2;
                return problem("invalid escape sequence", self.since(start));
            }
            _ => {
                self.character()?;
            }
        }
        Ok(true)
    }

    /// `\pL` or `\p{Greek}`.
    fn property(&mut self) -> Checked<()> {
        const KIND: &str = "invalid character class range";
        let start = self.at;
        self.at += 2;
        let name = if self.take("{") {
            let Some(length) = self.rest().find('}') else {
                return problem(KIND, self.pattern.get(start..).unwrap_or_default());
            };
            self.at += length + 1;
            let name = self.since(self.at - length - 1);
            name.trim_end_matches('}')
                .trim_start_matches('^')
                .to_owned()
        } else {
            self.next().map(String::from).unwrap_or_default()
        };
        let is_plain = name.starts_with(|c: char| c.is_ascii_uppercase())
            && name.chars().all(|c| c.is_ascii_alphabetic() || c == '_')
            && !name.starts_with("Is");
        if is_plain && regex_syntax::parse(&format!(r"\p{{{name}}}")).is_ok() {
            return Ok(());
        }
        problem(KIND, self.since(start))
    }

    /// The character of an escape.
    fn character(&mut self) -> Checked<char> {
        let start = self.at;
        self.at += 1;
        let Some(c) = self.next() else {
            return problem("trailing backslash at end of expression", "");
        };
        let is_octal = |c: Option<char>| c.is_some_and(|c| ('0'..='7').contains(&c));
        let found = match c {
            '1'..='7' if !is_octal(self.peek()) => None,
            '0'..='7' => {
                let mut number = u32::from(c) - u32::from('0');
                for _ in 0..2 {
                    if is_octal(self.peek())
                        && let Some(digit) = self.next().and_then(|c| c.to_digit(8))
                    {
                        number = number * 8 + digit;
                    }
                }
                char::from_u32(number)
            }
            'x' => self.hexadecimal(),
            'a' => Some('\u{7}'),
            'f' => Some('\u{c}'),
            'n' => Some('\n'),
            'r' => Some('\r'),
            't' => Some('\t'),
            'v' => Some('\u{b}'),
            c if c.is_ascii() && !c.is_ascii_alphanumeric() => Some(c),
            _ => None,
        };
        match found {
            Some(found) => Ok(found),
            None => problem("invalid escape sequence", self.since(start)),
        }
    }

    fn hexadecimal(&mut self) -> Option<char> {
        let digits = if self.take("{") {
            let from = self.at;
            while self.next()? != '}' {}
            self.since(from).trim_end_matches('}')
        } else {
            let from = self.at;
            self.next()?;
            self.next()?;
            self.since(from)
        };
        let is_number = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        let number = u32::from_str_radix(digits, 16).ok();
        number.filter(|_| is_number).and_then(char::from_u32)
    }

    /// A class in brackets.
    fn class(&mut self) -> Checked<()> {
        let start = self.at;
        self.at += 1;
        self.take("^");
        let mut is_first = true;
        loop {
            if !is_first && self.take("]") {
                return Ok(());
            }
            is_first = false;
            let from = self.at;
            let rest = self.rest();
            if rest.starts_with("[:")
                && let Some(length) = rest.get(2..).and_then(|rest| rest.find(":]"))
            {
                self.at += length + 4;
                let name = self.since(from);
                if !is_named_class(name) {
                    return problem("invalid character class range", name);
                }
                continue;
            }
            match rest.strip_prefix('\\').and_then(|rest| rest.chars().next()) {
                Some('p' | 'P') => {
                    self.property()?;
                    continue;
                }
                Some('d' | 'D' | 's' | 'S' | 'w' | 'W') => {
                    self.at += 2;
                    continue;
                }
                _ => {}
            }
            let low = self.class_character(start)?;
            let rest = self.rest();
            if rest.starts_with('-') && rest.len() >= 2 && !rest.starts_with("-]") {
                self.at += 1;
                let high = self.class_character(start)?;
                if high < low {
                    return problem("invalid character class range", self.since(from));
                }
            }
        }
    }

    fn class_character(&mut self, start: usize) -> Checked<char> {
        match self.peek() {
            None => problem(
                "missing closing ]",
                self.pattern.get(start..).unwrap_or_default(),
            ),
            Some('\\') => self.character(),
            Some(c) => {
                self.at += c.len_utf8();
                Ok(c)
            }
        }
    }
}

/// Whether a name such as `[:alpha:]`, or its opposite `[:^alpha:]`, is known.
fn is_named_class(name: &str) -> bool {
    const NAMES: [&str; 14] = [
        "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct",
        "space", "upper", "word", "xdigit",
    ];
    let inner = name
        .strip_prefix("[:")
        .and_then(|rest| rest.strip_suffix(":]"));
    inner.is_some_and(|inner| NAMES.contains(&inner.strip_prefix('^').unwrap_or(inner)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_of_go_are_right() {
        for pattern in [
            "",
            "a|b",
            "^$",
            "(a|)*",
            "a{2,3}",
            "a{1000}",
            "(a{10}){100}",
            "a{,5}",
            "x{-1}",
            "{",
            "}",
            "]",
            "a{0}",
            "(?P<x>a)(?<y>b)",
            "(?i)a",
            "(?i-s:a)",
            r"\Qa*\E",
            r"\z\A\b\B",
            r"\07\x41\x{10FFFF}",
            r"\_\-",
            "[]a]",
            "[^]a]",
            "[a-]",
            "[a&&b]",
            "[[:alpha:]]",
            r"[\d-z]",
            r"\pL\p{Greek}\P{Lu}\p{^Nd}",
            r"[\p{Lu}]",
            "^*",
            "\u{e9}+?",
        ] {
            assert_eq!(go_pattern_problem(pattern), None, "{pattern}");
        }
    }

    #[test]
    fn problems_name_their_part() {
        for (pattern, expected) in [
            ("(", "missing closing ): `(`"),
            ("a)", "unexpected ): `a)`"),
            ("x[a", "missing closing ]: `[a`"),
            ("[z-a]", "invalid character class range: `z-a`"),
            (r"[a-\d]", r"invalid escape sequence: `\d`"),
            ("[[:foo:]]", "invalid character class range: `[:foo:]`"),
            (
                r"\p{IsGreek}",
                r"invalid character class range: `\p{IsGreek}`",
            ),
            ("*a", "missing argument to repetition operator: `*`"),
            ("a|*?", "missing argument to repetition operator: `*?`"),
            ("a**", "invalid nested repetition operator: `**`"),
            ("a{2}{3}", "invalid nested repetition operator: `{2}{3}`"),
            ("a{1001}", "invalid repeat count: `{1001}`"),
            ("a{2,1}", "invalid repeat count: `{2,1}`"),
            ("(a{500}){3}", "invalid repeat count: `{3}`"),
            ("(?!a)", "invalid or unsupported Perl syntax: `(?!`"),
            ("(?x)a", "invalid or unsupported Perl syntax: `(?x`"),
            ("(?<=a)", "invalid named capture: `(?<=a)`"),
            ("(?P<a b>c)", "invalid named capture: `(?P<a b>`"),
            (r"\h", r"invalid escape sequence: `\h`"),
            (r"\1", r"invalid escape sequence: `\1`"),
            (r"\C", r"invalid escape sequence: `\C`"),
            ("a\\", "trailing backslash at end of expression: ``"),
        ] {
            assert_eq!(
                go_pattern_problem(pattern).as_deref(),
                Some(expected),
                "{pattern}"
            );
        }
    }
}
