//! The stored form of an object: the bytes as which a write would store it now, before they are encrypted. Stored bytes that
//! differ are stale: of another version, or of an earlier schema.

use apiloom_meta::ApiError;
use apiloom_storage::Entry;

use super::kind::Kind;
use super::kind_version::VersionIndex;
use super::prepared_object::PreparedObject;

impl Kind {
    /// The present stored form of a stored object, and the version that its bytes have.
    ///
    /// # Errors
    /// InternalError with the key if the bytes are not an object of this kind; the error of its conversion.
    pub(crate) async fn stored_form(
        &self,
        entry: &Entry,
    ) -> Result<(PreparedObject, VersionIndex), ApiError> {
        let (object, version) = self.decode(&entry.key, &entry.value, entry.revision)?;
        let versions = &self.versions;
        let mut object = if versions.has_hub() {
            versions.convert_with_defaults(object, version, versions.stored)?
        } else {
            versions.stored_object(object, version).await?
        };
        Ok((self.encode(&mut object)?, version))
    }
}
