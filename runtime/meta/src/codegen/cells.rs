//! Cells of printer columns.

use crate::fields::{ColumnValue, Field};
use crate::kind::{Cell, ColumnType};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// [`ColumnValue`] with a lifetime, so that a bound on it is not checked before it is used.
pub trait ColumnValueOf<'a> {
    /// The type of the column.
    const COLUMN_TYPE: ColumnType;
}

impl<T: ColumnValue> ColumnValueOf<'_> for T {
    const COLUMN_TYPE: ColumnType = T::COLUMN_TYPE;
}

/// The column type of a field.
pub fn column_type_of<T: ColumnValue>(_field: &Field<T>) -> ColumnType {
    T::COLUMN_TYPE
}

/// The column type of a function's result.
pub fn column_type_with<K, R: ColumnValue>(_function: impl Fn(&K) -> R) -> ColumnType {
    R::COLUMN_TYPE
}

/// A cell that a function of the typed object computes.
///
/// # Errors
/// When the document cannot be deserialized as the type.
pub fn cell_with<K: DeserializeOwned, R: Serialize>(
    document: &Value,
    function: impl Fn(&K) -> R,
) -> Result<Cell, String> {
    let object: K = serde::Deserialize::deserialize(document)
        .map_err(|error: serde_json::Error| error.to_string())?;
    serde_json::to_value(function(&object)).map_err(|error| error.to_string())
}
