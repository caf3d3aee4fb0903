//! The type checker: resolves names and functions, and reports expressions that cannot be evaluated.

use std::sync::Arc;

use crate::ast::{Call, Expr, Fold, FoldOp, Kind, Literal, OptionalMap, Variable};
use crate::issue::Issue;
use crate::library::{self, moved};
use crate::literal_format;
use crate::names::{dotted, head_name, type_name, without_dot};
use crate::operator::Operator;
use crate::patterns;
use crate::schema::{Shape, unescape};
use crate::scope::Scope;
use crate::types::{Bindings, Type};
use crate::value::timestamp::{self, Timestamp};

/// Maximum number of issues that are reported.
const MAX_ISSUES: usize = 10;

/// An expression with the types of its parts.
#[derive(Debug)]
pub(crate) struct CheckedExpr {
    pub(crate) expr: Expr,
    /// By the id of an expression.
    pub(crate) types: Vec<Type>,
    /// Whether each variable of the scope is used, by its index.
    pub(crate) used: Vec<bool>,
}

impl CheckedExpr {
    /// The type of the whole expression.
    pub(crate) fn output(&self) -> &Type {
        &self.types[self.expr.id as usize]
    }
}

/// Checks an expression of `nodes` nodes about the variables of a scope.
pub(crate) fn check(mut expr: Expr, nodes: u32, scope: &Scope) -> Result<CheckedExpr, Vec<Issue>> {
    let mut checker = Checker {
        scope,
        locals: Vec::new(),
        bindings: Bindings::default(),
        types: vec![Type::Dyn; nodes as usize],
        issues: Vec::new(),
        literal_issues: Vec::new(),
        used: vec![false; scope.len()],
        is_mixed: false,
    };
    checker.visit(&mut expr);
    // Literals are looked at once the types are right.
    let mut issues = checker.issues;
    if issues.is_empty() {
        issues = checker.literal_issues;
    }
    if !issues.is_empty() {
        issues.truncate(MAX_ISSUES);
        return Err(issues);
    }
    let Checker {
        mut types,
        bindings,
        used,
        ..
    } = checker;
    for one in &mut types {
        *one = bindings.resolve(one, true);
    }
    Ok(CheckedExpr { expr, types, used })
}

/// The types of the elements of a list or a map in an expression.
#[derive(Default)]
struct Elements {
    first: Option<Type>,
    common: Option<Type>,
    is_reported: bool,
}

struct Checker<'d> {
    scope: &'d Scope,
    locals: Vec<(Arc<str>, Type)>,
    bindings: Bindings,
    types: Vec<Type>,
    issues: Vec<Issue>,
    /// Literals that a function would never take.
    literal_issues: Vec<Issue>,
    used: Vec<bool>,
    /// Whether lists and maps may have elements of several types, as in the arguments of `format`.
    is_mixed: bool,
}

impl Checker<'_> {
    fn issue(&mut self, position: u32, text: String) -> Type {
        if self.issues.len() < MAX_ISSUES {
            self.issues.push(Issue::new(position as usize, text));
        }
        Type::Error
    }

    fn no_overload(&mut self, position: u32, name: &str, args: &[Type]) -> Type {
        let shown: Vec<String> = args.iter().map(|arg| self.shown(arg)).collect();
        self.issue(
            position,
            format!(
                "found no matching overload for '{name}' applied to '({})'",
                shown.join(", ")
            ),
        )
    }

    fn no_member(&mut self, position: u32, name: &str, target: &Type, args: &[Type]) -> Type {
        let shown: Vec<String> = args.iter().map(|arg| self.shown(arg)).collect();
        let text = format!(
            "found no matching overload for '{name}' applied to '{}.({})'",
            self.shown(target),
            shown.join(", ")
        );
        self.issue(position, text)
    }

    fn shown(&self, found: &Type) -> String {
        self.bindings.resolve(found, true).to_string()
    }

    fn is_declared(&self, name: &str) -> bool {
        self.scope.find(name).is_some() || self.locals.iter().any(|(local, _)| &**local == name)
    }

    fn visit(&mut self, expr: &mut Expr) -> Type {
        let position = expr.position;
        let found = match &mut expr.kind {
            Kind::Literal(literal) => match literal {
                Literal::Null => Type::Null,
                Literal::Bool(_) => Type::Bool,
                Literal::Int(_) => Type::Int,
                Literal::Uint(_) => Type::Uint,
                Literal::Double(_) => Type::Double,
                Literal::Text(_) => Type::Text,
                Literal::Bytes(_) => Type::Bytes,
            },
            Kind::Identifier(_) | Kind::Select { .. } => self.name_or_select(expr),
            Kind::Variable(_) | Kind::TypeName(_) => Type::Meta,
            Kind::Has { operand, field } => self.has(position, operand, field),
            Kind::Index {
                operand,
                index,
                is_optional,
            } => self.index_of(position, operand, index, *is_optional),
            Kind::Call(_) => self.call(expr),
            Kind::And(terms) | Kind::Or(terms) => self.junction(terms),
            Kind::Conditional(parts) => self.conditional(position, parts),
            Kind::Not(operand) => self.not(position, operand),
            Kind::Negate(operand) => self.negate(position, operand),
            Kind::Binary(operator, operands) => {
                let operator = *operator;
                self.binary_of(position, operator, operands)
            }
            Kind::List(items) => self.list(items),
            Kind::Map(_) => self.map(expr),
            Kind::Fold(fold) => self.fold(position, fold),
            Kind::OptionalMap(map) => self.optional_map(position, map),
        };
        self.types[expr.id as usize] = found.clone();
        found
    }

    #[inline(never)]
    fn has(&mut self, position: u32, operand: &mut Expr, field: &mut Arc<str>) -> Type {
        let operand = self.visit(operand);
        self.unescape(field);
        self.select(position, &operand, field);
        Type::Bool
    }

    /// Names the key that an escaped name stands for.
    fn unescape(&self, field: &mut Arc<str>) {
        if self.scope.is_unescaped()
            && let Some(name) = unescape(field)
        {
            *field = name.into();
        }
    }

    #[inline(never)]
    fn index_of(
        &mut self,
        position: u32,
        operand: &mut Expr,
        index: &mut Expr,
        is_optional: bool,
    ) -> Type {
        let operand = self.visit(operand);
        let index = self.visit(index);
        self.index(position, &operand, &index, is_optional)
    }

    #[inline(never)]
    fn not(&mut self, position: u32, operand: &mut Expr) -> Type {
        let operand = self.visit(operand);
        if !self.bindings.assign(&Type::Bool, &operand) {
            self.no_overload(position, "!_", &[operand]);
        }
        Type::Bool
    }

    #[inline(never)]
    fn negate(&mut self, position: u32, operand: &mut Expr) -> Type {
        let operand = self.visit(operand);
        match self.bindings.head(&operand) {
            Type::Int => Type::Int,
            Type::Double => Type::Double,
            Type::Dyn | Type::Variable(_) => Type::Dyn,
            other => self.no_overload(position, "-_", &[other]),
        }
    }

    #[inline(never)]
    fn binary_of(
        &mut self,
        position: u32,
        operator: Operator,
        [left, right]: &mut [Expr; 2],
    ) -> Type {
        let left = self.visit(left);
        let right = self.visit(right);
        self.binary(position, operator, &left, &right)
    }

    fn name_or_select(&mut self, expr: &mut Expr) -> Type {
        if let Kind::Identifier(written) = &expr.kind {
            let name = without_dot(written);
            // A name with a dot is a global one, so that the variable of a macro with such a name is never found.
            let is_global = written.starts_with('.');
            let mut locals = self.locals.iter();
            let local = locals.rposition(|(local, _)| local == written && !is_global);
            if let Some(index) = local {
                expr.kind = Kind::Variable(Variable::Local(index as u32));
                return self.locals[index].1.clone();
            }
            if let Some((index, found)) = self.scope.find(name) {
                self.used[index] = true;
                expr.kind = Kind::Variable(Variable::Global(index as u32));
                return found;
            }
            if let Some(known) = type_name(name) {
                expr.kind = Kind::TypeName(known);
                return Type::Meta;
            }
            let text = format!("undeclared reference to '{written}' (in container '')");
            return self.issue(expr.position, text);
        }
        if head_name(expr).is_some_and(|name| !self.is_declared(name))
            && let Some(known) = dotted(expr).and_then(|name| type_name(&name))
        {
            expr.kind = Kind::TypeName(known);
            return Type::Meta;
        }
        let position = expr.position;
        let Kind::Select {
            operand,
            field,
            is_optional,
        } = &mut expr.kind
        else {
            return Type::Dyn;
        };
        let operand = self.visit(operand);
        self.unescape(field);
        let found = self.select(position, &operand, field);
        if *is_optional && !matches!(self.bindings.head(&operand), Type::Optional(_)) {
            return Type::Optional(Arc::new(found));
        }
        found
    }

    /// The type of a field.
    fn select(&mut self, position: u32, operand: &Type, field: &str) -> Type {
        match self.bindings.head(operand) {
            Type::Dyn | Type::Variable(_) => Type::Dyn,
            Type::Map(_, values) => (*values).clone(),
            Type::Optional(inner) => Type::Optional(Arc::new(self.select(position, &inner, field))),
            Type::Object(decl) => {
                if let Shape::Object(fields) = &decl.shape
                    && let Some((_, decl)) = fields.named(field)
                {
                    return Type::of(decl);
                }
                self.issue(position, format!("undefined field '{field}'"))
            }
            other => {
                let text = format!("type '{other}' does not support field selection");
                self.issue(position, text)
            }
        }
    }

    fn index(&mut self, position: u32, operand: &Type, index: &Type, is_optional: bool) -> Type {
        let found = match self.bindings.head(operand) {
            Type::Dyn | Type::Variable(_) => Some(Type::Dyn),
            Type::List(items) => self
                .bindings
                .assign(&Type::Int, index)
                .then(|| (*items).clone()),
            Type::Map(keys, values) => self
                .bindings
                .assign(&keys, index)
                .then(|| (*values).clone()),
            Type::Optional(inner) => {
                let found = self.index(position, &inner, index, false);
                return Type::Optional(Arc::new(found));
            }
            _ => None,
        };
        let name = if is_optional { "_[?_]" } else { "_[_]" };
        let Some(found) = found else {
            return self.no_overload(position, name, &[operand.clone(), index.clone()]);
        };
        if is_optional {
            Type::Optional(Arc::new(found))
        } else {
            found
        }
    }

    fn junction(&mut self, terms: &mut [Expr]) -> Type {
        for term in terms {
            let found = self.visit(term);
            self.expect_bool(term.position, &found);
        }
        Type::Bool
    }

    fn conditional(&mut self, position: u32, parts: &mut [Expr; 3]) -> Type {
        let types = parts.each_mut().map(|part| self.visit(part));
        let [condition, first, second] = &types;
        let is_bool = self.bindings.assign(&Type::Bool, condition);
        if is_bool && self.bindings.assign(first, second) {
            return self.join(first, second);
        }
        self.no_overload(position, "_?_:_", &types)
    }

    /// The more general of two types that can be assigned to each other.
    fn join(&self, first: &Type, second: &Type) -> Type {
        match (self.bindings.head(first), self.bindings.head(second)) {
            (Type::Dyn, _) | (_, Type::Dyn) => Type::Dyn,
            (Type::Null, other) | (other, _) => other,
        }
    }

    fn binary(&mut self, position: u32, operator: Operator, left: &Type, right: &Type) -> Type {
        let found = match operator {
            Operator::Equal | Operator::NotEqual => {
                self.bindings.assign(left, right).then_some(Type::Bool)
            }
            Operator::In => {
                let is_possible = match self.bindings.head(right) {
                    Type::List(items) => self.bindings.assign(&items, left),
                    Type::Map(keys, _) => self.bindings.assign(&keys, left),
                    Type::Dyn | Type::Variable(_) => true,
                    _ => false,
                };
                is_possible.then_some(Type::Bool)
            }
            _ => self.arithmetic(operator, left, right),
        };
        match found {
            Some(found) => found,
            None => self.no_overload(position, operator.name(), &[left.clone(), right.clone()]),
        }
    }

    /// The result of an operator of numbers, texts and times, if it has one.
    fn arithmetic(&mut self, operator: Operator, left: &Type, right: &Type) -> Option<Type> {
        use Operator::{Add, Divide, Modulo, Multiply, Subtract};
        use Type::{
            Bool, Bytes, Double, Duration, Dyn, Int, List, Text, Timestamp, Uint, Variable,
        };
        let is_comparison = !matches!(operator, Add | Divide | Modulo | Multiply | Subtract);
        let (mut a, mut b) = (self.bindings.head(left), self.bindings.head(right));
        // A type that is not known yet is that of the other operand.
        if matches!(a, Variable(_)) || matches!(b, Variable(_)) {
            if !self.bindings.assign(&a, &b) {
                return None;
            }
            (a, b) = (self.bindings.head(&a), self.bindings.head(&b));
        }
        if is_comparison {
            let is_number = |one: &Type| matches!(one, Int | Uint | Double | Dyn | Variable(_));
            let is_ordered = |one: &Type| {
                is_number(one) || matches!(one, Bool | Text | Bytes | Duration | Timestamp)
            };
            let is_possible = (is_number(&a) && is_number(&b))
                || (is_ordered(&a) && is_ordered(&b) && self.bindings.assign(&a, &b));
            return is_possible.then_some(Bool);
        }
        match (operator, &a, &b) {
            (Add, Timestamp, Duration) | (Add, Duration, Timestamp) => Some(Timestamp),
            (Subtract, Timestamp, Timestamp) => Some(Duration),
            (Subtract, Timestamp, Duration) => Some(Timestamp),
            (Add | Subtract, Duration, Duration) => Some(Duration),
            (_, Int, Int) => Some(Int),
            (_, Uint, Uint) => Some(Uint),
            (Modulo, Double, _) | (Modulo, _, Double) => None,
            (_, Double, Double) => Some(Double),
            (Add, Text, Text) => Some(Text),
            (Add, Bytes, Bytes) => Some(Bytes),
            (Add, List(_), List(_)) if self.bindings.assign(&a, &b) => {
                let (List(c), List(d)) = (&a, &b) else {
                    return None;
                };
                Some(List(Arc::new(self.join(c, d))))
            }
            (_, Dyn | Variable(_), Int | Uint | Double) => Some(b),
            (_, Int | Uint | Double, Dyn | Variable(_)) => Some(a),
            (Add, Dyn, Text | Bytes | List(_)) => Some(b),
            (Add, Text | Bytes | List(_), Dyn) => Some(a),
            (Add | Subtract, Dyn, Duration | Timestamp) => Some(Dyn),
            (Add | Subtract, Duration | Timestamp, Dyn) => Some(Dyn),
            (_, Dyn | Variable(_), Dyn | Variable(_)) => Some(Dyn),
            _ => None,
        }
    }

    fn list(&mut self, items: &mut [(Expr, bool)]) -> Type {
        let mut elements = Elements::default();
        for (item, is_optional) in items {
            let position = item.position;
            let found = self.visit(item);
            let found = self.without_optional(position, found, *is_optional);
            self.add(&mut elements, position, found);
        }
        let common = elements.common.unwrap_or_else(|| self.bindings.fresh());
        Type::List(Arc::new(common))
    }

    /// The type of an element that is an optional.
    fn without_optional(&mut self, position: u32, found: Type, is_optional: bool) -> Type {
        if !is_optional {
            return found;
        }
        match self.bindings.head(&found) {
            Type::Optional(inner) => (*inner).clone(),
            Type::Dyn => Type::Dyn,
            other => {
                let text = format!("expected type 'optional_type({other})' but found '{other}'");
                self.issue(position, text)
            }
        }
    }

    /// Adds an element to those so far. The first of another type than the first of all is reported, unless they may differ.
    fn add(&mut self, elements: &mut Elements, position: u32, found: Type) {
        let (Some(first), Some(common)) = (&elements.first, &elements.common) else {
            elements.first = Some(found.clone());
            elements.common = Some(found);
            return;
        };
        let joined = if self.bindings.assign(common, &found) {
            self.join(common, &found)
        } else {
            Type::Dyn
        };
        if !self.is_mixed && !elements.is_reported {
            let (expected, shown) = (self.shown(first), self.shown(&found));
            if expected != shown {
                elements.is_reported = true;
                let text = format!("expected type '{expected}' but found '{shown}'");
                self.literal_issues
                    .push(Issue::new(position as usize, text));
            }
        }
        elements.common = Some(joined);
    }

    fn map(&mut self, expr: &mut Expr) -> Type {
        let Kind::Map(entries) = &mut expr.kind else {
            return Type::Dyn;
        };
        let (mut keys, mut values) = (Elements::default(), Elements::default());
        for entry in entries {
            let position = entry.key.position;
            let key = match self.visit(&mut entry.key) {
                // Other keys are errors when the rule runs; their types would grow with every level.
                key @ (Type::Bool | Type::Int | Type::Uint | Type::Text | Type::Dyn) => key,
                _ => Type::Dyn,
            };
            self.add(&mut keys, position, key);
            let position = entry.value.position;
            let value = self.visit(&mut entry.value);
            let value = self.without_optional(position, value, entry.is_optional);
            self.add(&mut values, position, value);
        }
        let keys = keys.common.unwrap_or_else(|| self.bindings.fresh());
        let values = values.common.unwrap_or_else(|| self.bindings.fresh());
        Type::Map(Arc::new(keys), Arc::new(values))
    }

    fn fold(&mut self, position: u32, fold: &mut Fold) -> Type {
        let range = self.visit(&mut fold.range);
        let (key, element, is_map) = match self.bindings.head(&range) {
            Type::List(items) => (Type::Int, (*items).clone(), false),
            Type::Map(keys, values) => ((*keys).clone(), (*values).clone(), true),
            Type::Dyn | Type::Variable(_) => (Type::Dyn, Type::Dyn, false),
            other => {
                let text = format!(
                    "expression of type '{other}' cannot be range of a comprehension (must be list, map, or dynamic)"
                );
                self.issue(fold.range.position, text);
                (Type::Dyn, Type::Dyn, false)
            }
        };
        let single = if is_map { key.clone() } else { element.clone() };
        let depth = self.locals.len();
        match &fold.variables[..] {
            [one] => self.locals.push((Arc::clone(one), single.clone())),
            variables => {
                let types = [key.clone(), element];
                let named = variables.iter().cloned().zip(types);
                self.locals.extend(named);
            }
        }
        let mut filter_type = None;
        if let Some(filter) = &mut fold.filter {
            let found = self.visit(filter);
            filter_type = Some(found);
        }
        let body = self.visit(&mut fold.body);
        self.locals.truncate(depth);
        if let Some(filter) = filter_type {
            let result = match fold.op {
                FoldOp::Map => Type::List(Arc::new(body.clone())),
                _ => Type::Map(Arc::new(key.clone()), Arc::new(body.clone())),
            };
            self.expect_condition(position, &filter, &result);
        }
        match fold.op {
            FoldOp::All | FoldOp::Exists => {
                self.expect_bool(fold.body.position, &body);
                Type::Bool
            }
            FoldOp::ExistsOne => {
                self.expect_condition(position, &body, &Type::Int);
                Type::Bool
            }
            FoldOp::Map => Type::List(Arc::new(body)),
            FoldOp::Filter => {
                let result = Type::List(Arc::new(single));
                self.expect_condition(position, &body, &result);
                result
            }
            FoldOp::TransformMap => Type::Map(Arc::new(key), Arc::new(body)),
            FoldOp::TransformMapEntry => match self.bindings.head(&body) {
                Type::Dyn | Type::Variable(_) => Type::Dyn,
                found @ Type::Map(..) => found,
                other => {
                    let empty = Type::Map(Arc::new(Type::Dyn), Arc::new(Type::Dyn));
                    self.no_overload(position, "cel.@mapInsert", &[empty, other])
                }
            },
            FoldOp::SortBy => match self.bindings.head(&body) {
                Type::List(_) | Type::Map(..) | Type::Object(_) | Type::Optional(_) => {
                    let keys = Type::List(Arc::new(body));
                    self.no_member(position, "@sortByAssociatedKeys", &range, &[keys])
                }
                _ => Type::List(Arc::new(single)),
            },
        }
    }

    fn expect_bool(&mut self, position: u32, found: &Type) {
        if !self.bindings.assign(&Type::Bool, found) {
            let text = format!("expected type 'bool' but found '{}'", self.shown(found));
            self.issue(position, text);
        }
    }

    /// Checks the condition of a macro that keeps or changes a result by it.
    fn expect_condition(&mut self, position: u32, found: &Type, result: &Type) {
        if !self.bindings.assign(&Type::Bool, found) {
            let args = [found.clone(), result.clone(), result.clone()];
            self.no_overload(position, "_?_:_", &args);
        }
    }

    fn optional_map(&mut self, position: u32, map: &mut OptionalMap) -> Type {
        let target = self.visit(&mut map.target);
        let inner = match self.bindings.head(&target) {
            Type::Optional(inner) => (*inner).clone(),
            Type::Dyn | Type::Variable(_) => Type::Dyn,
            other => {
                self.no_member(position, "hasValue", &other, &[]);
                self.no_member(position, "value", &other, &[])
            }
        };
        self.locals.push((Arc::clone(&map.variable), inner));
        let body = self.visit(&mut map.body);
        self.locals.pop();
        if !map.is_flat {
            return Type::Optional(Arc::new(body));
        }
        match self.bindings.head(&body) {
            found @ (Type::Optional(_) | Type::Dyn | Type::Variable(_)) => found,
            other => {
                let none = Type::Optional(Arc::new(Type::Dyn));
                self.no_overload(position, "_?_:_", &[Type::Bool, other, none])
            }
        }
    }

    fn call(&mut self, expr: &mut Expr) -> Type {
        let position = expr.position;
        let Kind::Call(call) = &mut expr.kind else {
            return Type::Dyn;
        };
        self.resolve_namespace(call);
        let mut args: Vec<Type> = Vec::with_capacity(call.args.len() + 1);
        let is_member = call.target.is_some();
        if let Some(target) = &mut call.target {
            args.push(self.visit(target));
        }
        let outer = self.is_mixed;
        self.is_mixed |= &*call.name == "format";
        for part in &mut call.args {
            args.push(self.visit(part));
        }
        self.is_mixed = outer;
        let Some(function) = library::function(without_dot(&call.name)) else {
            let is_known = library::AUTHORIZATION.contains(&&*call.name);
            if let Some((target, rest)) = args.split_first().filter(|_| is_known) {
                // No value of these rules has such functions, but one of an unknown type might.
                return match self.bindings.head(target) {
                    Type::Dyn => Type::Dyn,
                    _ if is_member => self.no_member(position, &call.name, target, rest),
                    _ => self.no_overload(position, &call.name, &args),
                };
            }
            let text = format!("undeclared reference to '{}' (in container '')", call.name);
            return self.issue(position, text);
        };
        call.function = Some(function);
        if call.name.starts_with('.') {
            call.name = without_dot(&call.name).into();
        }
        self.check_literals(call);
        if &*call.name == "format" {
            self.check_format(call, position);
        }
        let mut results: Vec<(usize, Type)> = Vec::new();
        for (index, overload) in function.overloads.iter().enumerate() {
            if overload.is_member != is_member || overload.params.len() != args.len() {
                continue;
            }
            let mark = self.bindings.mark();
            if let Some(found) = self.apply(overload, &args) {
                let found = self.bindings.resolve(&found, false);
                results.push((index, found));
            }
            self.bindings.rollback(mark);
        }
        match &results[..] {
            [] => {
                let name = Arc::clone(&call.name);
                match args.split_first() {
                    Some((target, rest)) if is_member => {
                        self.no_member(position, &name, target, rest)
                    }
                    _ => self.no_overload(position, &name, &args),
                }
            }
            [(index, _)] => self
                .apply(&function.overloads[*index], &args)
                .unwrap_or(Type::Dyn),
            [(_, first), rest @ ..] => {
                let text = first.to_string();
                let is_same = rest.iter().all(|(_, other)| other.to_string() == text);
                if is_same { first.clone() } else { Type::Dyn }
            }
        }
    }

    /// The result of an overload for arguments, if it takes them.
    fn apply(&mut self, overload: &library::Overload, args: &[Type]) -> Option<Type> {
        let base = self.bindings.len();
        for _ in 0..overload.variables {
            self.bindings.fresh();
        }
        let mut pairs = overload.params.iter().zip(args);
        pairs
            .all(|(param, arg)| self.bindings.assign(&moved(param, base), arg))
            .then(|| moved(&overload.result, base))
    }

    /// Makes `sets.contains(a, b)` a call of a function with this name.
    fn resolve_namespace(&self, call: &mut Call) {
        let Some(target) = &call.target else { return };
        if head_name(target).is_none_or(|name| self.is_declared(name)) {
            return;
        }
        let full = dotted(target).map(|name| format!("{name}.{}", call.name));
        if let Some(full) = full.filter(|full| library::function(full).is_some()) {
            call.name = full.into();
            call.target = None;
        }
    }

    /// Reports a literal that a function would never take. As in cel-go it is the first argument: the pattern of a member function,
    /// and the text of a global one, whose pattern is looked at with the constants of the program.
    fn check_literals(&mut self, call: &Call) {
        let Some(Expr {
            kind: Kind::Literal(literal),
            position,
            ..
        }) = call.args.first()
        else {
            return;
        };
        let is_valid = match (&*call.name, literal) {
            ("matches", Literal::Text(text)) => patterns::check(text).is_ok(),
            ("duration", Literal::Text(text)) => timestamp::parse_duration(text).is_some(),
            ("duration", Literal::Int(_)) => false,
            ("timestamp", Literal::Text(text)) => timestamp::parse_timestamp(text).is_some(),
            ("timestamp", Literal::Int(seconds)) => Timestamp::at(*seconds).is_some(),
            _ => true,
        };
        if !is_valid {
            let text = format!("invalid {} argument", call.name);
            self.literal_issues
                .push(Issue::new(*position as usize, text));
        }
    }

    /// Reports a literal template that does not fit its literal list of arguments.
    fn check_format(&mut self, call: &Call, position: u32) {
        let template = call.target.as_ref().map(|target| &target.kind);
        let args = call.args.first().map(|list| &list.kind);
        if let (Some(Kind::Literal(Literal::Text(template))), Some(Kind::List(items))) =
            (template, args)
        {
            let type_of = |part: &Expr| self.bindings.head(&self.types[part.id as usize]);
            let problem = literal_format::problem(template, items, position, &type_of);
            self.literal_issues.extend(problem);
        }
    }
}
