//! What a server answers to the definitions and to objects of their kinds. It must be what Kubernetes' own server answers: of
//! that `tests/corpus/outcomes.txt` keeps a digest of each answer, which UPDATE=1 writes where the oracle is. What differs is
//! listed in `tests/corpus/differences.txt` with a reason.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::time::{Duration, Instant};

use apiloom_tests::oracle::{Answer, Oracle};
use apiloom_tests::{Answer as Response, Client, repository};
use serde_json::{Value, json};

use crate::{Definition, objects, sum_of};

const KEPT: &str = "tests/corpus/outcomes.txt";
const DIFFERENCES: &str = "tests/corpus/differences.txt";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";

/// Time for what a server does after it has answered.
const PATIENCE: Duration = Duration::from_secs(30);

/// Answers by what was asked: the file of the definition, and the request.
pub(crate) type Outcomes = BTreeMap<String, Answer>;

/// Definitions of different names, which one server has at the same time, and those that replace some of them afterwards.
pub(crate) struct Pass<'d> {
    pub(crate) definitions: Vec<&'d Definition>,
    replacements: Vec<&'d Definition>,
}

/// Puts each definition into the first pass that has none of its name.
pub(crate) fn passes(definitions: &[Definition]) -> Vec<Pass<'_>> {
    let mut passes: Vec<Vec<&Definition>> = Vec::new();
    for definition in definitions {
        let is_free = |pass: &&mut Vec<&Definition>| {
            pass.iter().all(|other| other.name() != definition.name())
        };
        match passes.iter_mut().find(is_free) {
            Some(pass) => pass.push(definition),
            None => passes.push(vec![definition]),
        }
    }
    let following = passes.iter().skip(1).cloned().chain([Vec::new()]);
    let following: Vec<_> = following.collect();
    passes
        .into_iter()
        .zip(following)
        .map(|(definitions, replacements)| Pass {
            definitions,
            replacements,
        })
        .collect()
}

impl Pass<'_> {
    /// What a new server answers. `examples` are objects that the projects publish.
    pub(crate) async fn ask(&self, client: &Client, examples: &[Value]) -> Outcomes {
        let mut outcomes = Outcomes::new();
        let mut accepted = Vec::new();
        for definition in &self.definitions {
            let answer = client.post(DEFINITIONS, &definition.document).await;
            if answer.code == 201 {
                accepted.push(*definition);
            }
            let id = format!("{} definition", definition.file);
            outcomes.insert(id, Answer::of(&answer, false));
        }
        for definition in &accepted {
            let stored = established(client, definition).await;
            outcomes.insert(format!("{} stored", definition.file), stored);
        }
        for definition in &accepted {
            let asked = Kind::of(definition).ask(client, examples).await;
            let named = asked.into_iter();
            outcomes
                .extend(named.map(|(id, answer)| (format!("{} {id}", definition.file), answer)));
        }
        for definition in &self.replacements {
            if let Some(answer) = replace(client, definition).await {
                outcomes.insert(format!("{} replaced", definition.file), answer);
            }
        }
        outcomes
    }
}

/// Replaces a definition of the same name, if there is one.
async fn replace(client: &Client, definition: &Definition) -> Option<Answer> {
    let path = format!("{DEFINITIONS}/{}", definition.name());
    let started = Instant::now();
    loop {
        let present = client.get(&path).await;
        if present.code != 200 {
            return None;
        }
        let mut document = definition.document.clone();
        document["metadata"]["resourceVersion"] =
            present.json()["metadata"]["resourceVersion"].clone();
        let answer = client.put(&path, &document).await;
        // Its conditions may be written at the same time.
        if answer.code != 409 {
            return Some(without_status(Answer::of(&answer, false)));
        }
        assert!(started.elapsed() < PATIENCE, "{path}: {}", answer.text());
    }
}

/// The answer without conditions, which follow a write at any time.
fn without_status(mut answer: Answer) -> Answer {
    if answer.code < 300
        && let Some(fields) = answer.body.as_object_mut()
    {
        fields.remove("status");
    }
    answer
}

/// The definition when its names are accepted and its kind is served.
async fn established(client: &Client, definition: &Definition) -> Answer {
    let path = format!("{DEFINITIONS}/{}", definition.name());
    let group = definition.document["spec"]["group"].as_str().unwrap();
    let started = Instant::now();
    loop {
        let answer = client.get(&path).await;
        let document = answer.json();
        let conditions = document["status"]["conditions"].as_array();
        let is_established = conditions
            .into_iter()
            .flatten()
            .any(|condition| condition["type"] == "Established" && condition["status"] == "True");
        if is_established {
            let discovered = client.get(&format!("/apis/{group}")).await;
            if discovered.text().contains("preferredVersion") {
                let mut answer = Answer::of(&answer, false);
                let conditions = &mut answer.body["status"]["conditions"];
                let conditions = conditions.as_array_mut().unwrap();
                conditions.sort_by_cached_key(|condition| condition["type"].to_string());
                return answer;
            }
        }
        assert!(started.elapsed() < PATIENCE, "{path}: {}", answer.text());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// The answer of a kind that is served: a new one is found a moment later, and its caches are filled.
async fn when_ready(ask: impl AsyncFn() -> Response) -> Response {
    let started = Instant::now();
    loop {
        let answer = ask().await;
        if ![404, 429].contains(&answer.code) {
            return answer;
        }
        assert!(started.elapsed() < PATIENCE, "{}", answer.text());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// The kind of a definition, in the version that is stored.
struct Kind<'d> {
    definition: &'d Definition,
    version: &'d Value,
    collection: String,
}

impl<'d> Kind<'d> {
    fn of(definition: &'d Definition) -> Self {
        let spec = &definition.document["spec"];
        let mut stored = definition.versions().iter();
        let version = stored.find(|version| version["storage"] == true).unwrap();
        let namespace = if spec["scope"] == "Namespaced" {
            "namespaces/default/"
        } else {
            ""
        };
        let [group, version_name, plural] =
            [&spec["group"], &version["name"], &spec["names"]["plural"]]
                .map(|text| text.as_str().unwrap());
        Self {
            definition,
            version,
            collection: format!("/apis/{group}/{version_name}/{namespace}{plural}"),
        }
    }

    async fn ask(&self, client: &Client, examples: &[Value]) -> Vec<(String, Answer)> {
        let mut asked = Vec::new();
        if self.version["served"] != true {
            return asked;
        }
        let minimal = objects::minimal(self.definition, self.version);
        let mut written = self.write(client, "minimal", &minimal, &mut asked).await;
        for example in self.examples(examples) {
            let name = format!("example {}", example["metadata"]["name"]);
            written.extend(self.write(client, &name, &example, &mut asked).await);
        }
        let headers = [("accept", TABLE)];
        let table = when_ready(async || {
            let headers = &headers;
            client.call("GET", &self.collection, headers, "").await
        });
        let table = table.await;
        asked.push(("table".to_owned(), Answer::of(&table, true)));
        for path in written {
            client.delete(&path, &Value::Null).await;
        }
        asked
    }

    /// Creates an object and applies it, also as another one; returns the paths of what there may be now.
    async fn write(
        &self,
        client: &Client,
        name: &str,
        object: &Value,
        asked: &mut Vec<(String, Answer)>,
    ) -> BTreeSet<String> {
        let create = format!(
            "{}?fieldManager=creator&fieldValidation=Warn",
            self.collection
        );
        let created = when_ready(async || client.post(&create, object).await).await;
        asked.push((format!("{name} created"), Answer::of(&created, true)));
        let mut paths = BTreeSet::new();
        let own = object["metadata"]["name"].as_str().unwrap();
        for (id, target) in [
            ("applied", own.to_owned()),
            ("applied anew", format!("{own}-new")),
        ] {
            let mut object = object.clone();
            object["metadata"]["name"] = json!(target);
            let path = format!("{}/{target}", self.collection);
            let apply = format!("{path}?fieldManager=applier&force=true");
            let headers = [("content-type", "application/apply-patch+yaml")];
            let applied = when_ready(async || {
                let body = object.to_string();
                client.call("PATCH", &apply, &headers, body).await
            });
            let applied = applied.await;
            asked.push((format!("{name} {id}"), Answer::of(&applied, true)));
            paths.insert(path);
        }
        paths
    }

    /// The examples of the kind in this version, each name once, in the namespace of the requests.
    fn examples(&self, examples: &[Value]) -> impl Iterator<Item = Value> {
        let spec = &self.definition.document["spec"];
        let [group, version] = [&spec["group"], &self.version["name"]];
        let api_version = format!("{}/{}", group.as_str().unwrap(), version.as_str().unwrap());
        let mut names = BTreeSet::new();
        let fits = examples.iter().filter(move |example| {
            example["apiVersion"] == *api_version && example["kind"] == spec["names"]["kind"]
        });
        let fits = fits.filter(move |example| {
            let name = example["metadata"]["name"].as_str();
            name.is_some_and(|name| names.insert(name.to_owned()))
        });
        fits.map(|example| {
            let mut example = example.clone();
            let metadata = example["metadata"].as_object_mut().unwrap();
            metadata.remove("namespace");
            example
        })
    }
}

/// The line of an answer in the table of those that are kept.
fn line(id: &str, answer: &Answer) -> String {
    let Answer {
        code,
        warnings,
        body,
    } = answer;
    let digest = sum_of(json!([warnings, body]).to_string().as_bytes());
    format!("{id} {code} {digest}\n")
}

/// What may be answered otherwise.
struct Difference {
    beginning: String,
    end: String,
}

impl Difference {
    /// Reads lines `BEGINNING*END | REASON`, by what was asked.
    fn listed() -> Vec<Self> {
        let text = fs::read_to_string(repository().join(DIFFERENCES)).unwrap();
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let read = lines.map(|line| {
            let (asked, reason) = line.split_once(" | ").expect("ASKED | REASON");
            assert!(!reason.trim().is_empty(), "no reason: {line}");
            let (beginning, end) = asked.split_once('*').expect("BEGINNING*END");
            let [beginning, end] = [beginning, end].map(str::to_owned);
            Self { beginning, end }
        });
        read.collect()
    }

    fn is_of(&self, id: &str) -> bool {
        id.starts_with(&self.beginning) && id.ends_with(&self.end)
    }
}

/// Compares the answers of a server to all passes with those of the oracle: the kept ones, and where one is another, what the
/// oracle answers now, if it is there.
pub(crate) async fn compare(passes: &[Pass<'_>], ours: &[Outcomes], examples: &[Value]) {
    let path = repository().join(KEPT);
    let is_update = std::env::var_os("UPDATE").is_some();
    let kept = fs::read_to_string(&path).unwrap_or_default();
    let kept: BTreeSet<&str> = kept.lines().collect();
    let differs = |(id, answer): &(&String, &Answer)| !kept.contains(line(id, answer).trim_end());
    let listed = Difference::listed();
    let is_listed = |id: &str| listed.iter().any(|difference| difference.is_of(id));
    let mut differing = BTreeMap::new();
    let mut lines = String::new();
    for (pass, ours) in passes.iter().zip(ours) {
        let other: Vec<_> = ours.iter().filter(differs).collect();
        let oracle = (is_update || other.iter().any(|(id, _)| !is_listed(id)))
            .then(Oracle::start)
            .flatten();
        let Some(oracle) = oracle else {
            assert!(
                !is_update,
                "UPDATE=1 needs target/tools/oracle-1.36-cel-0.27/oracle"
            );
            let shown = other.iter().map(|(id, ours)| {
                (
                    (*id).clone(),
                    format!("{id}: not what is kept of the oracle's answer: {ours}"),
                )
            });
            differing.extend(shown);
            continue;
        };
        let theirs = pass.ask(&oracle.client(), examples).await;
        lines.extend(theirs.iter().map(|(id, answer)| line(id, answer)));
        differing.extend(differences(&theirs, ours));
    }
    if is_update {
        fs::write(&path, &lines).unwrap();
    } else {
        let asked: usize = ours.iter().map(BTreeMap::len).sum();
        assert_eq!(
            asked,
            kept.len(),
            "{KEPT} is of other requests: UPDATE=1 writes it"
        );
    }
    check_listed(&listed, &differing);
}

/// Panics if answers differ that are not listed, or if those that are do not.
fn check_listed(listed: &[Difference], differing: &BTreeMap<String, String>) {
    let mut wrong = String::new();
    for (id, shown) in differing {
        if !listed.iter().any(|difference| difference.is_of(id)) {
            writeln!(wrong, "{shown}").unwrap();
        }
    }
    for difference in listed {
        if !differing.keys().any(|id| difference.is_of(id)) {
            let Difference { beginning, end } = difference;
            writeln!(wrong, "{beginning}*{end} is listed and makes no difference").unwrap();
        }
    }
    assert!(wrong.is_empty(), "{DIFFERENCES}:\n{wrong}");
}

/// What two servers answer otherwise.
pub(crate) fn differences(theirs: &Outcomes, ours: &Outcomes) -> BTreeMap<String, String> {
    let ids: BTreeSet<&String> = theirs.keys().chain(ours.keys()).collect();
    let unequal = ids
        .into_iter()
        .filter(|id| theirs.get(*id) != ours.get(*id));
    unequal
        .map(|id| (id.clone(), difference(id, theirs.get(id), ours.get(id))))
        .collect()
}

fn difference(id: &str, theirs: Option<&Answer>, ours: Option<&Answer>) -> String {
    let [theirs, ours] = [theirs, ours].map(|answer| {
        answer.map_or(
            Value::Null,
            |answer| json!({"code": answer.code, "warnings": answer.warnings, "body": answer.body}),
        )
    });
    let (place, theirs, ours) = first_difference(&theirs, &ours);
    let shortened = |value: &Value| value.to_string().chars().take(2_000).collect::<String>();
    let (theirs, ours) = (shortened(theirs), shortened(ours));
    format!("{id}{place}\n  oracle: {theirs}\n  ours:   {ours}")
}

/// The innermost place where two values differ, and both values there.
fn first_difference<'v>(theirs: &'v Value, ours: &'v Value) -> (String, &'v Value, &'v Value) {
    let pairs: Vec<(String, &Value, &Value)> = match (theirs, ours) {
        (Value::Object(fields), Value::Object(others)) => {
            let names: BTreeSet<&String> = fields.keys().chain(others.keys()).collect();
            let names = names.into_iter();
            names
                .map(|name| (format!(".{name}"), &theirs[name], &ours[name]))
                .collect()
        }
        (Value::Array(items), Value::Array(others)) if items.len() == others.len() => {
            let pairs = items.iter().zip(others).enumerate();
            pairs
                .map(|(at, (item, other))| (format!("[{at}]"), item, other))
                .collect()
        }
        _ => Vec::new(),
    };
    match pairs.into_iter().find(|(_, theirs, ours)| theirs != ours) {
        None => (String::new(), theirs, ours),
        Some((step, theirs, ours)) => {
            let (below, theirs, ours) = first_difference(theirs, ours);
            (step + &below, theirs, ours)
        }
    }
}
