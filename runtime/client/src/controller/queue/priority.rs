//! The five priorities of work.

/// How urgent a key is. A key that waits rises by one level per [`ageing`](super::WorkQueueConfig::ageing), also above
/// the highest, so that none waits for ever.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Priority {
    /// Work that may wait for all other, such as cleaning up.
    Lowest,
    /// Objects that existed when a controller began, and resyncs.
    Low,
    /// Changes of objects.
    #[default]
    Normal,
    /// Work that a user waits for.
    High,
    /// Work that goes before all other.
    Highest,
}

impl Priority {
    /// All priorities, the lowest first.
    pub const ALL: [Self; 5] = [
        Self::Lowest,
        Self::Low,
        Self::Normal,
        Self::High,
        Self::Highest,
    ];

    /// The number of levels between this one and the highest.
    pub(super) fn levels_below_highest(self) -> u32 {
        match self {
            Self::Lowest => 4,
            Self::Low => 3,
            Self::Normal => 2,
            Self::High => 1,
            Self::Highest => 0,
        }
    }
}
