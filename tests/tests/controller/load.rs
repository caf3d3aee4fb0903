//! Writers of Flunders and Fischers that refer to each other, and the state that the controller has to reach.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use apiloom_tests::wardle::{FISCHERS, FLUNDERS};
use apiloom_tests::{Client, revision};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

/// How long the controller may take for one more object. All of them together may take long on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// The pause between the writes of a writer.
const PAUSE: Duration = Duration::from_millis(10);
const WRITERS: u64 = 4;
/// So many names of objects, so that references often find something.
const NAMES: u64 = 30;

/// Writers at work.
pub(crate) struct Load {
    stop: watch::Sender<bool>,
    writers: JoinSet<()>,
    /// The requests that succeeded.
    written: Arc<AtomicUsize>,
}

/// Numbers that look random, from a seed.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15))
    }

    /// A number below this one.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        // The constants of Knuth's MMIX.
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

impl Load {
    /// Starts the writers. Those whose requests fail go on: servers may be killed.
    pub(crate) fn start(kubeconfig: &Path) -> Self {
        let stop = watch::Sender::new(false);
        let mut writers = JoinSet::new();
        let written = Arc::default();
        for seed in 1..=WRITERS {
            let writer = Writer {
                kubeconfig: kubeconfig.to_owned(),
                dice: Dice::new(seed),
                written: Arc::clone(&written),
            };
            writers.spawn(writer.write_until(stop.subscribe()));
        }
        Self {
            stop,
            writers,
            written,
        }
    }

    /// The number of requests that succeeded so far.
    pub(crate) fn written(&self) -> usize {
        self.written.load(Ordering::Relaxed)
    }

    /// Stops the writers.
    pub(crate) async fn stop(self) {
        self.stop.send_replace(true);
        self.writers.join_all().await;
    }
}

/// One of the writers.
struct Writer {
    kubeconfig: PathBuf,
    dice: Dice,
    written: Arc<AtomicUsize>,
}

impl Writer {
    async fn write_until(mut self, stop: watch::Receiver<bool>) {
        let mut client = Client::new(&self.kubeconfig);
        while !*stop.borrow() {
            sleep(PAUSE).await;
            let (method, path, media_type, body) = request(&mut self.dice);
            let headers = [("content-type", media_type)];
            match client
                .try_call(method, &path, &headers, body.to_string())
                .await
            {
                Ok(answer) => {
                    let is_written = usize::from(answer.code < 300);
                    self.written.fetch_add(is_written, Ordering::Relaxed);
                }
                // The connection is gone with its server.
                Err(_) => client = Client::new(&self.kubeconfig),
            }
        }
    }
}

/// A create, a change, or a deletion.
fn request(dice: &mut Dice) -> (&'static str, String, &'static str, Value) {
    let name = format!("n{}", dice.below(NAMES));
    let other = format!("n{}", dice.below(NAMES));
    let reference_type = ["Flunder", "Fischer"][usize::from(dice.below(3) == 0)];
    let spec = json!({"reference": other, "referenceType": reference_type});
    let (json, merge) = ("application/json", "application/merge-patch+json");
    match dice.below(10) {
        0..4 => {
            let flunder = json!({"metadata": {"name": name}, "spec": spec});
            ("POST", FLUNDERS.to_owned(), json, flunder)
        }
        4..6 => (
            "PATCH",
            format!("{FLUNDERS}/{name}"),
            merge,
            json!({"spec": spec}),
        ),
        6..8 => ("DELETE", format!("{FLUNDERS}/{name}"), json, json!({})),
        8 => {
            // A name that is only referred to: a Flunder of this name could not be created any more.
            let disallowed = if dice.below(4) == 0 {
                json!([other])
            } else {
                json!([])
            };
            let fischer = json!({"metadata": {"name": name}, "disallowedFlunders": disallowed});
            ("POST", FISCHERS.to_owned(), json, fischer)
        }
        _ => ("DELETE", format!("{FISCHERS}/{name}"), json, json!({})),
    }
}

/// All objects of a list, by name.
async fn objects(client: &Client, path: &str) -> BTreeMap<String, Value> {
    let list = client.get(path).await;
    assert_eq!(list.code, 200, "{}", list.text());
    let list = list.json();
    let items = list["items"].as_array().unwrap().iter();
    items
        .map(|item| {
            (
                item["metadata"]["name"].as_str().unwrap().to_owned(),
                item.clone(),
            )
        })
        .collect()
}

/// What is wrong with the Flunders: the rules of the controller, written down once more.
fn problems(flunders: &BTreeMap<String, Value>, fischers: &BTreeMap<String, Value>) -> Vec<String> {
    let disallowed: BTreeSet<&str> = fischers
        .values()
        .filter_map(|fischer| fischer["disallowedFlunders"].as_array())
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let is_deleted = |flunder: &Value| flunder["metadata"].get("deletionTimestamp").is_some();
    let refers_to = |flunder: &Value, name: &str| {
        let spec = &flunder["spec"];
        spec["reference"] == name && spec["referenceType"] == "Flunder"
    };
    let mut problems = Vec::new();
    for (name, flunder) in flunders {
        if is_deleted(flunder) {
            let mut others = flunders.iter().filter(|(other, _)| *other != name);
            if !others.any(|(_, other)| !is_deleted(other) && refers_to(other, name)) {
                problems.push(format!("{name} is deleted, and nothing refers to it"));
            }
            continue;
        }
        let spec = &flunder["spec"];
        let expected = match (spec["referenceType"].as_str(), spec["reference"].as_str()) {
            (_, None) => "None",
            (Some("Fischer"), Some(to)) if fischers.contains_key(to) => "Found",
            (Some("Flunder"), Some(to)) if disallowed.contains(to) => "Disallowed",
            (Some("Flunder"), Some(to)) if flunders.contains_key(to) => "Found",
            _ => "Missing",
        };
        let label = &flunder["metadata"]["labels"]["wardle.example.com/reference"];
        if label != expected {
            problems.push(format!("{name} has the label {label}, not {expected}"));
        }
        if flunder["metadata"]["finalizers"] != json!(["wardle.example.com/in-use"]) {
            problems.push(format!("{name} has not the finalizer"));
        }
    }
    problems
}

/// The Flunders, once nothing is wrong with them; `meanwhile` runs now and then.
async fn labelled(client: &Client, meanwhile: &mut impl FnMut()) -> BTreeMap<String, Value> {
    let mut fewest = usize::MAX;
    let mut deadline = Instant::now() + PATIENCE;
    loop {
        let flunders = objects(client, FLUNDERS).await;
        let found = problems(&flunders, &objects(client, FISCHERS).await);
        if found.is_empty() {
            return flunders;
        }
        if found.len() < fewest {
            fewest = found.len();
            deadline = Instant::now() + PATIENCE;
        }
        assert!(Instant::now() < deadline, "{found:#?}");
        meanwhile();
        sleep(Duration::from_millis(50)).await;
    }
}

/// Waits until the controller has done all its work; `meanwhile` runs now and then. Then nothing is written any more.
pub(crate) async fn converges(client: &Client, mut meanwhile: impl FnMut()) {
    let before = labelled(client, &mut meanwhile).await;
    assert!(before.len() > 1, "there is something to check");
    // The last of all keys: when it has its label, those before it were reconciled.
    let last = json!({"metadata": {"name": "last"}});
    let created = client.post(FLUNDERS, &last).await;
    assert_eq!(created.code, 201, "{}", created.text());
    let mut after = labelled(client, &mut meanwhile).await;
    after.remove("last");
    let versions = |flunders: &BTreeMap<String, Value>| -> BTreeMap<String, u64> {
        let versions = flunders.iter();
        versions
            .map(|(name, flunder)| (name.clone(), revision(flunder)))
            .collect()
    };
    assert_eq!(
        versions(&before),
        versions(&after),
        "the controller writes without need"
    );
}
