//! Limit for the work of one patch.

use crate::interrupt;

/// Maximum number of values that a patch shifts in lists or visits in moved values; takes well under a second. An item
/// of a list that is merged counts as several.
pub const MAX_STEPS: usize = 50_000_000;

/// The work that a patch may still do.
#[derive(Debug)]
pub(super) struct Steps(usize);

impl Default for Steps {
    fn default() -> Self {
        Self(MAX_STEPS)
    }
}

impl Steps {
    /// Counts some steps; an error above the limit.
    pub(super) fn spend(&mut self, steps: usize) -> Result<(), String> {
        if interrupt::spend(steps.try_into().unwrap_or(u32::MAX)) {
            return Err("interrupted".to_owned());
        }
        let rest = self.0.checked_sub(steps);
        self.0 = rest.unwrap_or(0);
        match rest {
            Some(_) => Ok(()),
            None => Err("the patch moves too much".to_owned()),
        }
    }

    /// With a lower limit.
    #[cfg(test)]
    pub(super) fn limited(limit: usize) -> Self {
        Self(limit)
    }
}
