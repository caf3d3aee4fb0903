//! `ResourceVersion`: the state that a store shows, and its order.
//!
//! Kubernetes lets clients compare resourceVersions that are decimal numbers without leading zeros; other servers may
//! use any text, which is only equal or not.

use std::cmp::Ordering;
use std::fmt;

use apiloom_meta::kind::SmolStr;

/// The resourceVersion of a list, of an object, or of a store.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ResourceVersion(SmolStr);

impl ResourceVersion {
    /// A resourceVersion; `None` for the texts that name no state: the empty one, and `0`, which means any state.
    pub fn new(text: &str) -> Option<Self> {
        (!text.is_empty() && text != "0").then(|| Self(SmolStr::new(text)))
    }
    /// The text, as it is sent.
    pub fn as_str(&self) -> &str {
        &self.0
    }
    /// Which of the two is later. `None` if one of them is not a decimal number without leading zeros, so that only the
    /// server knows. Numbers of any length compare.
    ///
    /// ```
    /// use std::cmp::Ordering;
    /// use apiloom_client::cache::ResourceVersion;
    /// let version = |text| ResourceVersion::new(text).unwrap();
    /// assert_eq!(version("9").compare(&version("10")), Some(Ordering::Less));
    /// assert_eq!(version("9").compare(&version("abc")), None);
    /// ```
    pub fn compare(&self, other: &Self) -> Option<Ordering> {
        let (ours, theirs) = (self.as_str(), other.as_str());
        if !is_number(ours) || !is_number(theirs) {
            return None;
        }
        Some((ours.len(), ours).cmp(&(theirs.len(), theirs)))
    }
    /// Whether this state includes the other. A version that cannot be compared is taken as included, so that a caller
    /// who waits for it does not wait for ever.
    pub fn includes(&self, other: &Self) -> bool {
        self.compare(other) != Some(Ordering::Less)
    }
}

fn is_number(text: &str) -> bool {
    !text.starts_with('0') && !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

impl fmt::Display for ResourceVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(a: &str, b: &str, expected: Option<Ordering>) {
        let version = |text| ResourceVersion::new(text).expect("a version");
        assert_eq!(version(a).compare(&version(b)), expected, "{a} and {b}");
        let reversed = expected.map(Ordering::reverse);
        assert_eq!(version(b).compare(&version(a)), reversed, "{b} and {a}");
    }

    #[test]
    fn trap_40_versions_compare_by_length_and_then_as_text() {
        check("9", "10", Some(Ordering::Less));
        check("10", "100000000000000000000", Some(Ordering::Less));
        check(
            "100000000000000000000",
            "100000000000000000001",
            Some(Ordering::Less),
        );
        check("12", "12", Some(Ordering::Equal));
        check("007", "8", None);
        check("-1", "8", None);
        check("abc", "abd", None);
        assert_eq!(ResourceVersion::new(""), None);
        assert_eq!(ResourceVersion::new("0"), None);
    }
}
