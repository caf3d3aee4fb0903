//! The words of a kind's definition as plain enums: below the macros and the runtime, so that each is written once.
//!
//! ```
//! use apiloom_vocabulary::{Release, Verb};
//!
//! assert_eq!(Verb::DeleteCollection.as_str(), "deletecollection");
//! assert_eq!(Verb::DeleteCollection.word(), "delete_collection");
//! assert!("1.10".parse::<Release>()? > "1.9".parse()?);
//! # Ok::<_, String>(())
//! ```

use std::fmt;
use std::str::FromStr;

/// Declares an enum whose variants have a spelling each.
macro_rules! words {
    ($(#[$attribute:meta])* $name:ident { $($(#[$of_variant:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[$of_variant])* $variant,)+
        }

        impl $name {
            /// All of them, in the order of their declaration.
            pub const ALL: [Self; [$($word),+].len()] = [$(Self::$variant),+];

            /// The spelling in attributes.
            pub const fn word(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }

            /// The name of the variant in Rust.
            pub const fn variant(self) -> &'static str {
                match self {
                    $(Self::$variant => stringify!($variant),)+
                }
            }
        }
    };
}

words! {
    /// A verb of the API, in the order in which discovery lists them.
    #[allow(missing_docs, reason = "the names are the API's own verbs")]
    Verb {
        Create = "create",
        Delete = "delete",
        DeleteCollection = "delete_collection",
        Get = "get",
        List = "list",
        Patch = "patch",
        Update = "update",
        Watch = "watch",
    }
}

impl Verb {
    /// The verbs of a kind that names none, and of those that it skips some of.
    pub const DEFAULT: [Self; 8] = [
        Self::Create,
        Self::Delete,
        Self::DeleteCollection,
        Self::Get,
        Self::List,
        Self::Patch,
        Self::Update,
        Self::Watch,
    ];

    /// Whether requests change nothing.
    pub const fn is_read(self) -> bool {
        matches!(self, Self::Get | Self::List | Self::Watch)
    }

    /// The name in discovery and RBAC.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::DeleteCollection => "deletecollection",
            other => other.word(),
        }
    }
}

words! {
    /// Whether objects are in namespaces.
    Scope {
        /// Objects are in a namespace.
        Namespaced = "namespaced",
        /// Objects are not in namespaces.
        Cluster = "cluster",
    }
}

words! {
    /// How object names are validated on create.
    #[derive(Default)]
    NameFormat {
        /// RFC 1123 subdomain, at most 253 characters: the default of custom resources.
        #[default]
        DnsSubdomain = "dns_subdomain",
        /// RFC 1123 label, at most 63 characters: namespaces, services.
        DnsLabel = "dns_label",
        /// Any text that can be a path segment: kinds like those of RBAC.
        PathSegment = "path_segment",
    }
}

words! {
    /// What happens to the dependents of a deleted object by default (kube-apiserver's `GarbageCollectionPolicy`).
    #[derive(Default)]
    Dependents {
        /// The garbage collector deletes them.
        #[default]
        Delete = "delete",
        /// They are orphaned: the object gets the finalizer `orphan`.
        Orphan = "orphan",
        /// Objects have no dependents: propagation policies are ignored, and set no finalizer.
        Unsupported = "unsupported",
    }
}

/// The choices of a kind for the deletion of its objects. By default they are those of custom resources.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ObjectDeletion {
    /// Grace period of a delete that asks for none, in seconds; `None` if objects are not deleted gracefully.
    ///
    /// With a grace period, a delete only sets `deletionTimestamp` to its end. The server never removes the object by
    /// itself: the client that runs it does, by a delete with a grace period of 0.
    pub grace_seconds: Option<u32>,
    /// What happens to the dependents if neither the request nor the object's finalizers say it.
    pub dependents: Dependents,
    /// Whether the response to the removal of an object is its last state instead of a Status.
    pub returns_object: bool,
}

words! {
    /// The type of a printer column (`TableColumnDefinition.type`).
    ColumnType {
        /// A string.
        String = "string",
        /// An integer.
        Integer = "integer",
        /// A floating-point number.
        Number = "number",
        /// `true` or `false`.
        Boolean = "boolean",
        /// A time, shown as an age.
        Date = "date",
    }
}

words! {
    /// Comparison operator of a filter. None is spelled like the beginning of a later one.
    #[allow(missing_docs, reason = "the names are the operators")]
    Comparison {
        Equal = "==",
        NotEqual = "!=",
        LessOrEqual = "<=",
        GreaterOrEqual = ">=",
        Less = "<",
        Greater = ">",
    }
}

/// A release of an API group, with which lifecycles are compared: `1.2`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Release {
    /// Major number.
    pub major: u32,
    /// Minor number; compared as a number, so 1.10 comes after 1.9.
    pub minor: u32,
}

impl FromStr for Release {
    type Err = String;

    /// Parses `MAJOR.MINOR`.
    fn from_str(text: &str) -> Result<Self, String> {
        let number = |digits: &str| {
            let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
            digits.parse().ok().filter(|_| is_number)
        };
        let (major, minor) = text.split_once('.').unwrap_or_default();
        match (number(major), number(minor)) {
            (Some(major), Some(minor)) => Ok(Self { major, minor }),
            _ => Err(format!("{text:?} is not a release such as 1.2")),
        }
    }
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verbs_have_the_names_of_discovery_in_its_order() {
        let names = Verb::ALL.map(Verb::as_str);
        assert!(names.is_sorted(), "{names:?}");
        assert_eq!(Verb::DeleteCollection.variant(), "DeleteCollection");
        assert!(
            names
                .iter()
                .all(|name| name.bytes().all(|byte| byte.is_ascii_lowercase()))
        );
    }

    #[test]
    fn no_comparison_is_the_beginning_of_a_later_one() {
        let words = Comparison::ALL.map(Comparison::word);
        for (index, word) in words.iter().enumerate() {
            let later = &words[index + 1..];
            assert!(!later.iter().any(|later| later.starts_with(word)), "{word}");
        }
    }

    #[test]
    fn a_release_has_two_numbers() {
        for text in [
            "",
            "1",
            "1.",
            ".1",
            "1.2.3",
            "+1.2",
            "1.-2",
            "a.b",
            "1.4294967296",
        ] {
            assert!(text.parse::<Release>().is_err(), "{text}");
        }
        let release: Release = "1.10".parse().unwrap();
        assert_eq!(release.to_string(), "1.10");
        assert!(release > Release { major: 1, minor: 9 });
    }
}
