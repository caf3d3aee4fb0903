//! JSON behind a line that is no JSON, so that a page of another origin cannot run it as a script. Requests only.

use apiloom_meta::ApiError;
use apiloom_meta::codec;
use apiloom_meta::kind::ProtobufMessage;
use apiloom_registry::Catalog;
use bytes::Bytes;

use super::write::{Format, Writer};

const MEDIA_TYPE: &str = "application/x-toy+json";

/// The line before the JSON.
const PREFIX: &[u8] = b")]}'\n";

/// JSON behind a line.
pub(crate) struct Toy;

impl Format for Toy {
    fn media_type(&self) -> &'static str {
        MEDIA_TYPE
    }
    fn read(
        &self,
        mut body: Bytes,
        _catalog: &Catalog,
        _own: Option<&'static ProtobufMessage>,
    ) -> Result<Option<(Bytes, codec::Format)>, ApiError> {
        if !body.starts_with(PREFIX) {
            return Err(ApiError::bad_request("the body does not begin with )]}'"));
        }
        Ok(Some((body.split_off(PREFIX.len()), codec::Format::Json)))
    }
    fn writer(&self) -> Option<&'static dyn Writer> {
        None
    }
}
