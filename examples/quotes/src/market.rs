//! The market: a table in memory that changes, and the `Reader` of it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use apiloom::meta::kind::Verb;
use apiloom::meta::{GroupResource, StatusReason};
use apiloom::prelude::*;
use apiloom::server::{ListOptions, ObjectEvent, ObjectEvents, ObjectList, Reader};
use futures_util::stream;
use tokio::sync::watch;

use crate::Quote;

/// How many changes are known. A watch that begins before them is answered with Expired, and its client lists again.
const KNOWN_CHANGES: usize = 1000;

/// The shares: namespace, name, sector, currency and the first price.
const SHARES: [(&str, &str, &str, &str, i64); 5] = [
    ("default", "acme", "industry", "USD", 1250),
    ("default", "globex", "energy", "USD", 8400),
    ("default", "initech", "software", "EUR", 310),
    ("default", "umbrella", "medicine", "EUR", 9999),
    ("tokyo", "nakatomi", "industry", "JPY", 150_000),
];

/// A market; clones are the same one.
#[derive(Clone)]
pub struct Market(Arc<Shared>);

struct Shared {
    table: Mutex<Table>,
    /// The version of the table, for those who wait for a change.
    version: watch::Sender<u64>,
}

struct Table {
    quotes: Vec<Quote>,
    version: u64,
    /// The last changes, each with the version that it made.
    changes: VecDeque<(u64, ObjectEvent<Quote>)>,
}

impl Market {
    /// A market without trades.
    pub fn open() -> Self {
        let quotes = SHARES.map(|(namespace, name, sector, currency, price)| Quote {
            metadata: ObjectMeta {
                namespace: Some(namespace.to_owned()),
                name: Some(name.to_owned()),
                labels: [("sector".to_owned(), sector.to_owned())]
                    .into_iter()
                    .collect(),
                resource_version: Some("1".to_owned()),
                ..ObjectMeta::default()
            },
            currency: currency.to_owned(),
            price,
        });
        let table = Table {
            quotes: quotes.into(),
            version: 1,
            changes: VecDeque::new(),
        };
        Self(Arc::new(Shared {
            table: Mutex::new(table),
            version: watch::Sender::new(1),
        }))
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        let table = self.0.table.lock();
        table.unwrap_or_else(PoisonError::into_inner)
    }

    /// Raises the price of the next share by a cent.
    pub fn trade(&self) {
        let mut table = self.table();
        let table = &mut *table;
        let count = table.quotes.len() as u64;
        // The remainder is below the number of shares.
        let next = (table.version % count) as usize;
        table.version += 1;
        let quote = &mut table.quotes[next];
        let old = quote.clone();
        quote.price += 1;
        quote.metadata.resource_version = Some(table.version.to_string());
        let new = quote.clone();
        let change = ObjectEvent::Modified { old, new };
        table.changes.push_back((table.version, change));
        if table.changes.len() > KNOWN_CHANGES {
            table.changes.pop_front();
        }
        self.0.version.send_replace(table.version);
    }

    /// The change after a version; `None` if there is none yet.
    fn change_after(&self, version: u64) -> Result<Option<(u64, ObjectEvent<Quote>)>, ApiError> {
        let table = self.table();
        let oldest = table
            .changes
            .front()
            .map_or(table.version, |(version, _)| *version - 1);
        if version < oldest {
            let text = format!("too old resource version: {version} ({oldest})");
            return Err(ApiError::new(StatusReason::Expired, text));
        }
        // Each version is of one change.
        Ok(table.changes.get((version - oldest) as usize).cloned())
    }
}

// The server passes on what is in the namespace of the request and what its selectors match, cuts pages, and lists the quotes for
// a watch that begins with them. So this only knows the table.
#[async_trait]
impl Reader<Quote> for Market {
    const VERBS: &'static [Verb] = &[Verb::Get, Verb::List, Verb::Watch];

    async fn get(
        &self,
        _: &RequestContext,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<Quote, ApiError> {
        let table = self.table();
        let mut quotes = table.quotes.iter();
        let found = quotes.find(|quote| {
            let ObjectMeta {
                namespace: of,
                name: named,
                ..
            } = &quote.metadata;
            of.as_deref() == namespace && named.as_deref() == Some(name)
        });
        let resource = GroupResource::new(Quote::GROUP, Quote::PLURAL);
        found
            .cloned()
            .ok_or_else(|| ApiError::not_found(&resource, name))
    }

    async fn list(
        &self,
        _: &RequestContext,
        _: Option<&str>,
        _: &ListOptions,
    ) -> Result<ObjectList<Quote>, ApiError> {
        let table = self.table();
        Ok(ObjectList::new(
            table.quotes.clone(),
            table.version.to_string(),
        ))
    }

    async fn watch(
        &self,
        _: &RequestContext,
        _: Option<&str>,
        options: &ListOptions,
    ) -> Result<ObjectEvents<Quote>, ApiError> {
        let from = match options.resource_version.as_str() {
            "" => self.table().version,
            text => {
                let malformed = |_| ApiError::bad_request(format!("no version: {text:?}"));
                text.parse().map_err(malformed)?
            }
        };
        let begin = (self.clone(), from, self.0.version.subscribe());
        Ok(ObjectEvents::new(stream::unfold(
            Some(begin),
            |state| async move {
                let (market, from, mut version) = state?;
                loop {
                    match market.change_after(from) {
                        Ok(Some((to, change))) => {
                            return Some((Ok(change), Some((market, to, version))));
                        }
                        Ok(None) => version.changed().await.ok()?,
                        // An error is the end of a stream.
                        Err(error) => return Some((Err(error), None)),
                    }
                }
            },
        )))
    }
}
