//! The values of formats that are read while a document is decoded: times, durations and quantities.

mod duration;
mod quantity;
mod time;

pub use duration::{Duration, DurationRangeError, ParseDurationError};
pub use quantity::{ParseQuantityError, Quantity, QuantityFormat};
pub use time::{MicroTime, ParseTimeError, Time};
