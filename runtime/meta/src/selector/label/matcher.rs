//! A label selector compiled for matching against many objects.
//!
//! The requirements of a key are merged, so that a match costs what the object's labels cost and not what the selector's
//! requirements do: 9,000 keys that an object does not have are never looked at one by one.

use super::{LabelSelector, Operator, Requirement};
use crate::Object;

/// The labels of one object, as a [`LabelMatcher`] reads them.
pub trait Labels {
    /// The value of a label.
    fn value(&self, key: &str) -> Option<&str>;
    /// How many labels there are.
    fn count(&self) -> usize;
    /// Whether a condition holds for every label; stops at the first for which it does not.
    fn all(&self, holds: impl FnMut(&str, &str) -> bool) -> bool;
}

/// A compiled [`LabelSelector`]: selects the same objects.
///
/// ```
/// use std::collections::BTreeMap;
/// use apiloom_meta::selector::{LabelMatcher, LabelQuery};
/// let matcher = LabelMatcher::new(&LabelQuery::parse("app in (web, api), app!=api, !canary").unwrap());
/// assert!(matcher.matches(&BTreeMap::from([("app".to_owned(), "web".to_owned())])));
/// assert!(!matcher.matches(&BTreeMap::from([("app".to_owned(), "api".to_owned())])));
/// ```
#[derive(Clone, Debug, Default)]
pub struct LabelMatcher {
    /// Keys that an object must have. The first one that it has not ends the match, so that no more of these are looked
    /// at than the object has labels.
    required: Vec<(String, Condition)>,
    /// Keys that an object may be without, sorted.
    optional: Vec<(String, Condition)>,
    /// Whether requirements contradict each other, so that nothing is selected.
    is_contradictory: bool,
}

/// What all requirements of one key together ask of a value that is there.
#[derive(Clone, Debug, Default)]
struct Condition {
    /// Whether one of the requirements is not met by an object without the label.
    is_required: bool,
    /// Whether the label must be absent.
    is_forbidden: bool,
    /// The only values allowed, sorted.
    allowed: Option<Vec<String>>,
    /// Values that are not allowed, sorted.
    denied: Vec<String>,
    /// The value is an integer greater than this.
    above: Option<i64>,
    /// The value is an integer less than this.
    below: Option<i64>,
}

impl LabelMatcher {
    /// Compiles a selector.
    pub fn new(selector: &LabelSelector) -> Self {
        let mut matcher = Self::default();
        // Sorted by key, so the requirements of a key stand together.
        for same in selector.requirements().chunk_by(|a, b| a.key() == b.key()) {
            let mut condition = Condition::default();
            same.iter()
                .for_each(|requirement| condition.add(requirement));
            condition.denied.sort_unstable();
            condition.denied.dedup();
            matcher.is_contradictory |= condition.is_contradictory();
            let keys = match condition.is_required {
                true => &mut matcher.required,
                false => &mut matcher.optional,
            };
            keys.extend(
                same.first()
                    .map(|first| (first.key().to_owned(), condition)),
            );
        }
        matcher
    }

    /// Whether it selects everything.
    pub fn is_everything(&self) -> bool {
        self.required.is_empty() && self.optional.is_empty()
    }

    /// Whether an object with these labels is selected.
    pub fn matches(&self, labels: &impl Labels) -> bool {
        !self.is_contradictory
            && self
                .required
                .iter()
                .all(|(key, condition)| labels.value(key).is_some_and(|v| condition.holds(v)))
            && self.has_no_refused(labels)
    }

    /// Whether no label has a value that is refused: looked at from the side that has fewer keys.
    fn has_no_refused(&self, labels: &impl Labels) -> bool {
        // Most selectors have none, and then labels need not be counted.
        if self.optional.is_empty() || self.optional.len() <= labels.count() {
            return self
                .optional
                .iter()
                .all(|(key, condition)| labels.value(key).is_none_or(|v| condition.holds(v)));
        }
        labels.all(|key, value| {
            let found = self
                .optional
                .binary_search_by(|(known, _)| known.as_str().cmp(key));
            found.is_err() || found.is_ok_and(|at| self.optional[at].1.holds(value))
        })
    }
}

impl Condition {
    fn add(&mut self, requirement: &Requirement) {
        let values = requirement.values();
        // Only integers get through the reading of a selector; anything else is greater and less than nothing.
        let limit = || values.first().and_then(|value| value.parse().ok());
        match requirement.operator() {
            Operator::NotEquals | Operator::NotIn => {
                self.denied.extend_from_slice(values);
                return;
            }
            Operator::DoesNotExist => {
                self.is_forbidden = true;
                return;
            }
            Operator::Exists => {}
            Operator::Equals | Operator::DoubleEquals | Operator::In => match &mut self.allowed {
                None => self.allowed = Some(values.to_vec()),
                Some(allowed) => allowed.retain(|value| values.binary_search(value).is_ok()),
            },
            Operator::GreaterThan => {
                let limit = limit().unwrap_or(i64::MAX);
                self.above = Some(self.above.map_or(limit, |above| above.max(limit)));
            }
            Operator::LessThan => {
                let limit = limit().unwrap_or(i64::MIN);
                self.below = Some(self.below.map_or(limit, |below| below.min(limit)));
            }
        }
        self.is_required = true;
    }

    /// Whether nothing, present or absent, can meet it.
    fn is_contradictory(&self) -> bool {
        self.is_required && (self.is_forbidden || self.allowed.as_ref().is_some_and(Vec::is_empty))
    }

    /// Whether a value that is there meets it.
    fn holds(&self, value: &str) -> bool {
        let contains =
            |values: &[String]| values.binary_search_by(|v| v.as_str().cmp(value)).is_ok();
        !self.is_forbidden
            && self.allowed.as_deref().is_none_or(contains)
            && !contains(&self.denied)
            && self.is_within_limits(value)
    }

    /// A label that is no integer is neither greater nor less than anything.
    fn is_within_limits(&self, value: &str) -> bool {
        if self.above.is_none() && self.below.is_none() {
            return true;
        }
        value.parse().is_ok_and(|value: i64| {
            self.above.is_none_or(|above| value > above)
                && self.below.is_none_or(|below| value < below)
        })
    }
}

impl Labels for Object {
    fn value(&self, key: &str) -> Option<&str> {
        self.label(key)
    }
    fn count(&self) -> usize {
        self.labels().map_or(0, serde_json::Map::len)
    }
    fn all(&self, mut holds: impl FnMut(&str, &str) -> bool) -> bool {
        let labels = self.labels().into_iter().flatten();
        // What is no string is no label.
        let mut labels = labels.filter_map(|(key, value)| Some((key, value.as_str()?)));
        labels.all(|(key, value)| holds(key, value))
    }
}

impl Labels for std::collections::BTreeMap<String, String> {
    fn value(&self, key: &str) -> Option<&str> {
        self.get(key).map(String::as_str)
    }
    fn count(&self) -> usize {
        self.len()
    }
    fn all(&self, mut holds: impl FnMut(&str, &str) -> bool) -> bool {
        self.iter().all(|(key, value)| holds(key, value))
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::collections::BTreeMap;
    use std::fmt::Write as _;

    use proptest::prelude::*;

    use super::*;

    type Map = BTreeMap<String, String>;

    /// Labels that count how often they are looked at.
    struct Counted<'a>(&'a Map, Cell<usize>);

    impl Labels for Counted<'_> {
        fn value(&self, key: &str) -> Option<&str> {
            self.1.set(self.1.get() + 1);
            self.0.value(key)
        }
        fn count(&self) -> usize {
            self.0.len()
        }
        fn all(&self, mut holds: impl FnMut(&str, &str) -> bool) -> bool {
            self.0.all(|key, value| {
                self.1.set(self.1.get() + 1);
                holds(key, value)
            })
        }
    }

    fn labels(pairs: &[(&str, &str)]) -> Map {
        let owned = pairs
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()));
        owned.collect()
    }

    /// The text of a selector of so many terms, made from the number of each.
    fn selector(terms: usize, term: impl Fn(usize) -> String) -> LabelSelector {
        let mut text = String::new();
        for number in 0..terms {
            let comma = if number == 0 { "" } else { "," };
            write!(text, "{comma}{}", term(number)).unwrap();
        }
        LabelSelector::parse(&text).unwrap()
    }

    // Issue 9, point 11.
    #[test]
    fn a_match_costs_what_the_labels_cost_and_not_what_the_terms_do() {
        const TERMS: usize = 9_000;
        let labels = labels(&[("app", "web"), ("size", "7"), ("tier", "front")]);
        let check = |what: &str, selector: &LabelSelector, expected: bool| {
            let counted = Counted(&labels, Cell::new(0));
            let plain = Cell::new(0);
            selector.matches(|key| {
                plain.set(plain.get() + 1);
                labels.value(key)
            });
            assert_eq!(
                LabelMatcher::new(selector).matches(&counted),
                expected,
                "{what}"
            );
            assert!(
                counted.1.get() <= 2 * labels.len(),
                "{what}: {counted:?}",
                counted = counted.1
            );
        };
        check("absent", &selector(TERMS, |n| format!("!k{n}")), true);
        check("unequal", &selector(TERMS, |n| format!("k{n}!=v")), true);
        check("one key", &selector(TERMS, |n| format!("app!=v{n}")), true);
        check(
            "one key, sets",
            &selector(TERMS, |n| format!("app notin (a{n},b{n})")),
            true,
        );
        check(
            "limits",
            &selector(TERMS, |n| format!("size<{}", n + 8)),
            true,
        );
        check("present", &selector(TERMS, |n| format!("k{n}")), false);
        check(
            "never",
            &selector(TERMS, |n| format!("app in (web,v{n})")),
            true,
        );
        check(
            "contradiction",
            &selector(TERMS, |n| format!("app=v{n}")),
            false,
        );
    }

    #[test]
    fn contradictions_select_nothing() {
        let with = labels(&[("a", "1")]);
        for text in ["a,!a", "a=1,a=2", "a in (1,2),a in (3)", "a=1,!a", "a>1,!a"] {
            let matcher = LabelMatcher::new(&LabelSelector::parse(text).unwrap());
            assert!(
                !matcher.matches(&with) && !matcher.matches(&Map::new()),
                "{text}"
            );
        }
    }

    fn requirement() -> impl Strategy<Value = String> {
        let key = prop::sample::select(vec!["a", "b", "c", "d"]);
        let value = prop::sample::select(vec!["", "x", "y", "-1", "3", "+3", "5"]);
        let number = prop::sample::select(vec!["-1", "0", "3", "+3", "4", "9223372036854775807"]);
        let values = prop::collection::vec(value.clone(), 1..4);
        prop_oneof![
            key.clone().prop_map(str::to_owned),
            key.clone().prop_map(|key| format!("!{key}")),
            (
                key.clone(),
                prop::sample::select(vec!["=", "==", "!="]),
                value
            )
                .prop_map(|(key, operator, value)| {
                    match value.starts_with(['-', '+']) {
                        true => format!("{key}{operator}0"),
                        false => format!("{key}{operator}{value}"),
                    }
                }),
            (
                key.clone(),
                prop::sample::select(vec!["in", "notin"]),
                values
            )
                .prop_map(|(key, operator, values)| {
                    let values: Vec<_> = values
                        .into_iter()
                        .filter(|v| !v.starts_with(['-', '+']))
                        .collect();
                    format!("{key} {operator} ({})", values.join(","))
                }),
            (key, prop::sample::select(vec![">", "<"]), number).prop_map(
                |(key, operator, number)| format!(
                    "{key}{operator}{}",
                    number.trim_start_matches(['-', '+'])
                )
            ),
        ]
    }

    proptest! {
        // Issue 9, point 11: the same objects as one requirement after the other selects.
        #[test]
        fn it_selects_what_the_plain_selector_selects(
            terms in prop::collection::vec(requirement(), 0..7),
            labels in prop::collection::btree_map("[a-e]", "(|x|y|-1|0|3|\\+3|5|9223372036854775807)", 0..5),
        ) {
            let text = terms.join(",");
            let selector = LabelSelector::parse(&text).unwrap();
            let plain = selector.matches(|key| labels.value(key));
            prop_assert_eq!(LabelMatcher::new(&selector).matches(&labels), plain, "{}", text);
            prop_assert_eq!(LabelMatcher::new(&selector).is_everything(), selector.is_everything());
        }
    }
}
