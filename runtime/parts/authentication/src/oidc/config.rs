//! The configuration of issuers: AuthenticationConfiguration of apiserver.config.k8s.io, in the versions of kube-apiserver.

use serde::Deserialize;

pub(super) const GROUP: &str = "apiserver.config.k8s.io";
pub(super) const KIND: &str = "AuthenticationConfiguration";

/// Versions whose documents are alike.
pub(super) const VERSIONS: [&str; 3] = ["v1", "v1beta1", "v1alpha1"];

/// Who is believed about users.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub(super) struct Configuration {
    pub(super) api_version: String,
    pub(super) kind: String,
    pub(super) jwt: Vec<IssuerConfig>,
    pub(super) anonymous: Option<AnonymousConfig>,
}

/// Whether requests without credentials are answered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub(crate) struct AnonymousConfig {
    pub(super) enabled: bool,
    /// Where; everywhere without any.
    pub(super) conditions: Vec<AnonymousCondition>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub(super) struct AnonymousCondition {
    pub(super) path: String,
}

/// An issuer of tokens, and how its claims are read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub(super) struct IssuerConfig {
    pub(super) issuer: IssuerAddress,
    pub(super) claim_validation_rules: Vec<ClaimRule>,
    pub(super) claim_mappings: ClaimMappings,
    pub(super) user_validation_rules: Vec<UserRule>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub(super) struct IssuerAddress {
    pub(super) url: String,
    #[serde(rename = "discoveryURL")]
    pub(super) discovery_url: Option<String>,
    /// In PEM; those of the system if it is empty.
    pub(super) certificate_authority: String,
    pub(super) audiences: Vec<String>,
    pub(super) audience_match_policy: String,
    pub(super) egress_selector_type: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub(super) struct ClaimRule {
    pub(super) claim: String,
    pub(super) required_value: String,
    pub(super) expression: String,
    pub(super) message: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub(super) struct ClaimMappings {
    pub(super) username: PrefixedMapping,
    pub(super) groups: PrefixedMapping,
    pub(super) uid: Mapping,
    pub(super) extra: Vec<ExtraMapping>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub(super) struct PrefixedMapping {
    pub(super) claim: String,
    pub(super) prefix: Option<String>,
    pub(super) expression: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub(super) struct Mapping {
    pub(super) claim: String,
    pub(super) expression: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub(super) struct ExtraMapping {
    pub(super) key: String,
    pub(super) value_expression: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub(super) struct UserRule {
    pub(super) expression: String,
    pub(super) message: String,
}
