//! How the verbs of a kind are told in HTTP and in metrics, one row each. The router, OpenAPI, the attributes of a request and the
//! metrics ask the rows, so that a further verb is a further row and its handler (`verbs`).

use apiloom_meta::kind::Verb;
use http::Method;

/// The paths of a kind on which a verb is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VerbPlace {
    /// The collection in which objects are created: for a kind in namespaces, that of a namespace.
    Collection,
    /// Also the collection of all namespaces.
    AnyCollection,
    /// An object.
    Item,
}

/// The form of a verb.
pub(crate) struct VerbForm {
    /// The method of its requests.
    pub(crate) method: Method,
    /// The paths on which it is served.
    pub(crate) place: VerbPlace,
    /// The boolean parameter that tells it from another verb of its method and place, with a description; `None` for the one
    /// without a parameter.
    pub(crate) parameter: Option<(&'static str, &'static str)>,
    /// The label in metrics.
    pub(crate) label: &'static str,
}

/// The form of a verb. A flat table.
pub(crate) fn form(verb: Verb) -> VerbForm {
    use VerbPlace::{AnyCollection, Collection, Item};
    let (method, place, label) = match verb {
        Verb::Create => (Method::POST, Collection, "POST"),
        Verb::Delete => (Method::DELETE, Item, "DELETE"),
        Verb::DeleteCollection => (Method::DELETE, Collection, "DELETECOLLECTION"),
        Verb::Get => (Method::GET, Item, "GET"),
        Verb::List => (Method::GET, AnyCollection, "LIST"),
        Verb::Patch => (Method::PATCH, Item, "PATCH"),
        Verb::Update => (Method::PUT, Item, "PUT"),
        Verb::Watch => (Method::GET, AnyCollection, "WATCH"),
    };
    let parameter = match verb {
        Verb::Watch => Some((
            "watch",
            "Send changes as a stream of events instead of a list.",
        )),
        _ => None,
    };
    VerbForm {
        method,
        place,
        parameter,
        label,
    }
}

impl VerbForm {
    /// Whether requests have selectors.
    pub(crate) fn has_selectors(&self) -> bool {
        self.place != VerbPlace::Item && self.method != Method::POST
    }
}
