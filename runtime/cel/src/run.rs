//! Evaluates a checked expression.

use std::cmp::Ordering;
use std::rc::Rc;

use crate::ast::{Call, Entry, Expr, Fold, FoldOp, Kind, Literal, OptionalMap, Variable};
use crate::equality;
use crate::fold::{Found, Range};
use crate::functions::{lists, numbers, time};
use crate::meter::{LIST_COST, MAP_COST, Meter, tenth};
use crate::operator::Operator;
use crate::stop::{NO_OVERLOAD, Stop};
use crate::value::{Map, Outcome, Text, Value};

/// The functions whose implementation in cel-go checks the types of its arguments, and names no function.
const PLAIN_OVERLOADS: [&str; 7] = [
    "contains",
    "startsWith",
    "endsWith",
    "matches",
    "find",
    "findAll",
    "containsIP",
];

/// Functions of lists with a signature for each type of items, which is found by the first one.
const BY_FIRST_ITEM: [&str; 4] = ["isSorted", "sum", "max", "min"];

/// An evaluation.
pub(crate) struct Run<'a> {
    pub(crate) meter: Meter<'a>,
    /// The values of the variables of the scope.
    globals: &'a [Value<'a>],
    locals: Vec<Value<'a>>,
}

impl<'a> Run<'a> {
    /// An evaluation with the values of the variables of the scope.
    pub(crate) fn new(globals: &'a [Value<'a>], meter: Meter<'a>) -> Self {
        Self {
            meter,
            globals,
            locals: Vec::new(),
        }
    }

    /// As in kube-apiserver, a variable or a part of one costs less as a branch or as an index.
    fn refund(&mut self, expr: &Expr) {
        if is_attribute(expr) {
            self.meter.refund();
        }
    }

    /// The value of an expression. The cases are functions of their own, so that a level of an expression needs little of
    /// the stack.
    pub(crate) fn value(&mut self, expr: &'a Expr) -> Outcome<'a> {
        match &expr.kind {
            Kind::Literal(literal) => Ok(literal_value(literal)),
            Kind::Variable(variable) => self.variable(*variable),
            Kind::TypeName(name) => Ok(Value::Type(name)),
            Kind::Identifier(name) => Err(unknown(name)),
            Kind::Select {
                operand,
                field,
                is_optional,
            } => self.select(operand, field, *is_optional),
            Kind::Has { operand, field } => self.has(operand, field),
            Kind::Index {
                operand,
                index,
                is_optional,
            } => self.index(operand, index, *is_optional),
            Kind::And(terms) => self.junction(terms, false),
            Kind::Or(terms) => self.junction(terms, true),
            Kind::Conditional(parts) => self.conditional(parts),
            Kind::Not(operand) => self.not(operand),
            Kind::Negate(operand) => self.negate(operand),
            Kind::Binary(operator, operands) => self.binary(*operator, operands),
            Kind::Call(call) => self.call(call),
            Kind::List(items) => self.list(items),
            Kind::Map(entries) => self.map(entries),
            Kind::Fold(fold) => self.fold(fold),
            Kind::OptionalMap(map) => self.optional_map(map),
        }
    }

    #[inline(never)]
    fn variable(&mut self, variable: Variable) -> Outcome<'a> {
        self.meter.charge(1)?;
        let value = match variable {
            Variable::Global(index) => self.globals.get(index as usize),
            Variable::Local(index) => self.locals.get(index as usize),
        };
        value.cloned().ok_or_else(|| unknown("a variable"))
    }

    #[inline(never)]
    fn select(&mut self, operand: &'a Expr, field: &str, is_optional: bool) -> Outcome<'a> {
        self.meter.charge(relative_cost(operand))?;
        let operand = self.value(operand)?;
        let found = select(&operand, field, is_optional)?;
        self.meter.charge(part_cost(&found, is_optional))?;
        Ok(found)
    }

    #[inline(never)]
    fn has(&mut self, operand: &'a Expr, field: &str) -> Outcome<'a> {
        self.meter.charge(relative_cost(operand))?;
        let operand = self.value(operand)?;
        has(&operand, field)
    }

    #[inline(never)]
    fn index(&mut self, operand: &'a Expr, at: &'a Expr, is_optional: bool) -> Outcome<'a> {
        self.meter.charge(relative_cost(operand))?;
        let operand = self.value(operand)?;
        let key = self.value(at)?;
        self.refund(at);
        let found = lists::index(&operand, &key, is_optional)?;
        self.meter.charge(part_cost(&found, is_optional))?;
        Ok(found)
    }

    #[inline(never)]
    fn conditional(&mut self, [condition, first, second]: &'a [Expr; 3]) -> Outcome<'a> {
        let branch = if self.condition(condition)? {
            first
        } else {
            second
        };
        // Some branches cost nothing.
        self.meter.step()?;
        let value = self.value(branch)?;
        self.refund(branch);
        Ok(value)
    }

    #[inline(never)]
    fn not(&mut self, operand: &'a Expr) -> Outcome<'a> {
        let flag = self.condition(operand)?;
        self.meter.charge(1)?;
        Ok(Value::Bool(!flag))
    }

    #[inline(never)]
    fn negate(&mut self, operand: &'a Expr) -> Outcome<'a> {
        let operand = self.value(operand)?;
        self.meter.charge(1)?;
        numbers::negate(&operand)
    }

    #[inline(never)]
    fn binary(&mut self, operator: Operator, [left, right]: &'a [Expr; 2]) -> Outcome<'a> {
        let is_fixed_set = operator == Operator::In && is_set_of_literals(right);
        let left = self.value(left)?;
        let right = self.value(right)?;
        if is_fixed_set {
            return lists::contains_literal(&mut self.meter, &left, &right);
        }
        self.operate(operator, &left, &right)
    }

    /// A condition's value.
    pub(crate) fn condition(&mut self, expr: &'a Expr) -> Result<bool, Stop> {
        match self.value(expr)? {
            Value::Bool(flag) => Ok(flag),
            _ => Err(Stop::overload()),
        }
    }

    /// Evaluates an expression with more variables.
    pub(crate) fn with<T>(
        &mut self,
        variables: impl IntoIterator<Item = Value<'a>>,
        body: impl FnOnce(&mut Self) -> Result<T, Stop>,
    ) -> Result<T, Stop> {
        let depth = self.locals.len();
        self.locals.extend(variables);
        let found = body(self);
        self.locals.truncate(depth);
        found
    }

    /// `&&` and `||`: an error counts only if no term decides.
    #[inline(never)]
    fn junction(&mut self, terms: &'a [Expr], deciding: bool) -> Outcome<'a> {
        let mut error = None;
        for term in terms {
            if matches!(term.kind, Kind::Literal(_)) {
                self.meter.step()?;
            }
            match self.condition(term) {
                Ok(flag) if flag == deciding => return Ok(Value::Bool(deciding)),
                Ok(_) => {}
                Err(Stop::Cost) => return Err(Stop::Cost),
                Err(stop) => {
                    error.get_or_insert(stop);
                }
            }
        }
        match error {
            Some(stop) => Err(stop),
            None => Ok(Value::Bool(!deciding)),
        }
    }

    #[inline(never)]
    fn call(&mut self, call: &'a Call) -> Outcome<'a> {
        let function = call.function.ok_or_else(Stop::overload)?;
        // Some functions cost nothing for small values.
        self.meter.step()?;
        let mut args = Vec::with_capacity(call.args.len() + 1);
        for part in call.target.iter().chain(&call.args) {
            args.push(self.value(part)?);
        }
        (function.run)(&mut self.meter, &args).map_err(|stop| named(stop, function.name, &args))
    }

    #[inline(never)]
    fn list(&mut self, items: &'a [(Expr, bool)]) -> Outcome<'a> {
        let mut values = Vec::with_capacity(items.len());
        for (item, is_optional) in items {
            match (self.value(item)?, is_optional) {
                (value, false) => values.push(value),
                (Value::Optional(value), true) => {
                    values.extend(value.map(|value| (*value).clone()));
                }
                _ => return Err(Stop::overload()),
            }
        }
        // As in kube-apiserver, lists of literals are made before the rule runs.
        if items.iter().all(|(item, _)| is_constant(item)) {
            self.meter.work(items.len() as u64)?;
        } else {
            self.meter.charge(LIST_COST)?;
        }
        Ok(Value::list(values))
    }

    #[inline(never)]
    fn map(&mut self, entries: &'a [Entry]) -> Outcome<'a> {
        let mut made = crate::value::Made::default();
        for entry in entries {
            let key = self.value(&entry.key)?;
            match (self.value(&entry.value)?, entry.is_optional) {
                (value, false) => made.set(key, value)?,
                (Value::Optional(Some(value)), true) => made.set(key, (*value).clone())?,
                (Value::Optional(None), true) => {}
                _ => return Err(Stop::overload()),
            }
        }
        let is_fixed = |entry: &Entry| is_constant(&entry.key) && is_constant(&entry.value);
        if entries.iter().all(is_fixed) {
            self.meter.work(entries.len() as u64)?;
        } else {
            self.meter.charge(MAP_COST)?;
        }
        Ok(Value::Map(Map::Made(Rc::new(made))))
    }

    #[inline(never)]
    fn fold(&mut self, fold: &'a Fold) -> Outcome<'a> {
        let range = self.value(&fold.range)?;
        let mut range = Range::of(&range)?;
        let mut found = Found::default();
        while let Some(element) = range.next() {
            let (key, value, single) = element?;
            let one = [single.clone()];
            let is_done = if fold.variables.len() == 1 {
                self.with(one, |run| run.element(fold, single, None, &mut found))?
            } else {
                let variables = [key.clone(), value];
                self.with(variables, |run| {
                    run.element(fold, single, Some(key), &mut found)
                })?
            };
            if is_done {
                // As in kube-apiserver, the condition is looked at once more, unless this element is the last one.
                if range.next().is_some() {
                    self.meter
                        .charge(if fold.op == FoldOp::All { 2 } else { 3 })?;
                }
                break;
            }
        }
        self.meter.charge(1)?;
        if let Some(stop) = found.error {
            return Err(stop);
        }
        match fold.op {
            FoldOp::All => Ok(Value::Bool(found.matches == 0)),
            FoldOp::Exists => Ok(Value::Bool(found.matches > 0)),
            FoldOp::ExistsOne => {
                self.meter.charge(1)?;
                Ok(Value::Bool(found.matches == 1))
            }
            FoldOp::Map | FoldOp::Filter => Ok(Value::list(found.items)),
            FoldOp::SortBy => lists::sort_by(&mut self.meter, found.items, found.keys),
            FoldOp::TransformMap | FoldOp::TransformMapEntry => {
                Ok(Value::Map(Map::Made(Rc::new(found.made))))
            }
        }
    }

    /// Visits an element, whose variables are set. Returns whether the result is known.
    fn element(
        &mut self,
        fold: &'a Fold,
        single: Value<'a>,
        key: Option<Value<'a>>,
        found: &mut Found<'a>,
    ) -> Result<bool, Stop> {
        if let Some(filter) = &fold.filter
            && !self.condition(filter)?
        {
            self.meter.step()?;
            return Ok(false);
        }
        match fold.op {
            FoldOp::All | FoldOp::Exists => {
                let is_all = fold.op == FoldOp::All;
                self.meter.charge(if is_all { 3 } else { 4 })?;
                match self.condition(&fold.body) {
                    Ok(flag) if flag != is_all => {
                        // It decides, whichever errors other elements have.
                        found.matches = 1;
                        found.error = None;
                        return Ok(true);
                    }
                    Ok(_) => {}
                    Err(Stop::Cost) => return Err(Stop::Cost),
                    Err(stop) => {
                        found.error.get_or_insert(stop);
                    }
                }
            }
            FoldOp::ExistsOne => {
                let is_match = self.condition(&fold.body)?;
                self.meter.step()?;
                self.meter.charge(if is_match { 2 } else { 0 })?;
                found.matches += u64::from(is_match);
            }
            FoldOp::Map => {
                let value = self.value(&fold.body)?;
                self.meter.charge(LIST_COST + 2)?;
                found.items.push(value);
            }
            FoldOp::Filter => {
                let is_match = self.condition(&fold.body)?;
                self.meter.step()?;
                self.meter
                    .charge(if is_match { LIST_COST + 3 } else { 0 })?;
                if is_match {
                    found.items.push(single);
                }
            }
            FoldOp::SortBy => {
                let order = self.value(&fold.body)?;
                self.meter.charge(LIST_COST + 2)?;
                found.keys.push(order);
                found.items.push(single);
            }
            FoldOp::TransformMap => {
                let value = self.value(&fold.body)?;
                self.meter.charge(3)?;
                found.made.insert(key.unwrap_or(single), value)?;
            }
            FoldOp::TransformMapEntry => {
                let Value::Map(entries) = self.value(&fold.body)? else {
                    return Err(Stop::overload());
                };
                self.meter.charge(2)?;
                self.meter.work(entries.len())?;
                for (key, value) in entries.entries()? {
                    found.made.insert(key, value)?;
                }
            }
        }
        Ok(false)
    }

    #[inline(never)]
    fn optional_map(&mut self, map: &'a OptionalMap) -> Outcome<'a> {
        let before = self.meter.cost();
        let target = self.value(&map.target)?;
        let again = self.meter.cost() - before;
        self.meter.charge(1)?;
        let Value::Optional(target) = target else {
            return Err(Stop::overload());
        };
        let Some(inner) = target else {
            self.meter.charge(1)?;
            return Ok(Value::Optional(None));
        };
        // As in kube-apiserver, the optional is evaluated for its value too.
        self.meter.charge(again + 1)?;
        let value = self.with([(*inner).clone()], |run| run.value(&map.body))?;
        self.meter.charge(u64::from(!map.is_flat))?;
        match value {
            value if !map.is_flat => Ok(Value::some(value)),
            value @ Value::Optional(_) => Ok(value),
            _ => Err(Stop::overload()),
        }
    }

    /// An operator of two values.
    fn operate(&mut self, operator: Operator, left: &Value<'a>, right: &Value<'a>) -> Outcome<'a> {
        use Operator::{Equal, Greater, GreaterEqual, In, Less, LessEqual, NotEqual};
        match operator {
            Equal | NotEqual => {
                self.meter.charge(comparison_cost(left, right))?;
                let is_equal = match equality::equal(&mut self.meter, left, right) {
                    // What cannot be compared is not equal, in the sense of `!=` alone.
                    Err(Stop::Error(_)) if operator == NotEqual => false,
                    found => found?,
                };
                Ok(Value::Bool(is_equal == (operator == Equal)))
            }
            Less | LessEqual | Greater | GreaterEqual => {
                let is_text = matches!(left, Value::Text(_) | Value::Bytes(_));
                self.meter.charge(if is_text {
                    comparison_cost(left, right)
                } else {
                    1
                })?;
                let Some(order) = left.compare(right) else {
                    let is_number = crate::value::compare_numbers(left, right).is_some();
                    return Err(if is_number {
                        Stop::error("NaN values cannot be ordered")
                    } else {
                        Stop::overload()
                    });
                };
                Ok(Value::Bool(match operator {
                    Less => order == Ordering::Less,
                    LessEqual => order != Ordering::Greater,
                    Greater => order == Ordering::Greater,
                    _ => order != Ordering::Less,
                }))
            }
            In => lists::contains(&mut self.meter, left, right),
            _ => self.arithmetic(operator, left, right),
        }
    }

    fn arithmetic(
        &mut self,
        operator: Operator,
        left: &Value<'a>,
        right: &Value<'a>,
    ) -> Outcome<'a> {
        match (operator, left, right) {
            (Operator::Add, Value::Text(a), Value::Text(b)) => {
                self.meter
                    .charge(tenth(left.size().saturating_add(right.size())))?;
                Ok(Value::text([a.as_str(), b.as_str()].concat()))
            }
            (Operator::Add, Value::Bytes(a), Value::Bytes(b)) => {
                self.meter
                    .charge(tenth(left.size().saturating_add(right.size())))?;
                Ok(Value::Bytes([&**a, &**b].concat().into()))
            }
            (Operator::Add, Value::List(a), Value::List(b)) => {
                self.meter.charge(1)?;
                lists::join(&mut self.meter, a, b)
            }
            (_, Value::Duration(_) | Value::Timestamp(_), _)
            | (_, _, Value::Duration(_) | Value::Timestamp(_)) => {
                self.meter.charge(1)?;
                time::arithmetic(operator, left, right)
            }
            _ => {
                self.meter.charge(1)?;
                numbers::arithmetic(operator, left, right)
            }
        }
    }
}

/// The conversions, which are done before the rule runs if their argument is known.
const CONVERSIONS: [&str; 10] = [
    "bool",
    "bytes",
    "double",
    "duration",
    "dyn",
    "int",
    "string",
    "timestamp",
    "type",
    "uint",
];

/// Whether a value is known before the rule runs, so that its parts cost nothing.
pub(crate) fn is_constant(expr: &Expr) -> bool {
    match &expr.kind {
        Kind::Literal(_) | Kind::TypeName(_) => true,
        Kind::Call(call) => match &call.args[..] {
            [arg] if call.target.is_none() => {
                CONVERSIONS.contains(&&*call.name) && is_constant(arg)
            }
            _ => false,
        },
        Kind::List(items) => items.iter().all(|(item, _)| is_constant(item)),
        Kind::Map(entries) => {
            let mut entries = entries.iter();
            entries.all(|entry| is_constant(&entry.key) && is_constant(&entry.value))
        }
        _ => false,
    }
}

/// Whether kube-apiserver makes a hash set of a list.
fn is_set_of_literals(expr: &Expr) -> bool {
    let is_hashed = |(item, _): &(Expr, bool)| match &item.kind {
        Kind::Literal(literal) => !matches!(literal, Literal::Bytes(_) | Literal::Null),
        _ => false,
    };
    matches!(&expr.kind, Kind::List(items) if items.iter().all(is_hashed))
}

/// Whether an expression is a variable, or names a part of a value.
fn is_attribute(expr: &Expr) -> bool {
    matches!(
        expr.kind,
        Kind::Variable(_) | Kind::Select { .. } | Kind::Index { .. }
    )
}

/// The cost of a part of a value; one that is absent costs nothing.
fn part_cost(found: &Value<'_>, is_optional: bool) -> u64 {
    u64::from(!is_optional || !matches!(found, Value::Optional(None)))
}

/// The cost of the way to a value that is not a variable, nor a part of one.
fn relative_cost(operand: &Expr) -> u64 {
    u64::from(!is_attribute(operand) && !matches!(operand.kind, Kind::Conditional(_)))
}

/// The cost of comparing two values, of which the smaller one decides.
fn comparison_cost(left: &Value<'_>, right: &Value<'_>) -> u64 {
    match left {
        Value::Opaque(_) => 1,
        _ => tenth(left.size().min(right.size())),
    }
}

fn unknown(name: &str) -> Stop {
    Stop::error(format!("no such attribute(s): {name}"))
}

fn literal_value(literal: &Literal) -> Value<'_> {
    match literal {
        Literal::Null => Value::Null,
        Literal::Bool(flag) => Value::Bool(*flag),
        Literal::Int(number) => Value::Int(*number),
        Literal::Uint(number) => Value::Uint(*number),
        Literal::Double(number) => Value::Double(*number),
        Literal::Text(text) => Value::Text(Text::Borrowed(text)),
        Literal::Bytes(bytes) => Value::Bytes(Rc::from(&**bytes)),
    }
}

fn select<'a>(operand: &Value<'a>, field: &str, is_optional: bool) -> Outcome<'a> {
    match operand {
        Value::Map(map) => match (map.field(field), is_optional) {
            (Some(value), false) => value,
            (Some(value), true) => Ok(Value::some(value?)),
            (None, true) => Ok(Value::Optional(None)),
            (None, false) => Err(Stop::error(format!("no such key: {field}"))),
        },
        Value::Optional(None) => Ok(Value::Optional(None)),
        Value::Optional(Some(inner)) => match &**inner {
            inner @ Value::Map(_) => select(inner, field, true),
            _ => Err(Stop::overload()),
        },
        Value::List(_) => Err(lists::wrong_index("string")),
        // A value of a type that is known only now, such as a number or a text.
        _ if is_optional => Ok(Value::Optional(None)),
        _ => Err(Stop::error(format!("no such key: {field}"))),
    }
}

fn has<'a>(operand: &Value<'a>, field: &str) -> Outcome<'a> {
    match operand {
        Value::Map(map) => Ok(Value::Bool(map.field(field).is_some())),
        Value::Optional(None) => Ok(Value::Bool(false)),
        Value::Optional(Some(inner)) => match &**inner {
            Value::Map(map) => Ok(Value::Bool(map.field(field).is_some())),
            _ => Err(Stop::overload()),
        },
        Value::List(_) => Err(lists::wrong_index("string")),
        _ => Ok(Value::Bool(false)),
    }
}

/// The error of a call with the function and the types of its arguments, as cel-go names them for most functions.
fn named(stop: Stop, function: &str, args: &[Value<'_>]) -> Stop {
    if stop != Stop::overload() || PLAIN_OVERLOADS.contains(&function) {
        return stop;
    }
    if BY_FIRST_ITEM.contains(&function)
        && let Some(Value::List(list)) = args.first()
        && let Some(Ok(first)) = list.get(0)
        && first.is_ordered()
    {
        return stop;
    }
    let types: Vec<&str> = args.iter().map(Value::type_name).collect();
    Stop::error(match function {
        "size" => format!("{NO_OVERLOAD}: size"),
        _ => format!("{NO_OVERLOAD}: {function}({})", types.join(", ")),
    })
}
