//! Reads the structure of a configuration from its document, strictly: unknown fields and values of wrong types are problems.
//!
//! It is read by hand, since the errors of a derived decoder show the value, which may be a secret.

use apiloom_meta::{FieldPath, GroupResource};
use serde_json::{Map, Value};
use zeroize::Zeroizing;

use super::algorithm::Algorithm;

/// Some resources and the providers of their values.
pub(super) struct Entry {
    /// As they are written: `secrets`, `widgets.example.com`, `*.example.com`, `*.` or `*.*`.
    pub(super) resources: Vec<String>,
    pub(super) providers: Vec<ProviderDocument>,
}

/// An element of `providers`; a valid one has one of them.
#[derive(Default)]
pub(super) struct ProviderDocument {
    pub(super) aescbc: Option<Vec<KeyDocument>>,
    pub(super) aesgcm: Option<Vec<KeyDocument>>,
    pub(super) secretbox: Option<Vec<KeyDocument>>,
    pub(super) has_identity: bool,
    pub(super) has_kms: bool,
}

/// A key as it is written.
pub(super) struct KeyDocument {
    pub(super) name: String,
    /// In base64; there is no `Debug` that could show it.
    pub(super) secret: Zeroizing<String>,
}

impl Entry {
    /// Its resources, parsed.
    pub(super) fn group_resources(&self) -> impl Iterator<Item = GroupResource> {
        self.resources.iter().map(|text| group_resource(text))
    }
}

impl ProviderDocument {
    /// The lists of keys that it has, each with its algorithm.
    pub(super) fn lists(&self) -> impl Iterator<Item = (Algorithm, &[KeyDocument])> {
        let lists = [
            (Algorithm::AesGcm, &self.aesgcm),
            (Algorithm::AesCbc, &self.aescbc),
            (Algorithm::SecretBox, &self.secretbox),
        ];
        lists
            .into_iter()
            .filter_map(|(algorithm, keys)| Some((algorithm, keys.as_deref()?)))
    }
}

/// The group and the resource of an entry, which are separated by the first dot.
pub(super) fn group_resource(text: &str) -> GroupResource {
    let (resource, group) = text.split_once('.').unwrap_or((text, ""));
    GroupResource::new(group, resource)
}

/// What is wrong with the structure so far.
pub(super) struct Document {
    problems: Vec<String>,
}

impl Document {
    /// With the problems that decoding has found, such as fields that are given twice.
    pub(super) fn new(problems: Vec<String>) -> Self {
        Self { problems }
    }

    /// # Errors
    /// All problems.
    pub(super) fn finish(self) -> Result<(), String> {
        if self.problems.is_empty() {
            return Ok(());
        }
        Err(self.problems.join(", "))
    }

    /// The `apiVersion` and the kind of a configuration, and its entries.
    pub(super) fn configuration(&mut self, value: &Value) -> ((String, String), Vec<Entry>) {
        let root = FieldPath::root();
        let known = ["apiVersion", "kind", "resources"];
        let Some(fields) = self.object(value, &root, &known) else {
            return Default::default();
        };
        let api_version = self.text(fields, &root, "apiVersion");
        let kind = self.text(fields, &root, "kind");
        let entries = self.list(fields, &root, "resources");
        let entries = entries.iter().enumerate();
        let path = root.child("resources");
        let entries = entries.filter_map(|(index, entry)| self.entry(entry, &path.index(index)));
        let entries = entries.collect();
        ((api_version, kind), entries)
    }

    fn entry(&mut self, value: &Value, path: &FieldPath) -> Option<Entry> {
        let fields = self.object(value, path, &["resources", "providers"])?;
        let names = path.child("resources");
        let mut resources = Vec::new();
        for (index, name) in self.list(fields, path, "resources").iter().enumerate() {
            match name {
                Value::String(name) => resources.push(name.clone()),
                _ => self.mistyped(&names.index(index), "a string"),
            }
        }
        let list = self.list(fields, path, "providers");
        let path = path.child("providers");
        let providers = list.iter().enumerate();
        let providers =
            providers.filter_map(|(index, provider)| self.provider(provider, &path.index(index)));
        Some(Entry {
            resources,
            providers: providers.collect(),
        })
    }

    fn provider(&mut self, value: &Value, path: &FieldPath) -> Option<ProviderDocument> {
        let known = ["aescbc", "aesgcm", "identity", "kms", "secretbox"];
        let fields = self.object(value, path, &known)?;
        let given = |name: &str| fields.get(name).filter(|value| !value.is_null());
        if let Some(identity) = given("identity") {
            self.object(identity, &path.child("identity"), &[]);
        }
        let mut keys = |name: &str| given(name).map(|value| self.keys(value, &path.child(name)));
        Some(ProviderDocument {
            aescbc: keys("aescbc"),
            aesgcm: keys("aesgcm"),
            secretbox: keys("secretbox"),
            has_identity: given("identity").is_some(),
            has_kms: given("kms").is_some(),
        })
    }

    fn keys(&mut self, value: &Value, path: &FieldPath) -> Vec<KeyDocument> {
        let Some(fields) = self.object(value, path, &["keys"]) else {
            return Vec::new();
        };
        let list = self.list(fields, path, "keys");
        let path = path.child("keys");
        let mut keys = Vec::with_capacity(list.len());
        for (index, key) in list.iter().enumerate() {
            let path = path.index(index);
            if let Some(fields) = self.object(key, &path, &["name", "secret"]) {
                keys.push(KeyDocument {
                    name: self.text(fields, &path, "name"),
                    secret: Zeroizing::new(self.text(fields, &path, "secret")),
                });
            }
        }
        keys
    }

    /// The fields of a map; those that are not known are problems.
    fn object<'v>(
        &mut self,
        value: &'v Value,
        path: &FieldPath,
        known: &[&str],
    ) -> Option<&'v Map<String, Value>> {
        let Value::Object(fields) = value else {
            self.mistyped(path, "a map");
            return None;
        };
        let names = fields.keys().filter(|name| !known.contains(&name.as_str()));
        for name in names {
            let field = path.child(name);
            self.problems
                .push(format!("unknown field {:?}", field.as_str()));
        }
        Some(fields)
    }

    /// A list of a map; empty if it is absent.
    fn list<'v>(
        &mut self,
        fields: &'v Map<String, Value>,
        path: &FieldPath,
        name: &str,
    ) -> &'v [Value] {
        match fields.get(name) {
            Some(Value::Array(list)) => list,
            None | Some(Value::Null) => &[],
            Some(_) => {
                self.mistyped(&path.child(name), "a list");
                &[]
            }
        }
    }

    /// A text of a map; empty if it is absent.
    fn text(&mut self, fields: &Map<String, Value>, path: &FieldPath, name: &str) -> String {
        match fields.get(name) {
            Some(Value::String(text)) => text.clone(),
            None | Some(Value::Null) => String::new(),
            Some(_) => {
                self.mistyped(&path.child(name), "a string");
                String::new()
            }
        }
    }

    fn mistyped(&mut self, path: &FieldPath, wanted: &str) {
        self.problems
            .push(format!("{}: it must be {wanted}", place(path)));
    }
}

/// A place in the document.
fn place(path: &FieldPath) -> &str {
    match path.as_str() {
        "" => "the document",
        path => path,
    }
}
