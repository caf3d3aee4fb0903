//! The identity of list items in compiled kinds: no two items have the same.

use std::collections::HashSet;

use serde_json::Value;

use super::equality::{Identity, identity};
use super::node::{ListType, Node};
use super::walk::Walk;
use super::walk_path::Path;
use crate::field::FieldError;

impl Walk {
    /// Checks that items of sets and keys of map lists are unique, and that keys are present.
    pub(super) fn twins(
        &mut self,
        node: &Node,
        list_type: &ListType,
        items: &[Value],
        path: &Path<'_>,
    ) {
        // Owners without a uid are refused with the rest of the metadata.
        if let ListType::Map(keys) = list_type
            && !node.twins_allowed
        {
            let fields = items
                .iter()
                .enumerate()
                .filter_map(|(index, item)| Some((index, item.as_object()?)));
            for (index, fields) in fields {
                let declared = |key: &str| {
                    node.items
                        .as_ref()
                        .and_then(|items| items.property(key))
                        .is_some_and(|p| p.required)
                };
                // A missing required field is reported where the item itself is validated.
                for key in keys
                    .iter()
                    .filter(|key| fields.get(*key).is_none_or(Value::is_null) && !declared(key))
                {
                    self.fail(|| {
                        FieldError::required(
                            &Path::Field(&Path::Index(path, index), key).field(),
                            "",
                        )
                    });
                }
            }
        }
        let by_identity = !node.twins_allowed && *list_type != ListType::Atomic;
        if items.len() < 2 || !(by_identity || node.rules.unique) {
            return;
        }
        // Items without another identity are identified by their value.
        let told_by = if by_identity {
            list_type
        } else {
            &ListType::Set
        };
        let mut seen: HashSet<Identity<'_>> = HashSet::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            if !seen.insert(identity(node, told_by, item)) {
                self.fail(|| {
                    FieldError::duplicate(
                        &Path::Index(path, index).field(),
                        shown_identity(list_type, item),
                    )
                });
            }
        }
    }
}

/// The part of an item that identifies a duplicate.
fn shown_identity(list_type: &ListType, item: &Value) -> Value {
    match (list_type, item) {
        (ListType::Map(keys), Value::Object(fields)) => Value::Object(
            keys.iter()
                .filter_map(|key| Some((key.clone(), fields.get(key)?.clone())))
                .collect(),
        ),
        _ => item.clone(),
    }
}
