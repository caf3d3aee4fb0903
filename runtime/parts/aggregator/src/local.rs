//! The APIServices of the versions that this server itself serves: made, and made again, and deleted when they are served no more.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;
use std::time::Duration;

use apiloom_http::sources::aggregation::{GROUP, Priority, local_priority};
use apiloom_kinds::apiregistration::rules::LOCAL;
use apiloom_kinds::apiregistration::v1::APIService;
use apiloom_registry::{Catalog, Registry};
use apiloom_server::host::{RequestError, Requests};
use futures_util::future::join_all;
use http::Method;
use serde_json::{Value, json};
use tokio::time::Instant;

/// The label of APIServices that servers make themselves.
pub(super) const LABEL: &str = "kube-aggregator.kubernetes.io/automanaged";

/// Its value for versions that are compiled.
const ON_START: &str = "onstart";

/// Its value for versions that come and go.
const ALWAYS: &str = "true";

/// How long an APIService of a version that may come and go stays when this server does not serve the version: another server
/// over the store may have seen the definition earlier.
const GRACE: Duration = Duration::from_secs(5);

/// Time after which a failed write is repeated.
const AGAIN: Duration = Duration::from_secs(1);

/// How long the writes of one step may take together.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The path of an APIService.
pub(super) fn path(name: &str) -> String {
    format!("/apis/{GROUP}/v1/apiservices/{name}")
}

/// An APIService as it should be.
#[derive(Debug, PartialEq, Eq)]
struct DesiredService {
    group: String,
    version: String,
    priority: Priority,
    label: &'static str,
}

/// The APIServices that this server keeps for its own versions.
#[derive(Default)]
pub(super) struct Local {
    /// Those of the next servers of the chain.
    next: Vec<Arc<Registry>>,
    /// Those that were there when this server began.
    at_start: HashSet<String>,
    /// Those that this server has made, or found as they should be. Later changes of others are left alone, except of those
    /// with the label `true`.
    settled: HashSet<String>,
    /// Since when those with the label are not served.
    unserved: BTreeMap<String, Instant>,
    look_at: Option<Instant>,
    /// Those of compiled versions that were not seen as they should be since the start; `None` before the first look.
    missing: Option<BTreeSet<String>>,
}

/// A write.
enum Step {
    Create(String),
    Update(String),
    Delete(String),
}

impl Local {
    /// For the versions of a server, and of the next ones.
    pub(super) fn new(next: Vec<Arc<Registry>>) -> Self {
        Self {
            next,
            ..Self::default()
        }
    }

    /// The registries of the next servers.
    pub(super) fn next(&self) -> impl Iterator<Item = &Arc<Registry>> {
        self.next.iter()
    }

    /// Begins with the names of the APIServices that there are. A later call has no effect.
    pub(super) fn begin(&mut self, names: HashSet<String>) {
        if self.settled.is_empty() && self.at_start.is_empty() {
            self.at_start = names;
        }
        self.look_now();
    }

    /// Looks at all of them with the next update.
    pub(super) fn look_now(&mut self) {
        self.look_at = Some(Instant::now());
    }

    /// When to look at them again.
    pub(super) fn next_look(&self) -> Option<Instant> {
        self.look_at
    }

    /// Writes what is not as it should be.
    pub(super) async fn update(
        &mut self,
        requests: &Requests,
        present: BTreeMap<&str, &APIService>,
    ) {
        let now = Instant::now();
        if self.look_at.is_none_or(|at| at > now) {
            return;
        }
        self.look_at = None;
        let registries = std::iter::once(requests.registry()).chain(&self.next);
        let mut all = BTreeMap::new();
        for registry in registries {
            for (name, one) in wanted(&registry.catalog()) {
                all.entry(name).or_insert(one);
            }
        }
        let wanted = all;
        let steps = self.steps(&wanted, &present, now);
        self.note_missing(&wanted, &present);
        let (wanted, present) = (&wanted, &present);
        let writes = steps.iter().map(|step| async move {
            let written = match step {
                Step::Create(name) => create(requests, name, &wanted[name]).await,
                Step::Update(name) => update(requests, present[name.as_str()], &wanted[name]).await,
                Step::Delete(name) => delete(requests, present[name.as_str()]).await,
            };
            (step, written)
        });
        let written = tokio::time::timeout(TIMEOUT, join_all(writes)).await;
        let Ok(written) = written else {
            self.look_again(now + AGAIN);
            return;
        };
        for (step, written) in written {
            match (step, written) {
                (Step::Create(name) | Step::Update(name), Ok(())) => {
                    self.settled.insert(name.clone());
                }
                (Step::Delete(_), Ok(())) => {}
                (Step::Create(name) | Step::Update(name) | Step::Delete(name), Err(error)) => {
                    if error.is_refusal() {
                        tracing::warn!(%error, service = %name, "cannot write the APIService of a version of this server");
                        self.leave_out(name);
                    } else {
                        tracing::debug!(%error, service = %name, "an APIService is to be written again");
                    }
                    self.look_again(now + AGAIN);
                }
            }
        }
    }

    /// Whether those of compiled versions were all seen as they should be. Later changes of them do not matter.
    pub(super) fn is_complete(&self) -> bool {
        self.missing.as_ref().is_some_and(BTreeSet::is_empty)
    }

    /// Stops waiting for one that this server cannot read or write.
    pub(super) fn leave_out(&mut self, name: &str) {
        if let Some(missing) = &mut self.missing {
            missing.remove(name);
        }
    }

    /// Notes which ones of compiled versions are not yet available. One that a user made, or made one of another server, is
    /// not waited for.
    fn note_missing(
        &mut self,
        wanted: &BTreeMap<String, DesiredService>,
        present: &BTreeMap<&str, &APIService>,
    ) {
        let is_seen = |name: &String| {
            let object = present.get(name.as_str());
            object.is_some_and(|object| {
                let is_own = object.spec.service.is_none() && label(object).is_some();
                !is_own || is_local_condition(object)
            })
        };
        let missing = self.missing.get_or_insert_with(|| {
            let compiled = wanted.iter().filter(|(_, one)| one.label == ON_START);
            compiled.map(|(name, _)| name.clone()).collect()
        });
        missing.retain(|name| wanted.contains_key(name) && !is_seen(name));
    }

    fn look_again(&mut self, at: Instant) {
        self.look_at = Some(self.look_at.map_or(at, |before| before.min(at)));
    }

    /// Whether a present APIService that is not as it should be is written. One with the label `true` always is; any other one
    /// only once, and only if it is from before the start: the rest are changes of users, or of a server of another release.
    fn is_corrected(&self, name: &str, wanted: &DesiredService, label: &str) -> bool {
        if label == ALWAYS && wanted.label == ALWAYS {
            return true;
        }
        !self.settled.contains(name) && (label == ALWAYS || self.at_start.contains(name))
    }

    fn steps(
        &mut self,
        wanted: &BTreeMap<String, DesiredService>,
        present: &BTreeMap<&str, &APIService>,
        now: Instant,
    ) -> Vec<Step> {
        let mut steps = Vec::new();
        for (name, wanted) in wanted {
            match present.get(name.as_str()) {
                None => steps.push(Step::Create(name.clone())),
                Some(object) => {
                    let Some(label) = label(object) else {
                        continue;
                    };
                    if wanted.fits(object, label) {
                        self.settled.insert(name.clone());
                    } else if self.is_corrected(name, wanted, label) {
                        steps.push(Step::Update(name.clone()));
                    }
                }
            }
        }
        let is_unserved = |name: &str| !wanted.contains_key(name);
        let known: BTreeSet<&str> = present.keys().copied().collect();
        self.unserved
            .retain(|name, _| known.contains(name.as_str()) && is_unserved(name));
        for (name, object) in present {
            let Some(label) = label(object).filter(|_| is_unserved(name)) else {
                continue;
            };
            let was_own = self.at_start.contains(*name) || self.settled.contains(*name);
            if label != ALWAYS && !was_own {
                continue;
            }
            let since = *self.unserved.entry((*name).to_owned()).or_insert(now);
            if now.duration_since(since) >= GRACE {
                steps.push(Step::Delete((*name).to_owned()));
                // A newer server that makes it again keeps it.
                self.at_start.remove(*name);
                self.settled.remove(*name);
            } else {
                self.look_again(since + GRACE);
            }
        }
        steps
    }
}

/// Whether the condition says that the version can be used.
pub(super) fn is_available(object: &APIService) -> bool {
    let condition = object.available();
    condition.is_some_and(|condition| condition.status == "True")
}

/// Whether an APIService has the condition of those that this server serves.
pub(super) fn is_local_condition(object: &APIService) -> bool {
    object.available().is_some_and(|condition| {
        condition.status == "True" && condition.reason.as_deref() == Some(LOCAL.0)
    })
}

/// The value of the label, if there is one.
fn label(object: &APIService) -> Option<&str> {
    let label = object.metadata.labels.get(LABEL)?;
    [ON_START, ALWAYS].into_iter().find(|known| known == label)
}

impl DesiredService {
    fn fits(&self, object: &APIService, label: &str) -> bool {
        let spec = &object.spec;
        label == self.label
            && spec.service.is_none()
            && spec.group_priority_minimum == self.priority.group
            && spec.version_priority == self.priority.version
    }

    fn document(&self, metadata: &Value) -> Value {
        json!({
            "apiVersion": "apiregistration.k8s.io/v1",
            "kind": "APIService",
            "metadata": metadata,
            "spec": {
                "group": self.group,
                "version": self.version,
                "groupPriorityMinimum": self.priority.group,
                "versionPriority": self.priority.version,
            },
        })
    }
}

/// The APIServices of a catalog, by name.
fn wanted(catalog: &Catalog) -> BTreeMap<String, DesiredService> {
    let groups = catalog.groups().iter().filter(|group| group.name != GROUP);
    let versions = groups.flat_map(|group| {
        let count = group.versions.len();
        let versions = group.versions.iter().enumerate();
        versions.map(move |(index, version)| (group, version, (index, count)))
    });
    let service = |(group, version, place): (&apiloom_registry::ServedGroup, &String, _)| {
        let is_of_version =
            |def: &apiloom_meta::ResourceDef| def.group == *group.name && def.version == **version;
        let kinds = catalog.endpoints().iter().map(|endpoint| endpoint.def());
        let mut dialects = kinds
            .filter(|def| is_of_version(def))
            .map(|def| def.dialect);
        let is_sorted = dialects.clone().all(|dialect| dialect.sorts_versions);
        let is_of_program = dialects.any(|dialect| dialect.is_of_program());
        let wanted = DesiredService {
            group: group.name.clone(),
            version: version.clone(),
            priority: local_priority(&group.name, place, is_sorted),
            label: if is_of_program { ON_START } else { ALWAYS },
        };
        (format!("{version}.{}", group.name), wanted)
    };
    versions.map(service).collect()
}

async fn create(
    requests: &Requests,
    name: &str,
    wanted: &DesiredService,
) -> Result<(), RequestError> {
    let metadata = json!({"name": name, "labels": {LABEL: wanted.label}});
    let path = format!("/apis/{GROUP}/v1/apiservices");
    let request = requests.client().request(Method::POST, path);
    let request = request.json_body(&wanted.document(&metadata));
    match request.json::<APIService>().await {
        // Another server was first.
        Err(error) if error.is_already_exists() => Ok(()),
        Err(error) => Err(error.into()),
        Ok(_) => Ok(()),
    }
}

async fn update(
    requests: &Requests,
    present: &APIService,
    wanted: &DesiredService,
) -> Result<(), RequestError> {
    let name = present.metadata.name.clone().unwrap_or_default();
    let mut labels = present.metadata.labels.clone();
    labels.insert(LABEL.to_owned(), wanted.label.to_owned());
    let mut metadata = json!(present.metadata);
    metadata["labels"] = json!(labels);
    let request = requests.client().request(Method::PUT, path(&name));
    let request = request.json_body(&wanted.document(&metadata));
    request.json::<APIService>().await?;
    Ok(())
}

async fn delete(requests: &Requests, present: &APIService) -> Result<(), RequestError> {
    let metadata = &present.metadata;
    let options = json!({"preconditions": {
        "uid": metadata.uid,
        "resourceVersion": metadata.resource_version,
    }});
    let name = metadata.name.as_deref().unwrap_or_default();
    requests.delete(&path(name), options).await
}
