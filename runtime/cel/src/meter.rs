//! Counts the cost of an evaluation while it runs, and keeps the patterns that it searches for.

use apiloom_schema::interrupt;
use apiloom_schema::regexp::Pattern;

use crate::patterns::Patterns;
use crate::stop::Stop;

/// Cost of a list literal, besides its elements.
pub(crate) const LIST_COST: u64 = 10;

/// Cost of a map literal, besides its entries.
pub(crate) const MAP_COST: u64 = 30;

/// Least cost of a pattern that is known only when the rule runs: it is compiled then.
const PATTERN_COST: u64 = 10_000;

/// Bytes of memory of such a pattern for which it costs 1 more.
const PATTERN_BYTES: u64 = 16;

/// Maximum memory of such a pattern, in bytes.
const MAX_PATTERN: usize = 1024 * 1024;

/// Number of such patterns that are kept.
const KEPT_PATTERNS: usize = 8;

/// A tenth of a size, rounded up: the cost of a pass over a string.
pub(crate) fn tenth(size: u64) -> u64 {
    size.div_ceil(10)
}

/// The cost of an evaluation so far, and its limit.
pub(crate) struct Meter<'a> {
    cost: u64,
    limit: u64,
    /// Steps that are not part of the cost yet.
    steps: u64,
    /// The patterns that are literals.
    patterns: &'a Patterns,
    /// The last patterns that are not literals.
    recent: Vec<Pattern>,
}

impl<'a> Meter<'a> {
    /// Nothing spent of a limit.
    pub(crate) fn new(patterns: &'a Patterns, limit: u64) -> Self {
        Self {
            cost: 0,
            limit,
            steps: 0,
            patterns,
            recent: Vec::new(),
        }
    }

    /// The cost so far.
    pub(crate) fn cost(&self) -> u64 {
        self.cost
    }

    /// Adds to the cost.
    pub(crate) fn charge(&mut self, cost: u64) -> Result<(), Stop> {
        self.cost = self.cost.saturating_add(cost);
        // A unit is about as much work as a value of a document.
        let steps = u32::try_from(cost.max(1)).unwrap_or(u32::MAX);
        if self.cost > self.limit || interrupt::spend(steps) {
            return Err(Stop::Cost);
        }
        Ok(())
    }

    /// Counts a step that costs nothing in kube-apiserver, such as one of a comparison inside of values; ten cost 1.
    pub(crate) fn step(&mut self) -> Result<(), Stop> {
        self.steps += 1;
        if self.steps < 10 {
            return Ok(());
        }
        self.steps = 0;
        self.charge(1)
    }

    /// Counts several steps.
    pub(crate) fn work(&mut self, steps: u64) -> Result<(), Stop> {
        self.steps = self.steps.saturating_add(steps);
        let cost = self.steps / 10;
        self.steps %= 10;
        self.charge(cost)
    }

    /// Takes back a unit.
    pub(crate) fn refund(&mut self) {
        self.cost = self.cost.saturating_sub(1);
    }

    /// The pattern of a text.
    pub(crate) fn pattern(&mut self, text: &str) -> Result<Pattern, Stop> {
        let recent = || self.recent.iter().find(|kept| kept.text() == text);
        if let Some(found) = self.patterns.get(text).or_else(recent) {
            return Ok(found.clone());
        }
        self.charge(PATTERN_COST)?;
        let found = Pattern::new(text).map_err(|error| Stop::error(error.to_string()))?;
        let bytes = found.cost();
        if bytes > MAX_PATTERN {
            let detail = format!("pattern `{text}` takes {bytes} bytes, more than {MAX_PATTERN}");
            return Err(Stop::error(detail));
        }
        self.charge((bytes as u64 / PATTERN_BYTES).saturating_sub(PATTERN_COST))?;
        if self.recent.len() == KEPT_PATTERNS {
            self.recent.remove(0);
        }
        self.recent.push(found.clone());
        Ok(found)
    }
}
