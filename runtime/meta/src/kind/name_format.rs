//! The formats of the names of objects.

/// How names of a kind are checked on create.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NameFormat {
    /// RFC 1123 subdomain, at most 253 characters: the default of custom resources.
    #[default]
    DnsSubdomain,
    /// RFC 1123 label, at most 63 characters: namespaces, services.
    DnsLabel,
    /// Anything that can stand in a path: RBAC-like kinds.
    PathSegment,
}
