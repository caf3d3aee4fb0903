//! What later requests need of the answers to earlier ones: resourceVersions and a continue token, which each server has of its own.

use serde_json::Value;

/// How far in the future `FUTURE` is: no server gets there during the test.
const FAR: u64 = 1_000_000;

/// What was seen.
#[derive(Default)]
pub(crate) struct Seen {
    /// The resourceVersion of the first created object.
    oldest: u64,
    /// The highest resourceVersion: that of a list may be of a write of the server itself, such as of a lease.
    newest: u64,
    /// The highest resourceVersion of an object.
    written: u64,
    /// The continue token of the last page.
    token: String,
}

impl Seen {
    pub(crate) fn note(&mut self, answer: &apiloom_tests::Answer) {
        let document: Value = serde_json::from_str(&answer.text()).unwrap_or_default();
        let metadata = &document["metadata"];
        let version = metadata["resourceVersion"].as_str().unwrap_or_default();
        let version = version.parse().unwrap_or(0);
        self.newest = self.newest.max(version);
        if metadata["uid"].is_string() {
            self.written = self.written.max(version);
        }
        if answer.code == 201 && self.oldest == 0 {
            self.oldest = version;
        }
        if let Some(token) = metadata["continue"]
            .as_str()
            .filter(|token| !token.is_empty())
        {
            self.token = token.to_owned();
        }
    }

    /// A path with the values that its placeholders stand for.
    pub(crate) fn complete(&self, path: &str) -> String {
        path.replace("=OLDEST", &format!("={}", self.oldest))
            .replace("=NEWEST", &format!("={}", self.newest))
            .replace("=WRITTEN", &format!("={}", self.written))
            .replace("=FUTURE", &format!("={}", self.newest + FAR))
            .replace("=TOKEN", &format!("={}", self.token))
    }
}
