//! Whether rules permit all that others do, and what is missing, in the words of kube-apiserver.

use std::collections::BTreeSet;

use apiloom_kinds::rbac::v1::PolicyRule;
use apiloom_meta::field::go_quote;
use apiloom_registry::auth::covers_path;

use super::rule::{ALL, has};

/// How many combinations of group, resource, verb and name are compared: a role of 3 MiB may have 10 to the 18th.
const MAX_COMBINATIONS: usize = 50_000;

/// How many of the missing permissions an error names.
const MAX_NAMED: usize = 1_000;

/// One combination of a rule: it is either permitted by one other rule, or not at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Permission<'a> {
    Resource {
        group: &'a str,
        resource: &'a str,
        verb: &'a str,
        name: Option<&'a str>,
    },
    Path {
        path: &'a str,
        verb: &'a str,
    },
}

/// What is missing for rules to be covered by others; `None` if nothing is.
///
/// # Errors
/// If there is too much to compare.
pub(super) fn missing(
    held: &[PolicyRule],
    wanted: &[PolicyRule],
) -> Result<Option<String>, String> {
    let mut combinations = 0;
    let mut missing = Vec::new();
    for rule in wanted {
        // Those of an administrator cover any rule as a whole.
        if held.iter().any(|one| covers_whole(one, rule)) {
            continue;
        }
        for permission in permissions(rule) {
            combinations += 1;
            if combinations > MAX_COMBINATIONS {
                return Err(format!(
                    "its rules have more than {MAX_COMBINATIONS} combinations of group, resource, verb and name to compare \
                    with those of the user: make several roles of it"
                ));
            }
            if !held.iter().any(|one| covers(one, permission)) {
                missing.push(permission);
            }
        }
    }
    Ok((!missing.is_empty()).then(|| description(&missing)))
}

/// The rules of `wanted` that `held` does not cover, as rules.
pub(super) fn uncovered<'a>(held: &[PolicyRule], wanted: &'a [PolicyRule]) -> Vec<&'a PolicyRule> {
    let is_covered = |rule: &&PolicyRule| {
        permissions(rule).all(|permission| held.iter().any(|one| covers(one, permission)))
    };
    wanted.iter().filter(|rule| !is_covered(rule)).collect()
}

fn permissions(rule: &PolicyRule) -> impl Iterator<Item = Permission<'_>> {
    let verbs = rule.verbs.as_deref().unwrap_or_default();
    let names = rule.resource_names.iter().map(|name| Some(name.as_str()));
    let names: Vec<Option<&str>> = if rule.resource_names.is_empty() {
        vec![None]
    } else {
        names.collect()
    };
    let of_resources = rule.api_groups.iter().flat_map(move |group| {
        let names = names.clone();
        rule.resources.iter().flat_map(move |resource| {
            let names = names.clone();
            verbs.iter().flat_map(move |verb| {
                names
                    .clone()
                    .into_iter()
                    .map(move |name| Permission::Resource {
                        group,
                        resource,
                        verb,
                        name,
                    })
            })
        })
    });
    let of_paths = rule.non_resource_urls.iter().flat_map(move |path| {
        let permission = move |verb| Permission::Path { path, verb };
        verbs.iter().map(String::as_str).map(permission)
    });
    of_resources.chain(of_paths)
}

/// Whether a rule without a limit covers another one, which need not be taken apart then.
fn covers_whole(held: &PolicyRule, wanted: &PolicyRule) -> bool {
    let has_all = |list: &[String]| list.iter().any(|word| word == ALL);
    has_all(held.verbs.as_deref().unwrap_or_default())
        && (wanted.non_resource_urls.is_empty() || has_all(&held.non_resource_urls))
        && (wanted.api_groups.is_empty()
            || has_all(&held.api_groups)
                && has_all(&held.resources)
                && held.resource_names.is_empty())
}

fn covers(held: &PolicyRule, wanted: Permission<'_>) -> bool {
    let has_verb = |verb: &str| has(held.verbs.as_deref().unwrap_or_default(), verb);
    match wanted {
        Permission::Path { path, verb } => {
            let mut paths = held.non_resource_urls.iter();
            has_verb(verb) && paths.any(|held| covers_path(held, path))
        }
        Permission::Resource {
            group,
            resource,
            verb,
            name,
        } => {
            has_verb(verb)
                && has(&held.api_groups, group)
                && covers_resource(&held.resources, resource)
                && (held.resource_names.is_empty()
                    || name.is_some_and(|name| held.resource_names.iter().any(|held| held == name)))
        }
    }
}

fn covers_resource(held: &[String], wanted: &str) -> bool {
    has(held, wanted)
        || wanted.split_once('/').is_some_and(|(_, subresource)| {
            let mut held = held.iter().filter_map(|held| held.strip_prefix("*/"));
            held.any(|held| held == subresource)
        })
}

/// The missing permissions, those of one resource together, in order.
fn description(missing: &[Permission<'_>]) -> String {
    let mut merged: Vec<(Permission<'_>, Vec<&str>)> = Vec::new();
    let mut lines = BTreeSet::new();
    for permission in missing {
        match *permission {
            Permission::Path { path, verb } => {
                let (path, verb) = (go_quote(path), go_quote(verb));
                lines.insert(format!("{{NonResourceURLs:[{path}], Verbs:[{verb}]}}"));
            }
            Permission::Resource {
                group,
                resource,
                verb,
                name,
            } => {
                let of = Permission::Resource {
                    group,
                    resource,
                    verb: "",
                    name,
                };
                // Verbs of a resource follow each other.
                match merged.iter_mut().rev().find(|(one, _)| *one == of) {
                    Some((_, verbs)) => verbs.push(verb),
                    None => merged.push((of, vec![verb])),
                }
            }
        }
        if lines.len() + merged.len() >= MAX_NAMED {
            break;
        }
    }
    for (of, verbs) in merged {
        if let Permission::Resource {
            group,
            resource,
            name,
            ..
        } = of
        {
            let verbs: Vec<String> = verbs.into_iter().map(go_quote).collect();
            let name = name.map(|name| format!(", ResourceNames:[{}]", go_quote(name)));
            lines.insert(format!(
                "{{APIGroups:[{}], Resources:[{}]{}, Verbs:[{}]}}",
                go_quote(group),
                go_quote(resource),
                name.unwrap_or_default(),
                verbs.join(" ")
            ));
        }
    }
    lines.into_iter().collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn rules(rules: Value) -> Vec<PolicyRule> {
        serde_json::from_value(rules).unwrap()
    }

    #[track_caller]
    fn check(held: Value, wanted: Value, expected: Option<&str>) {
        let found = missing(&rules(held), &rules(wanted)).unwrap();
        assert_eq!(found.as_deref(), expected);
    }

    fn rule(group: &str, resources: &[&str], verbs: &[&str]) -> Value {
        json!({"apiGroups": [group], "resources": resources, "verbs": verbs})
    }

    #[test]
    fn what_is_missing_is_named_by_resource() {
        let held = json!([rule("", &["configmaps"], &["get"])]);
        check(
            held.clone(),
            json!([rule("", &["configmaps"], &["get"])]),
            None,
        );
        let wanted = json!([rule("", &["configmaps", "secrets"], &["get", "list"])]);
        let lines = r#"{APIGroups:[""], Resources:["configmaps"], Verbs:["list"]}
{APIGroups:[""], Resources:["secrets"], Verbs:["get" "list"]}"#;
        check(held.clone(), wanted, Some(lines));
        let all = r#"{APIGroups:["*"], Resources:["*"], Verbs:["*"]}"#;
        check(held, json!([rule("*", &["*"], &["*"])]), Some(all));
        let path = json!([{"nonResourceURLs": ["/metrics/x"], "verbs": ["get"]}]);
        let line = r#"{NonResourceURLs:["/metrics/x"], Verbs:["get"]}"#;
        check(json!([]), path.clone(), Some(line));
        check(
            json!([{"nonResourceURLs": ["/metrics*"], "verbs": ["*"]}]),
            path,
            None,
        );
    }

    #[test]
    fn names_and_subresources_are_covered_as_they_are_permitted() {
        let named = |names: &[&str]| json!([{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"], "resourceNames": names}]);
        check(
            json!([rule("", &["secrets"], &["get"])]),
            named(&["a"]),
            None,
        );
        check(named(&["a", "b"]), named(&["a"]), None);
        let line = r#"{APIGroups:[""], Resources:["secrets"], ResourceNames:["b"], Verbs:["get"]}"#;
        check(named(&["a"]), named(&["a", "b"]), Some(line));
        let line = r#"{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}"#;
        check(
            named(&["a"]),
            json!([rule("", &["secrets"], &["get"])]),
            Some(line),
        );
        let scale = json!([rule("apps", &["*/scale"], &["*"])]);
        check(
            scale.clone(),
            json!([rule("apps", &["deployments/scale"], &["get"])]),
            None,
        );
        let line = r#"{APIGroups:["apps"], Resources:["deployments"], Verbs:["get"]}"#;
        check(
            scale,
            json!([rule("apps", &["deployments"], &["get"])]),
            Some(line),
        );
    }

    #[test]
    fn a_rule_of_many_combinations_is_refused_and_covered_by_all() {
        let words: Vec<String> = (0..1_000).map(|number| format!("w{number}")).collect();
        let wanted = json!([{"apiGroups": words, "resources": words, "verbs": words, "resourceNames": words}]);
        let wanted = rules(wanted);
        let refused = missing(
            &rules(json!([rule("", &["configmaps"], &["get"])])),
            &wanted,
        );
        assert!(
            refused
                .unwrap_err()
                .contains("more than 50000 combinations")
        );
        let all = rules(json!([rule("*", &["*"], &["*"])]));
        assert_eq!(missing(&all, &wanted), Ok(None));
    }
}
