//! What is read of a request before its body: path, query, accepted types, parameters of verbs, and its deadline. Knows responses only as
//! plain texts and cut-off bodies.

pub mod accept;
pub(super) mod cut_off;
pub(super) mod params;
pub(super) mod query;
pub(super) mod request_info;
pub mod timeout;
pub(super) mod verb_form;
pub(super) mod version_path;
