//! What a lister shows, when it can be read, and what it costs.

use std::time::Duration;

use super::counted_text::{CountedText, take_decoded};
use super::*;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Note {
    metadata: ObjectMeta,
    text: CountedText,
}

impl ApiType for Note {}

resource!(Note, "v1", "Note", "notes", |def| ResourceDef {
    storage: true,
    subresources: Vec::new(),
    ..def
});

fn names<K: Resource>(objects: &[Arc<K>]) -> Vec<&str> {
    let names = objects.iter().map(|object| &object.metadata().name);
    names.flatten().map(String::as_str).collect()
}

#[tokio::test]
async fn every_acknowledged_write_is_shown_without_waiting() {
    let store = Memory::new();
    let builder = builder(&store);
    let widgets: Lister<Widget> = builder.lister();
    let f = started(builder, store).await;
    for i in 0..50 {
        let name = format!("w{i}");
        f.create(widget(&name, json!({"color": "red"})))
            .await
            .unwrap();
        let created = widgets.get("default", &name).unwrap().expect("it is there");
        assert_eq!(created.spec.color.as_deref(), Some("red"));

        f.merge(&name, json!({"spec": {"color": "blue"}}))
            .await
            .unwrap();
        let changed = widgets.get("default", &name).unwrap().expect("it is there");
        assert_eq!(changed.spec.color.as_deref(), Some("blue"));

        f.delete(&name).await.unwrap();
        assert_eq!(widgets.get("default", &name).unwrap(), None);
    }
    assert_eq!(widgets.list().unwrap(), []);
}

#[tokio::test]
async fn objects_come_in_the_order_of_their_keys_and_of_one_namespace_if_that_is_asked_for() {
    let store = Memory::new();
    let builder = builder(&store);
    let (widgets, gadgets) = (builder.lister::<Widget>(), builder.lister::<Gadget>());
    let f = started(builder, store).await;
    let other = object(json!({"metadata": {"name": "other"}}));
    let options = CreateOptions::default();
    f.namespaces
        .writes()
        .create(&f.ctx, None, other, &options)
        .await
        .unwrap();
    for (namespace, name) in [("other", "c"), ("default", "b"), ("default", "a")] {
        let input = object(widget(name, json!({})));
        let writes = f.widgets.writes();
        writes
            .create(&f.ctx, Some(namespace), input, &options)
            .await
            .unwrap();
    }
    assert_eq!(names(&widgets.list().unwrap()), ["a", "b", "c"]);
    assert_eq!(names(&widgets.list_in("default").unwrap()), ["a", "b"]);
    assert_eq!(names(&widgets.list_in("othe").unwrap()), [""; 0]);

    let gadget = object(json!({"metadata": {"name": "g"}}));
    f.gadgets
        .writes()
        .create(&f.ctx, None, gadget, &options)
        .await
        .unwrap();
    assert_eq!(
        gadgets
            .get("", "g")
            .unwrap()
            .unwrap()
            .metadata
            .name
            .as_deref(),
        Some("g")
    );
    assert_eq!(gadgets.get("", "").unwrap(), None);
}

#[tokio::test]
async fn it_is_read_in_its_own_version_and_leaves_out_what_is_damaged() {
    let store = Memory::new();
    let builder = builder(&store);
    let (hub, stored) = (builder.lister::<Widget>(), builder.lister::<AlphaWidget>());
    let f = started(builder, Arc::clone(&store)).await;
    f.create(widget("a", json!({"color": "red"})))
        .await
        .unwrap();
    let write = async |name: &str, value: &'static [u8]| {
        let key = f.widgets.resource().kind.keys.key(NS, name).unwrap();
        store.create(&key, value.into(), None).await.unwrap();
    };
    write("broken", b"{").await;
    // Every object of this kind has metadata; this one's color is no text.
    let ill_typed = br#"{"kind":"Widget","apiVersion":"test.example.com/v1alpha1","metadata":{"name":"odd"},"spec":{"colour":1}}"#;
    write("odd", ill_typed).await;
    f.create(widget("z", json!({"color": "blue"})))
        .await
        .unwrap();

    let colors: Vec<_> = hub
        .list()
        .unwrap()
        .iter()
        .map(|w| w.spec.color.clone())
        .collect();
    assert_eq!(colors, [Some("red".to_owned()), Some("blue".to_owned())]);
    let colours: Vec<_> = stored
        .list()
        .unwrap()
        .iter()
        .map(|w| w.spec.colour.clone())
        .collect();
    assert_eq!(colours, [Some("red".to_owned()), Some("blue".to_owned())]);
    let error = hub.get_live("default", "broken").await.unwrap_err();
    assert!(
        error.message.contains("unable to decode"),
        "{}",
        error.message
    );
}

#[tokio::test]
async fn it_cannot_be_read_before_the_cache_is_filled() {
    let store = Memory::new();
    let builder = builder(&store);
    let widgets: Lister<Widget> = builder.lister();
    let not_ready = |error: ApiError| assert_eq!(error.message, "not yet ready to handle request");
    not_ready(widgets.list().unwrap_err());
    not_ready(widgets.ready().await.unwrap_err());
    let registry = builder.build().unwrap();
    not_ready(widgets.list().unwrap_err());
    let filled = widgets.ready();
    let (filled, started) = tokio::join!(filled, registry.start());
    filled.unwrap();
    started.unwrap();
    assert_eq!(widgets.list().unwrap(), []);
}

#[tokio::test]
async fn a_kind_without_a_watch_cache_has_one_for_its_listers() {
    let store = Memory::new();
    let mut builder = builder(&store);
    builder.watch_cache(None);
    let widgets: Lister<Widget> = builder.lister();
    let f = started(builder, store).await;
    assert!(f.widgets.resource().cache.is_none());
    f.create(widget("a", json!({}))).await.unwrap();
    assert_eq!(names(&widgets.list().unwrap()), ["a"]);
}

/// The memory of the watch cache of notes with a lister or without, and how often notes were decoded.
async fn with_notes(is_listed: bool) -> (usize, usize) {
    let store = Memory::new();
    let mut builder = builder(&store);
    builder.kind::<Note>();
    let lister = is_listed.then(|| builder.lister::<Note>());
    let f = started(builder, store).await;
    let notes = f.registry.endpoint(GROUP, "v1", "notes").unwrap();
    take_decoded();
    for i in 0..10 {
        let text = "x".repeat(1000);
        let note = json!({"metadata": {"name": format!("n{i}")}, "text": text});
        let options = CreateOptions::default();
        notes
            .writes()
            .create(&f.ctx, NS, object(note), &options)
            .await
            .unwrap();
    }
    for _ in 0..5 {
        let listed = lister.as_ref().map(|lister| lister.list().unwrap().len());
        assert_eq!(listed, is_listed.then_some(10));
    }
    let cache = &notes.resource().cache.as_ref().unwrap();
    let newest = f.store.current_revision().await.unwrap();
    assert!(cache.reach(newest, Duration::from_secs(10)).await);
    (cache.size().object_bytes, take_decoded())
}

#[tokio::test]
async fn each_object_is_decoded_once_and_counted_in_the_memory_of_the_cache() {
    let (without, decoded) = with_notes(false).await;
    assert_eq!(decoded, 0, "a kind without listers is not decoded");
    let (with, decoded) = with_notes(true).await;
    assert_eq!(decoded, 10, "five lists decode nothing");
    let (more, json) = (with - without, 10 * 1000);
    assert!((json..3 * json).contains(&more), "{more} bytes");
}

/// Rules that compare a widget with the gadget of its name.
struct Comparing {
    gadgets: Lister<Gadget>,
}

impl Strategy<Widget> for Comparing {
    const HAS_DEFAULTS: bool = false;

    fn validate(&self, _ctx: &RequestContext, object: &Widget) -> Vec<FieldError> {
        let name = object.metadata.name.as_deref().unwrap_or_default();
        let path = FieldPath::new("metadata").child("name");
        match self.gadgets.get("", name) {
            Ok(Some(_)) => Vec::new(),
            Ok(None) => vec![FieldError::invalid(&path, name, "there is no such gadget")],
            Err(error) => vec![FieldError::invalid(&path, name, &error.message)],
        }
    }
}

#[tokio::test]
async fn a_strategy_reads_a_lister() {
    let store = Memory::new();
    let mut builder = without_rules(Arc::clone(&store) as Arc<dyn Storage>);
    let gadgets = builder.lister();
    builder.strategy::<Widget>(Comparing { gadgets });
    let f = started(builder, store).await;
    let error = f.create(widget("a", json!({}))).await.unwrap_err();
    assert!(
        error.message.ends_with("there is no such gadget"),
        "{}",
        error.message
    );
    let gadget = object(json!({"metadata": {"name": "a"}}));
    let options = CreateOptions::default();
    f.gadgets
        .writes()
        .create(&f.ctx, None, gadget, &options)
        .await
        .unwrap();
    f.create(widget("a", json!({}))).await.unwrap();
}
