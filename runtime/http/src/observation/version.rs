//! `GET /version`: the release of Kubernetes whose API this is, and the build.

use std::env::consts;

use apiloom_meta::ApiError;
use http::Response;
use http::request::Parts;
use serde::Serialize;

use crate::ServerInfo;
use crate::response::{Body, ok};
use crate::shape::error::only_get;

/// The release of Kubernetes whose behaviour is implemented; kubectl compares its own version with it.
const MAJOR: &str = "1";
const MINOR: &str = "36";

/// The same release, as in OpenAPI documents.
pub(crate) const KUBERNETES_RELEASE: &str = "v1.36.0";

/// The response to `/version`, encoded once.
#[derive(Debug)]
pub struct Version {
    json: String,
}

/// Properties of the build. They are reproducible: unknown values, such as commit and date, are left empty.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct VersionInfo {
    pub(crate) major: &'static str,
    pub(crate) minor: &'static str,
    emulation_major: &'static str,
    emulation_minor: &'static str,
    min_compatibility_major: &'static str,
    min_compatibility_minor: &'static str,
    pub(super) git_version: String,
    pub(super) git_commit: &'static str,
    pub(super) git_tree_state: &'static str,
    pub(super) build_date: &'static str,
    pub(super) go_version: &'static str,
    pub(super) compiler: &'static str,
    pub(super) platform: String,
}

impl VersionInfo {
    pub(crate) fn of(info: &ServerInfo) -> Self {
        Self {
            major: MAJOR,
            minor: MINOR,
            emulation_major: MAJOR,
            emulation_minor: MINOR,
            min_compatibility_major: MAJOR,
            // kube-apiserver is compatible with one minor version back.
            min_compatibility_minor: "35",
            git_version: format!("{KUBERNETES_RELEASE}+apiloom.{}", info.version),
            git_commit: "",
            git_tree_state: "",
            build_date: "",
            go_version: "",
            compiler: "rustc",
            platform: format!("{}/{}", consts::OS, go_arch(consts::ARCH)),
        }
    }
}

impl Version {
    /// The version of this build.
    pub fn new(info: &ServerInfo) -> Self {
        let json = serde_json::to_string_pretty(&VersionInfo::of(info)).unwrap_or_default();
        Self { json }
    }

    /// Responds to `/version`; `None` for other paths.
    ///
    /// # Errors
    /// MethodNotAllowed for other methods than GET.
    pub fn respond(&self, request: &Parts) -> Option<Result<Response<Body>, ApiError>> {
        if !matches!(request.uri.path(), "/version" | "/version/") {
            return None;
        }
        Some(only_get(request).map(|()| ok("application/json", self.json.clone())))
    }
}

/// Go's name of a CPU architecture, which clients expect.
fn go_arch(arch: &str) -> &str {
    match arch {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "x86" => "386",
        "powerpc64" => "ppc64le",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{body, get};

    #[test]
    fn every_key_is_there_in_upstream_order() {
        let version = Version::new(&ServerInfo {
            address: "h:1".into(),
            version: "0.1.0".into(),
        });
        let text = body(
            version
                .respond(&get("/version?timeout=32s", &[]))
                .unwrap()
                .unwrap(),
        );
        let platform = format!("{}/{}", consts::OS, go_arch(consts::ARCH));
        let expected = format!(
            r#"{{
  "major": "1",
  "minor": "36",
  "emulationMajor": "1",
  "emulationMinor": "36",
  "minCompatibilityMajor": "1",
  "minCompatibilityMinor": "35",
  "gitVersion": "v1.36.0+apiloom.0.1.0",
  "gitCommit": "",
  "gitTreeState": "",
  "buildDate": "",
  "goVersion": "",
  "compiler": "rustc",
  "platform": "{platform}"
}}"#
        );
        assert_eq!(text, expected);
        assert!(version.respond(&get("/versions", &[])).is_none());
    }
}
