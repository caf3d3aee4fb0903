//! Reads the documents of another server: discovery and OpenAPI. What cannot be read stays as it was, and is stale.

use std::fmt::Display;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use apiloom_http::background;
use apiloom_http::received;
use apiloom_http::shape::texts::fields;
use apiloom_http::sources::aggregation::{
    Connections, DocumentRoom, RemoteDocuments, RemoteResource, RemoteV3, of_discovery,
    of_resource_list, part_of_v2, part_of_v3, path_of_version,
};
use apiloom_registry::memory;
use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use http::{HeaderValue, StatusCode};
use tokio::sync::Semaphore;

use super::ask::request;

/// How long one document may take.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Largest document, in bytes: several times the OpenAPI document of Kubernetes. Less if the process has little memory.
const MAX_BYTES: usize = 32 * 1024 * 1024;

/// How many times its size a document of small objects takes while it is parsed, about.
const PARSED_FACTOR: usize = 25;

/// Largest part of an OpenAPI document about one version, in bytes: that of v2 becomes a part of this server's own.
const MAX_PART: usize = 4 * 1024 * 1024;

/// Largest parts of the OpenAPI documents of all versions together, in bytes. A version for which there is no room has none.
const MAX_PARTS: usize = 16 * MAX_PART;

/// Largest memory of the resources of all versions together, in bytes: some thousand versions of a usual size.
const MAX_RESOURCES: usize = 32 * 1024 * 1024;

/// A document and the parts that are kept may each have one of so many parts of the memory of this process.
const PARTS_OF_MEMORY: u64 = 128;

/// How many versions' documents are read at the same time.
const MAX_READING: usize = 8;
static READING: Semaphore = Semaphore::const_new(MAX_READING);

/// How many documents are parsed at the same time: as many as fit into a quarter of the memory of this process. Nothing waits for
/// another server while it has a turn.
static PARSING: LazyLock<Semaphore> = LazyLock::new(|| {
    let one = max_bytes().saturating_mul(PARSED_FACTOR);
    let turns = memory::share(4, MAX_READING.saturating_mul(one)) / one;
    Semaphore::new(turns.max(1))
});

fn max_bytes() -> usize {
    memory::share(PARTS_OF_MEMORY, MAX_BYTES)
}

/// The room for the documents of all versions that are kept.
pub(super) fn room() -> DocumentRoom {
    DocumentRoom {
        resources: memory::share(PARTS_OF_MEMORY, MAX_RESOURCES),
        openapi: memory::share(PARTS_OF_MEMORY, MAX_PARTS),
    }
}

/// Longest URL of a document, which has a hash.
const MAX_URL: usize = 1024;

/// Aggregated discovery in both versions, and without it what servers have.
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json";

const JSON: &str = "application/json";

/// A response.
struct Answer {
    code: StatusCode,
    is_aggregated: bool,
    etag: Option<String>,
    body: Bytes,
}

/// Reads the documents about a version, and tells whether all could be read. Servers need not have OpenAPI.
pub(super) async fn read(
    connections: &Connections,
    (group, version): (&str, &str),
    before: &RemoteDocuments,
) -> (RemoteDocuments, bool) {
    // It is never closed.
    let _turn = READING.acquire().await;
    let mut documents = before.clone();
    let mut are_all = true;
    match read_resources(connections, (group, version), &mut documents).await {
        Ok(()) => documents.is_stale = false,
        Err(error) => {
            tracing::debug!(
                error,
                group,
                version,
                "cannot read the discovery of a service"
            );
            (documents.is_stale, are_all) = (true, false);
        }
    }
    if let Err(error) = read_v3(connections, (group, version), &mut documents).await {
        tracing::debug!(
            error,
            group,
            version,
            "cannot read the OpenAPI v3 of a service"
        );
        are_all = false;
    }
    if let Err(error) = read_v2(connections, (group, version), &mut documents).await {
        tracing::debug!(
            error,
            group,
            version,
            "cannot read the OpenAPI v2 of a service"
        );
        are_all = false;
    }
    (documents, are_all)
}

async fn read_resources(
    connections: &Connections,
    (group, version): (&str, &str),
    documents: &mut RemoteDocuments,
) -> Result<(), String> {
    let root = if group.is_empty() { "/api" } else { "/apis" };
    let etag = documents.resources.as_ref().and(documents.etag.as_deref());
    let answer = get(connections, root, AGGREGATED, etag).await?;
    if answer.code == StatusCode::NOT_MODIFIED {
        return Ok(());
    }
    let mut found: Option<Vec<RemoteResource>> = None;
    if answer.code.is_success() && answer.is_aggregated {
        let (group, version) = (group.to_owned(), version.to_owned());
        let read = move || of_discovery(&answer.body, &group, &version);
        found = parsed(read).await?;
    }
    let is_legacy = matches!(
        answer.code,
        StatusCode::NOT_FOUND | StatusCode::NOT_ACCEPTABLE
    );
    if !answer.code.is_success() && !is_legacy {
        return Err(format!("{root} is answered with {}", answer.code));
    }
    let (resources, etag) = match found {
        Some(resources) => (resources, answer.etag),
        None => {
            let list = get(connections, &path_of_version(group, version), JSON, None).await?;
            if !list.code.is_success() {
                return Err(format!(
                    "the list of resources is answered with {}",
                    list.code
                ));
            }
            let (group, version) = (group.to_owned(), version.to_owned());
            let read = move || of_resource_list(&list.body, &group, &version);
            (parsed(read).await?, None)
        }
    };
    documents.etag = etag;
    if documents.resources.as_deref() != Some(&resources) {
        documents.resources = Some(Arc::new(resources));
    }
    Ok(())
}

async fn read_v3(
    connections: &Connections,
    (group, version): (&str, &str),
    documents: &mut RemoteDocuments,
) -> Result<(), String> {
    let answer = get(connections, "/openapi/v3", JSON, None).await?;
    if answer.code == StatusCode::NOT_FOUND {
        documents.openapi_v3 = None;
        return Ok(());
    }
    if !answer.code.is_success() {
        return Err(format!("/openapi/v3 is answered with {}", answer.code));
    }
    let path = path_of_version(group, version);
    let own = path.clone();
    let read = move || own_url(&answer.body, &own);
    let Some(url) = parsed(read).await? else {
        documents.openapi_v3 = None;
        return Ok(());
    };
    let known = documents.openapi_v3.as_ref();
    let known = known.filter(|known| known.url == url);
    if known.is_some() && url.contains("?hash=") {
        return Ok(());
    }
    let etag = known.and_then(|known| known.etag.as_deref());
    let answer = get(connections, &url, JSON, etag).await?;
    if answer.code == StatusCode::NOT_MODIFIED {
        return Ok(());
    }
    if !answer.code.is_success() {
        return Err(format!("{url} is answered with {}", answer.code));
    }
    let read = move || {
        let document = part_of_v3(&answer.body, &path).map_err(|error| error.to_string())?;
        let document = Arc::new(document);
        check_size("v3", document.size())?;
        let etag = answer.etag;
        Ok::<_, String>(RemoteV3 {
            url,
            etag,
            document,
        })
    };
    documents.openapi_v3 = Some(parsed(read).await?);
    Ok(())
}

/// The URL of the document of a version in the index, if it is that of this version: it is asked for under this server's name. There is none
/// in what is no index.
///
/// # Errors
/// If it is not JSON.
fn own_url(index: &[u8], path: &str) -> serde_json::Result<Option<String>> {
    let mut found = fields(index)?.remove("paths");
    for name in [path.trim_start_matches('/'), "serverRelativeURL"] {
        found = match found {
            Some(of) => fields(of.get().as_bytes())?.remove(name),
            None => None,
        };
    }
    let url = found.and_then(|url| serde_json::from_str::<String>(url.get()).ok());
    Ok(url.filter(|url| is_own(url, path)))
}

/// Whether a URL is that of the document of a version.
fn is_own(url: &str, path: &str) -> bool {
    let rest = url.strip_prefix("/openapi/v3");
    let rest = rest.and_then(|rest| rest.strip_prefix(path));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('?'))
        && url.len() <= MAX_URL
        && url.bytes().all(|byte| byte.is_ascii_graphic())
}

/// # Errors
/// If a part of OpenAPI is too large.
fn check_size(of: &str, bytes: usize) -> Result<(), String> {
    if bytes > MAX_PART {
        return Err(format!(
            "the OpenAPI {of} of the version has {bytes} bytes, more than {MAX_PART}"
        ));
    }
    Ok(())
}

async fn read_v2(
    connections: &Connections,
    (group, version): (&str, &str),
    documents: &mut RemoteDocuments,
) -> Result<(), String> {
    let etag = documents
        .openapi_v2
        .as_ref()
        .and(documents.v2_etag.as_deref());
    let answer = get(connections, "/openapi/v2", JSON, etag).await?;
    if answer.code == StatusCode::NOT_MODIFIED {
        return Ok(());
    }
    if answer.code == StatusCode::NOT_FOUND {
        (documents.openapi_v2, documents.v2_etag) = (None, None);
        return Ok(());
    }
    if !answer.code.is_success() {
        return Err(format!("/openapi/v2 is answered with {}", answer.code));
    }
    // The document has all versions of the server.
    let path = path_of_version(group, version);
    let read = move || {
        let part = part_of_v2(&answer.body, &path)?;
        Ok::<_, serde_json::Error>((part, answer.etag))
    };
    let (part, etag) = parsed(read).await?;
    check_size("v2", part.size())?;
    documents.v2_etag = etag;
    if documents.openapi_v2.as_deref() != Some(&part) {
        documents.openapi_v2 = Some(Arc::new(part));
    }
    Ok(())
}

/// Parses a document by a thread of its own, in turn.
async fn parsed<T: Send + 'static, E: Display + Send + 'static>(
    read: impl FnOnce() -> Result<T, E> + Send + 'static,
) -> Result<T, String> {
    // It is never closed.
    let _turn = PARSING.acquire().await;
    let read = background::spawn_blocking(read).await;
    let read = read.map_err(|error| error.to_string())?;
    read.map_err(|error| error.to_string())
}

async fn get(
    connections: &Connections,
    path: &str,
    accept: &'static str,
    etag: Option<&str>,
) -> Result<Answer, String> {
    let mut request = request(path)?;
    let headers = request.headers_mut();
    headers.insert(ACCEPT, HeaderValue::from_static(accept));
    if let Some(etag) = etag.and_then(|etag| HeaderValue::from_str(etag).ok()) {
        headers.insert(IF_NONE_MATCH, etag);
    }
    let received = async {
        let response = connections.send(request).await;
        let (parts, body) = response.map_err(|error| error.to_string())?.into_parts();
        let text = |name| {
            let value = parts
                .headers
                .get(name)
                .and_then(|value| value.to_str().ok());
            value.map(str::to_owned)
        };
        let content_type = text(CONTENT_TYPE).unwrap_or_default();
        let body = received::ANSWERS.collect(body, max_bytes()).await;
        Ok(Answer {
            code: parts.status,
            is_aggregated: content_type.contains("as=APIGroupDiscoveryList"),
            etag: text(ETAG),
            body: body.map_err(|error| error.to_string())?,
        })
    };
    let received = tokio::time::timeout(TIMEOUT, received).await;
    received.unwrap_or_else(|_| Err(format!("{path} is not answered within {TIMEOUT:?}")))
}
