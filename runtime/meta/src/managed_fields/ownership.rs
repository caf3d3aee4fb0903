//! The fields of documents by their schema: a view of the schema, which has the functions of this module.

use apiloom_schema::tree::Node;

use crate::schema::Schema;

/// Which fields the documents of a schema have, and what follows for their owners.
#[derive(Clone, Copy, Debug)]
pub struct Ownership<'a>(&'a Node);

impl<'a> Ownership<'a> {
    /// The ownership of fields in the documents of a schema.
    pub fn of(schema: &'a Schema) -> Self {
        Self(schema.root())
    }

    pub(super) fn root(self) -> &'a Node {
        self.0
    }
}
