//! Writes: one transaction each, which compares the key's revision and returns the present entry if it differs.

use bytes::Bytes;
use etcd_client::proto::{PbKeyValue, PbTxnOpResponse};
use etcd_client::{Compare, CompareOp, PutOptions, Txn, TxnOp};

use super::failure::Failure;
use super::members::Safety;
use super::store::Etcd;
use super::wire;
use crate::op::Expiry;
use crate::{Entry, Revision, StorageError};

/// The precondition of a write.
#[derive(Clone, Copy, Debug)]
pub(super) enum Precondition {
    Nothing,
    Revision(Revision),
}

impl Precondition {
    /// The comparison for etcd; `None` for a revision that no key can have.
    fn compare(self, key: &str) -> Option<Compare> {
        let revision = match self {
            Self::Nothing => 0,
            // In etcd 0 means an absent key.
            Self::Revision(Revision(0)) => return None,
            Self::Revision(revision) => i64::try_from(revision.0).ok()?,
        };
        Some(Compare::mod_revision(key, CompareOp::Equal, revision))
    }
}

/// The revision of the write, or the present entry if the precondition failed.
pub(super) type Done = Result<Revision, Option<Entry>>;

impl Etcd {
    /// Writes a value if `expected` holds.
    pub(super) async fn put(
        &self,
        key: &str,
        expected: Precondition,
        value: Bytes,
        expiry: Expiry,
    ) -> Result<Done, StorageError> {
        let Some(compare) = expected.compare(key) else {
            return Ok(Err(self.entry(key).await?.0));
        };
        let ttl = match expiry {
            Expiry::After(ttl) => ttl,
            Expiry::Never => {
                let put = TxnOp::put(key, value.as_ref(), None);
                return done(self.transact(key, compare, put).await?);
            }
            Expiry::Kept => {
                let options = PutOptions::new().with_ignore_lease();
                let put = TxnOp::put(key, value.as_ref(), Some(options));
                return done(self.transact(key, compare, put).await?);
            }
        };
        let lease = self.leases.get(ttl).await?;
        let leased = |lease| {
            let options = PutOptions::new().with_lease(lease);
            TxnOp::put(key, value.as_ref(), Some(options))
        };
        match self.transact(key, compare.clone(), leased(lease)).await {
            // The lease expired between its grant and its use; a new one will not.
            Err(Failure::NoLease) => {
                self.leases.forget(lease);
                let lease = self.leases.get(ttl).await?;
                done(self.transact(key, compare, leased(lease)).await?)
            }
            transacted => done(transacted?),
        }
    }

    /// Deletes a key if `expected` holds.
    pub(super) async fn delete(
        &self,
        key: &str,
        expected: Precondition,
    ) -> Result<Done, StorageError> {
        match expected.compare(key) {
            None => Ok(Err(self.entry(key).await?.0)),
            Some(compare) => {
                let delete = TxnOp::delete(key, None);
                done(self.transact(key, compare, delete).await?)
            }
        }
    }

    async fn transact(
        &self,
        key: &str,
        compare: Compare,
        op: TxnOp,
    ) -> Result<Result<Revision, Option<PbKeyValue>>, Failure> {
        let txn = Txn::new()
            .when([compare])
            .and_then([op])
            .or_else([TxnOp::get(key, None)]);
        let before = self.history.past.seen();
        let answer = self
            .members
            .call(Safety::Write, async |member| {
                member.kv().txn(txn.clone()).await
            })
            .await?
            .0;
        // The write is executed, even if this check detects another history.
        self.history.past.judge(before, answer.header.as_ref());
        if answer.succeeded {
            return Ok(Ok(wire::header_revision(answer.header.as_ref())));
        }
        let mut operations = answer.responses.into_iter();
        Ok(Err(operations.find_map(|operation| {
            match operation.response {
                Some(PbTxnOpResponse::ResponseRange(range)) => range.kvs.into_iter().next(),
                _ => None,
            }
        })))
    }
}

fn done(transacted: Result<Revision, Option<PbKeyValue>>) -> Result<Done, StorageError> {
    Ok(match transacted {
        Ok(revision) => Ok(revision),
        Err(present) => Err(present.map(wire::entry).transpose()?),
    })
}
