//! One Flunder: its finalizer, and the label with the state of its reference.

use std::sync::Arc;

use apiloom::client::cache::{Lister, ObjectKey};
use apiloom::client::controller::{
    Action, Context, FinalizerOutcome, ReconcileError, Recorder, Request,
};
use apiloom::client::{Client, HasMetadata as _};
use wardle::generated::apply::v1alpha1;
use wardle::generated::clientset::Clientset;
use wardle::v1alpha1::{Fischer, Flunder};

use crate::{FINALIZER, LABEL, NAME, reference};

/// What the calls share.
#[derive(Clone)]
pub(crate) struct State {
    pub(crate) client: Client,
    pub(crate) flunders: Lister<Flunder>,
    pub(crate) fischers: Lister<Fischer>,
    pub(crate) events: Recorder,
}

impl State {
    pub(crate) async fn reconcile(
        &self,
        request: Request<ObjectKey>,
        context: Context,
    ) -> Result<Action, ReconcileError> {
        // A deleted object is an ordinary case, not an error.
        let Some(flunder) = self.flunders.get_key(&request.key) else {
            return Ok(Action::Done);
        };
        let is_deleted = flunder.metadata.deletion_timestamp.is_some();
        if is_deleted && reference::is_in_use(&flunder, &self.flunders) {
            // The change of the last one that refers to it queues it again.
            let note = "is deleted when no other Flunder refers to it";
            self.events.normal(&*flunder, "InUse", note);
            return Ok(Action::Done);
        }
        // What it writes is recorded, so the next call of this key waits until the cache shows it.
        let clients = Clientset::new(context.client(&self.client));
        let flunders = clients.wardle_v1alpha1().flunders(flunder.namespace());
        let release = async |_: Arc<Flunder>| Ok(());
        let finalized = context.finalizer(&flunders, flunder, FINALIZER, release);
        let FinalizerOutcome::Live(flunder) = finalized.await? else {
            return Ok(Action::Done);
        };

        let state = reference::state(&flunder, &self.flunders, &self.fischers);
        if flunder.label(LABEL) == Some(state) {
            return Ok(Action::Done);
        }
        // With the uid, since an apply would create an object that was deleted meanwhile.
        let labels = v1alpha1::Flunder::new(flunder.namespace(), flunder.name())
            .uid(flunder.uid())
            .labels([(LABEL, state)]);
        // Forced: the label is only for this controller to set.
        let apply = flunders.apply(&labels, NAME).force();
        // Of an object that was deleted it is a conflict, after which the next call finds none.
        apply.await?;
        let note = format!("the state of the reference is {state}");
        if matches!(state, "Missing" | "Disallowed") {
            self.events.warning(&*flunder, "BadReference", note);
        } else {
            self.events.normal(&*flunder, "GoodReference", note);
        }
        Ok(Action::Done)
    }
}
