//! The conformance suite for [`Storage`]: one function per behaviour, instantiated for a backend by
//! [`conformance_tests!`](crate::conformance_tests). Tests cannot be left out.
//!
//! Test a backend of your own with it, in its crate's tests, with the feature `testing` of this crate:
//!
//! ```
//! use std::sync::Arc;
//! use apiloom_storage::{Embedded, EmbeddedConfig, Storage, conformance::Backend};
//!
//! // Where the store of one test lives: for a backend over a network, a prefix or a database of its own.
//! struct InDirectory(tempfile::TempDir);
//!
//! impl Backend for InDirectory {
//!     async fn new() -> Self {
//!         InDirectory(tempfile::TempDir::new().expect("a directory"))
//!     }
//!     // Also called to open it again, after the store was closed: what was in it is there.
//!     async fn open(&self) -> Arc<dyn Storage> {
//!         Embedded::open(self.0.path(), EmbeddedConfig::default()).expect("an open store")
//!     }
//! }
//!
//! // Writes one `#[test]` per behaviour.
//! mod in_directory {
//!     apiloom_storage::conformance_tests!(super::InDirectory);
//! }
//! # fn main() {}
//! ```
//!
//! Each test has a store of its own, to which no one else writes, and fails by a panic that says what differs.
//!
//! `conformance_tests!(apiloom_storage::conformance::ThroughCache<InDirectory>)` runs the same suite with a watch cache
//! in front of the backend. Calls that the cache does not answer go to the store.

mod lists;
mod restarts;
mod support;
mod through_cache;
mod times;
mod watches;
mod writes;

pub use lists::*;
pub use restarts::*;
pub use support::{Backend, MOST_READ_AT_ONCE, run, run_with_patience};
pub use through_cache::ThroughCache;
pub use times::*;
pub use watches::*;
pub use writes::*;

/// Generates the whole suite as `#[test]` functions for a [`Backend`].
#[macro_export]
macro_rules! conformance_tests {
    ($backend:ty) => {
        $crate::__each_behavior!($crate::__open_test, $backend);
        $crate::__each_restart!($crate::__place_test, $backend);
    };
}

/// The tests of an open store.
#[doc(hidden)]
#[macro_export]
macro_rules! __each_behavior {
    ($test:path, $backend:ty) => {
        $crate::__tests!($test, $backend;
            // writes
            create_writes_where_nothing_is
            create_where_something_is_answers_with_it
            create_after_delete_begins_anew
            update_replaces_what_was_expected
            update_of_another_revision_conflicts_with_the_present
            update_of_the_absent_conflicts_with_nothing
            delete_removes_what_was_expected
            delete_of_another_revision_conflicts_with_the_present
            delete_of_the_absent_conflicts_with_nothing
            get_of_the_absent_is_nothing_at_the_present_revision
            every_write_has_a_revision_of_its_own
            current_revision_is_that_of_the_newest_write
            large_and_empty_values_come_back
            odd_keys_are_ordinary
            concurrent_creates_of_one_key_succeed_once
            concurrent_updates_lose_nothing
            concurrent_writers_of_many_keys_lose_nothing
            refused_writes_change_nothing
            // lists
            list_is_in_the_order_of_keys
            list_leaves_out_siblings_of_the_prefix
            list_of_nothing_has_a_revision
            list_with_a_limit_says_what_remains
            list_from_a_key_begins_there
            list_at_a_revision_is_the_state_then
            list_at_a_revision_pages_through_that_state
            list_at_a_compacted_revision_is_refused
            list_at_a_future_revision_is_refused
            list_of_many_keys_is_whole
            count_is_of_the_present
            // watches
            watch_from_now_delivers_what_follows
            watch_from_a_revision_delivers_what_followed_it
            watch_from_a_compacted_revision_is_refused
            watch_from_a_future_revision_waits_for_it
            watch_tells_the_previous_value
            watch_leaves_out_siblings_of_the_prefix
            watch_keeps_the_order_of_revisions
            watch_keeps_the_order_of_each_key
            watch_passes_from_history_to_the_present_without_a_gap
            watchers_all_get_everything
            dropped_watch_disturbs_no_other
            slow_watcher_misses_nothing
            slow_watcher_learns_of_compaction
            progress_follows_the_replay
            progress_comes_when_it_is_asked_for
            progress_comes_when_others_write
            // times to live, compaction, the end
            ttl_removes_and_watchers_see_it
            ttl_of_many_keys_removes_each_once
            ttl_ends_with_its_key
            update_without_ttl_lives_on
            update_with_ttl_begins_anew
            rewrite_keeps_the_time_to_live
            rewrite_replaces_the_value_at_its_revision
            compaction_keeps_what_is_present
            compaction_keeps_the_state_at_its_revision
            compaction_of_the_future_is_refused
            compaction_of_the_compacted_does_nothing
            closed_store_is_unavailable
            close_ends_watches
        );
    };
}

/// The tests of a store that is closed and opened again.
#[doc(hidden)]
#[macro_export]
macro_rules! __each_restart {
    ($test:path, $backend:ty) => {
        $crate::__tests!($test, $backend;
            restart_keeps_objects_and_revision
            restart_keeps_history_for_lists_and_watches
            restart_keeps_what_is_compacted
            restart_keeps_the_revision_of_an_empty_store
            restart_keeps_times_to_live
        );
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __tests {
    ($test:path, $backend:ty; $($name:ident)*) => {
        $(
            #[test]
            fn $name() {
                use $test as test;
                test!($name, $backend);
            }
        )*
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __open_test {
    ($name:ident, $backend:ty) => {
        let patience = <$backend as $crate::conformance::Backend>::PATIENCE;
        $crate::conformance::run_with_patience(patience, async {
            let place = <$backend as $crate::conformance::Backend>::new().await;
            $crate::conformance::$name($crate::conformance::Backend::open(&place).await).await;
        })
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __place_test {
    ($name:ident, $backend:ty) => {
        let patience = <$backend as $crate::conformance::Backend>::PATIENCE;
        $crate::conformance::run_with_patience(patience, async {
            let place = <$backend as $crate::conformance::Backend>::new().await;
            $crate::conformance::$name(&place).await;
        })
    };
}

#[cfg(test)]
mod tests {
    /// The macros name every test function of the files.
    #[test]
    fn every_behavior_is_a_test() {
        let files = [
            include_str!("writes.rs"),
            include_str!("lists.rs"),
            include_str!("watches.rs"),
            include_str!("times.rs"),
            include_str!("restarts.rs"),
        ];
        let listed = include_str!("mod.rs");
        for line in files.iter().flat_map(|file| file.lines()) {
            let Some(rest) = line.strip_prefix("pub async fn ") else {
                continue;
            };
            let name = rest.split(['(', '<']).next().unwrap();
            assert!(
                listed.lines().any(|line| line.trim() == name),
                "{name} is in no list"
            );
        }
    }
}
