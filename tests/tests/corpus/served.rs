//! The definitions over a server: it answers as Kubernetes' own server does (`outcomes.rs`), refuses those of
//! `tests/corpus/refused.txt` with these causes, and kubectl explains each other one.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use apiloom_tests::oracle::Oracle;
use apiloom_tests::{Kubectl, Server, build, corpus, repository};
use serde_json::Value;

use crate::outcomes::{self, Outcomes, Pass};
use crate::refused::TABLE;
use crate::{DEFINITIONS, Definition, read_definitions};

/// As many kubectl run at a time.
const THREADS: usize = 4;

/// Objects of the kinds, as the projects publish them: the files beside the folders of definitions.
fn examples(root: &Path) -> Vec<Value> {
    let entries = fs::read_dir(root).unwrap();
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| {
        path.extension()
            .is_some_and(|extension| extension == "yaml")
    });
    files.sort();
    let documents = files.iter().flat_map(|path| {
        let text = fs::read_to_string(path).unwrap();
        let documents: Result<Vec<Value>, _> = serde_saphyr::from_multiple(&text);
        documents.unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    });
    documents.collect()
}

/// The causes of a refusal, one a line.
fn causes(file: &str, outcomes: &Outcomes) -> String {
    let answer = &outcomes[&format!("{file} definition")];
    assert_eq!(answer.code, 422, "{file}: {answer}");
    let mut lines = format!("{file}\n");
    for cause in answer.body["details"]["causes"].as_array().unwrap() {
        let field = cause["field"].as_str().unwrap();
        writeln!(lines, "    {field}: {}", cause["message"].as_str().unwrap()).unwrap();
    }
    lines
}

/// Explains all kinds, several at a time.
fn explain(server: &Server, definitions: &[&Definition]) {
    std::thread::scope(|scope| {
        for part in definitions.chunks(definitions.len().div_ceil(THREADS)) {
            scope.spawn(move || {
                let kubectl = Kubectl::new("1.36", server.kubeconfig());
                for definition in part {
                    let output = kubectl.run(&["explain", "--recursive", definition.name()], "");
                    let Definition { file, document, .. } = definition;
                    assert_eq!(output.code, 0, "{file}: {}", output.stderr);
                    let kind = document["spec"]["names"]["kind"].as_str().unwrap();
                    let head = format!("KIND:       {kind}\n");
                    assert!(output.stdout.contains(&head), "{file}");
                    let said = &output.stdout;
                    assert!(said.contains("FIELDS:\n"), "{file}: {said}");
                }
            });
        }
    });
}

fn start() -> Server {
    Server::start_binary(&build("apiloom-serve"), &["--storage-backend=memory"])
}

/// The definitions of a pass that were accepted, of whose kinds the minimal object was created and applied.
fn accepted<'d>(pass: &Pass<'d>, outcomes: &Outcomes) -> Vec<&'d Definition> {
    let definitions = pass.definitions.iter().copied();
    let accepted = definitions.filter(|definition| {
        let file = &definition.file;
        if outcomes[&format!("{file} definition")].code != 201 {
            return false;
        }
        for (request, code) in [("created", 201), ("applied", 200)] {
            let answer = &outcomes[&format!("{file} minimal {request}")];
            assert_eq!(answer.code, code, "{file}: {answer}");
        }
        let rows = outcomes[&format!("{file} table")].body["rows"].as_array();
        assert!(rows.is_some_and(|rows| !rows.is_empty()), "{file}");
        true
    });
    accepted.collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_are_those_of_the_oracle() {
    let folders = corpus::folders();
    let examples: Vec<_> = folders.iter().flat_map(|root| examples(root)).collect();
    let passes = outcomes::passes(&DEFINITIONS);
    let mut ours = Vec::new();
    let mut refused = Vec::new();
    for pass in &passes {
        let server = start();
        let outcomes = pass.ask(&server.client(), &examples).await;
        let accepted = accepted(pass, &outcomes);
        let files = pass.definitions.iter().map(|definition| &definition.file);
        let kept = |file: &&String| accepted.iter().any(|definition| definition.file == **file);
        refused.extend(
            files
                .filter(|file| !kept(file))
                .map(|file| causes(file, &outcomes)),
        );
        // Those of the next pass have replaced some of them.
        tokio::task::block_in_place(|| explain(&server, &accepted));
        ours.push(outcomes);
    }
    refused.sort();
    let listed = fs::read_to_string(repository().join(TABLE)).unwrap();
    let refused = refused.concat();
    assert!(refused == listed, "{TABLE} is not\n{refused}");
    outcomes::compare(&passes, &ours, &examples).await;
}

/// With a folder of definitions of the same form in `APILOOM_CORPUS`, those are compared with what the oracle answers now.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_definitions_are_answered_alike() {
    let Some(root) = std::env::var_os("APILOOM_CORPUS") else {
        return;
    };
    let root = Path::new(&root);
    let examples = examples(root);
    let definitions = read_definitions(root);
    let mut shown = String::new();
    for pass in outcomes::passes(&definitions) {
        let oracle = Oracle::start().expect("target/tools/oracle-1.36-cel-0.27/oracle");
        let theirs = pass.ask(&oracle.client(), &examples).await;
        let ours = pass.ask(&start().client(), &examples).await;
        for text in outcomes::differences(&theirs, &ours).values() {
            writeln!(shown, "{text}").unwrap();
        }
    }
    assert!(shown.is_empty(), "{shown}");
}
