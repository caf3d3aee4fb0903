//! The JSON that the type of a message gives to a document: Go decodes and encodes it again, without empty fields and with the fields
//! that are always there.

use serde_json::{Map, Value};

use super::{ProtobufField, ProtobufMessage, ProtobufPresence, ProtobufType, Shape};

impl ProtobufMessage {
    /// Gives an object the members that its type always has, and takes those away that it leaves out when they are null or
    /// empty; the same in all objects within. Unknown members and those of another type stay. Returns whether it changed.
    pub fn normalize(&self, object: &mut Map<String, Value>) -> bool {
        let changes = self.fields.iter().map(|field| field.normalize(object));
        changes.fold(false, |is_changed, one| is_changed | one)
    }

    /// An object without values of its own: what it always has.
    fn empty(&self) -> Value {
        let mut object = Map::new();
        self.normalize(&mut object);
        Value::Object(object)
    }
}

impl ProtobufField {
    fn normalize(&self, object: &mut Map<String, Value>) -> bool {
        if let Some(message) = self.flattened_message() {
            return message.normalize(object);
        }
        let is_always = self.presence == ProtobufPresence::Always;
        let Some(value) = object.get_mut(self.name).filter(|value| !value.is_null()) else {
            let empty = Some(self.value).filter(|_| is_always).and_then(empty_value);
            return match empty {
                Some(empty) => object.insert(self.name.to_owned(), empty) != Some(Value::Null),
                None => object.remove(self.name).is_some(),
            };
        };
        let is_changed = normalize_value(self.value, value);
        if self.presence == ProtobufPresence::NotEmpty && is_empty(value) {
            object.remove(self.name);
            return true;
        }
        is_changed
    }
}

fn normalize_value(of: ProtobufType, value: &mut Value) -> bool {
    let any = |is_changed: bool, one: bool| is_changed | one;
    match (of, value) {
        (ProtobufType::Message(message), Value::Object(object)) => message().normalize(object),
        (ProtobufType::ByShape(message), value) => {
            let shape = match value {
                Value::Object(_) => Shape::Object,
                Value::Array(_) => Shape::List,
                _ => return false,
            };
            let field = message().field_of(shape);
            field.is_some_and(|field| normalize_value(field.value, value))
        }
        (ProtobufType::List(of), Value::Array(items)) => {
            let changes = items.iter_mut().map(|item| normalize_value(*of, item));
            changes.fold(false, any)
        }
        (ProtobufType::Map(of), Value::Object(members)) => {
            let changes = members
                .values_mut()
                .map(|value| normalize_value(*of, value));
            changes.fold(false, any)
        }
        _ => false,
    }
}

/// The value of a member that is always there; `None` for types whose empty value is null.
fn empty_value(of: ProtobufType) -> Option<Value> {
    Some(match of {
        ProtobufType::Text => Value::from(""),
        ProtobufType::Boolean => Value::from(false),
        ProtobufType::Int32 | ProtobufType::Int64 => Value::from(0),
        ProtobufType::Uint32 | ProtobufType::Uint64 => Value::from(0),
        ProtobufType::Message(message) => message().empty(),
        _ => return None,
    })
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(flag) => !flag,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        // A struct is never left out, and a map is.
        Value::Object(members) => members.is_empty(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::protobuf::JSON_SCHEMA_PROPS;

    #[test]
    fn what_is_empty_is_left_out_and_what_is_always_there_is_added() {
        let mut schema = json!({
            "type": "object", "description": "", "nullable": false, "title": null, "properties": {}, "required": [], "enum": [],
            "default": null, "maxLength": 0, "maximum": 0, "x-kubernetes-preserve-unknown-fields": false, "unknown": null,
            "additionalProperties": {"nullable": false, "items": {"properties": {"a": {"enum": [null, ""], "format": ""}}}},
            "dependencies": {"a": {"title": ""}, "b": ["c"]}, "additionalItems": false,
            "items": [{"title": ""}], "x-kubernetes-validations": [{"message": ""}], "example": {"a": null},
        });
        let expected = json!({
            "type": "object", "maxLength": 0, "maximum": 0, "x-kubernetes-preserve-unknown-fields": false, "unknown": null,
            "additionalProperties": {"items": {"properties": {"a": {"enum": [null, ""]}}}},
            "dependencies": {"a": {}, "b": ["c"]}, "additionalItems": false,
            "items": [{}], "x-kubernetes-validations": [{"rule": ""}], "example": {"a": null},
        });
        let members = schema.as_object_mut().expect("an object");
        assert!(JSON_SCHEMA_PROPS.normalize(members));
        assert!(!JSON_SCHEMA_PROPS.normalize(members), "it is normal now");
        assert_eq!(schema, expected);
    }
}
