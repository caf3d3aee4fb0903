//! What the server itself writes into metadata: identity, times, generated names, and what it takes out of requests.

use std::collections::HashSet;

use apiloom_meta::{Object, Time};
use serde_json::Value;

use crate::registry::options::RequestContext;

/// Letters and digits that do not form words and are not mistaken for each other; upstream's alphabet.
const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// How many characters are generated.
const SUFFIX_LEN: usize = 5;

/// How much of `generateName` is kept: a name of 63 bytes less the suffix.
const BASE_BYTES: usize = 58;

/// The present time, as metadata holds it.
pub(crate) fn now() -> Value {
    Value::from(Time::now().to_string())
}

/// A random suffix for a generated name.
pub(crate) fn random_suffix() -> String {
    // 243 is the largest multiple of the alphabet's 27 below 256: bytes above it would favor some letters. A v4 uuid has
    // 14 random bytes, all above 243 once in 10^18, and then further uuids are drawn.
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

/// The name generated from a base.
pub(crate) fn generated_name(base: &str, suffix: &str) -> String {
    let mut end = base.len().min(BASE_BYTES);
    while !base.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}{suffix}", &base[..end])
}

/// Takes out of a new object what only the server may say.
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

/// Takes out of any written object what is never kept.
///
/// managedFields are not tracked yet. Those that a client sends are dropped without a word and none are ever sent, so
/// that no object carries entries that later writes do not keep true.
pub(crate) fn wipe(object: &mut Object) {
    let meta = object.meta_mut();
    meta.remove("selfLink");
    meta.remove("managedFields");
}

/// Gives a new object its identity.
pub(crate) fn stamp_created(object: &mut Object) {
    object.set_meta_str("uid", &uuid::Uuid::new_v4().to_string());
    object
        .meta_mut()
        .insert("creationTimestamp".to_owned(), now());
}

/// Removes owner references that are there twice, and tells the client.
pub(crate) fn dedup_owner_references(
    ctx: &RequestContext,
    object: &mut Object,
    after_admission: bool,
) {
    let Some(Value::Array(references)) = object.meta_mut().get_mut("ownerReferences") else {
        return;
    };
    let duplicates = take_duplicates(references);
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

/// Takes out of a list what stands there twice; gives the uids of that, each once, in their order. Both are looked up and
/// not searched for: a body has room for tens of thousands of references.
fn take_duplicates(references: &mut Vec<Value>) -> Vec<String> {
    if references.len() < 2 {
        return Vec::new();
    }
    let mut seen = HashSet::with_capacity(references.len());
    let is_first: Vec<bool> = references.iter().map(|r| seen.insert(r)).collect();
    if seen.len() == references.len() {
        return Vec::new();
    }
    drop(seen);
    let (mut duplicates, mut uids) = (Vec::new(), HashSet::new());
    let mut is_first = is_first.into_iter();
    references.retain(|reference| {
        let keeps = is_first.next().unwrap_or(true);
        if !keeps {
            let uid = reference.get("uid").and_then(Value::as_str);
            let uid = uid.unwrap_or_default().to_owned();
            if uids.insert(uid.clone()) {
                duplicates.push(uid);
            }
        }
        keeps
    });
    duplicates
}

/// A number of the metadata.
pub(crate) fn meta_number(object: &Object, field: &str) -> Option<i64> {
    object.meta()?.get(field)?.as_i64()
}

/// Sets a number of the metadata, or takes it out.
pub(crate) fn set_meta_number(object: &mut Object, field: &str, value: Option<i64>) {
    match value {
        Some(value) => object
            .meta_mut()
            .insert(field.to_owned(), Value::from(value)),
        None => object.meta_mut().remove(field),
    };
}

/// Sets a field, or takes it out.
pub(crate) fn put_field(object: &mut Object, name: &str, value: Option<serde_json::Value>) {
    match value {
        Some(value) => object.fields_mut().insert(name.to_owned(), value),
        None => object.fields_mut().remove(name),
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
