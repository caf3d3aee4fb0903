//! The index of a long `enum`: a value is compared with the few that have its hash, not with all of them.

use std::hash::BuildHasher;

use serde_json::{Number, Value};

use super::super::enum_index::{EnumIndex, Position, Positions};
use super::super::equality::{ComparedValue, same};
use super::super::go_numbers;
use crate::number;

/// Number of values up to which comparing all of them is cheaper than an index.
const FEW: usize = 16;

impl EnumIndex {
    /// Whether one of `values`, of which this is the index, is the value.
    pub(super) fn contain(&self, values: &[Value], value: &Value) -> bool {
        self.any(values, value, |allowed| is_equal(allowed, value))
    }

    /// Whether `accept` takes one of the values that may be the value.
    fn any(&self, values: &[Value], value: &Value, accept: impl FnMut(&Value) -> bool) -> bool {
        if values.len() <= FEW {
            return values.iter().any(accept);
        }
        let index = self.0.get_or_init(|| Box::new(Positions::new(values)));
        index.candidates(values, value).any(accept)
    }
}

fn is_equal(allowed: &Value, value: &Value) -> bool {
    match (allowed, value) {
        (Value::Null, _) | (_, Value::Null) => false,
        (Value::Number(allowed), Value::Number(value)) => is_allowed(allowed, value),
        (allowed, value) => same(None, allowed, value),
    }
}

/// Whether a number is one of an enum. Where the enum has an integer, the fraction of the number does not count, as in
/// kube-openapi, which converts the number to the type of the enum's. Numbers that Go does not decode as integers are floats.
fn is_allowed(allowed: &Number, value: &Number) -> bool {
    match (
        go_numbers::has_integer_syntax(allowed),
        go_numbers::has_integer_syntax(value),
    ) {
        (true, true) => allowed == value,
        (true, false) => go_numbers::whole_part(value) == go_numbers::whole_part(allowed),
        (false, _) => number::float(allowed) == number::float(value),
    }
}

impl Positions {
    fn new(values: &[Value]) -> Self {
        let mut index = Self::default();
        let positions = (0..).zip(values);
        let hashed = positions.map(|(at, value)| (index.hash_allowed(value), at));
        let mut by_hash: Vec<Position> = hashed.collect();
        by_hash.sort_unstable();
        index.by_hash = by_hash;
        index
    }

    fn hash_allowed(&self, allowed: &Value) -> u64 {
        match allowed {
            Value::Number(number) if go_numbers::has_integer_syntax(number) => {
                self.hash_whole(number)
            }
            allowed => self.hash_other(allowed),
        }
    }

    fn hash_whole(&self, number: &Number) -> u64 {
        let whole = go_numbers::whole_part(number).as_i64();
        self.hasher.hash_one((true, whole))
    }

    /// Numbers that are compared as floats are hashed as such, so that those with the same hash are equal.
    fn hash_other(&self, value: &Value) -> u64 {
        match value.as_number() {
            // Adding zero converts -0 to 0.
            Some(number) => {
                let bits = (number::float(number) + 0.0).to_bits();
                self.hasher.hash_one((false, bits))
            }
            None => self.hasher.hash_one((false, ComparedValue::plain(value))),
        }
    }

    /// The values that may equal this one. A number may equal an integer by its whole part, and others by its value.
    fn candidates<'a>(
        &'a self,
        values: &'a [Value],
        value: &'a Value,
    ) -> impl Iterator<Item = &'a Value> {
        let whole = value.as_number().map(|number| self.hash_whole(number));
        let hashes = [whole, Some(self.hash_other(value))];
        let found = hashes
            .into_iter()
            .flatten()
            .flat_map(|hash| self.positions(hash));
        found.filter_map(|at| values.get(at as usize))
    }

    fn positions(&self, hash: u64) -> impl Iterator<Item = u32> {
        let first = self.by_hash.partition_point(|(other, _)| *other < hash);
        let same = self.by_hash[first..].iter();
        let same = same.take_while(move |(other, _)| *other == hash);
        same.map(|(_, at)| *at)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Number of comparisons for as many items as the enum has values, and as many more that it does not have.
    fn comparisons(count: usize, make: fn(usize) -> Value) -> usize {
        let values: Vec<Value> = (0..count).map(make).collect();
        let choices = EnumIndex::default();
        let mut compared = 0;
        for at in 0..2 * count {
            let item = make(at);
            let found = choices.any(&values, &item, |allowed| {
                compared += 1;
                is_equal(allowed, &item)
            });
            let expected = values.iter().any(|allowed| is_equal(allowed, &item));
            assert_eq!(found, expected, "{item}");
        }
        compared
    }

    // 100,000 values and 8,000 items took 3 seconds.
    #[test]
    fn twice_the_values_and_items_are_twice_the_comparisons() {
        let kinds: [fn(usize) -> Value; 8] = [
            |at| json!(u64::MAX - u64::try_from(at).unwrap()),
            |at| {
                json!([
                    u64::MAX - u64::try_from(at / 10).unwrap(),
                    u64::MAX - u64::try_from(at % 10).unwrap()
                ])
            },
            |at| json!({"a": {"b": u64::MAX - u64::try_from(at).unwrap()}}),
            |at| json!(format!("v{at}")),
            |at| json!(i64::MAX - i64::try_from(at).unwrap()),
            |at| json!(f64::from(u32::try_from(at).unwrap()) + 0.5),
            |at| json!([at, "x"]),
            |at| json!({"a": at}),
        ];
        for make in kinds {
            let [once, twice] = [400, 800].map(|count| comparisons(count, make));
            assert!(once >= 400, "{once}");
            assert!(twice <= 2 * once + 10, "{once} {twice}");
        }
    }

    #[test]
    fn an_index_finds_what_comparing_all_finds() {
        let some = [
            json!(null),
            json!(true),
            json!(0),
            json!(-0.0),
            json!(2),
            json!(2.0),
            json!(2.5),
            json!(-2.5),
            json!(i64::MAX),
            json!(u64::MAX),
            json!(9.3e18),
            json!(1e300),
            json!("2"),
            json!(""),
            json!([2]),
            json!([2.0]),
            json!({"a": 1, "b": [1.0]}),
            json!({"b": [1], "a": 1.0}),
        ];
        let fill = (0..FEW).map(|at| json!(format!("fill{at}")));
        let fill: Vec<Value> = fill.collect();
        for allowed in &some {
            let mut values = fill.clone();
            values.push(allowed.clone());
            let choices = EnumIndex::default();
            for value in &some {
                let expected = is_equal(allowed, value);
                assert_eq!(
                    choices.contain(&values, value),
                    expected,
                    "{allowed} {value}"
                );
            }
        }
    }
}
