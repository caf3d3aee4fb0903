//! Decodes bytes to a typed, pruned document, in one pass.
//!
//! A serde visitor walks the document and the schema together, so JSON and YAML differ only in the parser that calls
//! it. Like Go's decoder it does not stop at a value of the wrong type, since a later syntax error takes precedence.
//! One file, because the visitor, its state and the embedded walk that it starts read and write the same fields.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::HashSet;
use std::fmt;
use std::ops::Range;
use std::sync::LazyLock;

use apiloom_schema::number::{self, shortest};
#[cfg(feature = "schema")]
use apiloom_schema::tree;
use apiloom_schema::tree::{
    Child, DocumentDialect, Node, Path, QUANTITY, Types, drops_null, format,
};
use memchr::memmem::Finder;
use serde::de::{
    Deserialize as _, DeserializeOwned, DeserializeSeed, Deserializer, Error as _, IgnoredAny,
    MapAccess, SeqAccess, Visitor,
};
use serde_json::value::RawValue;
use serde_json::{Map, Number, Value};

use super::canonical::is_text;
use super::decoded::{DecodeError, DecodedDocument, Format, MAX_EXPANDED_BYTES};
use super::encode::Encoder;
use super::json_text::JsonText;
use super::keys::{Key, KeyText};
use super::limits::{MAX_DEPTH, TOO_DEEP};
use super::peek::value_end;
#[cfg(feature = "yaml")]
use super::yaml_parser;
use super::{compact, encoding, syntax};
use crate::field::{FieldError, MAX_PATH_BYTES, go_quote, shortened};
#[cfg(feature = "yaml")]
use crate::interrupt;
use crate::interrupt::is_interrupted;
use crate::schema::Schema;

/// Maximum nesting of YAML that is decoded on the stack of the request's thread. Without optimization the parser and
/// this walk use 20 KiB per level, of the 2 MiB of a tokio thread.
#[cfg(feature = "yaml")]
const SHALLOW_DEPTH: usize = 25;

/// Stack size for YAML of [`MAX_DEPTH`] levels.
#[cfg(feature = "yaml")]
const YAML_STACK_BYTES: usize = 8 << 20;

/// The key with which serde_json marks wrapped JSON. A typed hook or conversion would decode an object that begins
/// with it as its content, or fail; it is only possible in free JSON, where types have no fields.
const WRAPPED: &str = "$serde_json::private::RawValue";

/// Whether JSON may have an object that begins with that key.
fn has_wrapped(json: &[u8]) -> bool {
    static FINDER: LazyLock<Finder<'_>> = LazyLock::new(|| Finder::new(WRAPPED));
    FINDER.find(json).is_some()
}

/// Maximum number of strict errors, as in Kubernetes.
const MAX_STRICT: usize = 100;

/// Maximum number of repeated strict errors; after it no more are collected, since each takes a comparison of texts.
const MAX_REPEATED: usize = 10_000;

/// Decodes bodies and documents in one walk, by the schema of a kind or without one. Of several YAML documents only the first
/// is decoded.
///
/// YAML has the syntax of Kubernetes' parser (YAML 1.1 with parts of 1.2: `yes` is true, `014` is 12, `12:30` is a
/// string), with these differences: words are recognized in any case (`yEs`), underscores are allowed only between
/// digits, an explicit field takes precedence over a merged one wherever `<<` is, integers of 64 bits keep all digits,
/// and directives and escaped surrogates are accepted. The maximum nesting is 127 levels.
///
/// ```
/// use apiloom_meta::{codec::Decoder, kind::Hooks, schema::Schema};
/// let schema = serde_json::json!({"type": "object", "properties": {"n": {"type": "integer"}}});
/// let schema = Schema::from_json(&schema, &Hooks::default())?;
/// let decoded = Decoder::of(&schema).decode(b"{\"n\":1,\"n\":2,\"m\":3}")?;
/// assert_eq!(decoded.value, serde_json::json!({"n": 2}));
/// assert_eq!(decoded.strict, ["duplicate field \"n\"", "unknown field \"m\""]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Decoder<'a> {
    format: Format,
    node: Option<&'a Node>,
    /// The version of the kind, whose name Go's package of its types has; empty if it is not known.
    version: &'a str,
    /// Whether the node is the schema of a kind, whose types a document must have.
    has_schema: bool,
    /// Whether floats without fraction stay floats.
    keeps_floats: bool,
}

impl<'a> Decoder<'a> {
    /// Decodes without a schema, for instance to read apiVersion and kind. The last of duplicate keys is used. In contrast
    /// to serde_json's [`Value`], no key has a special meaning.
    pub fn new(format: Format) -> Self {
        Self {
            format,
            node: None,
            version: "",
            has_schema: false,
            keeps_floats: false,
        }
    }

    /// Decodes JSON by this schema.
    pub fn of(schema: &'a Schema) -> Self {
        Self::new(Format::Json).schema(schema)
    }

    /// Decodes the JSON of a stored object of any kind: without a schema, but as in all documents of objects the values of
    /// `fieldsV1` are strings with their JSON; one that is no object becomes null.
    pub fn stored() -> Self {
        /// An object of any kind.
        static STORED: LazyLock<Node> = LazyLock::new(Node::of_any_object);
        Self {
            node: Some(&STORED),
            ..Self::new(Format::Json)
        }
    }

    /// Decodes the document of a patch, by a node if it has one; floats stay as they are written: 1.0 is not 1.
    #[cfg(feature = "patch")]
    pub(crate) fn patch(node: Option<&'a Node>) -> Self {
        Self {
            node,
            has_schema: node.is_some(),
            keeps_floats: true,
            ..Self::new(Format::Json)
        }
    }

    /// Decodes by this schema.
    #[must_use]
    pub fn schema(self, schema: &'a Schema) -> Self {
        Self {
            node: Some(schema.root()),
            has_schema: true,
            ..self
        }
    }

    /// The version of the kind: errors name it as the package of its types, as Go does.
    #[must_use]
    pub fn version(self, version: &'a str) -> Self {
        Self { version, ..self }
    }

    /// Decodes a body.
    ///
    /// # Errors
    /// [`DecodeError`] for a malformed body, or a value of the wrong type.
    pub fn decode(self, body: &[u8]) -> Result<DecodedDocument, DecodeError> {
        let text = match (std::str::from_utf8(body), self.format) {
            (Ok(text), _) => Cow::Borrowed(text),
            (Err(_), Format::Json) => Cow::Owned(encoding::replace_invalid(body)),
            #[cfg(feature = "yaml")]
            (Err(error), Format::Yaml) => {
                let text = encoding::yaml_problem(body, &error);
                return Err(DecodeError::Syntax(text));
            }
        };
        let mut walk = Walk::new(self);
        let value = match self.format {
            Format::Json => json(&text, &mut walk),
            #[cfg(feature = "yaml")]
            Format::Yaml => yaml(&text, &mut walk),
        };
        match value {
            Ok(value) => walk.finish(value),
            Err(_) if walk.expanded > MAX_EXPANDED_BYTES => Err(DecodeError::TooLarge),
            // A number that no type can hold.
            Err(text) if text.starts_with(syntax::MISTYPED) => Err(DecodeError::Type(text)),
            Err(text) => Err(DecodeError::Syntax(text)),
        }
    }

    /// As [`Decoder::decode`], without the strict errors.
    ///
    /// # Errors
    /// As [`Decoder::decode`].
    pub fn value(self, body: &[u8]) -> Result<Value, DecodeError> {
        self.decode(body).map(|decoded| decoded.value)
    }

    /// Decodes a document in memory, such as a patched one.
    ///
    /// # Errors
    /// [`DecodeError::Type`].
    pub fn document(self, document: Value) -> Result<DecodedDocument, DecodeError> {
        let mut walk = Walk::new(self);
        let value = Seed::root(&mut walk)
            .deserialize(document)
            .map_err(|error| DecodeError::Syntax(error.to_string()))?;
        walk.finish(value)
    }

    /// The size up to which a body may grow when it is decoded, for estimates of the work before it is done: a few hundred
    /// bytes of YAML with anchors and aliases may be a document of [`MAX_EXPANDED_BYTES`]. Any other body is its own size.
    ///
    /// ```
    /// use apiloom_meta::codec::{Decoder, Format, MAX_EXPANDED_BYTES};
    ///
    /// let yaml = Decoder::new(Format::Yaml);
    /// assert_eq!(yaml.expanded_bytes(b"a: &a [x, x]\nb: [*a, *a]"), MAX_EXPANDED_BYTES);
    /// assert_eq!(yaml.expanded_bytes(b"a: [x, x]"), 9);
    /// assert_eq!(Decoder::new(Format::Json).expanded_bytes(br#"{"a": "&a *a"}"#), 14);
    /// ```
    pub fn expanded_bytes(self, body: &[u8]) -> usize {
        let has_aliases =
            || memchr::memchr(b'&', body).is_some() && memchr::memchr(b'*', body).is_some();
        if self.format != Format::Json && has_aliases() {
            body.len().max(MAX_EXPANDED_BYTES)
        } else {
            body.len()
        }
    }

    /// Decodes the result of [`Encoder::object`](super::Encoder::object), whose metadata has this start and end, without a
    /// schema. In contrast to [`Decoder::stored`], `metadata.managedFields` is a string with its JSON.
    ///
    /// # Errors
    /// As [`Decoder::decode`].
    pub fn encoded(json: &[u8], metadata: (usize, usize)) -> Result<Value, DecodeError> {
        let Some((member, entries)) = managed_fields(json, metadata) else {
            return Decoder::stored().value(json);
        };
        let rest = [&json[..member.start], &json[member.end..]].concat();
        let mut document = Decoder::stored().value(&rest)?;
        if let Some(Value::Object(metadata)) = document.get_mut("metadata") {
            metadata.insert("managedFields".to_owned(), entries.into());
        }
        Ok(document)
    }

    /// Decodes the JSON of a stored object as a type, without a document in between, which costs a third. `None` when that
    /// could give another value than by way of a document, or the JSON does not have the type's shape.
    pub(crate) fn typed<T: DeserializeOwned>(json: &[u8], schema: &Schema) -> Option<T> {
        if schema.has_singles() || has_wrapped(json) {
            return None;
        }
        let json = std::str::from_utf8(json).ok()?;
        compact::decode(json).or_else(|| serde_json::from_str(json).ok())
    }
}

/// The place of managedFields in encoded JSON, with the comma before it, and their text. They are the last member of the
/// metadata, except in the sorted metadata of custom resources, whose last member is a text; no other member of it can hold a
/// list under this name.
fn managed_fields(json: &[u8], (start, end): (usize, usize)) -> Option<(Range<usize>, &str)> {
    const MEMBER: &[u8] = b",\"managedFields\":[{";
    let found = start + memchr::memmem::find(json.get(start..end)?, MEMBER)?;
    let text = found + MEMBER.len() - 2;
    let last = end.checked_sub(1)?;
    let is_last = json.get(text..last)?.ends_with(b"}]");
    let member = found..if is_last {
        last
    } else {
        value_end(json, text)?
    };
    let text = json.get(text..member.end)?;
    Some((member, std::str::from_utf8(text).ok()?))
}

/// Parses JSON. If it has escaped surrogates without their pair, it is parsed again with Go's replacement for them.
fn json(text: &str, walk: &mut Walk<'_>) -> Result<Value, String> {
    let failed = match json_here(text, walk) {
        Err(error) if !error.is_eof() => error,
        decoded => return decoded.map_err(|error| syntax::json(&error, text.as_bytes())),
    };
    let Some(text) = encoding::replace_lone_surrogates(text) else {
        return Err(syntax::json(&failed, text.as_bytes()));
    };
    *walk = Walk::new(walk.decoder);
    json_here(&text, walk).map_err(|error| syntax::json(&error, text.as_bytes()))
}

fn json_here(text: &str, walk: &mut Walk<'_>) -> Result<Value, serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    walk.is_parsed_json = true;
    let value = Seed::root(walk).deserialize(&mut deserializer);
    value.and_then(|value| deserializer.end().map(|()| value))
}

/// Parses YAML. Deeply nested YAML is parsed in a thread with a large stack, which most documents do not need. Only
/// the parser knows the nesting, so a document that exceeds the small limit is parsed again from its start.
///
/// Most clients send JSON as YAML, for which the parser of JSON needs a tenth of the time. Errors have the texts of YAML,
/// so a document with any is parsed again.
#[cfg(feature = "yaml")]
fn yaml(text: &str, walk: &mut Walk<'_>) -> Result<Value, String> {
    let text = super::yaml::first_document(text);
    if text.starts_with('{') {
        let mut walk = Walk {
            keeps_floats: false,
            skips_opaque: false,
            ..Walk::new(Decoder {
                format: Format::Json,
                ..walk.decoder
            })
        };
        if let Ok(value) = json_here(text, &mut walk)
            && walk.strict.is_empty()
            && walk.type_error.is_none()
        {
            return Ok(value);
        }
    }
    match yaml_parser::parse(text, SHALLOW_DEPTH, Seed::root(walk)) {
        Err(error) if yaml_parser::is_over_depth(&error) => {}
        decoded => return decoded.map_err(|error| yaml_parser::syntax(&error)),
    }
    *walk = Walk::new(walk.decoder);
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(YAML_STACK_BYTES);
        let decode = || {
            let decoded = yaml_parser::parse(text, MAX_DEPTH + 1, Seed::root(walk));
            decoded.map_err(|error| yaml_parser::syntax(&error))
        };
        let interrupt = interrupt::current();
        let joined = thread
            .spawn_scoped(scope, move || interrupt::within(interrupt, decode))
            .map_err(|error| format!("error converting YAML to JSON: {error}"))?
            .join();
        joined
            .unwrap_or_else(|_| Err("error converting YAML to JSON: the parser failed".to_owned()))
    })
}

/// Where Kubernetes tells of a strict error of a custom resource: it finds duplicates as it reads, then unknown fields of the
/// metadata, of the schema, and of the metadata of embedded resources. Other objects' are told in the order of the document, which is
/// that of its keys for YAML, after the duplicates that the parser of YAML finds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Found {
    Reading,
    Metadata,
    Pruning,
    Embedded,
}

/// What orders texts with paths as sorted objects and lists are visited: names stand before what follows them, and indexes are numbers.
fn in_order_of_keys(text: &str) -> String {
    let mut key = String::with_capacity(text.len());
    let mut parts = text.trim_end_matches('"').split('[');
    key.extend(parts.next().map(|first| first.replace('.', "\0")));
    for part in parts {
        let (index, rest) = part.split_once(']').unwrap_or(("", part));
        key.push_str(&format!("\0{index:0>9}{}", rest.replace('.', "\0")));
    }
    key
}

/// State of a walk, and its results besides the document.
struct Walk<'a> {
    decoder: Decoder<'a>,
    strict: Vec<(Found, String)>,
    /// How the document is read: that of its root, also for the metadata of an object in it.
    dialect: DocumentDialect,
    /// Whether floats without fraction stay floats.
    keeps_floats: bool,
    /// Number of repeated strict errors.
    repeated: usize,
    /// The first type error.
    type_error: Option<String>,
    /// The type of the innermost struct, for the texts of type errors.
    owner: &'a str,
    is_yaml: bool,
    /// Whether duplicates in values of any type of a compiled kind are not told.
    skips_opaque: bool,
    /// Whether JSON is parsed, so that a part of it can be taken as it is.
    is_parsed_json: bool,
    /// For YAML, the approximate size of the document as JSON so far, in bytes, never more than the real size.
    expanded: usize,
}

/// The name of a struct in Go's texts, without the package that the crates of Kubernetes' types put before it.
fn go_name(node: &Node) -> Option<&str> {
    node.type_name.as_deref()?.rsplit('.').next()
}

impl<'a> Walk<'a> {
    fn new(decoder: Decoder<'a>) -> Self {
        let owner = decoder.node.and_then(go_name);
        let dialect = decoder
            .node
            .map_or_else(DocumentDialect::default, |node| node.dialect);
        let is_json = decoder.format == Format::Json;
        Self {
            decoder,
            strict: Vec::new(),
            dialect,
            keeps_floats: decoder.keeps_floats || dialect.has_go_numbers && is_json,
            repeated: 0,
            type_error: None,
            owner: owner.unwrap_or_default(),
            is_yaml: !is_json,
            skips_opaque: is_json,
            is_parsed_json: false,
            expanded: 0,
        }
    }

    /// Adds a value or a key of YAML to the expanded size. The limit is checked during the expansion of aliases,
    /// before the memory is used.
    fn expand<E: serde::de::Error>(&mut self, bytes: usize) -> Result<(), E> {
        if self.is_yaml {
            // Quotes or brackets on both ends, and a separator.
            self.expanded += bytes + 3;
            if self.expanded > MAX_EXPANDED_BYTES {
                return Err(E::custom("too large"));
            }
        }
        Ok(())
    }

    fn finish(mut self, value: Value) -> Result<DecodedDocument, DecodeError> {
        if let Some(text) = self.type_error {
            return Err(DecodeError::Type(text));
        }
        if self.dialect.is_read_as_tree {
            // The sort is stable, so duplicates stay in the order of the document.
            self.strict.sort_by(|(found, text), (other, other_text)| {
                // Without the quote at their ends, which would come after some characters.
                let [path, other_path] = [text, other_text].map(|text| text.trim_end_matches('"'));
                let texts = match found {
                    Found::Reading => Ordering::Equal,
                    _ => path.cmp(other_path),
                };
                found.cmp(other).then(texts)
            });
        } else if self.is_yaml {
            self.strict.sort_by_cached_key(|(found, text)| match found {
                Found::Reading => None,
                _ => Some(in_order_of_keys(text)),
            });
        }
        let strict = self.strict.into_iter().map(|(_, text)| text).collect();
        Ok(DecodedDocument { value, strict })
    }

    /// Whether the values of unknown fields are searched for duplicates.
    fn reads_unknown(&self) -> bool {
        self.dialect.is_read_as_tree || self.is_yaml
    }

    /// Adds a strict error, whose text is built only if it is kept.
    fn strict(&mut self, problem: impl FnOnce() -> (Found, String)) {
        if self.strict.len() < MAX_STRICT && self.repeated < MAX_REPEATED {
            let (found, problem) = problem();
            if self.strict.iter().any(|(_, known)| *known == problem) {
                self.repeated += 1;
            } else {
                self.strict.push((found, problem));
            }
        }
    }

    /// Notes a field that the object has already. YAML tells the line of its key.
    fn duplicate(&mut self, key: &KeyText, at: &Path<'_>) {
        let problem = || match key.line {
            Some(line) => {
                let name = shortened(&key.name, MAX_PATH_BYTES);
                let name = if key.is_string {
                    go_quote(&name)
                } else {
                    name.into()
                };
                format!("line {line}: key {name} already set in map")
            }
            None => format!("duplicate field {}", go_quote(&at.strict())),
        };
        self.strict(|| (Found::Reading, problem()));
    }

    /// Forgets the unknown fields of a value that a later one of the same name replaces: of custom resources and of YAML, Kubernetes
    /// looks for them in the document that it has read.
    fn forget_unknown(&mut self, at: &Path<'_>) {
        if !self.reads_unknown() || self.strict.is_empty() {
            return;
        }
        let place = go_quote(&at.strict());
        let within = format!(
            "unknown field {}",
            place.strip_suffix('"').unwrap_or(&place)
        );
        self.strict.retain(|(found, text)| {
            let below = text.strip_prefix(&within);
            *found == Found::Reading
                || below.is_none_or(|below| !below.starts_with(['.', '[', '"']))
        });
    }

    /// Drops unknown keywords that were not told from a value that is a schema, after a look at the types of all.
    #[cfg(feature = "schema")]
    fn known_keywords(&mut self, node: &Node, mut value: Value, path: &Path<'_>) -> Value {
        if node.is_json_schema {
            if self.type_error.is_none() {
                self.type_error = tree::type_error(&value, path, self.decoder.version);
            }
            tree::drop_unknown(&mut value);
        }
        value
    }
    #[cfg(not(feature = "schema"))]
    fn known_keywords(&mut self, _: &Node, value: Value, _: &Path<'_>) -> Value {
        value
    }

    fn wrong_type(&mut self, node: &Node, found: &str, path: &Path<'_>) {
        if self.type_error.is_none() && self.decoder.has_schema {
            let fields = path.fields_only();
            // kube-apiserver decodes the metadata of a custom resource by itself.
            let fields = match fields.strip_prefix("metadata") {
                Some(below) if self.dialect.is_read_as_tree => {
                    below.trim_start_matches('.').to_owned()
                }
                Some(_) | None => fields,
            };
            let place = match (fields, self.owner) {
                (fields, owner)
                    if fields.is_empty() && (self.dialect.is_read_as_tree || owner.is_empty()) =>
                {
                    format!("Go value of type {}", go_type(node, self.decoder.version))
                }
                (fields, owner) if fields.is_empty() => format!("Go value of type {owner}"),
                (fields, owner) => {
                    let wanted = go_type(node, self.decoder.version);
                    format!("Go struct field {owner}.{fields} of type {wanted}")
                }
            };
            self.type_error = Some(format!("json: cannot unmarshal {found} into {place}"));
        }
    }
}

/// The type of a node in Go's error texts. A struct has its package in front: the one before its name, or that of the version.
fn go_type(node: &Node, version: &str) -> String {
    if node.format.as_deref() == Some(QUANTITY) {
        return "resource.Quantity".to_owned();
    }
    if node.int_or_string {
        return "intstr.IntOrString".to_owned();
    }
    match node.types {
        Types::STRING if node.format.as_deref() == Some("byte") => "[]uint8".to_owned(),
        Types::STRING => "string".to_owned(),
        Types::BOOLEAN => "bool".to_owned(),
        Types::INTEGER => node
            .format
            .clone()
            .filter(|format| number::format_bounds(format).is_some())
            .unwrap_or_else(|| "int64".to_owned()),
        Types::NUMBER if node.format.as_deref() == Some("float") => "float32".to_owned(),
        Types::NUMBER => "float64".to_owned(),
        Types::ARRAY => format!(
            "[]{}",
            node.items.as_deref().map_or_else(
                || "interface {}".to_owned(),
                |items| go_type(items, version)
            )
        ),
        Types::OBJECT if node.is_map() => format!(
            "map[string]{}",
            node.additional
                .as_deref()
                .map_or_else(String::new, |values| go_type(values, version))
        ),
        Types::OBJECT => {
            let full = node.type_name.as_deref().unwrap_or("struct");
            let (package, name) = full.rsplit_once('.').unwrap_or((version, full));
            match package.rsplit('.').next() {
                Some("") | None => name.to_owned(),
                Some(package) => format!("{package}.{name}"),
            }
        }
        several => several.names().join(" or "),
    }
}

/// Decodes one value of the walk.
struct Seed<'a, 'w, 'k> {
    /// `None` accepts any value unchanged.
    node: Option<&'k Node>,
    path: &'a Path<'a>,
    depth: usize,
    walk: &'w mut Walk<'k>,
}

impl<'a, 'w, 'k> Seed<'a, 'w, 'k> {
    fn root(walk: &'w mut Walk<'k>) -> Self {
        Self {
            node: walk.decoder.node,
            path: &Path::Root,
            depth: 0,
            walk,
        }
    }

    fn below<'b>(&'b mut self, node: Option<&'k Node>, path: &'b Path<'b>) -> Seed<'b, 'b, 'k> {
        Seed {
            node,
            path,
            depth: self.depth + 1,
            walk: self.walk,
        }
    }

    /// Returns the value if the node has its type; otherwise records a type error and returns null.
    fn typed(
        self,
        types: Types,
        found: impl FnOnce() -> String,
        value: impl FnOnce() -> Value,
    ) -> Value {
        match self.node {
            Some(node) if !node.types.takes(types) && node.dialect.is_typed => {
                self.walk.wrong_type(node, &found(), self.path);
                Value::Null
            }
            _ => value(),
        }
    }

    fn string(self, value: String) -> Value {
        // Go parses times, quantities and similar types while decoding, so a malformed one is a type error, not an
        // invalid value.
        let read = match self.node {
            Some(node) if node.dialect.is_typed => format::read(node, value),
            _ => Ok(value),
        };
        match read {
            Ok(value) => self.typed(
                Types::STRING,
                || "string".to_owned(),
                || Value::String(value),
            ),
            Err(problem) => {
                self.walk.type_error.get_or_insert(problem);
                Value::Null
            }
        }
    }

    /// Notes a field at a path that the schema does not have.
    fn unknown(walk: &mut Walk<'_>, parent: Option<&Node>, at: &Path<'_>) {
        let is_metadata = parent.is_some_and(|node| node.dialect.is_typed);
        walk.strict(|| {
            let place = at.strict();
            let found = if !is_metadata {
                Found::Pruning
            } else if place.starts_with("metadata.") {
                Found::Metadata
            } else {
                Found::Embedded
            };
            (found, format!("unknown field {}", go_quote(&place)))
        });
    }

    /// Whether a node is one of the types of every object, of an object that a custom resource embeds.
    fn embeds(&self, below: &Node) -> bool {
        self.depth > 0
            && self.node.is_some_and(|node| !node.dialect.is_typed)
            && below.dialect.is_typed
    }

    /// Whether values of any type are kept.
    fn is_untyped(&self) -> bool {
        self.node.is_none_or(|node| !node.dialect.is_typed)
    }

    /// Decodes what is a type of every object in an object that a custom resource embeds: kube-apiserver does so after all the rest,
    /// and tells the value in its errors. `None` for a null that is dropped.
    fn embedded(
        &mut self,
        name: &str,
        node: &'k Node,
        value: Value,
        path: &Path<'_>,
    ) -> Option<Value> {
        let declared = self.node.and_then(|node| node.declared(name));
        if value.is_null() && declared.is_some_and(|it| drops_null(&it.node)) {
            return None;
        }
        let mut refuse = |value: &Value, why: &str| {
            let error = || FieldError::invalid(&path.field(), value, why).to_string();
            self.walk.type_error.get_or_insert_with(error);
        };
        if name != "metadata" {
            if !value.is_string() {
                refuse(&value, "must be a string");
            }
            return Some(value);
        }
        if value.is_null() {
            return Some(Value::Object(Map::new()));
        }
        let mut walk = Walk {
            dialect: self.walk.dialect,
            ..Walk::new(Decoder {
                node: Some(node),
                has_schema: true,
                ..Decoder::new(Format::Json)
            })
        };
        let decoded = Seed::root(&mut walk).deserialize(&value);
        match (decoded, walk.type_error) {
            (Ok(_), Some(why)) => refuse(&value, &why),
            (Ok(mut decoded), None) => {
                if let Value::Object(metadata) = &mut decoded {
                    crate::object::drop_empty(metadata);
                }
                let place = go_quote(&path.field().to_string());
                let place = place.trim_end_matches('"');
                for (_, text) in walk.strict {
                    let text = text.replacen('"', &format!("{place}."), 1);
                    self.walk.strict(|| (Found::Embedded, text));
                }
                return Some(decoded);
            }
            (Err(error), _) => refuse(&value, &error.to_string()),
        }
        Some(Value::Null)
    }

    /// Keeps an object as the text of its JSON.
    fn text<'de, A: MapAccess<'de>>(self, access: A) -> Result<Value, A::Error> {
        let mut text = Vec::with_capacity(256);
        let written = JsonText::new(&mut text, self.walk.is_yaml, self.depth).members(access);
        // Also after an error, which may be that of the limit.
        let counted = self.walk.expand(text.len());
        written.and(counted)?;
        let text = String::from_utf8(text).map_err(A::Error::custom)?;
        Ok(Value::String(text))
    }

    /// Decodes JSON of a node that keeps it as text. Most of it was written by a server and stays as it is.
    fn raw<E: serde::de::Error>(self, json: &str) -> Result<Value, E> {
        if json.starts_with('{') && is_text(json) {
            return Ok(Value::String(json.to_owned()));
        }
        let mut deserializer = serde_json::Deserializer::from_str(json);
        deserializer.deserialize_any(self).map_err(E::custom)
    }

    fn integer(self, number: Number) -> Value {
        let Some(node) = self.node.filter(|node| node.dialect.is_typed) else {
            return Value::Number(number);
        };
        if node.types.takes(Types::NUMBER) {
            return Value::Number(number);
        }
        // A value out of the range of the Go type is a type error too, with the literal in its text.
        let bounds = node
            .format
            .as_deref()
            .and_then(number::format_bounds)
            .unwrap_or((i64::MIN.into(), i64::MAX.into()));
        let fits =
            number::whole(&number).is_some_and(|whole| bounds.0 <= whole && whole <= bounds.1);
        if node.types.takes(Types::INTEGER) && !fits {
            self.walk
                .wrong_type(node, &format!("number {number}"), self.path);
            return Value::Null;
        }
        self.typed(
            Types::INTEGER,
            || "number".to_owned(),
            || Value::Number(number),
        )
    }
}

impl<'de> DeserializeSeed<'de> for Seed<'_, '_, '_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        if self.depth > MAX_DEPTH {
            return Err(D::Error::custom(TOO_DEEP));
        }
        if is_interrupted() {
            return Err(D::Error::custom("interrupted"));
        }
        if self.walk.is_parsed_json && self.node.is_some_and(|node| node.is_json_text) {
            return self.raw(<&RawValue>::deserialize(deserializer)?.get());
        }
        if self.walk.skips_opaque && self.node.is_some_and(Node::is_opaque) {
            let told = self.walk.strict.len();
            let walk = &mut *self.walk;
            let value = deserializer.deserialize_any(Seed { walk, ..self })?;
            self.walk.strict.truncate(told);
            return Ok(value);
        }
        deserializer.deserialize_any(self)
    }
}

/// The node that has the fields of an object: a schema of a definition has its keywords.
fn node_of_fields(node: &Node) -> &Node {
    #[cfg(feature = "schema")]
    if node.is_json_schema || node.is_inner_schema {
        return tree::schema_node();
    }
    node
}

impl<'de> Visitor<'de> for Seed<'_, '_, '_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
    fn visit_newtype_struct<D: Deserializer<'de>>(
        self,
        deserializer: D,
    ) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(self.typed(Types::BOOLEAN, || "bool".to_owned(), || Value::Bool(value)))
    }
    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(self.integer(value.into()))
    }
    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        if self.walk.dialect.has_go_numbers && self.is_untyped() && i64::try_from(value).is_err() {
            #[allow(clippy::cast_precision_loss, reason = "as Kubernetes decodes it")]
            return Ok(shortest(value as f64));
        }
        Ok(self.integer(value.into()))
    }
    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        if self.walk.keeps_floats && self.is_untyped() {
            // Zero has no sign after it was stored.
            let kept =
                Number::from_f64(value).filter(|_| value != 0.0 || !value.is_sign_negative());
            return Ok(Value::Number(kept.unwrap_or_else(|| 0.into())));
        }
        // Kubernetes converts YAML, and the metadata of custom resources, to JSON before it checks types; a float without fraction
        // is an integer there.
        if (self.walk.is_yaml || self.walk.dialect.is_read_as_tree)
            && let Value::Number(whole) = shortest(value)
            && !whole.is_f64()
        {
            return Ok(self.integer(whole));
        }
        let typed = self.node.filter(|node| node.dialect.is_typed);
        if let Some(node) = typed.filter(|node| number::overflows(node.format.as_deref(), value)) {
            self.walk
                .wrong_type(node, &format!("number {}", go_number(value)), self.path);
            return Ok(Value::Null);
        }
        let wants_integer = typed.is_some_and(|node| {
            node.types.takes(Types::INTEGER) && !node.types.takes(Types::NUMBER)
        });
        if wants_integer && value == 0.0 && value.is_sign_negative() {
            return Ok(self.integer(0.into()));
        }
        let found = || {
            if wants_integer {
                format!("number {}", go_number(value))
            } else {
                "number".to_owned()
            }
        };
        Ok(self.typed(Types::NUMBER, found, || shortest(value)))
    }
    fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<Value, E> {
        self.walk.expand(value.len())?;
        Ok(self.string(value.to_owned()))
    }
    fn visit_string<E: serde::de::Error>(self, value: String) -> Result<Value, E> {
        self.walk.expand(value.len())?;
        Ok(self.string(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut access: A) -> Result<Value, A::Error> {
        let typed = self.node.filter(|node| node.dialect.is_typed);
        if let Some(node) = typed.filter(|node| !node.types.takes(Types::ARRAY)) {
            self.walk.wrong_type(node, "array", self.path);
            while access
                .next_element_seed(Skip {
                    depth: self.depth + 1,
                })?
                .is_some()
            {}
            return Ok(Value::Null);
        }
        let items = self.node.and_then(Node::item);
        let path = self.path;
        let mut elements = Vec::new();
        self.walk.expand(0)?;
        loop {
            let at = Path::Index(path, elements.len());
            let Some(element) = access.next_element_seed(self.below(items, &at))? else {
                break;
            };
            elements.push(match items {
                Some(node) if element.is_null() && node.dialect.is_typed => zero(node),
                _ => element,
            });
        }
        Ok(Value::Array(elements))
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut access: A) -> Result<Value, A::Error> {
        let typed = self.node.filter(|node| node.dialect.is_typed);
        if let Some(node) = typed.filter(|node| !node.types.takes(Types::OBJECT)) {
            self.walk.wrong_type(node, "object", self.path);
            return self.skip_fields(access);
        }
        if self.node.is_some_and(|node| node.is_json_text) {
            return self.text(access);
        }
        let outer = self.walk.owner;
        if let Some(name) = self.node.and_then(go_name) {
            self.walk.owner = name;
        }
        let mut fields = Fields::default();
        self.walk.expand(0)?;
        while let Some(key) = access.next_key_seed(self.key())? {
            self.walk.expand(key.name.len())?;
            self.field(&mut access, &mut fields, key)?;
        }
        self.walk.owner = outer;
        Ok(Value::Object(fields.present))
    }
}

/// The fields of an object so far.
#[derive(Default)]
struct Fields {
    present: Map<String, Value>,
    /// Fields that were null, which means absent; a second one is still a duplicate.
    absent: HashSet<String>,
}

impl Fields {
    /// Whether there was a field of this name before.
    fn have(&self, name: &str) -> bool {
        self.present.contains_key(name) || self.absent.contains(name)
    }

    /// Adds a field, or what means that it is absent. The last of several counts.
    fn set(&mut self, name: String, value: Option<Value>) {
        match value {
            Some(value) => {
                self.present.insert(name, value);
            }
            None => {
                self.present.remove(&name);
                self.absent.insert(name);
            }
        }
    }
}

impl<'k> Seed<'_, '_, 'k> {
    fn key(&self) -> Key {
        Key {
            is_yaml: self.walk.is_yaml,
        }
    }

    fn skip(&self) -> Skip {
        Skip {
            depth: self.depth + 1,
        }
    }

    /// Skips an object whose node takes none.
    fn skip_fields<'de, A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        while access.next_key_seed(self.key())?.is_some() {
            access.next_value_seed(self.skip())?;
        }
        Ok(Value::Null)
    }

    /// Decodes the value of a key.
    fn field<'de, A: MapAccess<'de>>(
        &mut self,
        access: &mut A,
        fields: &mut Fields,
        key: KeyText,
    ) -> Result<(), A::Error> {
        let name = &key.name;
        let node = self.node.map(node_of_fields);
        let child = node.map_or(Child::Free, |node| node.child(name));
        if self.walk.decoder.has_schema && matches!(child, Child::Free) && name == WRAPPED {
            let problem = || format!("json: a field cannot have the name {}", go_quote(name));
            self.walk.type_error.get_or_insert_with(problem);
        }
        let path = self.path;
        let at = path.step(node.is_none_or(Node::is_map), name);
        if matches!(child, Child::Unknown) && !self.walk.reads_unknown() {
            Self::unknown(self.walk, node, &at);
            return access.next_value_seed(self.skip());
        }
        let is_duplicate = fields.have(name);
        if is_duplicate {
            self.walk.forget_unknown(&at);
        }
        // The parser of YAML has read the value when it finds the key in the map.
        if is_duplicate && key.line.is_none() {
            self.walk.duplicate(&key, &at);
        }
        let value = self.value(access, name, (node, child), &at)?;
        if is_duplicate && key.line.is_some() {
            self.walk.duplicate(&key, &at);
        }
        fields.set(key.name, value);
        Ok(())
    }

    /// Decodes the value of a field of an object with this node; `None` if it is dropped.
    fn value<'de, A: MapAccess<'de>>(
        &mut self,
        access: &mut A,
        name: &str,
        (node, child): (Option<&'k Node>, Child<'k>),
        at: &Path<'_>,
    ) -> Result<Option<Value>, A::Error> {
        Ok(match child {
            Child::Unknown => {
                Self::unknown(self.walk, node, at);
                // Also in it, duplicate fields are reported.
                access.next_value_seed(self.below(None, at))?;
                None
            }
            Child::Free => {
                let any = node.and_then(Node::free);
                Some(access.next_value_seed(self.below(any, at))?)
            }
            Child::Node(node) if self.embeds(node) => {
                let value = access.next_value_seed(self.below(None, at))?;
                self.embedded(name, node, value, at)
            }
            Child::Node(below) => {
                let value = access.next_value_seed(self.below(Some(below), at))?;
                let value = self.walk.known_keywords(below, value, at);
                present(below, value, node.is_none_or(Node::is_map))
            }
        })
    }
}

/// The value of a field, or of a key of a map; `None` for one that means absent.
fn present(node: &Node, value: Value, is_key: bool) -> Option<Value> {
    if node.is_omitted(&value) {
        return None;
    }
    if !value.is_null() || !drops_null(node) {
        return Some(value);
    }
    (is_key && node.dialect.is_typed).then(|| zero(node))
}

/// The value of null where null is not allowed: Go's zero value.
fn zero(node: &Node) -> Value {
    if !drops_null(node) {
        return Value::Null;
    }
    match node.types {
        Types::STRING => Value::String(String::new()),
        Types::BOOLEAN => Value::Bool(false),
        Types::INTEGER | Types::NUMBER => Value::from(0),
        Types::ARRAY => Value::Array(Vec::new()),
        Types::OBJECT => Value::Object(Map::new()),
        _ if node.int_or_string => Value::from(0),
        _ => Value::Null,
    }
}

/// A float in its shortest form.
fn go_number(value: f64) -> String {
    if (1e-6..1e16).contains(&value.abs()) || value == 0.0 {
        return format!("{value:?}");
    }
    String::from_utf8_lossy(&Encoder::json(&value)).into_owned()
}

/// Skips a value, with the same limit for its nesting.
struct Skip {
    depth: usize,
}

impl<'de> DeserializeSeed<'de> for Skip {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        if self.depth > MAX_DEPTH {
            return Err(D::Error::custom(TOO_DEEP));
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Skip {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }
    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
    fn visit_none<E>(self) -> Result<(), E> {
        Ok(())
    }
    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }
    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }
    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }
    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }
    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<(), A::Error> {
        while access
            .next_element_seed(Skip {
                depth: self.depth + 1,
            })?
            .is_some()
        {}
        Ok(())
    }
    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<(), A::Error> {
        while access.next_key::<IgnoredAny>()?.is_some() {
            access.next_value_seed(Skip {
                depth: self.depth + 1,
            })?;
        }
        Ok(())
    }
}
