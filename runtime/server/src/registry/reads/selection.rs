//! Which objects a list, a watch or a deletecollection is about: label and field selectors, checked against the kind.

use std::borrow::Cow;

use apiloom_meta::kind::Scope;
use apiloom_meta::path::JsonPath;
use apiloom_meta::selector::{FieldMatcher, FieldSelector, LabelMatcher, LabelQuery};
use apiloom_meta::{ApiError, Object};

use crate::registry::objects::cached_object::{CachedObject, printed};
use crate::registry::objects::key::namespace_and_name;
use crate::registry::objects::kind_version::KindVersion;

/// Selectors that the kind can answer, compiled: an object costs what its own labels and the kind's selectable fields
/// cost, however many requirements there are.
#[derive(Clone, Debug, Default)]
pub(crate) struct Selection {
    labels: LabelMatcher,
    fields: FieldMatcher<Field>,
}

/// A field that a kind can be selected by.
#[derive(Clone, Debug)]
struct Field {
    place: Place,
    path: JsonPath,
}

/// Where a field is found in what the cache keeps of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Name,
    Namespace,
    /// The selectable field with this number.
    Declared(u16),
}

impl Field {
    /// The field that a kind declares under this name.
    fn of(version: &KindVersion, name: &str) -> Option<Self> {
        let metadata = |place, name| Field {
            place,
            path: JsonPath::new(["metadata", name]),
        };
        match name {
            "metadata.name" => Some(metadata(Place::Name, "name")),
            "metadata.namespace" if version.def.scope == Scope::Namespaced => {
                Some(metadata(Place::Namespace, "namespace"))
            }
            other => {
                let mut declared = (0..).zip(&version.def.selectable);
                let (number, path) = declared.find(|(_, path)| path.as_field() == other)?;
                Some(Field {
                    place: Place::Declared(number),
                    path: path.clone(),
                })
            }
        }
    }
}

impl Selection {
    /// Checks that the kind declares every field that is selected by.
    pub(crate) fn new(
        version: &KindVersion,
        labels: &LabelQuery,
        fields: &FieldSelector,
    ) -> Result<Self, ApiError> {
        let resolve = |name: &str| {
            Field::of(version, name)
                .ok_or_else(|| ApiError::bad_request(format!("field label not supported: {name}")))
        };
        Ok(Self {
            fields: FieldMatcher::new(fields, resolve)?,
            labels: LabelMatcher::new(labels),
        })
    }

    /// Leaves nothing out.
    pub(crate) fn everything() -> Self {
        Self::default()
    }

    /// Whether nothing is left out.
    pub(crate) fn is_everything(&self) -> bool {
        self.labels.is_everything() && self.fields.is_everything()
    }

    /// The one name that the selector allows, if it does.
    pub(crate) fn name(&self) -> Option<&str> {
        self.required(|place| (place == Place::Name).then_some(()))
            .map(|((), name)| name)
    }

    /// Whether nothing is selected by but what every version of an object has alike: its name, namespace and labels.
    pub(crate) fn is_of_metadata(&self) -> bool {
        let mut fields = self.fields.fields();
        fields.all(|field| matches!(field.place, Place::Name | Place::Namespace))
    }

    /// Whether an object of the cache is selected, when it is in the version that the selector is about, or the
    /// selector is of metadata alone.
    pub(crate) fn matches_cached(&self, key: &str, object: &CachedObject) -> bool {
        self.matches_fields(key, object, object.fields())
    }

    /// The same of an object in any version, with the values of its selectable fields in the version that the selector is
    /// about: labels are alike in all of them.
    pub(crate) fn matches_fields(
        &self,
        key: &str,
        object: &CachedObject,
        values: &[Box<str>],
    ) -> bool {
        self.labels.matches(object)
            && self.fields.matches(|field| {
                let (namespace, name) = namespace_and_name(key);
                Cow::Borrowed(match field.place {
                    Place::Name => name,
                    Place::Namespace => namespace,
                    Place::Declared(number) => values
                        .get(usize::from(number))
                        .map_or("", |value| value.as_ref()),
                })
            })
    }

    /// The number and the value of a selectable field that must have one value, which an index then finds.
    pub(crate) fn indexed(&self) -> Option<(u16, &str)> {
        self.required(|place| match place {
            Place::Declared(number) => Some(number),
            Place::Name | Place::Namespace => None,
        })
    }

    /// Whether an object, in the version that the selector is about, is selected.
    pub(crate) fn matches(&self, object: &Object) -> bool {
        self.labels.matches(object)
            && self
                .fields
                .matches(|field| field_value(object, &field.path))
    }

    /// The first field that must have one value and is found at a place of this sort, and the value.
    fn required<T>(&self, sort: impl Fn(Place) -> Option<T>) -> Option<(T, &str)> {
        let mut required = self.fields.required();
        required.find_map(|(field, value)| Some((sort(field.place)?, value)))
    }
}

/// A field as selectors compare it.
fn field_value<'a>(object: &'a Object, path: &JsonPath) -> Cow<'a, str> {
    printed(path.names().split_first().and_then(|(first, rest)| {
        let root = object.fields().get(first)?;
        rest.iter().try_fold(root, |value, name| value.get(name))
    }))
}
