//! Label and field selectors of a list, a watch or a deletecollection, validated against the kind.

use std::borrow::Cow;

use apiloom_meta::kind::Scope;
use apiloom_meta::path::JsonPath;
use apiloom_meta::selector::{FieldMatcher, FieldSelector, LabelMatcher, LabelQuery};
use apiloom_meta::{ApiError, Object};

use crate::objects::cached_object::CachedObject;
use crate::objects::field_finder::printed;
use crate::objects::key::namespace_and_name;
use crate::objects::kind_version::KindVersion;
use crate::objects::versioned_resource::VersionedResource;
use crate::options::{ListOptions, RequestContext};

/// Compiled selectors. The cost of matching an object depends on its labels and selectable fields, not on the number
/// of requirements.
#[derive(Clone, Debug, Default)]
pub(crate) struct Selection {
    labels: LabelMatcher,
    fields: FieldMatcher<Field>,
}

/// A field by which objects of a kind can be selected.
#[derive(Clone, Debug)]
struct Field {
    place: Place,
    /// The first of these that is not empty is the value.
    paths: Vec<JsonPath>,
}

/// Where the value of a field is stored in a cached object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Name,
    Namespace,
    /// The selectable field with this index.
    Declared(u16),
}

impl Field {
    /// The field with this name, if the kind declares it.
    fn of(version: &KindVersion, name: &str) -> Option<Self> {
        let metadata = |place, name| Field {
            place,
            paths: vec![JsonPath::new(["metadata", name])],
        };
        match name {
            "metadata.name" => Some(metadata(Place::Name, "name")),
            "metadata.namespace" if version.def.scope == Scope::Namespaced => {
                Some(metadata(Place::Namespace, "namespace"))
            }
            other => {
                let mut declared = (0..).zip(&version.def.selectable);
                let (number, field) = declared.find(|(_, field)| field.name == other)?;
                Some(Field {
                    place: Place::Declared(number),
                    paths: field.paths.clone(),
                })
            }
        }
    }
}

impl Selection {
    /// Compiles selectors; BadRequest if the kind does not declare a selected field.
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

    /// Compiles the selectors of a request.
    ///
    /// # Errors
    /// See [`Selection::new`].
    pub(crate) async fn of(
        resource: &VersionedResource,
        ctx: &RequestContext,
        options: &ListOptions,
    ) -> Result<Self, ApiError> {
        let (labels, fields) = (&options.label_selector, &options.field_selector);
        let compile = || Self::new(resource.version(), labels, fields);
        resource
            .read_query(ctx, text_bytes(labels, fields), compile)
            .await
    }

    /// The selection of all objects.
    pub(crate) fn everything() -> Self {
        Self::default()
    }

    /// Whether all objects are selected.
    pub(crate) fn is_everything(&self) -> bool {
        self.labels.is_everything() && self.fields.is_everything()
    }

    /// The name, if the field selector requires one.
    pub(crate) fn name(&self) -> Option<&str> {
        self.required(|place| (place == Place::Name).then_some(()))
            .map(|((), name)| name)
    }

    /// Whether only the name, the namespace and labels are selected by, which are equal in all versions of an object unless
    /// it is converted asynchronously.
    pub(crate) fn is_of_metadata(&self) -> bool {
        let mut fields = self.fields.fields();
        fields.all(|field| matches!(field.place, Place::Name | Place::Namespace))
    }

    /// Whether the name and the namespace of a key are selected; for selections by metadata.
    pub(crate) fn matches_key(&self, key: &str) -> bool {
        self.matches_places(key, &[])
    }

    /// Whether an object of the cache is selected. It must be in the version of the selectors, unless they select by
    /// metadata only.
    pub(crate) fn matches_cached(&self, key: &str, object: &CachedObject) -> bool {
        self.matches_fields(key, object, object.fields())
    }

    /// Whether an object of the cache, in any version, is selected; `fields` has its selectable fields in the version
    /// of the selectors. Labels are equal in all versions.
    pub(crate) fn matches_fields(
        &self,
        key: &str,
        object: &CachedObject,
        values: &[Box<str>],
    ) -> bool {
        self.labels.matches(object) && self.matches_places(key, values)
    }

    fn matches_places(&self, key: &str, values: &[Box<str>]) -> bool {
        self.fields.matches(|field| {
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

    /// Index and value of a selectable field that must be equal to one value, for a lookup in an index of the cache.
    pub(crate) fn indexed(&self) -> Option<(u16, &str)> {
        self.required(|place| match place {
            Place::Declared(number) => Some(number),
            Place::Name | Place::Namespace => None,
        })
    }

    /// Whether a decoded object, in the version of the selectors, is selected.
    pub(crate) fn matches(&self, object: &Object) -> bool {
        self.labels.matches(object)
            && self
                .fields
                .matches(|field| field_value(object, &field.paths))
    }

    /// The first field at a place that `sort` accepts and that must be equal to one value, with that value.
    fn required<T>(&self, sort: impl Fn(Place) -> Option<T>) -> Option<(T, &str)> {
        let mut required = self.fields.required();
        required.find_map(|(field, value)| Some((sort(field.place)?, value)))
    }
}

/// Approximate length of the text of the selectors, in bytes.
fn text_bytes(labels: &LabelQuery, fields: &FieldSelector) -> usize {
    // Length of an operator and a comma.
    const BETWEEN: usize = 2;
    let labels = labels.requirements().iter().map(|requirement| {
        let values = requirement.values().iter().map(|value| value.len() + 1);
        requirement.key().len() + BETWEEN + values.sum::<usize>()
    });
    let fields = fields.requirements().iter();
    let fields = fields.map(|term| term.field.len() + BETWEEN + term.value.len());
    labels.chain(fields).sum()
}

/// The value of a field as selectors compare it.
fn field_value<'a>(object: &'a Object, paths: &[JsonPath]) -> Cow<'a, str> {
    let mut values = paths
        .iter()
        .map(|path| printed(path.get_in(object.fields())));
    values.find(|text| !text.is_empty()).unwrap_or_default()
}
