//! `SortedMap` beside `BTreeMap`.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

type Map = SortedMap<String, u8>;

fn map(text: &str) -> Map {
    serde_json::from_str(text).expect("a map")
}

#[test]
fn documents_are_read_in_any_order_and_the_last_of_equal_keys_counts() {
    let read = map(r#"{"b":1,"a":2,"c":3,"a":4,"b":5}"#);
    assert_eq!(
        serde_json::to_string(&read).unwrap(),
        r#"{"a":4,"b":5,"c":3}"#
    );
    assert_eq!(read, map(r#"{"a":4,"b":5,"c":3}"#));
    assert_eq!(read.entries.capacity(), 3, "no room is kept");
    assert_eq!(map("{}").entries.capacity(), 0);
    for text in [r#"{"a":"x"}"#, "[]", "null", r#"{"a":1,}"#] {
        let own = serde_json::from_str::<Map>(text).unwrap_err().to_string();
        let other = serde_json::from_str::<BTreeMap<String, u8>>(text).unwrap_err();
        assert_eq!(own, other.to_string(), "{text}");
    }
}

#[test]
fn the_schema_is_that_of_other_maps() {
    let own = schemars::schema_for!(SortedMap<String, u8>);
    assert_eq!(own, schemars::schema_for!(BTreeMap<String, u8>));
}

#[test]
fn entries_are_looked_at_and_set() {
    let mut map = map(r#"{"a":1}"#);
    *map.entry("b".to_owned()).or_default() += 2;
    *map.entry("a".to_owned()).or_insert(7) += 1;
    let _ = map.entry("a".to_owned()).and_modify(|value| *value += 1);
    match map.entry("c".to_owned()) {
        Entry::Vacant(vacant) => {
            assert_eq!(vacant.key(), "c");
            *vacant.insert(9) += 1;
        }
        Entry::Occupied(_) => panic!("c is not there"),
    }
    if let Entry::Occupied(mut occupied) = map.entry("b".to_owned()) {
        assert_eq!((*occupied.get(), occupied.insert(5)), (2, 2));
        assert_eq!(occupied.remove(), 5);
    }
    assert_eq!(format!("{map:?}"), r#"{"a": 3, "c": 10}"#);
    assert_eq!((map["a"], map.get("b")), (3, None));
    for value in map.values_mut() {
        *value += 1;
    }
    for (_, value) in map.iter_mut() {
        *value += 1;
    }
    assert_eq!(map.into_values().rev().collect::<Vec<_>>(), [12, 5]);
}

/// What is done to both maps.
#[derive(Clone, Debug)]
enum Step {
    Insert(String, u8),
    Remove(String),
    Extend(Vec<(String, u8)>),
    Retain(u8),
    Change(String),
}

fn step() -> impl Strategy<Value = Step> {
    let key = || "[a-e]{0,2}";
    prop_oneof![
        4 => (key(), any::<u8>()).prop_map(|(key, value)| Step::Insert(key, value)),
        2 => key().prop_map(Step::Remove),
        1 => prop::collection::vec((key(), any::<u8>()), 0..6).prop_map(Step::Extend),
        1 => any::<u8>().prop_map(Step::Retain),
        1 => key().prop_map(Step::Change),
    ]
}

proptest! {
    #[test]
    fn a_sorted_map_is_a_btree_map(steps in prop::collection::vec(step(), 0..40)) {
        let mut own = Map::new();
        let mut other = BTreeMap::new();
        for step in steps {
            match step {
                Step::Insert(key, value) => {
                    prop_assert_eq!(own.insert(key.clone(), value), other.insert(key, value));
                }
                Step::Remove(key) => {
                    prop_assert_eq!(own.contains_key(&key), other.contains_key(&key));
                    prop_assert_eq!(own.remove(&key), other.remove(&key));
                }
                Step::Extend(entries) => {
                    own.extend(entries.clone());
                    other.extend(entries);
                }
                Step::Retain(least) => {
                    own.retain(|_, value| *value >= least);
                    other.retain(|_, value| *value >= least);
                }
                Step::Change(key) => {
                    if let Some(value) = own.get_mut(key.as_str()) {
                        *value = 0;
                    }
                    other.entry(key).and_modify(|value| *value = 0);
                }
            }
            prop_assert!(own.iter().eq(&other));
            prop_assert!(own.keys().eq(other.keys()) && own.values().eq(other.values()));
            prop_assert_eq!((own.len(), own.is_empty()), (other.len(), other.is_empty()));
            prop_assert!(own.iter().rev().eq(other.iter().rev()));
        }
        let same: Map = other.clone().into();
        prop_assert_eq!(&same, &own);
        prop_assert_eq!(BTreeMap::from(own), other);
    }
}
