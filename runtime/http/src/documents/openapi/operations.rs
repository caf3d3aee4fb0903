//! `paths` of a document: one operation for each verb of each kind, with the names of kube-apiserver.
//!
//! The deprecated prefix `/watch/` is omitted, as kube-apiserver omits it for custom resources: a list with
//! `watch=true` is equivalent.

use apiloom_meta::Status;
use apiloom_meta::kind::{Publication, Scope, SubresourceDef, SubresourceOutput as _, Verb};
use apiloom_meta::{GroupVersionKind, ResourceDef};
use serde_json::{Map, Value, json};

use super::names::{self, base_path, gvk, meta, operation_infix, reference, tag};
use super::{components, parameters};
use crate::request::request_info::NAMESPACES;
use crate::request::verb_form::form;
use crate::shape::format::{self, Writer};

/// The patch formats of a kind, for clients to choose from: kubectl sends a strategic merge patch where it is listed.
fn patches(def: &ResourceDef, sub: Option<&SubresourceDef>) -> Vec<&'static str> {
    let is_scale = def.dialect.merges_scale && sub.is_some_and(|sub| sub.scale_paths().is_some());
    let strategic = "application/strategic-merge-patch+json";
    [
        "application/json-patch+json",
        "application/merge-patch+json",
        "application/apply-patch+yaml",
    ]
    .into_iter()
    .chain((def.strategic_merge_patch || is_scale).then_some(strategic))
    .collect()
}

/// The formats of the objects of a kind.
fn writers(def: &ResourceDef) -> impl Iterator<Item = &'static dyn Writer> {
    let has_message = def.protobuf.is_some();
    format::writers().filter(move |writer| has_message || !writer.needs_message())
}

/// The media types of the objects of a kind.
fn formats(def: &ResourceDef) -> Vec<&'static str> {
    writers(def).map(|writer| writer.media_type()).collect()
}

/// The media types of the documents that are no objects of a kind.
fn all_formats() -> Vec<&'static str> {
    format::media_types().collect()
}

/// Adds the operations of a kind and its subresources.
pub(super) fn add(def: &ResourceDef, paths: &mut Map<String, Value>) {
    let base = base_path(def);
    let namespaced = def.scope == Scope::Namespaced;
    let collection = if namespaced {
        format!("{base}/{NAMESPACES}/{{namespace}}/{}", def.plural)
    } else {
        format!("{base}/{}", def.plural)
    };
    let item = format!("{collection}/{{name}}");
    let ops = Operations { def, namespaced };
    if namespaced {
        insert(
            paths,
            format!("{base}/{}", def.plural),
            def,
            [(Verb::List, ops.list_everywhere())],
        );
    }
    let on_collection = [
        (Verb::List, ops.list()),
        (Verb::Create, ops.create(None)),
        (Verb::DeleteCollection, ops.delete_collection()),
    ];
    insert(paths, collection, def, on_collection);
    let on_item = [
        (Verb::Get, ops.get(None)),
        (Verb::Update, ops.replace(None)),
        (Verb::Patch, ops.patch(None)),
        (Verb::Delete, ops.delete()),
    ];
    insert(paths, item.clone(), def, on_item);
    for sub in def.served_subresources() {
        if sub.connects {
            for rest in ["", "/{path}"] {
                let all = sub
                    .verbs
                    .iter()
                    .map(|verb| (*verb, ops.connect(sub, *verb, !rest.is_empty())));
                insert_path(paths, format!("{item}/{}{rest}", sub.name), def, all);
            }
            continue;
        }
        let all = [
            (Verb::Create, ops.create(Some(sub))),
            (Verb::Get, ops.get(Some(sub))),
            (Verb::Update, ops.replace(Some(sub))),
            (Verb::Patch, ops.patch(Some(sub))),
        ];
        insert_path(
            paths,
            format!("{item}/{}", sub.name),
            def,
            all.into_iter()
                .filter(|(verb, _)| def.verbs_of(sub).any(|served| served == *verb)),
        );
    }
}

/// Adds the operation that lists the resources of a group and version.
pub(super) fn add_discovery(group: &str, version: &str, paths: &mut Map<String, Value>) {
    let path = if group.is_empty() {
        format!("/api/{version}/")
    } else {
        format!("/apis/{group}/{version}/")
    };
    let get = json!({
        "operationId": format!("get{}APIResources", operation_infix(group, version)),
        "tags": [tag(group, version)],
        "description": "Lists the resources of this group and version.",
        "responses": responses(&[("200", "OK")], &reference(&meta("APIResourceList")), &all_formats()),
    });
    paths.insert(path, json!({ "get": get }));
}

fn insert<const N: usize>(
    paths: &mut Map<String, Value>,
    path: String,
    def: &ResourceDef,
    operations: [(Verb, Value); N],
) {
    insert_path(
        paths,
        path,
        def,
        operations
            .into_iter()
            .filter(|(verb, _)| def.has_verb(*verb)),
    );
}

/// Adds a path, unless it has no operations.
fn insert_path(
    paths: &mut Map<String, Value>,
    path: String,
    def: &ResourceDef,
    operations: impl Iterator<Item = (Verb, Value)>,
) {
    let mut all: Map<String, Value> = operations
        .map(|(verb, operation)| (method(verb), operation))
        .collect();
    if !all.is_empty() {
        let mut common = parameters::take_common(&mut all);
        common.extend(parameters::of_path(&path, &def.kind));
        common.sort_by(|a, b| a["name"].as_str().cmp(&b["name"].as_str()));
        all.insert("parameters".into(), common.into());
        paths.insert(path, Value::Object(all));
    }
}

/// The method of a verb, as a field of a path.
fn method(verb: Verb) -> String {
    form(verb).method.as_str().to_ascii_lowercase()
}

struct Operations<'a> {
    def: &'a ResourceDef,
    namespaced: bool,
}

impl Operations<'_> {
    fn list(&self) -> Value {
        let text = format!("Lists the {} that match, or watches them.", self.objects());
        self.operation("list", &self.id("list", None), &text, self.list_responses())
    }

    fn list_everywhere(&self) -> Value {
        let id = format!(
            "list{}{}ForAllNamespaces",
            operation_infix(&self.def.group, &self.def.version),
            self.def.kind
        );
        let text = format!(
            "Lists the {} of all namespaces that match, or watches them.",
            self.def.plural
        );
        self.operation("list", &id, &text, self.list_responses())
    }

    fn create(&self, sub: Option<&SubresourceDef>) -> Value {
        let answers = [("200", "OK"), ("201", "Created"), ("202", "Accepted")];
        let text = match sub {
            Some(sub) => format!("Creates the {} of a {}.", sub.name, self.def.kind),
            None => format!("Creates a {}.", self.def.kind),
        };
        let answers = self.objects_as(&answers, sub);
        self.with_body(
            self.operation_of("post", &self.id("create", sub), &text, answers, sub),
            sub,
        )
    }

    /// A request that opens a stream, of any content.
    fn connect(&self, sub: &SubresourceDef, verb: Verb, has_path: bool) -> Value {
        let infix = operation_infix(&self.def.group, &self.def.version);
        let namespaced = if self.namespaced { "Namespaced" } else { "" };
        let id = format!(
            "connect{infix}{}{namespaced}{}{}{}",
            names::capital(&method(verb)),
            self.def.kind,
            names::capital(&sub.name),
            if has_path { "WithPath" } else { "" },
        );
        let text = format!("Connects to the {} of a {}.", sub.name, self.def.kind);
        let answers = json!({ "200": {
            "description": "OK",
            "content": { "*/*": { "schema": { "type": "string" } } },
        } });
        self.operation("connect", &id, &text, answers)
    }

    fn delete_collection(&self) -> Value {
        let infix = operation_infix(&self.def.group, &self.def.version);
        let namespaced = if self.namespaced { "Namespaced" } else { "" };
        let id = format!("delete{infix}Collection{namespaced}{}", self.def.kind);
        let text = format!("Deletes the {} that match.", self.objects());
        let status = reference(&meta("Status"));
        let answers = responses(&[("200", "OK")], &status, &formats(self.def));
        let operation = self.operation("deletecollection", &id, &text, answers);
        if self.is_of_definition() {
            return operation;
        }
        self.delete_body(operation)
    }

    /// Whether the kind is published from a definition, of which kube-apiserver tells other details.
    fn is_of_definition(&self) -> bool {
        self.def.dialect.openapi == Publication::Definition
    }

    fn delete_body(&self, mut operation: Value) -> Value {
        let formats = if self.is_of_definition() {
            formats(self.def)
        } else {
            all_formats()
        };
        operation["requestBody"] = body(&reference(&meta("DeleteOptions")), &formats, false);
        operation
    }

    fn get(&self, sub: Option<&SubresourceDef>) -> Value {
        let text = format!("Reads {}a {}.", self.of(sub), self.def.kind);
        self.operation_of(
            "get",
            &self.id("read", sub),
            &text,
            self.objects_as(&[("200", "OK")], sub),
            sub,
        )
    }

    fn replace(&self, sub: Option<&SubresourceDef>) -> Value {
        let text = format!("Replaces {}a {}.", self.of(sub), self.def.kind);
        let answers = self.objects_as(&[("200", "OK"), ("201", "Created")], sub);
        self.with_body(
            self.operation_of("put", &self.id("replace", sub), &text, answers, sub),
            sub,
        )
    }

    fn patch(&self, sub: Option<&SubresourceDef>) -> Value {
        let text = format!("Changes {}a {} by a patch.", self.of(sub), self.def.kind);
        // An apply creates objects of custom resources too, which is not published.
        let answers = [("200", "OK"), ("201", "Created")];
        let answers = &answers[..if self.is_of_definition() { 1 } else { 2 }];
        let answers = self.objects_as(answers, sub);
        let mut operation = self.operation_of("patch", &self.id("patch", sub), &text, answers, sub);
        operation["requestBody"] = body(&reference(&meta("Patch")), &patches(self.def, sub), true);
        operation
    }

    fn delete(&self) -> Value {
        let text = format!("Deletes a {}.", self.def.kind);
        let answer = if self.def.deletion.returns_object() {
            components::name(self.def)
        } else {
            meta("Status")
        };
        let answers = responses(
            &[("200", "OK"), ("202", "Accepted")],
            &reference(&answer),
            &formats(self.def),
        );
        self.delete_body(self.operation("delete", &self.id("delete", None), &text, answers))
    }

    fn operation(&self, action: &str, id: &str, description: &str, responses: Value) -> Value {
        let def = self.def;
        let mut operation = json!({
            "operationId": id,
            "tags": [tag(&def.group, &def.version)],
            "description": description,
            "responses": responses,
            "x-kubernetes-action": action,
            "x-kubernetes-group-version-kind": gvk(&def.group, &def.version, &def.kind),
        });
        let parameters = parameters::of_action(action, &def.verbs, self.is_of_definition());
        if !parameters.is_empty() {
            operation["parameters"] = parameters.into();
        }
        operation
    }

    /// An operation of an object or of a subresource, whose kind may be another one.
    fn operation_of(
        &self,
        action: &str,
        id: &str,
        description: &str,
        responses: Value,
        sub: Option<&SubresourceDef>,
    ) -> Value {
        let mut operation = self.operation(action, id, description, responses);
        let kind = sub.and_then(SubresourceDef::listed_kind);
        if let Some(kind) = kind.filter(|_| !self.is_of_definition()) {
            operation["x-kubernetes-group-version-kind"] =
                gvk(&kind.group, &kind.version, &kind.kind);
        }
        operation
    }

    /// Operation id: `readWardleExampleComV1alpha1NamespacedFlunderStatus`.
    fn id(&self, verb: &str, sub: Option<&SubresourceDef>) -> String {
        let infix = operation_infix(&self.def.group, &self.def.version);
        let namespaced = if self.namespaced { "Namespaced" } else { "" };
        format!(
            "{verb}{infix}{namespaced}{}{}",
            self.def.kind,
            names::capital(name_of(sub))
        )
    }

    fn objects(&self) -> String {
        if self.namespaced {
            format!("{} of a namespace", self.def.plural)
        } else {
            self.def.plural.to_string()
        }
    }

    fn of(&self, sub: Option<&SubresourceDef>) -> String {
        sub.map_or_else(String::new, |sub| format!("the {} of ", sub.name))
    }

    fn with_body(&self, mut operation: Value, sub: Option<&SubresourceDef>) -> Value {
        let component = self.component(sub.and_then(|sub| sub.input.as_ref()));
        operation["requestBody"] = body(&reference(&component), &formats(self.def), true);
        operation
    }

    fn objects_as(&self, answers: &[(&str, &str)], sub: Option<&SubresourceDef>) -> Value {
        let component = self.component(sub.and_then(|sub| sub.output.as_ref()));
        responses(answers, &reference(&component), &formats(self.def))
    }

    /// The component of a kind; of the object's own kind for `None`.
    fn component(&self, kind: Option<&GroupVersionKind>) -> String {
        match kind {
            None => components::name(self.def),
            Some(kind) if *kind == Status::gvk() => meta("Status"),
            Some(kind) => names::component(&kind.group, &kind.version, &kind.kind),
        }
    }

    fn list_responses(&self) -> Value {
        let mut all = responses(
            &[("200", "OK")],
            &reference(&components::list_name(self.def)),
            &formats(self.def),
        );
        if self.def.has_verb(Verb::Watch) && !self.is_of_definition() {
            for stream in writers(self.def).filter_map(|writer| writer.stream()) {
                let schema = json!({ "schema": reference(&meta("WatchEvent")) });
                all["200"]["content"][stream.listed_type()] = schema;
            }
        }
        all
    }
}

fn name_of(sub: Option<&SubresourceDef>) -> &str {
    sub.map_or("", |sub| &sub.name)
}

fn body(schema: &Value, formats: &[&str], required: bool) -> Value {
    let mut body = json!({ "content": content(schema, formats) });
    if required {
        body["required"] = true.into();
    }
    body
}

fn responses(answers: &[(&str, &str)], schema: &Value, formats: &[&str]) -> Value {
    let mut all: Map<String, Value> = answers
        .iter()
        .map(|(code, text)| {
            (
                (*code).to_owned(),
                json!({ "description": text, "content": content(schema, formats) }),
            )
        })
        .collect();
    all.insert("401".into(), json!({ "description": "Unauthorized" }));
    Value::Object(all)
}

fn content(schema: &Value, formats: &[&str]) -> Value {
    formats
        .iter()
        .map(|format| ((*format).to_owned(), json!({ "schema": schema })))
        .collect::<Map<_, _>>()
        .into()
}
