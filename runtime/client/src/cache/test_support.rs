//! Informers for the tests of other modules, whose changes a test makes by itself.

use super::Informer;
use super::reflector::script::Script;
use super::store::Delta;
pub(crate) use super::test_object::{Pod, pod};

/// An informer of pods that is not started.
pub(crate) fn informer() -> Informer<Pod> {
    Informer::builder(Script::new([])).name("pods").build()
}

/// Makes changes.
pub(crate) fn apply(informer: &Informer<Pod>, deltas: Vec<Delta<Pod>>) {
    informer.apply(deltas);
}
