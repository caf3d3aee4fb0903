//! Collects the problems of a schema, one line each.

/// The problems of one schema document.
#[derive(Default)]
pub(crate) struct Problems {
    pub(crate) lines: Vec<String>,
}

impl Problems {
    /// Records a problem of the field at `path`.
    pub(crate) fn error(&mut self, path: &str, text: impl std::fmt::Display) {
        self.lines.push(if path.is_empty() {
            text.to_string()
        } else {
            format!("{path}: {text}")
        });
    }
}

/// The path of a field below another.
pub(crate) fn join(path: &str, name: &str) -> String {
    if path.is_empty() {
        name.to_owned()
    } else {
        format!("{path}.{name}")
    }
}
