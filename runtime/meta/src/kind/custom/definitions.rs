//! Reads the versions of a kind from a CustomResourceDefinition.

use std::cmp::Ordering;
use std::sync::Arc;

use serde_json::Value;
use smol_str::SmolStr;

use super::CustomKind;
use crate::kind::{
    CellSource, Column, ColumnType, Conversion, ConversionMethod, Converter, Dialect, ResourceDef,
    ScalePaths, SchemaSource, Scope, SelectableField, SubresourceDef, compare_versions,
};
use crate::path::JsonPath;
use crate::query::JsonQuery;
use crate::schema::{Schema, StoredSchema};

/// The versions of the kind that a CustomResourceDefinition (`apiextensions.k8s.io/v1`) describes, with its names, scope,
/// subresources, columns, selectable fields and schemas, in the order of the document.
///
/// The names are those of `status.acceptedNames` if there are any, else those of `spec.names`. Objects are stored in the
/// version with `storage`; `converter` converts them to the others, and without one only their `apiVersion` changes
/// (strategy `None`).
///
/// ```
/// use apiloom_meta::kind::custom_definitions;
/// let document = serde_json::json!({"spec": {
///     "group": "example.com",
///     "scope": "Namespaced",
///     "names": {"plural": "lamps", "kind": "Lamp"},
///     "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
///         "type": "object",
///         "properties": {"spec": {"type": "object", "properties": {"watts": {"type": "integer"}}}}}}}]}});
/// let versions = custom_definitions(&document, None)?;
/// assert_eq!((versions[0].version.as_str(), versions[0].kind.as_str()), ("v1", "Lamp"));
/// assert_eq!(versions[0].list_kind, "LampList");
/// # Ok::<(), Vec<String>>(())
/// ```
///
/// # Errors
/// One line for each part that is missing, has the wrong type or has no structural schema.
pub fn custom_definitions(
    document: &Value,
    converter: Option<Arc<dyn Converter>>,
) -> Result<Vec<ResourceDef>, Vec<String>> {
    definitions(document, None, converter)
}

/// As [`custom_definitions`]; `schemas` has those of a document without them.
pub(super) fn definitions(
    document: &Value,
    schemas: Option<&[Option<Arc<StoredSchema>>]>,
    converter: Option<Arc<dyn Converter>>,
) -> Result<Vec<ResourceDef>, Vec<String>> {
    let mut reader = Reader::default();
    let spec = &document["spec"];
    let versions = spec["versions"].as_array().map(Vec::as_slice);
    let versions = versions.unwrap_or_default();
    let stored = versions.iter().filter(|one| flag(one, "storage"));
    let stored: Vec<&str> = stored.filter_map(|one| one["name"].as_str()).collect();
    if stored.len() != 1 {
        reader.problem(
            "spec.versions",
            "must have exactly one version marked as storage version",
        );
    }
    if spec["conversion"]["strategy"] == "Webhook" && converter.is_none() {
        reader.problem(
            "spec.conversion.strategy",
            "a converter must be given for Webhook",
        );
    }
    let kind = KindParts {
        group: reader.text(&spec["group"], "spec.group"),
        names: reader.names(document),
        scope: reader.scope(&spec["scope"]),
        stored: SmolStr::new(stored.first().copied().unwrap_or_default()),
        versions,
        method: match converter {
            Some(converter) => ConversionMethod::Asynchronous(converter),
            None => ConversionMethod::Rename,
        },
    };
    let defs = versions
        .iter()
        .enumerate()
        .map(|(at, version)| {
            let path = format!("spec.versions[{at}]");
            let mut def = reader.version(&kind, version, &path);
            def.schema = match schemas {
                Some(schemas) => reader.stored(schemas.get(at), &path),
                None => reader.schema(&version["schema"]["openAPIV3Schema"], &path),
            };
            def
        })
        .collect();
    if reader.problems.is_empty() {
        Ok(defs)
    } else {
        Err(reader.problems)
    }
}

/// What all versions of a kind share.
struct KindParts<'a> {
    group: SmolStr,
    names: Names,
    scope: Scope,
    /// The storage version.
    stored: SmolStr,
    versions: &'a [Value],
    method: ConversionMethod,
}

struct Names {
    plural: SmolStr,
    singular: SmolStr,
    kind: SmolStr,
    list_kind: SmolStr,
    short_names: Vec<SmolStr>,
    categories: Vec<SmolStr>,
}

/// Reads parts of the document, and collects problems.
#[derive(Default)]
struct Reader {
    problems: Vec<String>,
}

impl Reader {
    fn problem(&mut self, path: &str, text: &str) {
        self.problems.push(format!("{path}: {text}"));
    }

    fn text(&mut self, value: &Value, path: &str) -> SmolStr {
        let text = value.as_str().unwrap_or_default();
        if text.is_empty() {
            self.problem(path, "must be a text that is not empty");
        }
        SmolStr::new(text)
    }

    fn names(&mut self, document: &Value) -> Names {
        let accepted = &document["status"]["acceptedNames"];
        let has_any = accepted["plural"]
            .as_str()
            .is_some_and(|name| !name.is_empty());
        let (names, path) = if has_any {
            (accepted, "status.acceptedNames")
        } else {
            (&document["spec"]["names"], "spec.names")
        };
        let kind = self.text(&names["kind"], &format!("{path}.kind"));
        let or = |name: &str, default: String| match names[name].as_str() {
            None | Some("") => SmolStr::new(default),
            Some(given) => SmolStr::new(given),
        };
        let list = |name: &str| {
            let list = names[name].as_array().into_iter().flatten();
            list.filter_map(Value::as_str).map(SmolStr::new).collect()
        };
        Names {
            plural: self.text(&names["plural"], &format!("{path}.plural")),
            singular: or("singular", kind.to_lowercase()),
            list_kind: or("listKind", format!("{kind}List")),
            short_names: list("shortNames"),
            categories: list("categories"),
            kind,
        }
    }

    fn scope(&mut self, value: &Value) -> Scope {
        match value.as_str() {
            Some("Namespaced") => Scope::Namespaced,
            Some("Cluster") => Scope::Cluster,
            _ => {
                self.problem("spec.scope", "must be Namespaced or Cluster");
                Scope::Cluster
            }
        }
    }

    fn version(&mut self, kind: &KindParts<'_>, version: &Value, path: &str) -> ResourceDef {
        let name = self.text(&version["name"], &format!("{path}.name"));
        let schema = &version["schema"]["openAPIV3Schema"];
        let names = &kind.names;
        let conversion = (name != kind.stored).then(|| Conversion {
            hub_resource: None,
            hub_version: kind.stored.clone(),
            hub_kind: names.kind.clone(),
            method: kind.method.clone(),
        });
        let fields = version["selectableFields"].as_array().into_iter().flatten();
        let fields = fields.filter_map(|field| JsonPath::parse(field["jsonPath"].as_str()?));
        let (group, name_of_kind, plural) = (&kind.group, &names.kind, &names.plural);
        let texts = [group, &name, name_of_kind, plural].map(Clone::clone);
        let without_schema = SchemaSource::Document(Arc::new(Schema::unusable()));
        ResourceDef {
            list_kind: names.list_kind.clone(),
            singular: names.singular.clone(),
            short_names: names.short_names.clone(),
            categories: names.categories.clone(),
            scope: kind.scope,
            subresources: self.subresources(&version["subresources"], path),
            storage: name == kind.stored,
            served: flag(version, "served"),
            conversion,
            columns: columns(&version["additionalPrinterColumns"]),
            selectable: fields.map(SelectableField::from).collect(),
            unconditional_update: false,
            description: SmolStr::new(schema["description"].as_str().unwrap_or_default()),
            dialect: Dialect::CUSTOM,
            custom: Some(CustomKind {
                deprecation_warning: deprecation_warning(kind, version, &name),
                uid: SmolStr::default(),
                state: SmolStr::default(),
            }),
            ..ResourceDef::of_names(texts, without_schema)
        }
    }

    /// Reports that a version has no schema.
    fn no_schema(&mut self, path: &str) -> SchemaSource {
        self.problem(
            &format!("{path}.schema.openAPIV3Schema"),
            "schemas are required",
        );
        SchemaSource::Document(Arc::new(Schema::unusable()))
    }

    fn stored(&mut self, schema: Option<&Option<Arc<StoredSchema>>>, path: &str) -> SchemaSource {
        match schema {
            Some(Some(schema)) => SchemaSource::Stored(Arc::clone(schema)),
            Some(None) | None => self.no_schema(path),
        }
    }

    fn schema(&mut self, schema: &Value, path: &str) -> SchemaSource {
        if !schema.is_object() {
            return self.no_schema(path);
        }
        let schema = Schema::of_custom_resource(schema).unwrap_or_else(|errors| {
            let lines = errors.0.iter();
            let lines = lines.map(|line| format!("{path}.schema.openAPIV3Schema: {line}"));
            self.problems.extend(lines);
            Schema::unusable()
        });
        SchemaSource::Document(Arc::new(schema))
    }

    fn subresources(&mut self, value: &Value, path: &str) -> Vec<SubresourceDef> {
        let mut subresources = Vec::new();
        // In the order in which discovery lists them.
        if value["status"].is_object() {
            subresources.push(SubresourceDef::status());
        }
        let scale = &value["scale"];
        if scale.is_object() {
            let mut at = |name: &str| {
                let path = format!("{path}.subresources.scale.{name}");
                path_of_scale(&self.text(&scale[name], &path))
            };
            let selector = scale["labelSelectorPath"].as_str();
            subresources.push(SubresourceDef::scale(ScalePaths {
                spec: at("specReplicasPath"),
                status: at("statusReplicasPath"),
                selector: selector.filter(|text| !text.is_empty()).map(path_of_scale),
            }));
        }
        subresources
    }
}

/// The path of a field that a Scale shows. As in kube-apiserver it is split at its dots and nowhere else: `.spec.replicas[0]` is the
/// field `replicas[0]`.
fn path_of_scale(text: &str) -> JsonPath {
    JsonPath::new(text.strip_prefix('.').unwrap_or(text).split('.'))
}

/// The columns of a version; with none, the age.
fn columns(value: &Value) -> Vec<Column> {
    let declared = value.as_array().map(Vec::as_slice).unwrap_or_default();
    if declared.is_empty() {
        return vec![Column {
            name: SmolStr::new_static("Age"),
            column_type: ColumnType::Date,
            format: SmolStr::default(),
            priority: 0,
            description: SmolStr::new_static("How long ago the server created the object."),
            source: CellSource::Path(JsonPath::new(["metadata", "creationTimestamp"])),
        }];
    }
    // As in kube-apiserver, the first path that cannot be read is the end of the columns.
    declared.iter().map_while(column).collect()
}

/// A column; `None` if its path cannot be read.
fn column(value: &Value) -> Option<Column> {
    let text = |name: &str| value[name].as_str().unwrap_or_default();
    let path = text("jsonPath");
    let description = match text("description") {
        "" => SmolStr::new(format!(
            "Custom resource definition column (in JSONPath format): {path}"
        )),
        given => SmolStr::new(given),
    };
    Some(Column {
        name: SmolStr::new(text("name")),
        column_type: match text("type") {
            "integer" => ColumnType::Integer,
            "number" => ColumnType::Number,
            "boolean" => ColumnType::Boolean,
            "date" => ColumnType::Date,
            _ => ColumnType::String,
        },
        format: SmolStr::new(text("format")),
        priority: value["priority"]
            .as_i64()
            .and_then(|number| i32::try_from(number).ok())
            .unwrap_or_default(),
        description,
        source: source(path)?,
    })
}

fn source(path: &str) -> Option<CellSource> {
    let query = JsonQuery::parse(path).ok()?;
    Some(if query.is_path() {
        CellSource::Path(query.start().clone())
    } else {
        CellSource::Query(query)
    })
}

/// The text of warnings for a deprecated version: its own, or one that names the version to use instead.
fn deprecation_warning(kind: &KindParts<'_>, version: &Value, name: &str) -> Option<SmolStr> {
    if !flag(version, "deprecated") {
        return None;
    }
    if let Some(own) = version["deprecationWarning"].as_str() {
        return Some(SmolStr::new(own));
    }
    let (group, kind_name) = (&kind.group, &kind.names.kind);
    let is_better = |other: &&Value| {
        let other_name = other["name"].as_str().unwrap_or_default();
        flag(other, "served")
            && !flag(other, "deprecated")
            && compare_versions(other_name, name) == Ordering::Less
    };
    let better = kind.versions.iter().filter(is_better);
    let better = better.filter_map(|other| other["name"].as_str());
    let instead = better.min_by(|one, other| compare_versions(one, other));
    let instead = instead.map(|other| format!("; use {group}/{other} {kind_name}"));
    let instead = instead.unwrap_or_default();
    Some(SmolStr::new(format!(
        "{group}/{name} {kind_name} is deprecated{instead}"
    )))
}

fn flag(value: &Value, name: &str) -> bool {
    value.get(name).and_then(Value::as_bool).unwrap_or(false)
}

#[cfg(test)]
mod tests;
