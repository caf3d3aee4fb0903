//! The messages of kinds as the content of `.proto` files: plain data, with the documentation of the types.
//!
//! A file has the messages of the kinds of one group and version. Those of Kubernetes have files of their own, by the paths
//! that they have there.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ResourceDef;
use crate::protobuf::{LIST_META, ProtobufField, ProtobufMessage, ProtobufPresence, ProtobufType};

/// The content of a `.proto` file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ProtoFile {
    /// The package.
    pub package: String,
    /// The paths of the imported files, sorted.
    pub imports: BTreeSet<String>,
    /// The messages, by name.
    pub messages: BTreeMap<String, ProtoMessage>,
}

/// A message of a `.proto` file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ProtoMessage {
    /// The documentation, as lines.
    pub description: Vec<String>,
    /// The fields, by number.
    pub fields: BTreeMap<u32, ProtoField>,
    /// Numbers that no field may have.
    pub reserved: BTreeSet<u32>,
    /// Names that no field may have.
    pub reserved_names: BTreeSet<String>,
}

/// A field of a `.proto` file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProtoField {
    /// The documentation, as lines.
    pub description: Vec<String>,
    /// The label and the type: `optional string`, `map<string, bytes>`.
    pub field_type: String,
    /// The name.
    pub name: String,
}

/// The files of kinds, by path. Kinds without a Protobuf form are left out.
#[derive(Debug, Default)]
pub struct ProtoFiles {
    files: BTreeMap<String, ProtoFile>,
    /// The descriptions from which the messages of a file were made, by file and name.
    sources: BTreeMap<(String, String), &'static ProtobufMessage>,
    problems: Vec<String>,
}

impl ProtoFiles {
    /// Adds a kind and its list. Documentation is taken from the schema, the structural one of a definition.
    pub fn add(&mut self, def: &ResourceDef, schema: &Value) {
        let Some(message) = def.protobuf else { return };
        let path = path_of(def);
        let package = message
            .package
            .map_or_else(|| package_of(def), str::to_owned);
        let of_file = &mut self.file(&path).package;
        if of_file.is_empty() {
            *of_file = package;
        } else if *of_file != package {
            let other = of_file.clone();
            self.problems.push(format!(
                "the kinds of {} name two Protobuf packages, {other} and {package}: write the same `proto(package = \"..\")` on all",
                def.api_version(),
            ));
        }
        let root = self.message(&path, message, schema);
        // In the schema the description of a type inside is that of the field.
        if let Some(message) = self.file(&path).messages.get_mut(&root) {
            message.description = lines(schema);
        }
        if def.verbs.is_empty() {
            // The body of a subresource is in no list.
            return;
        }
        let items = ProtobufType::Message(|| &LIST_META);
        let metadata = format!(
            "optional {}",
            self.type_text(&path, "", items, &Value::Null)
        );
        let list = ProtoMessage {
            description: vec![format!("{} is a list of {root}.", def.list_kind)],
            fields: BTreeMap::from([
                (1, field("metadata", metadata)),
                (2, field("items", format!("repeated {root}"))),
            ]),
            ..ProtoMessage::default()
        };
        self.insert(&path, &def.list_kind, list);
    }

    /// The files by path: `GROUP_VERSION.proto`, and those of Kubernetes.
    ///
    /// # Errors
    /// Messages of one file that have the same name.
    pub fn finish(self) -> Result<BTreeMap<String, ProtoFile>, Vec<String>> {
        if self.problems.is_empty() {
            Ok(self.files)
        } else {
            Err(self.problems)
        }
    }

    fn file(&mut self, path: &str) -> &mut ProtoFile {
        self.files.entry(path.to_owned()).or_default()
    }

    fn insert(&mut self, path: &str, name: &str, message: ProtoMessage) {
        let file = self.file(path);
        let earlier = file.messages.insert(name.to_owned(), message.clone());
        if earlier.is_some_and(|earlier| earlier != message) {
            self.two_of(path, name);
        }
    }

    fn two_of(&mut self, path: &str, name: &str) {
        self.problems.push(format!(
            "two types would be the message {name} of {path}: write `#[api(proto(name = \"..\"))]` on one of them"
        ));
    }

    /// Adds a message and those that it needs; returns the name by which `from`, a file, refers to it.
    fn message(&mut self, from: &str, message: &'static ProtobufMessage, schema: &Value) -> String {
        let of_kubernetes = message
            .package
            .filter(|package| package.starts_with(KUBERNETES));
        let path = of_kubernetes.map_or_else(|| from.to_owned(), path_of_package);
        let key = (path.clone(), message.name.to_owned());
        match self.sources.get(&key) {
            None => {
                self.sources.insert(key, message);
                if let Some(package) = of_kubernetes {
                    let file = self.file(&path);
                    package.clone_into(&mut file.package);
                }
                let made = self.made(&path, message, schema);
                self.insert(&path, message.name, made);
            }
            Some(same) if std::ptr::eq(*same, message) => {}
            Some(_) => self.two_of(&path, message.name),
        }
        if path == from {
            return message.name.to_owned();
        }
        let imports = &mut self.file(from).imports;
        imports.insert(path);
        format!(".{}.{}", of_kubernetes.unwrap_or_default(), message.name)
    }

    fn made(&mut self, path: &str, message: &ProtobufMessage, schema: &Value) -> ProtoMessage {
        let mut made = ProtoMessage {
            reserved: message.reserved.iter().copied().collect(),
            reserved_names: message
                .reserved_names
                .iter()
                .map(|name| identifier(name))
                .collect(),
            ..ProtoMessage::default()
        };
        for of in message.fields {
            let schema = match of.presence {
                // The schema has its fields here.
                ProtobufPresence::Flattened => schema,
                _ => &schema["properties"][of.name],
            };
            let name = identifier(of.name);
            if made.fields.values().any(|field| field.name == name) {
                self.problems.push(format!(
                    "two fields of {} would be {name} in {path}: give one another name in JSON",
                    message.name
                ));
            }
            // Numbers of attributes are checked by the macros, those of a description by hand are not.
            if made.fields.contains_key(&of.number) || made.reserved.contains(&of.number) {
                self.problems.push(format!(
                    "the number {} of the field {name} of {} is that of another field, or reserved: take another one",
                    of.number, message.name
                ));
            }
            let field_type = self.field_type(path, message, of, schema);
            let description = if of.presence == ProtobufPresence::Flattened {
                Vec::new()
            } else {
                lines(schema)
            };
            made.fields.insert(
                of.number,
                ProtoField {
                    description,
                    field_type,
                    name,
                },
            );
        }
        made
    }

    fn field_type(
        &mut self,
        path: &str,
        message: &ProtobufMessage,
        field: &ProtobufField,
        schema: &Value,
    ) -> String {
        // The name of messages that are needed for lists and maps in others.
        let inner = format!("{}{}", message.name, camel(field.name));
        match field.value {
            ProtobufType::List(of) => {
                format!(
                    "repeated {}",
                    self.type_text(path, &inner, *of, &schema["items"])
                )
            }
            ProtobufType::Map(of) => self.map(path, &inner, *of, schema),
            of => format!("optional {}", self.type_text(path, &inner, of, schema)),
        }
    }

    fn map(&mut self, path: &str, inner: &str, of: ProtobufType, schema: &Value) -> String {
        let values = self.type_text(path, inner, of, &schema["additionalProperties"]);
        format!("map<string, {values}>")
    }

    fn type_text(&mut self, path: &str, inner: &str, of: ProtobufType, schema: &Value) -> String {
        if let Some(special) = of.special() {
            return self.message(path, special, &Value::Null);
        }
        let items = match of {
            ProtobufType::Message(message) | ProtobufType::ByShape(message) => {
                return self.message(path, message(), schema);
            }
            ProtobufType::List(of) => {
                let name = format!("{inner}Items");
                format!(
                    "repeated {}",
                    self.type_text(path, &name, *of, &schema["items"])
                )
            }
            ProtobufType::Map(of) => self.map(path, &format!("{inner}Items"), *of, schema),
            plain => return scalar(plain).to_owned(),
        };
        let name = format!("{inner}Items");
        let message = ProtoMessage {
            fields: BTreeMap::from([(1, field("items", items))]),
            ..ProtoMessage::default()
        };
        self.insert(path, &name, message);
        name
    }
}

const KUBERNETES: &str = "k8s.io.apimachinery.";

/// The path of a package of Kubernetes: `k8s.io/apimachinery/pkg/runtime/generated.proto`.
fn path_of_package(package: &str) -> String {
    let rest = package.trim_start_matches("k8s.io.").replace('.', "/");
    format!("k8s.io/{rest}/generated.proto")
}

/// The file of a kind: `wardle.example.com_v1.proto`.
fn path_of(def: &ResourceDef) -> String {
    let group = if def.group.is_empty() {
        "core"
    } else {
        &def.group
    };
    format!("{group}_{}.proto", def.version)
}

/// The package of a group and version: `com.example.wardle.v1`.
fn package_of(def: &ResourceDef) -> String {
    let group = if def.group.is_empty() {
        "core"
    } else {
        &def.group
    };
    let parts = group.split('.').rev().chain([&*def.version]);
    parts.map(identifier).collect::<Vec<_>>().join(".")
}

/// A word that Protobuf takes as a name.
fn identifier(name: &str) -> String {
    let plain = name
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' });
    let mut word: String = plain.collect();
    if !word.starts_with(|c: char| c.is_ascii_alphabetic()) {
        word.insert(0, 'x');
    }
    word
}

fn camel(name: &str) -> String {
    let word = identifier(name);
    let words = word.split('_').filter(|word| !word.is_empty());
    let capital = |word: &str| word[..1].to_ascii_uppercase() + &word[1..];
    words.map(capital).collect()
}

fn field(name: &str, field_type: String) -> ProtoField {
    ProtoField {
        description: Vec::new(),
        field_type,
        name: name.to_owned(),
    }
}

/// The documentation of a schema.
fn lines(schema: &Value) -> Vec<String> {
    let text = schema["description"].as_str().unwrap_or_default();
    text.lines()
        .map(|line| line.trim_end().to_owned())
        .collect()
}

fn scalar(of: ProtobufType) -> &'static str {
    match of {
        ProtobufType::Boolean => "bool",
        ProtobufType::Int32 => "int32",
        ProtobufType::Int64 => "int64",
        ProtobufType::Uint32 => "uint32",
        ProtobufType::Uint64 => "uint64",
        ProtobufType::Float => "float",
        ProtobufType::Double => "double",
        ProtobufType::Bytes => "bytes",
        _ => "string",
    }
}

#[cfg(test)]
mod tests;
