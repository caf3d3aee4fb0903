//! Verbs of the API.

/// A verb, in the order in which discovery lists them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "the names are the API's own verbs")]
pub enum Verb {
    Create,
    Delete,
    DeleteCollection,
    Get,
    List,
    Patch,
    Update,
    Watch,
}

impl Verb {
    /// Every verb.
    pub const ALL: [Verb; 8] = [
        Verb::Create,
        Verb::Delete,
        Verb::DeleteCollection,
        Verb::Get,
        Verb::List,
        Verb::Patch,
        Verb::Update,
        Verb::Watch,
    ];
    /// The spelling in `verbs(only = [..])`.
    pub fn key(self) -> &'static str {
        match self {
            Verb::DeleteCollection => "delete_collection",
            other => other.as_str(),
        }
    }
    /// The spelling of discovery and RBAC.
    pub fn as_str(self) -> &'static str {
        match self {
            Verb::Create => "create",
            Verb::Delete => "delete",
            Verb::DeleteCollection => "deletecollection",
            Verb::Get => "get",
            Verb::List => "list",
            Verb::Patch => "patch",
            Verb::Update => "update",
            Verb::Watch => "watch",
        }
    }
    /// The name of the Rust variant.
    pub fn variant(self) -> &'static str {
        match self {
            Verb::Create => "Create",
            Verb::Delete => "Delete",
            Verb::DeleteCollection => "DeleteCollection",
            Verb::Get => "Get",
            Verb::List => "List",
            Verb::Patch => "Patch",
            Verb::Update => "Update",
            Verb::Watch => "Watch",
        }
    }
}
