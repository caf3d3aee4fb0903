//! Structs read and write JSON as with serde's derives.

use serde_json::{Value, json};

/// Part has a field of each presence.
#[apiloom::api]
pub struct Part {
    pub required: i32,
    pub optional_text: Option<String>,
    #[api(nullable)]
    pub nullable: Option<i32>,
    pub list: Vec<i32>,
    pub r#type: Option<String>,
}

fn read(text: &str) -> Result<Part, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

#[test]
fn what_is_absent_is_written_as_derives_write_it() {
    let check = |text: &str, expected: Value| {
        let part = read(text).unwrap();
        assert_eq!(serde_json::to_value(&part).unwrap(), expected);
        assert_eq!(
            serde_json::from_value::<Part>(expected.clone()).unwrap(),
            part
        );
        let written = serde_json::to_string(&part).unwrap();
        assert_eq!(
            serde_json::from_str::<Value>(&written).unwrap(),
            expected,
            "{text}"
        );
    };
    check(
        r#"{"required":1}"#,
        json!({"required": 1, "nullable": null}),
    );
    check(
        r#"{"type":"a","list":[2],"unknown":{"x":[]},"optionalText":"b","nullable":3,"required":1}"#,
        json!({"required": 1, "optionalText": "b", "nullable": 3, "list": [2], "type": "a"}),
    );
}

#[test]
fn errors_are_those_of_derives() {
    let check = |text: &str, expected: &str| {
        let error = read(text).unwrap_err();
        assert!(error.starts_with(expected), "{error}");
    };
    check(r#"{"list":[]}"#, "missing field `required`");
    check(
        r#"{"required":1,"list":[],"list":[]}"#,
        "duplicate field `list`",
    );
    check(
        r#"{"required":"x"}"#,
        "invalid type: string \"x\", expected i32",
    );
    check("3", "invalid type: integer `3`, expected struct Part");
    check("[1]", "invalid type: sequence, expected struct Part");
    check(r#"{"required":1,"list":null}"#, "invalid type: null");
}

macro_rules! wide {
    ($($field:ident)*) => {
        /// Wide has more fields than a machine word has bits.
        #[apiloom::api]
        pub struct Wide { $(pub $field: Option<i32>,)* }
        const NAMES: &[&str] = &[$(stringify!($field)),*];
    };
}

wide! {
    a0 a1 a2 a3 a4 a5 a6 a7 a8 a9 b0 b1 b2 b3 b4 b5 b6 b7 b8 b9 c0 c1 c2 c3 c4 c5 c6 c7 c8 c9 d0 d1 d2 d3 d4 d5
    d6 d7 d8 d9 e0 e1 e2 e3 e4 e5 e6 e7 e8 e9 f0 f1 f2 f3 f4 f5 f6 f7 f8 f9 g0 g1 g2 g3 g4 g5 g6 g7 g8 g9
}

#[test]
fn structs_of_many_fields_notice_duplicates() {
    let all: serde_json::Map<String, Value> = (0..)
        .zip(NAMES)
        .map(|(value, name)| ((*name).to_owned(), json!(value)))
        .collect();
    let wide: Wide = serde_json::from_value(Value::Object(all.clone())).unwrap();
    assert_eq!(serde_json::to_value(&wide).unwrap(), Value::Object(all));
    let twice = serde_json::from_str::<Wide>(r#"{"g9":1,"a0":2,"g9":3}"#).unwrap_err();
    assert!(
        twice.to_string().starts_with("duplicate field `g9`"),
        "{twice}"
    );
}

#[test]
fn a_comment_that_begins_with_a_heading_gives_a_title() {
    /// # The heading
    ///
    /// The text
    /// of two lines.
    #[apiloom::api]
    struct Titled {
        /// #Short
        field: i32,
    }
    let schema = apiloom::codegen::schemars::generate::SchemaSettings::draft2020_12()
        .into_generator()
        .into_root_schema_for::<Titled>()
        .to_value();
    assert_eq!(schema["title"], "The heading");
    assert_eq!(schema["description"], "The text\nof two lines.");
    assert_eq!(schema["properties"]["field"]["title"], "Short");
    assert_eq!(schema["required"], json!(["field"]));
}
