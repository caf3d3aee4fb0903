//! Formats of object names.

/// How object names are validated on create.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NameFormat {
    /// RFC 1123 subdomain, at most 253 characters: the default of custom resources.
    #[default]
    DnsSubdomain,
    /// RFC 1123 label, at most 63 characters: namespaces, services.
    DnsLabel,
    /// Any text that can be a path segment: kinds like those of RBAC.
    PathSegment,
}
