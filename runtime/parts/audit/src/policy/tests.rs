//! Policies: which requests they select, and what is wrong with them.

use apiloom_registry::UserInfo;
use apiloom_server::server::auditor::AuditStage;

use super::*;

fn policy(rules: &str) -> Result<Policy, String> {
    let text = format!("apiVersion: audit.k8s.io/v1\nkind: Policy\n{rules}");
    Policy::parse(text.as_bytes())
}

fn user() -> UserInfo {
    UserInfo {
        name: "joan".to_owned(),
        groups: vec!["team".to_owned(), "all".to_owned()],
        ..UserInfo::default()
    }
}

/// A request for a resource, of `group/resource[/subresource]`.
fn request<'a>(user: &'a UserInfo, resource: &'a str) -> Attributes<'a> {
    let mut parts = resource.split('/');
    let mut part = || parts.next().unwrap_or_default();
    let mut request = Attributes::of_path(user, "get", "");
    request.is_resource_request = true;
    (request.api_group, request.resource, request.subresource) = (part(), part(), part());
    (request.namespace, request.name) = ("zoo", "fido");
    request
}

#[test]
fn the_first_rule_that_matches_counts() {
    let user = user();
    let pods = request(&user, "/pods");
    let path = Attributes::of_path(&user, "get", "/healthz/etcd");
    let check = |rule: &str, matches: [bool; 2]| {
        let rules = format!("rules:\n- level: Metadata\n{rule}\n- level: Request\n");
        let policy = policy(&rules).unwrap();
        for (request, matches) in [&pods, &path].into_iter().zip(matches) {
            let expected = if matches {
                AuditLevel::Metadata
            } else {
                AuditLevel::Request
            };
            assert_eq!(
                policy.selection(request).level,
                expected,
                "{rule}: {request:?}"
            );
        }
    };
    check("", [true, true]);
    check("  users: [joan]", [true, true]);
    check("  users: [jim]", [false, false]);
    check("  userGroups: [other, team]", [true, true]);
    check("  userGroups: [other]", [false, false]);
    check("  verbs: [get]", [true, true]);
    check("  verbs: [list, watch]", [false, false]);
    check("  namespaces: [zoo]", [true, false]);
    check("  namespaces: [\"\"]", [false, false]);
    check("  resources: [{group: \"\"}]", [true, false]);
    check("  resources: [{group: apps}]", [false, false]);
    check(
        "  resources: [{group: \"*\", resources: [pods]}]",
        [true, false],
    );
    check("  resources: [{resources: [secrets]}]", [false, false]);
    check(
        "  resources: [{resources: [pods], resourceNames: [fido]}]",
        [true, false],
    );
    check(
        "  resources: [{resources: [pods], resourceNames: [rex]}]",
        [false, false],
    );
    check("  nonResourceURLs: [\"*\"]", [false, true]);
    check("  nonResourceURLs: [/healthz]", [false, false]);
    check("  nonResourceURLs: [/healthz*]", [false, true]);
    check("  nonResourceURLs: [/healthz/etcd]", [false, true]);
}

#[test]
fn resources_have_patterns() {
    let user = user();
    let check = |pattern: &str, matching: &[&str]| {
        let one = GroupResources {
            resources: vec![pattern.to_owned()],
            ..GroupResources::default()
        };
        for resource in [
            "/pods",
            "/pods/log",
            "/pods/scale",
            "/secrets",
            "/secrets/scale",
        ] {
            let matches = one.has(&request(&user, resource));
            assert_eq!(
                matches,
                matching.contains(&resource),
                "{pattern} {resource}"
            );
        }
    };
    check(
        "*",
        &[
            "/pods",
            "/pods/log",
            "/pods/scale",
            "/secrets",
            "/secrets/scale",
        ],
    );
    check("pods", &["/pods"]);
    check("pods/log", &["/pods/log"]);
    check("pods/*", &["/pods", "/pods/log", "/pods/scale"]);
    check("*/scale", &["/pods/scale", "/secrets/scale"]);
    check("*/*", &[]);
}

#[test]
fn stages_and_managed_fields_are_omitted_by_policy_and_rule() {
    let rules = "omitStages: [RequestReceived]\nomitManagedFields: true\nrules:\n- level: None\n  users: [jim]\n- level: Metadata\n  verbs: [get]\n  omitStages: [Panic]\n- level: Request\n  omitManagedFields: false\n";
    let policy = policy(rules).unwrap();
    let user = user();
    let mut pods = request(&user, "/pods");
    let selection = policy.selection(&pods);
    let omitted = Stages::ALL.map(|(stage, _)| selection.omitted.has(stage));
    assert_eq!(omitted, [true, false, false, true]);
    assert!(selection.omits_managed_fields);
    pods.verb = "list";
    let selection = policy.selection(&pods);
    assert!(!selection.omitted.has(AuditStage::Panic));
    assert!(!selection.omits_managed_fields);
    let jim = UserInfo {
        name: "jim".to_owned(),
        ..UserInfo::default()
    };
    let none = policy.selection(&request(&jim, "/pods"));
    assert_eq!(none.level, AuditLevel::None);
}

#[test]
fn problems_are_told_with_their_places() {
    let check = |rules: &str, expected: &str| {
        assert_eq!(policy(rules).unwrap_err(), expected, "{rules}");
    };
    check("rules:\n- {}", "rules[0].level: Required value");
    check(
        "rules:\n- level: All",
        r#"rules[0].level: Unsupported value: "All": supported values: "None", "Metadata", "Request", "RequestResponse""#,
    );
    check(
        "omitStages: [Begin]\nrules:\n- level: None",
        r#"omitStages[0]: Invalid value: "Begin": allowed stages are RequestReceived,ResponseStarted,ResponseComplete,Panic"#,
    );
    check(
        "rules:\n- level: None\n  nonResourceURLs: [a, /a*b, \"*\", /a*]",
        r#"[rules[0].nonResourceURLs[0]: Invalid value: "a": non-resource URL rules must begin with a '/' character, rules[0].nonResourceURLs[1]: Invalid value: "/a*b": non-resource URL wildcards '*' must be the final character of the rule]"#,
    );
    check(
        "rules:\n- level: None\n  nonResourceURLs: [/a]\n  namespaces: [b]",
        r#"rules[0].nonResourceURLs: Invalid value: ["/a"]: rules cannot apply to both regular resources and non-resource URLs"#,
    );
    check(
        "rules:\n- level: None\n  resources: [{group: A/v1}]",
        r#"rules[0].resources.group: Invalid value: "A/v1": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"#,
    );
    check(
        "rules:\n- level: None\n  resources: [{resourceNames: [a]}]",
        r#"rules[0].resources.resourceNames: Invalid value: ["a"]: using resourceNames requires at least one resource"#,
    );
    check("", "it has no rules, so nothing would be recorded");
    assert!(
        policy("rules: 1")
            .unwrap_err()
            .starts_with("it is no policy: ")
    );
    assert!(
        policy("rules: [")
            .unwrap_err()
            .starts_with("it is no YAML: ")
    );
    let other = Policy::parse(b"apiVersion: audit.k8s.io/v1beta1\nkind: Policy").unwrap_err();
    assert!(other.contains("\"audit.k8s.io/v1beta1\""), "{other}");
}

#[test]
fn unknown_fields_are_named() {
    let document = serde_json::json!({
        "kind": "Policy", "level": "None", "metadata": {"name": "a"},
        "rules": [{"level": "None", "user": [], "resources": [{"groups": ""}]}],
    });
    let mut problems = Vec::new();
    unknown_fields(&document, &FieldPath::root(), &FIELDS, &mut problems);
    let expected = [
        r#"unknown field "level""#,
        r#"unknown field "rules[0].resources[0].groups""#,
        r#"unknown field "rules[0].user""#,
    ];
    assert_eq!(problems, expected);
    assert!(policy("rules:\n- level: None\n  user: [a]").is_ok());
}
