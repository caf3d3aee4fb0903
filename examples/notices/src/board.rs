//! The notices that are shown. Its locks are held for a moment only: each response reads it.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use apiloom::client::HasMetadata as _;

use crate::Notice;

/// The notices that are shown: the first ones by name.
#[derive(Debug)]
pub struct Board {
    max_notices: usize,
    /// `None` before the notices are read.
    texts: Mutex<Option<BTreeMap<String, String>>>,
}

impl Board {
    /// An empty board for so many notices.
    pub fn new(max_notices: usize) -> Self {
        Self {
            max_notices,
            texts: Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<BTreeMap<String, String>>> {
        // It is changed in one step, so a panic elsewhere has not spoiled it.
        self.texts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Shows the first of these notices.
    pub fn fill<'a>(&self, notices: impl Iterator<Item = &'a Notice>) {
        let all = notices.map(|notice| (notice.name().to_owned(), notice.spec.text.clone()));
        let all: BTreeMap<_, _> = all.collect();
        *self.lock() = Some(all.into_iter().take(self.max_notices).collect());
    }

    /// Shows nothing.
    pub fn clear(&self) {
        *self.lock() = None;
    }

    /// Whether the notices were read.
    pub fn is_filled(&self) -> bool {
        self.lock().is_some()
    }

    /// Whether the notice with this name is shown.
    pub fn shows(&self, name: &str) -> bool {
        let texts = self.lock();
        texts.as_ref().is_some_and(|texts| texts.contains_key(name))
    }

    /// The texts that are shown.
    pub fn texts(&self) -> Vec<String> {
        let texts = self.lock();
        texts.iter().flat_map(BTreeMap::values).cloned().collect()
    }
}
