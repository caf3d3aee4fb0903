//! Typed changes of an object.

use std::sync::Arc;

use serde::de::Error as _;
use serde_json::{Error, Value};

use crate::codec::{Format, decode_typed, decode_value};
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
        let mut value = self.typed::<K>()?;
        self.clear_typed();
        let typed = Arc::make_mut(&mut value);
        let is_changed = match json_before(typed, change)? {
            Some(before) => self.merge(&before, serde_json::to_value(&*typed)?)?,
            None => false,
        };
        self.set_typed(value);
        Ok(is_changed)
    }

    /// Applies the changes between the JSON of a typed value before and after to the document.
    fn merge(&mut self, before: &[u8], after: Value) -> Result<bool, Error> {
        let before = decode_value(before, Format::Json).map_err(Error::custom)?;
        Ok(match (before, after) {
            (Value::Object(before), Value::Object(after)) if before != after => {
                merge_difference(None, self.fields_mut(), &before, after);
                true
            }
            _ => false,
        })
    }
}

/// Whether a change leaves the JSON of a stored object as it is; `false` if the bytes cannot be decoded as the type
/// without a document in between.
pub fn leaves_unchanged<K: Resource>(
    stored: &[u8],
    schema: &Schema,
    change: impl FnOnce(&mut K),
) -> bool {
    let typed = decode_typed::<K>(stored, schema);
    typed.is_some_and(|mut typed| matches!(json_before(&mut typed, change), Ok(None)))
}

/// Changes a typed value. Returns its JSON of before if that of after differs. Most hooks change nothing, and bytes are
/// cheaper to compare than documents.
fn json_before<K: Resource>(
    typed: &mut K,
    change: impl FnOnce(&mut K),
) -> Result<Option<Vec<u8>>, Error> {
    let before = serde_json::to_vec(typed)?;
    change(typed);
    let mut after = Vec::with_capacity(before.len());
    serde_json::to_writer(&mut after, typed)?;
    Ok((before != after).then_some(before))
}
