//! Typed changes of an object.

use std::sync::Arc;

use serde::de::Error as _;
use serde_json::{Error, Value};

use crate::codec::{Format, decode_value};
use crate::kind::Resource;
use crate::object::Object;
use crate::schema::merge_difference;

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
        // Most hooks change nothing; bytes are cheaper to compare than documents.
        let before = serde_json::to_vec(typed)?;
        change(typed);
        let after = serde_json::to_vec(typed)?;
        let mut is_changed = before != after;
        if is_changed {
            is_changed = self.merge(&before, serde_json::to_value(&*typed)?)?;
        }
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
