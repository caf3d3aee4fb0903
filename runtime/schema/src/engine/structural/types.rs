//! The types of the keywords in the schema of a CustomResourceDefinition. kube-apiserver finds them wrong when it decodes the
//! definition, with the texts of Go's decoder.

use serde_json::{Map, Value};

use super::super::walk_path::Path;
use crate::go_value::json_type;
use crate::interrupt::is_interrupted;
use crate::protobuf::{JSON_SCHEMA_PROPS, ProtobufField, ProtobufMessage, ProtobufType};

/// The fields whose types have names of their own in Go.
const NAMED: [(&str, &str); 5] = [
    ("$schema", "JSONSchemaURL"),
    ("definitions", "JSONSchemaDefinitions"),
    ("dependencies", "JSONSchemaDependencies"),
    ("reason", "FieldValueErrorReason"),
    ("x-kubernetes-validations", "ValidationRules"),
];

/// The error of the first value of another type. `version` is the package of the types.
pub fn type_error(schema: &Value, path: &Path<'_>, version: &str) -> Option<String> {
    let root = ProtobufType::Message(|| &JSON_SCHEMA_PROPS);
    Types { version }.error(schema, root, path, JSON_SCHEMA_PROPS.name)
}

struct Types<'a> {
    version: &'a str,
}

impl Types<'_> {
    /// The first error of a value, which is a part of a field of the struct `owner`.
    fn error(
        &self,
        value: &Value,
        wanted: ProtobufType,
        path: &Path<'_>,
        owner: &str,
    ) -> Option<String> {
        if is_interrupted() {
            return None;
        }
        match (wanted, value) {
            (_, Value::Null)
            | (ProtobufType::Json, _)
            | (ProtobufType::Text, Value::String(_))
            | (ProtobufType::Boolean, Value::Bool(_))
            | (ProtobufType::Double, Value::Number(_)) => None,
            (ProtobufType::Int64, Value::Number(number)) if number.is_i64() => None,
            (ProtobufType::List(item), Value::Array(values)) => {
                let mut values = values.iter().enumerate();
                values
                    .find_map(|(at, value)| self.error(value, *item, &Path::Index(path, at), owner))
            }
            (ProtobufType::Map(of), Value::Object(values)) => values
                .iter()
                .find_map(|(key, value)| self.error(value, *of, &Path::Key(path, key), owner)),
            (ProtobufType::Message(message), Value::Object(fields)) => {
                self.of_fields(fields, message(), path)
            }
            (ProtobufType::ByShape(message), value) => self.by_shape(value, message(), path, owner),
            _ => Some(self.refused(value, wanted, path, owner)),
        }
    }

    fn of_fields(
        &self,
        fields: &Map<String, Value>,
        message: &ProtobufMessage,
        path: &Path<'_>,
    ) -> Option<String> {
        fields.iter().find_map(|(name, value)| {
            let known = message.fields.iter().find(|field| field.name == *name)?;
            self.error(value, known.value, &Path::Field(path, name), message.name)
        })
    }

    /// The error of a value that decodes itself: an object is a schema, and what is neither that nor the other shape is ignored,
    /// unless the other one is a boolean.
    fn by_shape(
        &self,
        value: &Value,
        message: &ProtobufMessage,
        path: &Path<'_>,
        owner: &str,
    ) -> Option<String> {
        let find = |is_wanted: fn(&ProtobufField) -> bool| {
            message.fields.iter().find(|field| is_wanted(field))
        };
        let list = find(|field| matches!(field.value, ProtobufType::List(_)));
        let schema = find(|field| matches!(field.value, ProtobufType::Message(_)));
        let field = match value {
            Value::Object(_) => schema,
            Value::Array(_) if list.is_some() => list,
            Value::Bool(_) => return None,
            _ if list.is_none() => return Some("boolean or JSON schema expected".to_owned()),
            _ => return None,
        };
        self.error(value, field?.value, path, owner)
    }

    fn refused(&self, value: &Value, wanted: ProtobufType, path: &Path<'_>, owner: &str) -> String {
        let found = match (wanted, value) {
            (ProtobufType::Int64, Value::Number(number)) => format!("number {number}"),
            _ => json_type(value).to_owned(),
        };
        let named = match path {
            Path::Field(_, name) => NAMED.iter().find(|(field, _)| field == name),
            _ => None,
        };
        let wanted = match named {
            Some((_, name)) => self.in_package(name),
            None => self.go_type(wanted),
        };
        let fields = path.fields_only();
        format!(
            "json: cannot unmarshal {found} into Go struct field {owner}.{fields} of type {wanted}"
        )
    }

    fn go_type(&self, of: ProtobufType) -> String {
        match of {
            ProtobufType::Boolean => "bool".to_owned(),
            ProtobufType::Int64 => "int64".to_owned(),
            ProtobufType::Double => "float64".to_owned(),
            ProtobufType::Json => self.in_package("JSON"),
            ProtobufType::Message(message) | ProtobufType::ByShape(message) => {
                self.in_package(message().name)
            }
            ProtobufType::List(item) => format!("[]{}", self.go_type(*item)),
            ProtobufType::Map(of) => format!("map[string]{}", self.go_type(*of)),
            _ => "string".to_owned(),
        }
    }

    fn in_package(&self, name: &str) -> String {
        format!("{}.{name}", self.version)
    }
}
