//! How values are judged, where Kubernetes validates compiled kinds and custom resources differently. The walk over values
//! and schema is one: `validate.rs`.

use serde_json::Value;

use super::node::{Node, Rules};
use crate::field::FieldError;

/// The answers to all questions that the validations of compiled kinds and of custom resources answer differently.
#[derive(Debug)]
pub(crate) struct ValidationDialect {
    /// The errors of a document, or of an update of the second one.
    pub(crate) validate: fn(&Node, &Value, Option<&Value>) -> Vec<FieldError>,
    /// The errors of an update that changes one field of an object.
    pub(crate) validate_field: fn(&Node, &str, &Value, &Value) -> Vec<FieldError>,

    /// Whether an `enum` has a value.
    pub(super) is_in_enum: fn(&Rules, &Value) -> bool,
    /// The problems of a text in a format, the parameters in this order; none for formats without validation.
    pub(super) format_problems: fn(&str, &str) -> Vec<String>,

    /// Whether texts are those of kube-openapi, most of which begin with the name of the field; otherwise those of `field.Error`.
    pub(super) has_openapi_texts: bool,
    /// Whether values, rules and errors come in the order of kube-openapi's validators: alternatives, the value itself, its
    /// `enum`, its fields, fields that are missing. Otherwise in the order of the schema, and alternatives last.
    pub(super) is_in_openapi_order: bool,
    /// Whether a value of a wrong type, and a list or map that is too long, has only this error; otherwise its other errors
    /// are reported too.
    pub(super) stops_early: bool,
    /// Whether only the first of a text's errors of length and pattern is reported (`StringValidator` of kube-openapi).
    pub(super) reports_first_of_text: bool,
    /// Whether a null is a value, which has to have the type and be in the `enum`; otherwise it means absent.
    pub(super) judges_nulls: bool,
    /// Whether typed values are left out: the metadata of custom resources is validated elsewhere.
    pub(super) leaves_typed: bool,
    /// Whether a list is no error where a text with a format is wanted: kube-openapi leaves it to the check of the format,
    /// which looks at texts alone.
    pub(super) leaves_lists_to_formats: bool,
    /// Whether numbers have types of Go: they must be in the range of the type, limits of an integer are integers too, and
    /// `1.0` is an integer. Otherwise they are compared exactly, and formats have bounds.
    pub(super) has_go_numbers: bool,
    /// Whether the errors of a value that an update does not change are tolerated after it was judged, as by ratcheting
    /// (`KEP-4008`), but not those of the type of an object. Otherwise a value that is equal
    /// to the old one is not judged.
    pub(super) tolerates_unchanged: bool,
    /// Whether the alternative that matches most rules is reported if none is valid, after an error without a path
    /// (`SchemaPropsValidator` of kube-openapi). Otherwise that which the value means, by its tag or its type.
    pub(super) reports_best_branch: bool,
    /// Whether identities of list items and types of embedded objects are judged in passes of their own, after all values.
    pub(super) has_passes: bool,
    /// Whether the keys of a map are joined to its path by a dot, also if that is empty; otherwise they are in brackets.
    pub(super) dots_entries: bool,
}
