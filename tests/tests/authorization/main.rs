//! Who may do what: recorded answers of a kube-apiserver with RBAC, put to a server of ours.
//!
//! `recorded.jsonl` has a request in each line with its user, a token of `tokens.csv`, and the answer of kube-apiserver 1.36. What differs by
//! nature stands as `~`, and causes are sorted. The first lines make roles and bindings.

#![allow(clippy::unwrap_used, reason = "tests")]

mod oidc;
mod service_accounts;
mod webhooks;

use std::path::Path;
use std::time::Duration;

use apiloom_tests::{Client, ClientAuthority, Kubectl, Server, created, repository};
use serde::Deserialize;
use serde_json::{Value, json};

/// Fields whose values differ by nature.
const OWN: [&str; 3] = ["creationTimestamp", "resourceVersion", "uid"];

#[derive(Deserialize)]
struct Recorded {
    case: String,
    /// The token; none for a request without credentials.
    #[serde(rename = "as")]
    token: Option<String>,
    /// Method, path, body, content type, headers.
    request: (String, String, Value, String, Value),
    answer: (u16, Value),
}

/// The answer as it is recorded.
fn normalized(mut answer: Value) -> Value {
    normalize(&mut answer);
    if let Some(causes) = answer.pointer_mut("/details/causes")
        && let Some(causes) = causes.as_array_mut()
    {
        causes.sort_by_key(ToString::to_string);
    }
    answer
}

fn normalize(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.remove("managedFields");
            for (name, value) in fields {
                if OWN.contains(&name.as_str()) && value.is_string() {
                    *value = "~".into();
                } else {
                    normalize(value);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(normalize),
        // Two bindings of the start allow this, and kube-apiserver takes the first of a map of Go, whose order is random.
        Value::String(reason)
            if OF_ALL_USERS
                .iter()
                .any(|role| *reason == allowed_to_all(role)) =>
        {
            *reason = allowed_to_all(OF_ALL_USERS[0]);
        }
        _ => {}
    }
}

/// The roles that all users have from the start.
const OF_ALL_USERS: [&str; 2] = ["system:discovery", "system:public-info-viewer"];

fn allowed_to_all(role: &str) -> String {
    format!(
        r#"RBAC: allowed by ClusterRoleBinding "{role}" of ClusterRole "{role}" to Group "system:authenticated""#
    )
}

async fn difference(administrator: &Client, recorded: &Recorded) -> Option<String> {
    let client = match &recorded.token {
        Some(token) => administrator.clone().with_token(token),
        None => administrator.clone().anonymous(),
    };
    let (method, path, body, media_type, headers) = &recorded.request;
    let headers: Vec<(&str, &str)> = headers
        .as_object()
        .unwrap()
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str().unwrap()))
        .chain([("content-type", media_type.as_str())])
        .collect();
    let body = if body.is_null() {
        String::new()
    } else {
        body.to_string()
    };
    let answer = client.call(method, path, &headers, body.clone()).await;
    let (code, expected) = &recorded.answer;
    let is_same = answer.code == *code
        && (expected == "ok" || normalized(answer.json()) == normalized(expected.clone()));
    (!is_same).then(|| {
        format!(
            "{} as {:?}: {method} {path} {body}\n  expected {code} {expected}\n  got      {} {}",
            recorded.case,
            recorded.token,
            answer.code,
            answer.text()
        )
    })
}

#[tokio::test]
async fn answers_are_those_of_kube_apiserver() {
    let folder = repository().join("tests/tests/authorization");
    let tokens = folder.join("tokens.csv");
    let flag = format!("--token-auth-file={}", tokens.display());
    // What was recorded had no controllers.
    let args = [
        "--storage-backend=memory",
        "--controllers=",
        "--authorization-mode=RBAC",
        &flag,
    ];
    let server = Server::start(&args);
    let administrator = server.client();
    administrator.until_ready().await;
    let text = std::fs::read_to_string(folder.join("recorded.jsonl")).unwrap();
    let mut differences = Vec::new();
    let mut count = 0;
    for line in text.lines() {
        let recorded: Recorded = serde_json::from_str(line).unwrap();
        differences.extend(difference(&administrator, &recorded).await);
        count += 1;
    }
    assert!(count > 300, "{count}");
    let shown = differences.join("\n");
    assert!(
        differences.is_empty(),
        "{} of {count} differ:\n{shown}",
        differences.len()
    );
}

/// The controller writes roles of any name, such as one that has to be escaped in a path.
#[tokio::test]
async fn aggregated_roles_have_the_rules_of_others() {
    const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
    let server = Server::start(&["--storage-backend=memory", "--authorization-mode=RBAC"]);
    let administrator = server.client();
    let role = json!({
        "metadata": {"name": "a?b"},
        "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"to-odd": "true"}}]}
    });
    created(&administrator, ROLES, &role).await;
    let rules = json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}]);
    let role = json!({"metadata": {"name": "part", "labels": {"to-odd": "true"}}, "rules": rules});
    created(&administrator, ROLES, &role).await;
    let path = format!("{ROLES}/a%3Fb");
    let collected = async {
        while administrator.get(&path).await.json()["rules"] != rules {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let limit = Duration::from_secs(60);
    tokio::time::timeout(limit, collected).await.unwrap();
}

/// A role with a binding, as `kubectl auth reconcile` takes them.
const READERS: &str = r#"
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: readers, namespace: default}
rules:
- {apiGroups: [""], resources: [configmaps], verbs: [get, list]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: readers, namespace: default}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: readers}
subjects:
- {apiGroup: rbac.authorization.k8s.io, kind: Group, name: team}
"#;

/// A user with a certificate, as an administrator of a cluster makes it, and what kubectl shows of permissions.
#[test]
fn kubectl_shows_and_uses_permissions() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let authority = ClientAuthority::new();
    let alice = authority.client("alice", "team");
    let authorities = file("ca.pem", &authority.pem);
    let certificate = file("alice.pem", &alice.certificate);
    let key = file("alice.key", &alice.key);
    let readers = file("readers.yaml", READERS);
    let flag = format!("--client-ca-file={authorities}");
    let args = [
        "--storage-backend=memory",
        "--authorization-mode=RBAC",
        &flag,
    ];
    let server = Server::start(&args);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(server.client().until_ready());
    for release in Kubectl::RELEASES {
        let kubeconfig = file(
            &format!("{release}.kubeconfig"),
            &std::fs::read_to_string(server.kubeconfig()).unwrap(),
        );
        let kubectl = Kubectl::new(release, Path::new(&kubeconfig));
        let run = |args: &[&str]| {
            let output = kubectl.run(args, "");
            (output.code, output.stdout + &output.stderr)
        };
        let of_alice = [
            format!("--client-certificate={certificate}"),
            format!("--client-key={key}"),
        ];
        let mut credentials = vec!["config", "set-credentials", "alice"];
        credentials.extend(of_alice.iter().map(String::as_str));
        assert_eq!(run(&credentials).0, 0);

        let (code, text) = run(&["--user=alice", "auth", "whoami"]);
        assert_eq!(code, 0, "{text}");
        for part in ["alice", "[team system:authenticated]", "X509SHA256="] {
            assert!(text.contains(part), "{text}");
        }
        let can_i = ["--user=alice", "auth", "can-i", "list", "configmaps"];
        assert_eq!(run(&can_i), (1, "no\n".to_owned()));
        let (code, text) = run(&["--user=alice", "get", "configmaps"]);
        assert_eq!(code, 1);
        assert!(
            text.contains(r#"User "alice" cannot list resource "configmaps""#),
            "{text}"
        );

        let (code, text) = run(&["auth", "reconcile", "-f", &readers]);
        assert_eq!(code, 0, "{text}");
        assert!(
            text.contains("rolebinding.rbac.authorization.k8s.io/readers reconciled"),
            "{text}"
        );
        assert_eq!(run(&can_i), (0, "yes\n".to_owned()));
        assert_eq!(run(&["--user=alice", "get", "configmaps"]).0, 0);
        let (code, text) = run(&["--user=alice", "auth", "can-i", "--list"]);
        assert_eq!(code, 0, "{text}");
        for part in [
            "configmaps",
            "selfsubjectaccessreviews.authorization.k8s.io",
            "[/healthz]",
        ] {
            assert!(text.contains(part), "{text}");
        }
        // The administrator as another user, and another user as the administrator.
        assert_eq!(
            run(&["get", "configmaps", "--as=bob", "--as-group=team"]).0,
            0
        );
        let (code, text) = run(&["get", "secrets", "--as=bob", "--as-group=team"]);
        assert_eq!(code, 1);
        assert!(
            text.contains(r#"User "bob" cannot list resource "secrets""#),
            "{text}"
        );
        let (code, text) = run(&["--user=alice", "get", "configmaps", "--as=admin"]);
        assert_eq!(code, 1);
        assert!(
            text.contains(r#"User "alice" cannot impersonate"#),
            "{text}"
        );
        assert_eq!(run(&["delete", "-f", &readers]).0, 0);
    }
    server.stop();
}

/// The first requests of a machine, as those of `kubeadm join`: by a secret that an administrator has made.
#[tokio::test]
async fn a_secret_is_a_bootstrap_token() {
    const SECRETS: &str = "/api/v1/namespaces/kube-system/secrets";
    const WHO_AM_I: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let args = [
        "--storage-backend=memory",
        "--authorization-mode=RBAC",
        "--enable-bootstrap-token-auth",
    ];
    let server = Server::start(&args);
    let administrator = server.client();
    administrator.until_ready().await;
    let machine = administrator.clone().with_token("abcdef.0123456789abcdef");
    assert_eq!(machine.post(WHO_AM_I, &json!({})).await.code, 401);
    let secret = json!({
        "metadata": {"name": "bootstrap-token-abcdef"},
        "type": "bootstrap.kubernetes.io/token",
        "stringData": {
            "token-id": "abcdef",
            "token-secret": "0123456789abcdef",
            "usage-bootstrap-authentication": "true",
            "auth-extra-groups": "system:bootstrappers:machines",
        },
    });
    created(&administrator, SECRETS, &secret).await;
    let user = created(&machine, WHO_AM_I, &json!({})).await["status"]["userInfo"].take();
    assert_eq!(
        user,
        json!({
            "username": "system:bootstrap:abcdef",
            "groups": ["system:bootstrappers", "system:bootstrappers:machines", "system:authenticated"],
        })
    );
    let other = administrator.clone().with_token("abcdef.0123456789abcdee");
    assert_eq!(other.post(WHO_AM_I, &json!({})).await.code, 401);
    let path = format!("{SECRETS}/bootstrap-token-abcdef");
    administrator.delete(&path, &json!({})).await;
    assert_eq!(machine.post(WHO_AM_I, &json!({})).await.code, 401);
}
