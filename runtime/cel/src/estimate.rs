//! The largest cost that a rule can have for values of its schema, estimated as kube-apiserver does: by the steps of
//! cel-go 0.26.0, in their order, with what it overlooks. `tests/costs.json` has its answers.

mod cost;
mod functions;
mod known;
mod paths;

use std::sync::Arc;

pub(crate) use self::cost::Cost;
use self::functions::SizedCall;
use self::known::{Estimator, Local, Parts, parts_of_both};
use self::paths::{Path, Step};
use crate::ast::{Call, Entry, Expr, Fold, FoldOp, Kind, OptionalMap, Variable};
use crate::check::CheckedExpr;
use crate::meter::{LIST_COST, MAP_COST};
use crate::operator::Operator;
use crate::schema::Decl;
use crate::types::{Opaque, Type};

/// The size of a named format.
const FORMAT: Cost = Cost { min: 1, max: 64 };

/// The cost of an expression about a value.
pub(crate) fn estimate(checked: &CheckedExpr, this: &Arc<Decl>) -> Cost {
    let mut estimator = Estimator::new(checked, this);
    estimator.cost(&checked.expr)
}

/// What is known of an argument once its cost is estimated.
struct Arg {
    cost: Cost,
    size: Option<Cost>,
}

impl Arg {
    fn known(&self) -> Cost {
        self.size.unwrap_or(Cost::UNKNOWN)
    }
}

impl<'c> Estimator<'c> {
    /// Estimates an argument: its size is looked at before that of the next one.
    fn arg(&mut self, expr: &'c Expr) -> Arg {
        let cost = self.cost(expr);
        let size = self.size(expr);
        Arg { cost, size }
    }

    fn cost(&mut self, expr: &'c Expr) -> Cost {
        match &expr.kind {
            Kind::Literal(_) => Cost::default(),
            Kind::Variable(variable) => {
                let path = match variable {
                    Variable::Global(_) => Some(self.paths.append(None, Step::Name("self"))),
                    Variable::Local(_) => self.path(expr),
                };
                self.set_path(expr, path);
                Cost::fixed(1)
            }
            Kind::Identifier(name) => self.name(expr, name),
            Kind::TypeName(name) => self.name(expr, name),
            Kind::Select {
                operand,
                field,
                is_optional,
            } => self.select(expr, operand, field, *is_optional),
            Kind::Has { operand, .. } => self.cost(operand),
            Kind::Index {
                operand,
                index,
                is_optional,
            } => self.index(expr, operand, index, *is_optional),
            Kind::Call(call) => self.call(expr, call),
            Kind::And(terms) | Kind::Or(terms) => {
                let costs: Vec<Cost> = terms.iter().map(|term| self.arg(term).cost).collect();
                let all = costs.iter().fold(Cost::default(), |all, one| all + *one);
                Cost {
                    min: costs.first().map_or(0, |first| first.min),
                    ..all
                }
            }
            Kind::Conditional(parts) => self.conditional(expr, parts),
            Kind::Not(operand) | Kind::Negate(operand) => self.arg(operand).cost + Cost::fixed(1),
            Kind::Binary(operator, operands) => self.binary(expr, *operator, operands),
            Kind::List(items) => self.list(expr, items),
            Kind::Map(entries) => self.map(expr, entries),
            Kind::Fold(fold) if fold.op == FoldOp::SortBy => self.sort_by(expr, fold),
            Kind::Fold(fold) => {
                let cost = self.cost(&fold.range);
                let range = self.range(&fold.range);
                cost + self.fold(expr, fold, range)
            }
            Kind::OptionalMap(map) => self.optional_map(expr, map),
        }
    }

    /// The name of a type, whose size is taken for that of the document.
    fn name(&mut self, expr: &Expr, name: &'c str) -> Cost {
        let path = self.paths.append(None, Step::Name(name));
        self.set_path(expr, Some(path));
        Cost::fixed(1)
    }

    fn select(
        &mut self,
        expr: &Expr,
        operand: &'c Expr,
        field: &'c str,
        is_optional: bool,
    ) -> Cost {
        if is_optional {
            return self.arg(operand).cost + Cost::fixed(1);
        }
        let cost = self.cost(operand);
        // A field of a value that was made is taken for one of the document.
        let path = self.paths.append(self.path(operand), Step::Name(field));
        self.set_path(expr, Some(path));
        let is_counted = matches!(self.type_of(operand), Type::Map(..) | Type::Object(_));
        cost + Cost::fixed(u64::from(is_counted))
    }

    fn index(
        &mut self,
        expr: &Expr,
        operand: &'c Expr,
        index: &'c Expr,
        is_optional: bool,
    ) -> Cost {
        let cost = self.arg(operand).cost + self.arg(index).cost + Cost::fixed(1);
        if !is_optional && !matches!(self.type_of(operand), Type::Optional(_)) {
            let path = self.paths.append(self.path(operand), Step::Element);
            self.set_path(expr, Some(path));
            if let Some(parts) = self.parts(operand) {
                self.set_size(expr, parts.values);
            }
        }
        // Kept now, before the path leads elsewhere.
        self.size(expr);
        cost
    }

    fn conditional(&mut self, expr: &Expr, [condition, first, second]: &'c [Expr; 3]) -> Cost {
        let condition = self.arg(condition).cost;
        let (one, other) = (self.arg(first), self.arg(second));
        self.set_size(expr, one.known().union(other.known()));
        self.set_parts(expr, parts_of_both(self.parts(first), self.parts(second)));
        condition + one.cost.union(other.cost)
    }

    fn list(&mut self, expr: &Expr, items: &'c [(Expr, bool)]) -> Cost {
        let mut cost = Cost::fixed(LIST_COST);
        let mut values: Option<Cost> = None;
        for (item, _) in items {
            let item = self.arg(item);
            cost = cost + item.cost;
            values = Some(values.map_or(item.known(), |values| values.union(item.known())));
        }
        self.set_parts(expr, Some(Parts::items(values.unwrap_or_default())));
        cost
    }

    fn map(&mut self, expr: &Expr, entries: &'c [Entry]) -> Cost {
        let mut cost = Cost::fixed(MAP_COST);
        let mut sizes: Option<(Cost, Cost)> = None;
        for entry in entries {
            cost = cost + self.cost(&entry.key) + self.cost(&entry.value);
            let (key, value) = (self.known_size(&entry.key), self.known_size(&entry.value));
            sizes = Some(sizes.map_or((key, value), |(keys, values)| {
                (keys.union(key), values.union(value))
            }));
        }
        let (keys, values) = sizes.unwrap_or_default();
        let parts = Parts {
            is_list: false,
            keys,
            values,
        };
        self.set_parts(expr, Some(parts));
        cost
    }

    fn binary(&mut self, expr: &Expr, operator: Operator, operands: &'c [Expr; 2]) -> Cost {
        let [left, right] = operands;
        let (one, other) = (self.arg(left), self.arg(right));
        let (a, b) = (one.known(), other.known());
        let types = [self.type_of(left), self.type_of(right)];
        let own = match operator {
            Operator::Equal => opaque_equality(types, other.size).unwrap_or(comparison(a, b)),
            Operator::NotEqual => comparison(a, b),
            Operator::In => match types[1] {
                Type::List(_) => b.by(1.0),
                Type::Map(..) => Cost::fixed(1),
                _ => b.by(1.0).union(Cost::fixed(1)),
            },
            Operator::Less | Operator::LessEqual | Operator::Greater | Operator::GreaterEqual => {
                of_texts(types, comparison(a, b))
            }
            Operator::Add => {
                let may_be_list = |one: &Type| {
                    matches!(one, Type::List(_) | Type::Text | Type::Bytes | Type::Dyn)
                };
                if types.into_iter().all(may_be_list) {
                    self.set_size(expr, a + b);
                    self.set_parts(expr, parts_of_both(self.parts(left), self.parts(right)));
                }
                of_texts(types, (a + b).pass())
            }
            _ => Cost::fixed(1),
        };
        one.cost + other.cost + own
    }

    fn call(&mut self, expr: &Expr, call: &'c Call) -> Cost {
        if &*call.name == "dyn"
            && let [arg] = &call.args[..]
        {
            let arg_of = self.arg(arg);
            if let Some(size) = arg_of.size {
                self.set_size(expr, size);
            }
            self.set_parts(expr, self.parts(arg));
            return arg_of.cost + Cost::fixed(1);
        }
        let args: Vec<Arg> = call.args.iter().map(|arg| self.arg(arg)).collect();
        let target = call.target.as_ref().map(|target| self.arg(target));
        let costs = args.iter().chain(&target).map(|arg| arg.cost);
        let cost = costs.fold(Cost::default(), |all, one| all + one);
        let sized = SizedCall {
            call,
            target: target.and_then(|target| target.size),
            args: args.iter().map(|arg| arg.size).collect(),
        };
        let (own, size) = self.function(&sized);
        if let Some(size) = size {
            self.set_size(expr, size);
        }
        cost + own
    }

    /// What a macro knows of the list or map that it visits.
    fn range(&self, range: &Expr) -> Range<'c> {
        Range {
            path: self.path(range),
            parts: self.parts(range),
            type_of: self.type_of(range),
            count: None,
        }
    }

    /// The cost of a macro without that of its range.
    fn fold(&mut self, expr: &Expr, fold: &'c Fold, range: Range<'c>) -> Cost {
        let depth = self.locals.len();
        let local = if fold.variables.len() == 2 {
            let key = self.key(&range);
            let value = self.value(&range);
            self.locals.extend([key, value]);
            None
        } else {
            let single = if range.is_list() {
                self.value(&range)
            } else {
                self.key(&range)
            };
            self.locals.push(single);
            Some(single)
        };
        let filter = fold.filter.as_ref().map(|filter| self.arg(filter).cost);
        let body = self.arg(&fold.body);
        self.locals.truncate(depth);
        let fixed = Cost::fixed;
        let (start, step, end) = match fold.op {
            FoldOp::All => (0, or_nothing(body.cost) + fixed(3), 1),
            FoldOp::Exists => (0, or_nothing(body.cost) + fixed(4), 1),
            FoldOp::ExistsOne => (0, body.cost + Cost { min: 1, max: 2 }, 2),
            FoldOp::Map | FoldOp::SortBy => (LIST_COST, body.cost + fixed(LIST_COST + 2), 1),
            FoldOp::Filter => {
                let step = Cost {
                    min: 1,
                    max: LIST_COST + 3,
                };
                (LIST_COST, body.cost + step, 1)
            }
            FoldOp::TransformMap => (MAP_COST, body.cost + fixed(3), 1),
            FoldOp::TransformMapEntry => (MAP_COST, body.cost + fixed(2), 1),
        };
        let step = match filter {
            Some(filter) => filter + step.union(fixed(1)),
            None => step,
        };
        let items = match (fold.op, local) {
            (FoldOp::Map, _) => Some(body.known()),
            (FoldOp::Filter, Some(local)) => Some(self.element_size(&range, local)),
            _ => None,
        };
        // The elements so far are part of it, of which there are none at first.
        self.set_parts(
            expr,
            items.map(|items| Parts::items(Cost::up_to(items.max))),
        );
        // Looked at last, when the path may lead elsewhere.
        let count = range.count.unwrap_or_else(|| self.known_size(&fold.range));
        match fold.op {
            FoldOp::All | FoldOp::Exists | FoldOp::ExistsOne => self.set_size(expr, fixed(1)),
            _ => self.set_size(expr, count),
        }
        fixed(start) + count.times(step) + fixed(end)
    }

    fn key(&mut self, range: &Range<'c>) -> Local {
        let step = if range.is_list() {
            Step::Index
        } else {
            Step::Key
        };
        Local {
            path: Some(self.paths.append(range.path, step)),
            size: range.parts.map(|parts| parts.keys),
            parts: None,
        }
    }

    fn value(&mut self, range: &Range<'c>) -> Local {
        Local {
            path: Some(self.paths.append(range.path, Step::Element)),
            size: range.parts.map(|parts| parts.values),
            parts: None,
        }
    }

    /// The size of the value of a macro's only variable.
    fn element_size(&self, range: &Range<'c>, local: Local) -> Cost {
        let path = local.path;
        let size = path.and_then(|path| self.paths.size(path, self.this, None));
        let is_scalar = match range.type_of {
            Type::List(element) | Type::Map(element, _) => element.is_scalar(),
            _ => false,
        };
        let scalar = is_scalar.then_some(Cost::fixed(1));
        size.or(scalar).or(local.size).unwrap_or(Cost::UNKNOWN)
    }

    /// `sortBy`, which binds the list to a variable, and sorts it by a list of its keys.
    fn sort_by(&mut self, expr: &Expr, fold: &'c Fold) -> Cost {
        let list = self.cost(&fold.range);
        let size = self.size(&fold.range);
        let mut range = self.range(&fold.range);
        // The variable has the size that the path says before that of the list.
        let path = range.path;
        let found = path.and_then(|path| self.paths.size(path, self.this, None));
        let count = found.or(size).unwrap_or(Cost::UNKNOWN);
        range.count = Some(count);
        let keys = self.fold(expr, fold, range);
        let (cost, size) = functions::sorted(self.type_of(&fold.body), count);
        if let Some(size) = size {
            self.set_size(expr, size);
        }
        // The variable is named twice, and made as a macro over an empty list.
        list + Cost::fixed(LIST_COST + 2) + keys + cost
    }

    /// `optMap` and `optFlatMap`: a condition, whose result binds the value to a variable. The optional is evaluated twice.
    fn optional_map(&mut self, expr: &Expr, map: &'c OptionalMap) -> Cost {
        let target = self.cost(&map.target);
        let inner = match self.type_of(&map.target) {
            Type::Optional(inner) => &**inner,
            other => other,
        };
        self.locals.push(Local {
            size: inner.is_scalar().then_some(Cost::fixed(1)),
            ..Local::default()
        });
        let body = self.arg(&map.body);
        self.locals.pop();
        let wrap = u64::from(!map.is_flat);
        let with_value = target + body.cost + Cost::fixed(LIST_COST + 1 + wrap);
        let scalar = self.type_of(expr).is_scalar().then_some(Cost::fixed(1));
        let found = if map.is_flat { body.size } else { scalar };
        let size = found.zip(scalar).map(|(found, none)| found.union(none));
        self.set_size(expr, size.unwrap_or(Cost::UNKNOWN));
        target + Cost::fixed(1) + with_value.union(Cost::fixed(1))
    }
}

/// The list or map that a macro visits.
struct Range<'c> {
    path: Option<Path>,
    parts: Option<Parts>,
    type_of: &'c Type,
    /// The number of elements, if it is not that of the expression.
    count: Option<Cost>,
}

impl Range<'_> {
    fn is_list(&self) -> bool {
        match self.parts {
            Some(parts) => parts.is_list,
            None => matches!(self.type_of, Type::List(_)),
        }
    }
}

/// The cost of a term that may be left out.
fn or_nothing(cost: Cost) -> Cost {
    Cost::up_to(cost.max)
}

/// A look at two values as far as the smaller one goes.
fn comparison(a: Cost, b: Cost) -> Cost {
    let smaller = a.max.min(b.max);
    let size = Cost {
        min: u64::from(smaller > 0),
        max: smaller,
    };
    size.pass()
}

/// The cost of an operator that is dear for two texts or two values of bytes, and cheap otherwise.
fn of_texts([left, right]: [&Type; 2], cost: Cost) -> Cost {
    let is_text = |one: &Type| matches!(one, Type::Text | Type::Bytes);
    let may_be_text = |one: &Type| is_text(one) || matches!(one, Type::Dyn);
    if !may_be_text(left) || !may_be_text(right) {
        Cost::fixed(1)
    } else if is_text(left) || is_text(right) {
        cost
    } else {
        cost.union(Cost::fixed(1))
    }
}

/// The cost of `==` for values of Kubernetes' own types; `!=` has none of its own.
fn opaque_equality(types: [&Type; 2], right: Option<Cost>) -> Option<Cost> {
    let [Type::Opaque(left), Type::Opaque(other)] = types else {
        return None;
    };
    if left != other {
        return None;
    }
    Some(match left {
        Opaque::Format => FORMAT.pass(),
        Opaque::Url => {
            let size = right.map_or(1, |size| size.max);
            Cost { min: 1, max: size }.pass()
        }
        _ => Cost::fixed(1),
    })
}
