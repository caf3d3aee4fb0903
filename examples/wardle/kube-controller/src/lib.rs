//! The controller of `examples/wardle/controller` with kube-rs: it labels each Flunder with the state of its reference, and
//! keeps a deleted Flunder until no other one refers to it. One replica only: kube-rs has no leader election.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use kube::api::{Patch, PatchParams};
use kube::runtime::controller::Action;
use kube::runtime::finalizer::{self, Event, finalizer};
use kube::runtime::reflector::{self, ObjectRef, Store};
use kube::runtime::{Controller, WatchStreamExt as _, watcher};
use kube::{Api, Client, Resource as _, ResourceExt as _};
use serde_json::json;
use wardle::generated::kube::wardle_v1alpha1::{Fischer, Flunder};
use wardle::v1beta1::ReferenceType;

/// The field manager.
pub const NAME: &str = "wardle-controller";
/// The finalizer of Flunders.
pub const FINALIZER: &str = "wardle.example.com/in-use";
/// The label with the state of a Flunder's reference: `None`, `Found`, `Missing` or `Disallowed`.
pub const LABEL: &str = "wardle.example.com/reference";

/// When a Flunder is looked at again. The streams that say which Flunders a change concerns are not those that fill the
/// stores, so a call may see an older state than the change.
const RECHECK: Duration = Duration::from_secs(2);

/// Works until the future is ready.
///
/// # Errors
/// If the first complete state of the Fischers is never read.
pub async fn run(
    client: Client,
    shutdown: impl Future<Output = ()> + Send + Sync + 'static,
) -> anyhow::Result<()> {
    let flunders = Api::<Flunder>::all(client.clone());
    let fischers = Api::<Fischer>::all(client.clone());
    let (reader, writer) = reflector::store();
    let watch = watcher(fischers.clone(), watcher::Config::default()).default_backoff();
    let filling = reflector::reflector(writer, watch).for_each(|_| std::future::ready(()));
    let filling = tokio::spawn(filling);
    reader.wait_until_ready().await?;
    let controller = Controller::new(flunders.clone(), watcher::Config::default());
    let state = Arc::new(State {
        client,
        flunders: controller.store(),
        fischers: reader,
    });
    let (of_flunders, of_fischers) = (controller.store(), controller.store());
    let watched = watcher::Config::default;
    controller
        // Those that refer to a Flunder, and the one that it refers to.
        .watches(flunders, watched(), move |changed: Flunder| {
            let target = match Reference::of(&changed) {
                Some(Reference::Flunder(name)) => Some((name, changed.namespace())),
                _ => None,
            };
            let target = target.map(|(name, namespace)| {
                ObjectRef::new(&name).within(&namespace.unwrap_or_default())
            });
            let to = Reference::Flunder(changed.name_any());
            let mut keys = referring(&of_flunders, &to);
            keys.retain(|key| key.namespace == changed.namespace());
            keys.into_iter().chain(target)
        })
        .watches(fischers, watched(), move |changed: Fischer| {
            let disallowed = changed.disallowed_flunders.iter();
            let disallowed = disallowed.map(|name| Reference::Flunder(name.clone()));
            let all = disallowed.chain([Reference::Fischer(changed.name_any())]);
            all.flat_map(|to| referring(&of_fischers, &to))
                .collect::<Vec<_>>()
        })
        .graceful_shutdown_on(shutdown)
        .run(reconcile, |_, _, _| Action::requeue(RECHECK), state)
        .for_each(|done| async move {
            if let Err(error) = done {
                tracing::debug!("{error}");
            }
        })
        .await;
    filling.abort();
    Ok(())
}

/// What a Flunder refers to: a Flunder of its namespace, or a Fischer.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Reference {
    Flunder(String),
    Fischer(String),
}

impl Reference {
    fn of(flunder: &Flunder) -> Option<Self> {
        let spec = flunder.spec.as_ref()?;
        let name = spec.reference.clone()?;
        Some(match spec.reference_type {
            Some(ReferenceType::Fischer) => Self::Fischer(name),
            _ => Self::Flunder(name),
        })
    }
}

/// The Flunders of all namespaces with this reference. kube-rs has no indexes, so all are searched.
fn referring(flunders: &Store<Flunder>, to: &Reference) -> Vec<ObjectRef<Flunder>> {
    let mut all = flunders.state();
    all.retain(|flunder| Reference::of(flunder).as_ref() == Some(to));
    all.iter()
        .map(|flunder| ObjectRef::from_obj(&**flunder))
        .collect()
}

struct State {
    client: Client,
    flunders: Store<Flunder>,
    fischers: Store<Fischer>,
}

impl State {
    fn state_of(&self, flunder: &Flunder) -> &'static str {
        let is_found = match Reference::of(flunder) {
            None => return "None",
            Some(Reference::Flunder(name)) => {
                let fischers = self.fischers.state();
                let mut disallowed = fischers
                    .iter()
                    .flat_map(|fischer| &fischer.disallowed_flunders);
                if disallowed.any(|other| *other == name) {
                    return "Disallowed";
                }
                let namespace = flunder.namespace().unwrap_or_default();
                let key = ObjectRef::new(&name).within(&namespace);
                self.flunders.get(&key).is_some()
            }
            Some(Reference::Fischer(name)) => self.fischers.get(&ObjectRef::new(&name)).is_some(),
        };
        if is_found { "Found" } else { "Missing" }
    }

    fn is_in_use(&self, flunder: &Flunder) -> bool {
        let to = Reference::Flunder(flunder.name_any());
        self.flunders.state().iter().any(|other| {
            let is_other = other.uid() != flunder.uid() && other.namespace() == flunder.namespace();
            is_other
                && other.meta().deletion_timestamp.is_none()
                && Reference::of(other).as_ref() == Some(&to)
        })
    }

    async fn label(&self, flunders: &Api<Flunder>, flunder: &Flunder) -> kube::Result<Action> {
        let state = self.state_of(flunder);
        if flunder
            .labels()
            .get(LABEL)
            .is_none_or(|label| label != state)
        {
            // With the uid, since an apply would create an object that was deleted meanwhile.
            let labels = json!({
                "apiVersion": Flunder::api_version(&()),
                "kind": Flunder::kind(&()),
                "metadata": {"uid": flunder.uid(), "labels": {LABEL: state}},
            });
            let apply = PatchParams::apply(NAME).force();
            let name = flunder.name_any();
            flunders
                .patch(&name, &apply, &Patch::Apply(&labels))
                .await?;
        }
        Ok(Action::requeue(RECHECK))
    }
}

async fn reconcile(
    flunder: Arc<Flunder>,
    state: Arc<State>,
) -> Result<Action, finalizer::Error<kube::Error>> {
    if flunder.meta().deletion_timestamp.is_some() && state.is_in_use(&flunder) {
        return Ok(Action::requeue(RECHECK));
    }
    let namespace = flunder.namespace().unwrap_or_default();
    let flunders = Api::<Flunder>::namespaced(state.client.clone(), &namespace);
    finalizer(&flunders, FINALIZER, flunder, |event| async {
        match event {
            Event::Apply(flunder) => state.label(&flunders, &flunder).await,
            Event::Cleanup(_) => Ok(Action::await_change()),
        }
    })
    .await
}
