//! The fields of documents by their schema: a view of the schema, which has the functions of this module.

use crate::schema::Schema;
use crate::schema::node::Node;

/// Which fields the documents of a schema have, and what follows for their owners.
#[derive(Clone, Copy, Debug)]
pub struct Ownership<'a>(&'a Node);

impl<'a> Ownership<'a> {
    pub(super) fn root(self) -> &'a Node {
        self.0
    }
}

impl Schema {
    /// The ownership of fields in the documents of this schema.
    pub fn ownership(&self) -> Ownership<'_> {
        Ownership(self.root())
    }
}
