//! Maps path and method of a request to a verb of a resource.
//!
//! Depends only on the definition of the kind. Paths without any method are not found (404); a method that the path
//! does not support is refused (405).

use apiloom_meta::kind::{Scope, SubresourceDef, Verb};
use apiloom_meta::{ApiError, ResourceDef};
use http::Method;

use crate::request::request_info::{RequestInfo, RequestVerb};
use crate::request::verb_form::{VerbPlace, form};
use crate::request::version_path::path_of_version;
use crate::shape::error::method_not_allowed;

/// The resource, object or subresource to which a path refers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape<'a> {
    /// The collection in which objects are created.
    Collection,
    /// All namespaces of a namespaced kind; read only.
    AllNamespaces,
    Item,
    Subresource(&'a str),
}

/// The verb of a request for this kind: that of the request info, for which it was authorized, if the path supports
/// it.
///
/// # Errors
/// NotFound if the kind has no such path, MethodNotAllowed if the path does not support the method.
pub(crate) fn route(
    def: &ResourceDef,
    method: &Method,
    info: &RequestInfo,
) -> Result<Verb, ApiError> {
    if info.verb == RequestVerb::Proxy && !def.dialect.routes_by_verb {
        // The prefix `proxy/` is parsed for authorization only; Kubernetes no longer serves it.
        return Err(ApiError::no_such_resource());
    }
    let shape = shape(def, info).ok_or_else(ApiError::no_such_resource)?;
    if def.dialect.routes_by_verb {
        return route_by_verb(def, method, info, shape);
    }
    let is_served = |verb: Verb| {
        if info.watch_prefix {
            is_watched(def, shape, verb)
        } else {
            is_served(def, shape, verb)
        }
    };
    if !Verb::ALL.into_iter().any(is_served) {
        return Err(ApiError::no_such_resource());
    }
    match info.verb {
        // A HEAD is authorized as a GET, but only custom resources serve it.
        RequestVerb::Api(verb) if *method == form(verb).method && is_served(verb) => Ok(verb),
        _ => Err(method_not_allowed()),
    }
}

/// The verb of a request for a kind without a route for each method: what the request info says is run, so a POST to the
/// path of an object creates one, and refusals name the verb.
fn route_by_verb(
    def: &ResourceDef,
    method: &Method,
    info: &RequestInfo,
    shape: Shape<'_>,
) -> Result<Verb, ApiError> {
    if let Shape::Subresource(name) = shape
        && def.subresource(name).is_none()
    {
        return Err(ApiError::no_such_resource());
    }
    // The paths of all namespaces are read only.
    let is_there =
        matches!(info.verb, RequestVerb::Api(verb) if form(verb).place == VerbPlace::AnyCollection);
    if shape == Shape::AllNamespaces && !is_there {
        return Err(ApiError::no_such_resource());
    }
    let unsupported = || ApiError::method_not_supported(&def.group_resource(), info.verb.as_str());
    let RequestVerb::Api(verb) = info.verb else {
        return Err(unsupported());
    };
    if info.watch_prefix {
        let is_get = *method == Method::GET || *method == Method::HEAD;
        let is_watched = is_get && is_watched(def, shape, verb);
        return is_watched.then_some(verb).ok_or_else(unsupported);
    }
    match (shape, verb) {
        (Shape::Collection, Verb::Update | Verb::Patch) => {
            Err(ApiError::bad_request("name must be provided"))
        }
        (Shape::Item, Verb::Create) if def.has_verb(verb) => Ok(verb),
        _ if is_served(def, shape, verb) => Ok(verb),
        _ => Err(unsupported()),
    }
}

/// Whether a path is that of all namespaces of a namespaced kind, or of a namespace of another.
pub(crate) fn is_out_of_scope(def: &ResourceDef, info: &RequestInfo) -> bool {
    info.in_namespace != (def.scope == Scope::Namespaced)
}

fn shape<'a>(def: &ResourceDef, info: &'a RequestInfo) -> Option<Shape<'a>> {
    let scope = def.scope;
    if connects(def, info) {
        let is_named = info.parts.iter().take(3).all(|part| !part.is_empty());
        let in_scope = info.in_namespace == (scope == Scope::Namespaced);
        return (is_named && in_scope && !(info.in_namespace && info.namespace.is_empty()))
            .then_some(Shape::Subresource(&info.parts[2]));
    }
    if info.parts.iter().any(String::is_empty) || (info.in_namespace && info.namespace.is_empty()) {
        return None;
    }
    let in_scope = info.in_namespace == (scope == Scope::Namespaced);
    match (info.parts.as_slice(), in_scope) {
        ([_], true) => Some(Shape::Collection),
        ([_], false) if scope == Scope::Namespaced => Some(Shape::AllNamespaces),
        ([_, _], true) => Some(Shape::Item),
        ([_, _, subresource], true) => Some(Shape::Subresource(subresource)),
        // What follows is ignored, as in kube-apiserver.
        ([_, _, subresource, ..], true) if def.dialect.ignores_path_tail => {
            Some(Shape::Subresource(subresource))
        }
        _ => None,
    }
}

/// Whether the path is that of a subresource with `connect`, or below it.
pub(crate) fn connects(def: &ResourceDef, info: &RequestInfo) -> bool {
    stream_of(def, info).is_some()
}

/// The subresource with `connect` whose path it is, or one below it.
pub(crate) fn stream_of<'a>(
    def: &'a ResourceDef,
    info: &RequestInfo,
) -> Option<&'a SubresourceDef> {
    let subresource = info.parts.get(2).and_then(|name| def.subresource(name));
    subresource.filter(|subresource| subresource.connects)
}

/// A path of a kind, with the verbs that it serves.
pub(crate) struct KindPath<'a> {
    pub(crate) path: String,
    /// Empty for the kind itself.
    pub(crate) subresource: &'a str,
    pub(crate) verbs: Vec<&'static str>,
}

/// The paths of a kind for which [`route`] finds verbs.
pub(crate) fn paths(def: &ResourceDef) -> Vec<KindPath<'_>> {
    let version = path_of_version(&def.group, &def.version);
    let in_scope = match def.scope {
        Scope::Namespaced => format!("namespaces/{{namespace}}/{}", def.plural),
        Scope::Cluster => def.plural.to_string(),
    };
    let all_namespaces = (Shape::AllNamespaces, def.plural.to_string());
    let all_namespaces = Some(all_namespaces).filter(|_| def.scope == Scope::Namespaced);
    let shapes = [
        (Shape::Collection, in_scope.clone()),
        (Shape::Item, format!("{in_scope}/{{name}}")),
    ];
    let shapes = all_namespaces.into_iter().chain(shapes);
    let subresources = def.subresources.iter().flat_map(|subresource| {
        let path = format!("{in_scope}/{{name}}/{}", subresource.name);
        let below = subresource.connects.then(|| format!("{path}/*"));
        let shape = Shape::Subresource(&subresource.name);
        [Some(path), below]
            .into_iter()
            .flatten()
            .map(move |path| (shape, path))
    });
    let paths = shapes.clone().chain(subresources).map(|(shape, path)| {
        // One of list and watch is refused by the handler of their path.
        let is_listed = |verb: &Verb| {
            let is_own = matches!(shape, Shape::Subresource(_)) || def.has_verb(*verb);
            is_own && is_served(def, shape, *verb)
        };
        KindPath {
            path: format!("{version}/{path}"),
            subresource: match shape {
                Shape::Subresource(name) => name,
                _ => "",
            },
            verbs: Verb::ALL
                .iter()
                .filter(|verb| is_listed(verb))
                .map(|verb| verb.as_str())
                .collect(),
        }
    });
    let watches = shapes.filter(|(shape, _)| is_watched(def, *shape, Verb::Watch));
    let watches = watches.map(|(_, path)| KindPath {
        path: format!("{version}/watch/{path}"),
        subresource: "",
        verbs: vec![Verb::Watch.as_str()],
    });
    let served = paths.filter(|path| !path.verbs.is_empty());
    served.chain(watches).collect()
}

fn is_served(def: &ResourceDef, shape: Shape<'_>, verb: Verb) -> bool {
    // List and watch share a path; the handler refuses the one that is not served.
    let has = match verb {
        Verb::List | Verb::Watch => def.has_verb(Verb::List) || def.has_verb(Verb::Watch),
        _ => def.has_verb(verb),
    };
    let place = form(verb).place;
    match shape {
        Shape::Collection => has && place != VerbPlace::Item,
        Shape::AllNamespaces => has && place == VerbPlace::AnyCollection,
        Shape::Item => has && place == VerbPlace::Item,
        Shape::Subresource(name) => {
            let subresource = def.subresource(name);
            subresource.is_some_and(|found| def.verbs_of(found).any(|served| served == verb))
        }
    }
}

/// Whether the deprecated prefix `watch/` is served.
fn is_watched(def: &ResourceDef, shape: Shape<'_>, verb: Verb) -> bool {
    verb == Verb::Watch && def.has_verb(verb) && !matches!(shape, Shape::Subresource(_))
}

#[cfg(test)]
mod tests {
    use apiloom_meta::kind::Dialect;

    use super::*;
    use crate::testing::{fischer, flunder, namespace};

    fn of(def: &ResourceDef, method: &str, url: &str) -> Result<Verb, ApiError> {
        let method: Method = method.parse().expect("a method");
        let info = RequestInfo::parse(&method, &url.parse().expect("a URL")).expect("resolves");
        route(def, &method, &info)
    }

    fn check(def: &ResourceDef, url: &str, expected: &[(&str, Verb)]) {
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

    const COLLECTION: &[(&str, Verb)] = &[
        ("GET", Verb::List),
        ("POST", Verb::Create),
        ("DELETE", Verb::DeleteCollection),
    ];
    const ITEM: &[(&str, Verb)] = &[
        ("GET", Verb::Get),
        ("PUT", Verb::Update),
        ("PATCH", Verb::Patch),
        ("DELETE", Verb::Delete),
    ];
    const STATUS: &[(&str, Verb)] = &[
        ("GET", Verb::Get),
        ("PUT", Verb::Update),
        ("PATCH", Verb::Patch),
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
    fn requests_for_custom_resources_go_by_the_verb_of_the_request_info() {
        const V1: &str = "/apis/wardle.example.com/v1alpha1";
        let mut def = flunder();
        def.dialect = Dialect::CUSTOM;
        let check = |method: &str, path: &str, expected: Result<Verb, ApiError>| {
            let got = of(&def, method, &format!("{V1}/{path}"));
            assert_eq!(got, expected, "{method} {path}");
        };
        let items = "namespaces/n/flunders";
        let item = "namespaces/n/flunders/a";
        let status = "namespaces/n/flunders/a/status";
        let unsupported =
            |verb: &str| Err(ApiError::method_not_supported(&def.group_resource(), verb));
        let unnamed = || Err(ApiError::bad_request("name must be provided"));
        check("HEAD", items, Ok(Verb::List));
        check("HEAD", item, Ok(Verb::Get));
        check("HEAD", status, Ok(Verb::Get));
        check("POST", item, Ok(Verb::Create));
        check("PUT", items, unnamed());
        check("PATCH", items, unnamed());
        for path in [items, item, status] {
            check("OPTIONS", path, unsupported(""));
        }
        check("GET", &format!("proxy/{item}"), unsupported("proxy"));
        check("POST", status, unsupported("create"));
        check("DELETE", status, unsupported("delete"));
        check("GET", &format!("{status}/more"), Ok(Verb::Get));
        check(
            "GET",
            &format!("{item}/nothing"),
            Err(ApiError::no_such_resource()),
        );
        check(
            "OPTIONS",
            &format!("{item}/nothing"),
            Err(ApiError::no_such_resource()),
        );
        for method in ["POST", "PUT", "DELETE", "OPTIONS"] {
            check(method, "flunders", Err(ApiError::no_such_resource()));
        }
        check("GET", "flunders/a", Err(ApiError::no_such_resource()));
        check("GET", &format!("watch/{items}"), Ok(Verb::Watch));
        check("POST", &format!("watch/{items}"), unsupported("watch"));
    }

    #[test]
    fn all_namespaces_can_only_be_read() {
        let def = flunder();
        check(
            &def,
            "/apis/wardle.example.com/v1alpha1/flunders",
            &[("GET", Verb::List)],
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
        def.verbs = Verb::DEFAULT.to_vec();
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
            &[("PUT", Verb::Update)],
        );
        check(&def, "/api/v1/namespaces/x/namespaces", &[]);
    }

    #[test]
    fn the_paths_of_a_kind_are_those_that_are_routed() {
        for def in [flunder(), fischer(), namespace()] {
            let paths = paths(&def);
            assert!(paths.len() > 3);
            for KindPath {
                path,
                verbs: mut listed,
                ..
            } in paths
            {
                let url = path.replace("{namespace}", "n").replace("{name}", "a");
                let methods = ["GET", "POST", "PUT", "PATCH", "DELETE"].into_iter();
                let verbs = methods.filter_map(|method| of(&def, method, &url).ok());
                let mut routed: Vec<&str> = verbs.map(Verb::as_str).collect();
                // Without a parameter a GET of a collection is a list.
                listed.retain(|verb| *verb != "watch" || url.contains("/watch/"));
                listed.sort_unstable();
                routed.sort_unstable();
                assert_eq!(routed, listed, "{url}");
            }
        }
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
        let watch: &[(&str, Verb)] = &[("GET", Verb::Watch)];
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
            &[("GET", Verb::List)],
        );
        check(
            &def,
            "/apis/wardle.example.com/v1alpha1/namespaces/n/flunders/a",
            &[("GET", Verb::Get)],
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
