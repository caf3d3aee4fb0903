//! The program of a pattern: an automaton over the bytes of UTF-8, from the syntax tree.

use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use regex_automata::Input;
use regex_automata::meta::{Builder, Cache, Config, Regex};
use regex_automata::nfa::thompson::WhichCaptures;
use regex_automata::util::iter::Searcher;
use regex_syntax::hir::{Class, Hir, Repetition};

use super::tree::{Node, Part, Repeat};
use crate::budget::{Budget, Share};

/// Maximum memory of what all patterns of the process keep from one search for the next, in bytes.
pub const MAX_KEPT_CACHES: usize = 32 * 1024 * 1024;

/// Maximum memory of what one pattern keeps from one search for the next, in bytes.
const MAX_KEPT_CACHE: usize = 256 * 1024;

/// Maximum memory of one search in each direction, in bytes.
pub(super) const MAX_CACHE: usize = 512 * 1024;

/// Height of trees that are compiled on a stack of their own, since compilation recurses.
const TALL: u32 = 64;

/// The stack for the tallest tree, in bytes.
const STACK: usize = 64 * 1024 * 1024;

/// Maximum cost of a pattern that gets prefilters.
const MAX_ACCELERATED: usize = 256 * 1024;

/// The bound of the caches that are kept.
static KEPT: Budget = Budget::new(MAX_KEPT_CACHES);

/// Bounds the memory of what all patterns keep from now on, in bytes.
pub(super) fn keep_at_most(bytes: usize) {
    KEPT.bound(bytes.min(MAX_KEPT_CACHES));
}

/// A compiled pattern.
#[derive(Debug)]
pub(super) struct Program {
    regex: Regex,
    kept: Mutex<Option<KeptCache>>,
}

/// A cache with its share of [`KEPT`].
#[derive(Debug)]
struct KeptCache {
    cache: Box<Cache>,
    share: Share,
}

impl Program {
    /// Compiles a pattern, within the memory that it costs.
    pub(super) fn compile(pattern: &Part) -> Option<Self> {
        let regex = build_tall(pattern, || build(pattern))?;
        let kept = Mutex::new(None);
        Some(Self { regex, kept })
    }

    #[cfg(test)]
    pub(super) fn memory(&self) -> usize {
        self.regex.memory_usage()
    }

    #[cfg(test)]
    pub(super) fn kept_bytes(&self) -> usize {
        self.slot().as_ref().map_or(0, |kept| kept.share.bytes())
    }

    pub(super) fn is_match(&self, text: &str) -> bool {
        let input = Input::new(text).earliest(true);
        self.with_cache(|cache| self.regex.search_half_with(cache, &input).is_some())
    }

    pub(super) fn find_each<E>(
        &self,
        text: &str,
        mut found: impl FnMut(Range<usize>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut searcher = Searcher::new(Input::new(text));
        self.with_cache(|cache| {
            let mut next = || searcher.advance(|input| Ok(self.regex.search_with(cache, input)));
            std::iter::from_fn(&mut next).try_for_each(|one| found(one.range()))
        })
    }

    /// Searches with the cache of the last search, or with a new one while another thread has it.
    fn with_cache<T>(&self, search: impl FnOnce(&mut Cache) -> T) -> T {
        let kept = self.slot().take();
        let mut kept = kept.unwrap_or_else(|| KeptCache {
            cache: Box::new(self.regex.create_cache()),
            share: KEPT.share(),
        });
        let found = search(&mut kept.cache);
        if kept.is_worth_keeping() {
            *self.slot() = Some(kept);
        }
        found
    }

    /// The cache is replaced in one step, so it is consistent after a panic.
    fn slot(&self) -> MutexGuard<'_, Option<KeptCache>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KeptCache {
    /// Counts the memory of the cache; one that was cleared counts as before. Returns whether it is within the limits.
    fn is_worth_keeping(&mut self) -> bool {
        let bytes = self.cache.memory_usage();
        bytes <= MAX_KEPT_CACHE && self.share.grow_to(bytes)
    }
}

/// Builds something by a walk of the tree of a pattern, however tall that is.
pub(super) fn build_tall<T: Send>(
    pattern: &Part,
    build: impl FnOnce() -> Option<T> + Send,
) -> Option<T> {
    if pattern.height < TALL {
        return build();
    }
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK);
        thread.spawn_scoped(scope, build).ok()?.join().ok()?
    })
}

/// Builds the automata, with accelerations if these fit into the memory that the pattern costs.
fn build(pattern: &Part) -> Option<Regex> {
    let hir = lower(&pattern.node);
    let plain = Config::new()
        .utf8_empty(true)
        .which_captures(WhichCaptures::Implicit)
        .nfa_size_limit(None)
        .hybrid_cache_capacity(MAX_CACHE)
        .pool_capacity(1)
        .onepass(false)
        .dfa(false)
        .auto_prefilter(false);
    let build = |config: Config| Builder::new().configure(config).build_from_hir(&hir).ok();
    if pattern.cost() <= MAX_ACCELERATED
        && let Some(regex) = build(plain.clone().auto_prefilter(true))
        && regex.memory_usage() <= pattern.cost()
    {
        return Some(regex);
    }
    build(plain)
}

/// The tree in the form of the crate `regex-syntax`.
pub(super) fn lower(node: &Node) -> Hir {
    let all = |nodes: &[Node]| nodes.iter().map(lower).collect();
    match node {
        Node::Empty => Hir::empty(),
        Node::Literal { text, folds: false } => Hir::literal(text.as_bytes()),
        Node::Literal { text, folds: true } => Hir::concat(text.chars().map(any_case).collect()),
        Node::Class(class) => Hir::class(Class::Unicode(class.characters())),
        Node::Look(look) => Hir::look(*look),
        Node::Repeat(repeat) => repetition(repeat),
        Node::Concat(nodes) => Hir::concat(all(nodes)),
        Node::Alternate(nodes) => Hir::alternation(all(nodes)),
    }
}

/// A character in all its cases.
fn any_case(c: char) -> Hir {
    let mut class = super::class::Class::new(false, true);
    class.range(c.into(), c.into());
    Hir::class(Class::Unicode(class.characters()))
}

fn repetition(repeat: &Repeat) -> Hir {
    Hir::repetition(Repetition {
        min: repeat.bounds.least,
        max: repeat.bounds.most,
        greedy: repeat.is_greedy,
        sub: Box::new(lower(&repeat.node)),
    })
}
