//! A compiled expression.

use std::sync::LazyLock;

use apiloom_schema::regexp::Pattern;

use crate::ast::{Expr, Kind, Literal, Variable};
use crate::check::check;
use crate::estimate::{Cost, estimate};
use crate::issue::{self, Issue};
use crate::meter::Meter;
use crate::parser::parse;
use crate::patterns::{self, MAX_KEPT, Patterns};
use crate::run::{Run, is_constant};
use crate::scope::Scope;
use crate::stop::Stop;
use crate::types::Type;
use crate::value::{Outcome, Value};
use crate::walk::{for_each, for_parts};

/// Why an expression has no program.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// Problems of syntax and types, one line or more each.
    Compilation(String),
    /// A part that is evaluated at once has no value.
    Instantiation(String),
}

impl From<Refusal> for String {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Compilation(text) | Refusal::Instantiation(text) => text,
        }
    }
}

/// A compiled expression.
#[derive(Debug)]
pub(crate) struct Program {
    expr: Expr,
    patterns: Patterns,
    output: Type,
    /// Whether each variable of the scope is used, by its index.
    used: Vec<bool>,
    /// The least and the largest cost of a run, if it is estimated.
    pub(crate) cost: Cost,
}

impl Program {
    /// Compiles an expression about the variables of a scope. `kept` is the memory of the patterns of the schema.
    ///
    /// # Errors
    /// [`Refusal`].
    pub(crate) fn compile(source: &str, scope: &Scope, kept: &mut usize) -> Result<Self, Refusal> {
        let fail = |issues: &[Issue]| Refusal::Compilation(issue::shown(issues, source));
        let (expr, nodes) = parse(source).map_err(|all| fail(&all))?;
        let checked = check(expr, nodes, scope).map_err(|all| fail(&all))?;
        check_constants(&checked.expr).map_err(Refusal::Instantiation)?;
        let estimated = scope.estimated();
        let cost = estimated.map_or(Cost::UNKNOWN, |decl| estimate(&checked, decl));
        let output = checked.output().clone();
        let patterns = literal_patterns(&checked.expr, kept);
        Ok(Self {
            expr: checked.expr,
            patterns,
            output,
            used: checked.used,
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

    /// Whether a field of a variable of the scope is named somewhere.
    pub(crate) fn names_field(&self, index: usize, wanted: &str) -> bool {
        let is_variable = |operand: &Expr| {
            let Kind::Variable(Variable::Global(found)) = operand.kind else {
                return false;
            };
            found as usize == index
        };
        let mut is_named = false;
        for_each(&self.expr, &mut |part| {
            is_named |= match &part.kind {
                Kind::Select { operand, field, .. } | Kind::Has { operand, field } => {
                    is_variable(operand) && &**field == wanted
                }
                Kind::Index { operand, index, .. } => {
                    let is_wanted = matches!(&index.kind, Kind::Literal(Literal::Text(text)) if &**text == wanted);
                    is_variable(operand) && is_wanted
                }
                _ => false,
            };
        });
        is_named
    }

    /// The type of the result.
    pub(crate) fn output(&self) -> &Type {
        &self.output
    }

    /// Whether a variable of the scope is used.
    pub(crate) fn uses(&self, index: usize) -> bool {
        self.used.get(index).copied().unwrap_or_default()
    }

    /// Evaluates the expression up to a cost, with the values of the variables in the order of the scope. Returns the cost too.
    pub(crate) fn run<'a>(&'a self, values: &'a [Value<'a>], limit: u64) -> (Outcome<'a>, u64) {
        let mut run = Run::new(values, Meter::new(&self.patterns, limit));
        let found = run.value(&self.expr);
        (found, run.meter.cost())
    }
}

/// The literal patterns of an expression. `kept` is the memory of those of the schema so far, in bytes.
fn literal_patterns(expr: &Expr, kept: &mut usize) -> Patterns {
    let mut found = Patterns::new();
    for_each(expr, &mut |part| {
        let Kind::Call(call) = &part.kind else { return };
        if !matches!(&*call.name, "matches" | "find" | "findAll") {
            return;
        }
        for arg in &call.args {
            if let Kind::Literal(Literal::Text(text)) = &arg.kind
                && !found.contains_key(&**text)
                && let Ok(pattern) = Pattern::new(text)
                && *kept + pattern.cost() <= MAX_KEPT
            {
                *kept += pattern.cost();
                found.insert((&**text).into(), pattern);
            }
        }
    });
    found
}

/// Evaluates the conversions of values that are known, and looks at the patterns of searches, parts before the whole, as cel-go does
/// when it plans a program.
fn check_constants(expr: &Expr) -> Result<(), String> {
    let mut found = Ok(());
    for_parts(expr, &mut |part| {
        if found.is_ok() {
            found = check_constants(part);
        }
    });
    found?;
    let Kind::Call(call) = &expr.kind else {
        return Ok(());
    };
    if is_constant(expr) {
        return constant(expr).map(drop);
    }
    if !matches!(&*call.name, "matches" | "find" | "findAll") {
        return Ok(());
    }
    let pattern = call.args.get(usize::from(call.target.is_none()));
    match pattern.filter(|pattern| is_constant(pattern)).map(constant) {
        Some(Ok(Value::Text(pattern))) => patterns::check(pattern.as_str()),
        // Another value is an error when the rule runs.
        Some(Ok(_) | Err(_)) | None => Ok(()),
    }
}

/// The value of an expression that is known.
fn constant(expr: &Expr) -> Result<Value<'_>, String> {
    static NO_PATTERNS: LazyLock<Patterns> = LazyLock::new(Patterns::new);
    let mut run = Run::new(&[], Meter::new(&NO_PATTERNS, u64::MAX));
    run.value(expr).map_err(|stop| match stop {
        Stop::Error(text) => text.into_owned(),
        // The rule is not wanted any more.
        Stop::Cost => String::new(),
    })
}
