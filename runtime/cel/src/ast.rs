//! The syntax tree of an expression. Macros such as `all` are nodes of their own, not loops over an accumulator.

use std::sync::Arc;

use crate::library::Function;
use crate::operator::Operator;

/// Maximum depth of a tree, so that recursion over it fits into a thread's stack.
pub(crate) const MAX_DEPTH: u16 = 250;

/// Maximum depth of brackets and arguments.
pub(crate) const MAX_BRACKETS: u16 = 100;

/// Depth that a macro counts as: its evaluation needs more of the stack.
pub(crate) const MACRO_DEPTH: u16 = 4;

/// A literal value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Literal {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    Text(Arc<str>),
    Bytes(Arc<[u8]>),
}

/// An expression with its place in the source.
#[derive(Clone, Debug)]
pub(crate) struct Expr {
    /// Index of the expression in the tables of types and sizes.
    pub(crate) id: u32,
    /// Place in the source, in bytes.
    pub(crate) position: u32,
    /// Number of levels from here down.
    pub(crate) depth: u16,
    pub(crate) kind: Kind,
}

/// A value that an identifier stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Variable {
    /// A variable of the scope, by its index.
    Global(u32),
    /// A variable of a macro, by its index from the outermost.
    Local(u32),
}

/// A macro over the elements of a list or a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FoldOp {
    All,
    Exists,
    ExistsOne,
    /// `map`, and `transformList` with two variables.
    Map,
    Filter,
    TransformMap,
    TransformMapEntry,
    SortBy,
}

/// A macro with its variables and expressions.
#[derive(Clone, Debug)]
pub(crate) struct Fold {
    pub(crate) op: FoldOp,
    pub(crate) range: Expr,
    /// One or two variables: the element, or the index or key and the element.
    pub(crate) variables: Vec<Arc<str>>,
    /// Condition of `map` and of the transformations.
    pub(crate) filter: Option<Expr>,
    pub(crate) body: Expr,
}

/// `optMap` and `optFlatMap`.
#[derive(Clone, Debug)]
pub(crate) struct OptionalMap {
    pub(crate) is_flat: bool,
    pub(crate) target: Expr,
    pub(crate) variable: Arc<str>,
    pub(crate) body: Expr,
}

/// An entry of a map literal.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) key: Expr,
    pub(crate) value: Expr,
    /// Whether the value is an optional, and the entry is left out if it has none.
    pub(crate) is_optional: bool,
}

/// A call of a function.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) name: Arc<str>,
    /// The value before the dot; `None` for a global function.
    pub(crate) target: Option<Expr>,
    pub(crate) args: Vec<Expr>,
    /// Set by the checker.
    pub(crate) function: Option<&'static Function>,
}

/// The form of an expression.
#[derive(Clone, Debug)]
pub(crate) enum Kind {
    Literal(Literal),
    Identifier(Arc<str>),
    /// A resolved identifier.
    Variable(Variable),
    /// A type used as a value, by its name.
    TypeName(&'static str),
    Select {
        operand: Box<Expr>,
        field: Arc<str>,
        is_optional: bool,
    },
    Has {
        operand: Box<Expr>,
        field: Arc<str>,
    },
    Index {
        operand: Box<Expr>,
        index: Box<Expr>,
        is_optional: bool,
    },
    Call(Box<Call>),
    And(Vec<Expr>),
    Or(Vec<Expr>),
    Conditional(Box<[Expr; 3]>),
    Not(Box<Expr>),
    Negate(Box<Expr>),
    Binary(Operator, Box<[Expr; 2]>),
    /// Elements, and whether each is an optional.
    List(Vec<(Expr, bool)>),
    Map(Vec<Entry>),
    Fold(Box<Fold>),
    OptionalMap(Box<OptionalMap>),
}
