//! A label selector, compiled for matching many objects.
//!
//! The requirements of a key are merged, so that the cost of a match depends on the object's labels, not on the number
//! of requirements: a selector may have 9,000 keys that an object does not have.

use super::{LabelSelector, Operator, Requirement};

/// The labels of one object, for a [`LabelMatcher`].
pub trait Labels {
    /// The value of a label.
    fn value(&self, key: &str) -> Option<&str>;
    /// The number of labels.
    fn count(&self) -> usize;
    /// Whether `holds` is true for every label; stops at the first for which it is not.
    fn all(&self, holds: impl FnMut(&str, &str) -> bool) -> bool;
}

/// A compiled [`LabelSelector`], which selects the same objects.
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
    /// Keys that an object must have. The match ends at the first missing key, so at most one key more is looked up
    /// than the object has labels.
    required: Vec<(String, Condition)>,
    /// Keys that an object need not have, sorted.
    optional: Vec<(String, Condition)>,
    /// Whether requirements contradict each other, so that no object is selected.
    is_contradictory: bool,
}

/// All requirements for one key, as conditions on its value.
#[derive(Clone, Debug, Default)]
struct Condition {
    /// Whether a requirement is not met by an object without the label.
    is_required: bool,
    /// Whether the label must be absent.
    is_forbidden: bool,
    /// The only allowed values, sorted.
    allowed: Option<Vec<String>>,
    /// Values that are not allowed, sorted.
    denied: Vec<String>,
    /// The value must be an integer greater than this.
    above: Option<i64>,
    /// The value must be an integer less than this.
    below: Option<i64>,
}

impl LabelMatcher {
    /// Compiles a selector.
    pub fn new(selector: &LabelSelector) -> Self {
        let mut matcher = Self::default();
        // Sorted by key, so the requirements of a key are adjacent.
        for same in selector.requirements().chunk_by(|a, b| a.key() == b.key()) {
            let mut condition = Condition::default();
            same.iter()
                .for_each(|requirement| condition.add(requirement));
            condition.denied.sort_unstable();
            condition.denied.dedup();
            matcher.is_contradictory |= condition.is_contradictory();
            let keys = if condition.is_required {
                &mut matcher.required
            } else {
                &mut matcher.optional
            };
            keys.extend(
                same.first()
                    .map(|first| (first.key().to_owned(), condition)),
            );
        }
        matcher
    }

    /// Whether all objects are selected.
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

    /// Whether no label has a denied value; iterates over the labels or the keys, whichever are fewer.
    fn has_no_refused(&self, labels: &impl Labels) -> bool {
        // Most selectors have no such keys, and then the labels need not be counted.
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
        // The parser accepts integers only; other values compare with nothing.
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

    /// Whether no object can meet it, with the label or without.
    fn is_contradictory(&self) -> bool {
        self.is_required && (self.is_forbidden || self.allowed.as_ref().is_some_and(Vec::is_empty))
    }

    /// Whether a present value meets it.
    fn holds(&self, value: &str) -> bool {
        let contains =
            |values: &[String]| values.binary_search_by(|v| v.as_str().cmp(value)).is_ok();
        !self.is_forbidden
            && self.allowed.as_deref().is_none_or(contains)
            && !contains(&self.denied)
            && self.is_within_limits(value)
    }

    /// A value that is not an integer is not within any limits.
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

    /// Labels that count how often they are accessed.
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

    /// The text of a selector with this number of terms, each made from its index.
    fn selector(terms: usize, term: impl Fn(usize) -> String) -> LabelSelector {
        let mut text = String::new();
        for number in 0..terms {
            let comma = if number == 0 { "" } else { "," };
            write!(text, "{comma}{}", term(number)).unwrap();
        }
        LabelSelector::parse(&text).unwrap()
    }

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
                    if value.starts_with(['-', '+']) {
                        format!("{key}{operator}0")
                    } else {
                        format!("{key}{operator}{value}")
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
        // The compiled selector selects the same objects as its requirements one by one.
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
