//! The formats of documents, one file each, and the table of them. Code outside of this folder is independent of the
//! names and media types of formats.

mod json;
mod protobuf;
mod write;
mod yaml;

pub(crate) use json::{INDENTED, JSON};
pub(crate) use write::{Format, ListWriter, Show, Sink, StreamWriter, Writer};

/// All formats, in the order in which `Accept` is matched.
pub(crate) static FORMATS: &[&dyn Format] = &[&json::JSON, &yaml::Yaml, &protobuf::Protobuf];

/// The formats in which documents can be written, in the same order.
pub(crate) fn writers() -> impl Iterator<Item = &'static dyn Writer> {
    FORMATS.iter().filter_map(|format| format.writer())
}

/// The media types in which documents can be written.
pub(crate) fn media_types() -> impl Iterator<Item = &'static str> {
    writers().map(|writer| writer.media_type())
}

/// The media types of watch streams, for messages.
pub(crate) fn stream_types() -> impl Iterator<Item = &'static str> {
    let streams = writers().filter_map(|writer| writer.stream());
    streams.map(|stream| stream.listed_type())
}

/// A list of media types, for messages.
pub(crate) fn listed(types: impl Iterator<Item = &'static str>) -> String {
    types.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(writer: &dyn Writer, json: &str) -> String {
        let bytes = writer.document(&|sink| sink.json(json.as_bytes()), json.len());
        String::from_utf8(bytes.to_vec()).expect("text")
    }

    #[test]
    fn a_document_that_is_too_deep_for_a_format_is_sent_as_json() {
        let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
        let [json, yaml] = [0, 1].map(|number| FORMATS[number].writer().expect("it is written"));
        assert_eq!(written(yaml, &deep), format!("{deep}\n"));
        assert_eq!(written(yaml, "[1]"), "- 1\n");
        assert_eq!(written(json, "[1]"), "[1]\n");
        assert_eq!(written(json.indented(), "[1]"), "[\n  1\n]");
    }

    #[test]
    fn formats_are_known_by_their_names() {
        let names = writers().flat_map(|writer| [writer.name(), writer.indented().name()]);
        assert_eq!(
            names.collect::<Vec<_>>(),
            [
                "json",
                "indented json",
                "yaml",
                "yaml",
                "protobuf",
                "protobuf"
            ]
        );
        assert_eq!(
            listed(stream_types()),
            "application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"
        );
    }
}
