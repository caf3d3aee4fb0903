//! Which versions of etcd report the progress of a watch correctly.

/// Whether a member of this version answers progress requests in order: earlier ones may report a revision before they
/// have sent the changes up to it. The versions are those that Kubernetes uses.
pub(super) fn reports_progress(version: &str) -> bool {
    let mut parts = version
        .split(['-', '+'])
        .next()
        .unwrap_or_default()
        .split('.')
        .map(|part| part.parse::<u32>().ok());
    match (parts.next(), parts.next(), parts.next()) {
        (Some(Some(3)), Some(Some(4)), Some(Some(patch))) => patch >= 31,
        (Some(Some(3)), Some(Some(5)), Some(Some(patch))) => patch >= 13,
        (Some(Some(major)), Some(Some(minor)), _) => (major, minor) >= (3, 6),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_believed_of_versions_that_keep_the_order() {
        let check =
            |version, expected| assert_eq!(reports_progress(version), expected, "{version:?}");
        check("3.4.23", false);
        check("3.4.31", true);
        check("3.5.12", false);
        check("3.5.13", true);
        check("3.5.16", true);
        check("3.6.0", true);
        check("3.6.0-rc.1", true);
        check("3.7.2+git", true);
        check("4.0.0", true);
        check("3.3.27", false);
        check("2.3.8", false);
        check("", false);
        check("not a version", false);
    }
}
