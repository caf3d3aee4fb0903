//! The largest cost that a rule can have for values of its schema, estimated as kube-apiserver does.

use std::collections::HashMap;
use std::ops::Add;
use std::sync::{Arc, LazyLock};

use crate::ast::{Call, Expr, Fold, FoldOp, Kind, Literal, Operator, Variable};
use crate::check::Checked;
use crate::run::{LIST_COST, MAP_COST};
use crate::schema::{Decl, Shape};
use crate::types::{Opaque, Type};

/// The size of a named format.
const FORMAT: Cost = Cost::fixed(64);

/// A range of costs or sizes. Saturates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cost {
    pub(crate) min: u64,
    pub(crate) max: u64,
}

impl Cost {
    const UNKNOWN: Self = Self {
        min: 0,
        max: u64::MAX,
    };

    /// A single number.
    const fn fixed(number: u64) -> Self {
        Self {
            min: number,
            max: number,
        }
    }

    fn up_to(max: u64) -> Self {
        Self { min: 0, max }
    }

    fn union(self, other: Self) -> Self {
        Self {
            min: self.min.min(other.min),
            max: self.max.max(other.max),
        }
    }

    fn times(self, other: Self) -> Self {
        Self {
            min: self.min.saturating_mul(other.min),
            max: self.max.saturating_mul(other.max),
        }
    }

    /// A part, rounded up.
    fn by(self, factor: f64) -> Self {
        // Casts of floats saturate.
        let part = |number: u64| {
            if number == u64::MAX && factor >= 1.0 {
                return u64::MAX;
            }
            (number as f64 * factor).ceil() as u64
        };
        Self {
            min: part(self.min),
            max: part(self.max),
        }
    }

    /// A pass over a text of this size.
    fn pass(self) -> Self {
        self.by(0.1)
    }
}

impl Add for Cost {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self {
            min: self.min.saturating_add(other.min),
            max: self.max.saturating_add(other.max),
        }
    }
}

/// Sizes of the keys and values, or items, of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Parts {
    is_list: bool,
    keys: Cost,
    values: Cost,
}

impl Parts {
    fn items(values: Cost) -> Self {
        Self {
            is_list: true,
            keys: Cost::fixed(1),
            values,
        }
    }

    fn union(self, other: Option<Self>) -> Self {
        let Some(other) = other else { return self };
        Self {
            is_list: self.is_list,
            keys: self.keys.union(other.keys),
            values: self.values.union(other.values),
        }
    }
}

/// What is known of a variable of a macro.
#[derive(Clone, Debug)]
struct Local<'c> {
    decl: Option<&'c Decl>,
    size: Option<Cost>,
}

/// The keys of maps of documents, whose size kube-apiserver does not estimate.
static KEY: LazyLock<Decl> = LazyLock::new(|| Decl {
    shape: Shape::Text,
    max_elements: 0,
    min_size: 2,
});

/// The cost of an expression about a value.
pub(crate) fn estimate(checked: &Checked, this: &Arc<Decl>) -> Cost {
    let mut estimator = Estimator {
        checked,
        this,
        locals: Vec::new(),
        decls: HashMap::new(),
        sizes: HashMap::new(),
        parts: HashMap::new(),
    };
    estimator.cost(&checked.expr)
}

struct Estimator<'c> {
    checked: &'c Checked,
    this: &'c Decl,
    locals: Vec<Local<'c>>,
    /// The place in the schema of values that come from there, by the id of an expression.
    decls: HashMap<u32, &'c Decl>,
    sizes: HashMap<u32, Cost>,
    parts: HashMap<u32, Parts>,
}

impl<'c> Estimator<'c> {
    fn type_of(&self, expr: &Expr) -> &'c Type {
        &self.checked.types[expr.id as usize]
    }

    fn size(&self, expr: &Expr) -> Option<Cost> {
        if let Some(size) = self.sizes.get(&expr.id) {
            return Some(*size);
        }
        match &expr.kind {
            Kind::Literal(Literal::Text(text)) => {
                return Some(Cost::fixed(text.chars().count() as u64));
            }
            Kind::Literal(Literal::Bytes(bytes)) => return Some(Cost::fixed(bytes.len() as u64)),
            Kind::Literal(_) => return Some(Cost::fixed(1)),
            Kind::TypeName(_) => return Some(Cost::fixed(0)),
            Kind::List(items) => return Some(Cost::fixed(items.len() as u64)),
            Kind::Map(entries) => return Some(Cost::fixed(entries.len() as u64)),
            _ => {}
        }
        if let Some(decl) = self.decls.get(&expr.id) {
            return Some(Cost::up_to(decl.max_elements));
        }
        if let Kind::Variable(Variable::Local(index)) = &expr.kind
            && let Some(size) = self.locals.get(*index as usize)?.size
        {
            return Some(size);
        }
        if self.type_of(expr).is_scalar() {
            return Some(Cost::fixed(1));
        }
        None
    }

    fn known_size(&self, expr: &Expr) -> Cost {
        self.size(expr).unwrap_or(Cost::UNKNOWN)
    }

    fn set(&mut self, expr: &Expr, size: Cost, parts: Option<Parts>) {
        self.sizes.insert(expr.id, size);
        if let Some(parts) = parts {
            self.parts.insert(expr.id, parts);
        }
    }

    fn parts(&self, expr: &Expr) -> Option<Parts> {
        self.parts.get(&expr.id).copied()
    }

    fn place(&mut self, expr: &Expr, decl: Option<&'c Decl>) {
        if let Some(decl) = decl {
            self.decls.insert(expr.id, decl);
        }
    }

    fn cost(&mut self, expr: &Expr) -> Cost {
        match &expr.kind {
            Kind::Literal(_) => Cost::default(),
            Kind::Variable(variable) => {
                let decl = match variable {
                    Variable::This | Variable::Old => Some(self.this),
                    Variable::Local(index) => {
                        let local = self.locals.get(*index as usize);
                        local.and_then(|local| local.decl)
                    }
                };
                self.place(expr, decl);
                Cost::fixed(1)
            }
            Kind::Identifier(_) | Kind::TypeName(_) => Cost::up_to(1),
            Kind::Select {
                operand,
                field,
                is_optional,
            } => {
                let cost = self.cost(operand);
                let decl = self.decls.get(&operand.id).copied().and_then(|decl| {
                    let Shape::Object(fields) = &decl.shape else {
                        return None;
                    };
                    fields.named(field).map(|(_, decl)| &**decl)
                });
                self.place(expr, decl);
                if !self.decls.contains_key(&operand.id) {
                    self.set(expr, Cost::fixed(0), None);
                }
                let is_counted = *is_optional
                    || matches!(self.type_of(operand), Type::Map(..) | Type::Object(_));
                cost + Cost::fixed(u64::from(is_counted))
            }
            Kind::Has { operand, .. } => self.cost(operand),
            Kind::Index { operand, index, .. } => {
                let cost = self.cost(operand) + self.cost(index);
                let decl = self.decls.get(&operand.id).copied();
                self.place(
                    expr,
                    decl.and_then(|decl| decl.element().map(|decl| &**decl)),
                );
                if let Some(parts) = self.parts(operand) {
                    self.set(expr, parts.values, None);
                } else if decl.is_none() && matches!(operand.kind, Kind::Call(_)) {
                    self.set(expr, Cost::fixed(0), None);
                }
                cost + Cost::fixed(1)
            }
            Kind::Call(call) => self.call(expr, call),
            Kind::And(terms) | Kind::Or(terms) => {
                let costs: Vec<Cost> = terms.iter().map(|term| self.cost(term)).collect();
                let all = costs.iter().fold(Cost::default(), |all, one| all + *one);
                Cost {
                    min: costs.first().map_or(0, |first| first.min),
                    ..all
                }
            }
            Kind::Conditional(parts) => {
                let [condition, first, second] = &**parts;
                let cost = self.cost(condition) + self.cost(first).union(self.cost(second));
                let size = self.known_size(first).union(self.known_size(second));
                let parts = self
                    .parts(first)
                    .map(|parts| parts.union(self.parts(second)));
                self.set(expr, size, parts.or(self.parts(second)));
                cost
            }
            Kind::Not(operand) | Kind::Negate(operand) => self.cost(operand) + Cost::fixed(1),
            Kind::Binary(operator, operands) => {
                let [left, right] = &**operands;
                let cost = self.cost(left) + self.cost(right);
                cost + self.binary(expr, *operator, left, right)
            }
            Kind::List(items) => {
                let mut cost = Cost::fixed(LIST_COST);
                let mut values: Option<Cost> = None;
                for (item, _) in items {
                    cost = cost + self.cost(item);
                    let size = self.known_size(item);
                    values = Some(values.map_or(size, |values| values.union(size)));
                }
                let parts = Parts::items(values.unwrap_or_default());
                self.parts.insert(expr.id, parts);
                cost
            }
            Kind::Map(entries) => {
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
                self.parts.insert(expr.id, parts);
                cost
            }
            Kind::Fold(fold) => self.fold(expr, fold),
            Kind::OptionalMap(map) => {
                let target = self.cost(&map.target);
                self.locals.push(Local {
                    decl: None,
                    size: None,
                });
                let body = self.cost(&map.body);
                self.locals.pop();
                let with_value = body + Cost::fixed(2 * LIST_COST + 4 - u64::from(map.is_flat));
                target + Cost::fixed(1) + with_value.union(Cost::fixed(1))
            }
        }
    }

    fn binary(&mut self, expr: &Expr, operator: Operator, left: &Expr, right: &Expr) -> Cost {
        let (a, b) = (self.known_size(left), self.known_size(right));
        let (left_type, right_type) = (self.type_of(left), self.type_of(right));
        let smaller = a.max.min(b.max);
        let comparison = Cost {
            min: u64::from(smaller > 0),
            max: smaller,
        }
        .pass();
        let may_be_text = |one: &Type| matches!(one, Type::Text | Type::Bytes | Type::Dyn);
        let may_be_both = may_be_text(left_type) && may_be_text(right_type);
        let is_certain = [left_type, right_type]
            .iter()
            .any(|one| matches!(one, Type::Text | Type::Bytes));
        match operator {
            Operator::Equal | Operator::NotEqual => match left_type {
                Type::Opaque(Opaque::Url) => comparison,
                Type::Opaque(Opaque::Format) => FORMAT.pass(),
                Type::Opaque(_) => Cost::fixed(1),
                _ => comparison,
            },
            Operator::In => match right_type {
                Type::List(_) => b,
                Type::Map(..) => Cost::fixed(1),
                _ => b.union(Cost::fixed(1)),
            },
            Operator::Less | Operator::LessEqual | Operator::Greater | Operator::GreaterEqual
                if may_be_both =>
            {
                if is_certain {
                    comparison
                } else {
                    comparison.union(Cost::fixed(1))
                }
            }
            Operator::Add if matches!(self.type_of(expr), Type::List(_)) => {
                let parts = match (self.parts(left), self.parts(right)) {
                    (Some(a), b) => Some(a.union(b)),
                    (None, b) => b,
                };
                self.set(expr, a + b, parts);
                Cost::fixed(1)
            }
            Operator::Add if may_be_both => {
                self.set(expr, a + b, None);
                let cost = (a + b).pass();
                if is_certain {
                    cost
                } else {
                    cost.union(Cost::fixed(1))
                }
            }
            _ => Cost::fixed(1),
        }
    }

    fn call(&mut self, expr: &Expr, call: &Call) -> Cost {
        let mut cost = Cost::default();
        for part in call.target.iter().chain(&call.args) {
            cost = cost + self.cost(part);
        }
        let (own, size) = self.function(call);
        if let Some(size) = size {
            self.sizes.insert(expr.id, size);
        }
        if let Some(parts) = self.parts_of_call(call) {
            self.parts.insert(expr.id, parts);
        }
        cost + own
    }

    /// The sizes of the items of a result that has those of its target.
    fn parts_of_call(&self, call: &Call) -> Option<Parts> {
        let is_kept = matches!(
            &*call.name,
            "slice" | "sort" | "reverse" | "distinct" | "dyn"
        );
        let source = call.target.as_ref().or(call.args.first())?;
        is_kept.then(|| self.parts(source)).flatten()
    }

    /// The cost of a function without that of its arguments, and the size of its result if it is known.
    fn function(&self, call: &Call) -> (Cost, Option<Cost>) {
        let args: Vec<Cost> = call.args.iter().map(|arg| self.known_size(arg)).collect();
        let arg = |index: usize| args.get(index).copied().unwrap_or(Cost::UNKNOWN);
        let target = call.target.as_ref();
        let size = target.map_or(Cost::UNKNOWN, |target| self.known_size(target));
        let one = Cost::fixed(1);
        match &*call.name {
            "dyn" => (one, call.args.first().and_then(|arg| self.size(arg))),
            "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" => {
                let cost = match target.map(|target| (target, self.type_of(target))) {
                    Some((target, Type::List(items))) => {
                        let each = if matches!(**items, Type::Text | Type::Bytes) {
                            one + self.element_size(target).pass()
                        } else {
                            one
                        };
                        size.times(each)
                    }
                    _ => size.pass(),
                };
                (cost, None)
            }
            "url" => (arg(0).pass(), Some(arg(0))),
            "lowerAscii" | "upperAscii" | "substring" | "trim" => (size.pass(), Some(size)),
            "replace" => (size.by(0.2), Some(replaced(size, arg(0), arg(1)))),
            "split" => {
                let most = call.args.get(1).and_then(|limit| match limit.kind {
                    Kind::Literal(Literal::Int(limit)) => u64::try_from(limit).ok(),
                    _ => None,
                });
                (size.by(0.2), Some(Cost::up_to(most.unwrap_or(size.max))))
            }
            "join" => {
                let each = target.map_or(Cost::UNKNOWN, |target| self.element_size(target));
                let mut joined = size.times(each);
                if let Some(separator) = args.first() {
                    let between = Cost {
                        min: size.min.saturating_sub(1),
                        max: size.max.saturating_sub(1),
                    };
                    joined = joined + separator.times(between);
                }
                (joined.pass(), Some(joined))
            }
            "find" | "findAll" => {
                let cost = (size + one).pass().times(arg(0).by(0.25));
                (cost, Some(Cost::up_to(size.max)))
            }
            "matches" if target.is_some() => ((size + one).pass().times(arg(0).by(0.25)), None),
            "matches" => ((arg(0) + one).pass().times(arg(1).by(0.25)), None),
            "contains" => (size.pass().times(arg(0).pass()), None),
            "startsWith" | "endsWith" => (arg(0).pass(), None),
            "cidr" | "isIP" | "isCIDR" | "quantity" | "isQuantity" | "semver" | "isSemver" => {
                (arg(0).pass(), None)
            }
            "ip" if target.is_none() => (arg(0).pass(), None),
            "ip.isCanonical" => (arg(0).by(0.2), None),
            "containsIP" | "containsCIDR" => {
                let address = Cost { min: 4, max: 16 };
                let mut cost = (address + address).pass();
                if &*call.name == "containsCIDR" {
                    cost = cost + address.pass() + one;
                }
                let is_text = call.args.first().map(|arg| self.type_of(arg));
                if matches!(is_text, Some(Type::Text | Type::Dyn)) {
                    cost = cost + arg(0).pass();
                }
                (cost, None)
            }
            "validate" => (arg(0).pass().by(32.0), None),
            "format" => (size.pass(), None),
            "bytes" => {
                let result = Cost {
                    min: arg(0).min,
                    max: arg(0).max.saturating_mul(4),
                };
                (arg(0).pass(), Some(result))
            }
            "string" => self.to_text(call, arg(0)),
            "strings.quote" => {
                let result = Cost {
                    min: arg(0).min.saturating_add(2),
                    max: arg(0).max.saturating_mul(2).saturating_add(2),
                };
                (arg(0).pass(), Some(result))
            }
            "slice" => {
                let bound =
                    |index: usize, other: u64| match call.args.get(index).map(|arg| &arg.kind) {
                        Some(Kind::Literal(Literal::Int(bound))) => {
                            u64::try_from(*bound).unwrap_or(other)
                        }
                        _ => other,
                    };
                let length = bound(1, size.max).saturating_sub(bound(0, 0));
                new_list(1.0, Cost::fixed(length))
            }
            "reverse" => new_list(1.0, size),
            "sort" => new_list(self.sort_factor(target), size.times(size)),
            "distinct" => new_list(self.sort_factor(target), size.times(size)),
            "flatten" => {
                let depth = match call.args.first().map(|arg| &arg.kind) {
                    None => 1.0,
                    Some(Kind::Literal(Literal::Int(depth))) if *depth >= 0 => *depth as f64,
                    Some(_) => u64::MAX as f64,
                };
                new_list(depth, size)
            }
            "lists.range" => {
                let count = call.args.first().map(|arg| &arg.kind);
                let count = match count {
                    Some(Kind::Literal(Literal::Int(count))) => u64::try_from(*count).ok(),
                    _ => None,
                };
                new_list(1.0, Cost::fixed(count.unwrap_or(u64::MAX)))
            }
            "sets.contains" | "sets.intersects" => (arg(0).times(arg(1)) + one, None),
            "sets.equivalent" => (arg(0).times(arg(1)).by(2.0) + one, None),
            _ => (one, None),
        }
    }

    fn to_text(&self, call: &Call, size: Cost) -> (Cost, Option<Cost>) {
        match call.args.first().map(|arg| self.type_of(arg)) {
            Some(Type::Bytes) => {
                let result = Cost {
                    min: size.min / 4,
                    max: size.max,
                };
                (size.pass(), Some(result))
            }
            Some(Type::Dyn) => (size.pass().union(Cost::fixed(1)), None),
            _ => (Cost::fixed(1), None),
        }
    }

    /// The size of the items of a list, which is known only of a list of the document.
    fn element_size(&self, list: &Expr) -> Cost {
        let decl = self.decls.get(&list.id).copied();
        decl.and_then(Decl::element)
            .map_or(Cost::UNKNOWN, |decl| Cost::up_to(decl.max_elements))
    }

    /// What a comparison costs while a list is sorted.
    fn sort_factor(&self, list: Option<&Expr>) -> f64 {
        match list.map(|list| self.type_of(list)) {
            Some(Type::List(items)) if matches!(**items, Type::Text | Type::Bytes) => 2.1,
            _ => 2.0,
        }
    }

    fn fold(&mut self, expr: &Expr, fold: &Fold) -> Cost {
        let range = self.cost(&fold.range);
        let count = self.known_size(&fold.range);
        let known = self.parts(&fold.range);
        let is_list = match known {
            Some(parts) => parts.is_list,
            None => matches!(self.type_of(&fold.range), Type::List(_)),
        };
        let decl = self.decls.get(&fold.range.id).copied();
        // An element that is not of the document counts as empty, unless its list is an element of another.
        let is_empty = !matches!(fold.range.kind, Kind::Index { .. });
        let local = |decl: Option<&'c Decl>| Local {
            decl,
            size: (decl.is_none() && is_empty).then_some(Cost::fixed(0)),
        };
        let element = local(decl.and_then(Decl::element).map(|decl| &**decl));
        let is_document_map = decl.is_some_and(|decl| matches!(decl.shape, Shape::Map(_)));
        let key = local(is_document_map.then(|| &*KEY));
        let depth = self.locals.len();
        if fold.variables.len() == 2 {
            self.locals.extend([key, element]);
        } else {
            self.locals.push(if is_list { element } else { key });
        }
        let filter = fold.filter.as_ref().map(|filter| self.cost(filter));
        let body = self.cost(&fold.body);
        let body_size = self.known_size(&fold.body);
        let single = self.locals.get(depth).cloned();
        self.locals.truncate(depth);
        let fixed = Cost::fixed;
        let (start, step, end) = match fold.op {
            FoldOp::All => (0, body + fixed(3), 1),
            FoldOp::Exists => (0, body + fixed(4), 1),
            FoldOp::ExistsOne => (0, body + Cost { min: 1, max: 2 }, 2),
            FoldOp::Map | FoldOp::SortBy => (LIST_COST, body + fixed(LIST_COST + 2), 1),
            FoldOp::Filter => {
                let step = Cost {
                    min: 1,
                    max: LIST_COST + 3,
                };
                (LIST_COST, body + step, 1)
            }
            FoldOp::TransformMap => (MAP_COST, body + fixed(3), 1),
            FoldOp::TransformMapEntry => (MAP_COST, body + fixed(2), 1),
        };
        let step = match filter {
            Some(filter) => filter + step.union(fixed(1)),
            None => step,
        };
        let mut cost = range + fixed(start) + count.times(step) + fixed(end);
        match fold.op {
            FoldOp::All | FoldOp::Exists | FoldOp::ExistsOne => self.set(expr, fixed(1), None),
            FoldOp::Map => {
                let parts = Parts::items(Cost::up_to(body_size.max));
                self.set(expr, count, Some(parts));
            }
            FoldOp::Filter | FoldOp::SortBy => {
                if fold.op == FoldOp::SortBy {
                    let keys = self.type_of(&fold.body);
                    let factor = if matches!(keys, Type::Text | Type::Bytes) {
                        2.1
                    } else {
                        2.0
                    };
                    cost =
                        cost + new_list(factor, count.times(count)).0 + Cost::fixed(LIST_COST + 2);
                }
                let of_decl =
                    |local: &Local<'_>| local.decl.map(|decl| Cost::up_to(decl.max_elements));
                let size = single.and_then(|local| of_decl(&local).or(local.size));
                let parts = Parts::items(Cost::up_to(size.unwrap_or(Cost::UNKNOWN).max));
                self.set(expr, count, Some(parts));
            }
            FoldOp::TransformMap | FoldOp::TransformMapEntry => {
                let parts = Parts {
                    is_list: false,
                    keys: Cost::UNKNOWN,
                    values: Cost::up_to(body_size.max),
                };
                self.set(expr, count, Some(parts));
            }
        }
        cost
    }
}

/// The cost of a function that makes a list of a size, and that size.
fn new_list(factor: f64, size: Cost) -> (Cost, Option<Cost>) {
    (size.by(factor) + Cost::fixed(1 + LIST_COST), Some(size))
}

/// The size of a text after a replacement.
fn replaced(size: Cost, old: Cost, new: Cost) -> Cost {
    let most = if old.min == 0 {
        // New text is put around every character.
        let count = size.max.saturating_add(1);
        count.saturating_mul(new.max).saturating_add(size.max)
    } else if new.max <= old.min {
        size.max
    } else {
        size.max.div_ceil(old.min).saturating_mul(new.max)
    };
    let least = if old.max == 0 {
        size.min.saturating_add(1).saturating_mul(new.min)
    } else if old.max <= new.min {
        size.min
    } else {
        size.min.div_ceil(old.max).saturating_mul(new.min)
    };
    Cost {
        min: least,
        max: most,
    }
}
