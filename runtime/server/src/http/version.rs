//! `GET /version`: which Kubernetes this server behaves like, and which build it is.

use std::env::consts;

use apiloom_meta::ApiError;
use http::Response;
use http::request::Parts;
use serde::Serialize;

use super::discovery::only_get;
use super::static_doc::ok;
use super::{Body, ServerInfo};

/// The release of Kubernetes whose behaviour is implemented; kubectl compares its own version with this one.
const MAJOR: &str = "1";
const MINOR: &str = "36";

/// The same release as OpenAPI documents name it.
pub(super) const KUBERNETES_RELEASE: &str = "v1.36.0";

/// The answer of `/version`, made once.
#[derive(Debug)]
pub struct Version {
    json: String,
    git_version: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct VersionInfo<'a> {
    major: &'a str,
    minor: &'a str,
    emulation_major: &'a str,
    emulation_minor: &'a str,
    min_compatibility_major: &'a str,
    min_compatibility_minor: &'a str,
    git_version: &'a str,
    git_commit: &'a str,
    git_tree_state: &'a str,
    build_date: &'a str,
    go_version: &'a str,
    compiler: &'a str,
    platform: &'a str,
}

impl Version {
    /// The version of this build. Two runs of one build give the same answer: commit and date are not invented.
    pub fn new(info: &ServerInfo) -> Self {
        let git_version = format!("{KUBERNETES_RELEASE}+apiloom.{}", info.version);
        let json = serde_json::to_string_pretty(&VersionInfo {
            major: MAJOR,
            minor: MINOR,
            emulation_major: MAJOR,
            emulation_minor: MINOR,
            min_compatibility_major: MAJOR,
            // Upstream is compatible with one minor version back.
            min_compatibility_minor: "35",
            git_version: &git_version,
            git_commit: "",
            git_tree_state: "",
            build_date: "",
            go_version: "",
            compiler: "rustc",
            platform: &format!("{}/{}", consts::OS, go_arch(consts::ARCH)),
        });
        Self {
            json: json.unwrap_or_default(),
            git_version,
        }
    }

    /// `v1.36.0+apiloom.VERSION`.
    pub fn git_version(&self) -> &str {
        &self.git_version
    }

    /// Answers `/version`; `None` for other paths.
    ///
    /// # Errors
    /// MethodNotAllowed for anything but GET.
    pub fn respond(&self, request: &Parts) -> Option<Result<Response<Body>, ApiError>> {
        if !matches!(request.uri.path(), "/version" | "/version/") {
            return None;
        }
        Some(only_get(request).map(|()| ok("application/json", self.json.clone())))
    }
}

/// Clients know platforms by Go's names.
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
    use super::super::testing::{body, get};
    use super::*;

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
