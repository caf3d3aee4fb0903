//! Makes a message of JSON by its compiled `.proto` file alone, with the rules for types of Kubernetes.

use std::collections::HashMap;

use apiloom::prelude::{Duration, MicroTime, Time};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use prost_reflect::{DynamicMessage, FieldDescriptor, Kind, MapKey, MessageDescriptor, Value};
use serde_json::Value as Json;

/// The message of a JSON value; `None` if it has none, such as text that is no time.
pub fn message(json: &Json, of: &MessageDescriptor) -> Option<DynamicMessage> {
    let mut message = DynamicMessage::new(of.clone());
    let seconds_and_nanos = |message: &mut DynamicMessage, micros: i64| {
        let nanos = micros.rem_euclid(1_000_000) * 1000;
        message.set_field_by_name("seconds", Value::I64(micros.div_euclid(1_000_000)));
        message.set_field_by_name("nanos", Value::I32(i32::try_from(nanos).ok()?));
        Some(())
    };
    match of.full_name() {
        "k8s.io.apimachinery.pkg.apis.meta.v1.Time" => {
            let time: Time = json.as_str()?.parse().ok()?;
            seconds_and_nanos(&mut message, time.unix_seconds() * 1_000_000)?;
        }
        "k8s.io.apimachinery.pkg.apis.meta.v1.MicroTime" => {
            let time: MicroTime = json.as_str()?.parse().ok()?;
            seconds_and_nanos(&mut message, time.unix_micros())?;
        }
        "k8s.io.apimachinery.pkg.apis.meta.v1.Duration" => {
            let duration: Duration = json.as_str()?.parse().ok()?;
            message.set_field_by_name("duration", Value::I64(duration.as_nanos()));
        }
        "k8s.io.apimachinery.pkg.api.resource.Quantity" => {
            message.set_field_by_name("string", Value::String(json.as_str()?.to_owned()));
        }
        "k8s.io.apimachinery.pkg.util.intstr.IntOrString" => match json {
            Json::String(text) => {
                message.set_field_by_name("type", Value::I64(1));
                message.set_field_by_name("intVal", Value::I32(0));
                message.set_field_by_name("strVal", Value::String(text.clone()));
            }
            number => {
                let number = i32::try_from(number.as_i64()?).ok()?;
                message.set_field_by_name("type", Value::I64(0));
                message.set_field_by_name("intVal", Value::I32(number));
                message.set_field_by_name("strVal", Value::String(String::new()));
            }
        },
        "k8s.io.apimachinery.pkg.apis.meta.v1.FieldsV1" => {
            message.set_field_by_name("Raw", Value::Bytes(json.to_string().into()));
        }
        "k8s.io.apimachinery.pkg.runtime.RawExtension" => {
            message.set_field_by_name("raw", Value::Bytes(json.to_string().into()));
        }
        name if name.ends_with("Items") => {
            let items = of.get_field_by_name("items")?;
            let value = field_value(json, &items)?;
            set(&mut message, &items, value);
        }
        _ => {
            for (name, json) in json.as_object()? {
                let name = name.replace('-', "_");
                let field = of.get_field_by_name(&name)?;
                if !json.is_null() {
                    let value = field_value(json, &field)?;
                    set(&mut message, &field, value);
                }
            }
        }
    }
    Some(message)
}

/// Sets a field. Empty lists and maps are absent ones.
fn set(message: &mut DynamicMessage, field: &FieldDescriptor, value: Value) {
    let is_empty = match &value {
        Value::List(items) => items.is_empty(),
        Value::Map(map) => map.is_empty(),
        _ => false,
    };
    if !is_empty {
        message.set_field(field, value);
    }
}

fn field_value(json: &Json, field: &FieldDescriptor) -> Option<Value> {
    if field.is_map() {
        let Kind::Message(entry) = field.kind() else {
            return None;
        };
        let kind = entry.map_entry_value_field().kind();
        let entries = json.as_object()?.iter();
        let entries = entries.map(|(key, json)| {
            let value = value(json, &kind)?;
            Some((MapKey::String(key.clone()), value))
        });
        return Some(Value::Map(entries.collect::<Option<HashMap<_, _>>>()?));
    }
    if field.is_list() {
        let items = json.as_array()?.iter();
        let items = items.map(|json| value(json, &field.kind()));
        return Some(Value::List(items.collect::<Option<Vec<_>>>()?));
    }
    value(json, &field.kind())
}

fn value(json: &Json, kind: &Kind) -> Option<Value> {
    Some(match kind {
        Kind::String => Value::String(json.as_str()?.to_owned()),
        Kind::Bool => Value::Bool(json.as_bool()?),
        Kind::Int32 => Value::I32(i32::try_from(json.as_i64()?).ok()?),
        Kind::Int64 => Value::I64(json.as_i64()?),
        Kind::Uint32 => Value::U32(u32::try_from(json.as_u64()?).ok()?),
        Kind::Uint64 => Value::U64(json.as_u64()?),
        #[allow(clippy::cast_possible_truncation, reason = "the field is a float")]
        Kind::Float => Value::F32(json.as_f64()? as f32),
        Kind::Double => Value::F64(json.as_f64()?),
        Kind::Bytes => Value::Bytes(STANDARD.decode(json.as_str()?).ok()?.into()),
        Kind::Message(of) => Value::Message(message(json, of)?),
        _ => return None,
    })
}
