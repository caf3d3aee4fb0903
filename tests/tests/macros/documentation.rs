//! Descriptions of a documented type in OpenAPI and CRDs, as printed by `kubectl explain`.

use apiloom::prelude::*;
use serde_json::Value;

use super::served::Server;

/// A book, read by [`Reader`]s of [the library](https://library.example.com).
///
/// +genclient
/// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
#[apiloom::resource(group = "example.com", version = "v1", namespaced)]
pub struct Book {
    pub metadata: ObjectMeta,
    /// What is in it; see [`BookSpec::title`] and [its rules][rules].
    ///
    /// [rules]: crate::rules
    pub spec: BookSpec,
}

/// The text, as [`Reader`] reads it.
#[apiloom::api]
pub struct BookSpec {
    /// The title, which matches [a-z0-9]([-a-z0-9]*[a-z0-9])? or `[`x`](y)`.
    /// +kubebuilder:validation:MaxLength=9
    /// +optional
    pub title: Option<String>,
    pub state: Option<State>,
    pub reader: Option<Reader>,
}

#[apiloom::api]
pub enum State {
    /// A [`Reader`] has it.
    Lent,
    Free,
}

/// A [foreign type](schemars::JsonSchema).
#[derive(Clone, PartialEq, Debug, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
pub struct Reader {
    /// As of [`State`].
    /// +optional
    pub name: String,
}

#[tokio::test]
async fn descriptions_are_plain_text() {
    let server = Server::start(|builder| builder.kind::<Book>()).await;
    let (code, v3) = server.get("/openapi/v3/apis/example.com/v1").await;
    assert_eq!(code, 200);
    let (code, v2) = server.get("/openapi/v2").await;
    assert_eq!(code, 200);
    for schemas in [&v3["components"]["schemas"], &v2["definitions"]] {
        let schemas = schemas.as_object().unwrap();
        let (_, book) = schemas
            .iter()
            .find(|(name, _)| name.ends_with(".Book"))
            .unwrap();
        check(book);
    }
}

#[track_caller]
fn check(book: &Value) {
    let spec = &book["properties"]["spec"];
    let fields = &spec["properties"];
    for (schema, text) in [
        (
            book,
            "A book, read by `Reader`s of the library (https://library.example.com).",
        ),
        (spec, "What is in it; see `BookSpec::title` and its rules."),
        (
            &fields["title"],
            "The title, which matches [a-z0-9]([-a-z0-9]*[a-z0-9])? or `[`x`](y)`.",
        ),
        (
            &fields["state"],
            "Possible enum values:\n - `\"Lent\"` A `Reader` has it.\n - `\"Free\"`",
        ),
        (&fields["reader"], "A foreign type."),
        (&fields["reader"]["properties"]["name"], "As of `State`."),
    ] {
        assert_eq!(schema["description"], text);
    }
}
