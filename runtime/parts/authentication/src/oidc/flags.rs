//! The flags of one issuer, as those of kube-apiserver.

use std::path::{Path, PathBuf};

use apiloom_client::config::read_file;
use clap::Args;

use super::config::{
    ClaimMappings, ClaimRule, IssuerAddress, IssuerConfig, Mapping, PrefixedMapping,
};
use super::token::ALGORITHMS;

/// An OpenID Connect issuer whose tokens name users. It is off without a URL. A file of `--authentication-config` says more, and of several.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
#[non_exhaustive]
pub struct Oidc {
    /// URL of an OpenID Connect issuer (https) whose tokens name users.
    #[arg(id = "oidc-issuer-url", long = "oidc-issuer-url", value_name = "URL")]
    pub issuer_url: Option<String>,
    /// The audience that tokens of the issuer must have.
    #[arg(id = "oidc-client-id", long = "oidc-client-id", value_name = "ID")]
    pub client_id: Option<String>,
    /// PEM file of the authorities of the issuer's certificate. Default: those of the system.
    #[arg(id = "oidc-ca-file", long = "oidc-ca-file", value_name = "FILE")]
    pub ca_file: Option<PathBuf>,
    /// The claim with the name of the user.
    #[arg(
        id = "oidc-username-claim",
        long = "oidc-username-claim",
        value_name = "CLAIM",
        default_value = "sub"
    )]
    pub username_claim: String,
    /// What is put before the name; `-` for nothing. Default: the URL of the issuer and `#`, except for the claim `email`.
    #[arg(
        id = "oidc-username-prefix",
        long = "oidc-username-prefix",
        value_name = "PREFIX"
    )]
    pub username_prefix: Option<String>,
    /// The claim with the groups of the user: a text or a list of texts.
    #[arg(
        id = "oidc-groups-claim",
        long = "oidc-groups-claim",
        value_name = "CLAIM"
    )]
    pub groups_claim: Option<String>,
    /// What is put before the groups.
    #[arg(
        id = "oidc-groups-prefix",
        long = "oidc-groups-prefix",
        value_name = "PREFIX"
    )]
    pub groups_prefix: Option<String>,
    /// A claim that tokens must have, with its value; may be repeated.
    #[arg(
        id = "oidc-required-claim",
        long = "oidc-required-claim",
        value_name = "CLAIM=VALUE"
    )]
    pub required_claims: Vec<String>,
    /// The algorithms of signatures that are accepted.
    #[arg(
        id = "oidc-signing-algs",
        long = "oidc-signing-algs",
        value_name = "ALGORITHM,..",
        value_delimiter = ',',
        default_value = "RS256"
    )]
    pub signing_algs: Vec<String>,
}

impl Default for Oidc {
    fn default() -> Self {
        Self {
            issuer_url: None,
            client_id: None,
            ca_file: None,
            username_claim: "sub".to_owned(),
            username_prefix: None,
            groups_claim: None,
            groups_prefix: None,
            required_claims: Vec::new(),
            signing_algs: vec!["RS256".to_owned()],
        }
    }
}

impl Oidc {
    /// Whether one of the flags is set.
    pub(super) fn is_set(&self) -> bool {
        *self != Self::default()
    }

    /// What is wrong with the flags.
    pub(super) fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if self.is_set() && (self.issuer_url.is_none() || self.client_id.is_none()) {
            let why = "--oidc-issuer-url and --oidc-client-id must be specified together when any --oidc-* flags are set";
            problems.push(why.to_owned());
        }
        for name in &self.signing_algs {
            if !ALGORITHMS.iter().any(|(known, _)| known == name) {
                let known: Vec<&str> = ALGORITHMS.iter().map(|(name, _)| *name).collect();
                problems.push(format!(
                    "--oidc-signing-algs: unsupported signing alg: {name:?}, expected some of {}",
                    known.join(", ")
                ));
            }
        }
        for claim in &self.required_claims {
            if claim
                .split_once('=')
                .is_none_or(|(name, _)| name.is_empty())
            {
                problems.push(format!(
                    "--oidc-required-claim {claim:?} is not of the form CLAIM=VALUE"
                ));
            }
        }
        problems
    }

    /// The algorithms of signatures.
    pub(super) fn algorithms(&self) -> Vec<&'static str> {
        let known = ALGORITHMS.iter().map(|(name, _)| *name);
        let is_named = |name: &&str| self.signing_algs.iter().any(|one| one == name);
        known.filter(is_named).collect()
    }

    /// The configuration of the issuer; `None` without one.
    ///
    /// # Errors
    /// If the file of authorities cannot be read.
    pub(super) fn issuer(&self) -> Result<Option<IssuerConfig>, String> {
        let (Some(url), Some(client)) = (&self.issuer_url, &self.client_id) else {
            return Ok(None);
        };
        let authorities = match &self.ca_file {
            Some(file) => authorities(file)
                .map_err(|why| format!("--oidc-ca-file {}: {why}", file.display()))?,
            None => String::new(),
        };
        let prefix = match self.username_prefix.as_deref() {
            Some("-") => String::new(),
            None | Some("") if self.username_claim != "email" => format!("{url}#"),
            given => given.unwrap_or_default().to_owned(),
        };
        let groups = self.groups_claim.clone().filter(|claim| !claim.is_empty());
        let rules = self.required_claims.iter().filter_map(|claim| {
            let (claim, value) = claim.split_once('=')?;
            Some(ClaimRule {
                claim: claim.to_owned(),
                required_value: value.to_owned(),
                ..ClaimRule::default()
            })
        });
        Ok(Some(IssuerConfig {
            issuer: IssuerAddress {
                url: url.clone(),
                certificate_authority: authorities,
                audiences: vec![client.clone()],
                ..IssuerAddress::default()
            },
            claim_validation_rules: rules.collect(),
            claim_mappings: ClaimMappings {
                username: PrefixedMapping {
                    claim: self.username_claim.clone(),
                    prefix: Some(prefix),
                    expression: String::new(),
                },
                groups: PrefixedMapping {
                    prefix: groups
                        .is_some()
                        .then(|| self.groups_prefix.clone().unwrap_or_default()),
                    claim: groups.unwrap_or_default(),
                    expression: String::new(),
                },
                uid: Mapping::default(),
                extra: Vec::new(),
            },
            user_validation_rules: Vec::new(),
        }))
    }
}

/// The certificates of a file, in PEM.
fn authorities(file: &Path) -> Result<String, String> {
    let bytes = read_file(file).map_err(|error| error.to_string())?;
    let pem = String::from_utf8(bytes).map_err(|_| "it is no PEM".to_owned())?;
    // Without any the authorities of the system would be believed.
    if pem.trim().is_empty() {
        return Err("it has no certificates".to_owned());
    }
    Ok(pem)
}
