//! Options of requests that several verbs share.

use std::fmt;
use std::time::Duration;

use super::request::RawRequest;

/// How a list's resourceVersion is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VersionMatch {
    /// The state at this resourceVersion exactly.
    Exact,
    /// That state, or a later one.
    NotOlderThan,
}

impl VersionMatch {
    /// The spelling of the query.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Exact => "Exact",
            Self::NotOlderThan => "NotOlderThan",
        }
    }
}

/// What the server does with unknown and duplicate fields of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FieldValidation {
    /// They are ignored.
    Ignore,
    /// They are ignored, and the client is warned of them: the default of servers.
    Warn,
    /// The request is refused.
    Strict,
}

impl FieldValidation {
    /// The spelling of the query.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ignore => "Ignore",
            Self::Warn => "Warn",
            Self::Strict => "Strict",
        }
    }
}

/// Which objects a list or a watch has, as data: for code that passes options on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListOptions {
    /// Selects by labels: `app=web,tier in (a,b)`. Empty for all.
    pub label_selector: String,
    /// Selects by fields: `metadata.name=a`. Empty for all.
    pub field_selector: String,
    /// Most objects in a list's answer; `None` for all.
    pub limit: Option<u32>,
    /// Where the list before ended.
    pub continue_token: Option<String>,
    /// The state that is asked for; `None` for the present one, `0` for any.
    pub resource_version: Option<String>,
    /// How that is meant.
    pub resource_version_match: Option<VersionMatch>,
    /// How long the server works on a list, or keeps a watch open, in whole seconds.
    pub timeout: Option<Duration>,
    /// Of a watch: whether the server sends bookmarks.
    pub bookmarks: bool,
    /// Of a watch: whether the present objects come first, as events. `None` for the server's default.
    pub send_initial_events: Option<bool>,
}

impl ListOptions {
    /// Sets a selector by labels; a `LabelQuery` or a text.
    #[must_use]
    pub fn labels(mut self, selector: impl fmt::Display) -> Self {
        self.label_selector = selector.to_string();
        self
    }

    /// Sets a selector by fields.
    #[must_use]
    pub fn fields(mut self, selector: impl fmt::Display) -> Self {
        self.field_selector = selector.to_string();
        self
    }

    /// The parameters that lists and watches share, and those of a list.
    pub(super) fn add_to(&self, mut request: RawRequest) -> RawRequest {
        if !self.label_selector.is_empty() {
            request = request.query("labelSelector", &self.label_selector);
        }
        if !self.field_selector.is_empty() {
            request = request.query("fieldSelector", &self.field_selector);
        }
        if let Some(limit) = self.limit {
            request = request.query("limit", limit.to_string());
        }
        if let Some(token) = &self.continue_token {
            request = request.query("continue", token);
        }
        if let Some(version) = &self.resource_version {
            request = request.query("resourceVersion", version);
        }
        if let Some(version_match) = self.resource_version_match {
            request = request.query("resourceVersionMatch", version_match.as_str());
        }
        if let Some(timeout) = self.timeout {
            // Zero would mean the server's default.
            let seconds = timeout.as_secs().max(1);
            request = request.query("timeoutSeconds", seconds.to_string());
        }
        request
    }
}
