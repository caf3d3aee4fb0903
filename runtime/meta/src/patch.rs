//! JSON patch (RFC 6902), JSON merge patch (RFC 7386) and strategic merge patch for type-erased objects.
//!
//! As in Kubernetes, and beyond RFC 6902, a negative index counts from the end, and a `test` for null succeeds on a
//! missing field. A patch is applied completely or not at all, and its result can always be stored and decoded again.

mod error;
mod merge;
mod steps;
mod strategic;

use std::io;
use std::sync::LazyLock;

use json_patch::PatchOperation;
use json_patch::jsonptr::{Pointer, Token};
use serde_json::{Map, Value};

use self::merge::merge;
use self::steps::Steps;
use crate::codec::{self, DecodeError, DecodedDocument, Format};
use crate::schema::Schema;
use crate::schema::node::{Node, Property, Types};

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
    /// RFC 7386; always a JSON object.
    Merge(Value),
    /// Strategic merge patch.
    Strategic(Map<String, Value>),
}

/// The operations of a JSON patch, in order.
#[derive(Clone, Debug, PartialEq)]
struct JsonPatch(Vec<PatchOperation>);

impl Patch {
    /// Parses a JSON patch.
    ///
    /// # Errors
    /// [`PatchError::Malformed`], [`PatchError::TooManyOperations`].
    pub fn parse_json(body: &[u8]) -> Result<Self, PatchError> {
        let DecodedDocument { value, mut strict } = match codec::decode_under(body, &OPERATIONS) {
            // Values of the wrong type are reported below, with the index of their operation.
            Err(DecodeError::Type(_)) => parse(body)?,
            decoded => decoded.map_err(malformed)?,
        };
        let operations = match value {
            Value::Array(operations) => operations,
            // Go decodes null as an empty list.
            Value::Null => Vec::new(),
            other => return Err(wrong_type(&other, "jsonpatch.Patch")),
        };
        if operations.len() > MAX_OPERATIONS {
            return Err(PatchError::TooManyOperations(operations.len()));
        }
        let operation = |(i, value)| {
            serde_json::from_value(value)
                .map_err(|why| PatchError::Malformed(format!("operation {i}: {why}")))
        };
        let operations = operations
            .into_iter()
            .enumerate()
            .map(operation)
            .collect::<Result<_, _>>()?;
        for problem in &mut strict {
            problem.insert_str(0, "json patch ");
        }
        Ok(Self {
            change: Change::Json(JsonPatch(operations)),
            strict,
        })
    }

    /// Parses a merge patch, which must be a JSON object.
    ///
    /// # Errors
    /// [`PatchError::Malformed`].
    pub fn parse_merge(body: &[u8]) -> Result<Self, PatchError> {
        let DecodedDocument { value, strict } = parse(body)?;
        if !value.is_object() {
            return Err(wrong_type(&value, "map[string]interface {}"));
        }
        Ok(Self {
            change: Change::Merge(value),
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
            other => return Err(bad_format(wrong_type(&other, "map[string]interface {}"))),
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
            Change::Json(JsonPatch(operations)) => operations.iter().any(|operation| {
                let from = match operation {
                    PatchOperation::Move(op) => Some(&op.from),
                    PatchOperation::Copy(op) => Some(&op.from),
                    _ => None,
                };
                let from = from.map(|from| &**from);
                [Some(operation.path()), from]
                    .into_iter()
                    .flatten()
                    .any(|pointer| {
                        let mut pairs = pointer.tokens().zip(PATH);
                        pairs.all(|(token, name)| token.decoded() == name)
                    })
            }),
            Change::Merge(document) => match document.get(PATH[0]) {
                None => false,
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
        match &self.change {
            Change::Json(patch) => {
                let mut patched = target.clone();
                patch
                    .apply(&mut patched)
                    .map_err(PatchError::NotApplicable)?;
                *target = patched;
            }
            Change::Merge(document) => merge(target, document),
            Change::Strategic(document) => {
                if let Value::Object(fields) = target {
                    *fields = strategic::merge(schema.root(), fields.clone(), document)?;
                }
            }
        }
        Ok(())
    }
}

/// Schema of a JSON patch document; the values of fields are not restricted here.
static OPERATIONS: LazyLock<Node> = LazyLock::new(|| {
    let property = |name: &str| {
        let mut node = Node::of(Types::ANY);
        node.nullable = true;
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
    codec::decode_freely(body, Format::Json).map_err(malformed)
}

fn malformed(error: DecodeError) -> PatchError {
    PatchError::Malformed(error.to_string())
}

fn wrong_type(document: &Value, wanted: &str) -> PatchError {
    let found = match document {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    PatchError::Malformed(format!(
        "json: cannot unmarshal {found} into Go value of type {wanted}"
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
    fn apply(&mut self, operation: &PatchOperation) -> Result<(), String> {
        match operation {
            PatchOperation::Add(op) => self.add(&op.path, op.value.clone()),
            PatchOperation::Remove(op) => self.remove(&op.path).map(drop),
            PatchOperation::Replace(op) => self.replace(&op.path, op.value.clone()),
            PatchOperation::Move(op) => {
                if op.path.starts_with(&op.from) && op.path != op.from {
                    return Err(format!(
                        "move operation does not apply: {} is inside {}",
                        op.path, op.from
                    ));
                }
                let value = self.remove(&op.from)?;
                self.add(&op.path, value)
            }
            PatchOperation::Copy(op) => {
                let value =
                    find(self.document, &op.from).ok_or_else(|| missing("copy", &op.from))?;
                self.copied_bytes += json_len(value);
                if self.copied_bytes > MAX_COPIED_BYTES {
                    return Err(format!(
                        "Unable to complete the copy, the accumulated size increase of copy is {}, exceeding the limit {MAX_COPIED_BYTES}",
                        self.copied_bytes
                    ));
                }
                let value = value.clone();
                self.add(&op.path, value)
            }
            PatchOperation::Test(op) => test(self.document, &op.path, &op.value),
        }
    }

    fn add(&mut self, path: &Pointer, value: Value) -> Result<(), String> {
        self.check_depth(path, &value)?;
        let Some((parent, last)) = path.split_back() else {
            *self.document = value;
            return Ok(());
        };
        match find_mut(self.document, parent) {
            Some(Value::Object(fields)) => {
                fields.insert(last.decoded().into_owned(), value);
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

    /// A missing key of an object is set, as by Kubernetes, against RFC 6902.
    fn replace(&mut self, path: &Pointer, value: Value) -> Result<(), String> {
        self.check_depth(path, &value)?;
        if let Some((parent, last)) = path.split_back()
            && let Some(Value::Object(fields)) = find_mut(self.document, parent)
        {
            fields.insert(last.decoded().into_owned(), value);
            return Ok(());
        }
        *find_mut(self.document, path).ok_or_else(|| missing("replace", path))? = value;
        Ok(())
    }

    fn remove(&mut self, path: &Pointer) -> Result<Value, String> {
        let mut shifted = 0;
        let removed =
            path.split_back()
                .and_then(|(parent, last)| match find_mut(self.document, parent)? {
                    Value::Object(fields) => fields.remove(last.decoded().as_ref()),
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
        if path.count() + depth > MAX_DEPTH {
            return Err(format!(
                "the value would nest the document deeper than {MAX_DEPTH} levels"
            ));
        }
        self.steps.spend(values)
    }
}

fn missing(operation: &str, path: &Pointer) -> String {
    format!("{operation} operation does not apply: doc is missing path: \"{path}\": missing value")
}

fn test(document: &Value, path: &Pointer, expected: &Value) -> Result<(), String> {
    let held = match find(document, path) {
        Some(found) => found == expected,
        // A missing field compares as null; a missing list element, or a field of a missing object, does not.
        None => {
            expected.is_null()
                && path
                    .split_back()
                    .and_then(|(parent, _)| find(document, parent))
                    .is_some_and(Value::is_object)
        }
    };
    if held {
        Ok(())
    } else {
        Err(format!("testing value {path} failed"))
    }
}

fn find<'v>(document: &'v Value, path: &Pointer) -> Option<&'v Value> {
    path.tokens()
        .try_fold(document, |value, token| match value {
            Value::Object(fields) => fields.get(token.decoded().as_ref()),
            Value::Array(items) => items.get(index(&token, items.len())?),
            _ => None,
        })
}

fn find_mut<'v>(document: &'v mut Value, path: &Pointer) -> Option<&'v mut Value> {
    path.tokens()
        .try_fold(document, |value, token| match value {
            Value::Object(fields) => fields.get_mut(token.decoded().as_ref()),
            Value::Array(items) => {
                let index = index(&token, items.len())?;
                items.get_mut(index)
            }
            _ => None,
        })
}

/// Index of a list element; -1 is the last one.
fn index(token: &Token<'_>, len: usize) -> Option<usize> {
    let index: i64 = token.decoded().parse().ok()?;
    let index = if index < 0 {
        len.checked_sub(usize::try_from(index.unsigned_abs()).ok()?)?
    } else {
        usize::try_from(index).ok()?
    };
    (index < len).then_some(index)
}

/// Index at which a token inserts into a list of `len`: `-` and -1 after the last element, -2 before it.
fn insertion_index(token: &Token<'_>, len: usize) -> Option<usize> {
    if token.decoded() == "-" {
        Some(len)
    } else {
        index(token, len + 1)
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
