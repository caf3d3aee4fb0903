//! Graceful deletion: the deletionTimestamp and deletionGracePeriodSeconds that a delete sets. Removes nothing itself.

use apiloom_meta::{Object, Time};
use serde_json::Value;

use super::stamp;

/// The last second that a deletionTimestamp can express: longer grace periods end there.
const LAST_SECOND: i64 = 253_402_300_799;

/// What is left to do for a delete of an object whose kind has grace periods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Grace {
    /// The object is being deleted already, and the request does not shorten its grace period: nothing changes.
    Pending,
    /// The object was changed: its grace period has this many seconds.
    Set(i64),
    /// The grace period is over: the object is removed unless it has finalizers.
    Over,
}

/// A grace period as it was requested; negative ones count as one second, as in kube-apiserver.
pub(super) fn requested(seconds: Option<i64>) -> Option<i64> {
    seconds.map(at_least_one)
}

fn at_least_one(seconds: i64) -> i64 {
    if seconds < 0 { 1 } else { seconds }
}

/// Begins the deletion of an object.
pub(super) fn begin(object: &mut Object, seconds: i64, now: Time) -> Grace {
    let longest = LAST_SECOND.saturating_sub(now.unix_seconds()).max(0);
    let seconds = at_least_one(seconds).min(longest);
    set(object, now.unix_seconds() + seconds, seconds);
    increment_generation(object);
    Grace::Set(seconds)
}

/// Shortens the grace period of an object that is being deleted, if a shorter one is requested.
pub(super) fn shorten(object: &mut Object, requested: Option<i64>, now: Time) -> Grace {
    let present = stamp::meta_number(object, "deletionGracePeriodSeconds").map(at_least_one);
    let Some(present) = present.filter(|seconds| *seconds > 0) else {
        return Grace::Over;
    };
    let Some(seconds) = requested.filter(|seconds| *seconds < present) else {
        return Grace::Pending;
    };
    let now = now.unix_seconds();
    let begun = deletion_time(object).map_or(now, |end| end.unix_seconds().saturating_sub(present));
    let end = begun.saturating_add(seconds);
    if end >= now {
        set(object, end, seconds);
        return Grace::Set(seconds);
    }
    // The shorter period has passed already. Only a request for 0 removes the object, so others leave a second.
    let seconds = seconds.min(1);
    set(object, now, seconds);
    Grace::Set(seconds)
}

/// Marks an object without a grace period, which stays for its finalizers.
pub(super) fn mark_now(object: &mut Object, now: Time) {
    if !object.is_deleting() {
        increment_generation(object);
    }
    let end = deletion_time(object).map_or(now, |end| end.min(now));
    set(object, end.unix_seconds(), 0);
}

/// Marks an object that its strategy holds for a controller: by the time alone, as kube-apiserver does for definitions.
pub(super) fn held(mut object: Object, now: Time) -> Object {
    let meta = object.meta_mut();
    meta.insert("deletionTimestamp".to_owned(), stamp::time_value(now));
    object
}

fn set(object: &mut Object, end: i64, seconds: i64) {
    let end = Time::from_unix_seconds(end).to_string();
    let meta = object.meta_mut();
    meta.insert("deletionTimestamp".to_owned(), Value::from(end));
    stamp::set_meta_number(object, "deletionGracePeriodSeconds", Some(seconds));
}

fn deletion_time(object: &Object) -> Option<Time> {
    object.meta_str("deletionTimestamp").parse().ok()
}

/// Increments the generation of an object whose deletion begins, if it has one.
fn increment_generation(object: &mut Object) {
    let generation = stamp::meta_number(object, "generation").filter(|number| *number > 0);
    if let Some(generation) = generation {
        stamp::set_meta_number(object, "generation", Some(generation.saturating_add(1)));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const NOW: i64 = 1_000_000;

    fn now() -> Time {
        Time::from_unix_seconds(NOW)
    }

    fn object(meta: Value) -> Object {
        Object::from_value(json!({"metadata": meta})).unwrap()
    }

    /// An object whose deletion ends at `end` after a grace period.
    fn deleting(end: i64, seconds: Value) -> Object {
        let end = Time::from_unix_seconds(end).to_string();
        object(
            json!({"deletionTimestamp": end, "deletionGracePeriodSeconds": seconds, "generation": 2}),
        )
    }

    /// End of the grace period, relative to now, its length, and the generation.
    fn shown(object: &Object) -> (i64, Option<i64>, Option<i64>) {
        let number = |field| stamp::meta_number(object, field);
        let end = deletion_time(object).map_or(i64::MIN, |end| end.unix_seconds() - NOW);
        (
            end,
            number("deletionGracePeriodSeconds"),
            number("generation"),
        )
    }

    #[test]
    fn a_deletion_begins_with_its_end() {
        let check = |seconds: i64, expected: i64| {
            let mut object = object(json!({"generation": 1}));
            assert_eq!(begin(&mut object, seconds, now()), Grace::Set(expected));
            assert_eq!(shown(&object), (expected, Some(expected), Some(2)));
        };
        check(30, 30);
        check(0, 0);
        check(-5, 1);
        check(i64::MIN, 1);
        check(i64::MAX, LAST_SECOND - NOW);
        // A kind without generations gets none.
        let mut plain = object(json!({}));
        begin(&mut plain, 30, now());
        assert_eq!(shown(&plain), (30, Some(30), None));
    }

    #[test]
    fn a_grace_period_only_becomes_shorter() {
        let check = |end: i64,
                     present: Value,
                     asked: Option<i64>,
                     left: Grace,
                     expected: (i64, Option<i64>)| {
            let mut object = deleting(NOW + end, present.clone());
            let grace = shorten(&mut object, requested(asked), now());
            assert_eq!(grace, left, "{end} {present} {asked:?}");
            let (end, seconds, generation) = shown(&object);
            assert_eq!((end, seconds), expected, "{end} {present} {asked:?}");
            assert_eq!(
                generation,
                Some(2),
                "it was incremented when the deletion began"
            );
        };
        // Not shorter, or no wish at all.
        for asked in [None, Some(30), Some(31), Some(i64::MAX)] {
            check(20, json!(30), asked, Grace::Pending, (20, Some(30)));
        }
        // Ten of the seconds have passed.
        check(20, json!(30), Some(15), Grace::Set(15), (5, Some(15)));
        check(20, json!(30), Some(10), Grace::Set(10), (0, Some(10)));
        // It would have ended in the past: one second is left, unless 0 is asked for.
        check(20, json!(30), Some(5), Grace::Set(1), (0, Some(1)));
        check(20, json!(30), Some(-1), Grace::Set(1), (0, Some(1)));
        check(20, json!(30), Some(0), Grace::Set(0), (0, Some(0)));
        check(-100, json!(30), Some(10), Grace::Set(1), (0, Some(1)));
        // The end cannot be before the present, even with clocks that differ.
        check(40, json!(30), Some(0), Grace::Set(0), (10, Some(0)));
        // A negative period in the store counts as one second.
        check(20, json!(-7), Some(1), Grace::Pending, (20, Some(-7)));
        check(1, json!(-7), Some(0), Grace::Set(0), (0, Some(0)));
        // The longest period can be shortened too.
        let longest = LAST_SECOND - NOW;
        check(
            longest,
            json!(longest),
            Some(30),
            Grace::Set(30),
            (30, Some(30)),
        );
    }

    #[test]
    fn a_period_of_zero_is_over() {
        for present in [json!(0), json!(null)] {
            let mut object = deleting(NOW - 5, present);
            let before = object.clone();
            for asked in [None, Some(0), Some(30)] {
                assert_eq!(shorten(&mut object, asked, now()), Grace::Over);
                assert_eq!(object, before);
            }
        }
    }

    #[test]
    fn without_a_grace_period_the_deletion_is_now() {
        let mut fresh = object(json!({"generation": 1}));
        mark_now(&mut fresh, now());
        assert_eq!(shown(&fresh), (0, Some(0), Some(2)));
        // An end in the future, of a kind that had grace periods, becomes now; one in the past stays.
        let mut later = deleting(NOW + 20, json!(30));
        mark_now(&mut later, now());
        assert_eq!(shown(&later), (0, Some(0), Some(2)));
        let mut earlier = deleting(NOW - 20, json!(0));
        let before = earlier.clone();
        mark_now(&mut earlier, now());
        assert_eq!(earlier, before);
    }
}
