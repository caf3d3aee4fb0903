//! From a path to an operation of a resource: which shapes of paths a kind has, and which methods each takes.
//!
//! Reads only what the kind declares. Paths without any method do not exist (404); a method that the path does not
//! take is refused (405).

use apiloom_meta::kind::{Scope, Verb};
use apiloom_meta::{ApiError, ResourceDef};
use http::Method;

use super::RequestInfo;
use super::error::method_not_allowed;
use super::metrics::RequestKind;

/// An operation of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    Create,
    Get,
    /// List, or watch when the query says so.
    ListOrWatch,
    /// Watch by the deprecated prefix.
    Watch,
    Update,
    Patch,
    Delete,
    DeleteCollection,
}

impl Operation {
    /// Whether it changes something.
    pub(super) fn kind(self) -> RequestKind {
        match self {
            Self::Get | Self::ListOrWatch | Self::Watch => RequestKind::ReadOnly,
            Self::Create | Self::Update | Self::Patch | Self::Delete | Self::DeleteCollection => {
                RequestKind::Mutating
            }
        }
    }
}

/// What a path names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape<'a> {
    /// The collection that objects are created in.
    Collection,
    /// All namespaces of a namespaced kind: can be read only.
    AllNamespaces,
    Item,
    Subresource(&'a str),
}

/// The operation of a request on this kind.
///
/// # Errors
/// NotFound when the kind has no such path, MethodNotAllowed when the path does not take the method.
pub(super) fn route(
    def: &ResourceDef,
    method: &Method,
    info: &RequestInfo,
) -> Result<Operation, ApiError> {
    if info.verb == "proxy" {
        // The prefix is understood for authorization only; nothing was ever served under it again.
        return Err(ApiError::no_such_resource());
    }
    let shape = shape(def.scope, info).ok_or_else(ApiError::no_such_resource)?;
    let methods = if info.watch_prefix {
        watch_methods(def, shape)
    } else {
        methods(def, shape)
    };
    if methods.is_empty() {
        return Err(ApiError::no_such_resource());
    }
    let found = methods.iter().find(|(allowed, _)| allowed == method);
    found
        .map(|(_, operation)| *operation)
        .ok_or_else(method_not_allowed)
}

fn shape(scope: Scope, info: &RequestInfo) -> Option<Shape<'_>> {
    if info.parts.iter().any(String::is_empty) || (info.in_namespace && info.namespace.is_empty()) {
        return None;
    }
    let in_scope = info.in_namespace == (scope == Scope::Namespaced);
    match (info.parts.as_slice(), in_scope) {
        ([_], true) => Some(Shape::Collection),
        ([_], false) if scope == Scope::Namespaced => Some(Shape::AllNamespaces),
        ([_, _], true) => Some(Shape::Item),
        ([_, _, subresource], true) => Some(Shape::Subresource(subresource)),
        _ => None,
    }
}

fn methods(def: &ResourceDef, shape: Shape<'_>) -> Vec<(Method, Operation)> {
    let has = |verb: Verb| def.has_verb(verb);
    let read =
        (has(Verb::List) || has(Verb::Watch)).then_some((Method::GET, Operation::ListOrWatch));
    let item = |verb: Verb| item_operation(verb).filter(|_| has(verb));
    match shape {
        Shape::AllNamespaces => read.into_iter().collect(),
        Shape::Collection => {
            let create = has(Verb::Create).then_some((Method::POST, Operation::Create));
            let delete = has(Verb::DeleteCollection)
                .then_some((Method::DELETE, Operation::DeleteCollection));
            [read, create, delete].into_iter().flatten().collect()
        }
        Shape::Item => Verb::ALL.into_iter().filter_map(item).collect(),
        Shape::Subresource(name) => {
            let subresource = def.subresource(name);
            let verbs = subresource.into_iter().flat_map(|sub| def.verbs_of(sub));
            verbs.filter_map(item_operation).collect()
        }
    }
}

fn item_operation(verb: Verb) -> Option<(Method, Operation)> {
    match verb {
        Verb::Get => Some((Method::GET, Operation::Get)),
        Verb::Update => Some((Method::PUT, Operation::Update)),
        Verb::Patch => Some((Method::PATCH, Operation::Patch)),
        Verb::Delete => Some((Method::DELETE, Operation::Delete)),
        Verb::Create | Verb::DeleteCollection | Verb::List | Verb::Watch => None,
    }
}

fn watch_methods(def: &ResourceDef, shape: Shape<'_>) -> Vec<(Method, Operation)> {
    let watchable = def.has_verb(Verb::Watch) && !matches!(shape, Shape::Subresource(_));
    watchable
        .then_some((Method::GET, Operation::Watch))
        .into_iter()
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::testing::{fischer, flunder, namespace};

    fn of(def: &ResourceDef, method: &str, url: &str) -> Result<Operation, ApiError> {
        let method: Method = method.parse().expect("a method");
        let info = RequestInfo::parse(&method, &url.parse().expect("a URL")).expect("resolves");
        route(def, &method, &info)
    }

    fn check(def: &ResourceDef, url: &str, expected: &[(&str, Operation)]) {
        for method in ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"] {
            let got = of(def, method, url);
            match expected.iter().find(|(m, _)| *m == method) {
                Some((_, operation)) => assert_eq!(got, Ok(*operation), "{method} {url}"),
                None if expected.is_empty() => {
                    assert_eq!(got, Err(ApiError::no_such_resource()), "{method} {url}");
                }
                None => assert_eq!(got, Err(method_not_allowed()), "{method} {url}"),
            }
        }
    }

    const COLLECTION: &[(&str, Operation)] = &[
        ("GET", Operation::ListOrWatch),
        ("POST", Operation::Create),
        ("DELETE", Operation::DeleteCollection),
    ];
    const ITEM: &[(&str, Operation)] = &[
        ("GET", Operation::Get),
        ("PUT", Operation::Update),
        ("PATCH", Operation::Patch),
        ("DELETE", Operation::Delete),
    ];
    const STATUS: &[(&str, Operation)] = &[
        ("GET", Operation::Get),
        ("PUT", Operation::Update),
        ("PATCH", Operation::Patch),
    ];

    #[test]
    fn a_namespaced_kind_is_reached_inside_a_namespace() {
        const V1: &str = "/apis/wardle.example.com/v1alpha1";
        let def = flunder();
        check(&def, &format!("{V1}/namespaces/n/flunders"), COLLECTION);
        check(&def, &format!("{V1}/namespaces/n/flunders/"), COLLECTION);
        check(&def, &format!("{V1}/namespaces/n/flunders/a"), ITEM);
        check(
            &def,
            &format!("{V1}/namespaces/n/flunders/a/status"),
            STATUS,
        );
        check(&def, &format!("{V1}/namespaces/n/flunders/a/nothing"), &[]);
        check(&def, &format!("{V1}/namespaces/n/flunders/a/status/x"), &[]);
    }

    #[test]
    fn all_namespaces_can_only_be_read() {
        let def = flunder();
        check(
            &def,
            "/apis/wardle.example.com/v1alpha1/flunders",
            &[("GET", Operation::ListOrWatch)],
        );
        check(&def, "/apis/wardle.example.com/v1alpha1/flunders/a", &[]);
        check(
            &def,
            "/apis/wardle.example.com/v1alpha1/flunders/a/status",
            &[],
        );
    }

    #[test]
    fn a_cluster_kind_is_reached_outside_of_namespaces() {
        let mut def = fischer();
        def.verbs = Verb::ALL.to_vec();
        check(
            &def,
            "/apis/wardle.example.com/v1alpha1/fischers",
            COLLECTION,
        );
        check(&def, "/apis/wardle.example.com/v1alpha1/fischers/a", ITEM);
        check(
            &def,
            "/apis/wardle.example.com/v1alpha1/namespaces/n/fischers",
            &[],
        );
        check(
            &def,
            "/apis/wardle.example.com/v1alpha1/namespaces/n/fischers/a",
            &[],
        );
    }

    #[test]
    fn namespaces_have_two_subresources() {
        let def = namespace();
        check(&def, "/api/v1/namespaces/x/status", STATUS);
        check(
            &def,
            "/api/v1/namespaces/x/finalize",
            &[("PUT", Operation::Update)],
        );
        check(&def, "/api/v1/namespaces/x/namespaces", &[]);
    }

    #[test]
    fn an_empty_segment_makes_an_unknown_path() {
        let def = flunder();
        check(
            &def,
            "/apis/wardle.example.com/v1alpha1/namespaces//flunders",
            &[],
        );
        check(
            &def,
            "/apis/wardle.example.com/v1alpha1/namespaces/n/flunders//status",
            &[],
        );
    }

    #[test]
    fn the_watch_prefix_takes_get_on_collections_and_items() {
        let def = flunder();
        let watch: &[(&str, Operation)] = &[("GET", Operation::Watch)];
        check(
            &def,
            "/apis/wardle.example.com/v1alpha1/watch/flunders",
            watch,
        );
        check(
            &def,
            "/apis/wardle.example.com/v1alpha1/watch/namespaces/n/flunders",
            watch,
        );
        check(
            &def,
            "/apis/wardle.example.com/v1alpha1/watch/namespaces/n/flunders/a",
            watch,
        );
        check(
            &def,
            "/apis/wardle.example.com/v1alpha1/watch/namespaces/n/flunders/a/status",
            &[],
        );
    }

    #[test]
    fn a_path_takes_only_declared_verbs() {
        let mut def = flunder();
        def.verbs = vec![Verb::Get, Verb::List];
        def.subresources.clear();
        check(
            &def,
            "/apis/wardle.example.com/v1alpha1/namespaces/n/flunders",
            &[("GET", Operation::ListOrWatch)],
        );
        check(
            &def,
            "/apis/wardle.example.com/v1alpha1/namespaces/n/flunders/a",
            &[("GET", Operation::Get)],
        );
        check(
            &def,
            "/apis/wardle.example.com/v1alpha1/namespaces/n/flunders/a/status",
            &[],
        );
        check(
            &def,
            "/apis/wardle.example.com/v1alpha1/watch/flunders",
            &[],
        );
    }
}
