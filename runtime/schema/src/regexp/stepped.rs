//! Searches that may take long, in steps between which they can be interrupted.
//!
//! The automata are those of the crate `regex-automata`, whose own searches end with the text alone: one for a pattern of some MiB
//! in a text of some MiB takes minutes.

use std::ops::Range;

use regex_automata::hybrid::LazyStateID;
use regex_automata::hybrid::dfa::{Builder, Cache, Config, DFA};
use regex_automata::nfa::thompson::{self, WhichCaptures};
use regex_automata::util::iter::Searcher;
use regex_automata::{Anchored, Input, Match, MatchKind, PatternID};

use super::program::{MAX_CACHE, build_tall, lower};
use super::tree::Part;
use crate::interrupt;

/// States of an automaton that a step of a search visits in the time in which other work visits one value.
const STATES: usize = 64;

/// Whether a text has a match; `None` if the search was interrupted, or the automaton cannot be built.
pub(super) fn is_match(pattern: &Part, text: &str) -> Option<bool> {
    let mut forward = Automaton::build(pattern, Direction::Forward)?;
    let found = forward.end_of_match(&Input::new(text).earliest(true))?;
    Some(found.is_some())
}

/// Calls a function with each match in turn, until the search is interrupted.
pub(super) fn find_each<E>(
    pattern: &Part,
    text: &str,
    mut found: impl FnMut(Range<usize>) -> Result<(), E>,
) -> Result<(), E> {
    let automata = [Direction::Forward, Direction::Backward];
    let [Some(mut forward), Some(mut backward)] =
        automata.map(|direction| Automaton::build(pattern, direction))
    else {
        return Ok(());
    };
    let mut searcher = Searcher::new(Input::new(text));
    let mut find = |input: &Input<'_>| {
        let end = forward.end_within(text, input.clone())?;
        let matched = Input::new(text).range(input.start()..end);
        let start = backward.start_of_match(&matched.anchored(Anchored::Yes))?;
        Some(Match::new(PatternID::ZERO, start..end))
    };
    let mut next = || searcher.advance(|input| Ok(find(input)));
    std::iter::from_fn(&mut next).try_for_each(|one| found(one.range()))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Forward,
    Backward,
}

/// An automaton whose states are made while it runs.
struct Automaton {
    dfa: DFA,
    cache: Cache,
    /// The work of a step.
    steps: u32,
}

impl Automaton {
    fn build(pattern: &Part, direction: Direction) -> Option<Self> {
        let is_backward = direction == Direction::Backward;
        let kind = if is_backward {
            MatchKind::All
        } else {
            MatchKind::LeftmostFirst
        };
        let nfa = build_tall(pattern, || {
            let config = thompson::Config::new()
                .reverse(is_backward)
                .which_captures(WhichCaptures::None)
                .nfa_size_limit(None);
            let mut compiler = thompson::Compiler::new();
            let compiler = compiler.configure(config);
            compiler.build_from_hir(&lower(&pattern.node)).ok()
        })?;
        let steps = nfa.states().len() / STATES + 1;
        let config = Config::new()
            .match_kind(kind)
            .cache_capacity(MAX_CACHE)
            .skip_cache_capacity_check(true)
            .minimum_cache_clear_count(None);
        let dfa = Builder::new().configure(config).build_from_nfa(nfa).ok()?;
        Some(Self {
            cache: dfa.create_cache(),
            dfa,
            steps: steps.try_into().unwrap_or(u32::MAX),
        })
    }

    /// The end of the first match within a text. An empty match is none inside of a character.
    fn end_within(&mut self, text: &str, mut input: Input<'_>) -> Option<usize> {
        loop {
            let end = self.end_of_match(&input)??;
            if text.is_char_boundary(end) {
                return Some(end);
            }
            input.set_start(input.start() + 1);
        }
    }

    /// The end of the first match; `None` if the search was interrupted.
    fn end_of_match(&mut self, input: &Input<'_>) -> Option<Option<usize>> {
        if input.is_done() {
            return Some(None);
        }
        let text = input.haystack();
        let state = self.dfa.start_state_forward(&mut self.cache, input).ok()?;
        // A match is known one byte after its end.
        let bytes = input.get_range().map(|at| (at, text[at]));
        self.last_match(state, bytes, (text.len(), None), input.get_earliest())
    }

    /// The start of the match that ends where the input ends.
    fn start_of_match(&mut self, input: &Input<'_>) -> Option<usize> {
        let (text, start) = (input.haystack(), input.start());
        let state = self.dfa.start_state_reverse(&mut self.cache, input).ok()?;
        let bytes = input.get_range().rev().map(|at| (at + 1, text[at]));
        let before = start.checked_sub(1).map(|at| text[at]);
        self.last_match(state, bytes, (start, before), false)?
    }

    /// The last match on the way of the bytes, each with the place of a match before it; `edge` is the place behind the last one,
    /// with the byte there.
    fn last_match(
        &mut self,
        mut state: LazyStateID,
        bytes: impl Iterator<Item = (usize, u8)>,
        edge: (usize, Option<u8>),
        is_any_enough: bool,
    ) -> Option<Option<usize>> {
        let mut found = None;
        for (at, byte) in bytes {
            if interrupt::spend(self.steps) {
                return None;
            }
            state = self.dfa.next_state(&mut self.cache, state, byte).ok()?;
            if state.is_match() {
                found = Some(at);
                if is_any_enough {
                    return Some(found);
                }
            } else if state.is_dead() {
                return Some(found);
            } else if state.is_quit() {
                return None;
            }
        }
        let (at, byte) = edge;
        let last = match byte {
            Some(byte) => self.dfa.next_state(&mut self.cache, state, byte),
            None => self.dfa.next_eoi_state(&mut self.cache, state),
        };
        Some(if last.ok()?.is_match() {
            Some(at)
        } else {
            found
        })
    }
}
