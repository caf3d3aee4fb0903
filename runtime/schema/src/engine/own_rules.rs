//! The rules about one value that OpenAPI has no keyword for, one row each: the keyword, the types of values, what is refused, and
//! how CEL says it. What builds, merges, checks and prints schemas asks the rows, so a further rule of this form is a further row.

#[cfg(feature = "build")]
use serde_json::Map;
use serde_json::Value;

use super::equality::same;
use super::node::Rules;
#[cfg(feature = "build")]
use super::node::Types;
use crate::field::go_quote;

/// A rule in CEL, with the message of its refusal.
pub(super) struct CelText {
    pub(super) rule: String,
    pub(super) message: String,
    /// Whether the rule reads the whole value, which costs more the longer it is.
    pub(super) reads_all: bool,
}

/// A rule about one value. Its argument is the value of its keyword.
pub(super) struct OwnRule {
    /// The keyword in a schema.
    pub(super) keyword: &'static str,
    /// The key of `#[api(..)]`, as comments of a CRD name it.
    pub(super) key: &'static str,
    /// The types of values that the rule can refuse.
    #[cfg(feature = "build")]
    pub(super) types: Types,
    /// The reason for which a value is refused; `None` if it is not.
    refusal: fn(argument: &Value, value: &Value) -> Option<String>,
    /// The rule in CEL, if CEL can express it. `literal` is the argument, if CEL has a literal for it that compares with the value.
    pub(super) cel: fn(argument: &Value, literal: Option<&str>) -> Option<CelText>,
}

/// All of them, in the order in which a value is checked.
static OWN_RULES: &[&OwnRule] = &[&NOT_EQUAL];

/// One value is refused.
static NOT_EQUAL: OwnRule = OwnRule {
    keyword: "x-apiloom-not-equal",
    key: "`neq`",
    #[cfg(feature = "build")]
    types: Types::ANY,
    refusal: |refused, value| {
        same(None, refused, value).then(|| {
            let shown = refused.as_str();
            let shown = shown.map_or_else(|| refused.to_string(), go_quote);
            format!("must not be equal to {shown}")
        })
    },
    cel: |refused, literal| {
        Some(CelText {
            rule: format!("self != {}", literal?),
            message: format!("must not be {refused}"),
            reads_all: false,
        })
    },
};

/// The rules that a schema has, as [`Rules`] keeps them: keywords with arguments.
#[cfg(feature = "build")]
pub(super) fn read(keywords: &Map<String, Value>) -> Vec<(&'static str, Value)> {
    let given = |rule: &&OwnRule| Some((rule.keyword, keywords.get(rule.keyword)?.clone()));
    OWN_RULES.iter().filter_map(given).collect()
}

/// The rules of a value with their arguments.
pub(super) fn of(rules: &Rules) -> impl Iterator<Item = (&'static OwnRule, &Value)> {
    rules.own.iter().filter_map(|(keyword, argument)| {
        let rule = OWN_RULES.iter().find(|rule| rule.keyword == *keyword)?;
        Some((*rule, argument))
    })
}

/// The reasons for which the rules refuse a value, in the order of the rules.
pub(super) fn refusals(rules: &Rules, value: &Value) -> impl Iterator<Item = String> {
    of(rules).filter_map(move |(rule, argument)| (rule.refusal)(argument, value))
}

#[cfg(all(test, feature = "build"))]
mod tests {
    use serde_json::json;

    use crate::engine::tests::{errors, schema};

    /// Those of a field and of its type.
    #[test]
    fn the_rules_of_several_schemas_are_all_in_force() {
        let of_type = json!({"type": "string", "x-apiloom-not-equal": "a"});
        let field = json!({"allOf": [of_type], "x-apiloom-not-equal": "b"});
        let schema = schema(&json!({"type": "object", "properties": {"p": field}}));
        for (value, is_refused) in [("a", true), ("b", true), ("c", false)] {
            let error = format!("p: Invalid value: \"{value}\": must not be equal to \"{value}\"");
            let expected = is_refused.then_some(error);
            let found = errors(&schema, &json!({"p": value}));
            assert_eq!(found, Vec::from_iter(expected), "{value}");
        }
    }
}
