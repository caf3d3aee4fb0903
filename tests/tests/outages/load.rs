//! Writers and watchers of a server with outages, and the check that watchers received exactly what happened.

use std::collections::BTreeMap;
use std::time::Duration;

use apiloom_storage::{Event, EventKind, Revision, Storage, WatchItem, WatchStart};
use apiloom_tests::wardle::{ALL_FLUNDERS, FLUNDERS, FLUNDERS_BETA, flunder};
use apiloom_tests::{Answer, Client, Cluster, NoWatch, Progress, Watch, revision};
use futures_util::StreamExt as _;
use http::StatusCode;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// Timeout for expected events.
const PATIENCE: Duration = Duration::from_secs(60);

/// The pause between writes of each writer: more load would not show more.
const PAUSE: Duration = Duration::from_millis(5);

const WRITERS: usize = 4;

/// The object that is changed repeatedly; its last change ends the load.
const HOT: &str = "hot";

/// The current server: number of starts, and a client.
type Place = (usize, Client);

/// The selection of a watcher.
#[derive(Clone, Copy, Debug)]
struct Selection {
    path: &'static str,
    query: &'static str,
    http1: bool,
    matches: fn(&Value) -> bool,
}

const SELECTIONS: [Selection; 5] = [
    Selection {
        path: FLUNDERS,
        query: "",
        http1: false,
        matches: |_| true,
    },
    Selection {
        path: ALL_FLUNDERS,
        query: "&allowWatchBookmarks=true",
        http1: true,
        matches: |_| true,
    },
    Selection {
        path: FLUNDERS_BETA,
        query: "",
        http1: false,
        matches: |_| true,
    },
    Selection {
        path: ALL_FLUNDERS,
        query: "&labelSelector=tier%3Dfront",
        http1: false,
        matches: |object| object["metadata"]["labels"]["tier"] == "front",
    },
    Selection {
        path: FLUNDERS,
        query: "&fieldSelector=metadata.name%3Dhot",
        http1: false,
        matches: |object| object["metadata"]["name"] == HOT,
    },
];

/// An event of a watch: type, name, revision.
type Seen = (&'static str, String, u64);

/// An acknowledged write: name and revision, which the response to a deletion does not have.
type Acknowledged = (String, Option<u64>);

/// A load on the flunders of a server without other writers.
pub(super) struct Load {
    start: u64,
    place: watch::Sender<Place>,
    stop: watch::Sender<bool>,
    pub(super) progress: Progress,
    writers: JoinSet<Vec<Acknowledged>>,
    watchers: JoinSet<(Selection, Vec<Seen>)>,
}

impl Load {
    /// Starts the load. With `resumes`, watchers whose stream breaks continue at the server's next start; else no
    /// stream may end.
    pub(super) async fn start(cluster: &Cluster, resumes: bool) -> Self {
        let client = cluster.client();
        let hot = client.post(FLUNDERS, &flunder_of("front", HOT)).await;
        assert_eq!(hot.code, 201, "{}", hot.text());
        let start = revision(&hot.json());
        let place = watch::Sender::new((0, client));
        let progress = Progress::new(PATIENCE);
        let stop = watch::Sender::new(false);
        let mut watchers = JoinSet::new();
        for selection in SELECTIONS {
            let kubeconfig = cluster.server().kubeconfig().to_owned();
            let client_of = move |place: &Place| {
                if selection.http1 {
                    // The kubeconfig is rewritten at each start.
                    Client::of_http1(&kubeconfig)
                } else {
                    place.1.clone()
                }
            };
            watchers.spawn(follow(
                selection,
                start,
                place.subscribe(),
                client_of,
                resumes,
            ));
        }
        let mut writers = JoinSet::new();
        for writer in 0..WRITERS {
            let pen = Pen {
                place: place.subscribe(),
                progress: progress.clone(),
                acknowledged: Vec::new(),
            };
            writers.spawn(write(writer, pen, stop.subscribe()));
        }
        Self {
            start,
            place,
            stop,
            progress,
            writers,
            watchers,
        }
    }

    /// Publishes the new server to writers and watchers.
    pub(super) fn moved(&self, client: Client) {
        self.place
            .send_modify(|place| *place = (place.0 + 1, client));
    }

    /// Stops the writers and checks that each watcher received every change of its selection, once and in order, that
    /// all acknowledged writes are among the changes, and that a list shows their result.
    pub(super) async fn finish(mut self, mut cluster: Cluster) {
        self.stop.send_replace(true);
        let mut acknowledged = Vec::new();
        while let Some(written) = timeout(PATIENCE, self.writers.join_next()).await.unwrap() {
            acknowledged.extend(written.unwrap());
        }
        let client = cluster.client();
        let ready = async { while client.get("/readyz").await.code != 200 {} };
        timeout(PATIENCE, ready).await.expect("it gets ready");
        let patch = json!({"metadata": {"labels": {"end": "yes"}}});
        let last = client.merge(&format!("{FLUNDERS}/{HOT}"), &patch).await;
        assert_eq!(last.code, 200, "{}", last.text());
        let end = revision(&last.json());
        let listed = client.get(FLUNDERS).await.json();
        let mut watched = Vec::new();
        while let Some(seen) = timeout(PATIENCE, self.watchers.join_next())
            .await
            .expect("every watcher sees the end")
        {
            watched.push(seen.unwrap());
        }
        cluster.stop();
        let history = history(&*cluster.store().await, self.start, end).await;
        assert!(history.len() > acknowledged.len(), "each write is a change");
        for (name, revision) in acknowledged {
            let told = |event: &&Event| match revision {
                Some(revision) => event.revision.0 == revision,
                None => event.kind == EventKind::Deleted && name_of(event) == name,
            };
            let event = history.iter().find(told);
            let event = event.unwrap_or_else(|| panic!("{name} at {revision:?} is lost"));
            assert_eq!(name_of(event), name);
        }
        for (selection, seen) in watched {
            let expected: Vec<Seen> = history
                .iter()
                .filter_map(|event| view(event, selection.matches))
                .collect();
            assert_same(&selection, &seen, &expected);
        }
        let items = listed["items"].as_array().unwrap().iter();
        let listed: BTreeMap<String, u64> = items
            .map(|item| (name(item).to_owned(), revision(item)))
            .collect();
        assert_eq!(listed, state(&history, self.start));
    }
}

/// Reports where two long sequences differ instead of printing them.
fn assert_same(selection: &Selection, seen: &[Seen], expected: &[Seen]) {
    let length = seen.len().min(expected.len());
    if let Some(at) = (0..length).find(|at| seen[*at] != expected[*at]) {
        let around = at.saturating_sub(3)..(at + 3).min(length);
        panic!(
            "{selection:?} at {at}: saw {:?} of {:?}",
            &seen[around.clone()],
            &expected[around]
        );
    }
    assert_eq!(seen.len(), expected.len(), "{selection:?}");
}

fn flunder_of(tier: &str, name: &str) -> Value {
    let mut object = flunder(name);
    object["metadata"]["labels"] = json!({"tier": tier});
    object
}

fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap()
}

/// A writer's connection: it records acknowledged writes, and reconnects to the server.
struct Pen {
    place: watch::Receiver<Place>,
    progress: Progress,
    acknowledged: Vec<Acknowledged>,
}

impl Pen {
    /// Sends a request; returns false if its outcome is unknown.
    async fn request(
        &mut self,
        method: &str,
        path: &str,
        media_type: &str,
        body: &Value,
        name: &str,
    ) -> bool {
        tokio::time::sleep(PAUSE).await;
        let (starts, client) = self.place.borrow().clone();
        let headers = [("content-type", media_type)];
        let answer = client
            .try_call(method, path, &headers, body.to_string())
            .await;
        match answer {
            Ok(answer) if answer.code < 300 => {
                let revision = answer.json()["metadata"]["resourceVersion"]
                    .as_str()
                    .map(|text| text.parse().unwrap());
                self.acknowledged.push((name.to_owned(), revision));
                self.progress.acknowledge();
                true
            }
            Ok(answer) => {
                check_refusal(&answer);
                self.progress.fail();
                false
            }
            Err(_) => {
                let next = self.place.wait_for(|place| place.0 > starts);
                timeout(PATIENCE, next)
                    .await
                    .expect("the server is started again")
                    .unwrap();
                false
            }
        }
    }
}

/// Asserts that an error clearly says that it is not the client's fault.
pub(super) fn check_refusal(answer: &Answer) {
    assert!([500, 503, 504].contains(&answer.code), "{}", answer.text());
    let status = answer.json();
    assert_eq!(
        (&status["kind"], &status["code"]),
        (&json!("Status"), &json!(answer.code))
    );
    let message = status["message"].as_str().unwrap();
    assert!(message.len() > 20, "{message:?} says nothing");
}

/// Creates, changes and deletes its own objects and changes the hot one, until it is stopped.
async fn write(writer: usize, mut pen: Pen, stop: watch::Receiver<bool>) -> Vec<Acknowledged> {
    let merge = "application/merge-patch+json";
    for index in 0.. {
        if *stop.borrow() {
            break;
        }
        let labels = json!({"metadata": {"labels": {"turn": format!("{writer}-{index}")}}});
        pen.request("PATCH", &format!("{FLUNDERS}/{HOT}"), merge, &labels, HOT)
            .await;
        let name = format!("w{writer}-{index}");
        let item = format!("{FLUNDERS}/{name}");
        let [before, after] = if index % 2 == 0 {
            ["front", "back"]
        } else {
            ["back", "front"]
        };
        let object = flunder_of(before, &name);
        // After a failed create it is unknown whether the object exists.
        if !pen
            .request("POST", FLUNDERS, "application/json", &object, &name)
            .await
            || index % 5 == 0
        {
            continue;
        }
        let labels = json!({"metadata": {"labels": {"tier": after}}});
        if pen.request("PATCH", &item, merge, &labels, &name).await && index % 3 == 0 {
            pen.request("DELETE", &item, "application/json", &json!({}), &name)
                .await;
        }
    }
    pen.acknowledged
}

/// Opens a watch. A server that has just started refuses it while its caches are not filled, and is asked again.
async fn open(client: &Client, path: &str) -> Result<Watch, NoWatch> {
    let opened = async {
        loop {
            match client.try_watch_as(path, "application/json").await {
                Err(NoWatch::Refused(StatusCode::TOO_MANY_REQUESTS)) => {
                    tokio::time::sleep(PAUSE).await;
                }
                opened => return opened,
            }
        }
    };
    timeout(PATIENCE, opened)
        .await
        .expect("the caches of the server are filled")
}

/// Watches until the end of the load.
async fn follow(
    selection: Selection,
    start: u64,
    mut place: watch::Receiver<Place>,
    client_of: impl Fn(&Place) -> Client,
    resumes: bool,
) -> (Selection, Vec<Seen>) {
    let mut seen = Vec::new();
    let mut last = start;
    loop {
        let at = place.borrow().clone();
        let path = format!(
            "{}?watch=1&resourceVersion={last}{}",
            selection.path, selection.query
        );
        let why = match open(&client_of(&at), &path).await {
            Ok(mut watch) => loop {
                match watch.try_line().await {
                    Ok(Some(line)) => {
                        let event: Value = serde_json::from_str(&line).unwrap();
                        let object = &event["object"];
                        let kind = match event["type"].as_str().unwrap() {
                            "ADDED" => "ADDED",
                            "MODIFIED" => "MODIFIED",
                            "DELETED" => "DELETED",
                            "BOOKMARK" => {
                                last = revision(object);
                                continue;
                            }
                            _ => panic!("{selection:?}: {event}"),
                        };
                        last = revision(object);
                        seen.push((kind, name(object).to_owned(), last));
                        if object["metadata"]["labels"]["end"] == "yes" {
                            return (selection, seen);
                        }
                    }
                    Ok(None) => break "it ended".to_owned(),
                    Err(why) => break why,
                }
            },
            Err(why) => format!("{why:?}"),
        };
        assert!(resumes, "{selection:?} is to stay: {why}");
        let next = place.wait_for(|place| place.0 > at.0);
        timeout(PATIENCE, next)
            .await
            .expect("the server is started again")
            .unwrap();
    }
}

/// The changes of flunders, read from the store.
async fn history(store: &dyn Storage, after: u64, end: u64) -> Vec<Event> {
    let prefix = "/registry/wardle.example.com/flunders/";
    let mut changes = store
        .watch(prefix, WatchStart::After(Revision(after)))
        .await
        .unwrap();
    let mut events = Vec::new();
    loop {
        let item = timeout(PATIENCE, changes.next())
            .await
            .expect("the store has the whole history");
        if let WatchItem::Event(event) = item.unwrap().unwrap() {
            let revision = event.revision.0;
            events.push(event);
            if revision == end {
                return events;
            }
        }
    }
}

fn name_of(event: &Event) -> &str {
    event.key.rsplit('/').next().unwrap()
}

/// The event that a selective watcher sees for a change.
fn view(event: &Event, matches: fn(&Value) -> bool) -> Option<Seen> {
    let selected = |bytes: &[u8]| matches(&serde_json::from_slice(bytes).unwrap());
    let old = event
        .previous
        .as_ref()
        .is_some_and(|(bytes, _)| selected(bytes));
    let new = event.kind != EventKind::Deleted && selected(&event.value);
    let kind = match (old, new) {
        (false, true) => "ADDED",
        (true, true) => "MODIFIED",
        (true, false) => "DELETED",
        (false, false) => return None,
    };
    Some((kind, name_of(event).to_owned(), event.revision.0))
}

/// The final objects after these changes, beside the object that existed before.
fn state(history: &[Event], start: u64) -> BTreeMap<String, u64> {
    let mut state = BTreeMap::from([(HOT.to_owned(), start)]);
    for event in history {
        match event.kind {
            EventKind::Deleted => state.remove(name_of(event)),
            _ => state.insert(name_of(event).to_owned(), event.revision.0),
        };
    }
    state
}
