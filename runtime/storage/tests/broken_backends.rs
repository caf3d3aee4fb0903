//! Tests of the conformance suite: a backend with a defect must fail it, and for each defect the failing tests are
//! listed.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on panics, and says where"
)]

mod broken;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use apiloom_storage::Storage;
use apiloom_storage::conformance::{self, Backend, run_with_patience};

use broken::{Defect, Place};

/// Timeout for the watchers of a broken backend: a memory store delivers much sooner.
const PATIENCE: Duration = Duration::from_secs(1);
/// The same for tests that wait for a time to live.
const TTL_PATIENCE: Duration = Duration::from_secs(4);

/// Without a defect the wrapper passes: failures below are caused by the defect.
mod healthy {
    apiloom_storage::conformance_tests!(super::Healthy);
}

type Healthy = Here;

struct Here(Place);

impl Backend for Here {
    async fn new() -> Self {
        Self(Place::new(Defect::None))
    }

    async fn open(&self) -> Arc<dyn Storage> {
        self.0.open()
    }
}

fn fails(name: &str, test: impl Future<Output = ()>) -> bool {
    let patience = if name.contains("ttl") || name.contains("times_to_live") {
        TTL_PATIENCE
    } else {
        PATIENCE
    };
    catch_unwind(AssertUnwindSafe(|| run_with_patience(patience, test))).is_err()
}

/// Each defect, and the tests of the suite that fail for it.
macro_rules! caught {
    ($($name:ident: $defect:ident fails $($behavior:ident)+;)*) => {
        $(
            #[test]
            fn $name() {
                $(
                    let store = Place::new(Defect::$defect).open();
                    assert!(
                        fails(stringify!($behavior), conformance::$behavior(store)),
                        "{} passes", stringify!($behavior)
                    );
                )+
            }
        )*
    };
}

/// The same for defects that appear only after a restart.
macro_rules! caught_at_restart {
    ($($name:ident: $defect:ident fails $($behavior:ident)+;)*) => {
        $(
            #[test]
            fn $name() {
                $(
                    let place = Here(Place::new(Defect::$defect));
                    assert!(
                        fails(stringify!($behavior), conformance::$behavior(&place)),
                        "{} passes", stringify!($behavior)
                    );
                )+
            }
        )*
    };
}

caught! {
    // Lost writes.
    loses_creates: LosesCreates fails create_writes_where_nothing_is;
    loses_one_write_in_many: LosesOneWriteInMany fails
        concurrent_writers_of_many_keys_lose_nothing list_of_many_keys_is_whole;
    loses_updates: LosesUpdates fails update_replaces_what_was_expected;
    loses_deletes: LosesDeletes fails delete_removes_what_was_expected;
    loses_events: LosesEvents fails
        watch_keeps_the_order_of_revisions watchers_all_get_everything slow_watcher_misses_nothing;
    loses_the_first_event_of_a_watch: LosesFirstEvent fails watch_from_a_revision_delivers_what_followed_it;
    loses_what_is_between_history_and_present: LosesBetweenHistoryAndPresent fails
        watch_passes_from_history_to_the_present_without_a_gap;
    cuts_large_values: CutsLargeValues fails large_and_empty_values_come_back;
    takes_empty_values_for_none: TakesEmptyForNone fails large_and_empty_values_come_back;
    folds_the_case_of_keys: FoldsKeys fails odd_keys_are_ordinary list_is_in_the_order_of_keys;
    // Writes that should have been refused.
    overwrites_on_create: OverwritesOnCreate fails
        create_where_something_is_answers_with_it concurrent_creates_of_one_key_succeed_once;
    ignores_what_an_update_expects: IgnoresExpectedOfUpdate fails
        update_of_another_revision_conflicts_with_the_present concurrent_updates_lose_nothing;
    creates_by_update: CreatesByUpdate fails update_of_the_absent_conflicts_with_nothing;
    ignores_what_a_delete_expects: IgnoresExpectedOfDelete fails
        delete_of_another_revision_conflicts_with_the_present;
    deletes_what_is_not_there: DeletesAbsent fails delete_of_the_absent_conflicts_with_nothing;
    refuses_without_the_present_value: HidesPresent fails
        create_where_something_is_answers_with_it
        update_of_another_revision_conflicts_with_the_present
        delete_of_another_revision_conflicts_with_the_present;
    counts_refused_writes: CountsRefusedWrites fails refused_writes_change_nothing;
    keeps_the_key_after_a_delete: RemembersDeletedKeys fails create_after_delete_begins_anew;
    // Wrong revisions.
    gives_one_revision_twice: RepeatsRevisions fails every_write_has_a_revision_of_its_own;
    is_behind_with_its_revision: LagsWithRevision fails current_revision_is_that_of_the_newest_write;
    reads_without_a_revision: ReadsWithoutRevision fails
        get_of_the_absent_is_nothing_at_the_present_revision list_of_nothing_has_a_revision;
    // Stale or wrong reads.
    reads_stale: ReadsStale fails update_replaces_what_was_expected delete_removes_what_was_expected;
    lists_stale: ListsStale fails list_is_in_the_order_of_keys list_leaves_out_siblings_of_the_prefix;
    lists_in_disorder: ListsInDisorder fails list_is_in_the_order_of_keys;
    lists_siblings: ListsSiblings fails list_leaves_out_siblings_of_the_prefix;
    lists_without_limit: IgnoresLimit fails list_with_a_limit_says_what_remains;
    forgets_that_there_is_more: ForgetsMore fails list_with_a_limit_says_what_remains;
    miscounts_what_remains: MiscountsRemaining fails list_with_a_limit_says_what_remains;
    skips_a_key_between_two_reads: SkipsBetweenReads fails list_of_many_keys_is_whole;
    lists_from_the_beginning: IgnoresStart fails list_from_a_key_begins_there;
    lists_the_present_for_the_past: IgnoresAt fails
        list_at_a_revision_is_the_state_then list_at_a_revision_pages_through_that_state;
    lists_what_is_compacted: IgnoresCompaction fails
        list_at_a_compacted_revision_is_refused watch_from_a_compacted_revision_is_refused;
    lists_the_future: ListsFuture fails list_at_a_future_revision_is_refused;
    counts_siblings: CountsSiblings fails count_is_of_the_present;
    counts_the_deleted: CountsDeleted fails count_is_of_the_present;
    // Wrong watches.
    reorders_events: ReordersEvents fails
        watch_keeps_the_order_of_revisions watch_keeps_the_order_of_each_key;
    repeats_events: RepeatsEvents fails watch_keeps_the_order_of_revisions dropped_watch_disturbs_no_other;
    delivers_the_start_again: DeliversStartAgain fails watch_from_a_revision_delivers_what_followed_it;
    delivers_the_past_to_who_wants_now: DeliversPast fails watch_from_now_delivers_what_follows;
    delivers_before_the_future_start: IgnoresFutureStart fails watch_from_a_future_revision_waits_for_it;
    forgets_previous_values: ForgetsPrevious fails watch_tells_the_previous_value watch_keeps_the_order_of_each_key;
    takes_updates_for_creates: ConfusesKinds fails
        watch_from_now_delivers_what_follows watch_tells_the_previous_value;
    watches_siblings: WatchesSiblings fails watch_leaves_out_siblings_of_the_prefix;
    drops_all_watchers_with_one: DropsAllWatchersWithOne fails dropped_watch_disturbs_no_other;
    drops_slow_watchers_silently: DropsSlowSilently fails slow_watcher_misses_nothing slow_watcher_learns_of_compaction;
    never_tells_progress: NoProgress fails progress_follows_the_replay;
    tells_progress_once: ProgressOnce fails
        progress_comes_when_it_is_asked_for progress_comes_when_others_write;
    tells_progress_too_early: ProgressTooEarly fails watch_from_a_revision_delivers_what_followed_it;
    // Wrong times to live.
    forgets_ttl: ForgetsTtl fails ttl_removes_and_watchers_see_it ttl_of_many_keys_removes_each_once;
    keeps_ttl_after_an_update: KeepsTtlAfterUpdate fails update_without_ttl_lives_on;
    counts_ttl_from_the_create: CountsTtlFromCreate fails update_with_ttl_begins_anew;
    ends_ttl_of_the_next_owner: EndsTtlOfNextOwner fails ttl_ends_with_its_key;
    loses_rewrites: LosesRewrites fails rewrite_replaces_the_value_at_its_revision;
    forgets_ttl_at_a_rewrite: ForgetsTtlOfRewrite fails rewrite_keeps_the_time_to_live;
    begins_ttl_anew_at_a_rewrite: BeginsTtlOfRewriteAnew fails rewrite_keeps_the_time_to_live;
    expires_without_an_event: ExpiresSilently fails ttl_removes_and_watchers_see_it;
    // Wrong compaction or closing.
    compacts_what_is_present: CompactsPresent fails compaction_keeps_what_is_present;
    compacts_too_much: CompactsTooMuch fails
        compaction_keeps_the_state_at_its_revision watch_from_a_compacted_revision_is_refused;
    compacts_the_future: CompactsFuture fails compaction_of_the_future_is_refused;
    compacts_backwards: RefusesToCompactTwice fails compaction_of_the_compacted_does_nothing;
    works_after_close: WorksAfterClose fails closed_store_is_unavailable;
    leaves_watches_open: LeavesWatchesOpen fails close_ends_watches;
}

caught_at_restart! {
    loses_objects_at_restart: RestartLosesObjects fails restart_keeps_objects_and_revision;
    loses_history_at_restart: RestartLosesHistory fails restart_keeps_history_for_lists_and_watches;
    goes_back_at_restart: RestartGoesBack fails
        restart_keeps_objects_and_revision restart_keeps_the_revision_of_an_empty_store;
    forgets_compaction_at_restart: RestartForgetsCompaction fails restart_keeps_what_is_compacted;
    forgets_ttl_at_restart: RestartForgetsTtl fails restart_keeps_times_to_live;
}

/// Every test of the suite detects some defect.
#[test]
fn every_behavior_fails_for_some_defect() {
    let suite = [
        include_str!("../src/conformance/writes.rs"),
        include_str!("../src/conformance/lists.rs"),
        include_str!("../src/conformance/watches.rs"),
        include_str!("../src/conformance/times.rs"),
        include_str!("../src/conformance/restarts.rs"),
    ];
    let here: Vec<_> = include_str!("broken_backends.rs")
        .split(|letter: char| letter != '_' && !letter.is_ascii_alphanumeric())
        .collect();
    let mut behaviors = 0;
    for line in suite.iter().flat_map(|file| file.lines()) {
        if let Some(rest) = line.strip_prefix("pub async fn ") {
            let name = rest.split(['(', '<']).next().unwrap();
            assert!(here.contains(&name), "{name} fails for no defect");
            behaviors += 1;
        }
    }
    assert!(behaviors > 50);
}
