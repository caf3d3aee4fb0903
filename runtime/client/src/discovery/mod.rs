//! Which resources a server has: discovery, and a mapper from names and kinds to resources.

mod fetch;
mod mapper;
mod resources;

pub use mapper::{Mapper, MapperError};
pub use resources::{DiscoveredResource, Discovery};

#[cfg(test)]
mod tests;
