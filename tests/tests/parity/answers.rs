//! The answers of the two servers, in a form in which they can be compared: without what cannot repeat, and in the form that
//! custom resources have.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::LazyLock;

use apiloom_tests::Client;
use regex::{Captures, Regex};

use crate::differences::{COLUMN_DESCRIPTIONS, KEY_ORDER, LIST_ITEMS, METADATA_ORDER};
use crate::json::Json;
use crate::script::{Request, Script};

/// The beginning of the description of a column that has none.
const COLUMN: &str = "Custom resource definition column (in JSONPath format): ";

/// The description of the column that the server adds.
const AGE: &str = "How long ago the server created the object.";

/// The longest body that is shown whole.
const SHOWN_BYTES: usize = 700;

/// Headers that tell nothing about the answer.
const IGNORED: [&str; 3] = ["date", "audit-id", "content-length"];

/// One of the two servers, and what is known of its answers.
pub(crate) struct Side {
    client: Client,
    is_compiled: bool,
    /// Values of answers that later requests have.
    kept: BTreeMap<String, String>,
    /// Numbers of resourceVersions, in the order in which they were first seen.
    revisions: BTreeMap<String, usize>,
    used: BTreeSet<&'static str>,
}

/// An answer in its comparable form.
#[derive(PartialEq, Eq)]
pub(crate) struct Shown {
    code: u16,
    headers: Vec<String>,
    body: String,
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut ends = (0..=SHOWN_BYTES.min(self.body.len())).rev();
        let end = ends
            .find(|end| self.body.is_char_boundary(*end))
            .unwrap_or_default();
        let rest = if end < self.body.len() { "..." } else { "" };
        write!(f, "{} {}", self.code, self.body[..end].trim_end())?;
        f.write_str(rest)?;
        for header in &self.headers {
            if header != "content-type: application/json" && !header.starts_with("cache-control") {
                write!(f, "\n    {header}")?;
            }
        }
        Ok(())
    }
}

impl Side {
    pub(crate) fn compiled(client: Client) -> Self {
        Self {
            client,
            is_compiled: true,
            kept: BTreeMap::new(),
            revisions: BTreeMap::new(),
            used: BTreeSet::new(),
        }
    }

    pub(crate) fn custom(client: Client) -> Self {
        Self {
            is_compiled: false,
            ..Self::compiled(client)
        }
    }

    /// Whether a difference changed an answer.
    pub(crate) fn has_used(&self, difference: &str) -> bool {
        self.used.contains(difference)
    }

    /// Sends a request.
    pub(crate) async fn ask(&mut self, script: &Script, request: &Request) -> Shown {
        let sent = script.sent(request, &self.kept);
        let headers: Vec<(&str, &str)> = sent
            .headers
            .iter()
            .map(|(name, value)| (&**name, &**value))
            .collect();
        if request.lines > 0 {
            let accept = headers.iter().find(|(name, _)| *name == "accept");
            let accept = accept.map_or("application/json", |(_, value)| value);
            let mut watch = self.client.watch_as(&sent.path, accept).await;
            let mut body = String::new();
            for _ in 0..request.lines {
                let line = watch.line().await.expect("the watch ended");
                body.push_str(&self.shown(line.trim_end()));
                body.push('\n');
            }
            let headers = vec![format!("content-type: {}", watch.header("content-type"))];
            return Shown {
                code: 200,
                headers,
                body,
            };
        }
        let answer = self
            .client
            .call(&request.method, &sent.path, &headers, sent.body)
            .await;
        for (name, pointer) in &request.keep {
            let value = answer
                .json()
                .pointer(pointer)
                .and_then(|value| value.as_str().map(str::to_owned));
            let value =
                value.unwrap_or_else(|| panic!("{request}: no {pointer} in {}", answer.text()));
            self.kept.insert(name.clone(), value);
        }
        let mut headers: Vec<String> = answer
            .headers
            .iter()
            .filter(|(name, _)| !IGNORED.contains(&name.as_str()))
            .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
            .collect();
        headers.sort();
        let body = match String::from_utf8(answer.body.to_vec()) {
            Ok(text) if !text.starts_with("k8s\0") => self.shown(&text),
            _ => "(Protobuf)".to_owned(),
        };
        Shown {
            code: answer.code,
            headers,
            body,
        }
    }

    /// A body in its comparable form.
    fn shown(&mut self, text: &str) -> String {
        let Some(mut json) = Json::read(text) else {
            let text = masked(text);
            return YAML_REVISION.replace_all(&text, "${1}RV").into_owned();
        };
        let is_indented = text.starts_with("{\n");
        let end = &text[text.trim_end().len()..];
        self.mask(&mut json);
        self.as_custom(&mut json);
        format!("{}{end}", json.write(is_indented))
    }

    /// Replaces what cannot repeat.
    fn mask(&mut self, json: &mut Json) {
        let kind = json.text_of("kind");
        let is_collection = kind.ends_with("List") || kind == "Table";
        let is_bookmark = json.text_of("type") == "BOOKMARK";
        if let Some(version) = json
            .field_mut("metadata")
            .and_then(|metadata| metadata.field_mut("resourceVersion"))
            && is_collection
        {
            // Other writes change it too.
            *version = Json::string("LIST");
        }
        if let Json::Object(fields) = json {
            for (name, value) in fields {
                let text = value.text().unwrap_or_default();
                match name.as_str() {
                    "resourceVersion" if text != "LIST" && !text.is_empty() => {
                        let next = self.revisions.len();
                        let number = *self.revisions.entry(text).or_insert(next);
                        *value = Json::string(&format!("RV{number}"));
                    }
                    "continue" if !text.is_empty() => *value = Json::string("TOKEN"),
                    "object" if is_bookmark => mask_bookmark(value),
                    "managedFields" => sort_entries(value),
                    _ => {}
                }
            }
        }
        if let Json::Leaf(text) = json {
            *text = masked(text);
        }
        for value in json.values_mut() {
            self.mask(value);
        }
    }

    /// Gives objects of the compiled kind the form of custom resources.
    fn as_custom(&mut self, json: &mut Json) {
        if let Some(Json::Array(columns)) = json.field_mut("columnDefinitions") {
            for description in columns
                .iter_mut()
                .skip(1)
                .filter_map(|column| column.field_mut("description"))
            {
                let text = description.text().unwrap_or_default();
                if text == AGE || text.starts_with(COLUMN) {
                    *description = Json::string("");
                }
                if text.starts_with(COLUMN) {
                    self.used.insert(COLUMN_DESCRIPTIONS);
                }
            }
        }
        if json.text_of("kind") == "PartialObjectMetadata" {
            self.sort_as(METADATA_ORDER, json.field_mut("metadata"));
        }
        let is_object = json.text_of("apiVersion").contains(".example.com/");
        if !is_object || !self.is_compiled {
            json.values_mut()
                .into_iter()
                .for_each(|value| self.as_custom(value));
            return;
        }
        self.complete_list(json);
        self.sort_as(KEY_ORDER, Some(json));
    }

    /// Sorts the keys of a value, which is a difference of this name.
    fn sort_as(&mut self, name: &'static str, json: Option<&mut Json>) {
        let Some(json) = json else {
            return;
        };
        let before = json.write(false);
        sort(json);
        if json.write(false) != before {
            self.used.insert(name);
        }
    }

    fn complete_list(&mut self, json: &mut Json) {
        let (kind, version) = (json.text_of("kind"), json.text_of("apiVersion"));
        let Some(kind) = kind.strip_suffix("List") else {
            return;
        };
        if let Some(Json::Object(metadata)) = json.field_mut("metadata")
            && !metadata.iter().any(|(name, _)| name == "continue")
        {
            metadata.push(("continue".to_owned(), Json::string("")));
            self.used.insert(LIST_ITEMS);
        }
        let Some(Json::Array(items)) = json.field_mut("items") else {
            return;
        };
        for item in items {
            if let Json::Object(fields) = item {
                assert!(
                    !fields.iter().any(|(name, _)| name == "kind"),
                    "an item has a kind"
                );
                fields.push(("kind".to_owned(), Json::string(kind)));
                fields.push(("apiVersion".to_owned(), Json::string(&version)));
                self.used.insert(LIST_ITEMS);
            }
        }
    }
}

/// The state that a bookmark names moves with other writes.
fn mask_bookmark(object: &mut Json) {
    for value in object.values_mut() {
        if let Some(version) = value.field_mut("resourceVersion") {
            *version = Json::string("LIST");
        }
    }
}

fn sort(json: &mut Json) {
    if let Json::Object(fields) = json {
        fields.sort_by(|(one, _), (other, _)| one.cmp(other));
    }
    json.values_mut().into_iter().for_each(sort);
}

/// Sorts entries of managedFields without their times: the server orders them by time, in whole seconds, and the requests
/// that wrote two of them may be in the same second on one side alone.
fn sort_entries(entries: &mut Json) {
    if let Json::Array(entries) = entries {
        entries.sort_by_cached_key(|entry| {
            let members = ["operation", "manager", "apiVersion", "subresource"];
            members.map(|member| entry.text_of(member))
        });
    }
}

static YAML_REVISION: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r#"(resourceVersion: )"\d+""#).unwrap());

/// Replaces uids, times, ages, generated names, states and prefixes of keys in a text.
fn masked(text: &str) -> String {
    static MASKS: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
        let mask = |pattern: &str, with| (Regex::new(pattern).unwrap(), with);
        vec![
            mask(
                r#""?[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"?"#,
                "UID",
            ),
            mask(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "TIME"),
            mask(r#"^"\d+s"$"#, "\"AGE\""),
            mask("made-[a-z0-9]{5}", "made-NAME"),
            mask(r"https://127\.0\.0\.1:\d+", "https://SERVER"),
            mask(r"/test\d+/registry/", "/registry/"),
            mask(r"in record \(\d+\)", "in record (RV)"),
            mask(r"(?m)^(  continue: ).+$", "${1}TOKEN"),
        ]
    });
    static ESCAPED: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r#"(resourceVersion\\+":\\+")\d+"#).unwrap());
    let text = MASKS.iter().fold(text.to_owned(), |text, (pattern, with)| {
        pattern.replace_all(&text, *with).into_owned()
    });
    let escaped = |found: &Captures<'_>| format!("{}RV", &found[1]);
    ESCAPED.replace_all(&text, escaped).into_owned()
}
