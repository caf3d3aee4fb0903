//! Authentication, a part of a server: who is asking, by client certificates, a file of tokens, and the tokens of service accounts, which
//! it issues; and the reviews that tell.

mod audiences;
mod certificates;
mod followed_file;
mod reviews;
mod service_accounts;
mod token_file;
mod users;

use std::path::PathBuf;
use std::sync::Arc;

use apiloom_server::host::ControllerHost;
use apiloom_server::{Builder, Capability, Config, Part, ServerError};
use async_trait::async_trait;
use clap::{ArgMatches, Args, Command, Error, FromArgMatches as _};

use self::certificates::ClientCertificates;
pub use self::service_accounts::ServiceAccounts;
use self::service_accounts::key_files::KeyFiles;
use self::token_file::TokenFile;

/// The part: a server with it knows users beside its administrator. Each way is off unless its file is named; the program's own
/// authenticators come first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = "Authentication flags")]
pub struct Authentication {
    /// PEM file of the authorities whose client certificates name users: the common name is the name, the organizations are the groups. It
    /// is read again when it changes.
    #[arg(id = "client-ca-file", long = "client-ca-file", value_name = "FILE")]
    pub client_ca_file: Option<PathBuf>,
    /// File of tokens and their users, a line each: token,user,uid,"group1,group2". It is read once.
    #[arg(id = "token-auth-file", long = "token-auth-file", value_name = "FILE")]
    pub token_auth_file: Option<PathBuf>,
    /// The audiences of the server: a token that names others is not accepted. Default: the issuers of service accounts.
    #[arg(
        id = "api-audiences",
        long = "api-audiences",
        value_name = "AUDIENCE",
        value_delimiter = ','
    )]
    pub api_audiences: Vec<String>,
    /// The tokens of service accounts.
    #[command(flatten)]
    pub service_accounts: ServiceAccounts,
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
        let problems = self.service_accounts.problems();
        let audiences = if self.api_audiences.is_empty() {
            self.service_accounts.issuers.clone()
        } else {
            self.api_audiences
        };
        let certificates = self.client_ca_file.map(ClientCertificates::new);
        let certificates = certificates.map(Arc::new);
        let tokens = self.token_auth_file.map(TokenFile::new).map(Arc::new);
        if let Some(certificates) = &certificates {
            builder = builder.authenticator(Arc::clone(certificates));
        }
        if let Some(tokens) = &tokens {
            builder = builder.authenticator(Arc::clone(tokens));
        }
        let (mut builder, keys) = self.service_accounts.register(builder, &audiences);
        if certificates.is_some() || tokens.is_some() || keys.is_some() {
            builder = reviews::add(builder, &audiences);
        }
        builder.capability(|_| CredentialFiles {
            problems,
            certificates,
            tokens,
            keys,
        })
    }
}

/// The files that say who the users are.
#[derive(Debug)]
struct CredentialFiles {
    /// What is wrong with the configuration beside them.
    problems: Vec<String>,
    certificates: Option<Arc<ClientCertificates>>,
    tokens: Option<Arc<TokenFile>>,
    keys: Option<Arc<KeyFiles>>,
}

#[async_trait]
impl Capability for CredentialFiles {
    async fn check(&self, _: &Config) -> Result<(), ServerError> {
        let certificates = self.certificates.as_ref().map(|file| file.read());
        let tokens = self.tokens.as_ref().map(|file| file.read());
        let keys = self.keys.as_ref().map(|files| files.read());
        let read = [certificates, tokens, keys].into_iter().flatten();
        let mut problems = self.problems.clone();
        problems.extend(read.filter_map(Result::err));
        if problems.is_empty() {
            return Ok(());
        }
        Err(ServerError::Invalid(problems))
    }

    async fn run(&self, _: ControllerHost) {
        let certificates = async {
            if let Some(certificates) = &self.certificates {
                certificates.follow().await;
            }
        };
        let keys = async {
            if let Some(keys) = &self.keys {
                keys.follow().await;
            }
        };
        tokio::join!(certificates, keys);
    }
}
