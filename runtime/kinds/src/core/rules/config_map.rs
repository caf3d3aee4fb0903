//! The strategy of core/v1 ConfigMap.

use apiloom_meta::error::MAX_CAUSES;
use apiloom_meta::{FieldError, FieldPath};
use apiloom_registry::{RegistryBuilder, RequestContext, Strategy};

use super::data_keys::{MAX_BYTES, immutable_errors, key_errors};
use crate::built_in::BuiltIn;
use crate::core::v1::ConfigMap;

impl BuiltIn for ConfigMap {
    fn register(registry: &mut RegistryBuilder) {
        registry.own_kind::<Self>(ConfigMapRules);
    }
}

/// The strategy of config maps.
struct ConfigMapRules;

impl Strategy<ConfigMap> for ConfigMapRules {
    const HAS_DEFAULTS: bool = false;

    fn validate(&self, _ctx: &RequestContext, object: &ConfigMap) -> Vec<FieldError> {
        let ConfigMap {
            data, binary_data, ..
        } = object;
        let (path, binary_path) = (FieldPath::new("data"), FieldPath::new("binaryData"));
        let mut errors = key_errors(&path, data.keys());
        let twice = data.keys().filter(|key| binary_data.contains_key(*key));
        errors.extend(twice.take(MAX_CAUSES).map(|key| {
            let why = "duplicate of key present in binaryData";
            FieldError::invalid(&path.key(key), key, why)
        }));
        errors.extend(key_errors(&binary_path, binary_data.keys()));
        let bytes = data.values().map(String::len).sum::<usize>()
            + binary_data.values().map(Vec::len).sum::<usize>();
        if bytes > MAX_BYTES {
            // Go's text of a path without a name, which is the whole object.
            errors.push(FieldError::too_long(&FieldPath::new("[]"), MAX_BYTES));
        }
        errors
    }

    fn validate_update(
        &self,
        ctx: &RequestContext,
        new: &ConfigMap,
        old: &ConfigMap,
    ) -> Vec<FieldError> {
        let changed = [
            ("data", new.data != old.data),
            ("binaryData", new.binary_data != old.binary_data),
        ];
        let mut errors = immutable_errors(new.immutable, old.immutable, &changed);
        errors.extend(self.validate(ctx, new));
        errors
    }
}
