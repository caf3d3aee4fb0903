//! The rules of CustomResourceDefinitions (`x-kubernetes-validations`), compiled and evaluated by an implementation of
//! CEL as in kube-apiserver: for random documents and changes their result must equal our server's.
//!
//! Checks written in Rust are left out on both sides. `APILOOM_CEL_SEED=7` selects other documents.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on panics, and says where"
)]

mod changes;
mod kinds;
mod kubernetes;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::marker::PhantomData;

use apiloom::meta::kind::{ApiType, Hooks};
use apiloom::meta::schema::Schema;
use apiloom_tests::repository;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Value, json};

use changes::Random;
use kubernetes::Definition;

/// Number of documents, and of changes, per definition.
const DOCUMENTS: usize = 1_000;

/// A type without the checks and defaults that are written in Rust, which a definition does not contain.
struct WithoutHooks<T>(PhantomData<T>);

impl<T> ApiType for WithoutHooks<T> {}

impl<T: JsonSchema> JsonSchema for WithoutHooks<T> {
    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> schemars::Schema {
        T::json_schema(generator)
    }
}

fn schema<T: JsonSchema>() -> Schema {
    Schema::for_resource::<WithoutHooks<T>>().unwrap()
}

/// Compares the server with the committed definition on documents of each version.
fn check(package: &str, definition: &str, versions: &[(&str, Schema)]) {
    let path = format!("{package}/generated/crds/{definition}.yaml");
    let text = std::fs::read_to_string(repository().join(path)).unwrap();
    let crd: Value = serde_saphyr::from_str(&text).unwrap();
    let found = crd["spec"]["versions"].as_array().unwrap();
    let names = found
        .iter()
        .map(|version| version["name"].as_str().unwrap());
    let expected: Vec<&str> = versions.iter().map(|(name, _)| *name).collect();
    assert_eq!(names.collect::<Vec<_>>(), expected, "{definition}");
    for (version, (_, schema)) in found.iter().zip(versions) {
        let definition = compare(schema, &version["schema"]["openAPIV3Schema"]);
        // Some rules cannot be violated here, since the schema refuses such documents first; and a type may be used in
        // several places, not all of which are reached.
        let mut evaluated: BTreeMap<&str, usize> = BTreeMap::new();
        for ((_, rule), (kept, broken)) in definition.counts() {
            *evaluated.entry(rule).or_default() += kept + broken;
        }
        evaluated.retain(|_, count| *count == 0);
        assert_eq!(evaluated, BTreeMap::new(), "APILOOM_CEL_SEED={}", seed());
    }
}

/// The seed of a run.
fn seed() -> u64 {
    match std::env::var("APILOOM_CEL_SEED") {
        Ok(seed) => seed.parse().unwrap(),
        Err(_) => 1,
    }
}

/// Fails if the server and a definition differ. The result has counted how often each rule was satisfied and violated.
fn compare(server: &Schema, crd: &Value) -> Definition {
    let seed = seed();
    let judges = Judges {
        server,
        openapi: Schema::from_json(&one_pattern(crd), &Hooks::default()).unwrap(),
        definition: Definition::new(crd),
    };
    let mut random = Random(seed);
    let mut good: Vec<Value> = Vec::new();
    let mut differences = Vec::new();
    let prepared = |mut document: Value| {
        server.default(&mut document);
        server.prune(&mut document);
        document
    };
    for _ in 0..DOCUMENTS {
        let sample = prepared(server.sample(random.next()));
        let mut document = sample.clone();
        if random.below(4) > 0 {
            random.change(crd, &mut document, &sample);
            document = prepared(document);
        }
        differences.extend(judges.difference(&document, None));
        if judges.server.validate(&document).is_empty() {
            good.push(document);
        }
        if good.is_empty() {
            continue;
        }
        // Both ignore some violations of the old object, but not in the same way: here the old object has none.
        let old = random.pick(&good);
        let mut new = old.clone();
        random.change(crd, &mut new, &sample);
        differences.extend(judges.difference(&prepared(new), Some(&old)));
    }
    assert!(
        differences.is_empty(),
        "APILOOM_CEL_SEED={seed}: {} differences, of which some:\n{}",
        differences.len(),
        differences[..differences.len().min(5)].join("\n\n")
    );
    assert!(
        good.len() > DOCUMENTS / 20,
        "only {} documents are good",
        good.len()
    );
    judges.definition
}

/// The schema engine reads one pattern per value. A second one in `allOf` is written as two negations.
fn one_pattern(schema: &Value) -> Value {
    match schema {
        Value::Object(keywords) => {
            let keywords = keywords.iter().map(|(name, value)| match value {
                Value::Array(branches) if name == "allOf" => {
                    let branches = branches.iter();
                    let negated: Value = branches.map(|branch| json!({ "not": branch })).collect();
                    ("not".to_owned(), json!({ "anyOf": negated }))
                }
                _ => (name.clone(), one_pattern(value)),
            });
            Value::Object(keywords.collect())
        }
        other => other.clone(),
    }
}

struct Judges<'a> {
    server: &'a Schema,
    /// The definition without its rules.
    openapi: Schema,
    definition: Definition,
}

impl Judges<'_> {
    /// The difference between the server and the definition for a document or a change.
    fn difference(&self, new: &Value, old: Option<&Value>) -> Option<String> {
        let errors = |schema: &Schema| match old {
            Some(old) => schema.validate_update(new, old),
            None => schema.validate(new),
        };
        let texts = |schema: &Schema| -> Vec<String> {
            errors(schema).iter().map(ToString::to_string).collect()
        };
        let (server, openapi) = (texts(self.server), texts(&self.openapi));
        // kube-apiserver does not evaluate the rules of a document that its schema refuses.
        let broken = if openapi.is_empty() {
            self.definition.broken(new, old)
        } else {
            Vec::new()
        };
        let differ = server.is_empty() != (openapi.is_empty() && broken.is_empty());
        differ.then(|| {
            let old = old.map(|old| format!("old: {old}\n")).unwrap_or_default();
            format!("{old}new: {new}\nserver: {server:#?}\nopenapi: {openapi:#?}\nbroken rules: {broken:#?}")
        })
    }
}

#[test]
fn wardle() {
    let flunders = [
        ("v1beta1", schema::<wardle::v1beta1::Flunder>()),
        ("v1alpha1", schema::<wardle::v1alpha1::Flunder>()),
    ];
    check("examples/wardle", "flunders.wardle.example.com", &flunders);
    let fischers = [("v1alpha1", schema::<wardle::v1alpha1::Fischer>())];
    check("examples/wardle", "fischers.wardle.example.com", &fischers);
}

#[test]
fn hello() {
    let versions = [("v1", schema::<hello::Greeting>())];
    check("examples/hello", "greetings.hello.example.com", &versions);
}

#[test]
fn balancer() {
    let versions = [
        ("v1", schema::<balancer_kinds::v1::Balancer>()),
        ("v1beta1", schema::<balancer_kinds::v1beta1::Balancer>()),
        ("v1alpha1", schema::<balancer_kinds::v1alpha1::Balancer>()),
    ];
    check(
        "tests/ports/balancer",
        "balancers.lb.example.com",
        &versions,
    );
}

#[test]
fn certificate() {
    let versions = [("v1", schema::<certificate_kinds::v1::Certificate>())];
    check(
        "tests/ports/certificate",
        "certificates.cert-manager.io",
        &versions,
    );
}

#[test]
fn cronjob() {
    let versions = [("v1", schema::<cronjob_kinds::v1::CronJob>())];
    check(
        "tests/ports/cronjob",
        "cronjobs.batch.tutorial.kubebuilder.io",
        &versions,
    );
}

#[test]
fn route() {
    let versions = [("v1", schema::<route_kinds::v1::HttpRoute>())];
    check(
        "tests/ports/route",
        "httproutes.gateway.networking.k8s.io",
        &versions,
    );
}

#[test]
fn shapes() {
    let versions = [("v1", schema::<shapes_kinds::v1::Blueprint>())];
    check(
        "tests/ports/shapes",
        "blueprints.shapes.example.com",
        &versions,
    );
}

#[test]
fn machine() {
    let versions = [("v1", schema::<machine_kinds::v1::Machine>())];
    check(
        "tests/ports/machine",
        "machines.machine.example.com",
        &versions,
    );
}

#[test]
fn workload() {
    let versions = [
        ("v1", schema::<workload_kinds::v1::Workload>()),
        ("v1beta1", schema::<workload_kinds::v1beta1::Workload>()),
    ];
    check(
        "tests/ports/workload",
        "workloads.work.example.com",
        &versions,
    );
}

#[test]
fn every_definition_is_checked() {
    let files = |dir: std::path::PathBuf| {
        let entries = std::fs::read_dir(dir).into_iter().flatten();
        entries.map(|entry| entry.unwrap().path())
    };
    let packages = ["examples", "tests/ports"].map(|dir| files(repository().join(dir)));
    let crds = packages
        .into_iter()
        .flatten()
        .flat_map(|dir| files(dir.join("generated/crds")));
    let mut names: Vec<String> = crds
        .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    names.sort();
    assert_eq!(
        names,
        [
            "balancers.lb.example.com",
            "blueprints.shapes.example.com",
            "certificates.cert-manager.io",
            "cronjobs.batch.tutorial.kubebuilder.io",
            "fischers.wardle.example.com",
            "flunders.wardle.example.com",
            "greetings.hello.example.com",
            "httproutes.gateway.networking.k8s.io",
            "machines.machine.example.com",
            "workloads.work.example.com",
        ]
    );
}
