//! The answers of the oracle that are kept: a line of JSON each.

use apiloom_tests::oracle::Answer;
use serde_json::{Value, json};

use crate::case::Case;

/// The answers to all steps, a line each.
pub(crate) fn to_lines(cases: &[Case], answers: &[Answer]) -> String {
    let names = cases.iter().flat_map(Case::named_steps);
    let lines = names.zip(answers).map(|((name, _), answer)| {
        let Answer {
            code,
            warnings,
            body,
        } = answer;
        format!("{}\n", json!([name, code, warnings, body]))
    });
    lines.collect()
}

/// Reads them; panics if they are of other steps.
pub(crate) fn of_lines(cases: &[Case], text: &str) -> Vec<Answer> {
    let mut lines = text.lines();
    let mut answers = Vec::new();
    for (name, _) in cases.iter().flat_map(Case::named_steps) {
        let line = lines.next().unwrap_or_default();
        let kept: (String, u16, Vec<String>, Value) = serde_json::from_str(line)
            .unwrap_or_else(|error| panic!("no answer is kept to {name}: {error}"));
        assert_eq!(kept.0, name, "the answers kept are those to other steps");
        let (_, code, warnings, body) = kept;
        answers.push(Answer {
            code,
            warnings,
            body,
        });
    }
    answers
}
