//! The variables that an expression may name.

use std::sync::Arc;

use crate::schema::Decl;
use crate::types::Type;

/// The variables of an expression, in the order in which their values are given.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scope {
    variables: Vec<Declaration>,
    /// Whether the largest cost is estimated, for values of the type of the first variable.
    is_estimated: bool,
    /// Whether a field of a map may be named by its escaped name.
    is_unescaped: bool,
}

/// A variable with its type.
#[derive(Clone, Debug)]
struct Declaration {
    name: &'static str,
    decl: Arc<Decl>,
    is_optional: bool,
}

impl Scope {
    /// The scope of a rule about a value: `self`, and `oldSelf`, which may be an optional.
    pub(crate) fn of_rule(this: &Arc<Decl>, has_optional_old: bool) -> Self {
        let declared = |name, is_optional| Declaration {
            name,
            decl: Arc::clone(this),
            is_optional,
        };
        Self {
            variables: vec![
                declared("self", false),
                declared("oldSelf", has_optional_old),
            ],
            is_estimated: true,
            is_unescaped: false,
        }
    }

    /// Declares one more variable.
    pub(crate) fn declare(&mut self, name: &'static str, decl: Arc<Decl>) {
        self.variables.push(Declaration {
            name,
            decl,
            is_optional: false,
        });
    }

    /// Lets fields of maps be named by their escaped names: `a__dot__b` is the key `a.b`.
    pub(crate) fn unescape(&mut self) {
        self.is_unescaped = true;
    }

    pub(crate) fn is_unescaped(&self) -> bool {
        self.is_unescaped
    }

    pub(crate) fn len(&self) -> usize {
        self.variables.len()
    }

    /// The index and the type of a variable.
    pub(crate) fn find(&self, name: &str) -> Option<(usize, Type)> {
        let index = self.variables.iter().position(|one| one.name == name)?;
        let Declaration {
            decl, is_optional, ..
        } = &self.variables[index];
        let found = Type::of(decl);
        Some(if *is_optional {
            (index, Type::Optional(Arc::new(found)))
        } else {
            (index, found)
        })
    }

    /// The types of the values, in order.
    pub(crate) fn decls(&self) -> impl Iterator<Item = &Arc<Decl>> {
        self.variables.iter().map(|one| &one.decl)
    }

    /// The type by which costs are estimated.
    pub(crate) fn estimated(&self) -> Option<&Arc<Decl>> {
        self.decls().next().filter(|_| self.is_estimated)
    }
}
