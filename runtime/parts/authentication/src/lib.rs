//! Authentication, a part of a server: who is asking, by client certificates and by a file of tokens; and the review that tells.

mod certificates;
mod reviews;
mod token_file;

use std::path::PathBuf;
use std::sync::Arc;

use apiloom_server::host::ControllerHost;
use apiloom_server::{Builder, Capability, Config, Part, ServerError};
use async_trait::async_trait;
use clap::{ArgMatches, Args, Command, Error, FromArgMatches as _};

use self::certificates::ClientCertificates;
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
        if self.client_ca_file.is_some() || self.token_auth_file.is_some() {
            builder = reviews::add(builder);
        }
        let certificates = self.client_ca_file.map(ClientCertificates::new);
        let certificates = certificates.map(Arc::new);
        let tokens = self.token_auth_file.map(TokenFile::new).map(Arc::new);
        if let Some(certificates) = &certificates {
            builder = builder.authenticator(Arc::clone(certificates));
        }
        if let Some(tokens) = &tokens {
            builder = builder.authenticator(Arc::clone(tokens));
        }
        builder.capability(|_| CredentialFiles {
            certificates,
            tokens,
        })
    }
}

/// The files that say who the users are.
#[derive(Debug)]
struct CredentialFiles {
    certificates: Option<Arc<ClientCertificates>>,
    tokens: Option<Arc<TokenFile>>,
}

#[async_trait]
impl Capability for CredentialFiles {
    async fn check(&self, _: &Config) -> Result<(), ServerError> {
        let certificates = self.certificates.as_ref().map(|file| file.read());
        let tokens = self.tokens.as_ref().map(|file| file.read());
        let read = [certificates, tokens].into_iter().flatten();
        let problems: Vec<String> = read.filter_map(Result::err).collect();
        if problems.is_empty() {
            return Ok(());
        }
        Err(ServerError::Invalid(problems))
    }

    async fn run(&self, _: ControllerHost) {
        if let Some(certificates) = &self.certificates {
            certificates.follow().await;
        }
    }
}
