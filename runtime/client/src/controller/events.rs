//! Events: reports of a controller about objects, for people. They are written in the background, and may be lost.

mod correlator;
mod event;
mod queue;
mod recorder;
mod sink;

pub use event::{Event, EventSeries, EventType, NewEvent, ObjectReference};
pub use recorder::{Recorder, RecorderMetrics};
pub use sink::{ClientEvents, EventError, EventSink};

#[cfg(test)]
mod tests;
