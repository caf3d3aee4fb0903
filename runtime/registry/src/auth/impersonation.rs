//! Impersonation: which user may be another one, in the modes of kube-apiserver 1.36 (KEP-5284).
//!
//! A constrained mode asks two things: whether the user may do what the request does while being another user in this mode
//! (`impersonate-on:MODE:VERB` on what is requested), and whether the user may be that one (`impersonate:MODE`). The legacy mode asks only
//! `impersonate`. The first mode that allows it counts; if none does, the first refusal is told.

use std::sync::Arc;

use apiloom_meta::field::go_quote;
use apiloom_meta::{ApiError, names};
use tokio::time::Instant;
use tokio::time::error::Elapsed;

use super::authenticate::{ANONYMOUS, AUTHENTICATED, Authenticated, UNAUTHENTICATED};
use super::authorize::{Attributes, Authorizers, forbidden};
use super::reason::Reason;
use super::service_account::{service_account, service_account_groups};
use super::token::MASTERS;
use crate::UserInfo;

/// The groups of reviews and identities.
const AUTHENTICATION: &str = "authentication.k8s.io";

/// From how many values on, a constrained mode first asks whether all are allowed.
const MANY: usize = 4;

/// What says on which node a service account is.
const NODE_NAME: &str = "authentication.kubernetes.io/node-name";

/// Which further attributes a service account has that asks to be its node: their names alone.
const NODE_KEYS: &str = "authentication.kubernetes.io/associated-node-keys";

/// All names.
const ALL: &str = "*";

/// A way to be another user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// A service account is the node on which it runs.
    AssociatedNode,
    ArbitraryNode,
    ServiceAccount,
    UserInfo,
    Legacy,
}

impl Mode {
    const ALL: [Self; 5] = [
        Self::AssociatedNode,
        Self::ArbitraryNode,
        Self::ServiceAccount,
        Self::UserInfo,
        Self::Legacy,
    ];

    /// Its name in verbs; `None` for the legacy one.
    fn name(self) -> Option<&'static str> {
        match self {
            Self::AssociatedNode => Some("associated-node"),
            Self::ArbitraryNode => Some("arbitrary-node"),
            Self::ServiceAccount => Some("serviceaccount"),
            Self::UserInfo => Some("user-info"),
            Self::Legacy => None,
        }
    }

    /// The verb that its questions about identities have; `None` for the legacy one, whose verb is `impersonate`.
    fn verb(self) -> Option<String> {
        self.name().map(|mode| format!("impersonate:{mode}"))
    }

    /// Whether this user can be impersonated in this mode.
    fn is_for(self, wanted: &UserInfo, requester: &UserInfo) -> bool {
        let is_name = wanted.uid.is_empty() && wanted.groups.is_empty() && wanted.extra.is_empty();
        let (node, account) = (node(&wanted.name), service_account(&wanted.name));
        match self {
            Self::AssociatedNode => {
                let own = requester.extra.get(NODE_NAME).map(Vec::as_slice);
                is_name
                    && service_account(&requester.name).is_some()
                    && matches!((own, node), (Some([own]), Some(node)) if own == node)
            }
            Self::ArbitraryNode => is_name && node.is_some(),
            Self::ServiceAccount => is_name && account.is_some(),
            Self::UserInfo => node.is_none() && account.is_none(),
            Self::Legacy => true,
        }
    }
}

/// The name of a node, of the user name of one.
fn node(user: &str) -> Option<&str> {
    let name = user.strip_prefix("system:node:")?;
    names::dns_subdomain(name).is_empty().then_some(name)
}

/// A request that is executed as another user.
#[derive(Debug)]
pub struct Impersonation {
    /// Who that is.
    pub user: Authenticated,
    /// The verb of the constrained mode that allows it, such as `impersonate:user-info`; `None` for the legacy mode.
    pub constraint: Option<String>,
}

/// The user that a request is executed as.
///
/// # Errors
/// Forbidden if the user of the request may not be the wanted one; the outer error if the deadline passes before that is known.
pub async fn impersonate(
    authorizers: &Authorizers,
    request: &Attributes<'_>,
    wanted: &UserInfo,
    deadline: Instant,
) -> Result<Result<Impersonation, ApiError>, Elapsed> {
    let mut first = None;
    for mode in Mode::ALL {
        if !mode.is_for(wanted, request.user) {
            continue;
        }
        let check = Check {
            authorizers,
            mode,
            deadline,
        };
        match check.user(request, wanted).await? {
            Ok(user) => {
                let user = Authenticated::impersonated(Arc::new(user));
                let constraint = mode.verb();
                return Ok(Ok(Impersonation { user, constraint }));
            }
            Err(refusal) => first = first.or(Some(refusal)),
        }
    }
    let refusal = first.unwrap_or_else(|| ApiError::internal("no mode of impersonation applies"));
    Ok(Err(refusal))
}

/// The questions of one mode.
struct Check<'a> {
    authorizers: &'a Authorizers,
    mode: Mode,
    deadline: Instant,
}

type CheckResult<T> = Result<Result<T, ApiError>, Elapsed>;

/// Passes on a refusal, which is the inner error.
macro_rules! allowed {
    ($checked:expr) => {
        match $checked {
            Ok(allowed) => allowed,
            Err(refusal) => return Ok(Err(refusal)),
        }
    };
}

impl Check<'_> {
    async fn user(&self, request: &Attributes<'_>, wanted: &UserInfo) -> CheckResult<UserInfo> {
        let stripped;
        let mut request = *request;
        if self.mode == Mode::AssociatedNode {
            // What is allowed here is allowed on every node.
            let keys = request.user.extra.keys().cloned().collect();
            stripped = UserInfo {
                extra: [(NODE_KEYS.to_owned(), keys)].into(),
                ..request.user.clone()
            };
            request.user = &stripped;
        }
        if let Some(mode) = self.mode.name() {
            let verb = format!("impersonate-on:{mode}:{}", request.verb);
            let on = Attributes {
                verb: &verb,
                ..request
            };
            allowed!(self.ask(&on).await?);
        }
        self.identity(request.user, wanted).await
    }

    /// Whether the requester may be this user, who is completed.
    async fn identity(&self, requester: &UserInfo, wanted: &UserInfo) -> CheckResult<UserInfo> {
        let verb = self.mode.verb();
        let verb = verb.as_deref().unwrap_or("impersonate");
        let question = |group, resource, name| {
            let mut question = Attributes::of_path(requester, verb, "");
            question.is_resource_request = true;
            question.api_group = group;
            question.api_version = "v1";
            question.resource = resource;
            question.name = name;
            question
        };
        let is_constrained = self.mode != Mode::Legacy;
        let names = if is_constrained { AUTHENTICATION } else { "" };
        let mut user = wanted.clone();

        let mut named = question(names, "users", wanted.name.as_str());
        if let Some(node) = node(&wanted.name).filter(|_| is_constrained) {
            named.resource = "nodes";
            named.name = if self.mode == Mode::AssociatedNode {
                ALL
            } else {
                node
            };
            user.groups = vec!["system:nodes".to_owned()];
        }
        if let Some((namespace, name)) = service_account(&wanted.name) {
            (named.resource, named.namespace, named.name) = ("serviceaccounts", namespace, name);
            if wanted.groups.is_empty() {
                user.groups = service_account_groups(namespace);
            }
        }
        allowed!(self.ask(&named).await?);
        if !wanted.uid.is_empty() {
            allowed!(
                self.ask(&question(AUTHENTICATION, "uids", &wanted.uid))
                    .await?
            );
        }
        allowed!(
            self.groups(question(names, "groups", ""), &wanted.groups)
                .await?
        );
        allowed!(
            self.extra(question(AUTHENTICATION, "userextras", ""), wanted)
                .await?
        );

        let has = |user: &UserInfo, name: &str| user.groups.iter().any(|group| group == name);
        let own = if user.name == ANONYMOUS {
            UNAUTHENTICATED
        } else {
            AUTHENTICATED
        };
        if !has(&user, own) && !has(&user, UNAUTHENTICATED) {
            user.groups.push(own.to_owned());
        }
        Ok(Ok(user))
    }

    async fn groups(&self, mut question: Attributes<'_>, groups: &[String]) -> CheckResult<()> {
        if self.mode != Mode::Legacy {
            if groups.iter().any(String::is_empty) {
                let why = "impersonating the empty string group is not allowed";
                return Ok(Err(forbidden(&question, &why.into())));
            }
            if groups.iter().any(|group| group == MASTERS) {
                let why = "impersonating the system:masters group is not allowed";
                let question = Attributes {
                    name: MASTERS,
                    ..question
                };
                return Ok(Err(forbidden(&question, &why.into())));
            }
            let all = Attributes {
                name: ALL,
                ..question
            };
            if groups.len() >= MANY && self.ask(&all).await?.is_ok() {
                return Ok(Ok(()));
            }
        }
        for group in groups {
            question.name = group;
            allowed!(self.ask(&question).await?);
        }
        Ok(Ok(()))
    }

    async fn extra(&self, mut question: Attributes<'_>, wanted: &UserInfo) -> CheckResult<()> {
        let extra = &wanted.extra;
        if self.mode != Mode::Legacy {
            if let Some(why) = extra
                .iter()
                .find_map(|(key, values)| extra_error(key, values))
            {
                return Ok(Err(forbidden(&question, &why.into())));
            }
            let all = Attributes {
                subresource: ALL,
                name: ALL,
                ..question
            };
            let count: usize = extra.values().map(Vec::len).sum();
            if extra.len().max(count) >= MANY && self.ask(&all).await?.is_ok() {
                return Ok(Ok(()));
            }
        }
        for (key, values) in extra {
            question.subresource = key;
            for value in values {
                question.name = value;
                allowed!(self.ask(&question).await?);
            }
        }
        Ok(Ok(()))
    }

    /// Refuses what is not allowed.
    async fn ask(&self, question: &Attributes<'_>) -> CheckResult<()> {
        let verdict = self.authorizers.judge(question, self.deadline).await?;
        if verdict.is_allowed {
            return Ok(Ok(()));
        }
        let reason = match verdict.error {
            Some(error) if verdict.reason.is_empty() => Reason::from(error),
            Some(error) => Reason::from(format!("{error}: {}", verdict.reason)),
            None => verdict.reason,
        };
        Ok(Err(forbidden(question, &reason)))
    }
}

/// Why an attribute cannot be impersonated in a constrained mode.
fn extra_error(key: &str, values: &[String]) -> Option<String> {
    if key.is_empty() {
        return Some("impersonating the empty string key in extra is not allowed".to_owned());
    }
    let is_path = key
        .split_once('/')
        .is_some_and(|(domain, path)| !path.is_empty() && names::dns_subdomain(domain).is_empty());
    if !is_path {
        let why = "must be a domain-prefixed path (such as \"acme.io/foo\")";
        return Some(format!(
            "impersonating an invalid key in extra is not allowed: extra.key: Invalid value: {}: {why}",
            go_quote(key)
        ));
    }
    if key.chars().any(char::is_uppercase) {
        let key = go_quote(key);
        return Some(format!(
            "impersonating a non-lowercase key in extra is not allowed: {key}"
        ));
    }
    values
        .iter()
        .any(String::is_empty)
        .then(|| "impersonating the empty string value in extra is not allowed".to_owned())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::{Answer, Authorization, Authorizer, Decision};
    use super::*;

    /// Allows the questions that are named: verb, resource with its subresource, namespace and name.
    struct Only(&'static [&'static str]);

    impl Authorizer for Only {
        fn authorize<'a>(&'a self, asked: &'a Attributes<'a>) -> Answer<'a, Authorization> {
            let mut resource = asked.resource.to_owned();
            if !asked.subresource.is_empty() {
                resource = format!("{resource}/{}", asked.subresource);
            }
            let place = [asked.verb, &*resource, asked.namespace, asked.name].join(" ");
            let place = place.replace("  ", " ");
            Answer::Now(Ok(if self.0.contains(&place.trim()) {
                Decision::allow()
            } else {
                Decision::no_opinion()
            }))
        }
    }

    fn user(name: &str, groups: &[&str]) -> UserInfo {
        UserInfo {
            name: name.to_owned(),
            groups: groups.iter().map(|group| (*group).to_owned()).collect(),
            ..UserInfo::default()
        }
    }

    async fn become_user(
        allowed: &'static [&'static str],
        requester: &UserInfo,
        wanted: &UserInfo,
    ) -> Result<Vec<String>, String> {
        let mut authorizers = Authorizers::default();
        authorizers.push(Only(allowed));
        let mut request = Attributes::of_path(requester, "list", "/api/v1/pods");
        request.is_resource_request = true;
        request.resource = "pods";
        let deadline = Instant::now() + Duration::from_secs(5);
        let user = impersonate(&authorizers, &request, wanted, deadline)
            .await
            .unwrap();
        user.map(|as_user| as_user.user.user().groups.clone())
            .map_err(|error| error.message)
    }

    #[tokio::test]
    async fn the_legacy_mode_asks_for_each_thing() {
        let erin = user("erin", &[]);
        let wanted = user("bob", &["team"]);
        let groups = become_user(
            &["impersonate users bob", "impersonate groups team"],
            &erin,
            &wanted,
        );
        assert_eq!(groups.await.unwrap(), ["team", "system:authenticated"]);
        // The refusal of the first mode is told.
        let refused = become_user(&["impersonate users bob"], &erin, &wanted)
            .await
            .unwrap_err();
        let expected = r#"pods is forbidden: User "erin" cannot impersonate-on:user-info:list resource "pods" in API group "" at the cluster scope"#;
        assert_eq!(refused, expected);
        let nobody = user("system:anonymous", &[]);
        let groups = become_user(&["impersonate users system:anonymous"], &erin, &nobody).await;
        assert_eq!(groups.unwrap(), ["system:unauthenticated"]);
        let account = user("system:serviceaccount:zoo:keeper", &[]);
        let groups =
            become_user(&["impersonate serviceaccounts zoo keeper"], &erin, &account).await;
        let expected = [
            "system:serviceaccounts",
            "system:serviceaccounts:zoo",
            "system:authenticated",
        ];
        assert_eq!(groups.unwrap(), expected);
    }

    #[tokio::test]
    async fn a_constrained_mode_asks_for_the_request_too() {
        let erin = user("erin", &[]);
        let bob = user("bob", &[]);
        const ON: &str = "impersonate-on:user-info:list pods";
        let both = become_user(&[ON, "impersonate:user-info users bob"], &erin, &bob).await;
        assert_eq!(both.unwrap(), ["system:authenticated"]);
        let only_one = become_user(&["impersonate:user-info users bob"], &erin, &bob).await;
        assert!(only_one.is_err());
        let masters = user("bob", &["system:masters"]);
        let all = &[
            ON,
            "impersonate:user-info users bob",
            "impersonate:user-info groups system:masters",
        ];
        let refused = become_user(all, &erin, &masters).await.unwrap_err();
        assert!(
            refused.ends_with("impersonating the system:masters group is not allowed"),
            "{refused}"
        );
        let node = user("system:node:n1", &[]);
        let on = "impersonate-on:arbitrary-node:list pods";
        let groups = become_user(
            &[
                "impersonate-on:arbitrary-node:list pods",
                "impersonate:arbitrary-node nodes n1",
            ],
            &erin,
            &node,
        );
        assert_eq!(
            groups.await.unwrap(),
            ["system:nodes", "system:authenticated"],
            "{on}"
        );
    }

    #[tokio::test]
    async fn a_service_account_is_its_own_node_alone() {
        let mut agent = user("system:serviceaccount:kube-system:agent", &[]);
        agent
            .extra
            .insert(NODE_NAME.to_owned(), vec!["n1".to_owned()]);
        let allowed = &[
            "impersonate-on:associated-node:list pods",
            "impersonate:associated-node nodes *",
        ];
        let own = become_user(allowed, &agent, &user("system:node:n1", &[])).await;
        assert_eq!(own.unwrap(), ["system:nodes", "system:authenticated"]);
        assert!(
            become_user(allowed, &agent, &user("system:node:n2", &[]))
                .await
                .is_err()
        );
    }

    #[test]
    fn attributes_have_keys_with_a_domain() {
        let error = |key: &str, value: &str| extra_error(key, &[value.to_owned()]);
        assert_eq!(error("example.com/team", "x"), None);
        assert!(error("", "x").unwrap().contains("empty string key"));
        assert!(error("team", "x").unwrap().contains("domain-prefixed path"));
        assert!(
            error("example.com/Team", "x")
                .unwrap()
                .contains("non-lowercase")
        );
        assert!(
            error("example.com/team", "")
                .unwrap()
                .contains("empty string value")
        );
    }
}
