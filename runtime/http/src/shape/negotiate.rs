//! Content negotiation: the form and format of a response, decided once per request. The framing depends on the verb.
//!
//! As in kube-apiserver, `Accept` is checked in two layers: by the router, which compares types without parameters,
//! and by the handler, which uses the parameters. Their errors have different texts.

use apiloom_meta::{ApiError, StatusDetails, StatusReason};
use http::HeaderMap;
use http::header::USER_AGENT;

use super::form::Form;
use super::format::{self, StreamWriter, Writer};
use crate::request::accept::{Accepts, Clause};
use crate::request::params::include_object;
use crate::request::query::Query;

/// The negotiated form and format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) form: Form,
    pub(crate) format: &'static dyn Writer,
}

impl Default for Answer {
    /// An object as indented JSON.
    fn default() -> Self {
        Self {
            form: Form::Object,
            format: &format::INDENTED,
        }
    }
}

impl Answer {
    /// Negotiates the response for objects. Kinds without a store have no Tables, as in kube-apiserver, and those without
    /// a Protobuf message only their metadata in Protobuf.
    ///
    /// # Errors
    /// NotAcceptable; BadRequest for an invalid `includeObject`.
    pub(crate) fn negotiate(
        accepts: &Accepts<'_>,
        query: &Query,
        has_tables: bool,
        has_message: bool,
    ) -> Result<Self, ApiError> {
        let is_offered = |form: Form, writer: &dyn Writer| match form {
            Form::Table(..) => has_tables && writer.has_tables(),
            Form::Object => has_message || !writer.needs_message(),
            Form::Partial(_) | Form::PartialList(_) => true,
        };
        let chosen = choose(accepts, query, |clause, writer| {
            let stream = clause.param("stream").unwrap_or_default();
            let stream_fits = stream.is_empty() || (stream == "watch" && writer.stream().is_some());
            let server_version = clause.param("sv").unwrap_or_default();
            let server_version_fits = matches!(server_version, "" | "v1");
            Form::of(clause)
                .filter(|form| stream_fits && server_version_fits && is_offered(*form, writer))
        });
        let (format, mut form) = chosen.ok_or_else(not_acceptable)?;
        if let Form::Table(_, include) = &mut form {
            // Checked before the request is executed, so that an invalid value has no effect.
            *include = include_object(query)?;
        }
        Ok(Self { form, format })
    }

    /// The writer of watch events.
    ///
    /// # Errors
    /// NotAcceptable for a format without streams.
    pub(crate) fn stream(&self) -> Result<&'static dyn StreamWriter, ApiError> {
        let none = || only_these(format::stream_types());
        self.format.stream().ok_or_else(none)
    }
}

/// The format of an error response, which is always a Status; indented JSON if no accepted format is available, so
/// that the error is not hidden.
pub(crate) fn negotiate_error(accepts: &Accepts<'_>, query: &Query) -> &'static dyn Writer {
    let chosen = choose(accepts, query, |clause, _| {
        let is_plain = |name| clause.param(name).unwrap_or_default().is_empty();
        let fits = is_plain("stream") && is_plain("sv") && Form::of(clause) == Some(Form::Object);
        fits.then_some(())
    });
    chosen.map_or(&format::INDENTED, |(format, ())| format)
}

/// The router's check of `Accept`: a clause must have an offered type exactly, or be `*/*`. `streams` are the types that
/// the route offers for watches, which only the error names.
///
/// # Errors
/// NotAcceptable with the text of kube-apiserver's router.
pub(crate) fn check_route(
    accepts: &Accepts<'_>,
    streams: impl Iterator<Item = &'static str>,
) -> Result<(), ApiError> {
    let exact = |clause: &Clause<'_>| match (&*clause.main, &*clause.sub) {
        ("*", "*") => true,
        (main, sub) => format::media_types().any(|name| name.split_once('/') == Some((main, sub))),
    };
    if accepts.clauses().iter().any(exact) {
        return Ok(());
    }
    let available = format::listed(format::media_types().chain(streams));
    let message = format!("406: Not Acceptable\n\nAvailable representations: {available}");
    Err(ApiError::new(StatusReason::NotAcceptable, message).with_details(StatusDetails::default()))
}

/// The error for a request that accepts none of the formats.
pub(crate) fn not_acceptable() -> ApiError {
    only_these(format::media_types())
}

fn only_these(types: impl Iterator<Item = &'static str>) -> ApiError {
    let types = format::listed(types);
    let message = format!("only the following media types are accepted: {types}");
    ApiError::new(StatusReason::NotAcceptable, message)
}

/// The first match of a clause and a format, by clause first; `fits` decides whether they match.
pub(crate) fn choose<T>(
    accepts: &Accepts<'_>,
    query: &Query,
    fits: impl Fn(&Clause<'_>, &dyn Writer) -> Option<T>,
) -> Option<(&'static dyn Writer, T)> {
    accepts.clauses().iter().find_map(|clause| {
        let (writer, fit) = format::writers()
            .filter(|writer| clause.matches(writer.media_type()))
            .find_map(|writer| Some((writer, fits(clause, writer)?)))?;
        let pretty = clause.param("pretty") == Some("1") || wants_pretty(accepts.headers(), query);
        let writer = if pretty { writer.indented() } else { writer };
        Some((writer, fit))
    })
}

/// Whether JSON is indented: as the query says, else for browsers and download tools.
fn wants_pretty(headers: &HeaderMap, query: &Query) -> bool {
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
    use crate::request::params::IncludeObject;
    use crate::shape::form::MetaVersion;
    use crate::testing;

    const JSON: (&str, Form) = ("json", Form::Object);
    const YAML: (&str, Form) = ("yaml", Form::Object);

    fn as_form(form: Form) -> (&'static str, Form) {
        ("json", form)
    }

    fn negotiate(accepts: &Accepts<'_>, query: &Query) -> Result<(&'static str, Form), ApiError> {
        let answer = Answer::negotiate(accepts, query, true, false)?;
        Ok((answer.format.name(), answer.form))
    }

    fn parts(accept: &str) -> Parts {
        testing::get("/x", &[("accept", accept)])
    }

    #[test]
    fn the_best_clause_that_is_offered_wins() {
        let check = |accept: &str, expected: (&str, Form)| {
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
        check("application/json;pretty=1", ("indented json", Form::Object));
        check(
            "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
            as_form(Form::Table(MetaVersion::V1, IncludeObject::Metadata)),
        );
        check(
            "application/json;as=Table;v=v1beta1;g=meta.k8s.io",
            as_form(Form::Table(MetaVersion::V1beta1, IncludeObject::Metadata)),
        );
        check(
            "application/json;as=Table;v=v2;g=meta.k8s.io,application/json",
            JSON,
        );
        check("application/json;as=Table,application/json", JSON);
        check("application/json;v=v1,application/yaml", YAML);
        check(
            "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
            ("protobuf", Form::PartialList(MetaVersion::V1)),
        );
        // Protobuf has no Tables.
        check(
            "application/vnd.kubernetes.protobuf;as=Table;g=meta.k8s.io;v=v1,application/json;as=Table;g=meta.k8s.io;v=v1beta1",
            as_form(Form::Table(MetaVersion::V1beta1, IncludeObject::Metadata)),
        );
    }

    #[test]
    fn objects_have_protobuf_if_it_is_described() {
        let accept = "application/vnd.kubernetes.protobuf,application/json";
        let parts = parts(accept);
        let accepts = Accepts::new(&parts.headers);
        let name = |has_message| {
            let answer = Answer::negotiate(&accepts, &Query::default(), true, has_message);
            answer.map(|answer| answer.format.name())
        };
        assert_eq!(name(true), Ok("protobuf"));
        assert_eq!(name(false), Ok("json"));
    }

    #[test]
    fn nothing_acceptable_names_what_is() {
        let check = |accept: &str| {
            let error = negotiate(&Accepts::new(&parts(accept).headers), &Query::default())
                .expect_err(accept);
            assert_eq!(
                error.message,
                "only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf"
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
        let stream = |accept: &str| {
            let parts = parts(accept);
            let accepts = Accepts::new(&parts.headers);
            let query = Query::parse("pretty=1");
            let answer = Answer::negotiate(&accepts, &query, true, true)?;
            answer.stream().map(StreamWriter::media_type)
        };
        let error = stream("application/yaml").expect_err("refused");
        assert_eq!(
            error.message,
            "only the following media types are accepted: application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"
        );
        assert_eq!(stream("application/json"), Ok("application/json"));
    }

    #[test]
    fn errors_are_never_converted() {
        let check = |accept: &str, expected: &str| {
            let parts = parts(accept);
            let format = negotiate_error(&Accepts::new(&parts.headers), &Query::default());
            assert_eq!(format.name(), expected, "{accept}");
        };
        check(
            "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
            "json",
        );
        check(
            "application/json;as=Table;v=v1;g=meta.k8s.io",
            "indented json",
        );
        check("application/json;stream=watch", "indented json");
        check("application/yaml", "yaml");
        check("application/vnd.kubernetes.protobuf", "protobuf");
        check("text/html", "indented json");
    }

    #[test]
    fn the_router_compares_bare_types() {
        let accepts = |accept: &str| {
            check_route(
                &Accepts::new(&parts(accept).headers),
                format::stream_types(),
            )
        };
        for fine in [
            "",
            "*/*",
            "application/json;as=Table",
            "text/html,*/*;q=0.1",
            "application/yaml",
            "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata",
        ] {
            assert_eq!(accepts(fine), Ok(()), "{fine}");
        }
        for refused in ["application/*", "text/html"] {
            let error = accepts(refused).expect_err(refused);
            assert_eq!(
                error.message,
                "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, application/vnd.kubernetes.protobuf, application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"
            );
            assert_eq!(error.details, Some(Box::default()));
        }
        let one = parts("text/html");
        let error =
            check_route(&Accepts::new(&one.headers), std::iter::empty()).expect_err("one object");
        assert_eq!(
            error.message,
            "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, application/vnd.kubernetes.protobuf"
        );
    }

    #[test]
    fn people_get_indented_json_unless_they_say_otherwise() {
        let check = |agent: &str, query: &str, expected: bool| {
            let request = testing::get("/x", &[("user-agent", agent)]);
            let got = negotiate(&Accepts::new(&request.headers), &Query::parse(query));
            let expected = if expected { "indented json" } else { "json" };
            assert_eq!(got, Ok((expected, Form::Object)), "{agent} {query}");
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
