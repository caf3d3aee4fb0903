//! Service accounts as users: their tokens, which this server issues (`serviceaccounts/token`) and accepts, and what others need to check
//! them.
//!
//! - `keys.rs` reads keys, `key_files.rs` has those of the files as they are now, with the tokens that they have confirmed.
//! - `claims.rs` is what a token says; `issue.rs` makes tokens, `verify.rs` accepts them.
//! - `discovery.rs` serves the documents of the issuer.

mod claims;
mod discovery;
mod issue;
pub(crate) mod key_files;
mod keys;
mod verify;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use apiloom_kinds::authentication::ServiceAccountTokens;
use apiloom_kinds::authentication::v1::TokenRequest;
use apiloom_kinds::core::v1::{Secret, ServiceAccount};
use apiloom_server::Builder;
use apiloom_server::options::interval;
use clap::Args;
use http::Uri;

use self::issue::Issuer;
use self::key_files::{KeyFiles, SigningKeyFile};
use self::verify::Verifier;

/// The tokens of service accounts. They are off without an issuer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
#[non_exhaustive]
pub struct ServiceAccounts {
    /// Who issues the tokens of service accounts: a name, or a URL of HTTPS, at which others find the keys. More than once it names others
    /// whose tokens are accepted too; the first one issues. Default of `apiloom serve` and `apiloom run`:
    /// https://kubernetes.default.svc.cluster.local.
    #[arg(
        id = "service-account-issuer",
        long = "service-account-issuer",
        value_name = "ISSUER",
        env = "APILOOM_SERVICE_ACCOUNT_ISSUER"
    )]
    pub issuers: Vec<String>,
    /// PEM file with the private key that signs the tokens of service accounts: of RSA, P-256 or P-384. It is read again when it changes.
    /// Servers over one store need the same. Default: a key of its own, service-account.key in the data folder.
    #[arg(
        id = "service-account-signing-key-file",
        long = "service-account-signing-key-file",
        value_name = "FILE"
    )]
    pub signing_key_file: Option<PathBuf>,
    /// PEM file with further keys, public or private, whose tokens are accepted: those before and after a change of keys. It may be given
    /// more than once.
    #[arg(
        id = "service-account-key-file",
        long = "service-account-key-file",
        value_name = "FILE"
    )]
    pub key_files: Vec<PathBuf>,
    /// The longest time of a token, from 1h; a request for a longer one gets this. Default: as asked for.
    #[arg(
        id = "service-account-max-token-expiration",
        long = "service-account-max-token-expiration",
        value_name = "DURATION",
        value_parser = interval
    )]
    pub max_token_expiration: Option<Duration>,
    /// Where others find the keys, in the document of the issuer. Default: /openid/v1/jwks at the host of the issuer.
    #[arg(
        id = "service-account-jwks-uri",
        long = "service-account-jwks-uri",
        value_name = "URL"
    )]
    pub jwks_uri: Option<String>,
}

/// The shortest longest time of a token.
const MIN_MOST: Duration = Duration::from_secs(60 * 60);
/// The longest one.
const MAX_MOST: Duration = Duration::from_secs(1 << 32);

impl ServiceAccounts {
    /// What is wrong with the configuration.
    pub(crate) fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if self.issuers.is_empty() && self.signing_key_file.is_some() {
            problems.push(
                "--service-account-signing-key-file needs --service-account-issuer".to_owned(),
            );
        }
        for issuer in &self.issuers {
            if issuer.is_empty() {
                problems.push("--service-account-issuer is empty".to_owned());
            } else if issuer.contains(':') && issuer.parse::<Uri>().is_err() {
                problems.push(format!(
                    "--service-account-issuer {issuer:?} has a colon and is no URL"
                ));
            }
        }
        let is_bound = |most: &Duration| (MIN_MOST..=MAX_MOST).contains(most);
        if !self.max_token_expiration.as_ref().is_none_or(is_bound) {
            problems.push(
                "--service-account-max-token-expiration must be between 1 hour and 2^32 seconds"
                    .to_owned(),
            );
        }
        let is_https = |url: &String| {
            let url: Result<Uri, _> = url.parse();
            url.is_ok_and(|url| url.scheme_str() == Some("https"))
        };
        if !self.jwks_uri.as_ref().is_none_or(is_https) {
            problems.push("--service-account-jwks-uri is no URL of https".to_owned());
        }
        problems
    }

    /// Adds the tokens to a server with these audiences. Returns the files of the keys too; `None` without an issuer.
    pub(crate) fn register(
        self,
        mut builder: Builder,
        audiences: &[String],
    ) -> (Builder, Option<Arc<KeyFiles>>) {
        let Some(name) = self.issuers.first() else {
            return (builder, None);
        };
        let signing = match self.signing_key_file {
            Some(file) => SigningKeyFile::Given(file),
            None => SigningKeyFile::Own(Box::new(builder.config().clone())),
        };
        let keys = Arc::new(KeyFiles::new(signing, self.key_files));
        builder = discovery::serve(builder, name, self.jwks_uri.as_deref(), &keys);
        builder = builder
            .built_in::<ServiceAccount>()
            .built_in::<Secret>()
            .built_in::<TokenRequest>();
        let issuer = Issuer {
            name: name.clone(),
            keys: Arc::clone(&keys),
            audiences: audiences.to_vec(),
            max_expiration: self.max_token_expiration,
            secrets: builder.lister(),
        };
        let tokens = ServiceAccountTokens::new(Arc::new(issuer));
        let verifier = Verifier {
            issuers: self.issuers,
            keys: Arc::clone(&keys),
            audiences: audiences.to_vec(),
            accounts: builder.lister(),
            secrets: builder.lister(),
        };
        let builder = builder
            .subresource::<ServiceAccount>(tokens)
            .authenticator(verifier);
        (builder, Some(keys))
    }
}
