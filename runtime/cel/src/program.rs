//! A compiled expression.

use std::sync::Arc;

use crate::ast::Expr;
use crate::check::check;
use crate::estimate::{Cost, estimate};
use crate::issue::{self, Issue};
use crate::parser::parse;
use crate::patterns::{self, Patterns};
use crate::run::{Outcome, Run};
use crate::schema::Decl;
use crate::types::Type;
use crate::value::Value;

/// A compiled expression.
#[derive(Debug)]
pub(crate) struct Program {
    expr: Expr,
    patterns: Patterns,
    output: Type,
    pub(crate) uses_old: bool,
    /// The least and the largest cost of a run, for values of the schema.
    pub(crate) cost: Cost,
}

impl Program {
    /// Compiles an expression about a value. `kept` counts the patterns of the schema.
    ///
    /// # Errors
    /// The problems of syntax and types, one line or more each.
    pub(crate) fn compile(
        source: &str,
        this: &Arc<Decl>,
        has_optional_old: bool,
        kept: &mut usize,
    ) -> Result<Self, String> {
        let fail = |issues: &[Issue]| issue::shown(issues, source);
        let (expr, nodes) = parse(source).map_err(|issue| fail(&[issue]))?;
        let checked = check(expr, nodes, this, has_optional_old).map_err(|all| fail(&all))?;
        let cost = estimate(&checked, this);
        let output = checked.output().clone();
        let patterns = patterns::literals(&checked.expr, kept);
        Ok(Self {
            expr: checked.expr,
            patterns,
            output,
            uses_old: checked.uses_old,
            cost,
        })
    }

    /// Whether the result is a bool.
    pub(crate) fn is_condition(&self) -> bool {
        matches!(self.output, Type::Bool)
    }

    /// Whether the result is a string.
    pub(crate) fn is_text(&self) -> bool {
        matches!(self.output, Type::Text)
    }

    /// Evaluates the expression up to a cost. Returns the cost too.
    pub(crate) fn run<'a>(
        &'a self,
        this: Value<'a>,
        old: Option<Value<'a>>,
        limit: u64,
    ) -> (Outcome<'a>, u64) {
        let mut run = Run::new(this, old, &self.patterns, limit);
        let found = run.value(&self.expr);
        (found, run.cost())
    }
}
