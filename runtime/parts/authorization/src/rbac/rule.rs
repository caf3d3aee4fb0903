//! What one rule of a role permits.

use apiloom_kinds::rbac::v1::PolicyRule;
use apiloom_registry::auth::{Attributes, covers_path};

/// All verbs, groups, resources or paths.
pub(super) const ALL: &str = "*";

/// Whether a rule permits a request.
pub(super) fn permits(rule: &PolicyRule, request: &Attributes<'_>) -> bool {
    if !has(rule.verbs.as_deref().unwrap_or_default(), request.verb) {
        return false;
    }
    if !request.is_resource_request {
        let mut paths = rule.non_resource_urls.iter();
        return paths.any(|path| covers_path(path, request.path));
    }
    has(&rule.api_groups, request.api_group)
        && rule
            .resources
            .iter()
            .any(|resource| is_of(resource, request))
        && (rule.resource_names.is_empty()
            || rule.resource_names.iter().any(|name| name == request.name))
}

/// Whether a list has a word, or all words.
pub(super) fn has(list: &[String], word: &str) -> bool {
    list.iter().any(|one| one == ALL || one == word)
}

/// Whether a resource of a rule is that of a request: without a slash it is never a subresource, and `*/scale` is that subresource of
/// any resource.
fn is_of(resource: &str, request: &Attributes<'_>) -> bool {
    if resource == ALL {
        return true;
    }
    if request.subresource.is_empty() {
        return resource == request.resource;
    }
    resource
        .split_once('/')
        .is_some_and(|(parent, subresource)| {
            subresource == request.subresource && (parent == ALL || parent == request.resource)
        })
}

#[cfg(test)]
mod tests {
    use apiloom_registry::auth::UserInfo;

    use super::*;

    fn strings(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    fn rule(groups: &[&str], resources: &[&str], verbs: &[&str], names: &[&str]) -> PolicyRule {
        PolicyRule {
            verbs: Some(strings(verbs)),
            api_groups: strings(groups),
            resources: strings(resources),
            resource_names: strings(names),
            ..PolicyRule::default()
        }
    }

    #[track_caller]
    fn check(rule: &PolicyRule, verb: &str, resource: &str, name: &str, expected: bool) {
        let user = UserInfo::default();
        let mut request = Attributes::of_path(&user, verb, "/ignored");
        request.is_resource_request = true;
        (request.resource, request.subresource) =
            resource.split_once('/').unwrap_or((resource, ""));
        request.name = name;
        assert_eq!(
            permits(rule, &request),
            expected,
            "{verb} {resource} {name}"
        );
    }

    #[test]
    fn a_resource_is_not_its_subresources() {
        let pods = rule(&[""], &["pods"], &["get"], &[]);
        check(&pods, "get", "pods", "a", true);
        check(&pods, "list", "pods", "", false);
        check(&pods, "get", "pods/log", "a", false);
        let logs = rule(&[""], &["pods/log"], &["get"], &[]);
        check(&logs, "get", "pods/log", "a", true);
        check(&logs, "get", "pods", "a", false);
        check(&logs, "get", "nodes/log", "a", false);
        let scales = rule(&[""], &["*/scale"], &["*"], &[]);
        check(&scales, "patch", "pods/scale", "a", true);
        check(&scales, "patch", "pods/status", "a", false);
        check(&scales, "patch", "pods", "a", false);
        let all = rule(&["*"], &["*"], &["*"], &[]);
        check(&all, "get", "pods/log", "a", true);
        let apps = rule(&["apps"], &["pods"], &["get"], &[]);
        check(&apps, "get", "pods", "a", false);
    }

    #[test]
    fn a_rule_with_names_permits_nothing_without_one() {
        let one = rule(&[""], &["secrets"], &["*"], &["s1"]);
        check(&one, "get", "secrets", "s1", true);
        check(&one, "get", "secrets", "s2", false);
        check(&one, "create", "secrets", "", false);
        check(&one, "list", "secrets", "", false);
        // By a field selector of the name.
        check(&one, "list", "secrets", "s1", true);
    }

    #[test]
    fn paths_are_exact_or_end_with_a_star() {
        let check = |paths: &[&str], path: &str, expected: bool| {
            let rule = PolicyRule {
                verbs: Some(strings(&["get"])),
                non_resource_urls: strings(paths),
                ..PolicyRule::default()
            };
            let user = UserInfo::default();
            let request = Attributes::of_path(&user, "get", path);
            assert_eq!(permits(&rule, &request), expected, "{paths:?} {path}");
            let other = Attributes::of_path(&user, "post", path);
            assert!(!permits(&rule, &other));
        };
        check(&["/metrics"], "/metrics", true);
        check(&["/metrics"], "/metrics/slis", false);
        check(&["/metrics"], "/metrics/", false);
        check(&["/metrics*"], "/metrics/slis", true);
        check(&["/custom/*"], "/custom/a/b", true);
        check(&["/custom/*"], "/custom", false);
        check(&["*"], "/anything", true);
        check(&["/a*b"], "/axb", false);
    }
}
