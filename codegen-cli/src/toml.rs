//! Texts of manifests and of cargo's configuration, in packages that are written or read.

/// A string of TOML: one of JSON, but for a control character that JSON takes as it is.
pub(crate) fn string(text: &str) -> String {
    let json = serde_json::Value::from(text).to_string();
    json.replace('\u{7F}', "\\u007F")
}

/// The tables of a TOML file whose headers begin with `start`.
pub(crate) fn tables(toml: &str, start: &str) -> String {
    let mut wanted = false;
    let mut found = String::new();
    for line in toml.lines() {
        if line.starts_with('[') {
            wanted = line.starts_with(start);
        }
        if wanted {
            found.push_str(line);
            found.push('\n');
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_end_where_others_begin() {
        let toml = "a = 1\n[profile.dev]\ndebug = 0\n\n[profile.dev.package.\"*\"]\nx = 1\n[env]\nb = 2\n[profile.release]\nlto = true";
        assert_eq!(
            tables(toml, "[profile"),
            "[profile.dev]\ndebug = 0\n\n[profile.dev.package.\"*\"]\nx = 1\n[profile.release]\nlto = true\n"
        );
        assert_eq!(tables(toml, "[env"), "[env]\nb = 2\n");
        assert_eq!(tables(toml, "[none"), "");
    }
}
