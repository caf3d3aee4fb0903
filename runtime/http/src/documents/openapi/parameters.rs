//! The parameters of operations.

use apiloom_meta::kind::Verb;
use serde_json::{Map, Value, json};

use crate::request::verb_form::form;

/// A query parameter: name, type, description.
type Query = (&'static str, &'static str, &'static str);

const PRETTY: Query = ("pretty", "string", "With `true`, JSON is indented.");
const DRY_RUN: Query = (
    "dryRun",
    "string",
    "With `All`, every stage of the request is run but nothing is stored.",
);
const FIELD_MANAGER: Query = (
    "fieldManager",
    "string",
    "Who makes the change: at most 128 printable characters. The default is the first part of the User-Agent.",
);
const FIELD_VALIDATION: Query = (
    "fieldValidation",
    "string",
    "What happens to unknown and duplicate fields: `Ignore` drops them, `Warn` (the default) also warns, `Strict` refuses the request.",
);
const FORCE: Query = (
    "force",
    "boolean",
    "For apply only: take fields over from other managers.",
);

const WRITE: [Query; 3] = [DRY_RUN, FIELD_MANAGER, FIELD_VALIDATION];

const SELECT: [Query; 8] = [
    (
        "continue",
        "string",
        "The token of the previous page, which asks for the next one. Expires with a 410 after some minutes.",
    ),
    (
        "fieldSelector",
        "string",
        "Only objects whose fields match.",
    ),
    (
        "labelSelector",
        "string",
        "Only objects whose labels match.",
    ),
    (
        "limit",
        "integer",
        "At most so many objects; the list's `continue` leads to the rest.",
    ),
    (
        "resourceVersion",
        "string",
        "The state to read: absent for the newest, `0` for any, otherwise as resourceVersionMatch says.",
    ),
    (
        "resourceVersionMatch",
        "string",
        "How to read resourceVersion: `Exact` or `NotOlderThan`.",
    ),
    (
        "sendInitialEvents",
        "boolean",
        "A watch begins with the present objects, and then a bookmark with the annotation `k8s.io/initial-events-end`.",
    ),
    (
        "timeoutSeconds",
        "integer",
        "The request ends after so many seconds.",
    ),
];

const BOOKMARKS: Query = (
    "allowWatchBookmarks",
    "boolean",
    "A watch may send bookmarks, which carry a newer resourceVersion and nothing else.",
);

const DELETE: [Query; 4] = [
    DRY_RUN,
    (
        "gracePeriodSeconds",
        "integer",
        "Seconds before the object is deleted; 0 deletes at once.",
    ),
    (
        "orphanDependents",
        "boolean",
        "Deprecated, use propagationPolicy. Whether dependents are kept.",
    ),
    (
        "propagationPolicy",
        "string",
        "What becomes of dependents: `Orphan`, `Background` or `Foreground`.",
    ),
];

/// Takes away the parameters that all operations of a path have, which are then told once for the path.
pub(super) fn take_common(operations: &mut Map<String, Value>) -> Vec<Value> {
    let lists = operations
        .values()
        .map(|operation| operation["parameters"].as_array());
    let lists: Option<Vec<&Vec<Value>>> = lists.collect();
    let Some((first, others)) = lists.as_deref().and_then(<[_]>::split_first) else {
        return Vec::new();
    };
    let is_common = |parameter: &&Value| others.iter().all(|other| other.contains(parameter));
    let common: Vec<Value> = first.iter().filter(is_common).cloned().collect();
    for operation in operations.values_mut().filter_map(Value::as_object_mut) {
        let Some(Value::Array(mut own)) = operation.remove("parameters") else {
            continue;
        };
        own.retain(|parameter| !common.contains(parameter));
        if !own.is_empty() {
            operation.insert("parameters".to_owned(), own.into());
        }
    }
    common
}

/// The parameters of a path: its variables and `pretty`.
pub(super) fn of_path(path: &str, kind: &str) -> Vec<Value> {
    let variables = [
        ("name", format!("The name of the {kind}.")),
        ("namespace", "The namespace of the objects.".to_owned()),
        ("path", "The rest of the path.".to_owned()),
    ];
    let in_path = variables
        .into_iter()
        .filter(|(name, _)| path.contains(&format!("{{{name}}}")))
        .map(|(name, description)| {
            json!({ "name": name, "in": "path", "required": true, "description": description,
            "schema": { "type": "string", "uniqueItems": true } })
        });
    in_path.chain([query(&PRETTY)]).collect()
}

/// The query parameters of an operation, by `x-kubernetes-action`; those of a list tell the other verbs of its path, which the kind
/// has. Of custom resources kube-apiserver publishes others for a `get` and a `deletecollection`.
pub(super) fn of_action(action: &str, verbs: &[Verb], is_of_definition: bool) -> Vec<Value> {
    let mut all: Vec<Query> = match action {
        "get" if is_of_definition => {
            let all = SELECT.into_iter();
            all.filter(|(name, ..)| *name == "resourceVersion")
                .collect()
        }
        "deletecollection" if is_of_definition => SELECT
            .into_iter()
            .chain(parameters_of(&[Verb::Watch]))
            .collect(),
        "list" => SELECT.into_iter().chain(parameters_of(verbs)).collect(),
        "post" | "put" => WRITE.to_vec(),
        "patch" => WRITE.into_iter().chain([FORCE]).collect(),
        "delete" => DELETE.to_vec(),
        "deletecollection" => SELECT.into_iter().chain(DELETE).collect(),
        _ => Vec::new(),
    };
    all.sort_unstable();
    all.iter().map(query).collect()
}

/// The parameters that tell these verbs from a list.
fn parameters_of(verbs: &[Verb]) -> impl Iterator<Item = Query> {
    let told = verbs.iter().filter_map(|verb| form(*verb).parameter);
    let told = told.map(|(name, description)| (name, "boolean", description));
    told.chain(verbs.contains(&Verb::Watch).then_some(BOOKMARKS))
}

fn query((name, kind, description): &Query) -> Value {
    json!({ "name": name, "in": "query", "description": description, "schema": { "type": kind, "uniqueItems": true } })
}
