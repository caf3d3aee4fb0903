//! Reads `key`, `key = value` and `key(..)`, going on after an error.
