//! Properties of the decoder, for all documents.

use proptest::prelude::*;

use super::schema;
use super::strategies::{any_json, any_schema, sample_schema};
use crate::codec::{self, Decoder, Format};
use crate::kind::Hooks;
use crate::object::Object;
use crate::schema::Schema;

fn sample() -> Schema {
    schema(&sample_schema())
}

proptest! {
    #[test]
    fn no_schema_makes_the_decoder_panic(json in any_schema(), document in any_json()) {
        // As a document has it, and as the macros do.
        let both = [Schema::from_json(&json, &Hooks::default()), Schema::of_root(&json)];
        for schema in both.iter().flatten() {
            let _ = super::decoded(schema, &document);
        }
    }

    #[test]
    fn decoding_arbitrary_bytes_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let schema = sample();
        for format in [Format::Json, Format::Yaml] {
            let _ = Decoder::new(format).schema(&schema).decode(&bytes);
            let _ = Decoder::new(format).value(&bytes);
        }
    }

    #[test]
    fn decoding_arbitrary_text_never_panics(text in "[\\[\\]{}:,\"'a-c0-9 \n\t\\\\&*!|>%@#?.<~-]{0,80}") {
        let schema = sample();
        for format in [Format::Json, Format::Yaml] {
            let _ = Decoder::new(format).schema(&schema).decode(text.as_bytes());
        }
        let _ = codec::Indenter::indent(text.as_bytes());
    }

    #[test]
    fn what_decodes_has_no_unknown_field_left(document in any_json()) {
        let schema = sample();
        if let Ok(decoded) = super::decoded(&schema, &document) {
            let mut pruned = decoded.value.clone();
            schema.prune(&mut pruned);
            prop_assert_eq!(&decoded.value, &pruned);
        }
    }

    #[test]
    fn what_is_encoded_decodes_to_itself(document in any_json()) {
        // Floats without fraction become integers when decoded, since they are printed so.
        let document = Decoder::new(Format::Json).value(document.to_string().as_bytes()).expect("JSON");
        let json = codec::Encoder::json(&document);
        prop_assert_eq!(&Decoder::new(Format::Json).value(&json).expect("JSON"), &document);
        let indented = codec::Indenter::indent(&json);
        prop_assert_eq!(&Decoder::new(Format::Json).value(&indented).expect("JSON"), &document);
        let yaml = codec::Encoder::yaml(&document);
        let text = String::from_utf8_lossy(&yaml).into_owned();
        match Decoder::new(Format::Yaml).value(&yaml) {
            Ok(read) => prop_assert_eq!(&read, &document, "{}", text),
            Err(error) => prop_assert!(false, "{}: {}", error, text),
        }
        if let Some(object) = Object::from_value(document.clone()) {
            let bytes = codec::Encoder::of(&sample()).object(&object);
            prop_assert_eq!(&Decoder::new(Format::Json).value(&bytes).expect("JSON"), &document);
        }
    }
}
