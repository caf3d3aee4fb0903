//! The definitions over a server: it refuses those of `tests/corpus/refused.txt`, with these causes; of each other one an
//! object is created, listed as a table, explained by kubectl and deleted.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::time::Duration;

use apiloom_tests::{Answer, Client, Kubectl, Server, repository};
use serde_json::Value;

use crate::refused::TABLE;
use crate::{DEFINITIONS, Definition, objects};

const DEFINITIONS_PATH: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// Time for what a server does after it has answered.
const PATIENCE: Duration = Duration::from_secs(20);

/// As many kubectl run at a time.
const THREADS: usize = 4;

fn path(definition: &Definition) -> String {
    format!("{DEFINITIONS_PATH}/{}", definition.name())
}

/// Creates a definition, or replaces that of another release.
async fn apply(client: &Client, definition: &Definition) -> Answer {
    let present = client.get(&path(definition)).await;
    if present.code == 404 {
        return client.post(DEFINITIONS_PATH, &definition.document).await;
    }
    let mut document = definition.document.clone();
    document["metadata"]["resourceVersion"] = present.json()["metadata"]["resourceVersion"].clone();
    client.put(&path(definition), &document).await
}

/// The causes of a refusal, one a line.
fn causes(definition: &Definition, answer: &Answer) -> String {
    let Definition { file, .. } = definition;
    assert_eq!(answer.code, 422, "{file}: {}", answer.text());
    let status = answer.json();
    let mut lines = format!("{file}\n");
    for cause in status["details"]["causes"].as_array().unwrap() {
        let field = cause["field"].as_str().unwrap();
        writeln!(lines, "    {field}: {}", cause["message"].as_str().unwrap()).unwrap();
    }
    lines
}

/// Asks until an answer fits.
async fn wait(client: &Client, path: &str, fits: impl Fn(&Answer) -> bool) -> Answer {
    wait_for(path, async || client.get(path).await, fits).await
}

async fn wait_for(
    path: &str,
    ask: impl AsyncFn() -> Answer,
    fits: impl Fn(&Answer) -> bool,
) -> Answer {
    let started = std::time::Instant::now();
    loop {
        let answer = ask().await;
        if fits(&answer) {
            return answer;
        }
        assert!(started.elapsed() < PATIENCE, "{path}: {}", answer.text());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn is_established(answer: &Answer) -> bool {
    let document = answer.json();
    let conditions = document["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|condition| condition["type"] == "Established" && condition["status"] == "True")
}

/// Creates the minimal object in the version that is stored, which all of them serve, lists it and deletes it.
async fn one_object(client: &Client, definition: &Definition) {
    let file = &definition.file;
    let versions = definition.versions().iter();
    let mut stored = versions.filter(|version| version["storage"] == true);
    let version = stored.next().unwrap();
    assert_eq!(version["served"], true, "{file}: no object was created");
    let spec = &definition.document["spec"];
    let object = objects::minimal(definition, version);
    let namespace = if spec["scope"] == "Namespaced" {
        "namespaces/default/"
    } else {
        ""
    };
    let name = object["metadata"]["name"].as_str().unwrap();
    let api_version = object["apiVersion"].as_str().unwrap();
    let plural = spec["names"]["plural"].as_str().unwrap();
    let resource = format!("/apis/{api_version}/{namespace}{plural}");
    // The definition before it, of another release, may be served for a moment.
    let create = async || client.post(&resource, &object).await;
    wait_for(&resource, create, |answer| answer.code == 201).await;

    let names = |columns: &Value, name: &str| -> Vec<Value> {
        let columns = columns.as_array().into_iter().flatten();
        columns.map(|column| column[name].clone()).collect()
    };
    let mut expected = names(&version["additionalPrinterColumns"], "name");
    expected.retain(|column| column != "Name");
    if expected.is_empty() {
        expected.push("Age".into());
    }
    let accept = "application/json;as=Table;v=v1;g=meta.k8s.io";
    let list = async || {
        let headers = &[("accept", accept)];
        client.call("GET", &resource, headers, "").await
    };
    let table = wait_for(&resource, list, |answer| {
        let shown = names(&answer.json()["columnDefinitions"], "name");
        shown.get(1..) == Some(&expected)
    });
    let rows = table.await.json()["rows"].as_array().map(Vec::len);
    assert_eq!(rows, Some(1), "{file}");

    let deleted = client
        .delete(&format!("{resource}/{name}"), &Value::Null)
        .await;
    assert_eq!(deleted.code, 200, "{file}: {}", deleted.text());
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
                    assert!(
                        output.stdout.contains(&format!("KIND:       {kind}\n")),
                        "{file}"
                    );
                    assert!(
                        output.stdout.contains("FIELDS:\n"),
                        "{file}: {}",
                        output.stdout
                    );
                }
            });
        }
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_accepts_them_or_refuses_them_as_listed() {
    let server = Server::start(&[]);
    let client = server.client();
    let mut refused = String::new();
    let mut accepted = BTreeMap::new();
    let is_another_release = |definition: &&Definition| definition.file.contains('@');
    let (others, first): (Vec<_>, Vec<_>) = DEFINITIONS.iter().partition(is_another_release);
    for release in [first, others] {
        let mut served = Vec::new();
        for definition in release {
            let answer = apply(&client, definition).await;
            if matches!(answer.code, 200 | 201) {
                accepted.insert(definition.name().to_owned(), definition);
                served.push(definition);
            } else {
                refused.push_str(&causes(definition, &answer));
            }
        }
        for definition in &served {
            wait(&client, &path(definition), is_established).await;
            one_object(&client, definition).await;
        }
        tokio::task::block_in_place(|| explain(&server, &served));
    }
    for definition in accepted.values() {
        let deleted = client.delete(&path(definition), &Value::Null).await;
        assert_eq!(deleted.code, 200, "{}: {}", definition.file, deleted.text());
    }
    for definition in accepted.values() {
        wait(&client, &path(definition), |answer| answer.code == 404).await;
    }
    let listed = fs::read_to_string(repository().join(TABLE)).unwrap();
    assert!(refused == listed, "{TABLE} is not\n{refused}");
}
