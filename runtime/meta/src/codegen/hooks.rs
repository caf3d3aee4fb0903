//! Builds the tree of typed checks and computed defaults that belongs to a schema.

use std::any::TypeId;
use std::cell::RefCell;
use std::marker::PhantomData;

use crate::kind::{ApiType, CheckFn, DefaultFn, Hooks};
use crate::{FieldError, FieldPath};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Builds the hooks of a type.
pub type HooksFn = fn() -> Hooks;

/// Finds the hooks of a type, which may have none. The inherent constant exists for API types and takes precedence over
/// [`ProbeForeign`].
#[derive(Debug)]
pub struct Probe<T>(PhantomData<T>);

impl<T: ApiType> Probe<T> {
    /// The hooks of the type.
    pub const HOOKS: HooksFn = T::hooks;
}

/// The constant of [`Probe`] for types of other crates.
pub trait ProbeForeign {
    /// No hooks.
    const HOOKS: HooksFn = Hooks::default;
}

impl<T> ProbeForeign for Probe<T> {}

thread_local! {
    /// Types whose hooks are being built: it stops the recursion of a type that contains itself, as in its schema.
    static BUILDING: RefCell<Vec<TypeId>> = const { RefCell::new(Vec::new()) };
}

/// Builds [`Hooks`].
#[derive(Debug, Default)]
pub struct Tree(Hooks);

impl Tree {
    /// The hooks of a type, built by a function of its expansion.
    pub fn of<T: 'static>(build: fn(Tree) -> Tree) -> Hooks {
        Self::of_id(TypeId::of::<T>(), build)
    }

    fn of_id(id: TypeId, build: fn(Tree) -> Tree) -> Hooks {
        if BUILDING.with_borrow(|building| building.contains(&id)) {
            return Hooks::default();
        }
        BUILDING.with_borrow_mut(|building| building.push(id));
        let tree = build(Tree::default());
        BUILDING.with_borrow_mut(Vec::pop);
        tree.0
    }

    /// Hooks of one value, for a field or an element.
    pub fn part(hooks: Hooks) -> Self {
        Self(hooks)
    }

    /// A check of the value itself.
    #[must_use]
    pub fn check(mut self, check: CheckFn) -> Self {
        self.0.checks.push(check);
        self
    }

    /// A default for a field, computed from the value.
    #[must_use]
    pub fn default_of(mut self, field: &'static str, default: DefaultFn) -> Self {
        self.0.defaults.push((field, default));
        self
    }

    /// The fields that have the hooks of their types alone.
    #[must_use]
    pub fn fields(mut self, fields: &[(&'static str, HooksFn)]) -> Self {
        for (name, hooks) in fields {
            self = self.field(name, Self::part(hooks()));
        }
        self
    }

    /// The hooks of a field.
    #[must_use]
    pub fn field(mut self, name: &'static str, part: Tree) -> Self {
        if !part.0.is_empty() {
            self.0.fields.push((name, part.0));
        }
        self
    }

    /// The hooks of a flattened field, whose fields belong to the parent.
    #[must_use]
    pub fn flatten(mut self, part: Tree) -> Self {
        self.0.fields.extend(part.0.fields);
        self.0.checks.extend(part.0.checks);
        self.0.defaults.extend(part.0.defaults);
        self
    }

    /// The hooks of the value inside a newtype.
    #[must_use]
    pub fn value(mut self, part: Tree) -> Self {
        self.0 = part.0;
        self
    }

    /// Additional hooks of every list element or map value.
    #[must_use]
    pub fn each(mut self, part: Tree) -> Self {
        let own = self.0.items.take().map(|items| *items).unwrap_or_default();
        let all = Tree(own).flatten(Tree(Hooks {
            items: None,
            ..part.0.clone()
        }));
        let items = Hooks {
            items: all.0.items.or(part.0.items),
            ..all.0
        };
        self.0.items = if items.is_empty() {
            None
        } else {
            Some(Box::new(items))
        };
        self
    }
}

/// The results that a check may return.
#[diagnostic::on_unimplemented(
    message = "a check does not return `{Self}`",
    note = "it returns `Vec<FieldError>`, `Option<FieldError>` or `Result<(), FieldError>`"
)]
pub trait ReturnsErrors {
    /// The errors.
    fn into_errors(self) -> Vec<FieldError>;
}

impl ReturnsErrors for Vec<FieldError> {
    fn into_errors(self) -> Vec<FieldError> {
        self
    }
}

impl ReturnsErrors for Option<FieldError> {
    fn into_errors(self) -> Vec<FieldError> {
        self.into_iter().collect()
    }
}

impl ReturnsErrors for Result<(), FieldError> {
    fn into_errors(self) -> Vec<FieldError> {
        self.err().into_iter().collect()
    }
}

/// Runs a typed check on a value of a document.
pub fn typed_check<T: DeserializeOwned, R: ReturnsErrors>(
    value: &Value,
    path: &FieldPath,
    check: impl Fn(&T, &FieldPath) -> R,
) -> Vec<FieldError> {
    match T::deserialize(value) {
        Ok(typed) => check(&typed, path).into_errors(),
        Err(error) => vec![FieldError::type_invalid(path, value, &error.to_string())],
    }
}

/// Checks that a value can be deserialized as its type, where the schema does not cover it.
pub fn has_form<T: DeserializeOwned + 'static>(value: &Value, path: &FieldPath) -> Vec<FieldError> {
    // Every value has this type, and the check would copy it.
    if TypeId::of::<T>() == TypeId::of::<Value>() {
        return Vec::new();
    }
    typed_check::<T, _>(value, path, |_, _| None)
}

/// Computes a default from its parent. A parent that is not well-formed gets none; validation reports it.
pub fn computed_default<P: DeserializeOwned, T: Serialize>(
    parent: &Value,
    compute: impl Fn(&P) -> T,
) -> Option<Value> {
    let parent = P::deserialize(parent).ok()?;
    serde_json::to_value(compute(&parent))
        .ok()
        .filter(|value| !value.is_null())
}
