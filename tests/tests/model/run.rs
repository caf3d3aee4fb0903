//! One run: servers, clients and writers of one seed, and the comparison at its end.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use apiloom_tests::{created, revision};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::check::{check_listing, check_log, check_resumed};
use crate::client::{Item, Log, Watcher};
use crate::interest::Interest;
use crate::list::{Lister, Listing, Wanted};
use crate::model::{Model, Put, Revision};
use crate::objects::{Key, NAMESPACES, Resource, Version, collection};
use crate::outside::Outside;
use crate::plan::Plan;
use crate::random::branch;
use crate::site::{Place, Setup, Site};
use crate::writer::{Ledger, Writer};

/// Number of watching clients.
const WATCHERS: u64 = 16;

/// Number of listing clients.
const LISTERS: u64 = 2;

/// Maximum lists of each of them in a phase.
const LISTS: usize = 25;

/// Number of writing clients.
const WRITERS: u64 = 3;

/// Writes of each of them in a phase.
const WRITES: usize = 35;

/// Transactions of the other tool in a phase.
const TRANSACTIONS: usize = 12;

/// Runs a seed.
///
/// # Errors
/// The first difference between a client's log and the model.
pub(crate) async fn run(setup: Setup, seed: u64) -> Result<(), String> {
    let mut site = Site::start(setup).await;
    let ledger = prepare(&site.place().borrow().clone()).await;
    let (ledgers, _) = watch::channel(Arc::new(ledger));
    let (close, closing) = watch::channel(None);
    let mut plans = vec![Plan::reference()];
    let mut random = branch(seed, 0);
    plans.extend((1..WATCHERS).map(|number| Plan::random(number, &mut random, WRITES * 3)));
    let mut watchers = JoinSet::new();
    for plan in plans.clone() {
        let random = branch(seed, 100 + plan.number);
        let watcher = Watcher::new(
            plan,
            random,
            site.place(),
            ledgers.subscribe(),
            closing.clone(),
        );
        watchers.spawn(watcher.run());
    }
    let mut listings = Vec::new();
    let mut past = Vec::new();
    for phase in 0..2 {
        if phase > 0 {
            let before = site.place().borrow().era;
            let place = site.pass().await;
            if place.era != before {
                let ledger = Arc::new(prepare(&place).await);
                past.push(ledgers.send_replace(ledger));
            }
            site.publish(place);
        }
        let ledger = ledgers.borrow().clone();
        listings.extend(write(&site, &ledger, seed * 10 + phase).await);
    }
    let ledger = ledgers.borrow().clone();
    close.send_replace(Some(finish(&site, &ledger, &plans, seed).await));
    let mut logs = Vec::new();
    while let Some(log) = watchers.join_next().await {
        logs.push(log.map_err(|error| error.to_string())?);
    }
    drop(ledgers);
    past.push(ledger);
    logs.sort_by_key(|log| log.plan.number);
    logs.iter().try_for_each(check_resumed)?;
    let mut models = Vec::new();
    for (era, ledger) in past.into_iter().enumerate() {
        let bounds = [ledger.first(), ledger.newest()];
        let (puts, deletions) = ledger.parts();
        let own = own_revisions(&site, bounds, &puts);
        let told = told(&logs[0], era);
        models.push(Model::new(bounds, &puts, &deletions, &told, &own)?);
    }
    for listing in &listings {
        check_listing(&models, listing)?;
    }
    logs.iter().try_for_each(|log| check_log(&models, log))?;
    check_counts(&models, &logs, &listings)
}

/// The revisions at which servers over etcd have written the records of the kinds that they serve, or these have ended.
fn own_revisions(site: &Site, [first, last]: [Revision; 2], puts: &[Put]) -> BTreeSet<Revision> {
    let Some(cluster) = site.etcd() else {
        return BTreeSet::new();
    };
    let known: BTreeSet<Revision> = puts.iter().map(|put| put.revision).collect();
    let [key, range_end] =
        ["/registry/apiloom/", "/registry/apiloom0"].map(|key| STANDARD.encode(key));
    let records = |revision: Revision| {
        let range =
            json!({"key": key, "range_end": range_end, "revision": revision, "keys_only": true});
        let mut answer = Value::Null;
        tokio::task::block_in_place(|| {
            cluster.with_etcd(|etcd| answer = etcd.gateway("/v3/kv/range", &range));
        });
        answer["kvs"].take()
    };
    (first + 1..=last)
        .filter(|revision| !known.contains(revision))
        .filter(|revision| records(revision - 1) != records(*revision))
        .collect()
}

/// Checks that enough happened for the comparison to be meaningful.
fn check_counts(models: &[Model], logs: &[Log], listings: &[Listing]) -> Result<(), String> {
    let changes: usize = models.iter().map(Model::len).sum();
    let streams = logs.iter().flat_map(|log| &log.streams);
    let items: usize = streams.map(|stream| stream.items.len()).sum();
    let is_enough = changes > 80 && items > 100 && !listings.is_empty();
    let counts = || {
        format!(
            "{changes} changes, {items} items of streams, {} lists",
            listings.len()
        )
    };
    is_enough.then_some(()).ok_or_else(counts)
}

/// Creates the required objects, and starts a ledger.
async fn prepare(place: &Place) -> Ledger {
    let client = &place.servers[0].http2;
    for name in &NAMESPACES[1..] {
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        created(client, "/api/v1/namespaces", &namespace).await;
    }
    let list = client
        .get(&collection(Resource::Flunders, Version::Stored, None))
        .await;
    Ledger::new(revision(&list.json()))
}

/// Runs all writers, and some listing clients meanwhile.
async fn write(site: &Site, ledger: &Arc<Ledger>, seed: u64) -> Vec<Listing> {
    let place = site.place().borrow().clone();
    let mut writers = JoinSet::new();
    for number in 0..WRITERS {
        let writer = Writer {
            servers: Arc::clone(&place.servers),
            ledger: Arc::clone(ledger),
            random: branch(seed, 200 + number),
        };
        writers.spawn(writer.run(WRITES));
    }
    let done = watch::Sender::new(false);
    let mut listers = JoinSet::new();
    for number in 0..LISTERS {
        let (place, ledger, done) = (place.clone(), Arc::clone(ledger), done.subscribe());
        let mut random = branch(seed, 300 + number);
        listers.spawn(async move {
            let mut listings = Vec::new();
            while listings.len() < LISTS && !*done.borrow() {
                let lister = Lister::random(place.clone(), Arc::clone(&ledger), &mut random);
                let wanted = Wanted::random(&mut random, &ledger);
                listings.extend(lister.list(wanted, &mut random).await);
            }
            listings
        });
    }
    if let Some(cluster) = site.etcd() {
        let outside = Outside {
            cluster,
            servers: Arc::clone(&place.servers),
            ledger,
            random: branch(seed, 400),
        };
        outside.run(TRANSACTIONS).await;
    }
    while let Some(writer) = writers.join_next().await {
        writer.expect("a writer is answered");
    }
    // The response to the last write must have its revision.
    let mut writer = Writer {
        servers: Arc::clone(&place.servers),
        ledger: Arc::clone(ledger),
        random: branch(seed, 500),
    };
    let example = Interest::everything().example(seed);
    writer
        .close(&example.expect("everything is something"), seed)
        .await;
    done.send_replace(true);
    let mut listings = Vec::new();
    while let Some(listing) = listers.join_next().await {
        listings.extend(listing.expect("a list is answered"));
    }
    listings
}

/// Makes a last change for each client's selection; returns their revisions.
async fn finish(site: &Site, ledger: &Arc<Ledger>, plans: &[Plan], seed: u64) -> Vec<Revision> {
    let mut writer = Writer {
        servers: Arc::clone(&site.place().borrow().servers),
        ledger: Arc::clone(ledger),
        random: branch(seed, 500),
    };
    let mut closing = Vec::new();
    for plan in plans {
        let interest = if plan.is_brief {
            &Interest::everything()
        } else {
            &plan.interest
        };
        let example = interest
            .example(plan.number)
            .expect("everything is something");
        closing.push(writer.close(&example, plan.number).await);
    }
    closing
}

/// The deletions in the log of the client that sees everything.
fn told(log: &Log, era: usize) -> BTreeMap<Revision, Key> {
    let streams = log.streams.iter().filter(|stream| stream.era == era);
    let deleted = streams
        .flat_map(|stream| &stream.items)
        .filter_map(|item| match item {
            Item::Event {
                kind,
                revision,
                object,
            } if kind == "DELETED" => Some((*revision, Key::of(Resource::Flunders, object))),
            _ => None,
        });
    deleted.collect()
}
