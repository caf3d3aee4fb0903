//! A field selector, compiled for matching many objects: each field is resolved once, and read once per object,
//! however many requirements it has.

use std::borrow::Cow;
use std::collections::HashMap;

use super::FieldSelector;

/// A compiled [`FieldSelector`], which selects the same objects. `F` identifies a field when an object is read.
#[derive(Clone, Debug)]
pub struct FieldMatcher<F> {
    fields: Vec<Condition<F>>,
    /// Whether requirements contradict each other, so that no object is selected.
    is_contradictory: bool,
}

/// All requirements for one field.
#[derive(Clone, Debug)]
struct Condition<F> {
    field: F,
    equals: Option<String>,
    /// Values that the field must not have, sorted.
    denied: Vec<String>,
}

impl<F> Default for FieldMatcher<F> {
    fn default() -> Self {
        Self {
            fields: Vec::new(),
            is_contradictory: false,
        }
    }
}

impl<F> FieldMatcher<F> {
    /// Compiles a selector; `resolve` is called once per field, in the order of the requirements.
    ///
    /// # Errors
    /// The first error of `resolve`.
    pub fn new<E>(
        selector: &FieldSelector,
        mut resolve: impl FnMut(&str) -> Result<F, E>,
    ) -> Result<Self, E> {
        let mut matcher = Self::default();
        let mut places = HashMap::new();
        for requirement in selector.requirements() {
            let place = match places.get(requirement.field.as_str()) {
                Some(place) => *place,
                None => {
                    matcher.fields.push(Condition {
                        field: resolve(&requirement.field)?,
                        equals: None,
                        denied: Vec::new(),
                    });
                    places.insert(requirement.field.as_str(), matcher.fields.len() - 1);
                    matcher.fields.len() - 1
                }
            };
            let condition = &mut matcher.fields[place];
            match (requirement.equals, &condition.equals) {
                (false, _) => condition.denied.push(requirement.value.clone()),
                (true, None) => condition.equals = Some(requirement.value.clone()),
                (true, Some(known)) => matcher.is_contradictory |= *known != requirement.value,
            }
        }
        for condition in &mut matcher.fields {
            condition.denied.sort_unstable();
            condition.denied.dedup();
        }
        Ok(matcher)
    }

    /// Whether all objects are selected.
    pub fn is_everything(&self) -> bool {
        self.fields.is_empty()
    }

    /// The fields that are read, each once.
    pub fn fields(&self) -> impl Iterator<Item = &F> {
        self.fields.iter().map(|condition| &condition.field)
    }

    /// The fields that must be equal to a value, each with the first such value.
    pub fn required(&self) -> impl Iterator<Item = (&F, &str)> {
        self.fields
            .iter()
            .filter_map(|condition| Some((&condition.field, condition.equals.as_deref()?)))
    }

    /// Whether an object is selected; `read` returns the value of a field, the empty string for a missing one.
    pub fn matches<'a>(&self, read: impl Fn(&F) -> Cow<'a, str>) -> bool {
        !self.is_contradictory
            && self.fields.iter().all(|condition| {
                let value = read(&condition.field);
                let value = value.as_ref();
                condition.equals.as_deref().is_none_or(|only| only == value)
                    && condition
                        .denied
                        .binary_search_by(|denied| denied.as_str().cmp(value))
                        .is_err()
            })
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::convert::Infallible;

    use proptest::prelude::*;

    use super::*;

    fn compiled(selector: &FieldSelector) -> FieldMatcher<String> {
        let resolved = FieldMatcher::new(selector, |field| Ok::<_, Infallible>(field.to_owned()));
        resolved.unwrap_or_else(|never| match never {})
    }

    #[test]
    fn each_field_is_resolved_and_read_once() {
        let terms: Vec<String> = (0..9_000)
            .map(|n| format!("spec.a!=v{n},spec.b!=v{n}"))
            .collect();
        let selector = FieldSelector::parse(&terms.join(",")).unwrap();
        let resolved = Cell::new(0);
        let matcher = FieldMatcher::new(&selector, |field| {
            resolved.set(resolved.get() + 1);
            Ok::<_, Infallible>(field.to_owned())
        });
        let read = Cell::new(0);
        assert!(matcher.unwrap_or_else(|never| match never {}).matches(|_| {
            read.set(read.get() + 1);
            Cow::Borrowed("other")
        }));
        assert_eq!((resolved.get(), read.get()), (2, 2));
    }

    #[test]
    fn the_first_field_that_cannot_be_resolved_is_told() {
        let selector = FieldSelector::parse("b=1,a=1,c=1").unwrap();
        let resolved = FieldMatcher::new(&selector, |field| Err::<(), _>(field.to_owned()));
        assert_eq!(resolved.err().as_deref(), Some("a"));
    }

    proptest! {
        // The compiled selector selects the same objects as its requirements one by one.
        #[test]
        fn it_selects_what_the_plain_selector_selects(
            terms in prop::collection::vec("[abc](=|==|!=)[xy]?", 0..6),
            values in prop::collection::btree_map("[abc]", "[xyz]?", 0..4),
        ) {
            let text = terms.join(",");
            let selector = FieldSelector::parse(&text).unwrap();
            let read = |field: &str| Cow::Borrowed(values.get(field).map_or("", String::as_str));
            let plain = selector.matches(read);
            prop_assert_eq!(compiled(&selector).matches(|field| read(field)), plain, "{}", text);
        }
    }
}
