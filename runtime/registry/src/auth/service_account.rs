//! Service accounts as users: their names and groups.

use apiloom_meta::names;

/// What the names of these users begin with.
const PREFIX: &str = "system:serviceaccount:";

/// The name of the user that a service account is.
pub fn service_account_name(namespace: &str, name: &str) -> String {
    format!("{PREFIX}{namespace}:{name}")
}

/// The groups of the service accounts of a namespace.
pub fn service_account_groups(namespace: &str) -> Vec<String> {
    let of_namespace = format!("system:serviceaccounts:{namespace}");
    vec!["system:serviceaccounts".to_owned(), of_namespace]
}

/// Namespace and name of a service account, of the user name of one.
pub(super) fn service_account(user: &str) -> Option<(&str, &str)> {
    let (namespace, name) = user.strip_prefix(PREFIX)?.split_once(':')?;
    let is_account =
        names::dns_label(namespace).is_empty() && names::dns_subdomain(name).is_empty();
    is_account.then_some((namespace, name))
}
