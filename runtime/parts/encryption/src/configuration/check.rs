//! What kube-apiserver refuses in a configuration, with its texts.

use apiloom_meta::field::FieldError;
use apiloom_meta::{FieldPath, GroupResource, bytes};
use zeroize::Zeroizing;

use super::algorithm::Algorithm;
use super::document::{Entry, KeyDocument, ProviderDocument, group_resource};

const MORE_THAN_ONE: &str = "more than one provider specified in a single element, should split into different list elements";
const NO_PROVIDER: &str = "provider does not contain any of the expected providers: KMS, AESGCM, AESCBC, Secretbox, Identity";
const DUPLICATE: &str = "the same resource cannot be specified multiple times";
const OVERLAP: &str = "using overlapping resources such as 'secrets' and '*.' in the same resource list is not allowed as they will be masked";
const CAPITALS: &str = "resource name should not contain capital letters";
const STAR: &str =
    "use '*.' to encrypt all the resources from core API group or *.* to encrypt all resources";
const NO_API: &str = "resources which do not have REST API/s cannot be encrypted";
const EVENTS: &str = "'*.events.k8s.io' objects are stored using the 'events' API group in etcd. Use 'events' instead in the config file";
const EXTENSIONS: &str = "'extensions' group has been removed and cannot be used for encryption";
const ACROSS_GROUPS: &str = "encrypting the same resource across groups is not supported";
const NO_BASE64: &str = "secrets must be base64 encoded";

/// What stands for a secret, and for what may have one, in errors.
const REDACTED: &str = "REDACTED";

/// Resources of kube-apiserver that have stored values and no endpoint.
const WITHOUT_API: [&str; 3] = [
    "apiserveripinfo",
    "serviceipallocations",
    "servicenodeportallocations",
];

/// All that is wrong with a configuration.
pub(super) fn check(entries: &[Entry]) -> Vec<FieldError> {
    let root = FieldPath::new("resources");
    let mut errors = Vec::new();
    if entries.is_empty() {
        errors.push(missing(&root, root.as_str()));
    }
    for (index, entry) in entries.iter().enumerate() {
        let path = root.index(index);
        let (resources, providers) = (path.child("resources"), path.child("providers"));
        if entry.resources.is_empty() {
            errors.push(missing(&resources, resources.as_str()));
        }
        check_overlap(&entry.resources, &resources, &mut errors);
        for (index, resource) in entry.resources.iter().enumerate() {
            if let Some(why) = name_problem(resource) {
                let path = resources.index(index);
                errors.push(FieldError::invalid(&path, resource, why));
            }
        }
        if entry.providers.is_empty() {
            errors.push(missing(&providers, providers.as_str()));
        }
        for (index, provider) in entry.providers.iter().enumerate() {
            check_provider(provider, &providers.index(index), &mut errors);
        }
    }
    errors
}

/// Why a resource can never have the providers of its entry: an earlier wildcard has it. That is checked once all else is valid.
pub(super) fn masked_resource(entries: &[Entry]) -> Option<String> {
    let any = GroupResource::new("*", "*");
    let mut known: Vec<GroupResource> = Vec::new();
    for entry in entries {
        for resource in entry.group_resources() {
            let in_group = GroupResource::new(&resource.group, "*");
            if let Some(earlier) = [&in_group, &any]
                .into_iter()
                .find(|one| known.contains(one))
            {
                return Some(format!(
                    "resource {:?} is masked by earlier rule {:?}",
                    shown(&resource),
                    shown(earlier)
                ));
            }
            known.push(resource);
        }
    }
    None
}

/// The bytes of a secret; `None` if it is not in base64.
pub(super) fn decoded(secret: &str) -> Option<Zeroizing<Vec<u8>>> {
    bytes::decode(secret).ok().map(Zeroizing::new)
}

/// A resource as it is written in a configuration.
fn shown(resource: &GroupResource) -> String {
    if resource.group.is_empty() && resource.resource == "*" {
        return "*.".to_owned();
    }
    resource.to_string()
}

fn missing(path: &FieldPath, what: &str) -> FieldError {
    FieldError::required(path, &format!("at least one {what} is required"))
}

/// Two resources of one list that are the same, or of which one has the other.
fn check_overlap(resources: &[String], path: &FieldPath, errors: &mut Vec<FieldError>) {
    let parsed: Vec<GroupResource> = resources.iter().map(|text| group_resource(text)).collect();
    let pairs = || {
        let indexed = parsed.iter().enumerate();
        indexed.flat_map(|(at, one)| parsed[at + 1..].iter().map(move |other| (one, other)))
    };
    let is_any = |one: &GroupResource| one.group == "*" && one.resource == "*";
    let has_duplicate = pairs().any(|(one, other)| one == other);
    let has_overlap = pairs().any(|(one, other)| {
        let is_in_group = one.group == other.group;
        let has_wildcard = one.resource == "*" || other.resource == "*";
        is_any(one) || is_any(other) || is_in_group && has_wildcard
    });
    if has_duplicate {
        errors.push(FieldError::invalid(path, resources, DUPLICATE));
    }
    if has_overlap {
        errors.push(FieldError::invalid(path, resources, OVERLAP));
    }
}

/// Why a resource cannot be encrypted by this name.
fn name_problem(resource: &str) -> Option<&'static str> {
    if resource.to_lowercase() != resource {
        return Some(CAPITALS);
    }
    if resource == "*" {
        return Some(STAR);
    }
    if WITHOUT_API.contains(&resource) {
        return Some(NO_API);
    }
    let GroupResource { group, resource } = group_resource(resource);
    match group.as_str() {
        "events.k8s.io" => Some(EVENTS),
        "extensions" => Some(EXTENSIONS),
        // One resource of all groups.
        "*" if resource != "*" => Some(ACROSS_GROUPS),
        _ => None,
    }
}

fn check_provider(provider: &ProviderDocument, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let others = [provider.has_identity, provider.has_kms];
    let count = provider.lists().count() + others.into_iter().filter(|given| *given).count();
    if count == 0 {
        errors.push(FieldError::invalid(path, REDACTED, NO_PROVIDER));
    }
    if count > 1 {
        errors.push(FieldError::invalid(path, REDACTED, MORE_THAN_ONE));
    }
    if provider.has_kms {
        let known = ["aescbc", "aesgcm", "identity", "secretbox"];
        errors.push(FieldError::not_supported(path, "kms", &known));
        return;
    }
    // Of several the first one is checked.
    if let Some((algorithm, keys)) = provider.lists().next() {
        let path = path.child(algorithm.name()).child("keys");
        check_keys(keys, algorithm, &path, errors);
    }
}

fn check_keys(
    keys: &[KeyDocument],
    algorithm: Algorithm,
    path: &FieldPath,
    errors: &mut Vec<FieldError>,
) {
    if keys.is_empty() {
        errors.push(missing(path, "keys"));
    }
    for (index, key) in keys.iter().enumerate() {
        let path = path.index(index);
        let mandatory = |field: &str| {
            let why = format!("{field} is a mandatory field for a key");
            FieldError::required(&path.child(field), &why)
        };
        if key.name.is_empty() {
            errors.push(mandatory("name"));
        }
        if key.secret.is_empty() {
            errors.push(mandatory("secret"));
            continue;
        }
        let secret = path.child("secret");
        let Some(bytes) = decoded(&key.secret) else {
            errors.push(FieldError::invalid(&secret, REDACTED, NO_BASE64));
            continue;
        };
        let lengths = algorithm.key_lengths();
        if !lengths.contains(&bytes.len()) {
            let lengths: Vec<String> = lengths.iter().map(ToString::to_string).collect();
            let why = format!(
                "secret is not of the expected length, got {}, expected one of [{}]",
                bytes.len(),
                lengths.join(" ")
            );
            errors.push(FieldError::invalid(&secret, REDACTED, &why));
        }
    }
}
