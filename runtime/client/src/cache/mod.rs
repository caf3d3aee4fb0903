//! Local copies of resources that a server keeps up to date by list and watch.
//!
//! A [`Store`] holds the objects of one resource and their indexes; a [`Lister`] reads it without waiting.

mod index;
mod lister;
mod object;
mod resource_version;
mod store;
#[cfg(test)]
mod test_object;

pub use index::{ByLabel, ByNamespace, ByOwner, Index, LabelKey};
pub use lister::{Lister, NamespaceLister, WaitError};
pub use object::{CacheObject, ObjectKey};
pub use resource_version::ResourceVersion;
pub use store::{Change, Delta, Observed, Store};
