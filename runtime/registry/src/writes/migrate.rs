//! migrate: stores an object again if its stored bytes are stale, without changing it.
//!
//! The write has the revision of those bytes as its precondition, so it never undoes the write of a client. It runs
//! neither admission nor validation nor the strategy: the object is what it was, so it must not be refused now. An object
//! whose bytes have fields that this server does not know is left as it is, since the server of a newer release may need them.

use std::sync::Arc;

use apiloom_meta::{ApiError, StatusReason};
use apiloom_storage::{Entry, StorageError};

use super::Writes;
use crate::large::OffThread;
use crate::objects::kind::Kind;
use crate::objects::kind_version::VersionIndex;
use crate::options::RequestContext;

/// The result for one object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MigrationOutcome {
    /// Its stored bytes are not stale.
    Current(VersionIndex),
    /// It was stored again, or would be without a dry run. Its bytes had this version.
    Rewritten(VersionIndex),
    /// It was deleted meanwhile.
    Deleted,
}

/// Why an object could not be migrated.
#[derive(Debug)]
pub(crate) enum MigrateError {
    /// The object is damaged, cannot be converted, or the store refuses it. Others may succeed.
    Object(ApiError),
    /// The store cannot be reached.
    Store(ApiError),
}

impl Writes {
    /// Stores an object again if its bytes are stale. After a conflict it starts again with the object that another
    /// writer stored, which mostly is not stale. The resource must be of the storage version.
    ///
    /// # Errors
    /// See [`MigrateError`].
    pub(crate) async fn migrate(
        &self,
        entry: Entry,
        dry_run: bool,
    ) -> Result<MigrationOutcome, MigrateError> {
        let ctx = RequestContext::default();
        self.resource.reserve(&ctx, entry.value.len()).await;
        let migrate = Box::pin(self.migrate_off_thread(entry, dry_run));
        OffThread::new(&ctx, migrate).await
    }

    async fn migrate_off_thread(
        &self,
        mut entry: Entry,
        dry_run: bool,
    ) -> Result<MigrationOutcome, MigrateError> {
        let kind = &self.resource.kind;
        loop {
            let form = kind.stored_form(&entry).await;
            let (prepared, version) = form.map_err(MigrateError::Object)?;
            if kind.is_stored_as(&entry, &prepared) {
                return Ok(MigrationOutcome::Current(version));
            }
            check_is_complete(kind, &entry, version).map_err(MigrateError::Object)?;
            if dry_run {
                return Ok(MigrationOutcome::Rewritten(version));
            }
            let prepared = Arc::new(prepared);
            entry = match self
                .commit
                .rewrite(&entry.key, &prepared, entry.revision)
                .await
            {
                Ok(_) => return Ok(MigrationOutcome::Rewritten(version)),
                Err(StorageError::Conflict { present, .. }) => match present {
                    Some(present) => *present,
                    None => return Ok(MigrationOutcome::Deleted),
                },
                Err(error) => {
                    let is_of_store = matches!(error, StorageError::Unavailable(_));
                    let error = kind.error(error, "update");
                    return Err(if is_of_store {
                        MigrateError::Store(error)
                    } else {
                        MigrateError::Object(error)
                    });
                }
            };
        }
    }
}

/// Checks that the object that was read has all fields of its stored bytes: what is read is what will be stored.
fn check_is_complete(kind: &Kind, entry: &Entry, version: VersionIndex) -> Result<(), ApiError> {
    match kind.unknown_stored_field(entry, version)? {
        None => Ok(()),
        Some(field) => Err(ApiError::new(
            StatusReason::InternalError,
            format!(
                "it is stored with an {field}, which this server does not know and would drop: migrate it with the release \
                 that stored it, or update the object if the field is not needed"
            ),
        )),
    }
}
