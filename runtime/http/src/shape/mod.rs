//! How documents are written and read: forms, formats and framings, the choice among them, and bodies of requests. It knows what a request
//! accepts, but not its verb.

pub(super) mod body;
pub(super) mod encode;
pub mod error;
pub(super) mod event_key;
pub(super) mod form;
pub(super) mod form_writer;
pub(super) mod format;
pub(super) mod negotiate;
pub(super) mod table;
pub mod texts;
