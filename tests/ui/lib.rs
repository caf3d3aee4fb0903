//! Empty: this package has only the tests in `tests/ui.rs` and their cases.
