//! What clients may do with the objects of a kind, as traits: `#[apiloom::resource]` implements one for each verb that it
//! declares, so that a client's call of another verb does not compile.
//!
//! ```compile_fail
//! use apiloom_meta::kind::verbs::Patch;
//! fn patched<K: Patch>() {}
//! struct ReadOnly;
//! patched::<ReadOnly>();
//! ```

/// Declares the trait of a verb.
macro_rules! verb {
    ($name:ident, $doc:literal, $message:literal, $note:literal) => {
        #[doc = $doc]
        #[diagnostic::on_unimplemented(message = $message, label = "this kind", note = $note)]
        pub trait $name {}
    };
}

verb!(
    Create,
    "Objects can be created.",
    "`{Self}` has no verb `create`",
    "the keys `verbs(..)`, `readonly`, `simple` and `no_client_verbs` of its `#[apiloom::resource]` decide which verbs clients have"
);
verb!(
    Delete,
    "Objects can be deleted.",
    "`{Self}` has no verb `delete`",
    "the keys `verbs(..)`, `readonly`, `simple` and `no_client_verbs` of its `#[apiloom::resource]` decide which verbs clients have"
);
verb!(
    DeleteCollection,
    "The objects of a collection can be deleted together.",
    "`{Self}` has no verb `deletecollection`",
    "the keys `verbs(..)`, `readonly`, `simple` and `no_client_verbs` of its `#[apiloom::resource]` decide which verbs clients have"
);
verb!(
    Get,
    "Objects can be read by name.",
    "`{Self}` has no verb `get`",
    "the keys `verbs(..)`, `readonly`, `simple` and `no_client_verbs` of its `#[apiloom::resource]` decide which verbs clients have"
);
verb!(
    List,
    "Objects can be listed.",
    "`{Self}` has no verb `list`",
    "the keys `verbs(..)`, `readonly`, `simple` and `no_client_verbs` of its `#[apiloom::resource]` decide which verbs clients have"
);
verb!(
    Patch,
    "Objects can be changed by patches.",
    "`{Self}` has no verb `patch`",
    "the keys `verbs(..)`, `readonly`, `simple` and `no_client_verbs` of its `#[apiloom::resource]` decide which verbs clients have"
);
verb!(
    Update,
    "Objects can be replaced.",
    "`{Self}` has no verb `update`",
    "the keys `verbs(..)`, `readonly`, `simple` and `no_client_verbs` of its `#[apiloom::resource]` decide which verbs clients have"
);
verb!(
    Watch,
    "Objects can be watched.",
    "`{Self}` has no verb `watch`",
    "the keys `verbs(..)`, `readonly`, `simple` and `no_client_verbs` of its `#[apiloom::resource]` decide which verbs clients have"
);
verb!(
    HasStatus,
    "Objects have a status, which is written apart.",
    "`{Self}` has no status",
    "the key `status` of its `#[apiloom::resource]` gives it one"
);
verb!(
    HasScale,
    "Objects have a number of replicas, with the subresource `scale`.",
    "`{Self}` has no scale",
    "the key `scale(..)` of its `#[apiloom::resource]` gives it one"
);

/// All verbs: what a kind has that leaves none out.
pub trait All: Create + Delete + DeleteCollection + Get + List + Patch + Update + Watch {}

impl<K: Create + Delete + DeleteCollection + Get + List + Patch + Update + Watch> All for K {}
