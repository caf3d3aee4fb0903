//! A case is one definition and the requests that follow it; a file of cases is YAML.
//!
//! Of a case, `schema` is that of the field `value` of the kind, or `definition` the whole `spec` of the definition; `schemas` are
//! as many cases with the same values. `values` are created one after the other as the field `value` of objects `v0`, `v1`, ..;
//! `steps` are requests `METHOD: PATH` with a body. In a path, `~` is the collection of the kind, and `DEFINITION` its definition.
//! A body that is text is sent as it is; `edit` is a merge patch of what a GET of the path answers, and the result is the body.
//! `expressions` are expressions in CEL about the field `value`: what each is shows in a message of the first of the `values`.
//! `rejected` are expressions that the `schema` is declared with one by one.
//!
//! With `until` a request is repeated until its answer has that code or that text. The conversion `webhook` of a definition is
//! that of `webhook.rs`. `published` reads a document of OpenAPI, of which the `whole` or the `kinds` of the group are compared
//! (`published.rs`). `define` are schemas of the field `value` of further definitions, whose creation is a step each.
//!
//! `products` are requests that change nothing, `METHOD: PATH` with `query`, a list of values for each parameter: all combinations
//! are a step each, and are sent side by side. The value null leaves a parameter out; `OLDEST`, `NEWEST`, `WRITTEN` and `FUTURE` stand
//! for resourceVersions, and `TOKEN` for the continue token of the last page (`seen.rs`).

use std::fmt;
use std::time::{Duration, Instant};

use apiloom_tests::Client;
use apiloom_tests::oracle::Answer;
use futures_util::{StreamExt as _, stream};
use http::HeaderMap;
use serde_json::{Value, json};

use crate::folder;
use crate::published::{self, Part};
use crate::seen::Seen;
use crate::webhook::Webhook;

/// How many steps of products are asked at the same time.
const SIDE_BY_SIDE: usize = 16;

/// Timeout of a definition that becomes established.
const PATIENCE: Duration = Duration::from_secs(30);

/// One definition with its requests.
pub(crate) struct Case {
    pub(crate) name: String,
    /// The definition; `None` if the steps make their own.
    pub(crate) definition: Option<Value>,
    pub(crate) steps: Vec<Step>,
    /// The steps after these, which change nothing.
    products: Vec<Step>,
}

/// One request.
#[derive(Clone)]
pub(crate) struct Step {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
    /// A merge patch that makes the body of what the path has.
    edit: Option<Value>,
    /// What the answer has at last.
    until: Option<Value>,
    /// Whether managedFields are compared.
    pub(crate) owners: bool,
    /// What is compared of a document of OpenAPI, and of which group.
    published: Option<(Part, String)>,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            method, path, body, ..
        } = self;
        write!(f, "{method} {path} {body}")
    }
}

/// Reads a file of cases.
pub(crate) fn read(name: &str) -> Vec<Case> {
    let text = std::fs::read_to_string(folder().join(format!("cases/{name}.yaml"))).unwrap();
    let cases: Vec<Value> =
        serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
    let each = cases
        .iter()
        .flat_map(|case| match case["schemas"].as_array() {
            None => vec![case.clone()],
            Some(schemas) => schemas
                .iter()
                .enumerate()
                .map(|schema| with_schema(case, schema))
                .collect(),
        });
    // The name of a file may have what that of a group may not.
    let group = |index: usize| format!("{}{index}.oracle.example.com", name.replace('_', "-"));
    each.enumerate()
        .map(|(index, case)| Case::parse(&case, &group(index)))
        .collect()
}

fn with_schema(case: &Value, (index, schema): (usize, &Value)) -> Value {
    let mut case = case.clone();
    case["name"] = json!(format!(
        "{}, schema {index}",
        case["name"].as_str().unwrap()
    ));
    case["schema"] = schema.clone();
    case
}

impl Case {
    fn parse(case: &Value, group: &str) -> Self {
        let name = case["name"].as_str().expect("a case has a name").to_owned();
        let definition = match (&case["schema"], &case["definition"]) {
            (Value::Null, Value::Null) => None,
            (_, Value::Null) if case["rejected"].is_array() => None,
            (schema, Value::Null) => {
                let expressions = case["expressions"].as_array();
                let rules = expressions
                    .into_iter()
                    .flatten()
                    .enumerate()
                    .map(shown_rule);
                let mut schema = schema.clone();
                if expressions.is_some() {
                    schema["x-kubernetes-validations"] = rules.collect();
                }
                Some(definition(group, &with_value(&schema)))
            }
            (_, spec) => Some(completed(group, spec)),
        };
        let values = case["values"].as_array().into_iter().flatten().enumerate();
        let mut steps: Vec<Step> = values
            .map(|(index, value)| created(group, index, value))
            .collect();
        let owners = case["owners"] == true;
        let listed = case["steps"].as_array().into_iter().flatten();
        steps.extend(listed.map(|step| Step::parse(step, group, owners)));
        let defined = case["define"].as_array().into_iter().flatten();
        steps.extend(defined.map(|schema| {
            let spec = json!({"versions": [{"name": "v1", "schema": {"openAPIV3Schema": with_value(schema)}}]});
            Step::parse(&json!({"define": spec}), group, owners)
        }));
        let rejected = case["rejected"].as_array().into_iter().flatten();
        steps.extend(rejected.map(|expression| {
            let mut schema = case["schema"].clone();
            schema["x-kubernetes-validations"] = json!([shown_rule((0, expression))]);
            let spec = json!({"versions": [{"name": "v1", "schema": {"openAPIV3Schema": with_value(&schema)}}]});
            Step::parse(&json!({"define": spec}), group, owners)
        }));
        let products = case["products"].as_array().into_iter().flatten();
        Self {
            products: products.flat_map(|of| product(of, group)).collect(),
            ..Self::new(name, definition, steps)
        }
    }

    pub(crate) fn new(name: String, definition: Option<Value>, steps: Vec<Step>) -> Self {
        Self {
            name,
            definition,
            steps,
            products: Vec::new(),
        }
    }

    /// All steps, in the order of their answers.
    pub(crate) fn all_steps(&self) -> impl Iterator<Item = &Step> {
        self.steps.iter().chain(&self.products)
    }

    /// The steps with their names.
    pub(crate) fn named_steps(&self) -> impl Iterator<Item = (String, &Step)> {
        let steps = self.all_steps().enumerate();
        steps.map(|(index, step)| (format!("{} #{index}", self.name), step))
    }

    /// Creates the definition; returns the answer if it is refused.
    pub(crate) async fn define(&self, client: &Client, webhook: &Webhook) -> Option<Answer> {
        let mut definition = self.definition.clone()?;
        webhook.put_into(&mut definition);
        let definition = &definition;
        let answer = client.post(DEFINITIONS, definition).await;
        if answer.code != 201 {
            return Some(Answer::of(&answer, false));
        }
        established(client, definition["metadata"]["name"].as_str().unwrap()).await;
        None
    }

    /// What is compared of an answer.
    fn shown(&self, step: &Step, answer: &apiloom_tests::Answer) -> Answer {
        let Some((part, group)) = step.published.as_ref().filter(|_| answer.code == 200) else {
            return Answer::of(answer, step.owners);
        };
        let written = self.definition.as_ref().map(Value::to_string);
        let body = published::part(*part, &answer.body, group, &written.unwrap_or_default());
        Answer {
            code: answer.code,
            warnings: Vec::new(),
            body,
        }
    }

    /// Sends the requests.
    pub(crate) async fn ask(&self, client: &Client) -> Vec<Answer> {
        let mut answers = Vec::new();
        let mut seen = Seen::default();
        for step in &self.steps {
            let answer = step.ask(client, &seen).await;
            seen.note(&answer);
            answers.push(self.shown(step, &answer));
        }
        let products = self.products.iter();
        let products = products.map(async |step| {
            let answer = step.ask(client, &seen).await;
            Answer::of(&answer, step.owners)
        });
        let products = stream::iter(products).buffered(SIDE_BY_SIDE);
        answers.extend(products.collect::<Vec<_>>().await);
        answers
    }
}

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

async fn established(client: &Client, name: &str) {
    let started = Instant::now();
    let path = format!("{DEFINITIONS}/{name}");
    loop {
        let found = client.get(&path).await.json();
        let conditions = found["status"]["conditions"]
            .as_array()
            .into_iter()
            .flatten();
        let is_true = |wanted| {
            conditions
                .clone()
                .any(|one| one["type"] == wanted && one["status"] == "True")
        };
        if is_true("Established") {
            break;
        }
        assert!(
            started.elapsed() < PATIENCE,
            "{name} is not established: {found}"
        );
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    // Established is written before the kind is served.
    let (plural, group) = name.split_once('.').unwrap();
    while !client
        .get(&format!("/apis/{group}"))
        .await
        .text()
        .contains("preferredVersion")
    {
        assert!(
            started.elapsed() < PATIENCE,
            "{plural} of {group} is not served"
        );
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// A rule that is violated, and tells what an expression is, or the error of it.
fn shown_rule((index, expression): (usize, &Value)) -> Value {
    let expression = expression.as_str().expect("an expression is text");
    json!({
        "rule": format!("dyn({expression}) == dyn('~')"),
        "messageExpression": format!("'{index}: %s'.format([dyn({expression})])"),
    })
}

fn created(group: &str, index: usize, value: &Value) -> Step {
    let body = json!({
        "apiVersion": format!("{group}/v1"), "kind": "Thing", "metadata": {"name": format!("v{index}")}, "value": value,
    });
    let mut step = Step::new(
        "POST",
        &format!("{}?fieldValidation=Warn", collection(group)),
        "application/json",
    );
    step.body = body.to_string();
    step
}

/// The steps of a product: the first parameter changes most slowly.
fn product(product: &Value, group: &str) -> Vec<Step> {
    let mut step = product.clone();
    let query = step.as_object_mut().unwrap().remove("query").unwrap();
    let step = Step::parse(&step, group, false);
    let mut paths = vec![step.path.clone()];
    for (name, values) in query.as_object().unwrap() {
        let with = |path: &String, value: &Value| match value {
            Value::Null => path.clone(),
            value => {
                let separator = if path.contains('?') { '&' } else { '?' };
                let value = value.as_str().expect("the value of a parameter is a text");
                format!("{path}{separator}{name}={value}")
            }
        };
        let values = values.as_array().unwrap();
        let all = paths
            .iter()
            .flat_map(|path| values.iter().map(move |value| with(path, value)));
        paths = all.collect();
    }
    let steps = paths.into_iter().map(|path| Step {
        path,
        ..step.clone()
    });
    steps.collect()
}

fn collection(group: &str) -> String {
    format!("/apis/{group}/v1/namespaces/default/things")
}

fn with_value(schema: &Value) -> Value {
    json!({"type": "object", "properties": {"value": schema}})
}

/// A definition of `Thing` with this schema of its root.
pub(crate) fn definition(group: &str, root: &Value) -> Value {
    completed(
        group,
        &json!({"versions": [{"name": "v1", "schema": {"openAPIV3Schema": root}}]}),
    )
}

/// A definition with this spec, and what it leaves out.
fn completed(group: &str, spec: &Value) -> Value {
    let mut spec = spec.clone();
    let set = |target: &mut Value, key: &str, value: Value| {
        let fields = target.as_object_mut().unwrap();
        fields.entry(key).or_insert(value);
    };
    set(&mut spec, "group", json!(group));
    set(&mut spec, "scope", json!("Namespaced"));
    set(
        &mut spec,
        "names",
        json!({"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"}),
    );
    for (index, version) in spec["versions"]
        .as_array_mut()
        .into_iter()
        .flatten()
        .enumerate()
    {
        set(version, "name", json!("v1"));
        set(version, "served", json!(true));
        set(version, "storage", json!(index == 0));
    }
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("things.{group}")},
        "spec": spec,
    })
}

impl Step {
    pub(crate) fn new(method: &str, path: &str, content_type: &str) -> Self {
        Self {
            method: method.to_owned(),
            path: path.to_owned(),
            headers: vec![("content-type".to_owned(), content_type.to_owned())],
            body: String::new(),
            edit: None,
            until: None,
            owners: false,
            published: None,
        }
    }

    /// A step is `{METHOD: PATH, body: .., edit: .., until: .., accept: .., type: ..}`; `define` stands for the creation of a definition, whose spec is
    /// the value.
    fn parse(step: &Value, group: &str, owners: bool) -> Self {
        let fields = step.as_object().unwrap();
        if let Some(spec) = fields.get("define") {
            let mut step = Self::new("POST", DEFINITIONS, "application/json");
            // Definitions of the same case have groups of their own.
            let digest = spec.to_string().bytes().fold(7_u64, |sum, byte| {
                sum.wrapping_mul(31).wrapping_add(byte.into())
            });
            step.body = completed(&format!("d{digest:016x}.{group}"), spec).to_string();
            return step;
        }
        let methods = ["GET", "POST", "PUT", "PATCH", "MERGE", "APPLY", "DELETE"];
        let method = methods
            .iter()
            .find(|method| fields.contains_key(**method))
            .unwrap();
        let path = fields[*method]
            .as_str()
            .unwrap()
            .replace('~', &collection(group))
            .replace("DEFINITION", &format!("{DEFINITIONS}/things.GROUP"))
            .replace("GROUP", group);
        let (method, content_type) = match *method {
            "PATCH" => ("PATCH", "application/json-patch+json"),
            "MERGE" => ("PATCH", "application/merge-patch+json"),
            "APPLY" => ("PATCH", "application/apply-patch+yaml"),
            method => (method, "application/json"),
        };
        let mut parsed = Self::new(
            method,
            &path,
            fields
                .get("type")
                .map_or(content_type, |kind| kind.as_str().unwrap()),
        );
        parsed.owners = owners || step["owners"] == true;
        parsed.body = match fields.get("body") {
            None => String::new(),
            Some(Value::String(text)) => text.clone(),
            Some(body) => body.to_string(),
        };
        parsed.body = parsed.body.replace("GROUP", group);
        parsed.edit = fields.get("edit").cloned();
        parsed.until = fields.get("until").cloned();
        let part = match step["published"].as_str() {
            Some("whole") => Some(Part::Whole),
            Some("kinds") => Some(Part::Kinds),
            Some(other) => panic!("nothing is called {other} of a published document"),
            None => None,
        };
        if let Some(part) = part {
            // The oracle publishes a kind some time after its definition is established.
            parsed.until = Some(json!(group));
            parsed.published = Some((part, group.to_owned()));
        }
        if let Some(accept) = fields.get("accept") {
            let accept = match accept.as_str().unwrap() {
                "table" => "application/json;as=Table;v=v1;g=meta.k8s.io",
                "metadata" => "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
                other => other,
            };
            parsed
                .headers
                .push(("accept".to_owned(), accept.to_owned()));
        }
        parsed
    }

    async fn ask(&self, client: &Client, seen: &Seen) -> apiloom_tests::Answer {
        let headers: Vec<_> = self
            .headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        let path = seen.complete(&self.path);
        let body = match &self.edit {
            None => self.body.clone(),
            Some(edit) => {
                let mut present = client.get(&path).await.json();
                merge(&mut present, edit);
                present.to_string()
            }
        };
        let started = Instant::now();
        loop {
            let answer = client
                .try_call(&self.method, &path, &headers, body.clone())
                .await
                .unwrap_or_else(broken_off);
            let is_last = match &self.until {
                // The cache of a new kind is being filled.
                None => answer.code != 429,
                Some(Value::String(text)) => answer.text().contains(text),
                Some(code) => *code == answer.code,
            };
            if is_last {
                return answer;
            }
            assert!(started.elapsed() < PATIENCE, "{self}: {}", answer.text());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

/// The answer of a server that has ended the connection, as the oracle does when it panics.
fn broken_off(why: String) -> apiloom_tests::Answer {
    apiloom_tests::Answer {
        code: 0,
        headers: HeaderMap::new(),
        body: why.into(),
    }
}

/// Changes a value by a merge patch.
fn merge(value: &mut Value, patch: &Value) {
    let Some(changes) = patch.as_object() else {
        *value = patch.clone();
        return;
    };
    if !value.is_object() {
        *value = json!({});
    }
    for (name, change) in changes {
        if change.is_null() {
            value.as_object_mut().unwrap().remove(name);
        } else {
            merge(&mut value[name], change);
        }
    }
}
