//! core/v1 namespaces and NamespaceLifecycle.

use apiloom_kinds::core::v1::Namespace;
use apiloom_meta::kind::Verb;

use super::*;

/// A started registry with namespaces and widgets.
struct Fixture {
    _registry: Registry,
    store: Arc<Memory>,
    ctx: RequestContext,
    namespaces: Arc<Endpoint>,
    widgets: Arc<Endpoint>,
}

fn builder(store: &Arc<Memory>) -> RegistryBuilder {
    let mut builder = apiloom_kinds::registry(Arc::clone(store) as Arc<dyn Storage>);
    builder.kind::<Widget>();
    builder
}

async fn started(builder: RegistryBuilder, store: Arc<Memory>) -> Fixture {
    let registry = builder.build().unwrap();
    registry.start().await.unwrap();
    let widgets = registry.endpoint(Widget::GROUP, Widget::VERSION, Widget::PLURAL);
    Fixture {
        namespaces: registry.endpoint("", "v1", Namespace::PLURAL).unwrap(),
        widgets: widgets.unwrap(),
        ctx: RequestContext::default(),
        _registry: registry,
        store,
    }
}

async fn fixture() -> Fixture {
    let store = Memory::new();
    started(builder(&store), store).await
}

/// A value in an object, by JSON pointer.
fn at(object: &Object, pointer: &str) -> Value {
    object
        .clone()
        .into_tree()
        .pointer(pointer)
        .cloned()
        .unwrap_or_default()
}

/// The reason and the message of an error.
fn shown(error: &ApiError) -> (Option<&'static str>, &str) {
    (error.reason.map(StatusReason::as_str), &error.message)
}

impl Fixture {
    /// Creates a widget in a namespace.
    async fn create_in(&self, namespace: &str) -> Result<(), ApiError> {
        let input = object(json!({"metadata": {"name": "a"}}));
        let (writes, options) = (self.widgets.writes(), CreateOptions::default());
        let created = writes.create(&self.ctx, Some(namespace), input, &options);
        created.await.map(drop)
    }
    async fn make_namespace(&self, name: &str) -> Object {
        let input = object(json!({"metadata": {"name": name}}));
        self.namespaces
            .writes()
            .create(&self.ctx, None, input, &CreateOptions::default())
            .await
            .unwrap()
            .object
    }
    async fn delete_namespace(&self, name: &str) -> Result<DeleteResult, ApiError> {
        self.namespaces
            .writes()
            .delete(&self.ctx, None, name, &DeleteOptions::default())
            .await
    }
    async fn put_namespace(
        &self,
        subresource: &str,
        namespace: Object,
    ) -> Result<Object, ApiError> {
        let name = namespace.name().to_owned();
        let options = UpdateOptions::default();
        Ok(self
            .namespaces
            .writes()
            .update(
                WriteRequest::new(&self.ctx, None, &name)
                    .at(subresource)
                    .with(&options),
                namespace,
            )
            .await?
            .0
            .object)
    }
    async fn get_namespace(&self, name: &str) -> Result<Object, ApiError> {
        let got = self
            .namespaces
            .reads()
            .get(&self.ctx, None, name, &GetOptions::default())
            .await;
        got.map(|document| Object::clone(&document.object().unwrap()))
    }
}

#[tokio::test]
async fn the_default_namespace_is_made_once() {
    let f = fixture().await;
    let default = f.get_namespace("default").await.unwrap();
    assert_eq!(at(&default, "/status/phase"), "Active");
    assert_eq!(at(&default, "/spec/finalizers"), json!(["kubernetes"]));
    assert_eq!(
        default.label("kubernetes.io/metadata.name"),
        Some("default")
    );
    let (stored, _) = f.store.get("/registry/namespaces/default").await.unwrap();
    assert!(stored.is_some());
    let again = started(builder(&f.store), Arc::clone(&f.store)).await;
    assert_eq!(again.get_namespace("default").await.unwrap(), default);
}

#[tokio::test]
async fn creating_in_a_missing_namespace_is_not_found() {
    let f = fixture().await;
    let error = f.create_in("none").await.unwrap_err();
    assert_eq!(
        shown(&error),
        (Some("NotFound"), "namespaces \"none\" not found")
    );
    assert_eq!(error.details.unwrap().kind, "namespaces");
}

#[tokio::test]
async fn creating_in_a_terminating_namespace_is_forbidden() {
    let f = fixture().await;
    f.make_namespace("term1").await;
    f.delete_namespace("term1").await.unwrap();
    let error = f.create_in("term1").await.unwrap_err();
    let text = "widgets.test.example.com \"a\" is forbidden: unable to create new content in namespace term1 because it is \
                being terminated";
    assert_eq!(shown(&error), (Some("Forbidden"), text));
    let cause = &error.details.unwrap().causes[0];
    let expected = (
        "NamespaceTerminating",
        "namespace term1 is being terminated",
        "metadata.namespace",
    );
    assert_eq!(
        (
            cause.reason.as_str(),
            cause.message.as_str(),
            cause.field.as_str()
        ),
        expected
    );
}

#[tokio::test]
async fn a_namespace_can_be_used_as_soon_as_it_is_made() {
    let f = fixture().await;
    for i in 0..50 {
        let namespace = format!("n{i}");
        f.make_namespace(&namespace).await;
        f.create_in(&namespace).await.unwrap();
    }
}

#[tokio::test]
async fn immortal_namespaces_cannot_be_deleted() {
    let f = fixture().await;
    f.make_namespace("kube-system").await;
    for name in ["default", "kube-system"] {
        let error = f.delete_namespace(name).await.unwrap_err();
        let text = format!("namespaces \"{name}\" is forbidden: this namespace may not be deleted");
        assert_eq!(shown(&error), (Some("Forbidden"), text.as_str()));
    }
}

#[tokio::test]
async fn a_namespace_terminates_until_it_is_finalized() {
    let f = fixture().await;
    f.make_namespace("n").await;
    let DeleteResult::Pending(marked) = f.delete_namespace("n").await.unwrap() else {
        panic!("it has a finalizer")
    };
    assert!(marked.is_deleting());
    assert_eq!(at(&marked, "/status/phase"), "Terminating");
    assert_eq!(
        at(&marked, "/metadata/deletionGracePeriodSeconds"),
        Value::Null
    );
    let DeleteResult::Pending(again) = f.delete_namespace("n").await.unwrap() else {
        panic!("it has a finalizer")
    };
    assert_eq!(again, marked);

    let mut finalized = marked.clone();
    finalized.fields_mut().insert("spec".to_owned(), json!({}));
    let kept = f.put_namespace("", finalized.clone()).await.unwrap();
    assert_eq!(at(&kept, "/spec/finalizers"), json!(["kubernetes"]));
    let answer = f.put_namespace("finalize", finalized).await.unwrap();
    assert_eq!(answer.resource_version(), marked.resource_version());
    assert_eq!(
        f.get_namespace("n").await.unwrap_err().reason,
        Some(StatusReason::NotFound)
    );
}

#[tokio::test]
async fn a_finalizer_of_its_own_holds_a_namespace_back_too() {
    let f = fixture().await;
    let input = object(json!({"metadata": {"name": "n", "finalizers": ["example.com/x"]}}));
    f.namespaces
        .writes()
        .create(&f.ctx, None, input, &CreateOptions::default())
        .await
        .unwrap();
    let DeleteResult::Pending(mut marked) = f.delete_namespace("n").await.unwrap() else {
        panic!("it has finalizers")
    };
    marked.fields_mut().insert("spec".to_owned(), json!({}));
    let mut kept = f.put_namespace("finalize", marked).await.unwrap();
    assert!(f.get_namespace("n").await.is_ok());
    kept.meta_mut().remove("finalizers");
    f.put_namespace("", kept).await.unwrap();
    assert!(f.get_namespace("n").await.is_err());
}

#[tokio::test]
async fn status_cannot_contradict_the_deletion() {
    let f = fixture().await;
    let mut namespace = f.make_namespace("n").await;
    namespace
        .fields_mut()
        .insert("status".to_owned(), json!({"phase": "Terminating"}));
    let error = f.put_namespace("status", namespace).await.unwrap_err();
    let text = "Namespace \"n\" is invalid: status.phase: Invalid value: \"Terminating\": may only be 'Active' if `deletionTimestamp` is empty";
    assert_eq!(shown(&error), (Some("Invalid"), text));
}

#[tokio::test]
async fn namespaces_have_no_deletecollection_and_two_subresources() {
    let f = fixture().await;
    assert!(!f.namespaces.def().has_verb(Verb::DeleteCollection));
    let names = f.namespaces.def().subresource_names();
    assert_eq!(names.collect::<Vec<_>>(), ["finalize", "status"]);
}

#[tokio::test]
async fn the_lifecycle_plugin_can_be_disabled() {
    let store = Memory::new();
    let mut builder = builder(&store);
    builder.disable_admission(&["NamespaceLifecycle".to_owned()]);
    let f = started(builder, store).await;
    f.create_in("none").await.unwrap();
}

#[tokio::test]
async fn a_server_of_built_in_kinds_has_the_namespaces_of_kubernetes() {
    let names = async |configure: fn(&mut RegistryBuilder)| {
        let store = Memory::new();
        let mut builder = builder(&store);
        configure(&mut builder);
        let registry = builder.build().unwrap();
        registry.start().await.unwrap();
        let prefix = "/registry/namespaces/";
        let request = apiloom_storage::ListRequest {
            prefix: prefix.to_owned(),
            ..Default::default()
        };
        let page = store.list(request).await.unwrap();
        let keys = page.entries.iter();
        let names: Vec<String> = keys
            .map(|entry| entry.key.trim_start_matches(prefix).to_owned())
            .collect();
        names
    };
    assert_eq!(names(|_| {}).await, ["default"]);
    let all = ["default", "kube-node-lease", "kube-public", "kube-system"];
    assert_eq!(names(register_all).await, all);
    let others = names(|builder| {
        register_all(builder);
        builder.system_namespaces(vec!["ours".to_owned(), "default".to_owned()]);
    });
    assert_eq!(others.await, ["default", "ours"]);
    let store = Memory::new();
    let mut wrong = builder(&store);
    wrong.system_namespaces(vec!["Ours".to_owned()]);
    let problems = wrong.build().unwrap_err();
    assert!(problems[0].starts_with("\"Ours\" cannot be the name of a system namespace"));
}

#[tokio::test(start_paused = true)]
async fn a_system_namespace_that_is_gone_is_created_again() {
    let store = Memory::new();
    let mut builder = builder(&store);
    builder.system_namespaces(vec!["kube-node-lease".to_owned()]);
    let registry = builder.build().unwrap();
    registry.start().await.unwrap();
    let key = "/registry/namespaces/kube-node-lease";
    let first = store.get(key).await.unwrap().0.unwrap();
    store.delete_if(key, first.revision).await.unwrap();
    assert!(store.get(key).await.unwrap().0.is_none());
    let is_back = async {
        while store.get(key).await.unwrap().0.is_none() {
            tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        }
    };
    let bound = std::time::Duration::from_secs(70);
    tokio::time::timeout(bound, is_back).await.unwrap();
}
