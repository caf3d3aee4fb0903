//! Permissions for streams.

use std::sync::Arc;

use apiloom::prelude::*;
use apiloom::server::auth::{
    Answer, Attributes, Authentication, Authenticator, Authorization, Authorizer, Credentials,
    Decision, UserInfo,
};
use apiloom::server::http::{ConnectRequest, ConnectResponse, ConnectSubresource};
use apiloom_tests::Client;
use serde_json::json;

use super::with_server_of;

/// Phone has a stream that takes input, and one that does not.
#[apiloom::resource(group = "kitchen.example.com", version = "v1", namespaced,
    connect(name = "line", verbs = [create, get], handler = Line),
    connect(name = "tone", verbs = [get], handler = Line))]
pub struct Phone {
    pub metadata: ObjectMeta,
}

#[derive(Default)]
pub struct Line;

#[async_trait]
impl ConnectSubresource<Phone> for Line {
    async fn connect(
        &self,
        mut request: ConnectRequest<Phone>,
    ) -> Result<ConnectResponse, ApiError> {
        request.websocket(&[], async |_| {})
    }
}

/// Users by tokens: the verbs that they are allowed.
struct Verbs;

impl Authenticator for Verbs {
    fn authenticate<'a>(&'a self, credentials: &'a Credentials<'a>) -> Answer<'a, Authentication> {
        let token = credentials.token().map(String::from_utf8_lossy);
        let user = token.filter(|token| token.starts_with("may-"));
        let user = user.map(|token| UserInfo {
            name: token.into_owned(),
            ..UserInfo::default()
        });
        Answer::Now(Ok(user.map(Arc::new)))
    }
}

impl Authorizer for Verbs {
    fn authorize<'a>(&'a self, attributes: &'a Attributes<'a>) -> Answer<'a, Authorization> {
        let is_allowed = attributes.user.name.contains(attributes.verb);
        Answer::Now(Ok(if is_allowed {
            Decision::allow()
        } else {
            Decision::no_opinion()
        }))
    }
}

/// Otherwise who may only read could type into a console.
#[tokio::test(flavor = "multi_thread")]
async fn a_websocket_that_takes_input_needs_the_permission_to_create() {
    let configure = |builder: Builder| {
        let builder = builder.kind::<Phone>();
        builder.authenticator(Verbs).authorizer(Verbs)
    };
    with_server_of(configure, async |admin, kubeconfig| {
        let phones = "/apis/kitchen.example.com/v1/namespaces/default/phones";
        let phone = json!({"apiVersion": "kitchen.example.com/v1", "kind": "Phone", "metadata": {"name": "a"}});
        assert_eq!(admin.post(phones, &phone).await.code, 201);
        for (token, stream, expected) in [
            ("may-get", "tone", 101),
            ("may-get", "line", 403),
            ("may-create", "line", 403),
            ("may-get-and-create", "line", 101),
        ] {
            let client = Client::of_http1(&kubeconfig).with_token(token);
            let path = format!("{phones}/a/{stream}");
            let (code, ..) = client.websocket(&path, &[]).await;
            assert_eq!(code, expected, "{token} {stream}");
            let client = Client::new(&kubeconfig).with_token(token);
            let headers = [("sec-websocket-version", "13")];
            let (answer, _) = client.connect_over_http2(&path, "websocket", &headers).await;
            let expected = if expected == 101 { 200 } else { expected };
            assert_eq!(answer.code, expected, "{token} {stream} over HTTP/2");
        }
    })
    .await;
}
