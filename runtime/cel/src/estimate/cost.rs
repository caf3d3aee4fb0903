//! Ranges of costs and sizes, and how they add up. Nothing overflows.

use std::ops::Add;

/// A range of costs or sizes. Saturates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cost {
    pub(crate) min: u64,
    pub(crate) max: u64,
}

impl Cost {
    pub(crate) const UNKNOWN: Self = Self {
        min: 0,
        max: u64::MAX,
    };

    /// A single number.
    pub(super) const fn fixed(number: u64) -> Self {
        Self {
            min: number,
            max: number,
        }
    }

    pub(super) fn up_to(max: u64) -> Self {
        Self { min: 0, max }
    }

    pub(super) fn union(self, other: Self) -> Self {
        Self {
            min: self.min.min(other.min),
            max: self.max.max(other.max),
        }
    }

    pub(super) fn times(self, other: Self) -> Self {
        Self {
            min: self.min.saturating_mul(other.min),
            max: self.max.saturating_mul(other.max),
        }
    }

    /// A part or a multiple, rounded up.
    pub(super) fn by(self, factor: f64) -> Self {
        // Casts of floats saturate.
        let part = |number: u64| (number as f64 * factor).ceil() as u64;
        Self {
            min: part(self.min),
            max: part(self.max),
        }
    }

    /// A pass over a text of this size.
    pub(super) fn pass(self) -> Self {
        self.by(0.1)
    }
}

impl Add for Cost {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self {
            min: self.min.saturating_add(other.min),
            max: self.max.saturating_add(other.max),
        }
    }
}
