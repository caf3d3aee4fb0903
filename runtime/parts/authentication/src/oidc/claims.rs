//! The claims of a token, and the user that they describe, in the order and with the errors of kube-apiserver.

use std::collections::BTreeMap;

use apiloom_cel::{Expression, MAX_CALL_COST};
use apiloom_registry::auth::UserInfo;
use serde_json::{Map, Number, Value, json};

use super::config::{ClaimMappings, IssuerConfig};
use super::expressions::{Check, Expressions};
use crate::users::CREDENTIAL_ID;

/// Claims by their names.
pub(super) type Claims = Map<String, Value>;

/// What is wrong with the values of an expression.
const NO_TEXTS: &str = "expression must return a string or a list of strings";

/// The most that all expressions about a token may cost.
const BUDGET: u64 = 10 * MAX_CALL_COST;

/// Maps the claims of tokens of an issuer to users.
#[derive(Debug)]
pub(super) struct Mapper<'a> {
    pub(super) config: &'a IssuerConfig,
    pub(super) expressions: &'a Expressions,
}

impl Mapper<'_> {
    /// The user of a token.
    ///
    /// # Errors
    /// The first claim that is missing or wrong, the first expression without a value, and the first rule that does not hold.
    pub(super) fn user(&self, claims: &Claims) -> Result<UserInfo, String> {
        let mut evaluation = Evaluation {
            claims: json!({}),
            budget: BUDGET,
        };
        if self.has_expressions() {
            evaluation.claims = Value::Object(claims.clone());
            with_floats(&mut evaluation.claims);
        }
        let user = UserInfo {
            name: self.name(claims, &mut evaluation)?,
            groups: self.groups(claims, &mut evaluation)?,
            uid: self.uid(claims, &mut evaluation)?,
            extra: self.extra(claims, &mut evaluation)?,
        };
        self.check_claims(claims)?;
        let Evaluation {
            claims,
            ref mut budget,
        } = evaluation;
        hold(&self.expressions.claim_checks, &claims, budget)
            .map_err(|why| format!("oidc: error evaluating claim validation expression: {why}"))?;
        let checks = &self.expressions.user_checks;
        if !checks.is_empty() {
            let shown = json!({
                "username": user.name,
                "uid": user.uid,
                "groups": user.groups,
                "extra": user.extra,
            });
            hold(checks, &shown, budget).map_err(|why| {
                format!("oidc: error evaluating user info validation rule: {why}")
            })?;
        }
        Ok(user)
    }

    fn mappings(&self) -> &ClaimMappings {
        &self.config.claim_mappings
    }

    fn has_expressions(&self) -> bool {
        let all = self.expressions;
        all.username.is_some()
            || all.groups.is_some()
            || all.uid.is_some()
            || !all.extra.is_empty()
            || !all.claim_checks.is_empty()
    }

    fn name(&self, claims: &Claims, evaluation: &mut Evaluation) -> Result<String, String> {
        if let Some(expression) = &self.expressions.username {
            let fail =
                |why: &str| format!("oidc: error evaluating username claim expression: {why}");
            return match evaluation.value(expression).map_err(|why| fail(&why))? {
                Some(Value::String(name)) if name.is_empty() => {
                    Err("oidc: empty username via CEL expression is not allowed".to_owned())
                }
                Some(Value::String(name)) => Ok(name),
                _ => Err(fail("username claim expression must return a string")),
            };
        }
        let mapping = &self.mappings().username;
        let claim = &mapping.claim;
        let name = text(claims, claim)
            .map_err(|why| format!("oidc: parse username claims {claim:?}: {why}"))?;
        if claim == "email"
            && let Some(verified) = claims.get("email_verified")
        {
            match verified {
                Value::Bool(true) => {}
                Value::Bool(false) | Value::Null => {
                    return Err("oidc: email not verified".to_owned());
                }
                other => {
                    return Err(format!(
                        "oidc: parse 'email_verified' claim: {}",
                        unreadable(other, "bool")
                    ));
                }
            }
        }
        Ok(mapping.prefix.clone().unwrap_or_default() + &name)
    }

    fn groups(&self, claims: &Claims, evaluation: &mut Evaluation) -> Result<Vec<String>, String> {
        let mapping = &self.mappings().groups;
        if let Some(value) = claims
            .get(&mapping.claim)
            .filter(|_| !mapping.claim.is_empty())
        {
            let groups = texts(value)
                .map_err(|why| format!("oidc: parse groups claim {:?}: {why}", mapping.claim))?;
            let prefix = mapping.prefix.as_deref().unwrap_or_default();
            return Ok(groups.map(|group| format!("{prefix}{group}")).collect());
        }
        let Some(expression) = &self.expressions.groups else {
            return Ok(Vec::new());
        };
        let value = evaluation.value(expression);
        let groups = value.and_then(|value| evaluated_texts(value).map_err(str::to_owned));
        groups.map_err(|why| format!("oidc: error evaluating group claim expression: {why}"))
    }

    fn uid(&self, claims: &Claims, evaluation: &mut Evaluation) -> Result<String, String> {
        let claim = &self.mappings().uid.claim;
        if !claim.is_empty() {
            let uid = text(claims, claim);
            return uid.map_err(|why| format!("oidc: parse uid claim {claim:?}: {why}"));
        }
        let Some(expression) = &self.expressions.uid else {
            return Ok(String::new());
        };
        let fail = |why: &str| format!("oidc: error evaluating uid claim expression: {why}");
        match evaluation.value(expression).map_err(|why| fail(&why))? {
            Some(Value::String(uid)) => Ok(uid),
            _ => Err(fail("uid claim expression must return a string")),
        }
    }

    fn extra(
        &self,
        claims: &Claims,
        evaluation: &mut Evaluation,
    ) -> Result<BTreeMap<String, Vec<String>>, String> {
        let mut extra = BTreeMap::new();
        if let Some(Value::String(id)) = claims.get("jti").filter(|id| *id != "") {
            extra.insert(CREDENTIAL_ID.to_owned(), vec![format!("JTI={id}")]);
        }
        for (key, expression) in &self.expressions.extra {
            let values = evaluated_texts(evaluation.value(expression)?).map_err(|why| {
                let text = expression.text();
                format!("oidc: error evaluating extra claim expression: {text}: {why}")
            })?;
            if !values.is_empty() {
                extra.insert(key.clone(), values);
            }
        }
        Ok(extra)
    }

    /// Checks the claims that must have values.
    fn check_claims(&self, claims: &Claims) -> Result<(), String> {
        for rule in &self.config.claim_validation_rules {
            let (claim, wanted) = (&rule.claim, &rule.required_value);
            if claim.is_empty() {
                continue;
            }
            if !claims.contains_key(claim) {
                return Err(format!(
                    "oidc: required claim {claim} not present in ID token"
                ));
            }
            let value =
                text(claims, claim).map_err(|why| format!("oidc: parse claim {claim}: {why}"))?;
            if value != *wanted {
                return Err(format!(
                    "oidc: required claim {claim} value does not match. Got = {value}, want = {wanted}"
                ));
            }
        }
        Ok(())
    }
}

/// The evaluation of expressions about the claims of a token.
struct Evaluation {
    claims: Value,
    budget: u64,
}

impl Evaluation {
    fn value(&mut self, expression: &Expression) -> Result<Option<Value>, String> {
        let value = expression.evaluate(&[&self.claims], &mut self.budget);
        value.map_err(|failure| failure.text().to_owned())
    }
}

/// Checks that conditions hold.
fn hold(checks: &[Check], about: &Value, budget: &mut u64) -> Result<(), String> {
    for Check { condition, message } in checks {
        let is_true = condition.is_true(&[about], budget);
        if !is_true.map_err(|failure| failure.text().to_owned())? {
            let text = condition.expression().text();
            return Err(format!("validation expression '{text}' failed: {message}"));
        }
    }
    Ok(())
}

/// A claim that is a text.
fn text(claims: &Claims, claim: &str) -> Result<String, String> {
    match claims.get(claim) {
        None => Err("claim not present".to_owned()),
        Some(Value::String(text)) => Ok(text.clone()),
        // As Go reads it.
        Some(Value::Null) => Ok(String::new()),
        Some(other) => Err(unreadable(other, "string")),
    }
}

/// A claim that is a text or a list of texts.
fn texts(value: &Value) -> Result<impl Iterator<Item = &str>, String> {
    let items: &[Value] = match value {
        Value::Array(items) => items,
        Value::Null => &[],
        one @ Value::String(_) => std::slice::from_ref(one),
        other => return Err(unreadable(other, "string")),
    };
    if items
        .iter()
        .any(|item| !(item.is_string() || item.is_null()))
    {
        return Err(unreadable(value, "string"));
    }
    Ok(items.iter().map(|item| item.as_str().unwrap_or_default()))
}

/// The texts of the value of an expression, without empty ones.
fn evaluated_texts(value: Option<Value>) -> Result<Vec<String>, &'static str> {
    let items = match value {
        Some(Value::Null) => Vec::new(),
        Some(text @ Value::String(_)) => vec![text],
        Some(Value::Array(items)) => items,
        _ => return Err(NO_TEXTS),
    };
    let mut texts = Vec::new();
    for item in items {
        match item {
            Value::String(text) if text.is_empty() => {}
            Value::String(text) => texts.push(text),
            _ => return Err(NO_TEXTS),
        }
    }
    Ok(texts)
}

/// What Go says of a value of another type.
fn unreadable(value: &Value, wanted: &str) -> String {
    let found = match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    format!("json: cannot unmarshal {found} into Go value of type {wanted}")
}

/// Makes all numbers floats, as Go reads them.
fn with_floats(value: &mut Value) {
    match value {
        Value::Number(number) => {
            if let Some(float) = number.as_f64().and_then(Number::from_f64) {
                *number = float;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(with_floats),
        Value::Object(fields) => fields.values_mut().for_each(with_floats),
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests;
