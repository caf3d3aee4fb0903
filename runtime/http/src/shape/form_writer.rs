//! Writes objects and lists in their form to the sink of a format.

use std::sync::Arc;

use apiloom_meta::kind::ProtobufMessage;
use apiloom_meta::kind::protobuf::PARTIAL_OBJECT_METADATA;
use apiloom_meta::{ListMeta, ResourceDef};
use apiloom_registry::{Endpoint, Json};

use super::form::{Form, MetaVersion};
use super::format::Sink;
use super::table::{Tables, write_partial};

/// A writer of one form for the objects of one endpoint.
pub(crate) enum FormWriter {
    /// With the Protobuf message of the objects, if they have one.
    Object(Option<&'static ProtobufMessage>),
    /// With sorted fields: lists are maps, whose items have their types, as in kube-apiserver.
    Sorted,
    Table(Box<Tables>),
    Partial(MetaVersion),
}

impl FormWriter {
    pub(crate) fn new(
        form: Form,
        endpoint: &Arc<Endpoint>,
        message: Option<&'static ProtobufMessage>,
    ) -> Self {
        match form {
            Form::Object if endpoint.def().dialect.sorts_fields => Self::Sorted,
            Form::Object => Self::Object(message),
            Form::Partial(version) | Form::PartialList(version) => Self::Partial(version),
            Form::Table(version, include) => {
                Self::Table(Box::new(Tables::new(endpoint, version, include)))
            }
        }
    }

    /// Writes one object that is not an item of a list.
    pub(crate) fn write(&self, json: &Json<'_>, with_columns: bool, out: &mut dyn Sink) {
        self.describe(out);
        match self {
            Self::Object(_) | Self::Sorted => out.json(json.whole()),
            Self::Table(tables) => tables.write_single(json, with_columns, out),
            Self::Partial(version) => write_partial(json, *version, out),
        }
    }

    /// Writes one object as an item of a list.
    pub(super) fn write_item(&self, json: &Json<'_>, out: &mut dyn Sink) {
        self.describe(out);
        match self {
            Self::Object(_) => out.item(json),
            Self::Sorted => out.json(json.whole()),
            Self::Table(tables) => tables.write_row(json, out),
            Self::Partial(version) => write_partial(json, *version, out),
        }
    }

    fn describe(&self, out: &mut dyn Sink) {
        let message = match self {
            Self::Object(message) => *message,
            Self::Table(_) | Self::Sorted => None,
            Self::Partial(_) => Some(&PARTIAL_OBJECT_METADATA),
        };
        if let Some(message) = message {
            out.describe(message);
        }
    }

    /// Writes the head of a list, before its items.
    pub(super) fn write_list(&self, def: &ResourceDef, meta: &ListMeta, out: &mut dyn Sink) {
        let (kind, api_version) = match self {
            Self::Table(tables) => {
                tables.write_head(meta, true, out);
                out.items("rows");
                return out.end_list_head();
            }
            Self::Partial(version) => (
                "PartialObjectMetadataList",
                version.api_version().to_owned(),
            ),
            Self::Object(_) => (def.list_kind.as_str(), def.api_version()),
            Self::Sorted => return write_custom_list(def, meta, out),
        };
        out.begin_map();
        out.text_field("kind", kind);
        out.text_field("apiVersion", &api_version);
        out.list_meta(meta);
        out.items("items");
        out.end_list_head();
    }
}

/// The fields of a list of custom resources, in their order. `continue` is there even if it is empty.
fn write_custom_list(def: &ResourceDef, meta: &ListMeta, out: &mut dyn Sink) {
    out.begin_map();
    out.text_field("apiVersion", &def.api_version());
    out.items("items");
    out.text_field("kind", &def.list_kind);
    out.key("metadata");
    out.begin_map();
    let token = meta.continue_token.as_deref();
    out.text_field("continue", token.unwrap_or_default());
    if let Some(count) = meta.remaining_item_count {
        out.key("remainingItemCount");
        out.integer(count);
    }
    if let Some(version) = &meta.resource_version {
        out.text_field("resourceVersion", version);
    }
    out.end_map();
    out.end_list_head();
}
