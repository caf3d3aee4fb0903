//! What is known of the parts of an expression: their sizes, and the places in the schema that they come from.

use std::collections::HashMap;

use super::cost::Cost;
use super::paths::{Path, Paths};
use crate::ast::{Expr, Kind, Literal, Variable};
use crate::check::CheckedExpr;
use crate::schema::Decl;
use crate::types::Type;

/// Sizes of the keys and values, or items, of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Parts {
    pub(super) is_list: bool,
    pub(super) keys: Cost,
    pub(super) values: Cost,
}

impl Parts {
    pub(super) fn items(values: Cost) -> Self {
        Self {
            is_list: true,
            keys: Cost::fixed(1),
            values,
        }
    }

    pub(super) fn union(self, other: Self) -> Self {
        Self {
            is_list: self.is_list,
            keys: self.keys.union(other.keys),
            values: self.values.union(other.values),
        }
    }
}

/// The parts of a value that is one of two; known only if both are.
pub(super) fn parts_of_both(one: Option<Parts>, other: Option<Parts>) -> Option<Parts> {
    Some(one?.union(other?))
}

/// What is known of a variable of a macro.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Local {
    pub(super) path: Option<Path>,
    pub(super) size: Option<Cost>,
    pub(super) parts: Option<Parts>,
}

/// An estimate in work, with what it knows.
pub(super) struct Estimator<'c> {
    pub(super) checked: &'c CheckedExpr,
    pub(super) this: &'c Decl,
    pub(super) locals: Vec<Local>,
    pub(super) paths: Paths<'c>,
    /// The paths of values that come from the document, by the id of an expression.
    expr_paths: HashMap<u32, Path>,
    sizes: HashMap<u32, Cost>,
    pub(super) parts: HashMap<u32, Parts>,
}

impl<'c> Estimator<'c> {
    pub(super) fn new(checked: &'c CheckedExpr, this: &'c Decl) -> Self {
        Self {
            checked,
            this,
            locals: Vec::new(),
            paths: Paths::default(),
            expr_paths: HashMap::new(),
            sizes: HashMap::new(),
            parts: HashMap::new(),
        }
    }

    pub(super) fn type_of(&self, expr: &Expr) -> &'c Type {
        &self.checked.types[expr.id as usize]
    }

    pub(super) fn local(&self, expr: &Expr) -> Option<Local> {
        match &expr.kind {
            Kind::Variable(Variable::Local(index)) => self.locals.get(*index as usize).copied(),
            _ => None,
        }
    }

    pub(super) fn path(&self, expr: &Expr) -> Option<Path> {
        match self.local(expr) {
            Some(local) => local.path,
            None => self.expr_paths.get(&expr.id).copied(),
        }
    }

    pub(super) fn parts(&self, expr: &Expr) -> Option<Parts> {
        let known = self.parts.get(&expr.id).copied();
        known.or_else(|| self.local(expr)?.parts)
    }

    /// The size of a value. One that the schema says is kept: a path may lead elsewhere later.
    pub(super) fn size(&mut self, expr: &Expr) -> Option<Cost> {
        let known = self.sizes.get(&expr.id).copied();
        if let Some(size) = known.or_else(|| written_size(expr)) {
            return Some(size);
        }
        if let Some(path) = self.path(expr)
            && let Some(size) = self.paths.size(path, self.this, None)
        {
            self.sizes.insert(expr.id, size);
            return Some(size);
        }
        if self.type_of(expr).is_scalar() {
            return Some(Cost::fixed(1));
        }
        self.local(expr)?.size
    }

    pub(super) fn known_size(&mut self, expr: &Expr) -> Cost {
        self.size(expr).unwrap_or(Cost::UNKNOWN)
    }

    pub(super) fn set_size(&mut self, expr: &Expr, size: Cost) {
        self.sizes.insert(expr.id, size);
    }

    pub(super) fn set_parts(&mut self, expr: &Expr, parts: Option<Parts>) {
        self.parts.extend(parts.map(|parts| (expr.id, parts)));
    }

    pub(super) fn set_path(&mut self, expr: &Expr, path: Option<Path>) {
        self.expr_paths.extend(path.map(|path| (expr.id, path)));
    }
}

/// The size of an expression that says it itself.
fn written_size(expr: &Expr) -> Option<Cost> {
    Some(Cost::fixed(match &expr.kind {
        Kind::Literal(Literal::Text(text)) => text.chars().count() as u64,
        Kind::Literal(Literal::Bytes(bytes)) => bytes.len() as u64,
        Kind::Literal(_) => 1,
        Kind::List(items) => items.len() as u64,
        Kind::Map(entries) => entries.len() as u64,
        _ => return None,
    }))
}
