//! What a user may do, as a list.

/// What a user may do in a namespace and outside of all. [`Authorizer::permissions`](super::Authorizer::permissions) adds to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Permissions {
    /// What the user may do with resources.
    pub resources: Vec<ResourcePermission>,
    /// What the user may do with other paths.
    pub paths: Vec<PathPermission>,
    /// Why there may be more.
    pub errors: Vec<String>,
    /// Whether there may be more.
    pub is_incomplete: bool,
}

/// Verbs on resources.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourcePermission {
    /// The verbs; `*` for all.
    pub verbs: Vec<String>,
    /// The groups; the empty one is core, `*` is all.
    pub api_groups: Vec<String>,
    /// The resources, with their subresources as `pods/log`; `*` for all.
    pub resources: Vec<String>,
    /// The names of the objects; none for all.
    pub resource_names: Vec<String>,
}

/// Methods on paths that are no resources.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PathPermission {
    /// The methods, in lower case; `*` for all.
    pub verbs: Vec<String>,
    /// The paths; `*` at the end is any rest.
    pub paths: Vec<String>,
}

impl Permissions {
    /// Adds that the user may get these paths.
    pub(super) fn add_paths(&mut self, verb: &str, paths: &[&str]) {
        self.paths.push(PathPermission {
            verbs: vec![verb.to_owned()],
            paths: paths.iter().map(|path| (*path).to_owned()).collect(),
        });
    }
}
