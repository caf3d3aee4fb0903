//! CustomResourceDefinitions of other projects, which `tests/corpus/fetch` obtains or `tests/corpus/written` has. The table
//! `tests/corpus/definitions.txt` lists them: the file, the beginning of its SHA-256, and what it makes use of. With UPDATE=1
//! the test writes it.
//!
//! To add a definition: its package in `tests/corpus/packages.txt` (of a wheel or an archive of sources also the hash in
//! `requirements.txt`; of a package that has only what a cluster publishes of it, `published` makes a definition), or, where no package
//! has it, written by hand in `tests/corpus/written`, with objects beside it; then `UPDATE=1 cargo test -p apiloom-tests --test corpus`,
//! which writes the tables `definitions.txt`, `refused.txt` (what kube-apiserver refuses, with the causes) and `outcomes.txt` (digests of
//! what the oracle answers; what differs is listed in `differences.txt`); `tests/corpus/fetch` obtains them. A folder of other
//! definitions is compared with the oracle by `APILOOM_CORPUS=FOLDER`.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on panics, and says where"
)]

mod encoded;
mod minimal;
mod objects;
mod outcomes;
mod refused;
mod served;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use apiloom_meta::FieldPath;
use apiloom_meta::codec::{self, Format};
use apiloom_meta::schema::structural::{Footprint, MAX_FOOTPRINT};
use apiloom_tests::{corpus, repository};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

const TABLE: &str = "tests/corpus/definitions.txt";

struct Definition {
    /// `PROJECT/NAME`, or `PROJECT@RELEASE/NAME`.
    file: String,
    sum: String,
    document: Value,
}

impl Definition {
    /// The name of the definition, as its file is called.
    fn name(&self) -> &str {
        self.file.split_once('/').unwrap().1
    }

    fn versions(&self) -> &[Value] {
        self.document["spec"]["versions"].as_array().unwrap()
    }
}

/// All, in the order of their files.
static DEFINITIONS: LazyLock<Vec<Definition>> = LazyLock::new(|| {
    let folders = corpus::folders();
    let mut definitions: Vec<_> = folders
        .iter()
        .flat_map(|root| read_definitions(root))
        .collect();
    definitions.sort_by(|one, other| one.file.cmp(&other.file));
    definitions
});

/// The definitions of a folder of projects, in the order of their files.
fn read_definitions(root: &Path) -> Vec<Definition> {
    let mut files: Vec<_> = folder(root).filter(|path| path.is_dir()).collect();
    files = files.iter().flat_map(|path| folder(path)).collect();
    files.sort();
    let read = |path: &Path| {
        let bytes = fs::read(path).unwrap();
        // One has a key twice. The last one counts, as it does for kubectl.
        let document = codec::Decoder::new(Format::Yaml)
            .value(&bytes)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let file = path.strip_prefix(root).unwrap().with_extension("");
        Definition {
            file: file.to_str().unwrap().to_owned(),
            sum: sum_of(&bytes),
            document,
        }
    };
    files.iter().map(|path| read(path)).collect()
}

/// The beginning of the SHA-256 of bytes.
fn sum_of(bytes: &[u8]) -> String {
    let sum = Sha256::digest(bytes);
    sum[..8].iter().fold(String::new(), |mut sum, byte| {
        write!(sum, "{byte:02x}").unwrap();
        sum
    })
}

fn folder(path: &Path) -> impl Iterator<Item = std::path::PathBuf> + use<> {
    fs::read_dir(path)
        .unwrap()
        .map(|entry| entry.unwrap().path())
}

/// What of CustomResourceDefinitions a definition makes use of, beside plain fields.
fn features(definition: &Definition) -> BTreeSet<&'static str> {
    let mut found = BTreeSet::new();
    let spec = &definition.document["spec"];
    if spec["conversion"]["strategy"] == "Webhook" {
        found.insert("conversion-webhook");
    }
    if definition.versions().len() > 1 {
        found.insert("several-versions");
    }
    for version in definition.versions() {
        if version["subresources"].get("scale").is_some() {
            found.insert("scale");
        }
        keywords(&version["schema"]["openAPIV3Schema"], &mut found);
    }
    found
}

fn keywords(schema: &Value, found: &mut BTreeSet<&'static str>) {
    for (keyword, name) in [
        ("$ref", "reference"),
        ("default", "default"),
        ("nullable", "nullable"),
        ("oneOf", "one-of"),
        ("x-kubernetes-embedded-resource", "embedded-resource"),
        ("x-kubernetes-int-or-string", "int-or-string"),
        ("x-kubernetes-preserve-unknown-fields", "preserve-unknown"),
        ("x-kubernetes-validations", "cel"),
    ] {
        if schema
            .get(keyword)
            .is_some_and(|value| value != &Value::Bool(false))
        {
            found.insert(name);
        }
    }
    if schema["x-kubernetes-list-type"] == "map" {
        found.insert("list-map");
    }
    let named = schema["properties"].as_object().into_iter().flatten();
    named.for_each(|(_, property)| keywords(property, found));
    for keyword in ["allOf", "anyOf", "oneOf"] {
        let schemas = schema[keyword].as_array().into_iter().flatten();
        schemas.for_each(|schema| keywords(schema, found));
    }
    for keyword in ["items", "additionalProperties", "not"] {
        if schema[keyword].is_object() {
            keywords(&schema[keyword], found);
        }
    }
}

#[test]
fn the_fetched_definitions_are_those_of_the_table() {
    let mut table = String::new();
    for definition in &*DEFINITIONS {
        let features = Vec::from_iter(features(definition)).join(",");
        let features = if features.is_empty() { "-" } else { &features };
        let Definition { file, sum, .. } = definition;
        writeln!(table, "{file} {sum} {features}").unwrap();
    }
    let path = repository().join(TABLE);
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&path, &table).unwrap();
    }
    let committed = fs::read_to_string(path).unwrap_or_default();
    let committed = BTreeSet::from_iter(committed.lines());
    let found = BTreeSet::from_iter(table.lines());
    let missing: Vec<_> = committed.difference(&found).collect();
    let surplus: Vec<_> = found.difference(&committed).collect();
    assert!(
        missing.is_empty() && surplus.is_empty(),
        "{TABLE} has {missing:#?}, fetched were {surplus:#?}"
    );
}

/// Projects whose definitions the corpus has in any case.
const PROJECTS: [&str; 15] = [
    "argo-workflows",
    "cluster-api",
    "cnpg",
    "crossplane",
    "gateway-api",
    "istio",
    "karpenter",
    "keda",
    "knative",
    "kueue",
    "openshift",
    "opentelemetry",
    "prometheus-operator",
    "strimzi",
    "tekton",
];

#[test]
fn there_are_300_different_definitions_of_20_projects() {
    let projects = DEFINITIONS.iter().map(|definition| {
        let folder = definition.file.split_once('/').unwrap().0;
        folder
            .split_once('@')
            .map_or(folder, |(project, _)| project)
    });
    let projects: BTreeSet<_> = projects.collect();
    assert!(projects.len() >= 20, "{projects:?}");
    for project in PROJECTS {
        assert!(
            projects.contains(project),
            "{project} is not in {projects:?}"
        );
    }
    let channel = "gateway.networking.k8s.io/channel";
    let is_experimental = |definition: &Definition| {
        definition.document["metadata"]["annotations"][channel] == "experimental"
    };
    assert!(DEFINITIONS.iter().any(is_experimental));
    // Others are the same definition in another release of its project.
    let names = DEFINITIONS.iter().map(Definition::name);
    let names = BTreeSet::from_iter(names);
    assert!(names.len() >= 300, "{}", names.len());
}

/// Bounds on what a definition may take are far from what definitions take: most are below a hundredth, OpenShift's of
/// ingresses with its patterns of domains is above a third.
#[test]
fn definitions_take_less_than_half_of_their_bound() {
    for definition in &*DEFINITIONS {
        let mut footprint = Footprint::default();
        for version in definition.versions() {
            let schema = &version["schema"]["openAPIV3Schema"];
            footprint.add(schema, &FieldPath::root()).unwrap();
        }
        let bytes = footprint.bytes();
        assert!(bytes < MAX_FOOTPRINT / 2, "{}: {bytes}", definition.file);
    }
}

#[test]
fn every_file_is_one_definition_with_its_name() {
    for definition in &*DEFINITIONS {
        let Definition { file, document, .. } = definition;
        assert_eq!(document["apiVersion"], "apiextensions.k8s.io/v1", "{file}");
        assert_eq!(document["kind"], "CustomResourceDefinition", "{file}");
        let spec = &document["spec"];
        let name = format!(
            "{}.{}",
            spec["names"]["plural"].as_str().unwrap(),
            spec["group"].as_str().unwrap()
        );
        assert_eq!(document["metadata"]["name"], *name, "{file}");
        assert_eq!(definition.name(), name);
        let versions = spec["versions"].as_array().unwrap();
        let stored = versions.iter().filter(|version| version["storage"] == true);
        assert_eq!(stored.count(), 1, "{file}");
        assert!(
            versions.iter().all(|version| version["schema"].is_object()),
            "{file}"
        );
    }
}
