//! Types of expressions, and their unification.

use std::fmt;
use std::sync::Arc;

use crate::schema::{Decl, Shape};

/// A type of a value that is not part of the language itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opaque {
    Ip,
    Cidr,
    Quantity,
    Url,
    Semver,
    Format,
}

impl Opaque {
    /// The name of the type in kube-apiserver.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ip => "net.IP",
            Self::Cidr => "net.CIDR",
            Self::Quantity => "kubernetes.Quantity",
            Self::Url => "kubernetes.URL",
            Self::Semver => "kubernetes.Semver",
            Self::Format => "kubernetes.NamedFormat",
        }
    }
}

/// The type of an expression.
#[derive(Clone, Debug)]
pub(crate) enum Type {
    Dyn,
    Null,
    Bool,
    Int,
    Uint,
    Double,
    Text,
    Bytes,
    Duration,
    Timestamp,
    List(Arc<Type>),
    Map(Arc<Type>, Arc<Type>),
    Object(Arc<Decl>),
    Optional(Arc<Type>),
    /// The type of types.
    Meta,
    Opaque(Opaque),
    /// A type that is not known yet.
    Variable(u32),
    /// That of an expression with an issue: like [`Type::Dyn`], so that the check goes on, but told apart from it.
    Error,
}

impl Type {
    /// The type of a schema's values.
    pub(crate) fn of(decl: &Arc<Decl>) -> Self {
        match &decl.shape {
            Shape::Any | Shape::IntOrText => Self::Dyn,
            Shape::Bool => Self::Bool,
            Shape::Int => Self::Int,
            Shape::Double => Self::Double,
            Shape::Text => Self::Text,
            Shape::Bytes => Self::Bytes,
            Shape::Duration => Self::Duration,
            Shape::Date | Shape::Time => Self::Timestamp,
            Shape::List(items, _) => Self::List(Arc::new(Self::of(items))),
            Shape::Map(values) => Self::Map(Arc::new(Self::Text), Arc::new(Self::of(values))),
            Shape::Object(_) => Self::Object(Arc::clone(decl)),
        }
    }

    /// Whether every value has the same size.
    pub(crate) fn is_scalar(&self) -> bool {
        match self {
            Self::Bool | Self::Int | Self::Uint | Self::Double => true,
            Self::Duration | Self::Timestamp => true,
            Self::Optional(inner) => inner.is_scalar(),
            _ => false,
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dyn => f.write_str("dyn"),
            Self::Null => f.write_str("null"),
            Self::Bool => f.write_str("bool"),
            Self::Int => f.write_str("int"),
            Self::Uint => f.write_str("uint"),
            Self::Double => f.write_str("double"),
            Self::Text => f.write_str("string"),
            Self::Bytes => f.write_str("bytes"),
            Self::Duration => f.write_str("duration"),
            Self::Timestamp => f.write_str("timestamp"),
            Self::List(items) => write!(f, "list({items})"),
            Self::Map(keys, values) => write!(f, "map({keys}, {values})"),
            Self::Object(_) => f.write_str("object"),
            Self::Optional(inner) => write!(f, "optional_type({inner})"),
            Self::Meta => f.write_str("type"),
            Self::Opaque(opaque) => f.write_str(opaque.name()),
            Self::Variable(_) => f.write_str("dyn"),
            Self::Error => f.write_str("!error!"),
        }
    }
}

/// What is known of type variables. Attempts can be undone.
#[derive(Debug, Default)]
pub(crate) struct Bindings {
    slots: Vec<Option<Type>>,
    /// The variables in the order in which they became known.
    trail: Vec<u32>,
}

/// A state of [`Bindings`] to which it can return.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    slots: usize,
    trail: usize,
}

impl Bindings {
    /// A new variable.
    pub(crate) fn fresh(&mut self) -> Type {
        self.slots.push(None);
        Type::Variable(self.slots.len() as u32 - 1)
    }

    /// The number of variables.
    pub(crate) fn len(&self) -> u32 {
        self.slots.len() as u32
    }

    /// The present state.
    pub(crate) fn mark(&self) -> Mark {
        Mark {
            slots: self.slots.len(),
            trail: self.trail.len(),
        }
    }

    /// Forgets what was learned since then.
    pub(crate) fn rollback(&mut self, mark: Mark) {
        for variable in self.trail.drain(mark.trail..) {
            if let Some(slot) = self.slots.get_mut(variable as usize) {
                *slot = None;
            }
        }
        self.slots.truncate(mark.slots);
    }

    /// The type that a variable stands for, one level deep. That of an expression with an issue is any.
    pub(crate) fn head(&self, found: &Type) -> Type {
        match self.known(found) {
            Type::Error => Type::Dyn,
            known => known,
        }
    }

    fn known(&self, found: &Type) -> Type {
        let mut found = found.clone();
        while let Type::Variable(index) = found {
            match self.slots.get(index as usize) {
                Some(Some(known)) => found = known.clone(),
                _ => break,
            }
        }
        found
    }

    /// A type without the variables that are known; the others become `dyn` if `is_final`.
    pub(crate) fn resolve(&self, found: &Type, is_final: bool) -> Type {
        let inner = |part: &Arc<Type>| Arc::new(self.resolve(part, is_final));
        match self.known(found) {
            Type::List(items) => Type::List(inner(&items)),
            Type::Map(keys, values) => Type::Map(inner(&keys), inner(&values)),
            Type::Optional(value) => Type::Optional(inner(&value)),
            Type::Variable(_) if is_final => Type::Dyn,
            other => other,
        }
    }

    fn occurs(&self, variable: u32, found: &Type) -> bool {
        match self.head(found) {
            Type::Variable(other) => other == variable,
            Type::List(inner) | Type::Optional(inner) => self.occurs(variable, &inner),
            Type::Map(keys, values) => {
                self.occurs(variable, &keys) || self.occurs(variable, &values)
            }
            _ => false,
        }
    }

    fn bind(&mut self, variable: u32, found: Type) -> bool {
        if self.occurs(variable, &found) {
            return false;
        }
        if let Some(slot) = self.slots.get_mut(variable as usize) {
            *slot = Some(found);
            self.trail.push(variable);
        }
        true
    }

    /// Whether a value of type `from` can be one of type `to`; learns what variables must be for that.
    pub(crate) fn assign(&mut self, to: &Type, from: &Type) -> bool {
        match (self.head(to), self.head(from)) {
            (Type::Variable(a), Type::Variable(b)) if a == b => true,
            (Type::Variable(variable), other) | (other, Type::Variable(variable)) => {
                self.bind(variable, other)
            }
            (Type::Dyn, _) | (_, Type::Dyn) => true,
            (Type::Null, other) | (other, Type::Null) => matches!(
                other,
                Type::Null
                    | Type::Object(_)
                    | Type::Opaque(_)
                    | Type::Optional(_)
                    | Type::Duration
                    | Type::Timestamp
            ),
            (Type::List(a), Type::List(b)) | (Type::Optional(a), Type::Optional(b)) => {
                self.assign(&a, &b)
            }
            (Type::Map(a, b), Type::Map(c, d)) => self.assign(&a, &c) && self.assign(&b, &d),
            (Type::Object(a), Type::Object(b)) => Arc::ptr_eq(&a, &b),
            (Type::Opaque(a), Type::Opaque(b)) => a == b,
            (a, b) => std::mem::discriminant(&a) == std::mem::discriminant(&b),
        }
    }
}
