//! YAML, with sorted keys. It has no streams and no separate writer for people.

use apiloom_meta::ApiError;
use apiloom_meta::codec::{self, YamlError, YamlWriter};
use apiloom_meta::kind::ProtobufMessage;
use apiloom_registry::{Catalog, Json};
use bytes::Bytes;
use serde_json::Value;

use super::json::JSON;
use super::write::{Format, ListWriter, Show, Sink, StreamWriter, Writer};

const MEDIA_TYPE: &str = "application/yaml";

/// YAML.
pub(crate) struct Yaml;

impl Format for Yaml {
    fn media_type(&self) -> &'static str {
        MEDIA_TYPE
    }
    fn read(
        &self,
        body: Bytes,
        _catalog: &Catalog,
        _own: Option<&'static ProtobufMessage>,
    ) -> Result<Option<(Bytes, codec::Format)>, ApiError> {
        Ok(Some((body, codec::Format::Yaml)))
    }
    fn writer(&self) -> Option<&'static dyn Writer> {
        Some(&Yaml)
    }
}

impl Writer for Yaml {
    fn name(&self) -> &'static str {
        "yaml"
    }

    fn media_type(&self) -> &'static str {
        MEDIA_TYPE
    }

    fn document(&self, show: Show<'_>, json_bytes: usize) -> Bytes {
        let mut out = Vec::with_capacity(json_bytes);
        let mut sink = YamlSink(YamlWriter::document(&mut out));
        show(&mut sink);
        match sink.0.finish() {
            Ok(_) => out.into(),
            // The nesting of a list may exceed the limit of the YAML writer by a little. JSON is valid YAML.
            Err(YamlError) => JSON.document(show, json_bytes),
        }
    }

    fn list(&self, _items_bytes: u64) -> Box<dyn ListWriter> {
        Box::new(List {
            is_first: true,
            end: Vec::new(),
        })
    }

    fn stream(&self) -> Option<&'static dyn StreamWriter> {
        None
    }

    fn indented(&self) -> &'static dyn Writer {
        &Yaml
    }

    fn is_costly(&self) -> bool {
        true
    }
}

/// Writer of a list. Fields whose names sort after that of the items are written at the end.
struct List {
    is_first: bool,
    end: Vec<u8>,
}

impl ListWriter for List {
    fn begin(&mut self, show: Show<'_>, out: &mut Vec<u8>) {
        let start = out.len();
        let mut sink = YamlSink(YamlWriter::document(out));
        show(&mut sink);
        if let Ok(Some(gap)) = sink.0.finish() {
            self.end = out.split_off(gap.max(start));
        }
    }

    fn item(&mut self, show: Show<'_>, out: &mut Vec<u8>) {
        if std::mem::replace(&mut self.is_first, false) {
            out.push(b'\n');
        }
        let mut sink = YamlSink(YamlWriter::item(out));
        show(&mut sink);
        if sink.0.finish() == Err(YamlError) {
            out.extend_from_slice(b"- ");
            out.extend_from_slice(&JSON.document(show, 0));
        }
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        if self.is_first {
            out.extend_from_slice(b" []\n");
        }
        out.append(&mut self.end);
    }
}

struct YamlSink<'o>(YamlWriter<'o>);

impl Sink for YamlSink<'_> {
    fn begin_map(&mut self) {
        self.0.begin_map();
    }
    fn key(&mut self, name: &'static str) {
        self.0.key(name);
    }
    fn end_map(&mut self) {
        self.0.end_map();
    }
    fn begin_list(&mut self) {
        self.0.begin_list();
    }
    fn end_list(&mut self) {
        self.0.end_list();
    }
    fn text(&mut self, text: &str) {
        self.0.text(text);
    }
    fn integer(&mut self, value: i64) {
        self.0.integer(value);
    }
    fn value(&mut self, value: &Value) {
        self.0.value(value);
    }
    fn json(&mut self, json: &[u8]) {
        self.0.json(json);
    }
    fn item(&mut self, object: &Json<'_>) {
        // Only these fields come before the metadata.
        self.0.json_without(object.whole(), &["kind", "apiVersion"]);
    }
    fn items(&mut self, name: &'static str) {
        self.0.key(name);
        self.0.gap();
    }
    fn end_list_head(&mut self) {
        self.0.end_map();
    }
}
