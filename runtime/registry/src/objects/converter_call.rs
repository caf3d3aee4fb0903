//! One call of a converter, and the checks of its results.
//!
//! They are those of kube-apiserver for the response of a conversion webhook, with the same texts: each result is the object
//! that was sent, in the other version, and of its metadata only labels and annotations may be others.

use std::time::Instant;

use apiloom_meta::codec::{Decoder, Format};
use apiloom_meta::field::aggregate;
use apiloom_meta::go_value::{go_type, mistyped};
use apiloom_meta::kind::{ConversionReport, ConversionResult};
use apiloom_meta::{ApiError, FieldPath, GroupVersion, Object, validation};
use bytes::Bytes;
use serde_json::{Map, Value};

use super::kind_version::VersionIndex;
use super::kind_versions::{AsynchronousConversion, KindVersions};
use crate::error::no_kind;
use crate::large::LARGE_BYTES;

/// The parts of the metadata that a converter may change.
const CHANGEABLE: [&str; 2] = ["labels", "annotations"];

/// A call of a converter that has ended, with the results that are not checked yet.
pub(super) struct ConverterCall<'k> {
    versions: &'k KindVersions,
    conversion: &'k AsynchronousConversion,
    /// Version of the first object.
    from: VersionIndex,
    to: VersionIndex,
    target: GroupVersion,
    began: Instant,
    /// Whether there is more than one object, which the texts of errors show.
    is_list: bool,
    /// Whether fields that the target version does not know are removed.
    prunes: bool,
    index: usize,
    results: std::vec::IntoIter<Bytes>,
}

/// What is wrong with a result.
enum Problem {
    /// It is no object with a kind. kube-apiserver says of a single one no more than that.
    Document(String),
    /// It cannot be the object in the target version.
    Object(String),
    /// It is another object.
    Identity(String),
    Metadata(String),
}

impl<'k> ConverterCall<'k> {
    /// Calls the converter; no document may be in the target version already.
    pub(super) async fn begin(
        versions: &'k KindVersions,
        conversion: &'k AsynchronousConversion,
        [from, to]: [VersionIndex; 2],
        documents: Vec<Bytes>,
    ) -> Result<Self, ApiError> {
        let mut call = Self {
            versions,
            conversion,
            from,
            to,
            target: versions[to].def.group_version(),
            began: Instant::now(),
            is_list: documents.len() > 1,
            prunes: true,
            index: 0,
            results: Vec::new().into_iter(),
        };
        let expected = documents.len();
        match conversion.converter.convert(documents, &call.target).await {
            Err(why) => return Err(call.fail(ConversionResult::Failed, &format!("failed: {why}"))),
            Ok(results) if results.len() != expected => {
                let why = format!("returned {} objects, expected {expected}", results.len());
                return Err(call.fail(ConversionResult::WrongNumber, &why));
            }
            Ok(results) => call.results = results.into_iter(),
        }
        Ok(call)
    }

    /// Keeps fields that the target version does not know.
    pub(super) fn without_pruning(self) -> Self {
        Self {
            prunes: false,
            ..self
        }
    }

    /// The next result, of this object: decoded, checked and pruned.
    pub(super) async fn next(&mut self, original: Object) -> Result<Object, ApiError> {
        tokio::task::coop::consume_budget().await;
        let Some(document) = self.results.next() else {
            let why = "returned too few objects";
            return Err(self.fail(ConversionResult::WrongNumber, why));
        };
        let (versions, to) = (self.versions, self.to);
        let check = || {
            let mut object = check(versions, original, &document, to)?;
            if self.prunes {
                versions.prune(&mut object, to);
            }
            Ok(object)
        };
        let checked = if document.len() < LARGE_BYTES {
            check()
        } else {
            // Held for the work alone, not while a converter is waited for.
            self.conversion.results.run(document.len(), check).await
        };
        checked
            .map_err(|problem| {
                if let Problem::Document(why) = &problem
                    && !self.is_list
                {
                    self.report(ConversionResult::InvalidObject);
                    return ApiError::internal_text(why.as_str());
                }
                let why = self.text(problem);
                self.fail(ConversionResult::InvalidObject, &why)
            })
            .inspect(|_| self.index += 1)
    }

    /// Reports that all results were good.
    pub(super) fn accept(&self) {
        self.report(ConversionResult::Accepted);
    }

    fn text(&self, problem: Problem) -> String {
        let index = self.index;
        match (problem, self.is_list) {
            (Problem::Document(why) | Problem::Object(why) | Problem::Identity(why), true) => {
                format!("returned invalid converted object at index {index}: {why}")
            }
            (Problem::Metadata(why), true) => {
                format!("returned invalid metadata in object at index {index}: {why}")
            }
            (Problem::Document(why) | Problem::Object(why), false) => {
                format!("returned invalid object at index {index}: {why}")
            }
            (Problem::Identity(why), false) => format!("returned invalid object: {why}"),
            (Problem::Metadata(why), false) => format!("returned invalid metadata: {why}"),
        }
    }

    fn fail(&self, result: ConversionResult, why: &str) -> ApiError {
        self.report(result);
        let source = &self.versions[self.from];
        let (source, kind) = (&source.api_version, &source.def.kind);
        ApiError::internal_text(format!(
            "conversion webhook for {source}, Kind={kind} {why}"
        ))
    }

    fn report(&self, result: ConversionResult) {
        self.conversion.converter.finished(&ConversionReport {
            from: &self.versions[self.from].def.version,
            to: &self.target,
            elapsed: self.began.elapsed(),
            result,
        });
    }
}

/// Decodes a converted document and checks that it is the same object in the target version. Its metadata is that of the
/// original, except for labels and annotations.
fn check(
    versions: &KindVersions,
    original: Object,
    document: &[u8],
    to: VersionIndex,
) -> Result<Object, Problem> {
    let value = Decoder::new(Format::Json).value(document);
    let value = value.map_err(|error| Problem::Document(error.to_string()))?;
    let mut object = match value {
        Value::Object(fields) => Object::new(fields),
        // Go leaves a null out.
        Value::Null => return Err(Problem::Document("unexpected end of JSON input".to_owned())),
        other => {
            let why = mistyped(&other, "map[string]interface {}");
            return Err(Problem::Document(why));
        }
    };
    if object.kind().is_empty() {
        return Err(Problem::Document(no_kind(document)));
    }
    let target = &versions[to];
    for (what, expected, received) in [
        ("groupVersion", &*target.api_version, object.api_version()),
        ("kind", original.kind(), object.kind()),
    ] {
        if expected != received {
            return Err(Problem::Object(format!(
                "invalid {what} (expected {expected}, received {received})"
            )));
        }
    }
    let [old, new] = [&original, &object];
    for (what, old, new) in [
        ("name", old.name(), new.name()),
        ("namespace", old.namespace(), new.namespace()),
        ("UID", old.uid(), new.uid()),
    ] {
        if old != new {
            return Err(Problem::Identity(format!(
                "must have the same {what}: {old} != {new}"
            )));
        }
    }
    let metadata = merge_metadata(original, &object).map_err(Problem::Metadata)?;
    *object.meta_mut() = metadata;
    Ok(object)
}

/// The metadata of the original object, with the labels and annotations of the converted one.
fn merge_metadata(mut original: Object, converted: &Object) -> Result<Map<String, Value>, String> {
    let given = match converted.fields().get("metadata") {
        None => return Err("missing metadata in converted object".to_owned()),
        Some(Value::Object(given)) => given,
        Some(other) => {
            return Err(format!(
                "invalid metadata of type {} in converted object",
                go_type(other)
            ));
        }
    };
    let mut metadata = std::mem::take(original.meta_mut());
    for field in CHANGEABLE {
        let values = match given.get(field) {
            None | Some(Value::Null) => {
                metadata.remove(field);
                continue;
            }
            Some(Value::Object(values)) => values,
            Some(other) => {
                return Err(format!(
                    "invalid metadata.{field} of type {} in converted object",
                    go_type(other)
                ));
            }
        };
        if let Some((key, value)) = values.iter().find(|(_, value)| !value.is_string()) {
            return Err(format!(
                "metadata.{field}[{key}] must be a string, but is {} in converted object",
                go_type(value)
            ));
        }
        // What is stored may be older than the rules.
        if metadata.get(field).and_then(Value::as_object) != Some(values) {
            check_changed(field, values)?;
        }
        metadata.insert(field.to_owned(), Value::Object(values.clone()));
    }
    Ok(metadata)
}

/// Checks labels or annotations.
fn check_changed(field: &str, values: &Map<String, Value>) -> Result<(), String> {
    let texts = values.iter();
    let texts: Vec<_> = texts
        .filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)))
        .collect();
    let errors = if field == "labels" {
        validation::label_errors(texts.into_iter(), &FieldPath::new("metadata.labels"))
    } else {
        validation::annotation_errors(&texts, &FieldPath::new("metadata.annotation"))
    };
    if errors.is_empty() {
        return Ok(());
    }
    Err(aggregate(&errors))
}
