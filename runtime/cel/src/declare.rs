//! Compiles the rules of a schema, and reports rules that kube-apiserver would refuse in a CustomResourceDefinition.

use std::collections::HashSet;
use std::sync::Arc;

use apiloom_schema::field::{FieldError, FieldErrorKind, FieldPath};
use apiloom_schema::interrupt::is_interrupted;
use apiloom_schema::structural;
use serde::Serialize;
use serde_json::Value as Json;

use crate::field_path;
use crate::program::{Program, Refusal};
use crate::rules::{Node, OLD, Rule, Rules};
use crate::schema::{Decl, MAX_REQUEST, Topology, properties, topology, values_of};
use crate::scope::Scope;

/// Maximum estimated cost of a rule, for all values that it may be evaluated for; as in kube-apiserver.
const MAX_RULE_COST: u64 = 10_000_000;

/// Maximum estimated cost of all rules of a schema.
const MAX_SCHEMA_COST: u64 = 100_000_000;

/// Number of rules that are named if the cost of a schema is too high.
const MOST_EXPENSIVE: usize = 4;

/// Least cost of a rule that is named then.
const WORTH_NAMING: u64 = MAX_SCHEMA_COST / 100;

const KEYWORD: &str = "x-kubernetes-validations";

/// The rules of a schema, and their problems.
#[derive(Debug)]
pub struct Compilation {
    /// The rules; `None` if the schema has none. A rule with a problem refuses every value.
    pub rules: Option<Rules>,
    /// Why the schema is refused, with the paths of its keywords: a rule is malformed, does not fit the types of the
    /// schema, or is too expensive by its estimate.
    pub errors: Vec<FieldError>,
}

/// Compiles the rules of an `openAPIV3Schema` of objects with `apiVersion`, `kind` and metadata. `at` is the path of
/// the schema for errors.
pub fn compile(schema: &Json, at: &FieldPath) -> Compilation {
    let mut with_rules = HashSet::new();
    if !find_rules(schema, &mut with_rules) {
        return Compilation {
            rules: None,
            errors: Vec::new(),
        };
    }
    let mut compiler = Compiler {
        with_rules,
        errors: Vec::new(),
        costs: Vec::new(),
        total: 0,
        kept_patterns: 0,
    };
    let decl = Decl::of(schema, true).map(Arc::new);
    let context = Context {
        cardinality: Some(1),
        uncorrelated: None,
    };
    let root = decl.and_then(|decl| compiler.node(schema, schema, &decl, at, &context));
    compiler.check_total(at);
    Compilation {
        rules: root.map(|root| Rules { root }),
        errors: compiler.errors,
    }
}

/// Finds the parts of a schema that have rules anywhere, by their addresses. Returns whether the schema itself does.
fn find_rules(schema: &Json, found: &mut HashSet<*const Json>) -> bool {
    let mut has_rules = false;
    match schema {
        Json::Object(keywords) => {
            has_rules = keywords.contains_key(KEYWORD);
            for part in keywords.values() {
                has_rules |= find_rules(part, found);
            }
        }
        Json::Array(items) => {
            for part in items {
                has_rules |= find_rules(part, found);
            }
        }
        _ => {}
    }
    if has_rules {
        found.insert(schema);
    }
    has_rules
}

/// What the place of a schema means for its rules.
#[derive(Clone, Debug)]
struct Context {
    /// Largest number of values here; `None` without a bound.
    cardinality: Option<u64>,
    /// The list around whose items have no old values.
    uncorrelated: Option<FieldPath>,
}

impl Context {
    fn below(&self, count: Option<u64>) -> Self {
        let cardinality = match (self.cardinality, count) {
            (Some(here), Some(count)) => Some(here.saturating_mul(count)),
            _ => None,
        };
        Self {
            cardinality,
            ..self.clone()
        }
    }
}

struct Compiler {
    /// The parts of the schema that have rules; see [`find_rules`].
    with_rules: HashSet<*const Json>,
    errors: Vec<FieldError>,
    /// The costs of expressions, with their paths.
    costs: Vec<(u64, FieldPath)>,
    total: u64,
    kept_patterns: usize,
}

impl Compiler {
    /// Compiles the rules of a schema and below. `structure` is the schema of the same value with its properties, if
    /// `schema` is a part of an `allOf`.
    fn node(
        &mut self,
        schema: &Json,
        structure: &Json,
        decl: &Arc<Decl>,
        at: &FieldPath,
        context: &Context,
    ) -> Option<Node> {
        if is_interrupted() || !self.with_rules.contains(&std::ptr::from_ref(schema)) {
            return None;
        }
        let rules = self.rules(schema, structure, decl, at, context);
        let mut inner = Vec::new();
        for (name, property) in properties(schema).into_iter().flatten() {
            let path = at.child("properties").key(name);
            let property_structure = properties(structure).and_then(|all| all.get(name));
            // Rules about the metadata of the object would not see its fields.
            if let (Some(structure), Some(decl)) = (property_structure, decl.field(name))
                && let Some(node) =
                    self.node(property, structure, decl, &path, &context.below(Some(1)))
            {
                inner.push((name.clone(), node));
            }
        }
        let number = |keyword: &str| structure.get(keyword).and_then(Json::as_u64);
        let element = decl.element().cloned();
        let values = match (values_of(schema), values_of(structure), &element) {
            (Some(values), Some(structure), Some(decl)) => {
                let context = context.below(number("maxProperties"));
                let path = at.child("additionalProperties");
                self.node(values, structure, decl, &path, &context)
            }
            _ => None,
        };
        let topology = topology(structure);
        let items = match (schema.get("items"), structure.get("items"), &element) {
            (Some(items), Some(inner), Some(decl)) => {
                let mut context = context.below(number("maxItems"));
                if !matches!(topology, Topology::Map(_)) && context.uncorrelated.is_none() {
                    context.uncorrelated = Some(at.clone());
                }
                self.node(items, inner, decl, &at.child("items"), &context)
            }
            _ => None,
        };
        let mut all_of = Vec::new();
        let parts = schema.get("allOf").and_then(Json::as_array);
        for (index, part) in parts.into_iter().flatten().enumerate() {
            let path = at.child("allOf").index(index);
            all_of.extend(self.node(part, structure, decl, &path, context));
        }
        let is_empty = rules.is_empty()
            && inner.is_empty()
            && values.is_none()
            && items.is_none()
            && all_of.is_empty();
        let type_name = structure.get("type").and_then(Json::as_str);
        (!is_empty).then(|| Node {
            decl: Arc::clone(decl),
            type_name: type_name.unwrap_or_default().to_owned(),
            rules,
            properties: inner,
            values: values.map(Box::new),
            items: items.map(Box::new),
            topology,
            all_of,
        })
    }

    fn rules(
        &mut self,
        schema: &Json,
        structure: &Json,
        decl: &Arc<Decl>,
        at: &FieldPath,
        context: &Context,
    ) -> Vec<Rule> {
        let declared = schema.get(KEYWORD).and_then(Json::as_array);
        let declared: Vec<ValidationRule<'_>> = declared
            .into_iter()
            .flatten()
            .map(ValidationRule::of)
            .collect();
        let problems = structural::rule_problems(schema, at);
        if !problems.is_empty() {
            self.errors.extend(problems);
            return Vec::new();
        }
        let compiled = declared.iter().enumerate().map(|(index, rule)| {
            let path = at.child(KEYWORD).index(index);
            self.rule(rule, structure, decl, &path, context)
        });
        compiled.collect()
    }

    fn rule(
        &mut self,
        declared: &ValidationRule<'_>,
        structure: &Json,
        decl: &Arc<Decl>,
        at: &FieldPath,
        context: &Context,
    ) -> Rule {
        let has_optional_old = declared.optional_old_self == Some(true);
        let scope = Scope::of_rule(decl, has_optional_old);
        let mut compile = |text: &str| Program::compile(text, &scope, &mut self.kept_patterns);
        let program = compile(declared.rule)
            .map_err(|refusal| match refusal {
                Refusal::Compilation(text) => format!("compilation failed: {text}"),
                Refusal::Instantiation(text) => format!("program instantiation failed: {text}"),
            })
            .and_then(|program| {
                if program.is_condition() {
                    Ok(program)
                } else {
                    Err("cel expression must evaluate to a bool".to_owned())
                }
            });
        let mut message_program = None;
        let mut message_error = None;
        if !declared.message_expression.is_empty() && program.is_ok() {
            match compile(declared.message_expression) {
                Ok(program) if program.is_text() => message_program = Some(program),
                Ok(_) => {
                    message_error = Some("messageExpression must evaluate to a string".to_owned());
                }
                Err(refusal) => {
                    message_error = Some(match refusal {
                        Refusal::Compilation(text) => {
                            format!("messageExpression compilation failed: {text}")
                        }
                        Refusal::Instantiation(text) => {
                            format!("messageExpression instantiation failed: {text}")
                        }
                    });
                }
            }
        }
        let count = context
            .cardinality
            .unwrap_or(MAX_REQUEST / (decl.min_size.saturating_add(1)));
        let path = at.child("rule");
        match &program {
            Ok(program) => {
                let cost = program.cost.max.saturating_mul(count);
                self.observe("estimated rule cost", cost, &path);
                let uncorrelated = context.uncorrelated.as_ref();
                if let Some(list) = uncorrelated.filter(|_| program.uses(OLD)) {
                    let text = format!(
                        "oldSelf cannot be used on the uncorrelatable portion of the schema within {list}"
                    );
                    self.errors
                        .push(FieldError::invalid(&path, declared.rule, &text));
                }
            }
            Err(text) => self.errors.push(FieldError::invalid(&path, declared, text)),
        }
        let uses_old = program.as_ref().is_ok_and(|program| program.uses(OLD));
        if let Some(flag) = declared.optional_old_self.filter(|_| !uses_old) {
            let path = at.child("optionalOldSelf");
            let text = "may not be set if oldSelf is not used in rule";
            self.errors.push(FieldError::invalid(&path, flag, text));
        }
        let path = at.child("messageExpression");
        if let Some(text) = message_error {
            self.errors
                .push(FieldError::invalid(&path, declared, &text));
        }
        if let Some(program) = &message_program {
            self.observe("estimated messageExpression cost", program.cost.max, &path);
        }
        Rule {
            text: declared.rule.to_owned(),
            message: declared.message.to_owned(),
            program,
            message_program,
            reason: match declared.reason {
                Some("FieldValueForbidden") => FieldErrorKind::Forbidden,
                Some("FieldValueRequired") => FieldErrorKind::Required,
                Some("FieldValueDuplicate") => FieldErrorKind::Duplicate,
                _ => FieldErrorKind::Invalid,
            },
            field_path: field_path::normalized(declared.field_path, structure),
            has_optional_old,
        }
    }

    /// Counts the cost of an expression, and reports one that is too high. Cheap ones are not to blame for the sum.
    fn observe(&mut self, name: &str, cost: u64, at: &FieldPath) {
        if cost > MAX_RULE_COST {
            let text = too_expensive(name, cost, MAX_RULE_COST);
            self.errors.push(FieldError::forbidden(at, &text));
        }
        self.total = self.total.saturating_add(cost);
        if cost < WORTH_NAMING {
            return;
        }
        self.costs.push((cost, at.clone()));
        self.costs.sort_by_key(|(cost, _)| std::cmp::Reverse(*cost));
        self.costs.truncate(MOST_EXPENSIVE);
    }

    fn check_total(&mut self, at: &FieldPath) {
        if self.total <= MAX_SCHEMA_COST {
            return;
        }
        for (_, path) in std::mem::take(&mut self.costs) {
            let text = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema";
            self.errors.push(FieldError::forbidden(&path, text));
        }
        let name = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
        let text = too_expensive(name, self.total, MAX_SCHEMA_COST);
        self.errors.push(FieldError::forbidden(at, &text));
    }
}

fn too_expensive(name: &str, cost: u64, limit: u64) -> String {
    let factor = cost as f64 / limit as f64;
    let factor = if factor > 100.0 {
        "more than 100x".to_owned()
    } else if factor < 1.5 {
        format!("{factor:.6}x")
    } else {
        format!("{factor:.1}x")
    };
    format!(
        "{name} exceeds budget by factor of {factor} (try simplifying the rule, or adding maxItems, maxProperties, and \
         maxLength where arrays, maps, and strings are declared)"
    )
}

/// A rule in its schema. Its form in errors is that of kube-apiserver.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "PascalCase")]
struct ValidationRule<'s> {
    rule: &'s str,
    message: &'s str,
    message_expression: &'s str,
    reason: Option<&'s str>,
    field_path: &'s str,
    optional_old_self: Option<bool>,
}

impl<'s> ValidationRule<'s> {
    fn of(rule: &'s Json) -> Self {
        let text = |name: &str| rule.get(name).and_then(Json::as_str);
        Self {
            rule: text("rule").unwrap_or_default(),
            message: text("message").unwrap_or_default(),
            message_expression: text("messageExpression").unwrap_or_default(),
            reason: text("reason"),
            field_path: text("fieldPath").unwrap_or_default(),
            optional_old_self: rule.get("optionalOldSelf").and_then(Json::as_bool),
        }
    }
}
