//! The storage keys of a kind, and their segments.

use apiloom_meta::field::go_quote;
use apiloom_meta::kind::Scope;
use apiloom_meta::{ApiError, GroupResource, ResourceDef};

/// The storage keys of a kind: `PREFIX/GROUP/RESOURCE/NAMESPACE/NAME`. Those of the core group have no segment for the group,
/// those of a kind of the cluster none for the namespace; a store path of the definition replaces group and resource.
#[derive(Clone, Debug)]
pub(crate) struct Keys {
    /// The prefix of all keys; ends in `/`.
    prefix: String,
    scope: Scope,
}

/// Initial capacity for a key, in bytes; enough for most.
const KEY_BYTES: usize = 128;

impl Keys {
    /// The keys of a resource, whose group and name are those of its hub; `def` is the definition of the storage version.
    pub(crate) fn new(common_prefix: &str, resource: &GroupResource, def: &ResourceDef) -> Self {
        let GroupResource { group, resource } = resource;
        let prefix = match &def.store_path {
            Some(path) => format!("{common_prefix}/{path}/"),
            None if group.is_empty() => format!("{common_prefix}/{resource}/"),
            None => format!("{common_prefix}/{group}/{resource}/"),
        };
        let scope = def.scope;
        Self { prefix, scope }
    }

    /// Prefix of the keys of all objects; ends in `/`.
    pub(crate) fn of_all(&self) -> &str {
        &self.prefix
    }

    /// Prefix of the keys of all objects, or of those in a namespace; ends in `/`.
    pub(crate) fn prefix(&self, namespace: Option<&str>) -> String {
        // Built without `format!`, since every request needs it.
        let mut prefix = String::with_capacity(KEY_BYTES);
        prefix.push_str(&self.prefix);
        if let Some(namespace) = namespace.filter(|_| self.scope == Scope::Namespaced) {
            prefix.push_str(namespace);
            prefix.push('/');
        }
        prefix
    }

    /// The key of an object.
    ///
    /// # Errors
    /// BadRequest if the name or the namespace cannot be a segment of a key.
    pub(crate) fn key(&self, namespace: Option<&str>, name: &str) -> Result<String, ApiError> {
        if self.scope == Scope::Namespaced {
            check_segment("Namespace", namespace.unwrap_or_default())?;
        }
        check_segment("Name", name)?;
        Ok(self.unchecked(namespace, name))
    }

    /// The key of an object whose name and namespace are segments of a key, or of none.
    pub(crate) fn unchecked(&self, namespace: Option<&str>, name: &str) -> String {
        let mut key = self.prefix(namespace);
        key.push_str(name);
        key
    }
}

/// The last two segments of an object's key: its namespace, which is only meaningful for a namespaced kind, and its
/// name.
pub(crate) fn namespace_and_name(key: &str) -> (&str, &str) {
    let mut segments = key.rsplit('/');
    let name = segments.next().unwrap_or_default();
    (segments.next().unwrap_or_default(), name)
}

/// Checks that a name can be one segment of a key. Reads need this check too: their keys are built from what the
/// client sent.
fn check_segment(what: &str, segment: &str) -> Result<(), ApiError> {
    if segment.is_empty() {
        return Err(ApiError::bad_request(format!("{what} parameter required.")));
    }
    let mut problems = Vec::new();
    if segment == "." || segment == ".." {
        problems.push(format!("may not be '{segment}'"));
    }
    problems.extend(
        ['/', '%']
            .into_iter()
            .filter(|c| segment.contains(*c))
            .map(|c| format!("may not contain '{c}'")),
    );
    if problems.is_empty() {
        return Ok(());
    }
    Err(ApiError::bad_request(format!(
        "{what} parameter invalid: {}: {}",
        go_quote(segment),
        problems.join(";")
    )))
}
