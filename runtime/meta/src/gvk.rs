//! Identifiers of kinds and resources: group, version, kind, resource.

use std::fmt;

macro_rules! identity {
    ($(#[$doc:meta])* $name:ident { $($field:ident),+ }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name { $(#[doc = concat!("The ", stringify!($field), ".")] pub $field: String,)+ }

        impl $name {
            /// Builds the identifier from its parts, in the order of its name.
            pub fn new($($field: impl Into<String>),+) -> Self {
                Self { $($field: $field.into()),+ }
            }
        }
    };
}

identity! {
    /// A group and a version: `wardle.example.com/v1alpha1`; the core group is the empty string and prints as `v1`.
    GroupVersion { group, version }
}
identity! {
    /// A group and a kind; prints `Kind.group`, or `Kind` for the core group.
    GroupKind { group, kind }
}
identity! {
    /// A group and a resource; prints `resource.group`, or `resource` for the core group.
    GroupResource { group, resource }
}
identity! {
    /// A group, a version and a kind.
    GroupVersionKind { group, version, kind }
}
identity! {
    /// A group, a version and a resource.
    GroupVersionResource { group, version, resource }
}

fn join(f: &mut fmt::Formatter<'_>, first: &str, separator: char, second: &str) -> fmt::Result {
    if second.is_empty() {
        f.write_str(first)
    } else {
        write!(f, "{first}{separator}{second}")
    }
}

impl GroupVersion {
    /// Parses an `apiVersion`: `v1` or `group/v1`. `None` if it has more than one slash.
    pub fn parse(api_version: &str) -> Option<Self> {
        match api_version.split_once('/') {
            None => Some(Self::new("", api_version)),
            Some((group, version)) if !version.contains('/') => Some(Self::new(group, version)),
            Some(_) => None,
        }
    }
}

impl fmt::Display for GroupVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.group.is_empty() {
            f.write_str(&self.version)
        } else {
            write!(f, "{}/{}", self.group, self.version)
        }
    }
}

impl fmt::Display for GroupKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        join(f, &self.kind, '.', &self.group)
    }
}

impl fmt::Display for GroupResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        join(f, &self.resource, '.', &self.group)
    }
}

impl GroupVersionKind {
    /// Its group and version.
    pub fn group_version(&self) -> GroupVersion {
        GroupVersion::new(&self.group, &self.version)
    }
    /// Its group and kind.
    pub fn group_kind(&self) -> GroupKind {
        GroupKind::new(&self.group, &self.kind)
    }
}

impl GroupVersionResource {
    /// Its group and version.
    pub fn group_version(&self) -> GroupVersion {
        GroupVersion::new(&self.group, &self.version)
    }
    /// Its group and resource.
    pub fn group_resource(&self) -> GroupResource {
        GroupResource::new(&self.group, &self.resource)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_api_version_has_at_most_one_slash() {
        assert_eq!(GroupVersion::parse("v1"), Some(GroupVersion::new("", "v1")));
        assert_eq!(
            GroupVersion::parse("apps/v1"),
            Some(GroupVersion::new("apps", "v1"))
        );
        assert_eq!(GroupVersion::parse(""), Some(GroupVersion::default()));
        assert_eq!(GroupVersion::parse("a/b/c"), None);
    }

    #[test]
    fn the_core_group_is_not_printed() {
        let print = |thing: &dyn fmt::Display| thing.to_string();
        assert_eq!(print(&GroupVersion::new("", "v1")), "v1");
        assert_eq!(print(&GroupVersion::new("apps", "v1")), "apps/v1");
        assert_eq!(print(&GroupKind::new("", "Pod")), "Pod");
        assert_eq!(print(&GroupKind::new("ex.io", "Foo")), "Foo.ex.io");
        assert_eq!(print(&GroupResource::new("", "pods")), "pods");
        assert_eq!(print(&GroupResource::new("ex.io", "foos")), "foos.ex.io");
    }

    #[test]
    fn parts_are_taken_out() {
        let kind = GroupVersionKind::new("g", "v", "K");
        assert_eq!(
            (kind.group_version(), kind.group_kind()),
            (GroupVersion::new("g", "v"), GroupKind::new("g", "K"))
        );
        let resource = GroupVersionResource::new("g", "v", "ks");
        assert_eq!(resource.group_version(), GroupVersion::new("g", "v"));
        assert_eq!(resource.group_resource(), GroupResource::new("g", "ks"));
    }
}
