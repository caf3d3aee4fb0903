//! The oracle has one compiled kind, that of definitions. What it answers to a create of one with unknown or duplicate fields in
//! its root and its metadata holds for each other compiled kind, which the same decoder decodes in kube-apiserver.

use apiloom_tests::oracle::Answer;
use apiloom_tests::{Client, Server, build};

use crate::case::{self, Case, Step};
use crate::{folder, kept};

const FILE: &str = "field_validation_compiled";

/// What the steps create.
const DEFINITION: Kind = Kind {
    path: "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    api_version: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    name: "things.field-validation-compiled0.oracle.example.com",
    spec: r#"{"group": "field-validation-compiled0.oracle.example.com", "scope": "Namespaced", "names": {"plural": "things", "kind": "Thing"}, "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}]}"#,
};

const OTHERS: [Kind; 3] = [
    Kind {
        path: "/api/v1/namespaces",
        api_version: "v1",
        kind: "Namespace",
        name: "things",
        spec: "{}",
    },
    Kind {
        path: "/apis/coordination.k8s.io/v1/namespaces/default/leases",
        api_version: "coordination.k8s.io/v1",
        kind: "Lease",
        name: "things",
        spec: r#"{"holderIdentity": "a"}"#,
    },
    Kind {
        path: "/apis/apiregistration.k8s.io/v1/apiservices",
        api_version: "apiregistration.k8s.io/v1",
        kind: "APIService",
        name: "v1.things.example.com",
        spec: r#"{"group": "things.example.com", "version": "v1", "groupPriorityMinimum": 1, "versionPriority": 1}"#,
    },
];

/// A compiled kind, with a valid object.
struct Kind {
    path: &'static str,
    api_version: &'static str,
    kind: &'static str,
    name: &'static str,
    spec: &'static str,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_compiled_kinds_are_told_of_fields_alike() {
    let cases = case::read(FILE);
    let answers = std::fs::read_to_string(folder().join(format!("answers/{FILE}.jsonl"))).unwrap();
    let answers = kept::of_lines(&cases, &answers);
    let steps = cases.iter().flat_map(Case::all_steps).zip(&answers);
    let rows: Vec<_> = steps.filter(|(step, _)| is_of_any_kind(step)).collect();
    assert!(rows.len() >= 15, "{} rows", rows.len());
    let server = Server::start_binary(&build("apiloom-serve"), &["--storage-backend=memory"]);
    let client = server.client();
    for kind in OTHERS {
        for (step, expected) in &rows {
            let body = kind.of_definition(&step.body);
            let answer = kind.create(&client, step, &body).await;
            assert_eq!(answer.code, expected.code, "{body}: {answer}");
            assert_eq!(answer.warnings, expected.warnings, "{body}");
            if let Some(message) = expected.body["message"].as_str() {
                assert_eq!(
                    answer.body["message"],
                    kind.of_definition(message),
                    "{body}"
                );
            }
        }
    }
}

/// Whether a step creates a valid definition but for fields that all kinds have.
fn is_of_any_kind(step: &Step) -> bool {
    let end = format!(r#", "spec": {}}}"#, DEFINITION.spec);
    let has_own = step.body.contains(r#""status""#) || step.body.contains(r#""Other""#);
    step.method == "POST" && step.body.ends_with(&end) && !has_own
}

impl Kind {
    /// A text about a definition, as one about this kind.
    fn of_definition(&self, text: &str) -> String {
        [
            (DEFINITION.spec, self.spec),
            (DEFINITION.name, self.name),
            (DEFINITION.api_version, self.api_version),
            (DEFINITION.kind, self.kind),
        ]
        .into_iter()
        .fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
    }

    async fn create(&self, client: &Client, step: &Step, body: &str) -> Answer {
        let path = step.path.replace(DEFINITION.path, self.path);
        let headers = step.headers.iter();
        let headers: Vec<_> = headers.map(|(name, value)| (&**name, &**value)).collect();
        let answer = client.call("POST", &path, &headers, body.to_owned()).await;
        Answer::of(&answer, false)
    }
}
