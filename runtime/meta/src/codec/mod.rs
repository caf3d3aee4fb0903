//! JSON and YAML: strict decoding against a schema, and encoding as Kubernetes does.

mod canonical;
mod compact;
mod decode;
mod decoded;
mod encode;
mod encoding;
mod json_text;
mod keys;
pub(crate) mod limits;
mod peek;
mod protobuf;
mod syntax;
mod typed;
mod value_bytes;
mod verbatim;
mod yaml;
#[cfg(feature = "yaml")]
mod yaml_parser;

pub use decode::Decoder;
pub use decoded::{DecodeError, DecodedDocument, Format, MAX_EXPANDED_BYTES};
pub use encode::{Encoder, Indenter};
pub use peek::{Finder, value_end};
pub(crate) use peek::{member, string_end};
pub use protobuf::{
    InvalidText, MalformedJson, PROTOBUF_PREFIX, ProtobufBody, ProtobufError, append_protobuf,
    append_protobuf_body, append_protobuf_event, append_protobuf_item, begin_protobuf_list,
    end_protobuf_body, protobuf_item_bytes,
};
pub(crate) use value_bytes::append as append_value_bytes;
pub use verbatim::VersionPlace;
pub use yaml::{YamlError, YamlWriter};

#[cfg(test)]
mod depth_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod typed_tests;
