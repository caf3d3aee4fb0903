//! Visits all parts of an expression.

use crate::ast::{Expr, Kind};

/// Calls a function with an expression and all its parts.
pub(crate) fn for_each<'e>(expr: &'e Expr, visit: &mut impl FnMut(&'e Expr)) {
    let mut open = vec![expr];
    while let Some(expr) = open.pop() {
        visit(expr);
        match &expr.kind {
            Kind::Literal(_) | Kind::Identifier(_) | Kind::Variable(_) | Kind::TypeName(_) => {}
            Kind::Select { operand, .. }
            | Kind::Has { operand, .. }
            | Kind::Not(operand)
            | Kind::Negate(operand) => open.push(operand),
            Kind::Index { operand, index, .. } => open.extend([&**operand, &**index]),
            Kind::Call(call) => open.extend(call.target.iter().chain(&call.args)),
            Kind::And(terms) | Kind::Or(terms) => open.extend(terms),
            Kind::Conditional(parts) => open.extend(parts.iter()),
            Kind::Binary(_, parts) => open.extend(parts.iter()),
            Kind::List(items) => open.extend(items.iter().map(|(item, _)| item)),
            Kind::Map(entries) => {
                open.extend(entries.iter().flat_map(|entry| [&entry.key, &entry.value]));
            }
            Kind::Fold(fold) => {
                open.extend([&fold.range, &fold.body]);
                open.extend(&fold.filter);
            }
            Kind::OptionalMap(map) => open.extend([&map.target, &map.body]),
        }
    }
}
