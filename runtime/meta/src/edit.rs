//! Typed changes of an object.

use std::sync::Arc;

use serde_json::{Error, Value};

use crate::codec::{Decoder, append_value_bytes};
use crate::kind::Resource;
use crate::object::Object;
use crate::schema::{Schema, merge_difference};

impl Object {
    /// Changes the object as a typed value. The difference between the values before and after is applied to the
    /// document, so that fields which the type does not have are kept. Returns whether there was a difference.
    ///
    /// ```
    /// # fn example<K: apiloom_meta::Resource>(object: &mut apiloom_meta::Object) -> Result<(), serde_json::Error> {
    /// object.edit(|typed: &mut K| {
    ///     typed.metadata_mut().labels.insert("team".to_owned(), "a".to_owned());
    /// })?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// If the document cannot be decoded as the type, or the changed value cannot be serialized. Then the document is
    /// unchanged.
    pub fn edit<K: Resource>(&mut self, change: impl FnOnce(&mut K)) -> Result<bool, Error> {
        let before = self.typed::<K>()?;
        self.clear_typed();
        let mut after = K::clone(&before);
        let is_changed = changes(&mut after, change)?
            && self.merge(
                serde_json::to_value(&*before)?,
                serde_json::to_value(&after)?,
            );
        self.set_typed(Arc::new(after));
        Ok(is_changed)
    }

    /// Applies the changes between a typed value before and after to the document.
    fn merge(&mut self, before: Value, after: Value) -> bool {
        match (before, after) {
            (Value::Object(before), Value::Object(after)) if before != after => {
                merge_difference(None, self.fields_mut(), &before, after);
                true
            }
            _ => false,
        }
    }
}

/// Whether a change leaves the JSON of a stored object as it is; `false` if the bytes cannot be decoded as the type
/// without a document in between.
pub fn leaves_unchanged<K: Resource>(
    stored: &[u8],
    schema: &Schema,
    change: impl FnOnce(&mut K),
) -> bool {
    let typed = Decoder::typed::<K>(stored, schema);
    typed.is_some_and(|mut typed| matches!(changes(&mut typed, change), Ok(false)))
}

/// Changes a typed value. Returns whether its JSON may be another one then.
fn changes<K: Resource>(typed: &mut K, change: impl FnOnce(&mut K)) -> Result<bool, Error> {
    // The fields of managers are text, which is compared without reading it.
    let entries = typed.metadata().managed_fields.clone();
    let before = bytes_without_managers(typed)?;
    change(typed);
    Ok(typed.metadata().managed_fields != entries || bytes_without_managers(typed)? != before)
}

/// Bytes of a typed value that can be compared, without managedFields.
fn bytes_without_managers<K: Resource>(typed: &mut K) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::with_capacity(2048);
    let entries = std::mem::take(&mut typed.metadata_mut().managed_fields);
    let written = append_value_bytes(typed, &mut bytes);
    typed.metadata_mut().managed_fields = entries;
    written.map(|()| bytes)
}

#[cfg(test)]
mod tests;
