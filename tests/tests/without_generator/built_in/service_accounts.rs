//! core/v1 ServiceAccount.

use serde_json::json;

use super::BuiltIns;

#[tokio::test]
async fn a_service_account_keeps_the_names_of_its_secrets() {
    let server = BuiltIns::new().await;
    let account = json!({
        "metadata": {"name": "robot"},
        "secrets": [{"kind": "Secret", "name": "a", "namespace": "x"}, {"name": "b"}],
        "imagePullSecrets": [{"name": "pull"}, {}],
        "automountServiceAccountToken": false,
    });
    let created = server
        .object("POST", "serviceaccounts", account.clone())
        .await;
    let expected = json!({
        "kind": "ServiceAccount", "apiVersion": "v1", "metadata": {"name": "robot", "namespace": "default"},
        "secrets": [{"name": "a"}, {"name": "b"}],
        "imagePullSecrets": [{"name": "pull"}, {"name": ""}],
        "automountServiceAccountToken": false,
    });
    assert_eq!(created, expected);
    let updated = server.object("PUT", "serviceaccounts/robot", account).await;
    assert_eq!(updated, expected);
    let row = server
        .row("/api/v1/namespaces/default/serviceaccounts")
        .await;
    assert_eq!(
        (&row[0], &row[1]),
        (&json!(["Name", "robot"]), &json!(["Secrets", 2]))
    );
    server.stop().await;
}
