//! Renders every template with a full and a minimal view: tera reports a missing name only when it renders.

mod places;

use std::collections::{BTreeMap, BTreeSet};

use apiloom_meta::kind::{ProtoField, ProtoFile, ProtoMessage};
use serde_json::Value;

use super::*;
use crate::generate::Settings;
use crate::import::views::{ModuleView, PackageView};
use crate::model::{
    Builder, BuilderField, BuilderRole, ClientParts, Configurations, Connection, Group, Index,
    Kind, Method, Model, Release, Subresource,
};
use crate::new::NewView;
use crate::reference::ReferenceView;
use crate::view::{
    ApiServiceView, ApplyView, ClientModView, ClientsetView, FakeView, IndexesView, InstallView,
    KubeView, ListView, MainView, MethodsView, ModView, ProtoView, RbacView, RegistryView,
};

fn full() -> (Model, Settings) {
    let kind = Kind {
        kind: "HTTPRoute".to_owned(),
        version: "v1".to_owned(),
        plural: "httproutes".to_owned(),
        rust_type: "crate::v1::HTTPRoute".to_owned(),
        conditions: Vec::new(),
        namespaced: true,
        has_client: true,
        no_client_verbs: false,
        verbs: vec!["create".to_owned(), "get".to_owned()],
        subresources: vec![Subresource {
            name: "status".to_owned(),
            verbs: vec!["get".to_owned()],
            for_editors: false,
            is_interactive: false,
        }],
        client: client_parts(),
        served: true,
        storage: true,
        hub: "v1".to_owned(),
        fields: vec!["metadata".to_owned()],
    };
    let group = |name: &str| Group {
        name: name.to_owned(),
        rust_const: "crate::GROUP".to_owned(),
        versions: vec!["v1".to_owned()],
        release: Some(Release {
            major: 1,
            minor: 10,
        }),
        kinds: vec![kind.clone()],
    };
    let model = Model {
        package: "my-routes".to_owned(),
        crate_name: "my_routes".to_owned(),
        configure: true,
        groups: vec![group(""), group("example.com")],
        configurations: vec![Configurations {
            group: String::new(),
            version: "v1".to_owned(),
            builders: vec![Builder {
                name: "HTTPRoute".to_owned(),
                role: BuilderRole::Kind {
                    rust_type: "crate::v1::HTTPRoute".to_owned(),
                    namespaced: true,
                    has_status: true,
                },
                fields: vec![BuilderField {
                    conditions: vec!["#[cfg(feature = \"x\")]".to_owned()],
                    name: "r#type".to_owned(),
                    json_name: "type".to_owned(),
                    form: "text".to_owned(),
                }],
            }],
        }],
    };
    let settings = Settings {
        clients: true,
        kube: true,
        fake: true,
        ..Settings::new("routes-server", "server")
    };
    (model, settings)
}

/// A method of each verb, a stream and an index.
fn client_parts() -> ClientParts {
    let method = |verb: &str| Method {
        name: format!("{verb}_rule"),
        verb: verb.to_owned(),
        subresource: (verb != "list").then(|| "rules".to_owned()),
        input: ["create", "update", "apply"]
            .contains(&verb)
            .then(|| "crate::v1::Rule".to_owned()),
        output: "crate::v1::HTTPRoute".to_owned(),
    };
    let verbs = ["get", "list", "create", "update", "patch", "apply"];
    ClientParts {
        methods: verbs.map(method).into(),
        connections: vec![Connection {
            name: "connect_log".to_owned(),
            subresource: "log".to_owned(),
            verbs: vec!["get".to_owned()],
        }],
        indexes: vec![Index {
            name: "parent".to_owned(),
            field: "spec.parent".to_owned(),
            key: "::std::string::String".to_owned(),
            value: "object.spec.parent".to_owned(),
        }],
    }
}

fn minimal() -> (Model, Settings) {
    let model = Model {
        package: "p".to_owned(),
        crate_name: "p".to_owned(),
        configure: false,
        groups: Vec::new(),
        configurations: Vec::new(),
    };
    (model, Settings::new("p", ""))
}

/// The templates of files that are calls of a macro.
const CALLS: [&str; 4] = [
    "apply.rs.tera",
    "clientset.rs.tera",
    "index.rs.tera",
    "methods.rs.tera",
];

/// A `.proto` file with all that it can have, or with nothing.
fn proto_file(is_full: bool) -> ProtoFile {
    let field = ProtoField {
        description: vec!["Lines".to_owned(), String::new(), "of text.".to_owned()],
        field_type: "optional string".to_owned(),
        name: "name".to_owned(),
    };
    let message = ProtoMessage {
        description: vec!["Spec has a name.".to_owned()],
        fields: BTreeMap::from([(1, field)]),
        reserved: BTreeSet::from([2, 4]),
        reserved_names: BTreeSet::from(["old".to_owned()]),
    };
    if !is_full {
        return ProtoFile::default();
    }
    ProtoFile {
        package: "a.v1".to_owned(),
        imports: BTreeSet::from(["x/generated.proto".to_owned()]),
        messages: BTreeMap::from([("Spec".to_owned(), message)]),
    }
}

/// The view of each template.
fn views((model, settings): &(Model, Settings)) -> BTreeMap<&'static str, Value> {
    fn json(view: impl Serialize) -> Value {
        serde_json::to_value(view).expect("views are plain data")
    }
    let new = json(NewView::example(!model.groups.is_empty()));
    let import = json(PackageView::example(!model.groups.is_empty()));
    BTreeMap::from([
        (
            "apiservice.yaml.tera",
            json(ApiServiceView::new(model, settings)),
        ),
        ("install.rs.tera", json(InstallView::new(model))),
        ("list.rs.tera", json(ListView::new(model, "meta"))),
        ("main.rs.tera", json(MainView::new(model, settings))),
        (
            "messages.proto.tera",
            json(ProtoView::new(&proto_file(!model.groups.is_empty()))),
        ),
        (
            "client.rs.tera",
            json(ClientModView::new(model, &BTreeMap::<String, ()>::new())),
        ),
        ("apply.rs.tera", json(ApplyView::new(model))),
        ("clientset.rs.tera", json(ClientsetView::new(model))),
        ("kube.rs.tera", json(KubeView::new(model))),
        ("fake.rs.tera", json(FakeView::new(model))),
        (
            "methods.rs.tera",
            json(MethodsView::new(model).unwrap_or_else(|| MethodsView {
                package: String::new(),
                versions: Vec::new(),
            })),
        ),
        ("import/Cargo.toml.tera", import.clone()),
        ("import/group.rs.tera", import["groups"][0].clone()),
        ("import/lib.rs.tera", import.clone()),
        (
            "import/module.rs.tera",
            json(ModuleView::example(!model.groups.is_empty())),
        ),
        (
            "import/version.rs.tera",
            import["groups"][0]["versions"][0].clone(),
        ),
        (
            "index.rs.tera",
            json(IndexesView::new(model).unwrap_or_else(|| IndexesView {
                package: String::new(),
                indexes: Vec::new(),
            })),
        ),
        (
            "mod.rs.tera",
            json(ModView::new(
                model,
                &BTreeMap::from([("src/generated/clientset.rs".to_owned(), ())]),
            )),
        ),
        ("new/Cargo.toml.tera", new.clone()),
        ("new/README.md.tera", new.clone()),
        ("new/controller.rs.tera", new.clone()),
        ("new/kube_test.rs.tera", new.clone()),
        ("new/lib.rs.tera", new.clone()),
        ("new/main.rs.tera", new.clone()),
        ("new/test.rs.tera", new.clone()),
        ("new/v1alpha1.rs.tera", new),
        ("rbac.yaml.tera", json(RbacView::new(model))),
        (
            "reference.md.tera",
            json(ReferenceView::example(!model.groups.is_empty())),
        ),
        ("registry.rs.tera", json(RegistryView::new(model))),
    ])
}

fn check(input: &(Model, Settings)) {
    let renderer = Renderer::new("@generated".to_owned()).expect("the templates parse");
    let views = views(input);
    let names: BTreeSet<&str> = apiloom_templates::TEMPLATES
        .iter()
        .map(|(name, _)| *name)
        .collect();
    assert_eq!(
        names,
        views.keys().copied().collect(),
        "every template is rendered here"
    );
    for (name, view) in &views {
        let given: BTreeSet<&str> = view
            .as_object()
            .expect("a view is an object")
            .keys()
            .map(String::as_str)
            .collect();
        let wanted: BTreeSet<&str> = renderer
            .tera
            .get_template_variables(name)
            .expect("it was loaded")
            .into_iter()
            .collect();
        // The files of a new package share their view.
        if name.starts_with("new/") || name.starts_with("import/") {
            assert!(wanted.is_subset(&given), "{name} names {wanted:?}");
        } else {
            assert_eq!(
                given, wanted,
                "the view of {name} is what the template names"
            );
        }
        let rendered = if CALLS.contains(name) {
            renderer.rust_as_written(name, view)
        } else if name.ends_with(".rs.tera") {
            renderer.rust(name, view)
        } else if name.ends_with(".md.tera") {
            renderer.markdown(name, view)
        } else if name.ends_with(".proto.tera") {
            renderer.proto(name, view)
        } else {
            renderer.yaml(name, view)
        };
        let text = String::from_utf8(rendered.expect("the template fits its view")).expect("UTF-8");
        assert!(
            text.ends_with('\n') && !text.contains('\r') && !text.contains(" \n"),
            "{text}"
        );
    }
}

#[test]
fn templates_fit_a_full_view() {
    check(&full());
}

#[test]
fn templates_fit_a_minimal_view() {
    check(&minimal());
}

#[test]
fn text_is_not_escaped() {
    let (mut model, settings) = full();
    model.package = "a<b>&\"c\"".to_owned();
    let renderer = Renderer::new(String::new()).expect("the templates parse");
    let text = renderer
        .rust("main.rs.tera", &MainView::new(&model, &settings))
        .expect("it renders");
    assert!(String::from_utf8_lossy(&text).contains("a<b>&\"c\""));
}
