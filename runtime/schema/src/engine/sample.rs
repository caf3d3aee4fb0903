//! Random documents of a schema, for tests of generated CEL: with correct types, and mostly valid.

use serde_json::{Map, Number, Value, json};

use super::Schema;
use super::node::{Canonical, ListType, Node};

/// Depth below which optional fields are omitted, since types may contain themselves.
const MAX_DEPTH: usize = 8;

/// Maximum length of a list or a text without limits.
const MAX_LEN: usize = 3;

impl Schema {
    /// A random document for a seed; the same seed gives the same document. It has no `apiVersion`, `kind` and
    /// `metadata`. Patterns and users' checks are ignored: [`Schema::validate`] decides whether the document is valid.
    pub fn sample(&self, seed: u64) -> Value {
        let mut fields = match Random(seed).value(&self.root, 0) {
            Value::Object(fields) => fields,
            _ => Map::new(),
        };
        for name in ["apiVersion", "kind", "metadata"] {
            fields.remove(name);
        }
        Value::Object(fields)
    }
}

/// Pseudorandom numbers from a seed, with the generator SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below a bound, which must not be zero.
    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % (bound as u64)).unwrap_or_default()
    }

    fn between(&mut self, min: usize, max: usize) -> usize {
        min + self.below(max.saturating_sub(min) + 1)
    }

    fn pick<'a, T>(&mut self, choices: &'a [T]) -> Option<&'a T> {
        match choices.len() {
            0 => None,
            len => choices.get(self.below(len)),
        }
    }

    fn value(&mut self, node: &Node, depth: usize) -> Value {
        if let Some(value) = self.pick(&node.rules.values) {
            return value.clone();
        }
        if let Some(branch) = node
            .choices
            .first()
            .and_then(|choice| self.pick(&choice.branches))
        {
            let value = self.value(branch, depth);
            return self.with_other_fields(node, value, depth);
        }
        let names = node.types.names();
        match self.pick(&names).copied() {
            Some("object") => Value::Object(self.object(node, depth)),
            Some("array") => self.array(node, depth),
            Some("string") => Value::from(self.text(node)),
            // Integers are numbers too.
            Some("integer" | "number") => Value::from(self.integer(node)),
            Some("boolean") => Value::from(self.below(2) == 0),
            _ => json!({"a": self.below(3)}),
        }
    }

    /// Adds the fields that all variants have to a variant of an enum.
    fn with_other_fields(&mut self, node: &Node, value: Value, depth: usize) -> Value {
        let Value::Object(mut fields) = value else {
            return value;
        };
        let branches = node.choices.iter().flat_map(|choice| &choice.branches);
        let names: Vec<&str> = branches
            .flat_map(|branch| &branch.properties)
            .map(|property| property.name.as_str())
            .collect();
        for (name, value) in self.object(node, depth) {
            if !names.contains(&name.as_str()) {
                fields.insert(name, value);
            }
        }
        Value::Object(fields)
    }

    fn object(&mut self, node: &Node, depth: usize) -> Map<String, Value> {
        let mut fields = Map::new();
        for property in &node.properties {
            let is_required = property.required || property.node.rules.required;
            let is_there = is_required || (depth < MAX_DEPTH && self.below(2) == 0);
            if is_there && !property.node.rules.forbidden {
                let value = self.value(&property.node, depth + 1);
                fields.insert(property.name.clone(), value);
            }
        }
        if let Some(union) = &node.rules.union {
            // One of the members or, if allowed, none.
            let member = self.below(union.members.len() + usize::from(union.allow_none));
            for (name, _) in &union.members {
                fields.remove(name);
            }
            let chosen = union.members.get(member);
            if let Some((name, property)) =
                chosen.and_then(|(name, _)| Some((name, node.property(name)?)))
            {
                fields.insert(name.clone(), self.value(&property.node, depth + 1));
            }
            if let Some(tag) = &union.discriminator {
                let selects = chosen.and_then(|(_, values)| self.pick(values));
                match selects {
                    Some(value) => drop(fields.insert(tag.clone(), Value::from(value.as_str()))),
                    None => drop(fields.remove(tag)),
                }
            }
        }
        if let Some(additional) = node.additional.as_deref().filter(|_| depth < MAX_DEPTH) {
            let rules = &node.rules;
            let count = self.count(rules.min_properties, rules.max_properties);
            for key in ('a'..).take(count) {
                let value = self.value(additional, depth + 1);
                fields.insert(key.to_string(), value);
            }
        }
        if node.embedded_resource {
            fields.insert("apiVersion".to_owned(), json!("v1"));
            fields.insert("kind".to_owned(), json!("Any"));
        }
        fields
    }

    fn array(&mut self, node: &Node, depth: usize) -> Value {
        let Some(items) = node.items.as_deref() else {
            return json!([]);
        };
        let count = match self.count(node.rules.min_items, node.rules.max_items) {
            _ if depth >= MAX_DEPTH => node.rules.min_items.unwrap_or_default(),
            count => count,
        };
        let mut list: Vec<Value> = Vec::with_capacity(count);
        for _ in 0..count {
            let item = self.value(items, depth + 1);
            let is_twin = |other: &Value| match &node.list_type {
                Some(ListType::Map(keys)) => keys.iter().all(|key| other.get(key) == item.get(key)),
                Some(ListType::Set) => *other == item,
                Some(ListType::Atomic) | None => node.rules.unique && *other == item,
            };
            if !list.iter().any(is_twin) {
                list.push(item);
            }
        }
        Value::Array(list)
    }

    fn count(&mut self, min: Option<usize>, max: Option<usize>) -> usize {
        let min = min.unwrap_or_default();
        self.between(min, max.unwrap_or(usize::MAX).min(min + MAX_LEN))
    }

    fn text(&mut self, node: &Node) -> String {
        if let Some(known) = self.pick(&node.known_values).and_then(Value::as_str) {
            return known.to_owned();
        }
        let second = self.below(60);
        match (node.canonical, node.format.as_deref()) {
            (Some(Canonical::Microseconds), _) => {
                return format!("2026-11-22T10:00:{second:02}.000000Z");
            }
            (Some(Canonical::Seconds), _) | (_, Some("date-time")) => {
                return format!("2026-11-22T10:00:{second:02}Z");
            }
            (_, Some("date")) => return "2026-11-22".to_owned(),
            (_, Some("ip" | "ipv4")) => return format!("10.0.0.{second}"),
            (_, Some("ipv6")) => return format!("fd00::{second}"),
            (_, Some("cidr")) => return format!("10.0.{second}.0/24"),
            (_, Some("uuid")) => return format!("01234567-89ab-4cde-8f01-2345678900{second:02}"),
            (_, Some("uri")) => return format!("https://example.com/{second}"),
            (_, Some("email")) => return format!("a{second}@example.com"),
            (Some(Canonical::Bytes), _) | (_, Some("byte")) => return "YWJj".to_owned(),
            (Some(Canonical::Duration), _) | (_, Some("duration")) => return format!("{second}s"),
            (_, Some("quantity")) => return format!("{second}Mi"),
            _ => {}
        }
        let rules = &node.rules;
        let min = rules.min_length.max(rules.min_bytes).unwrap_or_default();
        let max = rules.max_length.into_iter().chain(rules.max_bytes).min();
        // Some types omit an empty text, so it is generated only if nothing else is allowed.
        let min = min.max(usize::from(max != Some(0)));
        let len = self.count(Some(min), max);
        (0..len)
            .filter_map(|_| self.pick(b"abcxyz"))
            .map(|letter| char::from(*letter))
            .collect()
    }

    fn integer(&mut self, node: &Node) -> i64 {
        let rules = &node.rules;
        let whole = |number: &Option<Number>| number.as_ref().and_then(Number::as_i64);
        let min = whole(&rules.minimum);
        let min = min.or(whole(&rules.exclusive_minimum).map(|min| min.saturating_add(1)));
        let max = whole(&rules.maximum);
        let max = max.or(whole(&rules.exclusive_maximum).map(|max| max.saturating_sub(1)));
        let some = i64::try_from(self.below(200)).unwrap_or_default();
        let (min, max) = match (min, max) {
            (Some(min), Some(max)) => (min, max),
            (Some(min), None) => (min, min.saturating_add(some)),
            (None, Some(max)) => (max.saturating_sub(some), max),
            (None, None) => (0, some),
        };
        let step = whole(&rules.multiple_of)
            .filter(|step| *step > 0)
            .unwrap_or(1);
        let number = match self.below(4) {
            0 => min,
            1 => max,
            _ => some.clamp(min, max.max(min)),
        };
        number - number % step
    }
}
