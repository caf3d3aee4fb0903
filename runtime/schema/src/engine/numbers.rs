//! The rules for numbers: compared exactly, or as types of Go.

use std::borrow::Cow;

use serde_json::Number;

use super::go_numbers::{has_integer_syntax, integer, is_multiple, whole_part};
use super::node::{Node, Rules, Types};
use super::walk::Walk;
use super::walk_path::Path;
use crate::field::{FieldError, FieldPath};
use crate::go_value::float_text;
use crate::number;

/// A number that is checked, and how.
struct CheckedNumber<'a> {
    value: &'a Number,
    /// The range of its type in Go, if it has one.
    range: Range<'a>,
    has_go_type: bool,
    /// Whether it is an integer of Go, whose limits are integers too: their fractions do not count.
    is_integer: bool,
}

impl CheckedNumber<'_> {
    /// A number as it is compared with the value, and whether it is an integer of Go.
    fn converted<'l>(&self, limit: &'l Number) -> (Cow<'l, Number>, bool) {
        let is_whole = self.is_integer && self.range.has(limit);
        let limit = if is_whole {
            Cow::Owned(whole_part(limit))
        } else {
            Cow::Borrowed(limit)
        };
        (limit, is_whole)
    }

    fn is_multiple_of(&self, step: &Number) -> bool {
        if self.has_go_type {
            is_multiple(self.value, step)
        } else {
            number::is_multiple(self.value, step)
        }
    }
}

impl Walk {
    /// Checks a number.
    pub(super) fn number(&mut self, node: &Node, value: &Number, path: &Path<'_>) {
        let has_go_type = self.dialect.has_go_numbers;
        let checked = CheckedNumber {
            value,
            range: if has_go_type {
                Range::of(node)
            } else {
                Range::default()
            },
            has_go_type,
            is_integer: has_go_type && has_integer_syntax(value),
        };
        self.range(&checked, value, "Checked", path);
        if self.dialect.is_in_openapi_order {
            self.multiple(&node.rules, &checked, path);
            self.limits(&node.rules, &checked, path);
        } else {
            self.limits(&node.rules, &checked, path);
            self.multiple(&node.rules, &checked, path);
        }
        if !has_go_type {
            self.format_bounds(node, value, path);
        }
    }

    /// Checks that a number, which is the value or a limit, is in the range of the type in Go.
    fn range(&mut self, checked: &CheckedNumber<'_>, number: &Number, what: &str, path: &Path<'_>) {
        if !checked.range.has(number) {
            self.fail(|| checked.range.error(what, path.field().as_str()));
        }
    }

    fn multiple(&mut self, rules: &Rules, checked: &CheckedNumber<'_>, path: &Path<'_>) {
        let Some(step) = &rules.multiple_of else {
            return;
        };
        self.range(checked, step, "MultipleOf", path);
        let (step, _) = checked.converted(step);
        if checked.is_integer && number::float(&step) <= 0.0 {
            self.fail(|| {
                let at = path.field();
                let name = at.as_str();
                let detail =
                    format!("factor MultipleOf declared for {name} must be positive: {step}");
                FieldError::invalid(&at, &*step, &detail)
            });
        } else if !checked.is_multiple_of(&step) {
            let dialect = self.dialect;
            self.fail(|| {
                let step = if checked.has_go_type {
                    float_text(number::float(&step))
                } else {
                    step.to_string()
                };
                dialect.unwanted(checked.value, &format!("a multiple of {step}"), path)
            });
        }
    }

    fn limits(&mut self, rules: &Rules, checked: &CheckedNumber<'_>, path: &Path<'_>) {
        for (limit, is_exclusive, is_minimum) in [
            (&rules.minimum, false, true),
            (&rules.exclusive_minimum, true, true),
            (&rules.maximum, false, false),
            (&rules.exclusive_maximum, true, false),
        ] {
            let Some(limit) = limit else { continue };
            let (boundary, words) = match (is_minimum, is_exclusive) {
                (true, false) => ("Minimum boundary", "greater than or equal to"),
                (true, true) => ("Minimum boundary", "greater than"),
                (false, false) => ("Maximum boundary", "less than or equal to"),
                (false, true) => ("Maximum boundary", "less than"),
            };
            self.range(checked, limit, boundary, path);
            let (limit, is_whole) = checked.converted(limit);
            let order = number::compare(checked.value, &limit);
            let order = if is_minimum { order } else { order.reverse() };
            if order.is_lt() || (is_exclusive && order.is_eq()) {
                let dialect = self.dialect;
                self.fail(|| {
                    let limit = if is_whole || !checked.has_go_type {
                        limit.to_string()
                    } else {
                        float_text(number::float(&limit))
                    };
                    dialect.unwanted(checked.value, &format!("{words} {limit}"), path)
                });
            }
        }
    }

    /// Checks that an integer is within the bounds of its format, where the schema has none.
    fn format_bounds(&mut self, node: &Node, value: &Number, path: &Path<'_>) {
        let bounds = node
            .format
            .as_deref()
            .filter(|_| node.types == Types::INTEGER)
            .and_then(number::format_bounds);
        let (Some((min, max)), Some(whole)) = (bounds, number::whole(value)) else {
            return;
        };
        let dialect = self.dialect;
        if whole < min && node.rules.minimum.is_none() {
            let wanted = format!("greater than or equal to {min}");
            self.fail(|| dialect.unwanted(value, &wanted, path));
        }
        if whole > max && node.rules.maximum.is_none() {
            let wanted = format!("less than or equal to {max}");
            self.fail(|| dialect.unwanted(value, &wanted, path));
        }
    }
}

/// The range of a type and a format; by default of any number.
#[derive(Default)]
struct Range<'a> {
    json_type: &'static str,
    format: Option<&'a str>,
}

impl<'a> Range<'a> {
    fn of(node: &'a Node) -> Self {
        let json_type = match node.types {
            Types::INTEGER => "integer",
            Types::NUMBER => "number",
            _ => "",
        };
        let format = node.format.as_deref().filter(|_| !json_type.is_empty());
        Self { json_type, format }
    }

    fn has(&self, value: &Number) -> bool {
        match (self.json_type, self.format) {
            ("integer", Some("int32")) => {
                integer(value).is_some_and(|whole| i32::try_from(whole).is_ok())
            }
            ("integer", _) => integer(value).is_some(),
            (_, Some("float")) => number::float(value).abs() <= f64::from(f32::MAX),
            _ => true,
        }
    }

    /// The error of kube-openapi, which has no path.
    fn error(&self, what: &str, name: &str) -> FieldError {
        let format = match self.format {
            Some(format) => format!("with format {format}"),
            None => "(default format)".to_owned(),
        };
        let json_type = self.json_type;
        let detail = format!("{what} value must be of type {json_type} {format} in {name}");
        FieldError::invalid(&FieldPath::root(), "", &detail)
    }
}
