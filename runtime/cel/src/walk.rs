//! Visits all parts of an expression.

use crate::ast::{Expr, Kind};

/// Calls a function with an expression and all its parts.
pub(crate) fn for_each<'e>(expr: &'e Expr, visit: &mut impl FnMut(&'e Expr)) {
    let mut open = vec![expr];
    while let Some(expr) = open.pop() {
        visit(expr);
        for_parts(expr, &mut |part| open.push(part));
    }
}

/// Calls a function with the parts of an expression, in the order of cel-go.
pub(crate) fn for_parts<'e>(expr: &'e Expr, visit: &mut impl FnMut(&'e Expr)) {
    match &expr.kind {
        Kind::Literal(_) | Kind::Identifier(_) | Kind::Variable(_) | Kind::TypeName(_) => {}
        Kind::Select { operand, .. }
        | Kind::Has { operand, .. }
        | Kind::Not(operand)
        | Kind::Negate(operand) => visit(operand),
        Kind::Index { operand, index, .. } => {
            visit(operand);
            visit(index);
        }
        Kind::Call(call) => call.target.iter().chain(&call.args).for_each(visit),
        Kind::And(terms) | Kind::Or(terms) => terms.iter().for_each(visit),
        Kind::Conditional(parts) => parts.iter().for_each(visit),
        Kind::Binary(_, parts) => parts.iter().for_each(visit),
        Kind::List(items) => items.iter().for_each(|(item, _)| visit(item)),
        Kind::Map(entries) => {
            let parts = entries.iter().flat_map(|entry| [&entry.key, &entry.value]);
            parts.for_each(visit);
        }
        Kind::Fold(fold) => {
            visit(&fold.range);
            fold.filter.iter().for_each(&mut *visit);
            visit(&fold.body);
        }
        Kind::OptionalMap(map) => [&map.target, &map.body].into_iter().for_each(visit),
    }
}
