//! Users by the tokens of issuers of OpenID Connect, as flags or a file of AuthenticationConfiguration say, and whether there are anonymous
//! users.
//!
//! - `config.rs` has the documents, `flags.rs` the flags for one issuer, `validation.rs` and `expressions.rs` the rules of both.
//! - `issuer.rs` makes a user of a token: `token.rs` checks what it says, `provider.rs` and `key_set.rs` find the keys and check the
//!   signature, `distributed.rs` reads claims that are elsewhere, and `claims.rs` maps them.
//! - `fetch.rs` is the client of all.

mod claims;
mod config;
mod distributed;
mod expressions;
mod fetch;
mod flags;
mod issuer;
mod key_set;
mod known;
mod provider;
mod reloads;
mod token;
mod validation;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use apiloom_client::config::read_file;
use apiloom_meta::codec::{Decoder, Format};
use apiloom_meta::field::aggregate;
use apiloom_registry::auth::{Answer, Authentication, Authenticator, Credentials};
use apiloom_server::server::follow_files;
use arc_swap::ArcSwap;
use futures_util::future::join_all;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::Notify;

use self::config::{AnonymousConfig, Configuration, GROUP, KIND, VERSIONS};
pub use self::flags::Oidc;
use self::issuer::Issuer;
use self::known::KnownUsers;
pub(crate) use self::reloads::Reloads;
use self::token::{ALGORITHMS, UnverifiedToken};

/// Time between two questions to an issuer that does not say who it is.
const ASK_AGAIN: Duration = Duration::from_secs(10);

/// For how long a new configuration waits for its issuers before it is dropped, as in kube-apiserver.
const READY_TIMEOUT: Duration = Duration::from_secs(60);

/// The options of the flags.
#[derive(Debug)]
pub(crate) struct OidcOptions {
    pub(crate) flags: Oidc,
    pub(crate) config_file: Option<PathBuf>,
    /// Whether there are anonymous users, unless the file says.
    pub(crate) anonymous: bool,
    /// The issuers of service accounts.
    pub(crate) disallowed: Vec<String>,
}

impl OidcOptions {
    /// Whether they say anything.
    pub(crate) fn are_set(&self) -> bool {
        self.flags.is_set() || self.config_file.is_some() || !self.anonymous
    }
}

/// Authenticates by the tokens of the issuers of a configuration, which is read again when its file changes.
#[derive(Debug)]
pub(crate) struct JwtUsers {
    options: OidcOptions,
    current: ArcSwap<Current>,
    /// The text of the file when it was read last, also one that was refused.
    seen: Mutex<Vec<u8>>,
    changed: Notify,
    pub(crate) reloads: Reloads,
}

/// A configuration in use.
#[derive(Debug, Default)]
struct Current {
    /// By their URLs.
    issuers: BTreeMap<String, Arc<Issuer>>,
    /// `None` for what the flag says.
    anonymous: Option<AnonymousConfig>,
    known: KnownUsers,
}

impl JwtUsers {
    /// One that knows no users before its configuration is read.
    pub(crate) fn new(options: OidcOptions) -> Self {
        Self {
            options,
            current: ArcSwap::default(),
            seen: Mutex::default(),
            changed: Notify::new(),
            reloads: Reloads::default(),
        }
    }

    /// What is wrong with the flags.
    pub(crate) fn problems(&self) -> Vec<String> {
        let OidcOptions {
            flags, config_file, ..
        } = &self.options;
        let mut problems = flags.problems();
        if config_file.is_some() && flags.is_set() {
            let why = "--authentication-config and --oidc-* flags are mutually exclusive";
            problems.push(why.to_owned());
        }
        problems
    }

    /// Reads the configuration. Blocks, and asks no issuer.
    ///
    /// # Errors
    /// All that is wrong with it.
    pub(crate) fn read(&self) -> Result<(), String> {
        let current = match &self.options.config_file {
            None => {
                let jwt = self.options.flags.issuer()?.into_iter().collect();
                let configuration = Configuration {
                    jwt,
                    ..Configuration::default()
                };
                let checked = self.checked(configuration, &self.options.flags.algorithms());
                checked.map_err(|why| format!("--oidc-* flags: {why}"))?
            }
            Some(file) => {
                let text = text(file)?;
                let parsed = self.parsed(file, &text);
                *self.seen.lock() = text;
                parsed?
            }
        };
        self.current.store(Arc::new(current));
        Ok(())
    }

    /// Finds the keys of the issuers, and reads the file again when it changes, for ever.
    pub(crate) async fn run(self: &Arc<Self>) {
        let finding = async {
            loop {
                let changed = self.changed.notified();
                let missing = self.current.load_full().discover().await;
                for why in &missing {
                    tracing::error!(%why, "an issuer of tokens is not ready");
                }
                if missing.is_empty() {
                    changed.await;
                } else {
                    let _ = tokio::time::timeout(ASK_AGAIN, changed).await;
                }
            }
        };
        let following = async {
            if let Some(file) = self.options.config_file.clone() {
                let this = Arc::clone(self);
                let read = move || this.read_changes(&file);
                follow_files("authentication configuration", read).await;
            }
        };
        let ((), ()) = tokio::join!(finding, following);
    }

    /// Whether a request without credentials for a path is answered.
    fn allows_anonymous(&self, path: &str) -> bool {
        match &self.current.load().anonymous {
            None => self.options.anonymous,
            Some(anonymous) => {
                let mut conditions = anonymous.conditions.iter();
                anonymous.enabled
                    && (anonymous.conditions.is_empty() || conditions.any(|one| one.path == path))
            }
        }
    }

    /// Reads the file again; whether another configuration is in use now. Blocks until its issuers are ready.
    fn read_changes(&self, file: &Path) -> Result<bool, String> {
        let text = text(file)?;
        if *self.seen.lock() == text {
            return Ok(false);
        }
        let used = self.use_text(file, &text);
        *self.seen.lock() = text;
        self.reloads.count(used.is_ok());
        used.map(|()| true)
    }

    fn use_text(&self, file: &Path, text: &[u8]) -> Result<(), String> {
        let new = self.parsed(file, text)?;
        let ready = tokio::time::timeout(READY_TIMEOUT, new.discover());
        let missing = Handle::current().block_on(ready);
        let missing = missing.map_err(|_| "its issuers do not answer in time".to_owned())?;
        if !missing.is_empty() {
            return Err(missing.join("; "));
        }
        self.current.store(Arc::new(new));
        self.changed.notify_one();
        Ok(())
    }

    fn parsed(&self, file: &Path, text: &[u8]) -> Result<Current, String> {
        self.parse(text).map_err(|why| of_file(file, &why))
    }

    fn parse(&self, text: &[u8]) -> Result<Current, String> {
        let decoded = Decoder::new(Format::Yaml).decode(text);
        let decoded = decoded.map_err(|error| format!("it is no YAML: {error}"))?;
        if !decoded.strict.is_empty() {
            let problems = decoded.strict.join(", ");
            return Err(format!("strict decoding error: {problems}"));
        }
        let configuration: Configuration = serde_json::from_value(decoded.value)
            .map_err(|error| format!("it is no {KIND}: {error}"))?;
        let version = configuration.api_version.strip_prefix(GROUP);
        let version = version.and_then(|version| version.strip_prefix('/'));
        let is_known = version.is_some_and(|version| VERSIONS.contains(&version));
        if !is_known || configuration.kind != KIND {
            return Err(format!(
                "it has apiVersion {:?} and kind {:?}; it should have apiVersion: {GROUP}/v1 and kind: {KIND}",
                configuration.api_version, configuration.kind
            ));
        }
        if configuration.anonymous.is_some() && !self.options.anonymous {
            return Err("--anonymous-auth cannot be set when the field anonymous is".to_owned());
        }
        self.checked(configuration, &ALGORITHMS.map(|(name, _)| name))
    }

    /// A configuration that is valid. Issuers that are as before are kept, with their keys.
    fn checked(
        &self,
        configuration: Configuration,
        algorithms: &[&'static str],
    ) -> Result<Current, String> {
        let expressions = validation::check(&configuration, &self.options.disallowed)
            .map_err(|errors| aggregate(&errors))?;
        let before = self.current.load();
        let issuers = configuration.jwt.into_iter().zip(expressions);
        let issuers = issuers.map(|(config, expressions)| {
            let url = config.issuer.url.clone();
            let same = before.issuers.get(&url);
            let same = same.filter(|issuer| issuer.config == config);
            let issuer = same.map_or_else(
                || Arc::new(Issuer::new(config, expressions, algorithms.to_vec())),
                Arc::clone,
            );
            (url, issuer)
        });
        Ok(Current {
            issuers: issuers.collect(),
            anonymous: configuration.anonymous,
            known: KnownUsers::default(),
        })
    }
}

fn text(file: &Path) -> Result<Vec<u8>, String> {
    read_file(file).map_err(|error| of_file(file, &error.to_string()))
}

fn of_file(file: &Path, why: &str) -> String {
    format!("--authentication-config {}: {why}", file.display())
}

impl Current {
    /// Finds the keys of all issuers; returns what is wrong with those that do not say.
    async fn discover(&self) -> Vec<String> {
        let found = self.issuers.values().map(|issuer| async {
            let found = issuer.discover().await;
            found.map_err(|why| {
                format!(
                    "oidc: authenticator for issuer {:?} is not healthy: {why}",
                    issuer.url()
                )
            })
        });
        let found = join_all(found).await;
        found.into_iter().filter_map(Result::err).collect()
    }
}

impl Authenticator for JwtUsers {
    fn authenticate<'a>(&'a self, credentials: &'a Credentials<'a>) -> Answer<'a, Authentication> {
        let current = self.current.load();
        if current.issuers.is_empty() {
            return Answer::Now(Ok(None));
        }
        let Some(token) = credentials.token() else {
            return Answer::Now(Ok(None));
        };
        if let Some(user) = current.known.get(token) {
            return Answer::Now(Ok(Some(user)));
        }
        let Some(unverified) = UnverifiedToken::read(token) else {
            return Answer::Now(Ok(None));
        };
        let Some(issuer) = current.issuers.get(unverified.issuer()) else {
            return Answer::Now(Ok(None));
        };
        let issuer = Arc::clone(issuer);
        let current = Arc::clone(&current);
        Answer::later(async move {
            let expiry = unverified.expiry();
            let user = issuer.user(unverified).await?;
            current.known.insert(token, &user, expiry);
            Ok(Some(user))
        })
    }

    fn allows_anonymous(&self, path: &str) -> bool {
        Self::allows_anonymous(self, path)
    }
}

#[cfg(test)]
mod tests;
