//! Bytes with revisions: the trait [`Storage`] for a backend of your own, and the stores of apiloom.

pub use apiloom_storage::CheckReport;
pub use apiloom_storage::Embedded;
pub use apiloom_storage::EmbeddedConfig;
pub use apiloom_storage::Entry;
pub use apiloom_storage::Event;
pub use apiloom_storage::EventKind;
pub use apiloom_storage::Key;
pub use apiloom_storage::ListRequest;
pub use apiloom_storage::Memory;
pub use apiloom_storage::MoveError;
pub use apiloom_storage::MoveReport;
pub use apiloom_storage::OpenError;
pub use apiloom_storage::Page;
pub use apiloom_storage::Retention;
pub use apiloom_storage::Revision;
pub use apiloom_storage::Storage;
pub use apiloom_storage::StorageError;
pub use apiloom_storage::WatchItem;
pub use apiloom_storage::WatchStart;
pub use apiloom_storage::WatchStream;

#[cfg(feature = "etcd")]
pub use apiloom_storage::ConnectError;
#[cfg(feature = "etcd")]
pub use apiloom_storage::Etcd;
#[cfg(feature = "etcd")]
pub use apiloom_storage::EtcdConfig;
#[cfg(feature = "etcd")]
pub use apiloom_storage::EtcdTls;
