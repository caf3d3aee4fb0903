//! Replaces formats of a schema that CRDs do not support. kube-apiserver ignores unknown formats, and is less strict
//! than this server for some known ones; a pattern, a length or bounds then express this server's check.

use apiloom_meta::schema::structural::is_known_format;
use serde_json::{Map, Value, json};

type Keywords = Map<String, Value>;

/// Replaces formats that kube-apiserver ignores by equivalent keywords.
pub(super) fn replace_unknown(schema: &mut Value) {
    let Value::Object(keywords) = schema else {
        return;
    };
    if let Some(Value::String(format)) = keywords.get("format").cloned() {
        replace(keywords, &format);
    }
    for (name, below) in keywords.iter_mut() {
        match (name.as_str(), below) {
            ("properties", Value::Object(fields)) => {
                fields.values_mut().for_each(replace_unknown);
            }
            ("allOf" | "anyOf" | "oneOf", Value::Array(branches)) => {
                branches.iter_mut().for_each(replace_unknown);
            }
            ("items" | "additionalProperties" | "not", below) => replace_unknown(below),
            _ => {}
        }
    }
}

fn replace(keywords: &mut Keywords, format: &str) {
    let json_type = keywords.get("type").and_then(Value::as_str);
    // kube-apiserver ignores that of quantities, which tells clients what the text is.
    let is_known = is_known_format(json_type, format) || format == "quantity";
    let is_text = matches!(json_type, None | Some("string"));
    let integer = Integer::of(format).filter(|_| matches!(json_type, None | Some("integer")));
    if !is_known {
        keywords.remove("format");
    }
    if let Some(integer) = integer.filter(|_| !is_known) {
        integer.add(keywords);
    } else if format == "ip" && is_text {
        add_choice(
            keywords,
            json!([{ "format": "ipv4" }, { "format": "ipv6" }]),
        );
    } else if is_text {
        Text::of(format).add(keywords);
    }
}

/// The bounds of an integer format, and a wider format that kube-apiserver supports.
#[derive(Clone, Copy, Debug)]
struct Integer {
    wider: &'static str,
    minimum: Option<i64>,
    maximum: Option<i64>,
}

impl Integer {
    fn of(format: &str) -> Option<Self> {
        let (wider, minimum, maximum) = match format {
            "int8" => ("int32", Some(i8::MIN.into()), Some(i8::MAX.into())),
            "int16" => ("int32", Some(i16::MIN.into()), Some(i16::MAX.into())),
            "uint8" => ("int32", Some(0), Some(u8::MAX.into())),
            "uint16" => ("int32", Some(0), Some(u16::MAX.into())),
            "uint32" => ("int64", Some(0), Some(u32::MAX.into())),
            // kube-apiserver supports integers of up to 63 bits and a sign.
            "uint64" | "uint" => ("int64", Some(0), None),
            "int" => ("int64", None, None),
            _ => return None,
        };
        Some(Self {
            wider,
            minimum,
            maximum,
        })
    }

    fn add(self, keywords: &mut Keywords) {
        // In a branch without a type, kube-apiserver treats formats as those of strings.
        if keywords.contains_key("type") {
            keywords.insert("format".into(), self.wider.into());
        }
        if let Some(bound) = self.minimum {
            tighten(
                keywords,
                "minimum",
                "exclusiveMinimum",
                bound,
                |limit, bound| limit < bound,
            );
        }
        if let Some(bound) = self.maximum {
            tighten(
                keywords,
                "maximum",
                "exclusiveMaximum",
                bound,
                |limit, bound| limit > bound,
            );
        }
    }
}

/// Sets a bound, unless there is one that is as tight.
fn tighten(
    keywords: &mut Keywords,
    limit: &str,
    exclusive: &str,
    bound: i64,
    is_looser: fn(f64, f64) -> bool,
) {
    let present = keywords.get(limit).and_then(Value::as_f64);
    // Bounds of formats have at most 32 bits, which a float represents exactly.
    if present.is_none_or(|present| is_looser(present, bound as f64)) {
        keywords.insert(limit.to_owned(), bound.into());
        keywords.remove(exclusive);
    }
}

/// Keywords that express a format of strings.
#[derive(Clone, Copy, Debug, Default)]
struct Text {
    patterns: &'static [&'static str],
    max_length: Option<u64>,
}

impl Text {
    /// A table of the formats.
    fn of(format: &str) -> Self {
        let (patterns, max_length): (&[&str], _) = match format {
            "dns-label" => (&["^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"], Some(63)),
            "dns-subdomain" => (
                &[r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"],
                Some(253),
            ),
            // The second pattern limits the length of the prefix, which the length of the whole text cannot.
            "label-key" | "qualified-name" => (
                &[
                    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$",
                    "^([^/]{1,253}/)?[^/]+$",
                ],
                None,
            ),
            "label-value" => (&["^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$"], Some(63)),
            "path-segment" => (&[r"^([^./%][^/%]*|\.[^./%][^/%]*|\.\.[^/%]+)?$"], None),
            "uuid" => (
                &["^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"],
                None,
            ),
            "uri" => (&[r"^[A-Za-z][-A-Za-z0-9+.]*:[^\p{Z}\p{Cc}]+$"], None),
            "email" => (
                &[r"^[^@\p{Z}\p{Cc}]+@[-A-Za-z0-9]+(\.[-A-Za-z0-9]+)*$"],
                None,
            ),
            "duration" => (
                &[r"^[-+]?(0|(([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$"],
                None,
            ),
            _ => (&[], None),
        };
        Self {
            patterns,
            max_length,
        }
    }

    fn add(self, keywords: &mut Keywords) {
        if let Some(max) = self.max_length {
            let present = keywords.get("maxLength").and_then(Value::as_u64);
            let tightest = present.map_or(max, |present| present.min(max));
            keywords.insert("maxLength".into(), tightest.into());
        }
        for pattern in self.patterns {
            if keywords.contains_key("pattern") {
                add_part(keywords, json!({ "pattern": pattern }));
            } else {
                keywords.insert("pattern".into(), json!(pattern));
            }
        }
    }
}

/// Requires one of these branches, in addition to existing `anyOf` choices.
fn add_choice(keywords: &mut Keywords, branches: Value) {
    if keywords.contains_key("anyOf") {
        add_part(keywords, json!({ "anyOf": branches }));
    } else {
        keywords.insert("anyOf".into(), branches);
    }
}

/// Requires this schema in addition to the others.
fn add_part(keywords: &mut Keywords, part: Value) {
    let parts = keywords.entry("allOf").or_insert_with(|| json!([]));
    if let Value::Array(parts) = parts {
        parts.push(part);
    }
}

#[cfg(test)]
mod tests;
