//! Regular expressions with the syntax and the meaning of Go's package `regexp`, as Kubernetes has them in schemas and CEL.
//!
//! A pattern is parsed by Go's grammar into a syntax tree, from which the program is built without a text between: no part of
//! a pattern can have a meaning that only another language of patterns knows. Parsing is linear and compiles nothing;
//! the program is compiled by the first search, and equal patterns of the process share it. [`Pattern::cost`] bounds the memory of
//! the program before it exists.

mod class;
mod cost;
mod error;
mod parse;
mod program;
mod properties;
mod stepped;
mod tree;

use std::collections::HashMap;
use std::ops::{Deref, Range};
use std::sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError, Weak};

pub use self::cost::MAX_COST;
pub use self::error::PatternError;
use self::parse::parse;
pub use self::program::MAX_KEPT_CACHES;
use self::program::Program;
use self::tree::Part;
use crate::budget::{Budget, Share};
use crate::interrupt;

/// A regular expression. Clones and equal patterns share one program.
///
/// ```
/// use apiloom_schema::regexp::Pattern;
/// let pattern = Pattern::new(r"^[^][ ]{1,3}$")?;
/// assert!(pattern.is_match("a&b") && !pattern.is_match("a b"));
/// let error = Pattern::new("a(b").expect_err("an open group");
/// assert_eq!(error.to_string(), "error parsing regexp: missing closing ): `a(b`");
/// # Ok::<(), apiloom_schema::regexp::PatternError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Pattern(Arc<SharedPattern>);

#[derive(Debug)]
struct SharedPattern {
    text: Box<str>,
    cost: usize,
    program: OnceLock<KeptProgram>,
}

/// Maximum memory of the programs of all patterns of the process that are kept, in bytes, unless [`keep_at_most`] says less. Further ones are
/// compiled for each search: slower, but right.
pub const MAX_KEPT_PROGRAMS: usize = 128 * 1024 * 1024;

/// Bounds the memory of the programs of all patterns of the process that are kept from now on, in bytes, for processes with little memory.
/// What searches keep has a quarter of that beside it. More than [`MAX_KEPT_PROGRAMS`], the default, is as much as it is.
pub fn keep_at_most(bytes: usize) {
    let bytes = bytes.min(MAX_KEPT_PROGRAMS);
    KEPT_PROGRAMS.bound(bytes);
    program::keep_at_most(bytes / 4);
}

/// Bytes of a pattern's memory, times bytes of a text, above which a search is made in steps: below it takes less than about 50 ms.
const LONG: usize = 1 << 28;

/// The part of it that counts as the work on one value.
const LONG_STEP: usize = 1 << 12;

/// The bound of the programs that are kept.
static KEPT_PROGRAMS: Budget = Budget::new(MAX_KEPT_PROGRAMS);

/// A program with its share of [`KEPT_PROGRAMS`].
#[derive(Debug)]
struct KeptProgram {
    program: Program,
    _share: Share,
}

impl KeptProgram {
    /// Keeps a program; gives it back if there is no room for it.
    fn new(program: Program, bytes: usize) -> Result<Self, Program> {
        let mut share = KEPT_PROGRAMS.share();
        if !share.grow_to(bytes) {
            return Err(program);
        }
        Ok(Self {
            program,
            _share: share,
        })
    }
}

/// A program for one search.
enum Loan<'p> {
    Kept(&'p Program),
    Own(Box<Program>),
}

impl Deref for Loan<'_> {
    type Target = Program;

    fn deref(&self) -> &Program {
        match self {
            Self::Kept(program) => program,
            Self::Own(program) => program,
        }
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text()
    }
}

impl Pattern {
    /// Parses a pattern. Nothing is compiled.
    ///
    /// # Errors
    /// The error of Go's `regexp.Compile`. `expression too large` has a lower limit: [`MAX_COST`].
    pub fn new(text: &str) -> Result<Self, PatternError> {
        if let Some(known) = Table::known(text) {
            return Ok(Self(known));
        }
        let cost = parse(text)?.cost();
        Ok(Self(Table::share(text, cost)))
    }

    /// As it was written.
    pub fn text(&self) -> &str {
        &self.0.text
    }

    /// The bytes of memory that the pattern takes at most, when its program is compiled.
    pub fn cost(&self) -> usize {
        self.0.cost
    }

    /// Whether any part of a text matches.
    pub fn is_match(&self, text: &str) -> bool {
        if let Some(parsed) = self.parsed_for_steps(text) {
            return stepped::is_match(&parsed, text).unwrap_or_default();
        }
        if self.is_interrupted_by(text) {
            return false;
        }
        self.program().is_some_and(|program| program.is_match(text))
    }

    /// The first match: the leftmost, and of several the one that Go prefers.
    pub fn find(&self, text: &str) -> Option<Range<usize>> {
        let mut first = None;
        let stop = |found| {
            first = Some(found);
            Err(())
        };
        // The error is the end of the search.
        let _ = self.find_each(text, stop);
        first
    }

    /// Calls a function with each match in turn; matches do not overlap.
    ///
    /// # Errors
    /// The first error of the function, which ends the search.
    pub fn find_each<E>(
        &self,
        text: &str,
        found: impl FnMut(Range<usize>) -> Result<(), E>,
    ) -> Result<(), E> {
        if let Some(parsed) = self.parsed_for_steps(text) {
            return stepped::find_each(&parsed, text, found);
        }
        if self.is_interrupted_by(text) {
            return Ok(());
        }
        match self.program() {
            Some(program) => program.find_each(text, found),
            None => Ok(()),
        }
    }

    /// What a search in a text may take: bytes of memory, times bytes of text.
    fn work(&self, text: &str) -> usize {
        self.cost().saturating_mul(text.len())
    }

    /// The pattern, if a search in this text may take so long that it must be possible to interrupt it.
    fn parsed_for_steps(&self, text: &str) -> Option<Part> {
        (self.work(text) > LONG).then(|| parse(self.text()).ok())?
    }

    /// Counts a search in a text as work; whether it is not wanted any more.
    fn is_interrupted_by(&self, text: &str) -> bool {
        let steps = self.work(text) / LONG_STEP;
        interrupt::spend(u32::try_from(steps).unwrap_or(u32::MAX))
    }

    /// The program; `None` only if the system had no memory or no thread for compiling it.
    fn program(&self) -> Option<Loan<'_>> {
        let shared = &*self.0;
        if let Some(kept) = shared.program.get() {
            return Some(Loan::Kept(&kept.program));
        }
        let program = Program::compile(&parse(&shared.text).ok()?)?;
        Some(match KeptProgram::new(program, shared.cost) {
            Ok(kept) => Loan::Kept(&shared.program.get_or_init(|| kept).program),
            Err(program) => Loan::Own(Box::new(program)),
        })
    }

    #[cfg(test)]
    fn is_compiled(&self) -> bool {
        self.0.program.get().is_some()
    }
}

/// The patterns of the process that are in use, by text.
#[derive(Default)]
struct Table {
    known: HashMap<Box<str>, Weak<SharedPattern>>,
    /// Number of entries at which those of dropped patterns are removed.
    full: usize,
}

/// An entry is inserted in one step, so the table is consistent after a panic.
static ALL: LazyLock<Mutex<Table>> = LazyLock::new(Mutex::default);

impl Table {
    fn known(text: &str) -> Option<Arc<SharedPattern>> {
        let all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
        all.known.get(text).and_then(Weak::upgrade)
    }

    fn share(text: &str, cost: usize) -> Arc<SharedPattern> {
        let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = all.known.get(text).and_then(Weak::upgrade) {
            return known;
        }
        if all.known.len() >= all.full {
            all.known.retain(|_, known| known.strong_count() > 0);
            all.full = 2 * all.known.len() + 64;
        }
        let shared = Arc::new(SharedPattern {
            text: text.into(),
            // The text is in the pattern and in the table.
            cost: cost + 2 * text.len(),
            program: OnceLock::new(),
        });
        all.known.insert(text.into(), Arc::downgrade(&shared));
        shared
    }
}

#[cfg(test)]
mod tests;
