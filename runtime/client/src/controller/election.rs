//! Leader election by a Lease of coordination.k8s.io/v1, with a guard that refuses writes of a leader that lost it.
//!
//! The argument for one leader at a time: a leader may write until `renew_deadline` after it *began* its last successful
//! renewal. Another candidate takes the lease when it has seen no change of it for the duration that the leader wrote into
//! it, which is longer, and it saw the renewal only after it had begun. No clock is compared with that of another machine.

mod client;
mod clock;
mod config;
mod elector;
mod leadership;
mod lease;
mod observed;
mod revocable;
mod store;

pub use client::{ClientLease, GuardedTransport};
pub use config::{ElectionConfig, ElectionConfigError};
pub use elector::{ElectionError, LeaderElector};
pub use leadership::{Leadership, NotLeader, WriteGuard};
pub use lease::{Lease, LeaseSpec};
pub use store::{LeaseError, LeaseStore};

#[cfg(test)]
mod simulation;
#[cfg(test)]
mod sockets;
#[cfg(test)]
mod tests;
