//! Classifies etcd's errors: the only place that reads their codes and texts.

use std::error::Error as _;

use tonic::{Code, ConnectError, Status};

use crate::{Revision, StorageError};

/// Why a request to etcd failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// The revision is compacted.
    Compacted,
    /// The revision does not exist yet.
    Future,
    /// The revision belongs to a history that is gone: etcd was restored or emptied.
    Gone {
        /// The current revision of etcd.
        current: Revision,
    },
    /// The lease has expired or was revoked.
    NoLease,
    /// etcd has not executed the request: no connection, no leader, or overload. A retry cannot execute it twice.
    NotDone(String),
    /// It is not known whether etcd has executed the request.
    Lost(String),
    /// etcd refuses the request permanently; its own text, which clients are shown.
    Refused(String),
}

impl Failure {
    /// Classifies the error of a request to this member.
    pub(super) fn of(error: &etcd_client::Error, server: &str) -> Self {
        let etcd_client::Error::GRpcStatus(status) = error else {
            return Self::Lost(format!("etcd at {server}: {error}"));
        };
        let message = status.message();
        match status.code() {
            Code::OutOfRange if message.contains("compacted") => Self::Compacted,
            Code::OutOfRange if message.contains("future") => Self::Future,
            Code::NotFound if message.contains("lease not found") => Self::NoLease,
            Code::Unavailable if never_connected(status) => {
                Self::NotDone(describe(server, root_cause(status)))
            }
            // Refused before it was proposed to the other members.
            Code::Unavailable if message.ends_with("no leader") => {
                Self::NotDone(describe(server, message.to_owned()))
            }
            Code::ResourceExhausted if message.ends_with("too many requests") => {
                Self::NotDone(describe(server, message.to_owned()))
            }
            Code::InvalidArgument
            | Code::FailedPrecondition
            | Code::ResourceExhausted
            | Code::PermissionDenied
            | Code::Unauthenticated
            | Code::Unimplemented => Self::Refused(message.to_owned()),
            _ => Self::Lost(describe(server, message.to_owned())),
        }
    }

    /// Whether a retry may succeed later.
    pub(super) fn is_passing(&self) -> bool {
        matches!(self, Self::NotDone(_) | Self::Lost(_))
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Compacted => "the revision is compacted",
            Self::Future => "the revision is in the future",
            Self::Gone { .. } => "the revision is of a past that is gone",
            Self::NoLease => "the lease is gone",
            Self::NotDone(text) | Self::Lost(text) | Self::Refused(text) => text,
        })
    }
}

impl From<Failure> for StorageError {
    /// The conversion for callers without more context.
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Refused(text) => StorageError::Refused(text),
            failure => StorageError::Unavailable(failure.to_string()),
        }
    }
}

fn describe(server: &str, what: String) -> String {
    format!("etcd at {server}: {what}")
}

fn never_connected(status: &Status) -> bool {
    let mut source = status.source();
    while let Some(error) = source {
        if error.is::<ConnectError>() {
            return true;
        }
        source = error.source();
    }
    false
}

/// The innermost cause, which for a connection is the operating system's error.
fn root_cause(status: &Status) -> String {
    let mut text = status.message().to_owned();
    let mut source = status.source();
    while let Some(error) = source {
        text = error.to_string();
        source = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_etcd_have_a_meaning() {
        let check = |code, message: &str, expected: Failure| {
            let error = etcd_client::Error::GRpcStatus(Status::new(code, message));
            assert_eq!(Failure::of(&error, "http://e"), expected, "{message}");
        };
        let told = |text: &str| format!("etcd at http://e: {text}");
        check(
            Code::OutOfRange,
            "etcdserver: mvcc: required revision has been compacted",
            Failure::Compacted,
        );
        check(
            Code::OutOfRange,
            "etcdserver: mvcc: required revision is a future revision",
            Failure::Future,
        );
        check(
            Code::NotFound,
            "etcdserver: requested lease not found",
            Failure::NoLease,
        );
        let no_leader = "etcdserver: no leader";
        let not_done = Failure::NotDone(told(no_leader));
        check(Code::Unavailable, no_leader, not_done);
        for text in [
            "etcdserver: request timed out",
            "etcdserver: leader changed",
        ] {
            check(Code::Unavailable, text, Failure::Lost(told(text)));
        }
        for (code, text) in [
            (
                Code::ResourceExhausted,
                "etcdserver: mvcc: database space exceeded",
            ),
            (Code::InvalidArgument, "etcdserver: request is too large"),
        ] {
            check(code, text, Failure::Refused(text.to_owned()));
        }
    }
}
