//! Users by tokens that a webhook reviews (the Kubernetes API concept Webhook Token Authentication): a TokenReview is posted to the server of
//! a kubeconfig, and its answer is kept for a time.

mod answer;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use apiloom_registry::auth::{Answer, Authentication, Authenticator, BoxError, Credentials};
use apiloom_server::options::interval;
use apiloom_server::webhook::{Answers, Question, WebhookClient, tries};
use bytes::Bytes;
use clap::Args;
use serde_json::json;

use self::answer::{Identity, ReviewResult, reviewed};
use crate::audiences::common;

/// How long a token may be reviewed, with all tries.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Most bytes of the users that are kept.
const MAX_KEPT_BYTES: usize = 16 * 1024 * 1024;

/// The versions of reviews, as the flag names them.
const VERSIONS: [&str; 2] = ["v1", "v1beta1"];

/// The webhook that reviews tokens of users.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct TokenWebhook {
    /// Kubeconfig of the server to which tokens are posted that no other authenticator knows. Without it there is none.
    #[arg(
        id = "authentication-token-webhook-config-file",
        long = "authentication-token-webhook-config-file",
        value_name = "FILE"
    )]
    pub config_file: Option<PathBuf>,
    /// Version of the TokenReview that is sent and expected: v1 or v1beta1.
    #[arg(
        id = "authentication-token-webhook-version",
        long = "authentication-token-webhook-version",
        value_name = "VERSION",
        default_value = "v1beta1"
    )]
    pub version: String,
    /// How long an answer is kept, also that a token is of no user; 0 for not at all. Errors are not kept.
    #[arg(
        id = "authentication-token-webhook-cache-ttl",
        long = "authentication-token-webhook-cache-ttl",
        value_name = "DURATION",
        default_value = "2m",
        value_parser = interval
    )]
    pub cache_ttl: Duration,
}

impl Default for TokenWebhook {
    fn default() -> Self {
        Self {
            config_file: None,
            version: "v1beta1".to_owned(),
            cache_ttl: Duration::from_secs(120),
        }
    }
}

impl TokenWebhook {
    /// The authenticator, if there is a file; `audiences` are those of the server.
    ///
    /// # Errors
    /// What is wrong with the file or the version.
    pub(crate) fn authenticator(
        &self,
        audiences: &[String],
    ) -> Result<Option<WebhookUsers>, String> {
        let Some(file) = &self.config_file else {
            return Ok(None);
        };
        if !VERSIONS.contains(&&*self.version) {
            return Err(format!(
                "--authentication-token-webhook-version: unsupported authentication webhook version {:?}, supported versions are \"v1\", \"v1beta1\"",
                self.version
            ));
        }
        let client = WebhookClient::from_kubeconfig(file).map_err(|error| {
            let shown = file.display();
            format!("--authentication-token-webhook-config-file {shown}: {error}")
        })?;
        Ok(Some(WebhookUsers {
            client: Arc::new(client),
            version: format!("authentication.k8s.io/{}", self.version),
            audiences: audiences.to_vec(),
            ttl: self.cache_ttl,
            answers: Answers::new(MAX_KEPT_BYTES, answer::bytes)?,
        }))
    }
}

/// Authenticates by the answers of a webhook.
#[derive(Debug)]
pub(crate) struct WebhookUsers {
    client: Arc<WebhookClient>,
    version: String,
    /// Those of the server: a token of which the webhook names none is for them.
    audiences: Vec<String>,
    ttl: Duration,
    answers: Answers<ReviewResult>,
}

impl WebhookUsers {
    fn asked<'a>(&'a self, credentials: &Credentials<'a>) -> &'a [String] {
        credentials.audiences().unwrap_or(&self.audiences)
    }

    fn question(&self, token: &[u8], audiences: &[String]) -> Question {
        let audiences = audiences.iter().map(String::as_bytes);
        self.answers
            .question(std::iter::once(token).chain(audiences))
    }

    /// The user that the webhook tells, if the token is for one of these audiences.
    fn authenticated(&self, reviewed: ReviewResult, audiences: &[String]) -> Authentication {
        let identity = reviewed.map_err(|error| BoxError::from(&*error))?;
        let identity = identity
            .filter(|identity| audiences.is_empty() || !self.meant(identity, audiences).is_empty());
        Ok(identity.map(|identity| Arc::clone(&identity.user)))
    }

    /// The audiences of a token among these.
    fn meant(&self, identity: &Identity, audiences: &[String]) -> Vec<String> {
        let of_token = &identity.audiences;
        let of_token = if of_token.is_empty() {
            &self.audiences
        } else {
            of_token
        };
        common(audiences, of_token)
    }

    /// Asks the webhook; the answer is an error if it does not tell.
    fn review(
        &self,
        token: &str,
        audiences: &[String],
    ) -> impl Future<Output = (ReviewResult, Duration)> + Send + 'static {
        let mut spec = json!({"token": token});
        if !audiences.is_empty() {
            spec["audiences"] = audiences.into();
        }
        let review = json!({
            "kind": "TokenReview",
            "apiVersion": self.version,
            "metadata": {},
            "spec": spec,
            "status": {"user": {}},
        });
        let body = Bytes::from(review.to_string());
        let (client, ttl) = (Arc::clone(&self.client), self.ttl);
        let token = token.to_owned();
        async move {
            let answer = tokio::time::timeout(
                TIMEOUT,
                tries(|| {
                    let (client, body) = (Arc::clone(&client), body.clone());
                    async move { client.post(body, TIMEOUT).await }
                }),
            );
            let answer = match answer.await {
                Ok(answer) => answer.map_err(|error| error.text.replace(&token, "[token]")),
                Err(_) => Err("the webhook did not answer in time".to_owned()),
            };
            if answer.is_err() {
                // What a webhook says may repeat the token, so that it is told to those who review it alone.
                tracing::error!("the webhook that reviews tokens cannot be asked");
            }
            let reviewed = answer
                .and_then(|body| reviewed(&body).map_err(|error| error.replace(&token, "[token]")));
            let ttl = reviewed.as_ref().map_or(Duration::ZERO, |_| ttl);
            (reviewed.map_err(Into::into), ttl)
        }
    }
}

impl Authenticator for WebhookUsers {
    fn authenticate<'a>(&'a self, credentials: &'a Credentials<'a>) -> Answer<'a, Authentication> {
        // A token is a text of JSON.
        let token = credentials.token().map(std::str::from_utf8);
        let Some(Ok(token)) = token else {
            return Answer::Now(Ok(None));
        };
        let audiences = self.asked(credentials);
        let question = self.question(token.as_bytes(), audiences);
        if let Some(reviewed) = self.answers.kept(&question) {
            return Answer::Now(self.authenticated(reviewed, audiences));
        }
        let answer = self.answers.get(question, || self.review(token, audiences));
        Answer::later(async move { self.authenticated(answer.await, audiences) })
    }

    /// Of an answer that is kept.
    fn audiences(&self, credentials: &Credentials<'_>) -> Option<Vec<String>> {
        let asked = credentials.audiences().unwrap_or(&self.audiences);
        let question = self.question(credentials.token()?, asked);
        let identity = self.answers.kept(&question)?.ok()??;
        Some(self.meant(&identity, asked))
    }
}

#[cfg(test)]
mod tests;
