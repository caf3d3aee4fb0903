//! The `Accept` header, parsed to clauses in order of preference. Independent of the offered media types: callers
//! match the clauses against them.

use std::borrow::Cow;
use std::sync::OnceLock;

use http::HeaderMap;
use http::header::ACCEPT;

/// One clause: `application/json;g=meta.k8s.io;v=v1;as=Table;q=0.5`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Clause<'a> {
    /// Main type, in lower case.
    pub(crate) main: Cow<'a, str>,
    /// Subtype, in lower case.
    pub(crate) sub: Cow<'a, str>,
    /// Parameters without `q`; names in lower case, values as sent.
    pub(crate) params: Vec<(Cow<'a, str>, &'a str)>,
    quality: f32,
}

impl<'a> Clause<'a> {
    /// Whether the clause covers this media type; `*/*` and `main/*` are supported.
    pub(crate) fn matches(&self, media_type: &str) -> bool {
        let (main, sub) = media_type.split_once('/').unwrap_or((media_type, ""));
        (self.main == "*" && self.sub == "*")
            || (self.main == main && (self.sub == "*" || self.sub == sub))
    }

    /// The value of a parameter.
    pub(crate) fn param(&self, name: &str) -> Option<&str> {
        self.params
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| *value)
    }

    fn parse(text: &'a str) -> Option<Self> {
        let mut parts = text.split(';').map(str::trim);
        let (main, sub) = parts.next()?.split_once('/')?;
        let mut clause = Self {
            main: lower_case(main.trim()),
            sub: lower_case(sub.trim()),
            params: Vec::new(),
            quality: 1.0,
        };
        for part in parts {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            let (name, value) = (lower_case(name.trim()), value.trim().trim_matches('"'));
            if name == "q" {
                clause.quality = value
                    .parse()
                    .ok()
                    .filter(|q: &f32| q.is_finite())
                    .unwrap_or(1.0);
            } else if !name.is_empty() {
                clause.params.push((name, value));
            }
        }
        (!clause.main.is_empty() && !clause.sub.is_empty()).then_some(clause)
    }
}

fn lower_case(text: &str) -> Cow<'_, str> {
    if text.bytes().any(|byte| byte.is_ascii_uppercase()) {
        Cow::Owned(text.to_ascii_lowercase())
    } else {
        Cow::Borrowed(text)
    }
}

/// The media types that a request accepts; parsed once, when first needed.
#[derive(Debug)]
pub struct Accepts<'a> {
    headers: &'a HeaderMap,
    clauses: OnceLock<Vec<Clause<'a>>>,
}

impl<'a> Accepts<'a> {
    /// The media types that these headers accept.
    pub fn new(headers: &'a HeaderMap) -> Self {
        Self {
            headers,
            clauses: OnceLock::new(),
        }
    }

    /// The headers.
    pub(crate) fn headers(&self) -> &'a HeaderMap {
        self.headers
    }

    /// The clauses, in order of preference.
    pub(crate) fn clauses(&self) -> &[Clause<'a>] {
        self.clauses.get_or_init(|| accepted(self.headers))
    }

    /// The media type that is preferred among the offered ones: by clause first. Parameters of clauses are ignored.
    pub(crate) fn choose<'o>(&self, offered: &[&'o str]) -> Option<&'o str> {
        self.clauses()
            .iter()
            .find_map(|clause| offered.iter().find(|offered| clause.matches(offered)))
            .copied()
    }
}

/// Parses the clauses of a request, in order of preference; equal ones stay in the order sent. Without the header,
/// `*/*` is accepted.
fn accepted(headers: &HeaderMap) -> Vec<Clause<'_>> {
    let values = headers.get_all(ACCEPT);
    let given = || values.iter().filter_map(|value| value.to_str().ok());
    let says_nothing = given().all(|value| value.trim().is_empty());
    let any = says_nothing.then_some("*/*");
    let mut clauses: Vec<Clause<'_>> = given()
        .chain(any)
        .flat_map(|value| value.split(','))
        .filter_map(|clause| Clause::parse(clause.trim()))
        .collect();
    clauses.sort_by(|a, b| b.quality.total_cmp(&a.quality));
    clauses
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(accept: &str, expected: &[&str]) {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, accept.parse().unwrap());
        let got: Vec<String> = accepted(&headers)
            .iter()
            .map(|c| {
                let params: String = c.params.iter().map(|(k, v)| format!(";{k}={v}")).collect();
                format!("{}/{}{params}", c.main, c.sub)
            })
            .collect();
        assert_eq!(got, expected, "{accept}");
    }

    #[test]
    fn clauses_come_in_order_of_quality_then_of_the_header() {
        check("", &["*/*"]);
        check(
            "application/yaml;q=0.5, application/json , text/*;q=1",
            &["application/json", "text/*", "application/yaml"],
        );
        check(
            "application/json;as=Table;v=v1;Q=0.1,*/*",
            &["*/*", "application/json;as=Table;v=v1"],
        );
        check(
            "nonsense,,application/json;charset=\"utf-8\"",
            &["application/json;charset=utf-8"],
        );
    }

    #[test]
    fn wildcards_cover_media_types() {
        let any = Clause::parse("*/*").unwrap();
        let main = Clause::parse("application/*").unwrap();
        assert!(
            any.matches("text/plain")
                && main.matches("application/json")
                && !main.matches("text/plain")
        );
        assert!(
            !Clause::parse("application/json")
                .unwrap()
                .matches("application/yaml")
        );
    }
}
