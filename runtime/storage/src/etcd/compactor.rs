//! Compacts history, in agreement with every other server over the same etcd, kube-apiserver included.
//!
//! All servers try at the same interval to increment one key by a transaction that only one can win. The winner
//! compacts to the store's revision in its previous round. History is kept for one to two intervals, with any number of
//! servers.
//!
//! As in kube-apiserver, a server keeps its last round in memory only, because the key holds no time: its value is a
//! bare revision, which other servers read. The first round after a start only learns the revision of the store; the
//! second can compact. If no server over an etcd runs for two intervals, apiloom compacts nothing; set etcd's
//! `--auto-compaction-retention` for that case.

use std::sync::Arc;
use std::time::Duration;

use etcd_client::proto::PbTxnOpResponse;
use etcd_client::{Compare, CompareOp, Txn, TxnOp};
use tokio::time::sleep;

use super::failure::Failure;
use super::history::PROBE_KEY;
use super::members::{Members, Safety};
use super::wire;
use crate::Revision;

/// The state that one round leaves to the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Round {
    /// The version of the key, used as the time on which all servers agree.
    time: i64,
    /// The store's revision in this round.
    revision: Revision,
}

/// Compacts every `interval`, until the task is aborted.
pub(super) async fn run(members: Arc<Members>, interval: Duration) {
    let mut last = Round::default();
    loop {
        sleep(interval).await;
        match round(&members, last).await {
            Ok(next) => last = next,
            Err(failure) => tracing::warn!(%failure, "failed to compact history"),
        }
    }
}

async fn round(members: &Members, last: Round) -> Result<Round, Failure> {
    let txn = Txn::new()
        .when([Compare::version(PROBE_KEY, CompareOp::Equal, last.time)])
        .and_then([TxnOp::put(PROBE_KEY, last.revision.to_string(), None)])
        .or_else([TxnOp::get(PROBE_KEY, None)]);
    let answer = members
        .call(Safety::Write, async |member| {
            member.kv().txn(txn.clone()).await
        })
        .await?
        .0;
    let revision = wire::header_revision(answer.header.as_ref());
    if !answer.succeeded {
        // Another server won this round, or this one has just started: the next round counts from here.
        let time = answer
            .responses
            .into_iter()
            .find_map(|response| match response.response {
                Some(PbTxnOpResponse::ResponseRange(range)) => Some(range.kvs.first()?.version),
                _ => None,
            });
        return Ok(Round {
            time: time.unwrap_or(0),
            revision,
        });
    }
    if last.revision > Revision(0) {
        compact(members, last.revision).await?;
        tracing::debug!(revision = %last.revision, "compacted history");
    }
    Ok(Round {
        time: last.time + 1,
        revision,
    })
}

/// Compacts the changes up to a revision; does nothing if that is already compacted.
pub(super) async fn compact(members: &Members, revision: Revision) -> Result<(), Failure> {
    let compacted = members
        .call(Safety::Read, async |member| {
            member.kv().compact(wire::number(revision), None).await
        })
        .await;
    match compacted {
        Ok(_) | Err(Failure::Compacted) => Ok(()),
        Err(failure) => Err(failure),
    }
}
