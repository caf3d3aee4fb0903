//! Creates by code whose name is taken.

use super::*;

#[tokio::test]
async fn an_apply_changes_what_another_program_has_created_meanwhile() {
    let code = Code::new(&[], "1");
    let (f, samples) = samples(&code).await;
    *code.0.rival.lock().unwrap() = Some(sample("a", "", "rival"));
    let options = PatchOptions {
        field_manager: "tester".to_owned(),
        ..PatchOptions::default()
    };
    let request = WriteRequest::new(&f.ctx, NS, "a").with(&options);
    let document = object(
        json!({"apiVersion": "test.example.com/v1", "kind": "Sample",
        "metadata": {"name": "a"}, "color": "red"}),
    );
    let document = AppliedDocument::from(document);
    let (applied, is_created) = samples.writes().apply(request, &document).await.unwrap();
    assert!(!is_created);
    assert_eq!(at(&applied, "/color"), "red");
    assert_eq!(code.0.updates.load(Ordering::Relaxed), 1);
    // A create is told.
    *code.0.rows.lock().unwrap() = Vec::new();
    *code.0.rival.lock().unwrap() = Some(sample("a", "", "rival"));
    let sent = object(json!({"metadata": {"name": "a"}}));
    let options = CreateOptions::default();
    let refused = samples.writes().create(&f.ctx, NS, sent, &options).await;
    assert_eq!(
        refused.unwrap_err().reason,
        Some(StatusReason::AlreadyExists)
    );
}

/// Code that answers each create as if there were such an object.
struct Full;

#[async_trait]
impl Writer<Sample> for Full {
    const VERBS: &'static [Verb] = <Code as Writer<Sample>>::VERBS;

    async fn create(
        &self,
        _: &RequestContext,
        object: Sample,
        _: &CreateOptions,
    ) -> Result<Sample, ApiError> {
        let resource = apiloom_meta::GroupResource::new(GROUP, "samples");
        let name = object.metadata.name.unwrap_or_default();
        Err(ApiError::already_exists(&resource, &name))
    }
}

#[tokio::test]
async fn another_name_is_generated_for_one_that_is_taken() {
    let code = Code::new(&[], "1");
    let (f, samples) = samples(&code).await;
    let sent = || object(json!({"metadata": {"generateName": "a-"}}));
    let options = CreateOptions::default();
    *code.0.rival.lock().unwrap() = Some(sample("a-1", "", "rival"));
    let created = samples.writes().create(&f.ctx, NS, sent(), &options).await;
    assert!(created.unwrap().name().starts_with("a-"));
    assert_eq!(code.0.rows.lock().unwrap().len(), 2);

    let store = Memory::new();
    let mut builder = builder(&store);
    builder.kind::<Sample>();
    builder.reader::<Sample>(Code::default());
    builder.writer::<Sample>(Full);
    let tries = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&tries);
    builder.name_source(move || format!("{}", counted.fetch_add(1, Ordering::Relaxed)));
    let f = started(builder, store).await;
    let samples = f.registry.endpoint(GROUP, "v1", "samples").unwrap();
    let refused = samples.writes().create(&f.ctx, NS, sent(), &options).await;
    let text = "samples.test.example.com \"a-7\" already exists, the server was not able to generate a unique name for the object";
    assert_eq!(shown(&refused.unwrap_err()), (Some("AlreadyExists"), text));
    assert_eq!(tries.load(Ordering::Relaxed), 8);
}
