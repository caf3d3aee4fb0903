//! `DeleteOptions`, from the body if there is one, otherwise from the query.

use apiloom_meta::codec::{DecodeError, Decoder, Format, MAX_EXPANDED_BYTES};
use apiloom_meta::field::go_quote;
use apiloom_meta::{ApiError, FieldError, FieldPath, GroupVersion};
use apiloom_registry::{DeleteOptions, Preconditions, PropagationPolicy, no_type};
use serde_json::{Map, Value};

use super::{check_dry_run, invalid};
use crate::request::query::Query;

/// `DeleteOptions` as sent, before validation.
#[derive(Debug, Default)]
struct RawDeleteOptions {
    dry_run: Vec<String>,
    grace_period_seconds: Option<i64>,
    orphan_dependents: Option<bool>,
    propagation_policy: Option<String>,
    preconditions: Preconditions,
}

/// Decodes `DeleteOptions` from the query; used if the body is empty.
///
/// # Errors
/// BadRequest for malformed values, Invalid for values that contradict each other.
pub(crate) fn delete_options_of_query(query: &Query) -> Result<DeleteOptions, ApiError> {
    let given = |name: &str| Some(query.text(name).to_owned()).filter(|text| !text.is_empty());
    let raw = RawDeleteOptions {
        dry_run: query.all("dryRun").map(str::to_owned).collect(),
        grace_period_seconds: query
            .integer("gracePeriodSeconds")
            .map_err(ApiError::bad_request)?,
        orphan_dependents: query.boolean("orphanDependents"),
        propagation_policy: query.first("propagationPolicy").map(str::to_owned),
        // Of a deletecollection, each object must meet them.
        preconditions: Preconditions {
            uid: given("uid"),
            resource_version: given("resourceVersion"),
        },
    };
    raw.validate()
}

/// Decodes `DeleteOptions` from a non-empty body, which may name any version.
///
/// # Errors
/// BadRequest for another kind or a field of the wrong type, Invalid for values that contradict each other.
pub(crate) fn delete_options_of_body(
    body: &[u8],
    format: Format,
) -> Result<DeleteOptions, ApiError> {
    let value = Decoder::new(format)
        .value(body)
        .map_err(|error| match error {
            DecodeError::TooLarge => ApiError::too_large(MAX_EXPANDED_BYTES),
            error => ApiError::bad_request(format!(
                "couldn't get version/kind; json parse error: {error}"
            )),
        })?;
    let fields = match value {
        Value::Object(fields) => fields,
        // Go decodes null as options without any field.
        Value::Null => Map::new(),
        other => return Err(ApiError::bad_request(no_type(&other))),
    };
    let fields = Fields {
        fields: &fields,
        path: "DeleteOptions".to_owned(),
    };
    let api_version = fields.string("apiVersion")?.filter(|text| !text.is_empty());
    let kind = fields.string("kind")?.filter(|text| !text.is_empty());
    check_delete_kind(api_version.as_deref(), kind.as_deref())?;
    fields.delete_options()?.validate()
}

/// The kinds that Kubernetes knows in each version, besides DeleteOptions.
const UNVERSIONED: [&str; 7] = [
    "APIGroup",
    "APIGroupList",
    "APIResourceList",
    "APIVersions",
    "CreateOptions",
    "Status",
    "UpdateOptions",
];

/// The kinds of `meta.k8s.io/v1` besides these.
const OF_META: [&str; 8] = [
    "GetOptions",
    "ListOptions",
    "PartialObjectMetadata",
    "PartialObjectMetadataList",
    "PatchOptions",
    "Table",
    "TableOptions",
    "WatchEvent",
];

fn check_delete_kind(api_version: Option<&str>, kind: Option<&str>) -> Result<(), ApiError> {
    let api_version = api_version.unwrap_or("meta.k8s.io/v1");
    let kind = kind.unwrap_or("DeleteOptions");
    if GroupVersion::parse(api_version).is_none() {
        let why = format!("unexpected GroupVersion string: {api_version}");
        return Err(ApiError::bad_request(why));
    }
    if kind == "DeleteOptions" {
        return Ok(());
    }
    let is_of_meta = api_version == "meta.k8s.io/v1" && OF_META.contains(&kind);
    let why = if is_of_meta || UNVERSIONED.contains(&kind) {
        format!("converting (v1.{kind}) to (v1.DeleteOptions): unknown conversion")
    } else {
        let [kind, api_version] = [kind, api_version].map(go_quote);
        format!("no kind {kind} is registered for version {api_version} in scheme \"apiloom\"")
    };
    Err(ApiError::bad_request(why))
}

/// Reader for the fields of an options document; null counts as absent.
struct Fields<'a> {
    fields: &'a serde_json::Map<String, Value>,
    path: String,
}

impl Fields<'_> {
    fn get(&self, name: &str) -> Option<&Value> {
        self.fields.get(name).filter(|value| !value.is_null())
    }

    fn read<T>(
        &self,
        name: &str,
        go_type: &str,
        convert: impl FnOnce(&Value) -> Option<T>,
    ) -> Result<Option<T>, ApiError> {
        let Some(value) = self.get(name) else {
            return Ok(None);
        };
        convert(value).map(Some).ok_or_else(|| {
            let given = match value {
                Value::Bool(_) => "bool".to_owned(),
                Value::Number(number) if !number.is_i64() => format!("number {number}"),
                Value::Number(_) => "number".to_owned(),
                Value::String(_) => "string".to_owned(),
                Value::Array(_) => "array".to_owned(),
                Value::Object(_) | Value::Null => "object".to_owned(),
            };
            ApiError::bad_request(format!(
                "json: cannot unmarshal {given} into Go struct field {}.{name} of type {go_type}",
                self.path
            ))
        })
    }

    fn string(&self, name: &str) -> Result<Option<String>, ApiError> {
        self.read(name, "string", |value| value.as_str().map(str::to_owned))
    }

    fn delete_options(&self) -> Result<RawDeleteOptions, ApiError> {
        let strings = |value: &Value| {
            value
                .as_array()?
                .iter()
                .map(|v| v.as_str().map(str::to_owned))
                .collect()
        };
        let preconditions = self.read("preconditions", "v1.Preconditions", |value| {
            value.as_object().cloned()
        })?;
        let preconditions = match &preconditions {
            None => Preconditions::default(),
            Some(fields) => {
                let fields = Fields {
                    fields,
                    path: format!("{}.preconditions", self.path),
                };
                Preconditions {
                    uid: fields.string("uid")?,
                    resource_version: fields.string("resourceVersion")?,
                }
            }
        };
        Ok(RawDeleteOptions {
            dry_run: self
                .read("dryRun", "[]string", strings)?
                .unwrap_or_default(),
            grace_period_seconds: self.read("gracePeriodSeconds", "int64", Value::as_i64)?,
            orphan_dependents: self.read("orphanDependents", "bool", Value::as_bool)?,
            propagation_policy: self.string("propagationPolicy")?,
            preconditions,
        })
    }
}

impl RawDeleteOptions {
    fn validate(self) -> Result<DeleteOptions, ApiError> {
        let path = FieldPath::new("propagationPolicy");
        let mut errors = Vec::new();
        let policy = self.propagation_policy.as_deref();
        if let (Some(policy), Some(_)) = (policy, self.orphan_dependents) {
            let why = "orphanDependents and deletionPropagation cannot be both set";
            errors.push(FieldError::invalid(&path, policy, why));
        }
        let propagation_policy = match policy {
            None => None,
            Some("Foreground") => Some(PropagationPolicy::Foreground),
            Some("Background") => Some(PropagationPolicy::Background),
            Some("Orphan") => Some(PropagationPolicy::Orphan),
            Some(other) => {
                let supported = ["Foreground", "Background", "Orphan", "nil"];
                errors.push(FieldError::not_supported(&path, other, &supported));
                None
            }
        };
        let dry_run: Vec<&str> = self.dry_run.iter().map(String::as_str).collect();
        errors.extend(check_dry_run(&dry_run));
        invalid("DeleteOptions", &errors)?;
        Ok(DeleteOptions {
            dry_run: !dry_run.is_empty(),
            grace_period_seconds: self.grace_period_seconds,
            orphan_dependents: self.orphan_dependents,
            propagation_policy,
            preconditions: self.preconditions,
        })
    }
}
