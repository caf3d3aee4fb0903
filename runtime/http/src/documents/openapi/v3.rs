//! OpenAPI 3.0 documents, one for each group and version.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::content::{Content, Conversion};
use super::kind_source::KindSource;
use crate::observation::version::KUBERNETES_RELEASE;
use crate::shape::texts::Texts;

/// A document. The fields are in the order of their names, as those of all JSON of this server.
#[derive(Deserialize, Serialize)]
pub(crate) struct Document {
    pub(super) components: Components,
    pub(super) info: Value,
    pub(super) openapi: Value,
    pub(super) paths: Texts,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) security: Option<Value>,
}

#[derive(Deserialize, Serialize)]
pub(super) struct Components {
    pub(super) schemas: Texts,
    #[serde(rename = "securitySchemes", skip_serializing_if = "Option::is_none")]
    pub(super) security_schemes: Option<Value>,
}

/// The document of these kinds, with the discovery of these versions. One of custom resources alone has none, and says nothing of
/// tokens, as in kube-apiserver.
pub(super) fn document<'a>(
    versions: &[(&'a str, &'a str)],
    kinds: impl Iterator<Item = &'a KindSource>,
) -> Document {
    let mut content = Content::new(Conversion {
        path_item: |item, _| item,
        schema: |schema| schema,
    });
    for (group, version) in versions {
        content.add_discovery(group, version);
    }
    kinds.for_each(|kind| content.add_kind(&kind.def, kind.schema()));
    let (paths, schemas) = content.finish();
    let has_tokens = !versions.is_empty();
    Document {
        components: Components {
            schemas,
            security_schemes: has_tokens.then(token),
        },
        info: info(),
        openapi: "3.0.0".into(),
        paths,
        security: has_tokens.then(security),
    }
}

pub(super) fn info() -> Value {
    json!({ "title": "apiloom", "version": KUBERNETES_RELEASE })
}

pub(super) fn security() -> Value {
    json!([{ "BearerToken": [] }])
}

pub(super) fn token() -> Value {
    let token = json!({
        "type": "apiKey",
        "in": "header",
        "name": "authorization",
        "description": "Bearer and a token.",
    });
    json!({ "BearerToken": token })
}

/// The key of a group and version in the index, and its path below `/openapi/v3/`.
pub(super) fn key(group: &str, version: &str) -> String {
    if group.is_empty() {
        format!("api/{version}")
    } else {
        format!("apis/{group}/{version}")
    }
}
