//! deletecollection: deletes all selected objects, each by a delete of its own.

use std::borrow::Cow;

use apiloom_meta::ApiError;
use apiloom_meta::kind::Scope;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};

use super::Endpoint;
use crate::options::{DeleteOptions, ListOptions, RequestContext, VersionMatch};
use crate::reads::list::ListResult;

impl Endpoint {
    /// Deletes all selected objects; returns the list from before.
    ///
    /// # Errors
    /// The first error other than NotFound; other objects may have been deleted by then.
    pub async fn delete_collection(
        &self,
        ctx: &RequestContext,
        namespace: Option<&str>,
        list: &ListOptions,
        options: &DeleteOptions,
    ) -> Result<ListResult, ApiError> {
        let listed = self.reads.list(ctx, namespace, &of_state(list)).await?;
        stream::iter(listed.items.names()?)
            .map(|(namespace, name)| async move {
                let namespace =
                    (self.resource.kind.scope == Scope::Namespaced).then_some(namespace.as_str());
                match self.writes.delete(ctx, namespace, &name, options).await {
                    Err(error) if error.reason == Some(apiloom_meta::StatusReason::NotFound) => {
                        Ok(())
                    }
                    other => other.map(|_| ()),
                }
            })
            .buffer_unordered(self.delete_collection_workers.get())
            .try_collect::<()>()
            .await?;
        Ok(listed)
    }
}

/// The options of the list: kube-apiserver reads it in pages, and a page of a resourceVersion shows exactly that state.
fn of_state(list: &ListOptions) -> Cow<'_, ListOptions> {
    let is_of_state = !matches!(&*list.resource_version, "" | "0") && list.version_match.is_none();
    if !is_of_state || !list.continue_token.is_empty() {
        return Cow::Borrowed(list);
    }
    Cow::Owned(ListOptions {
        version_match: Some(VersionMatch::Exact),
        ..list.clone()
    })
}
