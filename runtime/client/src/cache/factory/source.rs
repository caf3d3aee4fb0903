//! `FactorySource`: what an informer of a factory reads: the server, or a fuller informer of the same objects.

use std::sync::{Arc, OnceLock};

use futures_util::future::BoxFuture;

use crate::cache::derived::DerivedSource;
use crate::cache::source::{
    ListPage, ListRequest, ListWatch, SourceError, WatchRequest, WatchStream,
};

/// Objects that come from another informer, if there is one.
pub(super) type Fuller<T> = Option<Arc<dyn DerivedSource<T>>>;

/// The fuller informer that the first request finds, until it is shut down; the server otherwise.
pub(super) struct FactorySource<T> {
    server: Arc<dyn ListWatch<T>>,
    find: Box<dyn Fn() -> Fuller<T> + Send + Sync>,
    fuller: OnceLock<Fuller<T>>,
}

impl<T: 'static> FactorySource<T> {
    pub(super) fn new(
        server: impl ListWatch<T>,
        find: impl Fn() -> Fuller<T> + Send + Sync + 'static,
    ) -> Self {
        Self {
            server: Arc::new(server),
            find: Box::new(find),
            fuller: OnceLock::new(),
        }
    }

    fn source(&self) -> &dyn ListWatch<T> {
        match self.fuller.get_or_init(&self.find) {
            Some(fuller) if !fuller.is_stopped() => &**fuller,
            _ => &*self.server,
        }
    }
}

impl<T: 'static> ListWatch<T> for FactorySource<T> {
    fn list(&self, request: ListRequest) -> BoxFuture<'_, Result<ListPage<T>, SourceError>> {
        self.source().list(request)
    }
    fn watch(&self, request: WatchRequest) -> BoxFuture<'_, Result<WatchStream<T>, SourceError>> {
        self.source().watch(request)
    }
    fn always_streams(&self) -> bool {
        self.source().always_streams()
    }
    fn max_list_bytes(&self) -> usize {
        self.source().max_list_bytes()
    }
}
