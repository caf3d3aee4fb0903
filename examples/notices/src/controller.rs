//! The controller: it fills the board, and writes in the status of each notice whether it is shown.

use std::sync::Arc;
use std::time::Duration;

use apiloom::client::cache::{InformerFactory, Lister, ObjectKey};
use apiloom::client::controller::{Action, Context, Controller, ReconcileError, Request};
use apiloom::client::{Client, Patch};
use apiloom::server::Host;
use serde_json::json;

use crate::{Board, Notice};

/// How long the first read of the notices is waited for.
const SYNC_LIMIT: Duration = Duration::from_secs(60);

/// Runs the controller until the server stops.
pub(crate) async fn run(host: Host, board: Arc<Board>) {
    let client = Client::builder(host.loopback.privileged()).user_agent("notices");
    let client = client.build().expect("the name is a good header");
    let factory = InformerFactory::new(&client);
    let informer = factory.cluster_informer::<Notice>();
    factory.start();
    let notices = informer.lister();
    // Without any notice no call fills it.
    tokio::select! {
        synced = factory.wait_for_sync(SYNC_LIMIT) => if synced.is_ok() {
            fill(&board, &notices);
        },
        () = host.stop.cancelled() => {}
    }
    let all = notices.clone();
    Controller::new("notices")
        .watch_self(&informer)
        // With a notice that comes or goes, others are shown or not.
        .watch(&informer, move |_| all.keys())
        .run(&host.stop, move |request, context| {
            reconcile(
                request,
                context,
                client.clone(),
                notices.clone(),
                board.clone(),
            )
        })
        .await;
    factory.shutdown().await;
}

/// Called for a notice that may have changed.
async fn reconcile(
    request: Request<ObjectKey>,
    context: Context,
    client: Client,
    notices: Lister<Notice>,
    board: Arc<Board>,
) -> Result<Action, ReconcileError> {
    fill(&board, &notices);
    let Some(notice) = notices.get_key(&request.key) else {
        return Ok(Action::Done); // deleted
    };
    let name = &*request.key.name;
    let is_shown = board.shows(name);
    let known = notice.status.as_ref().and_then(|status| status.shown);
    if known != Some(is_shown) {
        let api = context.client(&client).cluster::<Notice>();
        let status = json!({"status": {"shown": is_shown}});
        api.patch_status(name, Patch::merge(&status)).await?;
    }
    Ok(Action::Done)
}

fn fill(board: &Board, notices: &Lister<Notice>) {
    let all = notices.list();
    board.fill(all.iter().map(|notice| &**notice));
}
