//! Authorization, a part of a server: who may do what, by the modes of `--authorization-mode`.

mod rbac;
mod reviews;
mod text;
mod webhook;

use std::sync::Arc;

use apiloom_kinds::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding};
use apiloom_registry::auth::{Answer, Attributes, Authorizer, Decision};
use apiloom_server::{Builder, Capability, Config, Part, ServerError};
use async_trait::async_trait;
use clap::{ArgMatches, Args, Command, Error, FromArgMatches as _, ValueEnum};

use self::rbac::aggregation::{self, Aggregation};
use self::rbac::bootstrap::Bootstrap;
use self::rbac::escalation::NoEscalation;
use self::rbac::{Rbac, RbacAuthorizer};
pub use self::webhook::AuthorizationWebhook;

/// The part: a server with it decides by its modes, if it has one. What the program's own authorizers decide comes first, and members of the group
/// `system:masters` may do everything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = "Authorization flags")]
pub struct Authorization {
    /// How requests are authorized, in this order: the first mode that decides is obeyed. Default of `apiloom serve` and `apiloom run`: RBAC.
    /// Without a mode only the administrator and what the program adds have rights, and reviews, roles and bindings are not served.
    #[arg(
        id = "authorization-mode",
        long = "authorization-mode",
        value_name = "MODE",
        env = "APILOOM_AUTHORIZATION_MODE",
        value_delimiter = ','
    )]
    pub modes: Vec<Mode>,
    /// What is asked in the mode Webhook.
    #[command(flatten)]
    pub webhook: AuthorizationWebhook,
}

/// One way to authorize requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Mode {
    /// By the roles and bindings of rbac.authorization.k8s.io.
    #[value(name = "RBAC")]
    Rbac,
    /// All users may do everything, also those without credentials.
    #[value(name = "AlwaysAllow")]
    AlwaysAllow,
    /// No other user may do anything.
    #[value(name = "AlwaysDeny")]
    AlwaysDeny,
    /// As another server says, which a kubeconfig names.
    #[value(name = "Webhook")]
    Webhook,
}

impl Part for Authorization {
    fn name(&self) -> &'static str {
        "authorization"
    }

    fn controller(&self) -> Option<(&'static str, &'static str)> {
        let what = "collects the rules of ClusterRoles that have those of others";
        Some((aggregation::CONTROLLER, what))
    }

    fn add_flags(&self, command: Command) -> Command {
        Self::augment_args(command)
    }

    fn read_flags(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        self.update_from_arg_matches(matches)
    }

    fn register(self: Box<Self>, mut builder: Builder) -> Builder {
        if !self.modes.is_empty() {
            builder = reviews::add(builder);
        }
        let mut problems = Vec::new();
        if self.webhook.config_file.is_some() && !self.modes.contains(&Mode::Webhook) {
            problems.push(
                "cannot specify --authorization-webhook-config-file without mode Webhook"
                    .to_owned(),
            );
        }
        for mode in self.modes {
            builder = match mode {
                Mode::Rbac => with_rbac(builder),
                Mode::AlwaysAllow => builder.authorizer(Always(Decision::allow())),
                Mode::AlwaysDeny => {
                    builder.authorizer(Always(Decision::deny(EVERYTHING_IS_FORBIDDEN)))
                }
                Mode::Webhook => match self.webhook.authorizer() {
                    Ok(webhook) => builder.metrics(webhook.metrics()).authorizer(webhook),
                    Err(problem) => {
                        problems.push(problem);
                        builder
                    }
                },
            };
        }
        if problems.is_empty() {
            return builder;
        }
        builder.capability(|_| Misconfiguration(problems))
    }
}

/// What is wrong with the flags.
#[derive(Debug)]
struct Misconfiguration(Vec<String>);

#[async_trait]
impl Capability for Misconfiguration {
    async fn check(&self, _: &Config) -> Result<(), ServerError> {
        Err(ServerError::Invalid(self.0.clone()))
    }
}

/// Authorizes by roles and bindings, which are served then.
fn with_rbac(builder: Builder) -> Builder {
    let builder = builder
        .built_in::<ClusterRole>()
        .built_in::<ClusterRoleBinding>()
        .built_in::<Role>()
        .built_in::<RoleBinding>();
    let rbac = Rbac::new(&builder);
    let (access, cluster_roles) = (builder.access(), builder.lister());
    let (authorizer, escalation) = (Arc::clone(&rbac), Arc::clone(&rbac));
    builder
        .authorizer(RbacAuthorizer(authorizer))
        .admission(|_| NoEscalation {
            rbac: escalation,
            access,
        })
        .capability(|_| Bootstrap::new(rbac))
        .capability(|_| Aggregation(cluster_roles))
}

/// The reason of the mode AlwaysDeny, as of kube-apiserver.
const EVERYTHING_IS_FORBIDDEN: &str = "Everything is forbidden.";

/// Decides every request alike.
struct Always(Decision);

impl Authorizer for Always {
    fn authorize<'a>(
        &'a self,
        _: &'a Attributes<'a>,
    ) -> Answer<'a, apiloom_registry::auth::Authorization> {
        Answer::Now(Ok(self.0.clone()))
    }

    fn is_policy(&self) -> bool {
        true
    }
}
