//! Messages whose fields are members of the object around them.

use super::{ProtobufField, ProtobufMessage, ProtobufPresence, ProtobufType};

impl ProtobufField {
    /// The message whose fields are members of the object around it, if the field is flattened.
    pub fn flattened_message(&self) -> Option<&'static ProtobufMessage> {
        match (self.presence, self.value) {
            (ProtobufPresence::Flattened, ProtobufType::Message(message)) => Some(message()),
            _ => None,
        }
    }
}

impl ProtobufMessage {
    /// The field with a name in JSON, here or in a flattened message: its position here, and whether it is in one.
    pub fn member(&self, name: &[u8]) -> Option<(usize, bool)> {
        let is_named = |field: &ProtobufField| {
            field.presence != ProtobufPresence::Flattened && field.name.as_bytes() == name
        };
        if let Some(place) = self.fields.iter().position(is_named) {
            return Some((place, false));
        }
        let has = |field: &ProtobufField| {
            let message = field.flattened_message();
            message.is_some_and(|message| message.member(name).is_some())
        };
        let place = self.fields.iter().position(has)?;
        Some((place, true))
    }
}
