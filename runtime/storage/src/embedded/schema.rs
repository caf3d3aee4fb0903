//! The tables of a store.

/// Each value is written once, in the log. `obj` says which row of the log is present; WITHOUT ROWID makes it one tree
/// by key. Times are milliseconds since 1970. `meta` has the revision up to which history is `compacted`, and the one
/// up to which its rows are removed (`swept`). The text of each statement is verified at every open, so it is part of
/// the format.
pub(super) const SCHEMA: [&str; 4] = [
    "CREATE TABLE log (revision INTEGER PRIMARY KEY, key TEXT NOT NULL, previous INTEGER NOT NULL, \
     digest INTEGER NOT NULL, seal INTEGER NOT NULL, value BLOB)",
    "CREATE TABLE obj (key TEXT PRIMARY KEY, revision INTEGER NOT NULL, expires INTEGER) WITHOUT ROWID",
    "CREATE INDEX obj_expires ON obj (expires) WHERE expires IS NOT NULL",
    "CREATE TABLE meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL, seal INTEGER NOT NULL) WITHOUT ROWID",
];
