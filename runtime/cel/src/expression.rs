//! Expressions about several variables, such as the conditions of admission, apart from the rules of a schema.

use std::sync::Arc;

use serde_json::Value as Json;

use crate::program::{Program, Refusal};
use crate::rules::{MAX_CALL_COST, OUT_OF_BUDGET};
use crate::schema::Decl;
use crate::scope::Scope;
use crate::stop::{NO_OVERLOAD, Stop};
use crate::value::Value;

/// The variables that expressions may name, with their types. None at first.
#[derive(Clone, Debug, Default)]
pub struct Variables(Scope);

impl Variables {
    /// The same with a variable of any type, such as an object whose kind is not known.
    #[must_use]
    pub fn any(mut self, name: &'static str) -> Self {
        self.0.declare(name, Arc::clone(Decl::any()));
        self
    }

    /// The same with a map from texts to values of any type.
    #[must_use]
    pub fn map(mut self, name: &'static str) -> Self {
        self.0.declare(name, Decl::map_of_any());
        self
    }

    /// The same variables, whose maps may be asked for a key by its escaped name, as rules name fields: `a__dot__b` for `a.b`.
    #[must_use]
    pub fn unescaped(mut self) -> Self {
        self.0.unescape();
        self
    }

    /// The same with an object of a schema, which has these fields of any type too. A schema of no type is a variable of any type.
    #[must_use]
    pub fn object(mut self, name: &'static str, schema: &Json, any: &[&str]) -> Self {
        let decl = Decl::of(schema, false).map(|mut decl| {
            for field in any {
                decl = decl.with_field(field, Decl::any());
            }
            Arc::new(decl)
        });
        self.0
            .declare(name, decl.unwrap_or_else(|| Arc::clone(Decl::any())));
        self
    }
}

/// An expression about variables.
#[derive(Debug)]
pub struct Expression {
    text: String,
    scope: Scope,
    program: Program,
}

/// An expression that is true or false.
#[derive(Debug)]
pub struct Condition(Expression);

/// Why an expression has no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// It costs more than what is left of a budget, or than one evaluation may. No further expression is evaluated then.
    Cost(String),
    /// It cannot be evaluated for these values.
    Evaluation(String),
}

impl Failure {
    /// Why, in the words of kube-apiserver.
    pub fn text(&self) -> &str {
        match self {
            Self::Cost(text) | Self::Evaluation(text) => text,
        }
    }
}

impl Expression {
    /// Compiles an expression.
    ///
    /// # Errors
    /// Why it is none, in the words of kube-apiserver: its syntax or its types.
    pub fn compile(text: &str, variables: &Variables) -> Result<Self, String> {
        let Variables(scope) = variables;
        let program = Program::compile(text, scope, &mut 0).map_err(|refusal| match refusal {
            Refusal::Compilation(text) => format!("compilation failed: {text}"),
            Refusal::Instantiation(text) => format!("program instantiation failed: {text}"),
        })?;
        Ok(Self {
            text: text.to_owned(),
            scope: scope.clone(),
            program,
        })
    }

    /// The text that was compiled.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether a field of a variable is named somewhere: `variable.field` or `variable["field"]`.
    pub fn names_field(&self, variable: &str, field: &str) -> bool {
        self.scope
            .find(variable)
            .is_some_and(|(index, _)| self.program.names_field(index, field))
    }

    /// Evaluates the expression with values of the variables, in the order in which they were declared; absent ones are null. The cost is
    /// taken from `budget`, and is at most [`MAX_CALL_COST`]. Returns `None` for a value that JSON does not have, such as a duration.
    ///
    /// # Errors
    /// [`Failure`].
    pub fn evaluate(&self, values: &[&Json], budget: &mut u64) -> Result<Option<Json>, Failure> {
        self.evaluate_with(values, budget, |value| match value.to_json() {
            Ok(json) => Ok(json),
            Err(Stop::Error(text)) => Err(self.fail(&text)),
            Err(Stop::Cost) => Err(Failure::Cost(OUT_OF_BUDGET.to_owned())),
        })
    }

    fn evaluate_with<R>(
        &self,
        values: &[&Json],
        budget: &mut u64,
        read: impl FnOnce(&Value<'_>) -> Result<R, Failure>,
    ) -> Result<R, Failure> {
        let decls = self.scope.decls();
        let given = values.iter().copied().chain(std::iter::repeat(&Json::Null));
        let values: Result<Vec<Value<'_>>, Stop> = decls
            .zip(given)
            .map(|(decl, json)| Value::of(json, decl))
            .collect();
        let values = match &values {
            Ok(values) => values,
            Err(Stop::Error(text)) => return Err(self.fail(text)),
            Err(Stop::Cost) => return Err(Failure::Cost(OUT_OF_BUDGET.to_owned())),
        };
        let (found, cost) = self.program.run(values, MAX_CALL_COST);
        if cost > *budget {
            *budget = 0;
            return Err(Failure::Cost(OUT_OF_BUDGET.to_owned()));
        }
        *budget -= cost;
        match found {
            Ok(value) => read(&value),
            Err(Stop::Error(text)) => Err(self.fail(&text)),
            Err(Stop::Cost) => Err(self.fail("operation cancelled: actual cost limit exceeded")),
        }
    }

    fn fail(&self, text: &str) -> Failure {
        let text = format!("expression '{}' resulted in error: {text}", self.text);
        Failure::Evaluation(text)
    }
}

impl Condition {
    /// Compiles a condition.
    ///
    /// # Errors
    /// Why it is none, in the words of kube-apiserver: its syntax, its types, or that its result is not true or false.
    pub fn compile(text: &str, variables: &Variables) -> Result<Self, String> {
        let expression = Expression::compile(text, variables)?;
        if !expression.program.is_condition() {
            let found = expression.program.output();
            return Err(format!("must evaluate to bool but got {found}"));
        }
        Ok(Self(expression))
    }

    /// The expression.
    pub fn expression(&self) -> &Expression {
        &self.0
    }

    /// Evaluates the condition, as [`Expression::evaluate`].
    ///
    /// # Errors
    /// [`Failure`].
    pub fn is_true(&self, values: &[&Json], budget: &mut u64) -> Result<bool, Failure> {
        let Self(expression) = self;
        expression.evaluate_with(values, budget, |value| match value {
            Value::Bool(flag) => Ok(*flag),
            _ => Err(expression.fail(NO_OVERLOAD)),
        })
    }
}
