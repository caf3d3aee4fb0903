//! What is wrong with a schema: a line for each problem, so that all of them are reported at once.

/// The problems of one schema document.
#[derive(Default)]
pub(crate) struct Problems {
    pub(crate) lines: Vec<String>,
}

impl Problems {
    /// Notes a problem of the field at `path`.
    pub(crate) fn error(&mut self, path: &str, text: impl std::fmt::Display) {
        self.lines.push(if path.is_empty() {
            text.to_string()
        } else {
            format!("{path}: {text}")
        });
    }
}

/// The path of a field below a path.
pub(crate) fn join(path: &str, name: &str) -> String {
    if path.is_empty() {
        name.to_owned()
    } else {
        format!("{path}.{name}")
    }
}
