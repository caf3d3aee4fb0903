//! Evaluates a checked expression, and counts its cost while it runs.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::rc::Rc;

use apiloom_meta::interrupt;
use apiloom_meta::regexp::Pattern;

use crate::ast::{Call, Entry, Expr, Kind, Literal, Operator, Variable};
use crate::functions::{lists, numbers, time};
use crate::patterns::Patterns;
use crate::value::{List, Map, Text, Value};

/// Cost of a list literal, besides its elements.
pub(crate) const LIST_COST: u64 = 10;

/// Cost of a map literal, besides its entries.
pub(crate) const MAP_COST: u64 = 30;

/// Least cost of a pattern that is known only when the rule runs: it is compiled then.
const PATTERN_COST: u64 = 10_000;

/// Bytes of memory of such a pattern for which it costs 1 more.
const PATTERN_BYTES: u64 = 16;

/// Maximum memory of such a pattern, in bytes.
const MAX_PATTERN: usize = 1024 * 1024;

/// Number of such patterns that are kept.
const KEPT_PATTERNS: usize = 8;

const NO_OVERLOAD: &str = "no such overload";

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

/// Why an evaluation ended without a value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Stop {
    /// The cost is above the limit. No operator hides this.
    Cost,
    Error(Cow<'static, str>),
}

impl Stop {
    pub(crate) fn error(text: impl Into<Cow<'static, str>>) -> Self {
        Self::Error(text.into())
    }

    /// The error of arguments that no signature of a function takes.
    pub(crate) fn overload() -> Self {
        Self::error(NO_OVERLOAD)
    }

    /// With the function and the types of its arguments, as cel-go names them for most functions.
    fn of_call(self, function: &str, args: &[Value<'_>]) -> Self {
        if self != Self::overload() || PLAIN_OVERLOADS.contains(&function) {
            return self;
        }
        if BY_FIRST_ITEM.contains(&function)
            && let Some(Value::List(list)) = args.first()
            && let Some(Ok(first)) = list.get(0)
            && first.is_ordered()
        {
            return self;
        }
        let types: Vec<&str> = args.iter().map(Value::type_name).collect();
        Self::error(match function {
            "size" => format!("{NO_OVERLOAD}: size"),
            _ => format!("{NO_OVERLOAD}: {function}({})", types.join(", ")),
        })
    }
}

/// A value, or why there is none.
pub(crate) type Outcome<'a> = Result<Value<'a>, Stop>;

/// A tenth of a size, rounded up: the cost of a pass over a string.
pub(crate) fn tenth(size: u64) -> u64 {
    size.div_ceil(10)
}

/// An evaluation.
pub(crate) struct Run<'a> {
    cost: u64,
    limit: u64,
    /// Steps that are not part of the cost yet.
    steps: u64,
    this: Value<'a>,
    old: Option<Value<'a>>,
    locals: Vec<Value<'a>>,
    /// The patterns that are literals.
    patterns: &'a Patterns,
    /// The last patterns that are not literals.
    recent: Vec<Pattern>,
}

impl<'a> Run<'a> {
    /// An evaluation with values for `self` and `oldSelf`, up to a cost.
    pub(crate) fn new(
        this: Value<'a>,
        old: Option<Value<'a>>,
        patterns: &'a Patterns,
        limit: u64,
    ) -> Self {
        Self {
            cost: 0,
            limit,
            steps: 0,
            this,
            old,
            locals: Vec::new(),
            patterns,
            recent: Vec::new(),
        }
    }

    /// The cost so far.
    pub(crate) fn cost(&self) -> u64 {
        self.cost
    }

    /// Adds to the cost.
    pub(crate) fn charge(&mut self, cost: u64) -> Result<(), Stop> {
        self.cost = self.cost.saturating_add(cost);
        // A unit is about as much work as a value of a document.
        let steps = u32::try_from(cost.max(1)).unwrap_or(u32::MAX);
        if self.cost > self.limit || interrupt::spend(steps) {
            return Err(Stop::Cost);
        }
        Ok(())
    }

    /// Counts a step that costs nothing in kube-apiserver, such as one of a comparison inside of values; ten cost 1.
    pub(crate) fn step(&mut self) -> Result<(), Stop> {
        self.steps += 1;
        if self.steps < 10 {
            return Ok(());
        }
        self.steps = 0;
        self.charge(1)
    }

    /// Counts several steps.
    pub(crate) fn work(&mut self, steps: u64) -> Result<(), Stop> {
        self.steps = self.steps.saturating_add(steps);
        let cost = self.steps / 10;
        self.steps %= 10;
        self.charge(cost)
    }

    /// As in kube-apiserver, a variable or a part of one costs less as a branch or as an index.
    fn refund(&mut self, expr: &Expr) {
        if is_attribute(expr) {
            self.cost = self.cost.saturating_sub(1);
        }
    }

    /// The pattern of a text.
    pub(crate) fn pattern(&mut self, text: &str) -> Result<Pattern, Stop> {
        let recent = || self.recent.iter().find(|kept| kept.text() == text);
        if let Some(found) = self.patterns.get(text).or_else(recent) {
            return Ok(found.clone());
        }
        self.charge(PATTERN_COST)?;
        let found = Pattern::new(text).map_err(|error| Stop::error(error.to_string()))?;
        let bytes = found.cost();
        if bytes > MAX_PATTERN {
            let detail = format!("pattern `{text}` takes {bytes} bytes, more than {MAX_PATTERN}");
            return Err(Stop::error(detail));
        }
        self.charge((bytes as u64 / PATTERN_BYTES).saturating_sub(PATTERN_COST))?;
        if self.recent.len() == KEPT_PATTERNS {
            self.recent.remove(0);
        }
        self.recent.push(found.clone());
        Ok(found)
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
        self.charge(1)?;
        match variable {
            Variable::This => Ok(self.this.clone()),
            Variable::Old => self.old.clone().ok_or_else(|| unknown("oldSelf")),
            Variable::Local(index) => {
                let value = self.locals.get(index as usize);
                value.cloned().ok_or_else(|| unknown("a variable"))
            }
        }
    }

    #[inline(never)]
    fn select(&mut self, operand: &'a Expr, field: &str, is_optional: bool) -> Outcome<'a> {
        self.charge(relative_cost(operand))?;
        let operand = self.value(operand)?;
        let found = select(&operand, field, is_optional)?;
        self.charge(part_cost(&found, is_optional))?;
        Ok(found)
    }

    #[inline(never)]
    fn has(&mut self, operand: &'a Expr, field: &str) -> Outcome<'a> {
        self.charge(relative_cost(operand))?;
        let operand = self.value(operand)?;
        has(&operand, field)
    }

    #[inline(never)]
    fn index(&mut self, operand: &'a Expr, at: &'a Expr, is_optional: bool) -> Outcome<'a> {
        self.charge(relative_cost(operand))?;
        let operand = self.value(operand)?;
        let key = self.value(at)?;
        self.refund(at);
        let found = lists::index(&operand, &key, is_optional)?;
        self.charge(part_cost(&found, is_optional))?;
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
        self.step()?;
        let value = self.value(branch)?;
        self.refund(branch);
        Ok(value)
    }

    #[inline(never)]
    fn not(&mut self, operand: &'a Expr) -> Outcome<'a> {
        let flag = self.condition(operand)?;
        self.charge(1)?;
        Ok(Value::Bool(!flag))
    }

    #[inline(never)]
    fn negate(&mut self, operand: &'a Expr) -> Outcome<'a> {
        let operand = self.value(operand)?;
        self.charge(1)?;
        numbers::negate(&operand)
    }

    #[inline(never)]
    fn binary(&mut self, operator: Operator, [left, right]: &'a [Expr; 2]) -> Outcome<'a> {
        let is_fixed_set = operator == Operator::In && is_set_of_literals(right);
        let left = self.value(left)?;
        let right = self.value(right)?;
        if is_fixed_set {
            return lists::contains_literal(self, &left, &right);
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
                self.step()?;
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
        self.step()?;
        let mut args = Vec::with_capacity(call.args.len() + 1);
        for part in call.target.iter().chain(&call.args) {
            args.push(self.value(part)?);
        }
        (function.run)(self, &args).map_err(|stop| stop.of_call(function.name, &args))
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
            self.work(items.len() as u64)?;
        } else {
            self.charge(LIST_COST)?;
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
            self.work(entries.len() as u64)?;
        } else {
            self.charge(MAP_COST)?;
        }
        Ok(Value::Map(Map::Made(Rc::new(made))))
    }

    /// An operator of two values.
    fn operate(&mut self, operator: Operator, left: &Value<'a>, right: &Value<'a>) -> Outcome<'a> {
        use Operator::{Equal, Greater, GreaterEqual, In, Less, LessEqual, NotEqual};
        match operator {
            Equal | NotEqual => {
                self.charge(comparison_cost(left, right))?;
                let is_equal = match self.equal(left, right) {
                    // What cannot be compared is not equal, in the sense of `!=` alone.
                    Err(Stop::Error(_)) if operator == NotEqual => false,
                    found => found?,
                };
                Ok(Value::Bool(is_equal == (operator == Equal)))
            }
            Less | LessEqual | Greater | GreaterEqual => {
                let is_text = matches!(left, Value::Text(_) | Value::Bytes(_));
                self.charge(if is_text {
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
            In => lists::contains(self, left, right),
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
                self.charge(tenth(left.size().saturating_add(right.size())))?;
                Ok(Value::text([a.as_str(), b.as_str()].concat()))
            }
            (Operator::Add, Value::Bytes(a), Value::Bytes(b)) => {
                self.charge(tenth(left.size().saturating_add(right.size())))?;
                Ok(Value::Bytes([&**a, &**b].concat().into()))
            }
            (Operator::Add, Value::List(a), Value::List(b)) => {
                self.charge(1)?;
                lists::join(self, a, b)
            }
            (_, Value::Duration(_) | Value::Timestamp(_), _)
            | (_, _, Value::Duration(_) | Value::Timestamp(_)) => {
                self.charge(1)?;
                time::arithmetic(operator, left, right)
            }
            _ => {
                self.charge(1)?;
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

/// A list from values, for functions.
pub(crate) fn list<'a>(value: &Value<'a>) -> Result<List<'a>, Stop> {
    match value {
        Value::List(list) => Ok(list.clone()),
        _ => Err(Stop::overload()),
    }
}
