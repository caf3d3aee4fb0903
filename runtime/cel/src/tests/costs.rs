//! Costs of rules as those of cel-go 0.26.0 below Kubernetes 1.36: `costs.json` has the answers of Kubernetes' own
//! libraries, from `tests/cel-costs`.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value as Json;

use crate::program::Program;
use crate::schema::Decl;

#[derive(Deserialize)]
struct Table {
    subjects: BTreeMap<String, Subject>,
    rules: Vec<Answer>,
}

#[derive(Deserialize)]
struct Subject {
    schema: Json,
}

#[derive(Deserialize)]
struct Answer {
    on: String,
    rule: String,
    estimate: Option<u64>,
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
        let program = Program::compile(&answer.rule, decl, false, &mut 0).map_err(String::from);
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
