//! What tests use: checks of a package's kinds, and with the feature `testing` servers in memory.
//!
//! A test with a server of its own, by the clients that `apiloom generate` makes of a package (feature `fake` of that package):
//!
//! ```
//! # #[cfg(feature = "testing")] {
//! use apiloom::meta::kind::Verb;
//! use apiloom::testing::{Control, Fault, TestServer};
//!
//! #[apiloom::test]
//! async fn a_conflict_is_told(server: TestServer, control: Control) {
//!     control.inject(Fault::on(Verb::Create).conflict());
//!     // ..
//! }
//! # }
//! ```

pub use apiloom_meta::testing::*;
#[cfg(feature = "testing")]
pub use apiloom_testing::Action;
#[cfg(feature = "testing")]
pub use apiloom_testing::Control;
#[cfg(feature = "testing")]
pub use apiloom_testing::Fault;
#[cfg(feature = "testing")]
pub use apiloom_testing::FaultBuilder;
#[cfg(feature = "testing")]
pub use apiloom_testing::FaultHandle;
#[cfg(feature = "testing")]
pub use apiloom_testing::Fixture;
#[cfg(feature = "testing")]
pub use apiloom_testing::PausedWatchCache;
#[cfg(feature = "testing")]
pub use apiloom_testing::Revisions;
#[cfg(feature = "testing")]
pub use apiloom_testing::TestClock;
#[cfg(feature = "testing")]
pub use apiloom_testing::TestError;
#[cfg(feature = "testing")]
pub use apiloom_testing::TestPort;
#[cfg(feature = "testing")]
pub use apiloom_testing::TestServer;
#[cfg(feature = "testing")]
pub use apiloom_testing::TestServerBuilder;
#[cfg(feature = "testing")]
pub use apiloom_testing::TestTransport;
