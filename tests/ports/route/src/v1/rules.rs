//! What is done with which request.

use apiloom::prelude::*;

use super::filters::{self, Filter, FilterType, PathModifier, PathModifierType};
use super::matches::{PathMatch, PathMatchType, RouteMatch};
use super::references::HttpBackendRef;

/// RouteRule is what is done with some requests.
#[apiloom::api]
#[api(custom = RouteRule::check)]
pub struct RouteRule {
    /// The name of the rule, by which others refer to it.
    #[api(len = 1..=253, pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$")]
    pub name: Option<String>,
    /// The requests: those for which any of these holds.
    #[api(list = atomic, items = ..=64, default = RouteRule::default().matches)]
    pub matches: Vec<RouteMatch>,
    /// What is done with them on their way.
    #[api(list = atomic, items = ..=16, custom = filters::fit_together)]
    pub filters: Vec<Filter>,
    /// Where they go.
    #[api(list = atomic, items = ..=16)]
    pub backend_refs: Vec<HttpBackendRef>,
    /// How long they may take.
    pub timeouts: Option<Timeouts>,
}

impl Default for RouteRule {
    fn default() -> Self {
        let everything = RouteMatch {
            path: Some(PathMatch::everything()),
            ..RouteMatch::default()
        };
        Self {
            name: None,
            matches: vec![everything],
            filters: Vec::new(),
            backend_refs: Vec::new(),
            timeouts: None,
        }
    }
}

impl RouteRule {
    fn check(&self, path: &FieldPath) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let redirects = self
            .filters
            .iter()
            .any(|filter| filter.r#type == FilterType::RequestRedirect);
        if redirects && !self.backend_refs.is_empty() {
            let detail = "RequestRedirect filter must not be used together with backendRefs";
            errors.push(FieldError::forbidden(&path.child("backendRefs"), detail));
        }
        let of_backends = self
            .backend_refs
            .iter()
            .flat_map(|backend| &backend.filters);
        if self
            .filters
            .iter()
            .chain(of_backends)
            .any(replaces_the_prefix)
            && !self.has_one_prefix()
        {
            let detail =
                "exactly one PathPrefix match must be specified when a filter replaces the prefix";
            errors.push(FieldError::invalid(
                &path.child("matches"),
                &self.matches,
                detail,
            ));
        }
        errors
    }

    fn has_one_prefix(&self) -> bool {
        let path = |one: &RouteMatch| one.path.as_ref().map(|path| path.r#type.clone());
        matches!(self.matches.as_slice(), [one] if path(one) == Some(PathMatchType::PathPrefix))
    }
}

fn replaces_the_prefix(filter: &Filter) -> bool {
    let redirect = filter
        .request_redirect
        .as_ref()
        .and_then(|redirect| redirect.path.as_ref());
    let rewrite = filter
        .url_rewrite
        .as_ref()
        .and_then(|rewrite| rewrite.path.as_ref());
    let is_prefix = |path: &PathModifier| path.r#type == PathModifierType::ReplacePrefixMatch;
    redirect.or(rewrite).is_some_and(is_prefix)
}

/// A route has at most 128 matches in all its rules.
#[allow(clippy::ptr_arg, reason = "a check takes the type of its field")]
pub(super) fn matches_are_few(rules: &Vec<RouteRule>, path: &FieldPath) -> Option<FieldError> {
    let count: usize = rules.iter().map(|rule| rule.matches.len()).sum();
    let detail = "the total number of matches across all rules in a route must be at most 128";
    (count > 128).then(|| FieldError::invalid(path, count, detail))
}

/// Timeouts are how long a request may take.
#[apiloom::api]
#[api(custom = Timeouts::check)]
pub struct Timeouts {
    /// From its arrival to the end of the answer; 0s is without end.
    #[api(pattern = r"^([0-9]{1,5}(h|m|s|ms)){1,4}$")]
    pub request: Option<String>,
    /// From the gateway to the backend and back, for each attempt.
    #[api(pattern = r"^([0-9]{1,5}(h|m|s|ms)){1,4}$")]
    pub backend_request: Option<String>,
}

impl Timeouts {
    fn check(&self, path: &FieldPath) -> Option<FieldError> {
        let (all, one) = (
            milliseconds(self.request.as_deref()?),
            milliseconds(self.backend_request.as_deref()?),
        );
        let detail = "backendRequest timeout cannot be longer than request timeout";
        (all > 0 && one > all).then(|| {
            FieldError::invalid(&path.child("backendRequest"), &self.backend_request, detail)
        })
    }
}

/// The time of a text that the pattern of timeouts lets through.
fn milliseconds(text: &str) -> u64 {
    let mut rest = text;
    let mut sum = 0;
    while let Some(end) = rest.find(|c: char| !c.is_ascii_digit()) {
        let (number, unit) = rest.split_at(end);
        let (factor, length) = match unit.as_bytes() {
            [b'm', b's', ..] => (1, 2),
            [b'm', ..] => (60_000, 1),
            [b'h', ..] => (3_600_000, 1),
            _ => (1_000, 1),
        };
        sum += number.parse().unwrap_or(0) * factor;
        rest = unit.get(length..).unwrap_or_default();
    }
    sum
}
