//! The policy: which requests are recorded, how much of them and at which stages (`Policy` of `audit.k8s.io/v1`).

use std::path::Path;

use apiloom_client::config::read_file;
use apiloom_meta::codec::{Decoder, Format};
use apiloom_meta::field::{FieldError, FieldPath, aggregate};
use apiloom_meta::names;
use apiloom_registry::audit::AuditLevel;
use apiloom_registry::auth::{Attributes, covers_path};
use serde::Deserialize;
use serde_json::Value;

use super::stages::Stages;

const API_VERSION: &str = "audit.k8s.io/v1";

/// A policy: the first rule that matches a request counts; without one it is not recorded.
#[derive(Debug)]
pub(super) struct Policy {
    rules: Vec<Rule>,
}

/// A rule as it was checked.
#[derive(Debug)]
struct Rule {
    level: AuditLevel,
    omitted: Stages,
    omits_managed_fields: bool,
    selection: RuleDocument,
}

/// What is recorded of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Selection {
    pub(super) level: AuditLevel,
    pub(super) omitted: Stages,
    pub(super) omits_managed_fields: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PolicyDocument {
    api_version: String,
    kind: String,
    rules: Vec<RuleDocument>,
    omit_stages: Vec<String>,
    omit_managed_fields: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RuleDocument {
    level: String,
    users: Vec<String>,
    user_groups: Vec<String>,
    verbs: Vec<String>,
    resources: Vec<GroupResources>,
    namespaces: Vec<String>,
    #[serde(rename = "nonResourceURLs")]
    non_resource_urls: Vec<String>,
    omit_stages: Vec<String>,
    omit_managed_fields: Option<bool>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct GroupResources {
    group: String,
    resources: Vec<String>,
    resource_names: Vec<String>,
}

/// The fields of a policy, of a rule, and of the resources of one.
const FIELDS: [&[&str]; 3] = [
    &[
        "apiVersion",
        "kind",
        "metadata",
        "omitManagedFields",
        "omitStages",
        "rules",
    ],
    &[
        "level",
        "namespaces",
        "nonResourceURLs",
        "omitManagedFields",
        "omitStages",
        "resources",
        "userGroups",
        "users",
        "verbs",
    ],
    &["group", "resourceNames", "resources"],
];

impl Policy {
    /// Reads the policy of a file, in YAML or JSON.
    ///
    /// # Errors
    /// All that is wrong with it, with the name of the file.
    pub(super) fn read(file: &Path) -> Result<Self, String> {
        let shown = file.display();
        let bytes =
            read_file(file).map_err(|error| format!("--audit-policy-file {shown}: {error}"))?;
        Self::parse(&bytes).map_err(|error| format!("--audit-policy-file {shown}: {error}"))
    }

    fn parse(bytes: &[u8]) -> Result<Self, String> {
        let decoded = Decoder::new(Format::Yaml).decode(bytes);
        let decoded = decoded.map_err(|error| format!("it is no YAML: {error}"))?;
        let mut strict = decoded.strict;
        unknown_fields(&decoded.value, &FieldPath::root(), &FIELDS, &mut strict);
        let document: PolicyDocument = serde_json::from_value(decoded.value)
            .map_err(|error| format!("it is no policy: {error}"))?;
        if document.api_version != API_VERSION || document.kind != "Policy" {
            return Err(format!(
                "it has apiVersion {:?} and kind {:?}; a policy has apiVersion: {API_VERSION} and kind: Policy",
                document.api_version, document.kind
            ));
        }
        let errors = check(&document);
        if !errors.is_empty() {
            return Err(aggregate(&errors));
        }
        if document.rules.is_empty() {
            return Err("it has no rules, so nothing would be recorded".to_owned());
        }
        if !strict.is_empty() {
            // As kube-apiserver, which goes on without them.
            tracing::warn!(
                problems = strict.join(", "),
                "the audit policy has fields without a meaning"
            );
        }
        Ok(Self::of(document))
    }

    /// A policy that is valid.
    fn of(document: PolicyDocument) -> Self {
        let everywhere = Stages::named(&document.omit_stages);
        let rules = document.rules.into_iter().map(|rule| Rule {
            level: level(&rule.level).unwrap_or_default(),
            omitted: everywhere.with(Stages::named(&rule.omit_stages)),
            omits_managed_fields: rule
                .omit_managed_fields
                .unwrap_or(document.omit_managed_fields),
            selection: rule,
        });
        Self {
            rules: rules.collect(),
        }
    }

    /// What is recorded of a request.
    pub(super) fn selection(&self, request: &Attributes<'_>) -> Selection {
        let found = self
            .rules
            .iter()
            .find(|rule| rule.selection.matches(request));
        found.map_or_else(Selection::default, |rule| Selection {
            level: rule.level,
            omitted: rule.omitted,
            omits_managed_fields: rule.omits_managed_fields,
        })
    }
}

impl RuleDocument {
    fn matches(&self, request: &Attributes<'_>) -> bool {
        let takes = |list: &[String], value: &str| list.is_empty() || has(list, value);
        let in_group = |group: &String| has(&self.user_groups, group);
        takes(&self.users, &request.user.name)
            && (self.user_groups.is_empty() || request.user.groups.iter().any(in_group))
            && takes(&self.verbs, request.verb)
            && self.matches_target(request)
    }

    fn matches_target(&self, request: &Attributes<'_>) -> bool {
        if !self.namespaces.is_empty() || !self.resources.is_empty() {
            let is_in = self.namespaces.is_empty() || has(&self.namespaces, request.namespace);
            let mut resources = self.resources.iter();
            return request.is_resource_request
                && is_in
                && (self.resources.is_empty() || resources.any(|group| group.has(request)));
        }
        if self.non_resource_urls.is_empty() {
            return true;
        }
        let mut paths = self.non_resource_urls.iter();
        !request.is_resource_request && paths.any(|path| covers_path(path, request.path))
    }
}

impl GroupResources {
    fn has(&self, request: &Attributes<'_>) -> bool {
        if self.group != "*" && self.group != request.api_group {
            return false;
        }
        if self.resources.is_empty() {
            return true;
        }
        let is_named = self.resource_names.is_empty() || has(&self.resource_names, request.name);
        is_named
            && self
                .resources
                .iter()
                .any(|one| resource_matches(one, request))
    }
}

fn has(list: &[String], value: &str) -> bool {
    list.iter().any(|one| one == value)
}

/// Whether a pattern such as `pods/log`, `*/scale` or `pods/*` has the resource of a request.
fn resource_matches(pattern: &str, request: &Attributes<'_>) -> bool {
    if pattern == "*" {
        return true;
    }
    match (pattern.split_once('/'), request.subresource) {
        (None, "") => pattern == request.resource,
        (None, _) => false,
        (Some(("*", wanted)), subresource) if !subresource.is_empty() && wanted == subresource => {
            true
        }
        (Some((resource, "*")), _) => resource == request.resource,
        (Some(both), subresource) => both == (request.resource, subresource),
    }
}

fn level(name: &str) -> Option<AuditLevel> {
    AuditLevel::ALL
        .into_iter()
        .find(|level| level.as_str() == name)
}

/// All errors of a policy, with the texts of kube-apiserver.
fn check(policy: &PolicyDocument) -> Vec<FieldError> {
    let mut errors = Vec::new();
    check_stages(
        &policy.omit_stages,
        &FieldPath::new("omitStages"),
        &mut errors,
    );
    for (index, rule) in policy.rules.iter().enumerate() {
        let path = FieldPath::new("rules").index(index);
        check_level(&rule.level, &path.child("level"), &mut errors);
        let urls = path.child("nonResourceURLs");
        check_urls(&rule.non_resource_urls, &urls, &mut errors);
        check_resources(&rule.resources, &path.child("resources"), &mut errors);
        check_stages(&rule.omit_stages, &path.child("omitStages"), &mut errors);
        let has_resources = !rule.resources.is_empty() || !rule.namespaces.is_empty();
        if !rule.non_resource_urls.is_empty() && has_resources {
            let why = "rules cannot apply to both regular resources and non-resource URLs";
            errors.push(FieldError::invalid(&urls, &rule.non_resource_urls, why));
        }
    }
    errors
}

fn check_level(name: &str, path: &FieldPath, errors: &mut Vec<FieldError>) {
    if name.is_empty() {
        errors.push(FieldError::required(path, ""));
    } else if level(name).is_none() {
        let known = AuditLevel::ALL.map(AuditLevel::as_str);
        errors.push(FieldError::not_supported(path, name, &known));
    }
}

fn check_urls(urls: &[String], path: &FieldPath, errors: &mut Vec<FieldError>) {
    for (index, url) in urls.iter().enumerate() {
        let path = path.index(index);
        let mut invalid = |why: &str| errors.push(FieldError::invalid(&path, url, why));
        if url == "*" {
            continue;
        }
        if !url.starts_with('/') {
            invalid("non-resource URL rules must begin with a '/' character");
        }
        if url.strip_suffix('*').unwrap_or(url).contains('*') {
            invalid("non-resource URL wildcards '*' must be the final character of the rule");
        }
    }
}

fn check_resources(resources: &[GroupResources], path: &FieldPath, errors: &mut Vec<FieldError>) {
    for one in resources {
        if !one.group.is_empty() && one.group != "*" {
            let problems = names::dns_subdomain(&one.group);
            if !problems.is_empty() {
                let why = problems.join(",");
                errors.push(FieldError::invalid(&path.child("group"), &one.group, &why));
            }
        }
        if !one.resource_names.is_empty() && one.resources.is_empty() {
            let path = path.child("resourceNames");
            let why = "using resourceNames requires at least one resource";
            errors.push(FieldError::invalid(&path, &one.resource_names, why));
        }
    }
}

fn check_stages(stages: &[String], path: &FieldPath, errors: &mut Vec<FieldError>) {
    let known = Stages::ALL.map(|(_, name)| name);
    for (index, stage) in stages.iter().enumerate() {
        if !known.contains(&&**stage) {
            let why = format!("allowed stages are {}", known.join(","));
            errors.push(FieldError::invalid(&path.index(index), stage, &why));
        }
    }
}

/// Adds the fields of a document that have no meaning. `fields` are those of this level and those below.
fn unknown_fields(
    document: &Value,
    path: &FieldPath,
    fields: &[&[&str]],
    problems: &mut Vec<String>,
) {
    let (Value::Object(document), [known, below @ ..]) = (document, fields) else {
        return;
    };
    for (name, value) in document {
        let path = path.child(name);
        if !known.contains(&&**name) {
            problems.push(format!("unknown field {:?}", path.as_str()));
        }
        if matches!(&**name, "rules" | "resources") {
            for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                unknown_fields(item, &path.index(index), below, problems);
            }
        }
    }
}

#[cfg(test)]
mod tests;
