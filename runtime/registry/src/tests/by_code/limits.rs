//! Which objects code is not given: those that are too large, and those that may be a part of what they should be.

use std::future::poll_fn;
use std::pin::pin;

use apiloom_meta::interrupt::Interrupt;

use super::*;

const LIMIT: usize = 10_000;

/// A started registry with this code and a limit for the size of objects, and the endpoint of the samples. With an interrupt it
/// is set by the last step before the code.
async fn limited(code: &Code, interrupt: Option<Interrupt>) -> (Fixture, Arc<Endpoint>) {
    let store = Memory::new();
    let mut builder = builder(&store);
    builder.kind::<Sample>();
    builder.reader::<Sample>(code.clone());
    builder.writer::<Sample>(code.clone());
    builder.max_object_bytes(LIMIT);
    builder.admission(|_| Box::new(Interrupter(interrupt)));
    let f = started(builder, store).await;
    let endpoint = f.registry.endpoint(GROUP, "v1", "samples").unwrap();
    (f, endpoint)
}

/// An admission plugin that interrupts the work of a request on a sample.
struct Interrupter(Option<Interrupt>);

#[async_trait]
impl Admission for Interrupter {
    fn name(&self) -> &'static str {
        "Interrupter"
    }

    async fn validate(&self, request: &AdmissionRequest<'_>) -> Result<(), ApiError> {
        if let Some(interrupt) = self
            .0
            .as_ref()
            .filter(|_| request.resource.resource == "samples")
        {
            interrupt.set();
        }
        Ok(())
    }
}

fn annotated(bytes: usize) -> Value {
    json!({"metadata": {"name": "a", "annotations": {"a": "x".repeat(bytes)}}})
}

#[tokio::test]
async fn an_object_is_as_large_as_one_in_a_store_may_be() {
    let code = Code::new(&[], "1");
    let (f, samples) = limited(&code, None).await;
    let options = CreateOptions::default();
    let create = async |bytes| {
        let sent = object(annotated(bytes));
        let created = samples.writes().create(&f.ctx, NS, sent, &options).await;
        created.map_err(|error| error.reason)
    };
    let too_large = Some(StatusReason::RequestEntityTooLarge);
    assert_eq!(create(LIMIT).await.err(), Some(too_large));
    assert_eq!(code.found(NS, "a"), None);
    create(LIMIT / 2).await.unwrap();

    let request = WriteRequest::new(&f.ctx, NS, "a").with(&options);
    let patch = async |bytes| {
        let patch = Patch::parse_merge(annotated(bytes).to_string().as_bytes()).unwrap();
        let patched = samples.writes().patch(request, &patch).await;
        patched.map_err(|error| error.reason)
    };
    assert_eq!(patch(LIMIT).await.err(), Some(too_large));
    assert_eq!(code.0.updates.load(Ordering::Relaxed), 0);
    patch(LIMIT / 2 + 1).await.unwrap();
    // One that the code has already may be made smaller.
    let mut large = sample("a", "red", "large");
    large.metadata.annotations = [("a".to_owned(), "x".repeat(3 * LIMIT))]
        .into_iter()
        .collect();
    *code.0.rows.lock().unwrap() = vec![large];
    assert_eq!(patch(4 * LIMIT).await.err(), Some(too_large));
    patch(2 * LIMIT).await.unwrap();
}

#[tokio::test]
async fn an_object_of_interrupted_work_is_not_kept() {
    for exists in [false, true] {
        let interrupt = Interrupt::default();
        let rows = [sample("a", "red", "1")];
        let code = Code::new(&rows[..usize::from(exists)], "1");
        let (f, samples) = limited(&code, Some(interrupt.clone())).await;
        let options = PatchOptions {
            field_manager: "tester".to_owned(),
            force: true,
            ..PatchOptions::default()
        };
        let request = WriteRequest::new(&f.ctx, NS, "a").with(&options);
        let document = json!({"apiVersion": "test.example.com/v1", "kind": "Sample",
            "metadata": {"name": "a"}, "color": "green"});
        let document = AppliedDocument::from(object(document));
        let mut applied = pin!(samples.writes().apply(request, &document));
        let applied = poll_fn(|cx| interrupt.scope(|| applied.as_mut().poll(cx))).await;
        assert_eq!(applied.unwrap_err().reason, Some(StatusReason::Timeout));
        let kept = code.found(NS, "a");
        assert_eq!(kept, exists.then(|| sample("a", "red", "1")), "{exists}");
    }
}
