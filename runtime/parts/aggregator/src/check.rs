//! One look at the server of an APIService: whether it answers, and its documents. The condition is written if it changed.

use std::sync::Arc;
use std::time::Duration;

use apiloom_http::sources::aggregation::{
    Aggregation, Connections, RemoteDocuments, RemoteServer, Unreachable, path_of_version,
};
use apiloom_kinds::apiregistration::rules::LOCAL;
use apiloom_kinds::apiregistration::v1::{APIService, APIServiceSpec};
use apiloom_meta::{Condition, Conditions as _};
use apiloom_server::host::{RequestError, Requests};
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;

use super::ask::request;
use super::local::is_available;
use super::{documents, local};

/// How often a server is asked in one look. One answer is enough.
const ATTEMPTS: u32 = 5;

/// Time between the beginnings of two attempts.
const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(200);

/// How long one attempt may take.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(5);

/// What to look at.
pub(super) struct Subject {
    pub(super) name: String,
    pub(super) uid: Option<String>,
    pub(super) spec: APIServiceSpec,
    /// `None` for this server.
    pub(super) server: Option<Arc<RemoteServer>>,
    pub(super) documents: RemoteDocuments,
    pub(super) reads_documents: bool,
}

impl Subject {
    fn group(&self) -> &str {
        self.spec.group.as_deref().unwrap_or_default()
    }

    fn version(&self) -> &str {
        self.spec.version.as_deref().unwrap_or_default()
    }
}

/// What was found.
pub(super) struct Outcome {
    pub(super) name: String,
    pub(super) uid: Option<String>,
    pub(super) spec: APIServiceSpec,
    pub(super) server: Option<Arc<RemoteServer>>,
    pub(super) is_available: bool,
    /// The reason, if the condition was written that it is not available any more.
    pub(super) failed: Option<&'static str>,
    /// Whether the server refuses the condition.
    pub(super) is_refused: bool,
    /// The documents, if they were read, or could not be.
    pub(super) documents: Option<RemoteDocuments>,
    /// Whether all documents were read.
    pub(super) has_documents: bool,
}

/// Looks at a server, and writes the condition.
pub(super) async fn run(
    requests: Requests,
    aggregation: Arc<Aggregation>,
    subject: Subject,
) -> Outcome {
    let found = match &subject.server {
        None => Ok(None),
        Some(server) => look(server, &aggregation, &subject).await.map(Some),
    };
    let (is_available, reason, message) = match &found {
        Ok(None) => (true, LOCAL.0, LOCAL.1.to_owned()),
        Ok(Some(_)) => (true, "Passed", "all checks passed".to_owned()),
        Err((reason, message)) => (false, *reason, message.clone()),
    };
    let written = write(&requests, &subject, (is_available, reason, &message)).await;
    let is_written = written.is_ok();
    let is_refused = matches!(&written, Err(error) if error.is_refusal());
    let has_failed = matches!(&written, Ok(Change::BecameUnavailable));
    if let Err(error) = written
        && !error.is_conflict()
    {
        tracing::debug!(%error, service = %subject.name, "the condition of an APIService is not written");
    }
    let (documents, has_documents) = match found {
        Ok(Some(connections)) if subject.reads_documents => {
            let version = (subject.group(), subject.version());
            let (documents, are_all) =
                documents::read(&connections, version, &subject.documents).await;
            (Some(documents), are_all)
        }
        Ok(_) => (None, true),
        Err(_) => {
            let stale = RemoteDocuments {
                is_stale: true,
                ..subject.documents
            };
            (Some(stale), false)
        }
    };
    Outcome {
        name: subject.name,
        uid: subject.uid,
        spec: subject.spec,
        server: subject.server,
        // One that could not be written is tried again soon.
        is_available: is_available && is_written,
        is_refused,
        failed: has_failed.then_some(reason),
        documents,
        has_documents,
    }
}

/// Asks a server for its version; the error is the reason and the message of the condition.
async fn look(
    server: &RemoteServer,
    aggregation: &Aggregation,
    subject: &Subject,
) -> Result<Arc<Connections>, (&'static str, String)> {
    if let Err((path, problem)) = aggregation.identity().read().await {
        tracing::warn!(path = %path.display(), problem, "the client certificate stays as it was");
    }
    let connections = server.connections().await.map_err(|error| {
        let reason = match &error {
            Unreachable::Address { reason, .. } => reason,
            Unreachable::Settings(_) => "FailedDiscoveryCheck",
        };
        (reason, error.to_string())
    })?;
    let path = path_of_version(subject.group(), subject.version());
    let attempts = (0..ATTEMPTS).map(async |number| {
        tokio::time::sleep(BETWEEN_ATTEMPTS * number).await;
        attempt(&connections, &path).await
    });
    let mut attempts: FuturesUnordered<_> = attempts.collect();
    let mut last = String::new();
    while let Some(result) = attempts.next().await {
        match result {
            Ok(()) => {
                drop(attempts);
                return Ok(connections);
            }
            Err(error) => last = error,
        }
    }
    drop(attempts);
    Err(("FailedDiscoveryCheck", last))
}

async fn attempt(connections: &Connections, path: &str) -> Result<(), String> {
    let url = format!("{}{path}", connections.url.trim_end_matches('/'));
    let failed = |why: String| format!("failing or missing response from {url}: {why}");
    let request = request(path).map_err(&failed)?;
    let sent = tokio::time::timeout(ATTEMPT_TIMEOUT, connections.send(request)).await;
    let response = match sent {
        Err(_) => return Err(failed(format!("Get \"{url}\": context deadline exceeded"))),
        Ok(Err(error)) => return Err(failed(format!("Get \"{url}\": {error}"))),
        Ok(Ok(response)) => response,
    };
    let code = response.status();
    if code.is_success() {
        return Ok(());
    }
    Err(failed(format!("bad status from {url}: {}", code.as_u16())))
}

/// What became of a condition.
enum Change {
    None,
    BecameUnavailable,
}

/// Writes the condition of an APIService, if it is another one. One that was changed since the look began is left to the next.
async fn write(
    requests: &Requests,
    subject: &Subject,
    (is_true, reason, message): (bool, &str, &str),
) -> Result<Change, RequestError> {
    let path = local::path(&subject.name);
    let Some(mut object) = requests.get::<APIService>(&path).await? else {
        return Ok(Change::None);
    };
    let is_other = object.metadata.uid != subject.uid || object.spec != subject.spec;
    let was_available = is_available(&object);
    let condition = Condition::new(APIService::AVAILABLE, is_true, reason, message);
    if is_other || !object.status.conditions.set_condition(condition.into()) {
        return Ok(Change::None);
    }
    requests.put(&format!("{path}/status"), &object).await?;
    Ok(if was_available && !is_true {
        Change::BecameUnavailable
    } else {
        Change::None
    })
}
