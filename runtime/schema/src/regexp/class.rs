//! Classes of characters: what a pattern says of them, their size, and their set of characters.

use std::sync::Arc;

use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange};
use regex_syntax::utf8::Utf8Sequences;

use super::properties::{Ascii, Set, Table};

/// A class of characters.
#[derive(Debug, Default)]
pub(super) struct Class {
    items: Vec<Item>,
    is_negated: bool,
    folds: bool,
    /// Bytes of memory.
    cost: usize,
}

/// A part of a class.
#[derive(Debug)]
enum Item {
    Range(u32, u32),
    Ascii(Ascii),
    NotAscii(Ascii),
    Property(Arc<Table>),
    NotProperty(Arc<Table>),
}

/// The memory of one step over one byte inside of a class, in bytes.
const STEP: usize = 40;

/// The memory of all characters outside of an ASCII class, in bytes.
const REST: usize = 1024;

/// Size of a range from which the cases of its characters are not counted one by one.
const MANY: u32 = 128;

/// The memory of the other cases of a character, in bytes: there are at most three, of three steps each.
const CASES: usize = 9 * STEP;

/// The memory of the cases of all characters, in bytes.
const ALL_CASES: usize = 4000 * STEP;

impl Class {
    pub(super) fn new(is_negated: bool, folds: bool) -> Self {
        Self {
            is_negated,
            folds,
            items: Vec::new(),
            cost: if is_negated { REST } else { 0 },
        }
    }

    /// Any character.
    pub(super) fn any() -> Self {
        Self::new(true, false)
    }

    /// Any character but the end of a line.
    pub(super) fn any_but_newline() -> Self {
        let mut class = Self::new(true, false);
        class.range(0xa, 0xa);
        class
    }

    /// The bytes of memory of its automata.
    pub(super) fn cost(&self) -> usize {
        self.cost
    }

    /// Adds a range of characters, surrogates among them.
    pub(super) fn range(&mut self, low: u32, high: u32) {
        let own: usize = halves(low, high).map(|(low, high)| cost(low, high)).sum();
        let cases = match high - low {
            _ if !self.folds => 0,
            length if length < MANY => cases(low, high),
            length => (length as usize).saturating_mul(CASES).min(ALL_CASES),
        };
        // Each entry costs, so that many equal ones do.
        self.add(Item::Range(low, high), own.max(STEP) + cases);
    }

    /// Adds a class of ASCII characters, or its opposite.
    pub(super) fn ascii(&mut self, (class, is_negated): (Ascii, bool)) {
        let cases = if self.folds { CASES } else { 0 };
        let own = class.len() * STEP + cases;
        if is_negated {
            self.add(Item::NotAscii(class), own + REST);
        } else {
            self.add(Item::Ascii(class), own);
        }
    }

    /// Adds the characters of a property, or all others.
    pub(super) fn property(&mut self, table: Arc<Table>, is_negated: bool) {
        let set = self.set(&table);
        let (own, others) = (set.cost, set.cost_of_others);
        if is_negated {
            self.add(Item::NotProperty(table), others);
        } else {
            self.add(Item::Property(table), own);
        }
    }

    fn add(&mut self, item: Item, cost: usize) {
        self.items.push(item);
        self.cost = self.cost.saturating_add(cost);
    }

    fn set<'t>(&self, table: &'t Table) -> &'t Set {
        if self.folds {
            &table.folded
        } else {
            &table.exact
        }
    }

    /// The set of its characters.
    pub(super) fn characters(&self) -> ClassUnicode {
        let mut plain = Vec::new();
        let mut all = Vec::new();
        for item in &self.items {
            match item {
                Item::Range(low, high) => {
                    let halves = halves(*low, *high);
                    plain.extend(halves.map(|(low, high)| ClassUnicodeRange::new(low, high)));
                }
                Item::Ascii(class) => plain.extend(ascii_ranges(class)),
                Item::NotAscii(class) => {
                    let mut class = self.folded(ascii_ranges(class).collect());
                    class.negate();
                    all.extend_from_slice(class.ranges());
                }
                Item::Property(table) => all.extend_from_slice(self.set(table).class.ranges()),
                Item::NotProperty(table) => {
                    let mut class = self.set(table).class.clone();
                    class.negate();
                    all.extend_from_slice(class.ranges());
                }
            }
        }
        all.extend_from_slice(self.folded(plain).ranges());
        let mut all = ClassUnicode::new(all);
        if self.is_negated {
            all.negate();
        }
        all
    }

    fn folded(&self, ranges: Vec<ClassUnicodeRange>) -> ClassUnicode {
        let mut class = ClassUnicode::new(ranges);
        if self.folds {
            // Cannot fail: the tables of cases are compiled in.
            let _ = class.try_case_fold_simple();
        }
        class
    }
}

fn ascii_ranges(class: Ascii) -> impl Iterator<Item = ClassUnicodeRange> {
    let range =
        |(low, high): &(u8, u8)| ClassUnicodeRange::new(char::from(*low), char::from(*high));
    class.iter().map(range)
}

/// A range without the surrogates, which no text has.
fn halves(low: u32, high: u32) -> impl Iterator<Item = (char, char)> {
    let below = (low, high.min(0xd7ff));
    let above = (low.max(0xe000), high);
    let characters = |(low, high)| Some((char::from_u32(low)?, char::from_u32(high)?));
    let is_range = |(low, high): &(char, char)| low <= high;
    [below, above]
        .into_iter()
        .filter_map(characters)
        .filter(is_range)
}

/// The memory of the automata of a range over the bytes of UTF-8.
fn cost(low: char, high: char) -> usize {
    if high.is_ascii() {
        return STEP;
    }
    let sequences = Utf8Sequences::new(low, high);
    sequences.map(|sequence| sequence.len() * STEP).sum()
}

/// The memory of a short range with all cases of its characters.
fn cases(low: u32, high: u32) -> usize {
    let ranges = halves(low, high).map(|(low, high)| ClassUnicodeRange::new(low, high));
    let mut class = ClassUnicode::new(ranges);
    // Cannot fail: the tables of cases are compiled in.
    let _ = class.try_case_fold_simple();
    let ranges = class.iter();
    ranges.map(|range| cost(range.start(), range.end())).sum()
}
