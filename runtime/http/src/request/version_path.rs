//! The version of a group to which a path belongs: `/apis/GROUP/VERSION` or `/api/VERSION`, and below.

/// The group, empty for core, and the version of a path.
pub(crate) fn version_of(path: &str) -> Option<(&str, &str)> {
    key_of(path)?.0.split_once('/')
}

/// The path of a version of a group.
pub fn path_of_version(group: &str, version: &str) -> String {
    if group.is_empty() {
        format!("/api/{version}")
    } else {
        format!("/apis/{group}/{version}")
    }
}

/// The group and version of a path, as `GROUP/VERSION`, and the rest of the path.
pub(crate) fn key_of(path: &str) -> Option<(&str, &str)> {
    if let Some(rest) = path.strip_prefix("/apis/") {
        let group = rest.find('/')?;
        let version = rest[group + 1..].find('/');
        let end = version.map_or(rest.len(), |at| group + 1 + at);
        return Some(rest.split_at(end));
    }
    let rest = path.strip_prefix("/api")?;
    let end = rest.strip_prefix('/')?.find('/');
    Some(rest.split_at(end.map_or(rest.len(), |at| at + 1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_has_one_group_and_version() {
        for (path, expected) in [
            ("/apis/g.io/v1", Some(("g.io/v1", ""))),
            ("/apis/g.io/v1/", Some(("g.io/v1", "/"))),
            ("/apis/g.io/v1/things/a", Some(("g.io/v1", "/things/a"))),
            ("/api/v1", Some(("/v1", ""))),
            ("/api/v1/pods", Some(("/v1", "/pods"))),
            ("/apis/g.io", None),
            ("/apis", None),
            ("/api", None),
            ("//apis/g.io/v1", None),
            ("/version", None),
        ] {
            assert_eq!(key_of(path), expected, "{path}");
        }
    }
}
