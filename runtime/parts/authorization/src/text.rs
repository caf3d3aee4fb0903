//! Optional texts of objects.

/// A text, which is empty if it is absent.
pub(crate) fn text(text: &Option<String>) -> &str {
    text.as_deref().unwrap_or_default()
}
