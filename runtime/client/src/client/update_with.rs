//! `update_with`: read, change, write, and begin again after a conflict.

use apiloom_meta::kind::verbs;

use super::object::ApiObject;
use super::resource::ResourceClient;
use super::scope::ObjectScope;
use super::write::WriteRequest;
use crate::error::Error;

/// Most attempts of one update.
const MAX_ATTEMPTS: u32 = 5;

impl<K: ApiObject, S: ObjectScope> ResourceClient<K, S> {
    /// Reads an object, changes it and writes it. If another client changed it meanwhile, the fresh object is read from the
    /// server and changed, at most five times. The resourceVersion must stay as it was read: it is what makes the update
    /// fail in place of undoing the other change.
    ///
    /// ```no_run
    /// # use apiloom_client::{Cluster, Error, ResourceClient};
    /// # use apiloom_meta::Resource;
    /// # async fn example<Flunder: Resource + apiloom_client::verbs::All>(flunders: ResourceClient<Flunder, Cluster>) -> Result<(), Error> {
    /// let label = |flunder: &mut Flunder| {
    ///     flunder.metadata_mut().labels.insert("seen".into(), "true".into());
    /// };
    /// flunders.update_with("a", label).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of the read and of the write. After the last conflict the message says how many attempts were made.
    pub async fn update_with(&self, name: &str, change: impl FnMut(&mut K)) -> Result<K, Error>
    where
        K: verbs::Get + verbs::Update,
    {
        self.updated(name, change, Self::update).await
    }

    /// As [`ResourceClient::update_with`], for the status.
    ///
    /// # Errors
    /// As there.
    pub async fn update_status_with(
        &self,
        name: &str,
        change: impl FnMut(&mut K),
    ) -> Result<K, Error>
    where
        K: verbs::Get + verbs::Update + verbs::HasStatus,
    {
        self.updated(name, change, Self::update_status).await
    }

    async fn updated(
        &self,
        name: &str,
        mut change: impl FnMut(&mut K),
        write: impl Fn(&Self, &K) -> WriteRequest<K>,
    ) -> Result<K, Error>
    where
        K: verbs::Get,
    {
        let mut attempt = 1;
        loop {
            let mut object = self.get(name).await?;
            change(&mut object);
            match write(self, &object).await {
                Err(error) if error.is_conflict() && attempt < MAX_ATTEMPTS => attempt += 1,
                Err(Error::Api(mut status)) => {
                    if attempt > 1 {
                        status
                            .message
                            .push_str(&format!(" (after {attempt} attempts)"));
                    }
                    return Err(Error::Api(status));
                }
                other => return other,
            }
        }
    }
}
