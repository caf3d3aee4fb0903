//! OpenAPI 3.0 documents, one for each group and version.

use serde_json::{Map, Value, json};

use super::components::{self, KindSchema};
use super::operations;
use crate::http::version::KUBERNETES_RELEASE;

/// The document of these kinds, with the discovery of these versions. One of custom resources alone has none, and says nothing of
/// tokens, as in kube-apiserver.
pub(super) fn document(versions: &[(&str, &str)], kinds: Vec<KindSchema<'_>>) -> Value {
    let mut paths = Map::new();
    for (group, version) in versions {
        operations::add_discovery(group, version, &mut paths);
    }
    for kind in &kinds {
        operations::add(kind.def, &mut paths);
    }
    let schemas = components::schemas(kinds, &paths);
    let mut document = json!({
        "openapi": "3.0.0",
        "info": { "title": "apiloom", "version": KUBERNETES_RELEASE },
        "paths": paths,
        "components": { "schemas": schemas },
    });
    if !versions.is_empty() {
        let token = json!({
            "type": "apiKey",
            "in": "header",
            "name": "authorization",
            "description": "Bearer and a token.",
        });
        document["components"]["securitySchemes"] = json!({ "BearerToken": token });
        document["security"] = json!([{ "BearerToken": [] }]);
    }
    document
}

/// The key of a group and version in the index, and its path below `/openapi/v3/`.
pub(super) fn key(group: &str, version: &str) -> String {
    if group.is_empty() {
        format!("api/{version}")
    } else {
        format!("apis/{group}/{version}")
    }
}
