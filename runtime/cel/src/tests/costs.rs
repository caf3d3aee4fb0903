//! Costs of rules as those of cel-go 0.26.0 below Kubernetes 1.36: `costs.json` has the answers of Kubernetes' own
//! libraries, from `tests/cel-costs`.

use std::collections::BTreeMap;
use std::sync::Arc;

use apiloom_schema::field::FieldPath;
use serde::Deserialize;
use serde_json::Value as Json;

use crate::compile;
use crate::program::Program;
use crate::schema::Decl;
use crate::scope::Scope;
use crate::value::Value;

#[derive(Deserialize)]
struct Table {
    subjects: BTreeMap<String, Subject>,
    rules: Vec<Answer>,
}

#[derive(Deserialize)]
struct Subject {
    schema: Json,
    document: Json,
}

#[derive(Deserialize)]
struct Answer {
    on: String,
    rule: String,
    estimate: Option<u64>,
    /// None if the evaluation fails, or if its cost depends on the order of a map's entries.
    cost: Option<u64>,
    error: Option<String>,
}

fn table() -> Table {
    serde_json::from_str(include_str!("costs.json")).unwrap()
}

/// Compiles each rule of the table, and checks that `problem` finds nothing wrong.
#[track_caller]
fn check_all(problem: impl Fn(&Answer, Result<Program, String>) -> Option<String>) {
    let table = table();
    let decls: BTreeMap<&str, Arc<Decl>> = table
        .subjects
        .iter()
        .map(|(name, subject)| {
            (
                name.as_str(),
                Arc::new(Decl::of(&subject.schema, false).unwrap()),
            )
        })
        .collect();
    let mut wrong = Vec::new();
    for answer in &table.rules {
        let decl = &decls[&*answer.on];
        let program = Program::compile(&answer.rule, &Scope::of_rule(decl, false), &mut 0)
            .map_err(String::from);
        if let Some(text) = problem(answer, program) {
            wrong.push(format!("{}: {}\n    {text}", answer.on, answer.rule));
        }
    }
    let all = table.rules.len();
    assert!(
        wrong.is_empty(),
        "{} of {all}:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn estimates_are_those_of_kubernetes() {
    check_all(|answer, program| {
        let condition = program.map(|program| program.is_condition().then_some(program));
        let found = condition.map(|program| program.map(|program| program.cost.max));
        let is_same = found.as_ref().ok().copied().flatten() == answer.estimate;
        (!is_same).then(|| format!("{found:?}, not {:?} {:?}", answer.estimate, answer.error))
    });
}

#[derive(Deserialize)]
struct Definition {
    schema: Json,
    errors: Vec<String>,
}

#[test]
fn definitions_have_the_errors_of_kubernetes() {
    let all: Vec<Definition> = serde_json::from_str(include_str!("definitions.json")).unwrap();
    let root = FieldPath::root().child("openAPIV3Schema");
    let mut wrong = Vec::new();
    for definition in &all {
        let errors = compile(&definition.schema, &root).errors;
        let found: Vec<String> = errors.iter().map(ToString::to_string).collect();
        // Properties have no order there. Those that are named for the sum have.
        let sorted = |errors: &[String]| {
            let mut errors = errors.to_vec();
            errors.sort();
            errors
        };
        let blamed = |errors: &[String]| {
            let all = errors
                .iter()
                .filter(|error| error.contains("contributed to"));
            all.cloned().collect::<Vec<String>>()
        };
        let is_same = sorted(&found) == sorted(&definition.errors)
            && blamed(&found) == blamed(&definition.errors);
        if !is_same {
            let (found, expected) = (found.join("\n  "), definition.errors.join("\n  "));
            wrong.push(format!(
                "{}\n  {found}\nnot\n  {expected}",
                definition.schema
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {}:\n{}",
        wrong.len(),
        all.len(),
        wrong.join("\n")
    );
}

#[test]
fn errors_of_types_are_those_of_kubernetes() {
    check_all(|answer, program| {
        let expected = answer
            .error
            .as_deref()?
            .strip_prefix("compilation failed: ");
        let found = program.err();
        let is_same = found.as_deref() == expected;
        (!is_same).then(|| format!("{found:?}\n    {expected:?}"))
    });
}

/// Whether a rule costs more than in Kubernetes on purpose: its work has another measure there, or none.
fn is_dear_on_purpose(rule: &str) -> bool {
    const FUNCTIONS: [&str; 5] = ["findAll(", "validate(", ".format(", "getQuery(", "isURL("];
    // Patterns that are compiled when the rule runs, and conversions of literals, which are done there before.
    let has_late_pattern = rule.contains(".matches(self") || rule.contains(".find(self");
    let is_global = rule.contains(" matches(") || rule.starts_with("matches(");
    let has_conversion = ["duration('", "timestamp('"]
        .iter()
        .any(|part| rule.contains(part));
    has_late_pattern
        || is_global
        || has_conversion
        || FUNCTIONS.iter().any(|name| rule.contains(name))
}

/// Evaluations cost as much as in Kubernetes, and a tenth for each step that costs nothing there.
#[test]
fn evaluations_cost_as_in_kubernetes() {
    let table = table();
    let (mut wrong, mut failed, mut exact, mut checked) = (Vec::new(), 0, 0, 0);
    for answer in &table.rules {
        let Some(expected) = answer.cost else {
            continue;
        };
        if is_dear_on_purpose(&answer.rule) {
            continue;
        }
        let subject = &table.subjects[&answer.on];
        let decl = Arc::new(Decl::of(&subject.schema, false).unwrap());
        let program =
            Program::compile(&answer.rule, &Scope::of_rule(&decl, false), &mut 0).unwrap();
        let this = Value::of(&subject.document, &decl).unwrap();
        let values = [this.clone(), this];
        let (found, cost) = program.run(&values, u64::MAX);
        // These fail here alone: values of several types that are compared, and what the machine has no data for.
        if found.is_err() {
            failed += 1;
            continue;
        }
        if cost < expected || cost > 2 * expected + 12 {
            wrong.push(format!("{}: {cost}, not {expected}", answer.rule));
        }
        checked += 1;
        exact += usize::from(cost == expected);
    }
    assert!(
        wrong.is_empty(),
        "{} of {checked}:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert!(failed < 10 && checked > 1_800, "{failed}, {checked}");
    assert!(exact * 10 > checked * 8, "{exact} of {checked}");
}
