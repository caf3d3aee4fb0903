//! Whose a request is.

use apiloom_tests::ClientAuthority;
use serde_json::{Value, json};

use crate::*;

on_each_backend![c_160_headers_of_a_proxy_count_with_its_certificate_alone];

const WHO_AM_I: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";

/// The user of a request with these headers, or the code of its refusal.
async fn user(client: &Client, headers: &[(&str, &str)]) -> Result<Value, u16> {
    let headers: Vec<_> = headers
        .iter()
        .copied()
        .chain([("content-type", "application/json")])
        .collect();
    let answer = client.call("POST", WHO_AM_I, &headers, "{}").await;
    match answer.code {
        201 => Ok(answer.json()["status"]["userInfo"].take()),
        code => Err(code),
    }
}

async fn name(client: &Client, headers: &[(&str, &str)]) -> Result<String, u16> {
    let user = user(client, headers).await?;
    Ok(user["username"].as_str().unwrap().to_owned())
}

async fn c_160_headers_of_a_proxy_count_with_its_certificate_alone(on: Backend) {
    let folder = tempfile::tempdir().unwrap();
    let flag = |name: &str, authority: &ClientAuthority| {
        let path = folder.path().join(name);
        std::fs::write(&path, &authority.pem).unwrap();
        format!("--{name}={}", path.display())
    };
    let (proxies, users) = (ClientAuthority::new(), ClientAuthority::new());
    let of_proxies = flag("requestheader-client-ca-file", &proxies);
    let of_users = flag("client-ca-file", &users);
    let server = Cluster::start_with(
        on,
        &[
            &of_proxies,
            "--requestheader-allowed-names=front",
            &of_users,
            "--authorization-mode=RBAC",
        ],
    );
    let administrator = server.client();
    administrator.until_ready().await;
    let original = server.server().kubeconfig();
    let client = |authority: &ClientAuthority, name: &str| {
        Client::new(&authority.client(name, "team").kubeconfig(original))
    };
    let headers = [
        ("x-remote-user", "jane"),
        ("x-remote-uid", "7"),
        ("x-remote-group", "a"),
        ("x-remote-group", "b"),
        ("x-remote-extra-example.com%2fteam", "x"),
    ];
    let front = client(&proxies, "front");
    assert_eq!(
        user(&front, &headers).await,
        Ok(json!({
            "username": "jane",
            "uid": "7",
            "groups": ["a", "b", "system:authenticated"],
            "extra": {"example.com/team": ["x"]},
        }))
    );
    // Without a user the certificate is one of a client, and those have other authorities.
    assert_eq!(name(&front, &headers[1..]).await, Err(401));
    assert_eq!(name(&client(&proxies, "other"), &headers).await, Err(401));
    let unknown = client(&ClientAuthority::new(), "front");
    assert_eq!(name(&unknown, &headers).await, Err(401));
    // Others are who they are.
    let alice = client(&users, "alice");
    assert_eq!(name(&alice, &headers).await.as_deref(), Ok("alice"));
    let front_of_users = client(&users, "front");
    assert_eq!(
        name(&front_of_users, &headers).await.as_deref(),
        Ok("front")
    );
    let admin = name(&administrator, &headers).await;
    assert_eq!(admin.as_deref(), Ok("kubernetes-admin"));
    assert_eq!(name(&administrator.anonymous(), &headers).await, Err(403));
}
