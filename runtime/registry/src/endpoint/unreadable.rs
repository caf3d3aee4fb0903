//! Deletes stored values that cannot be read as objects, by their keys alone.

use apiloom_meta::ApiError;
use apiloom_storage::{ListRequest, StorageError};

use super::Endpoint;

/// Values in a page: few, since one may be as large as the largest object.
const PAGE: usize = 64;

impl Endpoint {
    /// Deletes the stored values of the kind that cannot be read as its objects, without admission and finalizers, of which
    /// nothing is known; returns their number. So are those that only a webhook can convert to the storage version, unless they
    /// have finalizers. For the end of the kind itself: nothing else deletes what it cannot read.
    ///
    /// # Errors
    /// If the store cannot be read or written.
    pub async fn delete_unreadable(&self) -> Result<usize, ApiError> {
        let kind = &self.resource.kind;
        let mut deleted = 0;
        let mut request = ListRequest {
            prefix: kind.keys.of_all().to_owned(),
            limit: PAGE,
            uncounted: true,
            ..ListRequest::default()
        };
        loop {
            let page = kind.store.list(request.clone()).await;
            let page = page.map_err(|error| kind.error(error, "list"))?;
            for entry in &page.entries {
                let is_kept = match kind.decode(&entry.key, &entry.value, entry.revision) {
                    Ok((object, stored)) => {
                        let is_convertible =
                            !kind.versions.is_asynchronous() || stored == kind.versions.stored;
                        is_convertible || !object.finalizers().is_empty()
                    }
                    Err(_) => false,
                };
                if is_kept {
                    continue;
                }
                match kind.store.delete_if(&entry.key, entry.revision).await {
                    Ok(_) => deleted += 1,
                    // Another write came first; the next call looks at it.
                    Err(StorageError::Conflict { .. }) => {}
                    Err(error) => return Err(kind.error(error, "delete")),
                }
            }
            let Some(last) = page.entries.last().filter(|_| page.more) else {
                return Ok(deleted);
            };
            request.start = after(last.key.as_ref());
        }
    }
}

/// The first possible key after another one: NUL is the smallest byte.
fn after(key: &str) -> String {
    format!("{key}\0")
}
