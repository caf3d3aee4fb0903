//! What roles and bindings permit.

use serde_json::{Value, json};

use crate::*;

on_each_backend![c_162_a_rule_permits_what_it_names];

const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles";
const BINDINGS: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings";

/// Time in which all servers know a role.
const LIMIT: Duration = Duration::from_secs(10);

/// Gives a user one rule in the namespace.
async fn grant(administrator: &Client, user: &str, rule: Value) {
    let name = json!({"name": user});
    let role = json!({"metadata": name, "rules": [rule]});
    created(administrator, ROLES, &role).await;
    let binding = json!({
        "metadata": name,
        "roleRef": {"kind": "Role", "name": user},
        "subjects": [{"kind": "User", "name": user}]
    });
    created(administrator, BINDINGS, &binding).await;
}

async fn c_162_a_rule_permits_what_it_names(on: Backend) {
    let server = Cluster::start_with(on, &["--authorization-mode=RBAC"]);
    let administrator = server.client();
    for name in ["a", "b"] {
        created(&administrator, FLUNDERS, &flunder(name)).await;
    }
    let rule = |resource: &str, names: &[&str]| json!({"apiGroups": ["wardle.example.com"], "resources": [resource], "verbs": ["*"], "resourceNames": names});
    grant(&administrator, "of-objects", rule("flunders", &[])).await;
    grant(&administrator, "of-statuses", rule("*/status", &[])).await;
    grant(&administrator, "of-one", rule("flunders", &["a"])).await;
    // Another server over the same store knows a role when its watch has delivered it.
    let check = async |user: &str, (method, path): (&str, &str), expected: u16| {
        let headers = [
            ("impersonate-user", user),
            ("content-type", "application/json"),
        ];
        let body = if method == "POST" {
            flunder("c").to_string()
        } else {
            String::new()
        };
        let ask = async || {
            administrator
                .call(method, path, &headers, body.clone())
                .await
        };
        let what = format!("{user}: {method} {path}, expected {expected}");
        until_answered(&what, LIMIT, ask, |answer| answer.code == expected).await;
    };
    let (object, other) = (format!("{FLUNDERS}/a"), format!("{FLUNDERS}/b"));
    let status = format!("{object}/status");
    let selected = format!("{FLUNDERS}?fieldSelector=metadata.name%3Da");
    let created = format!("{FLUNDERS}?dryRun=All");
    let requests = [
        ("GET", object.as_str()),
        ("GET", &other),
        ("GET", &status),
        ("GET", FLUNDERS),
        ("GET", &selected),
        ("POST", &created),
    ];
    for (user, expected) in [
        ("of-objects", [200, 200, 403, 200, 200, 201]),
        ("of-statuses", [403, 403, 200, 403, 403, 403]),
        ("of-one", [200, 403, 403, 403, 200, 403]),
        ("of-nothing", [403; 6]),
    ] {
        for (request, expected) in requests.into_iter().zip(expected) {
            check(user, request, expected).await;
        }
    }
    let binding = format!("{BINDINGS}/of-objects");
    assert_eq!(administrator.delete(&binding, &json!(null)).await.code, 200);
    check("of-objects", requests[0], 403).await;
}
