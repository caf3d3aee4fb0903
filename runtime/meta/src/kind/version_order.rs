//! Order of the versions of a group without a declared one.

use std::cmp::Ordering;

/// A version such as `v1`, `v2beta1`, `v1alpha3`, in the order of Kubernetes: generally available before beta before alpha,
/// and higher numbers first. The fields compare in that order.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    /// 2 for a version without a suffix, 1 for beta, 0 for alpha.
    maturity: u8,
    major: u64,
    minor: u64,
}

impl Rank {
    fn of(version: &str) -> Option<Self> {
        let (major, rest) = number(version.strip_prefix('v')?)?;
        if rest.is_empty() {
            return Some(Self {
                maturity: 2,
                major,
                minor: 0,
            });
        }
        let beta = rest.strip_prefix("beta").map(|rest| (1, rest));
        let (maturity, rest) = beta.or_else(|| Some((0, rest.strip_prefix("alpha")?)))?;
        let (minor, rest) = number(rest)?;
        rest.is_empty().then_some(Self {
            maturity,
            major,
            minor,
        })
    }
}

/// The number at the beginning of a text, without leading zeros, and the rest.
fn number(text: &str) -> Option<(u64, &str)> {
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    if digits.starts_with('0') {
        return None;
    }
    Some((digits.parse().ok()?, rest))
}

/// Compares two versions as Kubernetes does: [`Ordering::Less`] for the one that comes first in lists of versions. GA comes
/// before beta before alpha, higher numbers first; then all other names in alphabetical order.
///
/// ```
/// use apiloom_meta::kind::compare_versions;
/// let mut versions = ["foo1", "v1", "v1alpha2", "v10", "v2", "v3beta1", "foo10", "v11alpha2"];
/// versions.sort_by(|one, other| compare_versions(one, other));
/// assert_eq!(versions, ["v10", "v2", "v1", "v3beta1", "v11alpha2", "v1alpha2", "foo1", "foo10"]);
/// ```
pub fn compare_versions(one: &str, other: &str) -> Ordering {
    match (Rank::of(one), Rank::of(other)) {
        (Some(one), Some(other)) => other.cmp(&one),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => one.cmp(other),
    }
}
