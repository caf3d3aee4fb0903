//! Kinds without a store, whose verbs are code: what of it reaches clients.

mod limits;
mod taken_names;

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use apiloom_meta::StatusReason::{Conflict, InternalError, MethodNotAllowed, NotFound};
use apiloom_meta::patch::Patch;
use futures_util::{StreamExt as _, stream};

use super::*;

/// A kind that is read and written by code.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(super) struct Sample {
    pub(super) metadata: ObjectMeta,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) color: Option<String>,
}

impl ApiType for Sample {}

resource!(Sample, "v1", "Sample", "samples", |def| ResourceDef {
    has_store: false,
    storage: true,
    subresources: Vec::new(),
    verbs: Verb::DEFAULT.to_vec(),
    selectable: vec![JsonPath::new(["color"]).into()],
    ..def
});

/// A sample with the label `color`, too; the name may be `NAMESPACE/NAME`.
fn sample(name: &str, color: &str, version: &str) -> Sample {
    let (namespace, name) = name.split_once('/').unwrap_or(("default", name));
    let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    Sample {
        metadata: ObjectMeta {
            name: text(name),
            namespace: text(namespace),
            resource_version: text(version),
            labels: [("color".to_owned(), color.to_owned())]
                .into_iter()
                .collect(),
            ..ObjectMeta::default()
        },
        color: text(color),
    }
}

/// Events that a watch of the code begins with, and whether it ends then.
type Script = (Vec<Result<ObjectEvent<Sample>, ApiError>>, bool);

/// Code over a table.
#[derive(Default)]
struct Table {
    rows: Mutex<Vec<Sample>>,
    version: String,
    script: Mutex<Option<Script>>,
    /// The resourceVersions of watches.
    watched: Mutex<Vec<String>>,
    /// How many updates are answered with Conflict.
    conflicts: AtomicUsize,
    /// An object that another program creates just before a create.
    rival: Mutex<Option<Sample>>,
    updates: AtomicUsize,
    /// What deletes answer: an object that is not gone yet.
    left: Mutex<Option<Sample>>,
}

/// The table of a test and of its registry.
#[derive(Clone, Default)]
struct Code(Arc<Table>);

impl Code {
    fn new(rows: &[Sample], version: &str) -> Self {
        Self(Arc::new(Table {
            rows: Mutex::new(rows.to_vec()),
            version: version.to_owned(),
            ..Table::default()
        }))
    }

    fn found(&self, namespace: Option<&str>, name: &str) -> Option<Sample> {
        let rows = self.0.rows.lock().unwrap();
        let mut found = rows.iter().filter(|row| {
            let metadata = &row.metadata;
            metadata.name.as_deref() == Some(name) && metadata.namespace.as_deref() == namespace
        });
        found.next().cloned()
    }

    /// Begins a watch with these events. Without an end it is silent after them.
    fn script(&self, events: Vec<Result<ObjectEvent<Sample>, ApiError>>, ends: bool) {
        *self.0.script.lock().unwrap() = Some((events, ends));
    }
}

#[async_trait]
impl Reader<Sample> for Code {
    const VERBS: &'static [Verb] = &[Verb::Get, Verb::List, Verb::Watch];

    async fn get(
        &self,
        _: &RequestContext,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<Sample, ApiError> {
        match name {
            "other" => Ok(sample("another", "", "1")),
            "elsewhere" => Ok(sample("secret/elsewhere", "", "1")),
            "never" => std::future::pending().await,
            _ => {
                let resource = apiloom_meta::GroupResource::new(GROUP, "samples");
                let found = self.found(namespace, name);
                found.ok_or_else(|| ApiError::not_found(&resource, name))
            }
        }
    }

    async fn list(
        &self,
        _: &RequestContext,
        _: Option<&str>,
        options: &ListOptions,
    ) -> Result<ObjectList<Sample>, ApiError> {
        assert_eq!((options.limit, &*options.continue_token), (0, ""));
        let rows = self.0.rows.lock().unwrap().clone();
        Ok(ObjectList::new(rows, &*self.0.version))
    }

    async fn watch(
        &self,
        _: &RequestContext,
        _: Option<&str>,
        options: &ListOptions,
    ) -> Result<ObjectEvents<Sample>, ApiError> {
        let version = options.resource_version.clone();
        self.0.watched.lock().unwrap().push(version);
        let script = self.0.script.lock().unwrap().take();
        let Some((events, ends)) = script else {
            return std::future::pending().await;
        };
        let events = stream::iter(events);
        Ok(if ends {
            ObjectEvents::new(events)
        } else {
            ObjectEvents::new(events.chain(stream::pending()))
        })
    }
}

#[async_trait]
impl Writer<Sample> for Code {
    const VERBS: &'static [Verb] = &[Verb::Create, Verb::Update, Verb::Patch, Verb::Delete];

    async fn create(
        &self,
        _: &RequestContext,
        mut object: Sample,
        options: &CreateOptions,
    ) -> Result<Sample, ApiError> {
        if let Some(rival) = self.0.rival.lock().unwrap().take() {
            self.0.rows.lock().unwrap().push(rival);
            let resource = apiloom_meta::GroupResource::new(GROUP, "samples");
            let name = object.metadata.name.unwrap_or_default();
            return Err(ApiError::already_exists(&resource, &name));
        }
        object.metadata.resource_version = Some("new".to_owned());
        if !options.dry_run {
            self.0.rows.lock().unwrap().push(object.clone());
        }
        Ok(object)
    }

    async fn update(
        &self,
        _: &RequestContext,
        old: Sample,
        mut new: Sample,
        _: &UpdateOptions,
    ) -> Result<Sample, ApiError> {
        self.0.updates.fetch_add(1, Ordering::Relaxed);
        let conflicts = &self.0.conflicts;
        let is_over = conflicts
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                left.checked_sub(1)
            })
            .is_err();
        if !is_over {
            return Err(ApiError::new(Conflict, "it has changed"));
        }
        new.metadata.resource_version = Some("newer".to_owned());
        let mut rows = self.0.rows.lock().unwrap();
        let mut found = rows.iter_mut();
        let row = found.find(|row| row.metadata.resource_version == old.metadata.resource_version);
        row.unwrap().clone_from(&new);
        Ok(new)
    }

    async fn delete(
        &self,
        _: &RequestContext,
        object: Sample,
        _: &DeleteOptions,
    ) -> Result<Option<Sample>, ApiError> {
        let place = |of: &Sample| (of.metadata.namespace.clone(), of.metadata.name.clone());
        let mut rows = self.0.rows.lock().unwrap();
        rows.retain(|row| place(row) != place(&object));
        Ok(self.0.left.lock().unwrap().take())
    }
}

/// A started registry with this code, and the endpoint of the samples.
async fn samples(code: &Code) -> (Fixture, Arc<Endpoint>) {
    let store = Memory::new();
    let mut builder = builder(&store);
    builder.kind::<Sample>();
    builder.reader::<Sample>(code.clone());
    builder.writer::<Sample>(code.clone());
    let f = started(builder, store).await;
    let endpoint = f.registry.endpoint(GROUP, "v1", "samples").unwrap();
    (f, endpoint)
}

#[tokio::test]
async fn a_list_has_what_was_asked_for_in_order() {
    let rows = [
        sample("b", "red", "2"),
        sample("a", "blue", "1"),
        sample("x/a", "red", "3"),
    ];
    let (f, samples) = samples(&Code::new(&rows, "3")).await;
    let check = async |namespace, options: ListOptions, expected: &[&str]| {
        let listed = samples.reads().list(&f.ctx, namespace, &options).await;
        let listed = listed.unwrap();
        assert_eq!(names(&listed), expected, "{options:?}");
        assert_eq!(listed.resource_version, "3");
    };
    check(NS, ListOptions::default(), &["a", "b"]).await;
    check(None, ListOptions::default(), &["a", "b", "a"]).await;
    check(None, labels("color=red"), &["b", "a"]).await;
    check(None, fields("color=blue"), &["a"]).await;
    check(None, fields("metadata.namespace=x"), &["a"]).await;
    check(NS, fields("metadata.name=b,color!=blue"), &["b"]).await;
    let error = samples.reads().list(&f.ctx, NS, &fields("size=1")).await;
    assert_eq!(
        error.unwrap_err().message,
        "field label not supported: size"
    );
    let typed = samples
        .reads()
        .list(&f.ctx, NS, &ListOptions::default())
        .await;
    let first = items(&typed.unwrap()).remove(0);
    assert_eq!(
        (first.api_version(), first.kind()),
        ("test.example.com/v1", "Sample")
    );
}

#[tokio::test]
async fn lists_are_cut_into_pages() {
    let rows = ["e", "b", "d", "a", "c"].map(|name| sample(name, "red", "1"));
    let (f, samples) = samples(&Code::new(&rows, "5")).await;
    let mut options = ListOptions {
        limit: 2,
        ..ListOptions::default()
    };
    let mut pages = Vec::new();
    loop {
        let page = samples.reads().list(&f.ctx, NS, &options).await.unwrap();
        pages.push((names(&page).concat(), page.remaining_item_count));
        options.continue_token = page.continue_token;
        if options.continue_token.is_empty() {
            break;
        }
    }
    let expected = [("ab", Some(3)), ("cd", Some(1)), ("e", None)];
    assert_eq!(
        pages,
        expected.map(|(names, left)| (names.to_owned(), left))
    );
    let selected = ListOptions {
        limit: 2,
        ..labels("color=red")
    };
    let page = samples.reads().list(&f.ctx, NS, &selected).await.unwrap();
    assert!(!page.continue_token.is_empty());
    assert_eq!(
        page.remaining_item_count, None,
        "with selectors it is not told"
    );
    let both = ListOptions {
        continue_token: page.continue_token,
        resource_version: "5".to_owned(),
        ..ListOptions::default()
    };
    let broken = ListOptions {
        continue_token: "?".to_owned(),
        ..ListOptions::default()
    };
    for refused in [both, broken] {
        let error = samples.reads().list(&f.ctx, NS, &refused).await;
        assert_eq!(error.unwrap_err().reason, Some(StatusReason::BadRequest));
    }
}

#[tokio::test]
async fn an_object_that_was_not_asked_for_is_an_error_of_the_server() {
    let (f, samples) = samples(&Code::new(&[sample("/lost", "", "1")], "1")).await;
    for name in ["other", "elsewhere"] {
        let got = samples
            .reads()
            .get(&f.ctx, NS, name, &GetOptions::default())
            .await;
        assert_eq!(got.unwrap_err().reason, Some(InternalError), "{name}");
    }
    let listed = samples
        .reads()
        .list(&f.ctx, None, &ListOptions::default())
        .await;
    assert_eq!(
        listed.unwrap_err().message,
        "Internal error occurred: the code of samples.test.example.com answered with the wrong object: namespace \"\", \
         name \"lost\""
    );
}

#[tokio::test]
async fn a_delete_answers_the_object_that_was_asked_for() {
    let code = Code::new(&[sample("a", "red", "1")], "1");
    let (f, samples) = samples(&code).await;
    let delete = async |left: Sample| {
        *code.0.rows.lock().unwrap() = vec![sample("a", "red", "1")];
        *code.0.left.lock().unwrap() = Some(left);
        let options = DeleteOptions::default();
        samples.writes().delete(&f.ctx, NS, "a", &options).await
    };
    let pending = delete(sample("a", "red", "2")).await.unwrap();
    let DeleteResult::Pending(pending) = pending else {
        panic!("{pending:?}")
    };
    assert_eq!((pending.name(), pending.resource_version()), ("a", "2"));
    for other in ["b", "secret/a"] {
        let refused = delete(sample(other, "red", "2")).await;
        assert_eq!(refused.unwrap_err().reason, Some(InternalError), "{other}");
    }
}

/// Code that cuts pages of one object, and counts the following ones.
struct Pages;

#[async_trait]
impl Reader<Sample> for Pages {
    const VERBS: &'static [Verb] = &[Verb::Get, Verb::List, Verb::Watch];
    const CUTS_PAGES: bool = true;

    async fn list(
        &self,
        _: &RequestContext,
        _: Option<&str>,
        options: &ListOptions,
    ) -> Result<ObjectList<Sample>, ApiError> {
        Ok(match (options.limit, &*options.continue_token) {
            (1, "") => ObjectList::new(vec![sample("b", "red", "1")], "2").with_next("b", Some(1)),
            (1, "b") => ObjectList::new(vec![sample("a", "blue", "2")], "2"),
            // Wrong: it is asked for all.
            (0, "") => ObjectList::new(vec![sample("b", "red", "1")], "2").with_next("b", None),
            other => panic!("{other:?}"),
        })
    }
}

#[tokio::test]
async fn pages_of_the_code_are_passed_on() {
    let store = Memory::new();
    let mut builder = builder(&store);
    builder.kind::<Sample>();
    builder.reader::<Sample>(Pages);
    builder.writer::<Sample>(Code::default());
    let f = started(builder, store).await;
    let samples = f.registry.endpoint(GROUP, "v1", "samples").unwrap();
    let page = async |continue_token: &str, options: ListOptions| {
        let options = ListOptions {
            limit: 1,
            continue_token: continue_token.to_owned(),
            ..options
        };
        let page = samples.reads().list(&f.ctx, NS, &options).await.unwrap();
        let names = names(&page).concat();
        (names, page.continue_token, page.remaining_item_count)
    };
    let expected =
        |names: &str, token: &str, remaining| (names.to_owned(), token.to_owned(), remaining);
    let first = page("", ListOptions::default()).await;
    assert_eq!(first, expected("b", "b", Some(1)));
    let second = page("b", ListOptions::default()).await;
    assert_eq!(second, expected("a", "", None));
    // What follows may be left out: as in Kubernetes, its number is not told.
    let selected = page("", labels("color=red")).await;
    assert_eq!(selected, expected("b", "b", None));
    let all = ListOptions::default();
    let refused = samples.reads().watch(&f.ctx, NS, &all).await;
    assert_eq!(
        refused.unwrap_err().message,
        "Internal error occurred: the code of samples.test.example.com answered with a page of a list where no limit was \
         asked for"
    );
}

/// The next event as type, name and resourceVersion.
async fn next(events: &mut WatchEvents) -> (WatchEventKind, String) {
    let event = events.next().await.unwrap().unwrap();
    let object = decoded(&event.object);
    let text = format!("{}@{}", object.name(), object.resource_version());
    (event.kind, text)
}

use WatchEventKind::{Added, Bookmark, Deleted as Gone, Modified};

#[tokio::test]
async fn a_watch_begins_with_the_objects_and_goes_on_with_what_it_selects() {
    let code = Code::new(&[sample("b", "red", "2"), sample("a", "blue", "1")], "2");
    let change = |old: &str, new: &str, version: &str| {
        Ok(ObjectEvent::Modified {
            old: sample("b", old, "2"),
            new: sample("b", new, version),
        })
    };
    code.script(
        vec![
            change("red", "red", "3"),
            change("red", "green", "4"),
            change("green", "blue", "5"),
            change("blue", "red", "6"),
            Ok(ObjectEvent::Added(sample("c", "red", "7"))),
            Ok(ObjectEvent::Added(sample("x/c", "red", "8"))),
            Ok(ObjectEvent::Bookmark("9".to_owned())),
            // A client that resumed from it would begin anew.
            Ok(ObjectEvent::Bookmark(String::new())),
            Ok(ObjectEvent::Deleted(sample("c", "red", "10"))),
        ],
        true,
    );
    let (f, samples) = samples(&code).await;
    let options = ListOptions {
        allow_watch_bookmarks: true,
        ..labels("color=red")
    };
    let mut events = samples.reads().watch(&f.ctx, NS, &options).await.unwrap();
    for (kind, object) in [
        (Added, "b@2"),
        (Bookmark, "@2"),
        (Modified, "b@3"),
        (Gone, "b@4"),
        (Added, "b@6"),
        (Added, "c@7"),
        (Bookmark, "@9"),
        (Gone, "c@10"),
    ] {
        assert_eq!(next(&mut events).await, (kind, object.to_owned()));
    }
    assert!(events.next().await.is_none());
    assert!(events.next().await.is_none(), "it stays at its end");
    assert_eq!(*code.0.watched.lock().unwrap(), ["2"]);
}

#[tokio::test]
async fn a_watch_from_a_version_has_changes_alone_and_tells_an_error_last() {
    let code = Code::new(&[sample("a", "", "1")], "1");
    let (f, samples) = samples(&code).await;
    let expired = ApiError::new(StatusReason::Expired, "it is too old");
    code.script(
        vec![
            Ok(ObjectEvent::Added(sample("b", "", "8"))),
            Err(expired.clone()),
            Ok(ObjectEvent::Added(sample("c", "", "9"))),
        ],
        false,
    );
    let options = ListOptions {
        resource_version: "7".to_owned(),
        ..ListOptions::default()
    };
    let mut events = samples.reads().watch(&f.ctx, None, &options).await.unwrap();
    assert_eq!(next(&mut events).await, (Added, "b@8".to_owned()));
    assert_eq!(events.next().await.unwrap().unwrap_err(), expired);
    assert!(events.next().await.is_none());
    assert_eq!(*code.0.watched.lock().unwrap(), ["7"]);

    code.script(
        vec![Ok(ObjectEvent::Added(sample("/lost", "", "9")))],
        false,
    );
    let mut events = samples.reads().watch(&f.ctx, None, &options).await.unwrap();
    let error = events.next().await.unwrap().unwrap_err();
    assert_eq!(error.reason, Some(InternalError));
}

#[tokio::test(start_paused = true)]
async fn a_silent_watch_has_bookmarks_and_an_end() {
    let code = Code::new(&[], "1");
    let (f, samples) = samples(&code).await;
    code.script(vec![Ok(ObjectEvent::Added(sample("x/a", "", "5")))], false);
    let options = ListOptions {
        allow_watch_bookmarks: true,
        timeout_seconds: Some(90),
        ..ListOptions::default()
    };
    let begin = tokio::time::Instant::now();
    let mut events = samples.reads().watch(&f.ctx, NS, &options).await.unwrap();
    assert_eq!(next(&mut events).await, (Bookmark, "@1".to_owned()));
    // What the watch does not select has happened, too.
    assert_eq!(next(&mut events).await, (Bookmark, "@5".to_owned()));
    assert!(begin.elapsed() >= Duration::from_secs(60));
    while let Some(event) = events.next().await {
        assert_eq!(event.unwrap().kind, Bookmark);
    }
    assert_eq!(begin.elapsed().as_secs(), 90);
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_does_not_begin_is_refused_in_time() {
    let code = Code::new(&[], "1");
    let (f, samples) = samples(&code).await;
    for (timeout_seconds, expected) in [(None, 30), (Some(5), 5)] {
        let options = ListOptions {
            timeout_seconds,
            ..ListOptions::default()
        };
        let begin = tokio::time::Instant::now();
        let refused = samples.reads().watch(&f.ctx, NS, &options).await;
        assert_eq!(refused.unwrap_err().reason, Some(StatusReason::Timeout));
        assert_eq!(begin.elapsed().as_secs(), expected);
    }
}

#[tokio::test]
async fn a_watch_needs_a_version_of_the_list() {
    let code = Code::new(&[], "");
    let (f, samples) = samples(&code).await;
    let options = ListOptions::default();
    let refused = samples.reads().watch(&f.ctx, NS, &options).await;
    assert_eq!(
        refused.unwrap_err().message,
        "Internal error occurred: the code of samples.test.example.com lists without a resourceVersion, from which a watch \
         could go on"
    );
}

#[tokio::test]
async fn a_create_is_checked_as_for_a_store() {
    let code = Code::new(&[], "1");
    let (f, samples) = samples(&code).await;
    let create = async |namespace, value: Value, dry_run| {
        let options = CreateOptions {
            dry_run,
            ..CreateOptions::default()
        };
        let created = samples
            .writes()
            .create(&f.ctx, namespace, object(value), &options);
        created.await.map(|written| written.object)
    };
    let named = json!({"metadata": {"name": "a"}, "color": "red"});
    let dry = create(NS, named.clone(), true).await.unwrap();
    assert_eq!(code.found(NS, "a"), None);
    assert_eq!(dry.namespace(), "default");
    let created = create(NS, named, false).await.unwrap();
    assert_eq!(
        (created.name(), created.resource_version(), created.kind()),
        ("a", "new", "Sample")
    );
    assert!(!created.uid().is_empty() && !created.meta_str("creationTimestamp").is_empty());
    assert_eq!(
        code.found(NS, "a").unwrap().metadata.uid.as_deref(),
        Some(created.uid())
    );
    let generated = create(NS, json!({"metadata": {"generateName": "a-"}}), false).await;
    assert!(generated.unwrap().name().len() > 2);
    let unnamed = create(NS, json!({"metadata": {}}), false).await;
    assert_eq!(unnamed.unwrap_err().reason, Some(StatusReason::Invalid));
    let nowhere = json!({"metadata": {"name": "a"}});
    let nowhere = create(Some("nowhere"), nowhere, false).await;
    assert_eq!(nowhere.unwrap_err().reason, Some(NotFound));
}

#[tokio::test]
async fn updates_and_patches_start_from_the_object_of_the_code() {
    let code = Code::new(&[sample("a", "red", "v-1")], "1");
    let (f, samples) = samples(&code).await;
    let options = UpdateOptions::default();
    let request = |name| WriteRequest::new(&f.ctx, NS, name).with(&options);
    let update = async |name, version: &str, color: &str| {
        let sent = json!({"metadata": {"name": name, "resourceVersion": version,
            "labels": {"color": "red"}}, "color": color});
        samples
            .writes()
            .update(request(name), object(sent))
            .await
            .map(|(written, _)| written.object)
    };
    let refused = update("a", "v-0", "blue").await.unwrap_err();
    assert_eq!(refused.reason, Some(Conflict));
    assert_eq!(
        code.0.updates.load(Ordering::Relaxed),
        0,
        "it is not asked again"
    );
    let updated = update("a", "v-1", "blue").await.unwrap();
    assert_eq!(updated.resource_version(), "newer");
    assert_eq!(code.found(NS, "a").unwrap().color.as_deref(), Some("blue"));
    let missing = update("b", "", "blue").await.unwrap_err();
    assert_eq!(missing.reason, Some(NotFound));

    // A patch is made again after a conflict, but not for ever.
    let patch = Patch::parse_merge(br#"{"color": "green"}"#).unwrap();
    for (conflicts, is_written) in [(4, true), (5, false)] {
        code.0.conflicts.store(conflicts, Ordering::Relaxed);
        let row = sample("a", "red", &format!("v-{conflicts}"));
        *code.0.rows.lock().unwrap() = vec![row];
        let patched = samples.writes().patch(request("a"), &patch).await;
        assert_eq!(patched.is_ok(), is_written, "{conflicts}");
    }
    code.0.conflicts.store(0, Ordering::Relaxed);
    let before = code.0.updates.load(Ordering::Relaxed);
    samples.writes().patch(request("a"), &patch).await.unwrap();
    let unchanged = samples.writes().patch(request("a"), &patch).await;
    assert_eq!(unchanged.unwrap().resource_version(), "newer");
    assert_eq!(code.0.updates.load(Ordering::Relaxed), before + 1);
}

#[tokio::test]
async fn an_apply_creates_and_deletes_have_preconditions() {
    let code = Code::new(&[], "1");
    let (f, samples) = samples(&code).await;
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
    let applied = samples.writes().apply(request, &document).await;
    let (applied, is_created) = applied.unwrap();
    assert!(is_created);
    let again = samples.writes().apply(request, &document).await;
    assert!(!again.unwrap().1);
    let updates = code.0.updates.load(Ordering::Relaxed);
    assert_eq!(updates, 0, "nothing has changed");
    assert_eq!(at(&applied, "/metadata/managedFields/0/manager"), "tester");
    let delete = async |uid: &str| {
        let options = DeleteOptions {
            preconditions: Preconditions {
                uid: Some(uid.to_owned()),
                resource_version: None,
            },
            ..DeleteOptions::default()
        };
        samples.writes().delete(&f.ctx, NS, "a", &options).await
    };
    assert_eq!(delete("another").await.unwrap_err().reason, Some(Conflict));
    let deleted = delete(applied.uid()).await.unwrap();
    assert!(matches!(deleted, DeleteResult::Gone(_)), "{deleted:?}");
    assert_eq!(
        delete(applied.uid()).await.unwrap_err().reason,
        Some(NotFound)
    );

    let rows = ["a", "b", "x/a"].map(|name| sample(name, "red", "1"));
    *code.0.rows.lock().unwrap() = rows.to_vec();
    let all = ListOptions::default();
    let options = DeleteOptions::default();
    let listed = samples
        .delete_collection(&f.ctx, NS, &all, &options)
        .await
        .unwrap();
    assert_eq!(names(&listed), ["a", "b"]);
    assert_eq!(*code.0.rows.lock().unwrap(), [sample("x/a", "red", "1")]);
}

/// Code that has the verb get alone.
struct OnlyGet;

impl Reader<Sample> for OnlyGet {
    const VERBS: &'static [Verb] = &[Verb::Get];
}

#[tokio::test]
async fn code_and_definition_must_have_the_same_verbs() {
    let check = |register: fn(&mut RegistryBuilder), expected: &[&str]| {
        let mut builder = with_namespaces(Memory::new());
        builder.kind::<Sample>();
        register(&mut builder);
        let problems = builder.build().err().unwrap_or_default();
        let expected = expected
            .iter()
            .map(|problem| format!("Sample of test.example.com/v1: {problem}"));
        assert_eq!(problems, Vec::from_iter(expected));
    };
    let no_writer = "it has no store, and no writer answers create, update, patch, delete: add `.writer::<Sample>(..)` to \
         the builder";
    check(
        |_| {},
        &[
            "it has no store, and no reader answers get, list, watch: add `.reader::<Sample>(..)` to the builder",
            no_writer,
        ],
    );
    check(
        |builder| builder.reader::<Sample>(OnlyGet),
        &[
            "its reader answers other verbs than it declares: get, and not get, list, watch",
            no_writer,
        ],
    );
    check(
        |builder| {
            builder.reader::<Sample>(Code::default());
            builder.writer::<Sample>(Code::default());
        },
        &[],
    );
    let ctx = RequestContext::default();
    let refused = OnlyGet.list(&ctx, None, &ListOptions::default()).await;
    let refused = refused.unwrap_err();
    assert_eq!(
        shown(&refused),
        (
            Some(MethodNotAllowed.as_str()),
            "list is not supported on resources of kind \"samples.test.example.com\""
        )
    );
}
