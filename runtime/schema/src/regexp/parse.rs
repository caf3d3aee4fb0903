//! The grammar of Go's package `regexp`, with Perl's flags as `regexp.Compile` has them, and the texts of its errors.
//!
//! The parser does not recurse, and takes time and memory in proportion to the pattern up to the limits of its tree.

use regex_syntax::hir::Look;

use super::class::Class;
use super::cost::{MAX_COST, STEP};
use super::error::PatternError;
use super::properties::{Table, perl, posix};
use super::tree::{Bounds, Part};

/// Maximum number of repetitions, of nested ones together.
const MAX_REPEAT: u32 = 1000;

/// Maximum number of levels of the tree.
const MAX_HEIGHT: u32 = 1000;

const BAD_RANGE: &str = "invalid character class range";
const BAD_ESCAPE: &str = "invalid escape sequence";
const BAD_NAME: &str = "invalid named capture";
const BAD_FLAGS: &str = "invalid or unsupported Perl syntax";
const NESTED_REPEAT: &str = "invalid nested repetition operator";
const BAD_REPEAT: &str = "invalid repeat count";
const OPEN_CLASS: &str = "missing closing ]";
const OPEN_GROUP: &str = "missing closing )";
const NO_ARGUMENT: &str = "missing argument to repetition operator";
const TRAILING_BACKSLASH: &str = "trailing backslash at end of expression";
const UNEXPECTED_PAREN: &str = "unexpected )";
const TOO_DEEP: &str = "expression nests too deeply";
const TOO_LARGE: &str = "expression too large";

type ParseResult<T> = Result<T, PatternError>;

fn fail<T>(kind: &'static str, part: &str) -> ParseResult<T> {
    let part = part.to_owned();
    Err(PatternError { kind, part })
}

/// Parses a pattern.
pub(super) fn parse(pattern: &str) -> ParseResult<Part> {
    let mut parser = Parser {
        pattern,
        at: 0,
        flags: Flags::default(),
        outer: Vec::new(),
        group: Group::default(),
        last_repeat: None,
        spent: 0,
    };
    while let Some(c) = parser.peek() {
        let start = parser.at;
        let is_repeat = parser.element(c)?;
        parser.last_repeat = is_repeat.then_some(start);
    }
    let whole = parser.end_group()?;
    if parser.outer.is_empty() {
        Ok(whole)
    } else {
        fail(OPEN_GROUP, pattern)
    }
}

/// The flags of `(?imsU)`.
#[derive(Clone, Copy, Debug, Default)]
struct Flags {
    folds: bool,
    is_multiline: bool,
    has_dot_newline: bool,
    is_lazy: bool,
}

/// An open group.
#[derive(Debug, Default)]
struct Group {
    branches: Vec<Part>,
    sequence: Vec<Part>,
    /// The flags before it.
    flags: Flags,
    is_numbered: bool,
}

struct Parser<'p> {
    pattern: &'p str,
    at: usize,
    flags: Flags,
    /// The groups around the current one.
    outer: Vec<Group>,
    group: Group,
    /// The start of the repetition that the last element was.
    last_repeat: Option<usize>,
    /// Bytes of memory of what was parsed.
    spent: usize,
}

impl<'p> Parser<'p> {
    fn rest(&self) -> &'p str {
        self.pattern.get(self.at..).unwrap_or_default()
    }

    fn since(&self, start: usize) -> &'p str {
        self.pattern.get(start..self.at).unwrap_or_default()
    }

    fn from(&self, start: usize) -> &'p str {
        self.pattern.get(start..).unwrap_or_default()
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

    /// Parses one element. Returns whether it is a repetition.
    fn element(&mut self, c: char) -> ParseResult<bool> {
        let start = self.at;
        match c {
            '[' => {
                let class = self.class()?;
                return self.push(Part::class(class)).map(|()| false);
            }
            '\\' => return self.escape().map(|()| false),
            '{' => {
                return match self.bounds()? {
                    Some(bounds) => self.repeat(start, bounds, true).map(|()| true),
                    None => {
                        self.at += 1;
                        self.character('{').map(|()| false)
                    }
                };
            }
            _ => self.at += c.len_utf8(),
        }
        let (least, most) = match c {
            '*' => (0, None),
            '+' => (1, None),
            '?' => (0, Some(1)),
            _ => return self.plain(c, start).map(|()| false),
        };
        let bounds = Bounds { least, most };
        self.repeat(start, bounds, false).map(|()| true)
    }

    /// An element that is no repetition, after its first character.
    fn plain(&mut self, c: char, start: usize) -> ParseResult<()> {
        let flags = self.flags;
        match c {
            '(' if self.take("?") => self.perl_group(start),
            '(' => self.open_group(flags, true),
            ')' => self.close_group(),
            '|' => self.end_branch(),
            '^' if flags.is_multiline => self.push(Part::look(Look::StartLF)),
            '^' => self.push(Part::look(Look::Start)),
            '$' if flags.is_multiline => self.push(Part::look(Look::EndLF)),
            '$' => self.push(Part::look(Look::End)),
            '.' if flags.has_dot_newline => self.push(Part::class(Class::any())),
            '.' => self.push(Part::class(Class::any_but_newline())),
            _ => self.character(c),
        }
    }

    /// Adds a literal character.
    fn character(&mut self, c: char) -> ParseResult<()> {
        let folds = self.flags.folds;
        if let Some(last) = self.group.sequence.last_mut()
            && last.append(c, folds)
        {
            return self.spend(STEP);
        }
        self.push(Part::character(c, folds))
    }

    /// Adds a character by its number: one that no text has is a class without characters.
    fn code_point(&mut self, number: u32) -> ParseResult<()> {
        match char::from_u32(number) {
            Some(c) => self.character(c),
            None => self.push(Part::class(Class::new(false, false))),
        }
    }

    fn push(&mut self, part: Part) -> ParseResult<()> {
        self.check(&part)?;
        self.group.sequence.push(part);
        self.spend(4 * STEP)
    }

    /// Counts memory of the tree, of which each element of a pattern takes some.
    fn spend(&mut self, bytes: usize) -> ParseResult<()> {
        self.spent = self.spent.saturating_add(bytes);
        if self.spent > MAX_COST {
            return fail(TOO_LARGE, self.pattern);
        }
        Ok(())
    }

    fn check(&self, part: &Part) -> ParseResult<()> {
        if part.is_too_large() {
            return fail(TOO_LARGE, self.pattern);
        }
        if part.height > MAX_HEIGHT {
            return fail(TOO_DEEP, self.pattern);
        }
        Ok(())
    }

    /// Begins a group after whose end other flags hold than inside of it.
    fn open_group(&mut self, outside: Flags, is_numbered: bool) -> ParseResult<()> {
        let group = Group {
            flags: outside,
            is_numbered,
            ..Group::default()
        };
        self.outer.push(std::mem::replace(&mut self.group, group));
        self.spend(4 * STEP)
    }

    fn end_branch(&mut self) -> ParseResult<()> {
        let sequence = std::mem::take(&mut self.group.sequence);
        let branch = Part::concat(sequence);
        self.check(&branch)?;
        self.group.branches.push(branch);
        self.spend(2 * STEP)
    }

    /// The part that the current group is.
    fn end_group(&mut self) -> ParseResult<Part> {
        self.end_branch()?;
        let part = Part::alternate(std::mem::take(&mut self.group.branches));
        self.check(&part)?;
        Ok(part)
    }

    fn close_group(&mut self) -> ParseResult<()> {
        let part = self.end_group()?;
        let Some(outer) = self.outer.pop() else {
            return fail(UNEXPECTED_PAREN, self.pattern);
        };
        let inner = std::mem::replace(&mut self.group, outer);
        self.flags = inner.flags;
        self.push(part.grouped(inner.is_numbered))
    }

    /// A group with a name or flags, after `(?`.
    fn perl_group(&mut self, start: usize) -> ParseResult<()> {
        let inner = self.rest();
        // What ends after `<` has no name, and `<` is no flag.
        for sign in ["P<", "<"] {
            if inner.len() > sign.len() && self.take(sign) {
                return self.named_group(start);
            }
        }
        let mut flags = self.flags;
        let (mut is_negative, mut has_flag) = (false, false);
        while let Some(c) = self.next() {
            let flag = match c {
                'i' => &mut flags.folds,
                'm' => &mut flags.is_multiline,
                's' => &mut flags.has_dot_newline,
                'U' => &mut flags.is_lazy,
                '-' if !is_negative => {
                    (is_negative, has_flag) = (true, false);
                    continue;
                }
                // A sign needs a flag.
                ':' | ')' if !is_negative || has_flag => {
                    let outside = std::mem::replace(&mut self.flags, flags);
                    return match c {
                        ':' => self.open_group(outside, false),
                        _ => Ok(()),
                    };
                }
                _ => break,
            };
            *flag = !is_negative;
            has_flag = true;
        }
        fail(BAD_FLAGS, self.since(start))
    }

    /// A group with a name, after `<`.
    fn named_group(&mut self, start: usize) -> ParseResult<()> {
        let from = self.at;
        let Some(length) = self.rest().find('>') else {
            return fail(BAD_NAME, self.from(start));
        };
        self.at += length;
        let name = self.since(from);
        self.at += 1;
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if name.is_empty() || !name.chars().all(is_word) {
            return fail(BAD_NAME, self.since(start));
        }
        self.open_group(self.flags, true)
    }

    /// A repetition, after its operator.
    fn repeat(&mut self, start: usize, bounds: Bounds, is_counted: bool) -> ParseResult<()> {
        let is_lazy = self.take("?") != self.flags.is_lazy;
        if let Some(last) = self.last_repeat {
            return fail(NESTED_REPEAT, self.since(last));
        }
        let Some(operand) = self.operand() else {
            return fail(NO_ARGUMENT, self.since(start));
        };
        let part = operand.repeated(bounds, !is_lazy);
        let is_many = bounds.least >= 2 || bounds.most >= Some(2);
        if is_counted && is_many && part.repeats > MAX_REPEAT {
            return fail(BAD_REPEAT, self.since(start));
        }
        self.push(part)
    }

    /// What a repetition is about: the last part of the sequence, of a literal its last character.
    fn operand(&mut self) -> Option<Part> {
        let last = self.group.sequence.last_mut()?;
        last.split_last().or_else(|| self.group.sequence.pop())
    }

    /// `{n}`, `{n,}` or `{n,m}`. Anything else is a literal.
    fn bounds(&mut self) -> ParseResult<Option<Bounds>> {
        let start = self.at;
        let Some((least, most)) = bounds(self.rest()) else {
            return Ok(None);
        };
        let length = self.rest().find('}').unwrap_or_default();
        self.at += length + 1;
        let is_over = |number: Option<u64>| number > Some(MAX_REPEAT.into());
        if is_over(Some(least)) || is_over(most) || most.is_some_and(|most| most < least) {
            return fail(BAD_REPEAT, self.since(start));
        }
        // Both are at most 1000.
        let small = |number| u32::try_from(number).unwrap_or(MAX_REPEAT);
        Ok(Some(Bounds {
            least: small(least),
            most: most.map(small),
        }))
    }

    /// An escape outside of a class.
    fn escape(&mut self) -> ParseResult<()> {
        let start = self.at;
        if self.take(r"\Q") {
            return self.quoted();
        }
        let letter = self.rest().chars().nth(1).unwrap_or_default();
        let look = match letter {
            'A' => Look::Start,
            'z' => Look::End,
            'b' => Look::WordAscii,
            'B' => Look::WordAsciiNegate,
            'C' => {
                self.at += 2;
                return fail(BAD_ESCAPE, self.since(start));
            }
            _ => {
                let mut class = Class::new(false, self.flags.folds);
                if self.named_class(&mut class)? {
                    return self.push(Part::class(class));
                }
                let number = self.escaped()?;
                return self.code_point(number);
            }
        };
        self.at += 2;
        self.push(Part::look(look))
    }

    /// The literal text after `\Q`.
    fn quoted(&mut self) -> ParseResult<()> {
        while let Some(c) = self.peek() {
            if self.take(r"\E") {
                break;
            }
            self.at += c.len_utf8();
            self.character(c)?;
        }
        Ok(())
    }

    /// Adds a class that an escape names, if it is one: `\d`, `\pL`, `\p{Greek}`.
    fn named_class(&mut self, class: &mut Class) -> ParseResult<bool> {
        let letter = self
            .rest()
            .strip_prefix('\\')
            .and_then(|rest| rest.chars().next());
        match letter {
            Some('p' | 'P') => self.property(class)?,
            Some(letter) if let Some(found) = perl(letter) => {
                self.at += 2;
                class.ascii(found);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// `\pL` or `\p{Greek}`.
    fn property(&mut self, class: &mut Class) -> ParseResult<()> {
        let start = self.at;
        let mut is_negated = self.rest().starts_with(r"\P");
        self.at += 2;
        let from = self.at;
        let name = if self.take("{") {
            let Some(length) = self.rest().find('}') else {
                return fail(BAD_RANGE, self.from(start));
            };
            self.at += length;
            let name = self.since(from + 1);
            self.at += 1;
            name
        } else {
            self.next();
            self.since(from)
        };
        let name = match name.strip_prefix('^') {
            Some(name) => {
                is_negated = !is_negated;
                name
            }
            None => name,
        };
        match Table::named(name) {
            Some(table) => {
                class.property(table, is_negated);
                Ok(())
            }
            None => fail(BAD_RANGE, self.since(start)),
        }
    }

    /// The number of the character of an escape.
    fn escaped(&mut self) -> ParseResult<u32> {
        let start = self.at;
        self.at += 1;
        let Some(c) = self.next() else {
            return fail(TRAILING_BACKSLASH, "");
        };
        let found = match c {
            // One digit alone would be a reference to a group.
            '1'..='7' if self.octal_digit().is_none() => None,
            '0'..='7' => Some(self.octal(c)),
            'x' => self.hexadecimal(),
            'a' => Some(0x7),
            'f' => Some(0xc),
            'n' => Some(0xa),
            'r' => Some(0xd),
            't' => Some(0x9),
            'v' => Some(0xb),
            c if c.is_ascii() && !c.is_ascii_alphanumeric() => Some(u32::from(c)),
            _ => None,
        };
        match found {
            Some(found) => Ok(found),
            None => fail(BAD_ESCAPE, self.since(start)),
        }
    }

    fn octal_digit(&self) -> Option<u32> {
        self.peek()?.to_digit(8)
    }

    /// Up to three octal digits, of which the first was taken.
    fn octal(&mut self, first: char) -> u32 {
        let mut number = first.to_digit(8).unwrap_or_default();
        for _ in 0..2 {
            if let Some(digit) = self.octal_digit() {
                self.at += 1;
                number = number * 8 + digit;
            }
        }
        number
    }

    /// Two hexadecimal digits, or any number of them in braces.
    fn hexadecimal(&mut self) -> Option<u32> {
        if !self.take("{") {
            let (high, low) = (self.next()?, self.next()?);
            return Some(high.to_digit(16)? * 16 + low.to_digit(16)?);
        }
        let mut number = self.next()?.to_digit(16)?;
        loop {
            match self.next()? {
                '}' => return Some(number),
                digit => number = number * 16 + digit.to_digit(16)?,
            }
            if number > u32::from(char::MAX) {
                return None;
            }
        }
    }

    /// A class in brackets.
    fn class(&mut self) -> ParseResult<Class> {
        let start = self.at;
        self.at += 1;
        let is_negated = self.take("^");
        let mut class = Class::new(is_negated, self.flags.folds);
        // The first character may be a bracket.
        let mut is_first = true;
        while is_first || !self.take("]") {
            is_first = false;
            if !self.posix_class(&mut class)? && !self.named_class(&mut class)? {
                self.class_range(&mut class, start)?;
            }
            if class.cost() > MAX_COST {
                return fail(TOO_LARGE, self.pattern);
            }
        }
        Ok(class)
    }

    /// Adds a class such as `[:alpha:]`, if it is one.
    fn posix_class(&mut self, class: &mut Class) -> ParseResult<bool> {
        let inner = self.rest().strip_prefix("[:");
        let Some((name, _)) = inner.and_then(|inner| inner.split_once(":]")) else {
            return Ok(false);
        };
        let start = self.at;
        self.at += name.len() + 4;
        let Some(found) = posix(name) else {
            return fail(BAD_RANGE, self.since(start));
        };
        class.ascii(found);
        Ok(true)
    }

    /// Adds a character or a range of them. `start` is that of the class.
    fn class_range(&mut self, class: &mut Class, start: usize) -> ParseResult<()> {
        let from = self.at;
        let low = self.class_character(start)?;
        let rest = self.rest();
        let mut high = low;
        if rest.starts_with('-') && rest.len() >= 2 && !rest.starts_with("-]") {
            self.at += 1;
            high = self.class_character(start)?;
            if high < low {
                return fail(BAD_RANGE, self.since(from));
            }
        }
        class.range(low, high);
        Ok(())
    }

    fn class_character(&mut self, start: usize) -> ParseResult<u32> {
        match self.peek() {
            None => fail(OPEN_CLASS, self.from(start)),
            Some('\\') => self.escaped(),
            Some(c) => {
                self.at += c.len_utf8();
                Ok(u32::from(c))
            }
        }
    }
}

/// The numbers of `{n}`, `{n,}` or `{n,m}` at the beginning of a text.
fn bounds(text: &str) -> Option<(u64, Option<u64>)> {
    let (least, rest) = number(text.strip_prefix('{')?)?;
    let Some(rest) = rest.strip_prefix(',') else {
        return rest.starts_with('}').then_some((least, Some(least)));
    };
    if rest.starts_with('}') {
        return Some((least, None));
    }
    let (most, rest) = number(rest)?;
    rest.starts_with('}').then_some((least, Some(most)))
}

/// A number without leading zeros, and what is after it.
fn number(text: &str) -> Option<(u64, &str)> {
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    let is_number = digits == "0" || !digits.is_empty() && !digits.starts_with('0');
    is_number.then(|| (digits.parse().unwrap_or(u64::MAX), rest))
}
