//! Subresources and deletion as data: a definition applies to a kind of any name.

use apiloom_meta::GroupVersionKind;
use apiloom_meta::kind::Writes;

use super::*;

/// A kind whose objects contain others.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
struct Project {
    metadata: ObjectMeta,
    holds: BTreeMap<String, Vec<String>>,
    state: BTreeMap<String, String>,
    usage: BTreeMap<String, String>,
}
impl ApiType for Project {}
resource!(Project, "v1", "Project", "projects", |def| ResourceDef {
    storage: true,
    subresources: vec![
        SubresourceDef::new("peek", &[Verb::Update], Writes::Nothing),
        SubresourceDef::new("release", &[Verb::Update], Writes::Also("holds".into())),
        SubresourceDef::new("usage", &[Verb::Update], Writes::Only("usage".into())),
    ],
    deletion: DeletionRule::Container {
        finalizers: JsonPath::new(["holds", "by"]),
        phase: JsonPath::new(["state", "phase"]),
    },
    ..def
});

/// A kind with a subresource that another kind's objects are sent to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Scaled {
    metadata: ObjectMeta,
}
impl ApiType for Scaled {}
resource!(Scaled, "v1", "Scaled", "scaleds", |def| ResourceDef {
    storage: true,
    subresources: vec![SubresourceDef {
        input: Some(GroupVersionKind::new("autoscaling", "v1", "Scale")),
        ..SubresourceDef::new("scale", &[Verb::Update], Writes::Nothing)
    }],
    ..def
});

struct Projects {
    fixture: Fixture,
    endpoint: Arc<Endpoint>,
}

async fn projects() -> Projects {
    let store = Memory::new();
    let mut builder = builder(&store);
    builder.kind::<Project>();
    let fixture = started(builder, store).await;
    let endpoint = fixture.registry.endpoint(GROUP, "v1", "projects").unwrap();
    Projects { fixture, endpoint }
}

impl Projects {
    async fn create(&self, project: Value) -> Object {
        let options = CreateOptions::default();
        let created =
            self.endpoint
                .writes()
                .create(&self.fixture.ctx, NS, object(project), &options);
        created.await.unwrap().object
    }
    async fn put(&self, subresource: &str, project: Object) -> Result<Object, ApiError> {
        let (ctx, options) = (&self.fixture.ctx, UpdateOptions::default());
        let written = self.endpoint.writes().update(
            WriteRequest::new(ctx, NS, "p")
                .at(subresource)
                .with(&options),
            project,
        );
        Ok(written.await?.0.object)
    }
    async fn delete(&self) -> DeleteResult {
        let (ctx, options) = (&self.fixture.ctx, DeleteOptions::default());
        self.endpoint
            .writes()
            .delete(ctx, NS, "p", &options)
            .await
            .unwrap()
    }
}

const CREATED: &str =
    r#"{"metadata": {"name": "p"}, "holds": {"by": ["a"]}, "usage": {"cpu": "1"}}"#;

#[tokio::test]
async fn a_subresource_writes_what_it_declares() {
    let f = projects().await;
    let created = f.create(serde_json::from_str(CREATED).unwrap()).await;
    assert_eq!(at(&created, "/holds/by"), json!(["a"]));
    assert_eq!(at(&created, "/usage"), Value::Null);

    let mut sent = created.clone();
    sent.fields_mut().extend([
        ("holds".to_owned(), json!({"by": ["b"]})),
        ("state".to_owned(), json!({"phase": "New"})),
        ("usage".to_owned(), json!({"cpu": "2"})),
    ]);
    sent.set_meta_str("resourceVersion", "");
    let written = |object: &Object| {
        let texts = ["/holds/by", "/state/phase", "/usage/cpu"].map(|path| at(object, path));
        Value::from(texts.to_vec())
    };
    let peeked = f.put("peek", sent.clone()).await.unwrap();
    assert_eq!(written(&peeked), json!([["a"], null, null]));
    let used = f.put("usage", sent.clone()).await.unwrap();
    assert_eq!(written(&used), json!([["a"], null, "2"]));
    assert_eq!(at(&used, "/metadata/generation"), 1);
    let put = f.put("", sent.clone()).await.unwrap();
    assert_eq!(written(&put), json!([["a"], "New", "2"]));
    sent.fields_mut().insert("usage".to_owned(), json!({}));
    let released = f.put("release", sent.clone()).await.unwrap();
    assert_eq!(written(&released), json!([["b"], "New", "2"]));
    let unknown = f.put("status", sent).await.unwrap_err();
    assert_eq!(unknown, ApiError::no_such_resource());
}

#[tokio::test]
async fn a_container_of_any_name_waits_for_its_content() {
    let f = projects().await;
    f.create(serde_json::from_str(CREATED).unwrap()).await;
    let DeleteResult::Pending(mut marked) = f.delete().await else {
        panic!("it is held")
    };
    assert_eq!(at(&marked, "/state/phase"), "Terminating");
    marked.fields_mut().insert("holds".to_owned(), json!({}));
    f.put("", marked.clone()).await.unwrap();
    assert!(matches!(f.delete().await, DeleteResult::Pending(_)));
    marked.set_meta_str("resourceVersion", "");
    f.put("release", marked).await.unwrap();

    f.create(json!({"metadata": {"name": "p"}})).await;
    let DeleteResult::LastState(last) = f.delete().await else {
        panic!("nothing holds it, and it is answered with itself")
    };
    assert_eq!(last.name(), "p");
}

#[tokio::test]
async fn objects_of_other_kinds_need_a_handler() {
    let mut builder = with_namespaces(Memory::new());
    builder.kind::<Scaled>();
    let expected = "Scaled of test.example.com/v1: the subresource scale has objects of the kind Scale, which no handler makes";
    assert_eq!(builder.build().err().unwrap(), [expected]);
}

#[tokio::test]
async fn a_given_handler_without_a_subresource_is_refused() {
    #[derive(Default)]
    struct Unnamed;
    impl crate::Subresource<Project> for Unnamed {
        type Input = Project;
        type Output = Project;
    }
    let mut builder = builder(&Memory::new());
    builder.kind::<Project>();
    builder.subresource::<Project, _>(Unnamed);
    let problems = builder.build().expect_err("refused");
    let [problem] = problems.as_slice() else {
        panic!("{problems:?}");
    };
    assert!(
        problem.starts_with("a handler ")
            && problem.ends_with("Unnamed, which no subresource names"),
        "{problem}"
    );
}

/// A kind whose first version has a status subresource, and whose second one has none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
struct Meter {
    metadata: ObjectMeta,
    status: BTreeMap<String, i64>,
}
impl ApiType for Meter {}
resource!(Meter, "v1", "Meter", "meters", |def| ResourceDef {
    storage: true,
    ..def
});

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
struct PlainMeter {
    metadata: ObjectMeta,
    status: BTreeMap<String, i64>,
}
impl ApiType for PlainMeter {}
resource!(PlainMeter, "v1alpha1", "Meter", "meters", |def| {
    ResourceDef {
        subresources: Vec::new(),
        conversion: Some(Conversion {
            hub_version: "v1".into(),
            hub_kind: "Meter".into(),
            hub_resource: None,
            method: ConversionMethod::InMemory(InMemoryConversion {
                json: None,
                to_hub: Ok,
                from_hub: Ok,
            }),
        }),
        ..def
    }
});

#[tokio::test]
async fn versions_of_a_kind_may_have_a_status_subresource_or_none() {
    let (f, [with, without]) = two_versions::<Meter, PlainMeter>().await;
    let meter = |name: &str, version: &str, power: i64| {
        object(
            json!({"apiVersion": format!("{GROUP}/{version}"), "kind": "Meter",
            "metadata": {"name": name, "namespace": "default"}, "status": {"power": power}}),
        )
    };
    let create = async |endpoint: &Endpoint, object| {
        let options = CreateOptions::default();
        let created = endpoint.writes().create(&f.ctx, NS, object, &options);
        created.await.unwrap()
    };
    let update = async |endpoint: &Endpoint, subresource: &str, object| {
        let options = UpdateOptions::default();
        let updated = endpoint.writes().update(
            WriteRequest::new(&f.ctx, NS, "b")
                .at(subresource)
                .with(&options),
            object,
        );
        updated.await.map(|(written, _)| written)
    };
    let created = create(&with, meter("a", "v1", 1)).await;
    assert_eq!(at(&created, "/status"), json!(null));
    // Where it has no path of its own, the status is a field as others.
    let created = create(&without, meter("b", "v1alpha1", 1)).await;
    assert_eq!(at(&created, "/status"), json!({"power": 1}));
    let kept = update(&with, "", meter("b", "v1", 2)).await.unwrap();
    assert_eq!(at(&kept, "/status"), json!({"power": 1}));
    assert_eq!(at(&kept, "/metadata/generation"), json!(1));
    let written = update(&with, "status", meter("b", "v1", 2)).await.unwrap();
    assert_eq!(at(&written, "/status"), json!({"power": 2}));
    let written = update(&without, "", meter("b", "v1alpha1", 3))
        .await
        .unwrap();
    assert_eq!(at(&written, "/status"), json!({"power": 3}));
    assert_eq!(at(&written, "/metadata/generation"), json!(2));
    let error = update(&without, "status", meter("b", "v1alpha1", 4))
        .await
        .unwrap_err();
    assert_eq!(error.reason, Some(StatusReason::NotFound));
}
