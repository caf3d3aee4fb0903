//! The rules for texts: lengths, patterns and formats.

use super::node::{Node, Rules};
use super::walk::Walk;
use super::walk_path::Path;
use crate::field::{FieldError, FieldErrorKind};

impl Walk {
    /// Checks a text.
    pub(super) fn string(&mut self, node: &Node, text: &str, path: &Path<'_>) {
        let before = self.errors.mark();
        self.lengths(&node.rules, text, path);
        if self.dialect.is_in_openapi_order {
            if !(self.dialect.reports_first_of_text && self.errors.has_since(before)) {
                self.pattern(&node.rules, text, path);
            }
            self.format(node, text, path);
        } else {
            let before = self.errors.mark();
            self.format(node, text, path);
            // The pattern of a format repeats the format's check.
            if !self.errors.has_since(before) {
                self.pattern(&node.rules, text, path);
            }
        }
    }

    fn lengths(&mut self, rules: &Rules, text: &str, path: &Path<'_>) {
        let dialect = self.dialect;
        let is_over = |max: &usize| text.len() > *max && text.chars().count() > *max;
        let is_under = |min: &usize| text.len() < *min || text.chars().count() < *min;
        if let Some(max) = rules.max_length.filter(is_over) {
            self.fail(|| dialect.too_long(max, path));
            if dialect.reports_first_of_text {
                return;
            }
        }
        if let Some(max) = rules.max_bytes.filter(|max| text.len() > *max) {
            self.fail(|| FieldError::too_long(&path.field(), max));
        }
        if let Some(min) = rules.min_length.filter(is_under) {
            self.fail(|| dialect.too_short(text, min, path));
        }
        if let Some(min) = rules.min_bytes.filter(|min| text.len() < *min) {
            self.fail(|| FieldError {
                kind: FieldErrorKind::TooShort,
                path: path.field(),
                body: format!("Too short: must be at least {min} bytes"),
            });
        }
    }

    fn format(&mut self, node: &Node, text: &str, path: &Path<'_>) {
        let Some(format) = &node.format else { return };
        let dialect = self.dialect;
        for problem in (dialect.format_problems)(format, text) {
            self.fail(|| dialect.misformatted(text, &problem, path));
        }
    }

    fn pattern(&mut self, rules: &Rules, text: &str, path: &Path<'_>) {
        let pattern = rules.pattern.as_ref();
        if let Some(pattern) = pattern.filter(|pattern| !pattern.is_match(text)) {
            self.fail(|| {
                let at = path.field();
                let detail = format!("{} in body should match '{}'", at.as_str(), pattern.text());
                FieldError::invalid(&at, text, &detail)
            });
        }
    }
}
