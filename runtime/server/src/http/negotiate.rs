//! Which representation a client gets: media type, conversion (`as=Table` ...) and pretty-printing.
//!
//! Two layers look at `Accept`, as in kube-apiserver: the router, which knows bare types only, and the handler, which
//! knows parameters. They refuse with different texts.

use apiloom_meta::codec::Format;
use apiloom_meta::{ApiError, StatusDetails, StatusReason};
use http::HeaderMap;
use http::header::USER_AGENT;

use super::accept::{Accepts, Clause};
use super::query::Query;

/// What the router says is available; the stream form is never matched by a bare type but is listed.
const AVAILABLE: &str = "application/json, application/yaml, application/json;stream=watch";
/// What a handler accepts and produces.
pub(super) const MEDIA_TYPES: &str = "application/json, application/yaml";
/// What a watch produces.
const STREAM_TYPES: &str = "application/json;stream=watch";

/// Registered formats in the order in which they are tried.
const FORMATS: [(Format, &str); 2] = [
    (Format::Json, "application/json"),
    (Format::Yaml, "application/yaml"),
];

/// The version of `meta.k8s.io` that a client wants its Tables or PartialObjectMetadata in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MetaVersion {
    V1,
    V1beta1,
}

impl MetaVersion {
    /// The `apiVersion` of what is written.
    pub(super) fn api_version(self) -> &'static str {
        match self {
            Self::V1 => "meta.k8s.io/v1",
            Self::V1beta1 => "meta.k8s.io/v1beta1",
        }
    }
}

/// What objects are turned into on their way out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// Nothing: they are sent as they are.
    Object,
    /// `as=Table`.
    Table(MetaVersion),
    /// `as=PartialObjectMetadata`.
    Partial(MetaVersion),
    /// `as=PartialObjectMetadataList`.
    PartialList(MetaVersion),
}

/// The representation agreed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Accepted {
    pub(super) format: Format,
    pub(super) target: Target,
    pub(super) pretty: bool,
}

/// Which clauses may win.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Offer {
    /// Objects: every conversion.
    Objects,
    /// Errors: no conversion.
    Errors,
}

/// The representation of an object or a list.
///
/// # Errors
/// NotAcceptable.
pub(super) fn negotiate(accepts: &Accepts<'_>, query: &Query) -> Result<Accepted, ApiError> {
    choose(accepts, query, Offer::Objects).ok_or_else(|| not_acceptable(MEDIA_TYPES))
}

/// The representation of a watch.
///
/// # Errors
/// NotAcceptable, also for YAML, which has no stream form.
pub(super) fn negotiate_stream(accepts: &Accepts<'_>, query: &Query) -> Result<Accepted, ApiError> {
    match negotiate(accepts, query)? {
        Accepted {
            format: Format::Yaml,
            ..
        } => Err(not_acceptable(STREAM_TYPES)),
        json => Ok(Accepted {
            pretty: false,
            ..json
        }),
    }
}

/// The representation of an error; `None` when nothing offered suits, and it is then written as indented JSON.
pub(super) fn negotiate_error(accepts: &Accepts<'_>, query: &Query) -> Option<Accepted> {
    choose(accepts, query, Offer::Errors)
}

/// The router's look at `Accept`: some clause must name a produced type exactly, or be `*/*`.
///
/// # Errors
/// NotAcceptable with the router's text.
pub(super) fn check_route(accepts: &Accepts<'_>) -> Result<(), ApiError> {
    let exact = |clause: &Clause<'_>| match (&*clause.main, &*clause.sub) {
        ("*", "*") => true,
        (main, sub) => FORMATS
            .iter()
            .any(|(_, name)| name.split_once('/') == Some((main, sub))),
    };
    if accepts.clauses().iter().any(exact) {
        return Ok(());
    }
    let message = format!("406: Not Acceptable\n\nAvailable representations: {AVAILABLE}");
    Err(ApiError::new(StatusReason::NotAcceptable, message).with_details(StatusDetails::default()))
}

fn not_acceptable(types: &str) -> ApiError {
    let message = format!("only the following media types are accepted: {types}");
    ApiError::new(StatusReason::NotAcceptable, message)
}

fn choose(accepts: &Accepts<'_>, query: &Query, offer: Offer) -> Option<Accepted> {
    let (clause, format, target) = accepts.clauses().iter().find_map(|clause| {
        let (format, _) = FORMATS
            .iter()
            .find(|(format, name)| clause.matches(name) && is_acceptable(clause, *format, offer))?;
        Some((clause, *format, target_of(clause)?))
    })?;
    let pretty = clause.param("pretty") == Some("1") || wants_pretty(accepts.headers(), query);
    Some(Accepted {
        format,
        target,
        pretty,
    })
}

fn is_acceptable(clause: &Clause<'_>, format: Format, offer: Offer) -> bool {
    let streams = format == Format::Json && offer == Offer::Objects;
    let stream_fits = match clause.param("stream").unwrap_or_default() {
        "" => true,
        stream => stream == "watch" && streams,
    };
    let server_version_fits = match clause.param("sv").unwrap_or_default() {
        "" => true,
        version => version == "v1" && offer == Offer::Objects,
    };
    let converts_to = target_of(clause);
    let conversion_fits =
        converts_to == Some(Target::Object) || (converts_to.is_some() && offer == Offer::Objects);
    stream_fits && server_version_fits && conversion_fits
}

/// What a clause asks to convert to; `None` for a conversion that does not exist.
fn target_of(clause: &Clause<'_>) -> Option<Target> {
    let [kind, group, version] = ["as", "g", "v"].map(|name| clause.param(name));
    if kind.is_none() && group.is_none() && version.is_none() {
        return Some(Target::Object);
    }
    let version = match (group?, version?) {
        ("meta.k8s.io", "v1") => MetaVersion::V1,
        ("meta.k8s.io", "v1beta1") => MetaVersion::V1beta1,
        _ => return None,
    };
    match kind? {
        "Table" => Some(Target::Table(version)),
        "PartialObjectMetadata" => Some(Target::Partial(version)),
        "PartialObjectMetadataList" => Some(Target::PartialList(version)),
        _ => None,
    }
}

/// The query decides; when it is silent, people with a browser or a download tool get indented JSON.
pub(super) fn wants_pretty(headers: &HeaderMap, query: &Query) -> bool {
    let asked = query.text("pretty");
    if !asked.is_empty() {
        return matches!(asked, "1" | "t" | "T" | "true" | "TRUE" | "True");
    }
    let agent = headers
        .get(USER_AGENT)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    ["curl", "Wget", "Mozilla/5.0"]
        .iter()
        .any(|prefix| agent.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use http::request::Parts;

    use super::*;
    use crate::http::testing;

    const JSON: Accepted = Accepted {
        format: Format::Json,
        target: Target::Object,
        pretty: false,
    };
    const YAML: Accepted = Accepted {
        format: Format::Yaml,
        target: Target::Object,
        pretty: false,
    };

    fn as_target(target: Target) -> Accepted {
        Accepted { target, ..JSON }
    }

    fn parts(accept: &str) -> Parts {
        testing::get("/x", &[("accept", accept)])
    }

    #[test]
    fn the_best_clause_that_is_offered_wins() {
        let check = |accept: &str, expected: Accepted| {
            let got = negotiate(&Accepts::new(&parts(accept).headers), &Query::default());
            assert_eq!(got, Ok(expected), "{accept}");
        };
        check("", JSON);
        check("*/*", JSON);
        check("application/*", JSON);
        check("application/yaml", YAML);
        check("application/json;q=0.5,application/yaml", YAML);
        check("application/vnd.kubernetes.protobuf,application/json", JSON);
        check("application/json;stream=watch", JSON);
        check("application/json;charset=utf-8", JSON);
        check("application/json;sv=v1", JSON);
        check(
            "application/json;pretty=1",
            Accepted {
                pretty: true,
                ..JSON
            },
        );
        check(
            "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
            as_target(Target::Table(MetaVersion::V1)),
        );
        check(
            "application/json;as=Table;v=v1beta1;g=meta.k8s.io",
            as_target(Target::Table(MetaVersion::V1beta1)),
        );
        check(
            "application/json;as=Table;v=v2;g=meta.k8s.io,application/json",
            JSON,
        );
        check("application/json;as=Table,application/json", JSON);
        check("application/json;v=v1,application/yaml", YAML);
        check(
            "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
            as_target(Target::PartialList(MetaVersion::V1)),
        );
    }

    #[test]
    fn nothing_acceptable_names_what_is() {
        let check = |accept: &str| {
            let error = negotiate(&Accepts::new(&parts(accept).headers), &Query::default())
                .expect_err(accept);
            assert_eq!(
                error.message,
                "only the following media types are accepted: application/json, application/yaml"
            );
            assert_eq!(
                (error.reason, error.details),
                (Some(StatusReason::NotAcceptable), None)
            );
        };
        check("application/vnd.kubernetes.protobuf");
        check("application/json;as=Table");
        check("application/yaml;stream=watch");
        check("application/json;stream=other");
        check("text/html");
    }

    #[test]
    fn a_watch_has_no_yaml_form() {
        let error = negotiate_stream(
            &Accepts::new(&parts("application/yaml").headers),
            &Query::default(),
        )
        .expect_err("refused");
        assert_eq!(
            error.message,
            "only the following media types are accepted: application/json;stream=watch"
        );
        let pretty = negotiate_stream(
            &Accepts::new(&parts("application/json").headers),
            &Query::parse("pretty=1"),
        );
        assert_eq!(pretty, Ok(JSON));
    }

    #[test]
    fn errors_are_never_converted() {
        let check = |accept: &str, expected: Option<Accepted>| {
            assert_eq!(
                negotiate_error(&Accepts::new(&parts(accept).headers), &Query::default()),
                expected,
                "{accept}"
            );
        };
        check(
            "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
            Some(JSON),
        );
        check("application/json;as=Table;v=v1;g=meta.k8s.io", None);
        check("application/json;stream=watch", None);
        check("application/yaml", Some(YAML));
        check("text/html", None);
    }

    #[test]
    fn the_router_compares_bare_types() {
        let accepts = |accept: &str| check_route(&Accepts::new(&parts(accept).headers));
        for fine in [
            "",
            "*/*",
            "application/json;as=Table",
            "text/html,*/*;q=0.1",
            "application/yaml",
        ] {
            assert_eq!(accepts(fine), Ok(()), "{fine}");
        }
        for refused in [
            "application/*",
            "text/html",
            "application/vnd.kubernetes.protobuf",
        ] {
            let error = accepts(refused).expect_err(refused);
            assert_eq!(
                error.message,
                "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, application/json;stream=watch"
            );
            assert_eq!(error.details, Some(Box::default()));
        }
    }

    #[test]
    fn people_get_indented_json_unless_they_say_otherwise() {
        let check = |agent: &str, query: &str, expected: bool| {
            let request = testing::get("/x", &[("user-agent", agent)]);
            let got =
                negotiate(&Accepts::new(&request.headers), &Query::parse(query)).map(|a| a.pretty);
            assert_eq!(got, Ok(expected), "{agent} {query}");
        };
        check("kubectl/v1.36.0", "", false);
        check("curl/8.0", "", true);
        check("Wget/1.2", "", true);
        check("Mozilla/5.0 (X11)", "", true);
        check("curl/8.0", "pretty=false", false);
        check("curl/8.0", "pretty=maybe", false);
        check("kubectl/v1.36.0", "pretty=True", true);
        check("kubectl/v1.36.0", "pretty=yes", false);
    }
}
