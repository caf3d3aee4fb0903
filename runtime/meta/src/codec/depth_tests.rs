//! Documents at the maximum nesting, and far beyond it, on the stack of a request.
//!
//! A stack overflow ends the process, so it is an abort of these tests, not a failed assertion.

use serde_json::{Value, json};

use super::*;
use crate::kind::Hooks;
use crate::schema::Schema;

/// Half of the stack of a tokio thread: the handler of a request has used some of it.
const STACK_BYTES: usize = 1 << 20;

/// The maximum nesting.
const DEEPEST: usize = 127;

fn on_a_small_stack(run: fn()) {
    let thread = std::thread::Builder::new()
        .stack_size(STACK_BYTES)
        .spawn(run)
        .expect("a thread");
    thread.join().expect("no panic");
}

fn nest(open: &str, close: &str, levels: usize) -> String {
    format!("{}1{}", open.repeat(levels), close.repeat(levels))
}

/// A schema for any value, and for a list of strings below `at`.
fn open_schema() -> Schema {
    let schema = json!({
        "type": "object",
        "properties": {"at": {"type": "array", "items": {"type": "string"}}},
        "x-kubernetes-preserve-unknown-fields": true,
    });
    Schema::from_json(&schema, &Hooks::default()).expect("structural")
}

/// Decodes with all decoders, and walks over the results with all functions.
fn decode_and_walk(text: &str, format: Format) -> Result<Value, DecodeError> {
    let schema = open_schema();
    let closed = Schema::from_json(&json!({"type": "object"}), &Hooks::default());
    let closed = Decoder::new(format)
        .schema(&closed.expect("structural"))
        .decode(text.as_bytes());
    let open = Decoder::new(format).schema(&schema).decode(text.as_bytes());
    let free = Decoder::new(format).value(text.as_bytes())?;
    if free.is_object() {
        assert_eq!(open?.value, free);
        closed?;
    }
    let mut walked = Decoder::of(&schema)
        .document(json!({"x": free}))
        .map_or(Value::Null, |d| d.value);
    schema.prune(&mut walked);
    schema.default(&mut walked);
    schema.validate(&walked);
    schema.validate_update(&walked, &walked.clone());
    Encoder::yaml(&free);
    Indenter::indent(&Encoder::json(&free));
    Ok(free)
}

fn levels(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(levels).max().unwrap_or_default(),
        Value::Object(fields) => 1 + fields.values().map(levels).max().unwrap_or_default(),
        _ => 0,
    }
}

#[test]
fn what_looks_like_closing_brackets_hides_no_depth() {
    on_a_small_stack(|| {
        // None of these is a level, at any position.
        let covers = [
            "\"]\"",
            "']'",
            "\"}\"",
            "'}'",
            "\"\\x5d]\"",
            "\"[\"",
            "\"\\\"]\"",
            "'''}'",
        ];
        for cover in covers {
            for levels in [2, 23, 24, 25, 26, 60, DEEPEST] {
                let text = format!(
                    "{}1{}",
                    format!("[{cover},").repeat(levels),
                    "]".repeat(levels)
                );
                let value = decode_and_walk(&text, Format::Yaml);
                let value = value.unwrap_or_else(|error| panic!("{levels} of {cover}: {error}"));
                assert_eq!(self::levels(&value), levels, "{cover}");
                let map = format!(
                    "{}1{}",
                    format!("{{{cover}: 1, a: ").repeat(levels),
                    "}".repeat(levels)
                );
                let value = decode_and_walk(&map, Format::Yaml);
                let value = value.unwrap_or_else(|error| panic!("{levels} of {cover}: {error}"));
                assert_eq!(self::levels(&value), levels, "{cover}");
            }
            for levels in [DEEPEST + 1, 1_000, 20_000] {
                let text = format!("[{cover},").repeat(levels);
                decode_and_walk(&text, Format::Yaml).expect_err(cover);
            }
        }
        // In comments and block scalars, and in the tags and anchors of nodes.
        for line in [
            "# ]]]]\n",
            "a: |\n  ]]]]\n",
            "a: !<]]]]> 1\n",
            "a: 1 # }}}}\n",
        ] {
            let text = format!("{}b: {}", line.repeat(60), nest("[", "]", DEEPEST - 1));
            decode_and_walk(&text, Format::Yaml).unwrap_or_default();
            let text = format!("{}b: {}", line.repeat(200), nest("[", "]", 1_000));
            decode_and_walk(&text, Format::Yaml).expect_err(line);
        }
    });
}

#[test]
fn carriage_returns_alone_hide_no_depth() {
    on_a_small_stack(|| {
        for (breaks, levels) in [("\r", 30), ("\r\n", 30), ("\r", DEEPEST), ("\n", DEEPEST)] {
            let lines = (0..levels).map(|level| format!("{}a:{breaks}", " ".repeat(level)));
            let value = decode_and_walk(&lines.collect::<String>(), Format::Yaml);
            let value = value.unwrap_or_else(|error| panic!("{levels} of {breaks:?}: {error}"));
            assert_eq!(self::levels(&value), levels);
        }
        for levels in [DEEPEST + 1, 400] {
            let lines = (0..levels).map(|level| format!("{}a:\r", " ".repeat(level)));
            let error = decode_and_walk(&lines.collect::<String>(), Format::Yaml);
            assert_eq!(
                error.expect_err("too deep").to_string(),
                "exceeded max depth"
            );
        }
    });
}

// The deepest document of every shape is accepted, one more level is refused.
#[test]
fn every_shape_of_the_deepest_document_fits_onto_the_stack() {
    on_a_small_stack(|| {
        let lines = |levels: usize, line: &str| {
            let lines = (0..levels).map(|level| format!("{}{line}\n", " ".repeat(level)));
            lines.collect::<String>()
        };
        type Shape<'a> = &'a dyn Fn(usize) -> String;
        let shapes: [(&str, Format, Shape<'_>); 9] = [
            ("JSON list", Format::Json, &|n| nest("[", "]", n)),
            ("JSON object", Format::Json, &|n| nest("{\"a\":", "}", n)),
            ("flow list", Format::Yaml, &|n| nest("[", "]", n)),
            ("flow map", Format::Yaml, &|n| nest("{a: ", "}", n)),
            ("flow pairs", Format::Yaml, &|n| nest("[a: ", "]", n / 2)),
            ("block list", Format::Yaml, &|n| {
                format!("{}1", "- ".repeat(n))
            }),
            ("block map", Format::Yaml, &|n| lines(n, "a:")),
            ("compact", Format::Yaml, &|n| {
                format!("{}{}", "- ".repeat(n / 2), nest("{a: ", "}", n - n / 2))
            }),
            ("anchored", Format::Yaml, &|n| {
                let mut text = "a1: &a1 [1]\n".to_owned();
                for level in 2..n {
                    text += &format!("a{level}: &a{level} [*a{}]\n", level - 1);
                }
                text
            }),
        ];
        for (name, format, shape) in shapes {
            let value = decode_and_walk(&shape(DEEPEST), format);
            let value = value.unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(levels(&value) > DEEPEST - 2, "{name}: {}", levels(&value));
            for deeper in [DEEPEST + 2, 300] {
                let error = decode_and_walk(&shape(deeper), format).expect_err(name);
                assert_eq!(error.to_string(), "exceeded max depth", "{name}");
            }
        }
    });
}

// Nesting without values.
#[test]
fn keys_tags_and_merges_that_nest_fit_onto_the_stack() {
    on_a_small_stack(|| {
        for levels in [26, 100, 300] {
            // The cost of a chain of merges grows with the cube of its length.
            let merges = (1..levels.min(20)).fold("m0: &m0 {a: 1}\n".to_owned(), |text, level| {
                text + &format!(
                    "m{level}: &m{level}\n  <<: *m{}\n  b{level}: 1\n",
                    level - 1
                )
            });
            let aliased_key = (1..levels.min(130))
                .fold("a0: &a0 [1]\n".to_owned(), |text, level| {
                    text + &format!("a{level}: &a{level} [*a{}]\n", level - 1)
                });
            for text in [
                "? ".repeat(levels),
                format!("? {} : 1", nest("[", "]", levels)),
                format!("? {}\n: 1\n", nest("{a: ", "}", levels)),
                format!("{{{}: 1}}", nest("[", "]", levels)),
                nest("{? ", " : 1}", levels),
                nest("[? ", "]", levels),
                nest("!!seq [", "]", levels),
                nest("<<: [", "]", levels),
                format!("<<: {}", nest("{<<: ", "}", levels)),
                format!("{}a: 1", "- ? ".repeat(levels)),
                nest("&a [", "]", levels),
                nest("[*a, &a ", "]", levels),
                format!("{aliased_key}? *a{} : 1", levels.min(130) - 1),
                format!("{aliased_key}<<: *a{}", levels.min(130) - 1),
                merges,
            ] {
                // Whether it is accepted is not tested here.
                let _ = decode_and_walk(&text, Format::Yaml);
            }
        }
    });
}

// No order of tokens makes the parser or the walk overflow the stack.
#[test]
fn random_tokens_fit_onto_the_stack() {
    on_a_small_stack(|| {
        let tokens = [
            "[", "{", "]", "}", "- ", "? ", ": ", "a: ", ", ", "\n", "\r", "  ", "\"]\"", "'}'",
            "# ]\n", "|\n", "&a ", "*a", "!!t ", "<<: ", "1", "---\n", "...\n", "\t", "[a: ",
            "{\"\": ",
        ];
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut random = |below: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) as usize % below
        };
        for _ in 0..3_000 {
            // A few tokens, repeated: nests deeper than a random sequence would.
            let few: Vec<&str> = (0..1 + random(5))
                .map(|_| tokens[random(tokens.len())])
                .collect();
            let text: String = (0..random(600)).map(|_| few[random(few.len())]).collect();
            let _ = Decoder::new(Format::Yaml).value(text.as_bytes());
            let _ = Decoder::new(Format::Json).value(text.as_bytes());
        }
    });
}
