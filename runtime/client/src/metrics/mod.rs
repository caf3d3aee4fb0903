//! Metrics of clients, caches and controllers, in Prometheus' text format. What is not registered costs nothing.
//!
//! A [`Registry`] asks everything that was registered when its text is read: there is no task, and no second copy of a
//! number.
//!
//! ```no_run
//! use apiloom_client::cache::InformerFactory;
//! use apiloom_client::metrics::{Registry, RequestMetrics};
//! # use apiloom_client::Client;
//! # fn example(client: Client) -> Result<(), apiloom_client::Error> {
//! let registry = Registry::new();
//! let requests = RequestMetrics::new("api.example.com");
//! let client = client.rebuild().metrics(&requests).build()?;
//! registry.register(requests);
//! let factory = InformerFactory::new(&client);
//! factory.register_metrics(&registry);
//! println!("{}", registry.text());
//! # Ok(())
//! # }
//! ```

mod histogram;
mod registry;
mod requests;
mod samples;

pub use histogram::{Bounds, DurationHistogram};
pub(crate) use registry::WeakRegistry;
pub use registry::{Collect, Registry};
pub use requests::RequestMetrics;
pub use samples::Samples;
