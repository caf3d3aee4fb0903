//! What is compiled of an issuer's configuration, and what is wrong with it: the rules of kube-apiserver for AuthenticationConfiguration.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use apiloom_cel::{Condition, Expression, Variables};
use apiloom_meta::field::{FieldError, FieldPath};
use apiloom_meta::names;
use serde::Serialize;
use serde_json::json;

use super::config::{
    ClaimMappings, ClaimRule, ExtraMapping, IssuerConfig, Mapping, PrefixedMapping, UserRule,
};

/// The one variable of expressions about claims.
const CLAIMS: &str = "claims";

static OF_CLAIMS: LazyLock<Variables> =
    LazyLock::new(|| Variables::default().map(CLAIMS).unescaped());

static OF_USER: LazyLock<Variables> = LazyLock::new(|| {
    let text = json!({"type": "string"});
    let texts = json!({"type": "array", "items": text});
    let user = json!({"type": "object", "properties": {
        "username": text,
        "uid": text,
        "groups": texts,
        "extra": {"type": "object", "additionalProperties": texts},
    }});
    Variables::default().object("user", &user, &[]).unescaped()
});

/// A condition with what is said if it does not hold.
#[derive(Debug)]
pub(super) struct Check {
    pub(super) condition: Condition,
    pub(super) message: String,
}

/// The compiled expressions of an issuer.
#[derive(Debug, Default)]
pub(super) struct Expressions {
    pub(super) username: Option<Expression>,
    pub(super) groups: Option<Expression>,
    pub(super) uid: Option<Expression>,
    /// With the keys that they give values to.
    pub(super) extra: Vec<(String, Expression)>,
    pub(super) claim_checks: Vec<Check>,
    pub(super) user_checks: Vec<Check>,
}

impl Expressions {
    /// Compiles the expressions of an issuer. What is wrong is added to `errors`.
    pub(super) fn compile(
        config: &IssuerConfig,
        path: &FieldPath,
        errors: &mut Vec<FieldError>,
    ) -> Self {
        let mut compiler = Compiler { errors };
        let claim_checks = compiler.claim_checks(
            &config.claim_validation_rules,
            &path.child("claimValidationRules"),
        );
        let mappings = &config.claim_mappings;
        let at = path.child("claimMappings");
        let username = compiler.prefixed(&mappings.username, &at.child("username"), true);
        let groups = compiler.prefixed(&mappings.groups, &at.child("groups"), false);
        let uid = compiler.uid(&mappings.uid, &at.child("uid"));
        let extra = compiler.extra(&mappings.extra, &at.child("extra"));
        let compiled = Self {
            username,
            groups,
            uid,
            extra,
            claim_checks,
            user_checks: Vec::new(),
        };
        compiled.check_email(mappings, &at, compiler.errors);
        let user_checks = compiler.user_checks(
            &config.user_validation_rules,
            &path.child("userValidationRules"),
        );
        Self {
            user_checks,
            ..compiled
        }
    }

    /// An address that is a name must have been verified.
    fn check_email(
        &self,
        mappings: &ClaimMappings,
        path: &FieldPath,
        errors: &mut Vec<FieldError>,
    ) {
        let is_named = |one: &Expression| one.names_field(CLAIMS, "email");
        if !self.username.as_ref().is_some_and(is_named) {
            return;
        }
        let extra = self.extra.iter().map(|(_, expression)| expression);
        let checks = self
            .claim_checks
            .iter()
            .map(|check| check.condition.expression());
        let mut all = self.username.iter().chain(extra).chain(checks);
        if !all.any(|one| one.names_field(CLAIMS, "email_verified")) {
            let path = path.child("username").child("expression");
            let why = "claims.email_verified must be used in claimMappings.username.expression or claimMappings.extra[*].valueExpression or claimValidationRules[*].expression when claims.email is used in claimMappings.username.expression";
            errors.push(FieldError::invalid(
                &path,
                &mappings.username.expression,
                why,
            ));
        }
    }
}

struct Compiler<'a> {
    errors: &'a mut Vec<FieldError>,
}

impl Compiler<'_> {
    fn invalid(&mut self, path: &FieldPath, value: impl Serialize, why: &str) {
        self.errors.push(FieldError::invalid(path, value, why));
    }

    fn duplicate(&mut self, path: &FieldPath, value: &str) {
        self.errors.push(FieldError::duplicate(path, value));
    }

    fn required(&mut self, path: &FieldPath, why: &str) {
        self.errors.push(FieldError::required(path, why));
    }

    fn compiled<T>(&mut self, text: &str, path: &FieldPath, of: Result<T, String>) -> Option<T> {
        of.map_err(|why| self.invalid(path, text, &why)).ok()
    }

    fn expression(&mut self, text: &str, path: &FieldPath) -> Option<Expression> {
        self.compiled(text, path, Expression::compile(text, &OF_CLAIMS))
    }

    fn check(
        &mut self,
        text: &str,
        message: &str,
        path: &FieldPath,
        variables: &Variables,
    ) -> Option<Check> {
        let condition = Condition::compile(text, variables);
        // Here the error does not say what it is instead.
        let condition = condition.map_err(|why| match why.split_once(" but got ") {
            Some(("must evaluate to bool", _)) => "must evaluate to bool".to_owned(),
            _ => why,
        });
        let condition = self.compiled(text, path, condition)?;
        Some(Check {
            condition,
            message: message.to_owned(),
        })
    }

    fn prefixed(
        &mut self,
        mapping: &PrefixedMapping,
        path: &FieldPath,
        is_required: bool,
    ) -> Option<Expression> {
        match (&*mapping.claim, &*mapping.expression) {
            ("", "") => {
                if is_required {
                    self.required(path, "claim or expression is required");
                }
                None
            }
            ("", expression) => {
                if let Some(prefix) = &mapping.prefix {
                    let why = "may not be specified when expression is set";
                    self.invalid(&path.child("prefix"), prefix, why);
                }
                self.expression(expression, &path.child("expression"))
            }
            (_, "") => {
                if mapping.prefix.is_none() {
                    let why = "prefix is required when claim is set. It can be set to an empty string to disable prefixing";
                    self.required(&path.child("prefix"), why);
                }
                None
            }
            (_, _) => {
                self.invalid(path, "", "claim and expression can't both be set");
                None
            }
        }
    }

    fn uid(&mut self, mapping: &Mapping, path: &FieldPath) -> Option<Expression> {
        match (&*mapping.claim, &*mapping.expression) {
            (_, "") => None,
            ("", expression) => self.expression(expression, &path.child("expression")),
            (_, _) => {
                self.invalid(path, "", "claim and expression can't both be set");
                None
            }
        }
    }

    fn extra(&mut self, mappings: &[ExtraMapping], path: &FieldPath) -> Vec<(String, Expression)> {
        let mut seen = BTreeSet::new();
        let mut compiled = Vec::new();
        for (index, mapping) in mappings.iter().enumerate() {
            let path = path.index(index);
            let at = path.child("key");
            self.check_key(&mapping.key, &at);
            if !seen.insert(&mapping.key) {
                self.duplicate(&at, &mapping.key);
                continue;
            }
            let at = path.child("valueExpression");
            if mapping.value_expression.is_empty() {
                self.required(&at, "");
                continue;
            }
            let expression = self.expression(&mapping.value_expression, &at);
            compiled.extend(expression.map(|expression| (mapping.key.clone(), expression)));
        }
        compiled
    }

    fn check_key(&mut self, key: &str, path: &FieldPath) {
        if key.is_empty() {
            self.required(path, "");
            return;
        }
        let (domain, rest) = key.split_once('/').unwrap_or((key, ""));
        if domain.is_empty() || rest.is_empty() {
            let why = "must be a domain-prefixed path (such as \"acme.io/foo\")";
            self.invalid(path, key, why);
        } else {
            for why in names::dns_subdomain(domain) {
                self.invalid(path, domain, &why);
            }
            if !rest.chars().all(is_of_path) {
                let why = "Invalid path (regex used for validation is '[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')";
                self.invalid(path, rest, why);
            }
        }
        if key.to_lowercase() != key {
            self.invalid(path, key, "must be lowercase");
        }
        let is_reserved = |suffix: &str| {
            let before = domain.strip_suffix(suffix);
            before.is_some_and(|before| before.is_empty() || before.ends_with('.'))
        };
        if !rest.is_empty() && (is_reserved("kubernetes.io") || is_reserved("k8s.io")) {
            let why = "k8s.io, kubernetes.io and their subdomains are reserved for Kubernetes use";
            self.invalid(path, key, why);
        }
    }

    fn claim_checks(&mut self, rules: &[ClaimRule], path: &FieldPath) -> Vec<Check> {
        let (mut claims, mut expressions) = (BTreeSet::new(), BTreeSet::new());
        let mut compiled = Vec::new();
        for (index, rule) in rules.iter().enumerate() {
            let path = path.index(index);
            match (&*rule.claim, &*rule.expression) {
                ("", "") => self.required(&path, "claim or expression is required"),
                (claim, "") => {
                    if !rule.message.is_empty() {
                        let why = "may not be specified when claim is set";
                        self.invalid(&path.child("message"), &rule.message, why);
                    }
                    if !claims.insert(claim) {
                        self.duplicate(&path.child("claim"), claim);
                    }
                }
                ("", expression) => {
                    if !rule.required_value.is_empty() {
                        let why = "may not be specified when expression is set";
                        self.invalid(&path.child("requiredValue"), &rule.required_value, why);
                    }
                    let path = path.child("expression");
                    if !expressions.insert(expression) {
                        self.duplicate(&path, expression);
                        continue;
                    }
                    compiled.extend(self.check(expression, &rule.message, &path, &OF_CLAIMS));
                }
                (claim, _) => {
                    self.invalid(&path, claim, "claim and expression can't both be set");
                }
            }
        }
        compiled
    }

    fn user_checks(&mut self, rules: &[UserRule], path: &FieldPath) -> Vec<Check> {
        let mut seen = BTreeSet::new();
        let mut compiled = Vec::new();
        for (index, rule) in rules.iter().enumerate() {
            let path = path.index(index).child("expression");
            let expression = &rule.expression;
            if expression.is_empty() {
                self.required(&path, "");
            } else if !seen.insert(expression) {
                self.duplicate(&path, expression);
            } else {
                compiled.extend(self.check(expression, &rule.message, &path, &OF_USER));
            }
        }
        compiled
    }
}

/// Whether a character may stand in a path as RFC 3986 has it.
fn is_of_path(c: char) -> bool {
    c.is_ascii_alphanumeric() || "/-._~%!$&'()*+,;=:".contains(c)
}
