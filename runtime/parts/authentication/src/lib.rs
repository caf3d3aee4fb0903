//! Authentication, a part of a server: who is asking, by headers of a proxy, client certificates, a file of tokens, bootstrap tokens, tokens of
//! OpenID Connect, those of service accounts, which it issues, and those that a webhook reviews; and the reviews that tell.

mod audiences;
mod bootstrap_tokens;
mod certificates;
mod confirmations;
mod front_proxy;
mod now;
mod oidc;
mod reviews;
mod service_accounts;
mod token_file;
mod users;
mod webhook;

use std::path::PathBuf;
use std::sync::Arc;

use apiloom_kinds::core::v1::Secret;
use apiloom_registry::Registry;
use apiloom_server::host::ControllerHost;
use apiloom_server::{Builder, Capability, Config, Part, ServerError};
use async_trait::async_trait;
use clap::{ArgAction, ArgMatches, Args, Command, Error, FromArgMatches as _};
use futures_util::future::join_all;

use self::bootstrap_tokens::BootstrapTokens;
use self::certificates::ClientCertificates;
pub use self::front_proxy::FrontProxy;
pub use self::oidc::Oidc;
use self::oidc::{JwtUsers, OidcOptions};
pub use self::service_accounts::ServiceAccounts;
use self::service_accounts::key_files::KeyFiles;
use self::token_file::TokenFile;
pub use self::webhook::TokenWebhook;

/// The part: a server with it knows users beside its administrator. Each way is off unless its file is named; the program's own
/// authenticators come first.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
#[command(next_help_heading = "Authentication flags")]
pub struct Authentication {
    /// Whether requests without credentials are answered, as those of the user system:anonymous. A file of `--authentication-config` may say
    /// for which paths.
    #[arg(
        id = "anonymous-auth",
        long = "anonymous-auth",
        value_name = "true|false",
        action = ArgAction::Set,
        num_args = 0..=1,
        require_equals = true,
        default_value_t = true,
        default_missing_value = "true"
    )]
    pub anonymous: bool,
    /// File of an AuthenticationConfiguration (apiserver.config.k8s.io/v1): issuers of tokens of users, and for which paths there are anonymous
    /// ones. It is read again when it changes.
    #[arg(
        id = "authentication-config",
        long = "authentication-config",
        value_name = "FILE"
    )]
    pub config_file: Option<PathBuf>,
    /// PEM file of the authorities whose client certificates name users: the common name is the name, the organizations are the groups. It
    /// is read again when it changes.
    #[arg(id = "client-ca-file", long = "client-ca-file", value_name = "FILE")]
    pub client_ca_file: Option<PathBuf>,
    /// File of tokens and their users, a line each: token,user,uid,"group1,group2". It is read once.
    #[arg(id = "token-auth-file", long = "token-auth-file", value_name = "FILE")]
    pub token_auth_file: Option<PathBuf>,
    /// Whether secrets of kube-system with the type bootstrap.kubernetes.io/token are tokens of users: system:bootstrap:ID in the group
    /// system:bootstrappers and those that the secret names.
    #[arg(
        id = "enable-bootstrap-token-auth",
        long = "enable-bootstrap-token-auth"
    )]
    pub bootstrap_tokens: bool,
    /// The audiences of the server: a token that names others is not accepted. Default: the issuers of service accounts.
    #[arg(
        id = "api-audiences",
        long = "api-audiences",
        value_name = "AUDIENCE",
        value_delimiter = ','
    )]
    pub api_audiences: Vec<String>,
    /// Users that proxies name.
    #[command(flatten)]
    pub front_proxy: FrontProxy,
    /// Users by the tokens of an issuer of OpenID Connect.
    #[command(flatten)]
    pub oidc: Oidc,
    /// The tokens of service accounts.
    #[command(flatten)]
    pub service_accounts: ServiceAccounts,
    /// Tokens that a webhook reviews.
    #[command(flatten)]
    pub token_webhook: TokenWebhook,
}

impl Default for Authentication {
    fn default() -> Self {
        Self {
            anonymous: true,
            config_file: None,
            client_ca_file: None,
            token_auth_file: None,
            bootstrap_tokens: false,
            api_audiences: Vec::new(),
            front_proxy: FrontProxy::default(),
            oidc: Oidc::default(),
            service_accounts: ServiceAccounts::default(),
            token_webhook: TokenWebhook::default(),
        }
    }
}

impl Part for Authentication {
    fn name(&self) -> &'static str {
        "authentication"
    }

    fn add_flags(&self, command: Command) -> Command {
        Self::augment_args(command)
    }

    fn read_flags(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        self.update_from_arg_matches(matches)
    }

    fn register(self: Box<Self>, mut builder: Builder) -> Builder {
        let mut problems = self.service_accounts.problems();
        problems.extend(self.front_proxy.problems());
        let audiences = if self.api_audiences.is_empty() {
            self.service_accounts.issuers.clone()
        } else {
            self.api_audiences
        };
        let options = OidcOptions {
            flags: self.oidc,
            config_file: self.config_file,
            anonymous: self.anonymous,
            disallowed: self.service_accounts.issuers.clone(),
        };
        let jwt = options.are_set().then(|| Arc::new(JwtUsers::new(options)));
        problems.extend(jwt.iter().flat_map(|users| users.problems()));
        let certificates = self.client_ca_file.map(ClientCertificates::new);
        let certificates = certificates.map(Arc::new);
        let tokens = self.token_auth_file.map(TokenFile::new).map(Arc::new);
        let proxied = self.front_proxy.authenticator();
        let proxies = proxied.as_ref().map(|users| Arc::clone(&users.proxies));
        if let Some(users) = proxied {
            builder = builder.authenticator(users);
        }
        if let Some(certificates) = &certificates {
            builder = builder.authenticator(Arc::clone(certificates));
        }
        if let Some(tokens) = &tokens {
            builder = builder.authenticator(Arc::clone(tokens));
        }
        let (mut builder, keys) = self.service_accounts.register(builder, &audiences);
        if self.bootstrap_tokens {
            builder = builder.built_in::<Secret>();
            let secrets = builder.lister();
            builder = builder.authenticator(BootstrapTokens { secrets });
        }
        if let Some(users) = &jwt {
            let reloads = users.reloads.clone();
            builder = builder.metrics(reloads).authenticator(Arc::clone(users));
        }
        let reviewed = self.token_webhook.authenticator(&audiences);
        let reviewed = reviewed.unwrap_or_else(|problem| {
            problems.push(problem);
            None
        });
        let has_webhook = reviewed.is_some();
        if let Some(users) = reviewed {
            builder = builder.authenticator(users);
        }
        let certificates: Vec<_> = proxies.into_iter().chain(certificates).collect();
        let has_users = !certificates.is_empty() || tokens.is_some() || keys.is_some();
        if has_users || jwt.is_some() || self.bootstrap_tokens || has_webhook {
            builder = reviews::add(builder, &audiences);
        }
        builder.capability(|_| CredentialFiles {
            problems,
            certificates,
            tokens,
            keys,
            jwt,
        })
    }
}

/// The files that say who the users are.
#[derive(Debug)]
struct CredentialFiles {
    /// What is wrong with the configuration beside them.
    problems: Vec<String>,
    certificates: Vec<Arc<ClientCertificates>>,
    tokens: Option<Arc<TokenFile>>,
    keys: Option<Arc<KeyFiles>>,
    jwt: Option<Arc<JwtUsers>>,
}

#[async_trait]
impl Capability for CredentialFiles {
    async fn check(&self, _: &Config) -> Result<(), ServerError> {
        let certificates = self.certificates.iter().map(|file| file.read());
        let tokens = self.tokens.as_ref().map(|file| file.read());
        let keys = self.keys.as_ref().map(|files| files.check());
        let jwt = self.jwt.as_ref().map(|users| users.read());
        let read = certificates.chain(tokens).chain(keys).chain(jwt);
        let mut problems = self.problems.clone();
        problems.extend(read.filter_map(Result::err));
        if problems.is_empty() {
            return Ok(());
        }
        Err(ServerError::Invalid(problems))
    }

    async fn start(&self, _: &Arc<Registry>) -> Result<(), ServerError> {
        let Some(keys) = self.keys.clone() else {
            return Ok(());
        };
        let read = tokio::task::spawn_blocking(move || keys.read()).await;
        let read = read.unwrap_or_else(|error| Err(error.to_string()));
        read.map_err(|problem| ServerError::Invalid(vec![problem]))
    }

    async fn run(&self, _: ControllerHost) {
        let certificates = self.certificates.iter().map(|file| file.follow());
        let certificates = join_all(certificates);
        let keys = async {
            if let Some(keys) = &self.keys {
                keys.follow().await;
            }
        };
        let jwt = async {
            if let Some(users) = &self.jwt {
                users.run().await;
            }
        };
        tokio::join!(certificates, keys, jwt);
    }
}
