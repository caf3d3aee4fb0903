//! Authentication and authorization: the user of a request, and whether the user may perform it.
//!
//! Both are ordered lists, to which the builder of a server adds a program's own. A request cannot be served without
//! an [`Authenticated`] user, which only authentication can construct.
//!
//! ```
//! use std::collections::BTreeMap;
//! use std::sync::Arc;
//!
//! use apiloom_registry::auth::{
//!     Answer, Attributes, Authentication, Authenticator, Authorization, Authorizer, Credentials, Decision, UserInfo,
//! };
//!
//! /// Tokens of robots, with their users.
//! struct Robots(BTreeMap<String, Arc<UserInfo>>);
//!
//! impl Authenticator for Robots {
//!     fn authenticate<'a>(&'a self, credentials: &'a Credentials<'a>) -> Answer<'a, Authentication> {
//!         let token = credentials.token().and_then(|token| std::str::from_utf8(token).ok());
//!         Answer::Now(Ok(token.and_then(|token| self.0.get(token).cloned())))
//!     }
//! }
//!
//! /// Allows robots to read, after a lookup in another service.
//! struct ReadOnly;
//!
//! impl Authorizer for ReadOnly {
//!     fn authorize<'a>(&'a self, attributes: &'a Attributes<'a>) -> Answer<'a, Authorization> {
//!         if !attributes.user.groups.iter().any(|group| group == "robots") {
//!             return Answer::Now(Ok(Decision::no_opinion()));
//!         }
//!         Answer::later(async {
//!             tokio::task::yield_now().await;
//!             Ok(match attributes.verb {
//!                 "get" | "list" | "watch" => Decision::allow(),
//!                 _ => Decision::deny("robots only read"),
//!             })
//!         })
//!     }
//! }
//! ```

mod access;
mod answer;
mod authenticate;
mod authorize;
mod credential_headers;
mod credentials;
mod impersonation;
mod permissions;
mod reason;
mod rules;
mod service_account;
mod token;

pub use access::{Access, Auth};
pub use answer::{Answer, BoxError, aggregate};
pub use authenticate::{Authenticated, Authentication, Authenticator};
pub use authenticate::{Authenticators, TokenVerdict};
pub use authorize::{Attributes, Authorization, Authorizer, Decision};
pub use authorize::{Authorizers, Refusal, Verdict, covers_path};
pub use credential_headers::CredentialHeaders;
pub use credentials::BEARER_PROTOCOL;
pub use credentials::{Connection, Credentials};
pub use impersonation::{Impersonation, impersonate};
pub use permissions::{PathPermission, Permissions, ResourcePermission};
pub use reason::Reason;
pub use rules::{PrivilegedGroup, PublicInfo};
pub use service_account::{service_account_groups, service_account_name};
pub use token::StaticToken;

pub use crate::UserInfo;

#[cfg(test)]
mod tests;
