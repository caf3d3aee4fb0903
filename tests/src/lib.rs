//! What crosses crates: real kubectl, the wire contract, goldens, macro UI tests.
