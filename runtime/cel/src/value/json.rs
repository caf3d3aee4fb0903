//! Values as JSON.

use serde_json::{Map as JsonMap, Number, Value as Json};

use super::{List, Map, Value};
use crate::stop::Stop;

/// Most bytes of a value, counted roughly: parts of a value may be shared, and stand in JSON each time.
const MAX_BYTES: usize = 1 << 20;

/// What a part costs beside its text.
const PART_BYTES: usize = 16;

impl Value<'_> {
    /// The value in JSON; `None` if it has a part without a form there, such as a duration or a map with keys that are no texts.
    pub(crate) fn to_json(&self) -> Result<Option<Json>, Stop> {
        Writer { room: MAX_BYTES }.value(self)
    }
}

struct Writer {
    room: usize,
}

impl Writer {
    fn take(&mut self, bytes: usize) -> Result<(), Stop> {
        self.room = self.room.checked_sub(bytes).ok_or(Stop::Cost)?;
        Ok(())
    }

    fn value(&mut self, value: &Value<'_>) -> Result<Option<Json>, Stop> {
        self.take(PART_BYTES)?;
        Ok(Some(match value {
            Value::Null => Json::Null,
            Value::Bool(flag) => Json::Bool(*flag),
            Value::Int(number) => Json::from(*number),
            Value::Uint(number) => Json::from(*number),
            Value::Double(number) => match Number::from_f64(*number) {
                Some(number) => Json::Number(number),
                None => return Ok(None),
            },
            Value::Text(text) => {
                self.take(text.as_str().len())?;
                Json::String(text.as_str().to_owned())
            }
            Value::List(list) => return self.list(list),
            Value::Map(map) => return self.map(map),
            Value::Bytes(_)
            | Value::Duration(_)
            | Value::Timestamp(_)
            | Value::Optional(_)
            | Value::Type(_)
            | Value::Opaque(_) => return Ok(None),
        }))
    }

    fn list(&mut self, list: &List<'_>) -> Result<Option<Json>, Stop> {
        let mut items = Vec::new();
        for index in 0..list.len() {
            let Some(item) = list.get(index) else { break };
            let Some(item) = self.value(&item?)? else {
                return Ok(None);
            };
            items.push(item);
        }
        Ok(Some(Json::Array(items)))
    }

    fn map(&mut self, map: &Map<'_>) -> Result<Option<Json>, Stop> {
        let mut fields = JsonMap::new();
        for (key, value) in map.entries()? {
            let Value::Text(key) = key else {
                return Ok(None);
            };
            self.take(key.as_str().len())?;
            let Some(value) = self.value(&value)? else {
                return Ok(None);
            };
            fields.insert(key.as_str().to_owned(), value);
        }
        Ok(Some(Json::Object(fields)))
    }
}
