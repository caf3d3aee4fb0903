//! Metadata that the server sets (uid, times, generated names), and metadata that it removes from requests.

use std::collections::HashSet;

use apiloom_meta::{ApiError, GroupResource, Object, Time};
use serde_json::Value;

use crate::options::RequestContext;

/// How many generated names are tried before the request fails; kube-apiserver tries as many.
pub(crate) const NAME_ATTEMPTS: usize = 8;

/// Letters and digits that do not form words and are not easily confused; kube-apiserver's alphabet.
const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// Length of a generated suffix.
const SUFFIX_LEN: usize = 5;

/// Maximum length of `generateName` in a name, in bytes: 63 less the suffix.
const BASE_BYTES: usize = 58;

/// A time as a value of metadata.
pub(crate) fn time_value(time: Time) -> Value {
    Value::from(time.to_string())
}

/// A random suffix for a generated name.
pub(crate) fn random_suffix() -> String {
    // Bytes from 243 on are not used: 243 is the largest multiple of the alphabet's 27 below 256, and the others would
    // make some letters more likely. Bytes 6 and 8 of a v4 uuid are not fully random. If too few bytes are left, which is
    // rare, another uuid is drawn.
    let mut suffix = String::with_capacity(SUFFIX_LEN);
    while suffix.len() < SUFFIX_LEN {
        let bytes = *uuid::Uuid::new_v4().as_bytes();
        let random = bytes
            .iter()
            .enumerate()
            .filter(|(i, b)| ![6, 8].contains(i) && **b < 243)
            .map(|(_, b)| *b);
        suffix.extend(random.map(|b| char::from(ALPHABET[usize::from(b) % ALPHABET.len()])));
    }
    suffix.truncate(SUFFIX_LEN);
    suffix
}

/// A generated name: the base, cut to [`BASE_BYTES`], and the suffix.
fn generated_name(base: &str, suffix: &str) -> String {
    let mut end = base.len().min(BASE_BYTES);
    while !base.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}{suffix}", &base[..end])
}

/// Whether the server makes the name of a new object.
pub(crate) fn is_name_generated(object: &Object) -> bool {
    object.name().is_empty() && !object.meta_str("generateName").is_empty()
}

/// Gives a new object a name of its `generateName` and this suffix.
pub(crate) fn set_generated_name(object: &mut Object, suffix: &str) {
    let name = generated_name(object.meta_str("generateName"), suffix);
    object.set_meta_str("name", &name);
}

/// The error if all generated names exist; `name` is the last of them.
pub(crate) fn no_unique_name(resource: &GroupResource, name: &str) -> ApiError {
    let mut error = ApiError::already_exists(resource, name);
    error
        .message
        .push_str(", the server was not able to generate a unique name for the object");
    if let Some(details) = &mut error.details {
        details.retry_after_seconds = 1;
    }
    error
}

/// Removes the metadata of a new object that only the server may set.
pub(crate) fn wipe_for_create(object: &mut Object) {
    let meta = object.meta_mut();
    for field in [
        "uid",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
    ] {
        meta.remove(field);
    }
    wipe(object);
}

/// Removes metadata that is never stored.
pub(crate) fn wipe(object: &mut Object) {
    object.meta_mut().remove("selfLink");
}

/// Sets uid and creation time of a new object.
pub(crate) fn stamp_created(object: &mut Object, now: Time) {
    object.set_meta_str("uid", &uuid::Uuid::new_v4().to_string());
    object
        .meta_mut()
        .insert("creationTimestamp".to_owned(), time_value(now));
}

/// Removes duplicate owner references, with a warning for the client.
pub(crate) fn dedup_owner_references(
    ctx: &RequestContext,
    object: &mut Object,
    after_admission: bool,
) {
    let Some(Value::Array(references)) = object.meta_mut().get_mut("ownerReferences") else {
        return;
    };
    let duplicates = remove_duplicates(references);
    if duplicates.is_empty() {
        return;
    }
    let when = if after_admission {
        "duplicate entries after mutating admission happens"
    } else {
        "duplicate entries"
    };
    ctx.warn(format!(
        ".metadata.ownerReferences contains {when}; API server dedups owner references in 1.20+, and may reject such \
         requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {}",
        duplicates.join(", ")
    ));
}

/// Removes duplicates from a list of owner references. Returns the uid of each that was removed, in the order of the
/// list. Uses a hash set, because a body can have tens of thousands of references.
fn remove_duplicates(references: &mut Vec<Value>) -> Vec<String> {
    if references.len() < 2 {
        return Vec::new();
    }
    let mut seen = HashSet::with_capacity(references.len());
    let is_first: Vec<bool> = references.iter().map(|r| seen.insert(r)).collect();
    if seen.len() == references.len() {
        return Vec::new();
    }
    drop(seen);
    let mut duplicates = Vec::new();
    let mut is_first = is_first.into_iter();
    references.retain(|reference| {
        let keeps = is_first.next().unwrap_or(true);
        if !keeps {
            let uid = reference.get("uid").and_then(Value::as_str);
            let uid = uid.unwrap_or_default().to_owned();
            duplicates.push(uid);
        }
        keeps
    });
    duplicates
}

/// An integer of the metadata; `None` if it is absent.
pub(crate) fn meta_number(object: &Object, field: &str) -> Option<i64> {
    object.meta()?.get(field)?.as_i64()
}

/// Sets or removes an integer of the metadata.
pub(crate) fn set_meta_number(object: &mut Object, field: &str, value: Option<i64>) {
    match value {
        Some(value) => object
            .meta_mut()
            .insert(field.to_owned(), Value::from(value)),
        None => object.meta_mut().remove(field),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_suffixes_are_five_characters_of_the_alphabet() {
        for _ in 0..100 {
            let suffix = random_suffix();
            assert_eq!(suffix.len(), 5);
            assert!(suffix.bytes().all(|b| ALPHABET.contains(&b)), "{suffix}");
        }
    }

    #[test]
    fn the_base_of_a_generated_name_is_cut_to_58_bytes() {
        assert_eq!(generated_name("a-", "xxxxx"), "a-xxxxx");
        assert_eq!(
            generated_name(&"b".repeat(60), "xxxxx"),
            format!("{}xxxxx", "b".repeat(58))
        );
        assert_eq!(
            generated_name(&"é".repeat(40), "xxxxx"),
            format!("{}xxxxx", "é".repeat(29))
        );
    }
}
