//! Nothing: the tests in `tests/ui.rs` and their cases are what there is.
