//! The strategy of core/v1 Secret. Its errors contain no values.

use apiloom_meta::codec::{self, Format};
use apiloom_meta::go_value::mistyped;
use apiloom_meta::{FieldError, FieldPath};
use apiloom_registry::{RegistryBuilder, RequestContext, Strategy};
use serde_json::Value;

use super::data_keys::{MAX_BYTES, immutable_errors, key_errors};
use crate::built_in::BuiltIn;
use crate::core::v1::Secret;

impl BuiltIn for Secret {
    fn register(registry: &mut RegistryBuilder) {
        registry.own_kind::<Self>(SecretRules);
    }
}

/// The strategy of secrets.
struct SecretRules;

impl Strategy<Secret> for SecretRules {
    /// Moves `stringData` into `data` before the object is judged, so that admission and patches see one form.
    fn default(&self, object: &mut Secret) {
        let texts = std::mem::take(&mut object.string_data).into_iter();
        object
            .data
            .extend(texts.map(|(key, text)| (key, text.into_bytes())));
        if object.secret_type.is_empty() {
            Secret::OPAQUE.clone_into(&mut object.secret_type);
        }
    }

    fn validate(&self, _ctx: &RequestContext, object: &Secret) -> Vec<FieldError> {
        let path = FieldPath::new("data");
        let mut errors = key_errors(&path, object.data.keys());
        if object.data.values().map(Vec::len).sum::<usize>() > MAX_BYTES {
            errors.push(FieldError::too_long(&path, MAX_BYTES));
        }
        errors.extend(errors_of_type(object, &path));
        errors
    }

    fn validate_update(&self, ctx: &RequestContext, new: &Secret, old: &Secret) -> Vec<FieldError> {
        let mut errors = Vec::new();
        if new.secret_type != old.secret_type {
            let path = FieldPath::new("type");
            errors.push(FieldError::invalid(
                &path,
                &new.secret_type,
                "field is immutable",
            ));
        }
        let changed = [("data", new.data != old.data)];
        errors.extend(immutable_errors(new.immutable, old.immutable, &changed));
        errors.extend(self.validate(ctx, new));
        errors
    }
}

/// The errors of entries that the type of a secret asks for.
fn errors_of_type(object: &Secret, path: &FieldPath) -> Vec<FieldError> {
    let missing = |keys: &[&str]| {
        let keys = keys.iter().filter(|key| !object.data.contains_key(**key));
        keys.map(|key| FieldError::required(&path.key(key), ""))
            .collect()
    };
    // kube-apiserver's path of these entries; clients match it.
    let odd = |key: &&str| FieldError::required(&FieldPath::new("data[%s]").key(key), "");
    match object.secret_type.as_str() {
        Secret::SERVICE_ACCOUNT_TOKEN => {
            let name = Secret::SERVICE_ACCOUNT_NAME;
            let annotations = &object.metadata.annotations;
            if annotations.get(name).is_some_and(|name| !name.is_empty()) {
                return Vec::new();
            }
            let path = FieldPath::new("metadata").child("annotations").key(name);
            vec![FieldError::required(&path, "")]
        }
        Secret::DOCKERCFG => docker_errors(object, path, ".dockercfg"),
        Secret::DOCKER_CONFIG_JSON => docker_errors(object, path, ".dockerconfigjson"),
        Secret::BASIC_AUTH => {
            let keys = ["username", "password"];
            if keys.iter().any(|key| object.data.contains_key(*key)) {
                return Vec::new();
            }
            keys.iter().map(odd).collect()
        }
        Secret::SSH_AUTH => {
            let key = "ssh-privatekey";
            if object.data.get(key).is_some_and(|value| !value.is_empty()) {
                return Vec::new();
            }
            vec![odd(&key)]
        }
        Secret::TLS => missing(&["tls.crt", "tls.key"]),
        _ => Vec::new(),
    }
}

/// The errors of an entry that must be a JSON object.
fn docker_errors(object: &Secret, path: &FieldPath, key: &str) -> Vec<FieldError> {
    let path = path.key(key);
    let Some(value) = object.data.get(key) else {
        return vec![FieldError::required(&path, "")];
    };
    // The text has no more of the value than the character that cannot be read.
    let why = match codec::Decoder::new(Format::Json).value(value) {
        Ok(Value::Object(_) | Value::Null) => return Vec::new(),
        Ok(other) => mistyped(&other, "map[string]interface {}"),
        Err(error) => error.to_string(),
    };
    vec![FieldError::invalid(
        &path,
        "<secret contents redacted>",
        &why,
    )]
}
