//! The same requests to this server and to Kubernetes' own server of CustomResourceDefinitions (`tests/oracle`), which
//! `tests/tools` builds where it can. Every answer must be the same, apart from what `differences.txt` lists with a reason.
//!
//! The cases are `cases/NAME.yaml`, and those of `random.rs`. `answers/NAME.jsonl` keeps what the oracle answered, for machines
//! without it; where it is there, it is asked again, and must still give the answers that are kept. `UPDATE=1` writes them.
//! `APILOOM_ORACLE_FILES=NAME,NAME` asks for these files alone.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on panics, and says where"
)]

mod case;
mod compiled;
mod differences;
mod kept;
mod published;
mod random;
mod seen;
mod webhook;

use std::fmt::Write as _;
use std::path::PathBuf;

use apiloom_tests::oracle::{Answer, Oracle};
use apiloom_tests::{Server, build, repository};

use crate::case::Case;
use crate::differences::Differences;
use crate::webhook::Webhook;

/// The files of cases.
const FILES: &[&str] = &[
    // The first, as its documents tell of all kinds that the oracle has.
    "openapi",
    "answers",
    "applies",
    "cel",
    "cel_literals",
    "cel_values",
    "columns",
    "definitions",
    "deletion",
    "discovery",
    "field_validation",
    "field_validation_compiled",
    "lists",
    "patches",
    "paths",
    "patterns",
    "pruning",
    "published",
    "ratcheting",
    "seeds",
    "values",
    "versions",
    "watches",
    "webhooks",
];

/// The seed of the cases whose answers are kept.
const SEED: u64 = 36;
/// How many definitions the random cases have, with 23 requests each.
const RANDOM_CASES: usize = 100;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_are_those_of_the_oracle() {
    let oracle = Oracle::start();
    let mut sets: Vec<_> = FILES.iter().map(|name| (*name, case::read(name))).collect();
    sets.push(("random", random::cases(SEED, RANDOM_CASES)));
    if let Ok(wanted) = std::env::var("APILOOM_ORACLE_FILES") {
        sets.retain(|(name, _)| wanted.split(',').any(|wanted| wanted == *name));
    }
    let mut unequal = String::new();
    for (name, cases) in &sets {
        let theirs = expected(name, cases, oracle.as_ref()).await;
        let listed = Differences::read(name);
        unequal += &compare(name, cases, &theirs, &ours(cases).await, listed);
    }
    assert!(unequal.is_empty(), "{unequal}");
}

/// The cases of the seeds in `APILOOM_ORACLE_SEEDS`, such as `1000,2000`, whose answers only the oracle has.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_seeds_are_answered_alike() {
    let seeds = std::env::var("APILOOM_ORACLE_SEEDS").unwrap_or_default();
    let mut unequal = String::new();
    for seed in seeds.split(',').filter(|seed| !seed.is_empty()) {
        let oracle = Oracle::start().expect("target/tools/oracle-1.36-cel-0.27/oracle");
        let cases = random::cases(seed.parse().unwrap(), RANDOM_CASES);
        let client = oracle.client();
        let (theirs, ours) = tokio::join!(ask(&client, &cases), ours(&cases));
        unequal += &compare("random", &cases, &theirs, &ours, Differences::default());
    }
    assert!(unequal.is_empty(), "{unequal}");
}

#[test]
fn there_are_enough_steps() {
    let named = FILES.iter().flat_map(|name| case::read(name));
    let steps: usize = named.map(|case| case.all_steps().count()).sum();
    assert!(steps >= 1_500, "{steps} steps");
    let random = random::cases(SEED, RANDOM_CASES);
    let steps: usize = random.iter().map(|case| case.all_steps().count()).sum();
    assert!(steps >= 2_000, "{steps} random steps");
}

fn folder() -> PathBuf {
    repository().join("tests/tests/oracle")
}

/// What the oracle answers; where there is none, what it answered.
async fn expected(name: &str, cases: &[Case], oracle: Option<&Oracle>) -> Vec<Answer> {
    let file = folder().join(format!("answers/{name}.jsonl"));
    let kept = std::fs::read_to_string(&file).unwrap_or_default();
    let Some(oracle) = oracle else {
        return kept::of_lines(cases, &kept);
    };
    let theirs = ask(&oracle.client(), cases).await;
    let lines = kept::to_lines(cases, &theirs);
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&file, &lines).unwrap();
    } else {
        let pairs = lines.lines().zip(kept.lines());
        let stale: Vec<_> = pairs.filter(|(new, old)| new != old).collect();
        assert!(
            stale.is_empty(),
            "{name}: the oracle answers otherwise than is kept: {stale:#?}"
        );
        let same = lines.lines().count() == kept.lines().count();
        assert!(
            same,
            "{name}: there are other steps: UPDATE=1 writes their answers"
        );
    }
    theirs
}

/// What this server answers.
async fn ours(cases: &[Case]) -> Vec<Answer> {
    // The oracle has no controllers either but those of definitions.
    let controllers = "--controllers=*,-garbage-collector-controller,-namespace-controller";
    let flags = ["--storage-backend=memory", controllers];
    let server = Server::start_binary(&build("apiloom-serve"), &flags);
    ask(&server.client(), cases).await
}

async fn ask(client: &apiloom_tests::Client, cases: &[Case]) -> Vec<Answer> {
    let webhook = Webhook::start().await;
    let mut answers = Vec::new();
    // All at first: the oracle makes the first create of a new kind wait for two seconds.
    let mut refusals = Vec::new();
    for case in cases {
        refusals.push(case.define(client, &webhook).await);
    }
    for (case, refusal) in cases.iter().zip(refusals) {
        match refusal {
            Some(refusal) => answers.extend(case.all_steps().map(|_| refusal.clone())),
            None => answers.extend(case.ask(client).await),
        }
    }
    answers
}

/// Tells which answers differ that are not listed as differences, and which of these are none.
fn compare(
    name: &str,
    cases: &[Case],
    theirs: &[Answer],
    ours: &[Answer],
    mut listed: Differences,
) -> String {
    let mut unequal = String::new();
    let mut pairs = theirs.iter().zip(ours);
    for case in cases {
        let steps = case.named_steps().zip(pairs.by_ref());
        let differences: Vec<_> = steps
            .filter(|((id, _), (theirs, ours))| theirs != ours && !listed.expect(id))
            .collect();
        if let (false, Some(definition)) = (differences.is_empty(), &case.definition) {
            let _ = writeln!(unequal, "{name}: {}: {definition}", case.name);
        }
        for ((id, step), (theirs, ours)) in differences {
            let _ = writeln!(
                unequal,
                "{name}: {id}: {step}\n  oracle: {theirs}\n  ours:   {ours}"
            );
        }
    }
    for unused in listed.unused() {
        let _ = writeln!(
            unequal,
            "{name}: {unused} is listed and makes no difference"
        );
    }
    unequal
}
