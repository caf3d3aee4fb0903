//! How often a write decodes the object for the rules of its kind.

use apiloom_meta::patch::Patch;

use super::counted_text::{CountedText, take_decoded};
use super::*;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Letter {
    metadata: ObjectMeta,
    text: CountedText,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    stamp: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    status: Option<Status>,
}

impl ApiType for Letter {}

resource!(Letter, "v1", "Letter", "letters", |def| ResourceDef {
    scope: Scope::Cluster,
    storage: true,
    ..def
});

/// Every hook, each of which reads.
struct LetterRules;

impl Strategy<Letter> for LetterRules {
    fn default(&self, object: &mut Letter) {
        object.stamp.get_or_insert(1);
    }
    fn prepare_for_create(&self, _ctx: &RequestContext, object: &mut Letter) {
        object.stamp = Some(2);
    }
    fn prepare_for_update(&self, _ctx: &RequestContext, new: &mut Letter, old: &Letter) {
        new.stamp = old.stamp;
    }
    fn validate(&self, _ctx: &RequestContext, object: &Letter) -> Vec<FieldError> {
        assert!(object.stamp.is_some());
        Vec::new()
    }
    fn warnings(&self, _ctx: &RequestContext, object: &Letter) -> Vec<String> {
        vec![format!("{} is read by all", object.text.0)]
    }
}

/// A plugin that reads the new object in both phases, as the rules do.
struct Reader;

#[async_trait]
impl Admission for Reader {
    fn name(&self) -> &'static str {
        "Reader"
    }
    async fn mutate(&self, request: &mut AdmissionRequest<'_>) -> Result<(), ApiError> {
        self.validate(request).await
    }
    async fn validate(&self, request: &AdmissionRequest<'_>) -> Result<(), ApiError> {
        if request.is::<Letter>()
            && let Some(object) = &request.object
        {
            object.typed::<Letter>().expect("a letter");
        }
        Ok(())
    }
}

#[tokio::test]
async fn a_write_decodes_the_new_object_once_and_the_present_one_once() {
    let store = Memory::new();
    let mut builder = builder(&store);
    // The watch cache decodes for itself.
    builder.watch_cache(None);
    builder.kind::<Letter>();
    builder.strategy::<Letter>(LetterRules);
    builder.admission(|_| Box::new(Reader));
    let f = started(builder, store).await;
    let letters = f.registry.endpoint(GROUP, "v1", "letters").unwrap();
    let writes = letters.writes();
    let letter = |text: &str| object(json!({"metadata": {"name": "a"}, "text": text}));

    take_decoded();
    writes
        .create(&f.ctx, None, letter("x"), &CreateOptions::default())
        .await
        .unwrap();
    assert_eq!(take_decoded(), 1, "create");
    assert_eq!(f.ctx.take_warnings(), ["x is read by all"]);

    // Reading from the store puts in the defaults that are code, once, and the rules take that value.
    writes
        .update(
            WriteRequest::new(&f.ctx, None, "a").with(&UpdateOptions::default()),
            letter("y"),
        )
        .await
        .unwrap();
    assert_eq!(take_decoded(), 2, "update");
    assert_eq!(f.ctx.take_warnings(), ["y is read by all"]);

    let patch = Patch::parse_merge(br#"{"text": "z"}"#).unwrap();
    writes
        .patch(
            WriteRequest::new(&f.ctx, None, "a").with(&PatchOptions::default()),
            &patch,
        )
        .await
        .unwrap();
    assert_eq!(take_decoded(), 2, "patch");

    let status = json!({"metadata": {"name": "a"}, "text": "ignored", "status": {"ready": true}});
    writes
        .update(
            WriteRequest::new(&f.ctx, None, "a")
                .at("status")
                .with(&UpdateOptions::default()),
            object(status),
        )
        .await
        .unwrap();
    assert_eq!(
        take_decoded(),
        3,
        "status: what was sent, what is written, what was there"
    );

    let options = DeleteOptions::default();
    writes.delete(&f.ctx, None, "a", &options).await.unwrap();
    assert_eq!(take_decoded(), 1, "delete");
}
