//! JSON patch (RFC 6902), JSON merge patch (RFC 7386) and strategic merge patch for type-erased objects.
//!
//! As in Kubernetes, and beyond RFC 6902, a negative index counts from the end, and a `test` for null succeeds on a
//! missing field. A patch is applied completely or not at all, and its result can always be stored and decoded again.

mod error;
mod merge;
mod operation;
mod steps;
mod strategic;

use std::io;
use std::sync::LazyLock;

use apiloom_schema::tree::{DocumentDialect, Node, Property, Types};
use serde_json::{Map, Value};

use self::merge::merge;
use self::operation::{ExpectedValue, Operation, Parts, Pointer};
use self::steps::Steps;
use crate::codec::{self, DecodeError, DecodedDocument, Format};
use crate::go_value::{json_type, mistyped};
use crate::schema::Schema;

pub use self::error::{MAX_OPERATIONS, PatchError};
pub use self::steps::MAX_STEPS;

/// Maximum size of the JSON that the `copy` operations of a patch add, in bytes, as in kube-apiserver: the limit for
/// bodies.
pub const MAX_COPIED_BYTES: usize = 3 * 1024 * 1024;
/// Maximum nesting of the result of a JSON patch. serde_json decodes 127 levels, and lists and events add a few.
pub const MAX_DEPTH: usize = 120;

/// A parsed patch.
#[derive(Clone, Debug, PartialEq)]
pub struct Patch {
    change: Change,
    strict: Vec<String>,
}

#[derive(Clone, Debug, PartialEq)]
enum Change {
    /// RFC 6902.
    Json(JsonPatch),
    /// RFC 7386; a JSON object, or a list that takes its place.
    Merge(Value),
    /// Strategic merge patch.
    Strategic(Map<String, Value>),
}

/// The operations of a JSON patch, in order.
#[derive(Clone, Debug, PartialEq)]
struct JsonPatch(Vec<Operation>);

impl Patch {
    /// Parses a JSON patch.
    ///
    /// # Errors
    /// [`PatchError::Malformed`], [`PatchError::TooManyOperations`].
    pub fn parse_json(body: &[u8]) -> Result<Self, PatchError> {
        Self::json(body, true)
    }

    /// As [`Patch::parse_json`], as in kube-apiserver without field validation: fields of operations may have any type until they
    /// are used.
    ///
    /// # Errors
    /// [`PatchError::BadFormat`], [`PatchError::TooManyOperations`].
    pub fn parse_json_freely(body: &[u8]) -> Result<Self, PatchError> {
        Self::json(body, false)
    }

    /// Parses a merge patch, which must be a JSON object.
    ///
    /// # Errors
    /// [`PatchError::Malformed`]; [`PatchError::BadFormat`] for null.
    pub fn parse_merge(body: &[u8]) -> Result<Self, PatchError> {
        let DecodedDocument { value, strict } = codec::Decoder::patch(None)
            .decode(body)
            .map_err(malformed)?;
        match value {
            Value::Object(_) => Ok(Self {
                change: Change::Merge(value),
                strict,
            }),
            Value::Null => Err(no_merge_patch()),
            other => {
                let why = mistyped(&other, "map[string]interface {}");
                Err(PatchError::Malformed(why))
            }
        }
    }

    /// As [`Patch::parse_merge`], as in kube-apiserver without field validation: it may be a list, which takes the place of the
    /// object.
    ///
    /// # Errors
    /// [`PatchError::BadFormat`].
    pub fn parse_merge_freely(body: &[u8]) -> Result<Self, PatchError> {
        let decoded = codec::Decoder::patch(None)
            .decode(body)
            .map_err(|_| no_merge_patch())?;
        if !decoded.value.is_object() && !decoded.value.is_array() {
            return Err(no_merge_patch());
        }
        Ok(Self {
            change: Change::Merge(decoded.value),
            strict: decoded.strict,
        })
    }

    /// Parses a JSON patch; `checks_types` of its operations.
    fn json(body: &[u8], checks_types: bool) -> Result<Self, PatchError> {
        let [list, item] = if checks_types {
            ["[]handlers.jsonPatchOp", "handlers.jsonPatchOp"]
        } else {
            ["jsonpatch.Patch", "jsonpatch.Operation"]
        };
        let refuse = |why| {
            if checks_types {
                PatchError::Malformed(why)
            } else {
                PatchError::BadFormat(why)
            }
        };
        let decoded = codec::Decoder::patch(Some(&OPERATIONS)).decode(body);
        let DecodedDocument { value, mut strict } = match decoded {
            // Values of the wrong type are reported below.
            Err(DecodeError::Type(_)) => codec::Decoder::patch(None).decode(body),
            decoded => decoded,
        }
        .map_err(|error| refuse(error.to_string()))?;
        let documents = match value {
            Value::Array(documents) => documents,
            // Go decodes null as an empty list.
            Value::Null => Vec::new(),
            other => return Err(refuse(mistyped(&other, list))),
        };
        let is_operation = |document: &&Value| document.is_object() || document.is_null();
        if let Some(other) = documents.iter().find(|document| !is_operation(document)) {
            return Err(refuse(mistyped(other, item)));
        }
        if checks_types && let Some(why) = documents.iter().find_map(mistyped_field) {
            return Err(PatchError::Malformed(why));
        }
        if documents.len() > MAX_OPERATIONS {
            return Err(PatchError::TooManyOperations(documents.len()));
        }
        let tests = |document: &Value| document.get("op").is_some_and(|op| op == "test");
        let mut raw = Vec::new();
        if documents.iter().any(tests) {
            raw = operation::raw_values(body);
        }
        let raw = raw.into_iter().chain(std::iter::repeat(None));
        let operations = documents.into_iter().zip(raw);
        let operations = operations.map(|(document, raw)| Operation::of(document, raw));
        for problem in &mut strict {
            problem.insert_str(0, "json patch ");
        }
        Ok(Self {
            change: Change::Json(JsonPatch(operations.collect())),
            strict,
        })
    }

    /// Parses a strategic merge patch, which must be a JSON object; as in kube-apiserver, null is one without changes.
    ///
    /// # Errors
    /// [`PatchError::BadFormat`].
    pub fn parse_strategic(body: &[u8]) -> Result<Self, PatchError> {
        let bad_format = |error| match error {
            PatchError::Malformed(why) => PatchError::BadFormat(why),
            other => other,
        };
        let DecodedDocument { value, strict } = parse(body).map_err(bad_format)?;
        let document = match value {
            Value::Object(document) => document,
            Value::Null => Map::new(),
            other => {
                let why = mistyped(&other, "map[string]interface {}");
                return Err(PatchError::BadFormat(why));
            }
        };
        Ok(Self {
            change: Change::Strategic(document),
            strict,
        })
    }

    /// The document of a strategic merge patch as Go prints it, with which kube-apiserver refuses its result.
    pub fn strategic_document(&self) -> Option<String> {
        match &self.change {
            Change::Strategic(document) => Some(strategic::go_fields(document)),
            Change::Json(_) | Change::Merge(_) => None,
        }
    }

    /// Duplicate and unknown fields of the patch document, in its order: `duplicate field "spec.x"`, `json patch
    /// unknown field "[0].foo"`. The last duplicate is used.
    pub fn strict(&self) -> &[String] {
        &self.strict
    }

    /// Whether the patch may read or change `metadata.managedFields`. If not, a document can be patched without it.
    pub fn may_touch_managed_fields(&self) -> bool {
        const PATH: [&str; 2] = ["metadata", "managedFields"];
        let is_directive = |name: &String| name.starts_with('$');
        match &self.change {
            Change::Json(JsonPatch(operations)) => {
                let mut paths = operations.iter().flat_map(Operation::paths);
                paths.any(|pointer| {
                    let mut pairs = pointer.parts().iter().zip(PATH);
                    pairs.all(|(part, name)| part == name)
                })
            }
            Change::Merge(document) => match document.get(PATH[0]) {
                None => document.is_array(),
                Some(Value::Object(metadata)) => metadata.contains_key(PATH[1]),
                Some(_) => true,
            },
            Change::Strategic(document) => {
                document.keys().any(is_directive)
                    || match document.get(PATH[0]) {
                        None => false,
                        Some(Value::Object(metadata)) => {
                            metadata.contains_key(PATH[1]) || metadata.keys().any(is_directive)
                        }
                        Some(_) => true,
                    }
            }
        }
    }

    /// Applies the patch; on error the target is unchanged. A strategic merge patch merges as the schema of the target
    /// says.
    ///
    /// # Errors
    /// [`PatchError::NotApplicable`]; of a strategic merge patch also [`PatchError::BadFormat`],
    /// [`PatchError::Unmergeable`] and [`PatchError::UnknownDirective`].
    pub fn apply(&self, schema: &Schema, target: &mut Value) -> Result<(), PatchError> {
        let Change::Strategic(document) = &self.change else {
            return self.apply_without_schema(target);
        };
        if let Value::Object(fields) = target {
            *fields = strategic::merge(schema.root(), fields.clone(), document)?;
        }
        Ok(())
    }

    /// As [`Patch::apply`], of a JSON patch or a merge patch, to a document whose schema is not known.
    ///
    /// # Errors
    /// [`PatchError::NotApplicable`]; for a strategic merge patch [`PatchError::BadFormat`].
    pub fn apply_without_schema(&self, target: &mut Value) -> Result<(), PatchError> {
        match &self.change {
            Change::Json(patch) => {
                let mut patched = target.clone();
                patch
                    .apply(&mut patched)
                    .map_err(PatchError::NotApplicable)?;
                *target = patched;
            }
            Change::Merge(document) => merge(target, document),
            Change::Strategic(_) => {
                let why = "a strategic merge patch needs the schema of the document";
                return Err(PatchError::BadFormat(why.to_owned()));
            }
        }
        Ok(())
    }
}

/// Schema of a JSON patch document; the values of fields are not restricted here.
static OPERATIONS: LazyLock<Node> = LazyLock::new(|| {
    let property = |name: &str| {
        // Like the fields of a custom resource, values stay as they are.
        let mut node = Node::of(Types::ANY);
        (node.nullable, node.preserve_unknown) = (true, true);
        node.dialect = DocumentDialect::CUSTOM;
        Property {
            name: name.to_owned(),
            required: false,
            node: node.into(),
        }
    };
    let mut operation = Node::of(Types::OBJECT);
    operation.properties = ["op", "path", "from", "value"].map(property).into();
    let mut operations = Node::of(Types::ARRAY);
    operations.items = Some(Box::new(operation));
    operations
});

fn parse(body: &[u8]) -> Result<DecodedDocument, PatchError> {
    codec::Decoder::new(Format::Json)
        .decode(body)
        .map_err(malformed)
}

fn malformed(error: DecodeError) -> PatchError {
    PatchError::Malformed(error.to_string())
}

fn no_merge_patch() -> PatchError {
    PatchError::BadFormat("Invalid JSON Patch".to_owned())
}

/// The error of Go for a field of an operation that is no text.
fn mistyped_field(operation: &Value) -> Option<String> {
    let is_text = |value: &&Value| value.is_string() || value.is_null();
    let found = ["op", "path", "from"].into_iter().find_map(|name| {
        let value = operation.get(name).filter(|value| !is_text(value))?;
        Some((name, value))
    });
    let (name, value) = found?;
    let found = json_type(value);
    Some(format!(
        "json: cannot unmarshal {found} into Go struct field jsonPatchOp.{name} of type string"
    ))
}

impl JsonPatch {
    /// Applies the operations in order; on error the document has the changes of those before.
    fn apply(&self, document: &mut Value) -> Result<(), String> {
        let mut target = Target {
            document,
            copied_bytes: 0,
            steps: Steps::default(),
        };
        self.0
            .iter()
            .try_for_each(|operation| target.apply(operation))
    }
}

/// A document that is being patched, with the work and the bytes spent so far.
struct Target<'d> {
    document: &'d mut Value,
    copied_bytes: usize,
    steps: Steps,
}

impl Target<'_> {
    fn apply(&mut self, operation: &Operation) -> Result<(), String> {
        self.steps.spend(1)?;
        match operation {
            Operation::Add(path, value) => self.add(path, value.clone()),
            Operation::Remove(path) => self.remove(path).map(drop),
            Operation::Replace(path, value) => self.replace(path, value.clone()),
            Operation::Move { from, path } => {
                let inside = path.as_str().strip_prefix(from.as_str());
                if inside.is_some_and(|rest| rest.starts_with('/')) {
                    let (path, from) = (path.as_str(), from.as_str());
                    return Err(format!(
                        "move operation does not apply: {path} is inside {from}"
                    ));
                }
                let value = self.remove(from)?;
                self.add(path, value)
            }
            Operation::Copy { from, path } => {
                let value = held(self.document, from).ok_or_else(|| missing("copy", from))?;
                self.copied_bytes += json_len(value);
                if self.copied_bytes > MAX_COPIED_BYTES {
                    return Err(format!(
                        "Unable to complete the copy, the accumulated size increase of copy is {}, exceeding the limit {MAX_COPIED_BYTES}",
                        self.copied_bytes
                    ));
                }
                let value = value.clone();
                self.add(path, value)
            }
            Operation::Test(path, expected) => test(self.document, path, expected),
            Operation::Unknown => Err("Unexpected kind: unknown".to_owned()),
        }
    }

    fn add(&mut self, path: &Pointer, value: Value) -> Result<(), String> {
        self.check_depth(path, &value)?;
        let (parent, last) = path.split_last().ok_or_else(|| missing("add", path))?;
        match find_mut(self.document, parent) {
            Some(Value::Object(fields)) => {
                fields.insert(last.into_owned(), value);
                Ok(())
            }
            Some(Value::Array(items)) => {
                let index =
                    insertion_index(&last, items.len()).ok_or_else(|| missing("add", path))?;
                let shifted = items.len() - index;
                items.insert(index, value);
                self.steps.spend(shifted)
            }
            _ => Err(missing("add", path)),
        }
    }

    /// A missing key of an object is set, as by Kubernetes, against RFC 6902. Only this operation takes the path of the whole
    /// document, beside `test`.
    fn replace(&mut self, path: &Pointer, value: Value) -> Result<(), String> {
        self.check_depth(path, &value)?;
        if path.is_whole() {
            *self.document = value;
            return Ok(());
        }
        let (parent, last) = path.split_last().ok_or_else(|| missing("replace", path))?;
        match find_mut(self.document, parent) {
            Some(Value::Object(fields)) => {
                fields.insert(last.into_owned(), value);
            }
            Some(Value::Array(items)) => {
                let index = index(&last, items.len()).ok_or_else(|| missing("replace", path))?;
                items[index] = value;
            }
            _ => return Err(missing("replace", path)),
        }
        Ok(())
    }

    fn remove(&mut self, path: &Pointer) -> Result<Value, String> {
        let mut shifted = 0;
        let removed =
            path.split_last()
                .and_then(|(parent, last)| match find_mut(self.document, parent)? {
                    Value::Object(fields) => fields.remove(last.as_ref()),
                    Value::Array(items) => {
                        let index = index(&last, items.len())?;
                        shifted = items.len() - index;
                        Some(items.remove(index))
                    }
                    _ => None,
                });
        self.steps.spend(shifted)?;
        removed.ok_or_else(|| missing("remove", path))
    }

    /// Refuses a value that would exceed the maximum nesting at `path`, so that recursion over the document is
    /// limited, and the stored document can be decoded.
    fn check_depth(&mut self, path: &Pointer, value: &Value) -> Result<(), String> {
        let (depth, values) = extent(value);
        if path.parts().iter().count() + depth > MAX_DEPTH {
            return Err(format!(
                "the value would nest the document deeper than {MAX_DEPTH} levels"
            ));
        }
        self.steps.spend(values)
    }
}

fn missing(operation: &str, path: &Pointer) -> String {
    let path = path.as_str();
    format!("{operation} operation does not apply: doc is missing path: \"{path}\": missing value")
}

fn test(document: &Value, path: &Pointer, expected: &ExpectedValue) -> Result<(), String> {
    let found = if path.is_whole() {
        Some(document)
    } else {
        held(document, path)
    };
    if found.is_some_and(|found| expected.is(found)) {
        Ok(())
    } else {
        Err(format!("testing value {} failed", path.as_str()))
    }
}

/// The value at a path; that of a missing field of an object is null.
fn held<'v>(document: &'v Value, path: &Pointer) -> Option<&'v Value> {
    let (parent, last) = path.split_last()?;
    match find(document, parent)? {
        Value::Object(fields) => Some(fields.get(last.as_ref()).unwrap_or(&Value::Null)),
        Value::Array(items) => items.get(index(&last, items.len())?),
        _ => None,
    }
}

fn find<'v>(document: &'v Value, path: Parts<'_>) -> Option<&'v Value> {
    path.iter().try_fold(document, |value, part| match value {
        Value::Object(fields) => fields.get(part.as_ref()),
        Value::Array(items) => items.get(index(&part, items.len())?),
        _ => None,
    })
}

fn find_mut<'v>(document: &'v mut Value, path: Parts<'_>) -> Option<&'v mut Value> {
    path.iter().try_fold(document, |value, part| match value {
        Value::Object(fields) => fields.get_mut(part.as_ref()),
        Value::Array(items) => {
            let index = index(&part, items.len())?;
            items.get_mut(index)
        }
        _ => None,
    })
}

/// Index of a list element; -1 is the last one.
fn index(part: &str, len: usize) -> Option<usize> {
    let index: i64 = part.parse().ok()?;
    let index = if index < 0 {
        len.checked_sub(usize::try_from(index.unsigned_abs()).ok()?)?
    } else {
        usize::try_from(index).ok()?
    };
    (index < len).then_some(index)
}

/// Index at which a part of a path inserts into a list of `len`: `-` and -1 after the last element, -2 before it.
fn insertion_index(part: &str, len: usize) -> Option<usize> {
    if part == "-" {
        Some(len)
    } else {
        index(part, len + 1)
    }
}

/// The nesting and the number of values of a document.
fn extent(value: &Value) -> (usize, usize) {
    let below = |inner: &mut dyn Iterator<Item = &Value>| {
        inner.map(extent).fold((1, 1), |(depth, values), (d, v)| {
            (depth.max(d + 1), values + v)
        })
    };
    match value {
        Value::Array(items) => below(&mut items.iter()),
        Value::Object(fields) => below(&mut fields.values()),
        _ => (0, 1),
    }
}

fn json_len(value: &Value) -> usize {
    struct Counter(usize);
    impl io::Write for Counter {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut counter = Counter(0);
    // Neither the writer nor a `Value` can fail.
    let _ = serde_json::to_writer(&mut counter, value);
    counter.0
}

#[cfg(test)]
mod tests;
