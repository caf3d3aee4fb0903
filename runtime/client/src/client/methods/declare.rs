//! `methods!`: declares the methods that kinds add to their clients. `apiloom generate` writes its calls.
//!
//! # Generated clients
//!
//! - The files of a package's clients are calls of macros of the runtime, with names and types alone: `clientset!` has a line for each
//!   kind, `methods!` one for each method that kinds declare, `indexes!` one for each kind of an index, `configurations!` one for each
//!   field. What they do, and their docs, are in the runtime.
//! - A client has the verbs that the server serves: one declaration is for both. So `updateStatus`, `apply` and `applyStatus`, which the Go
//!   generator can leave out apart, are not verbs: the server cannot serve patches without applies, nor updates of a status without
//!   those of the object. `no_client_verbs` takes all verbs from a client whose server has them.
//! - A test of `tidy` counts the lines for each kind in each version, with those that all kinds of its package share: at most 60, and
//!   one for each field.

/// Declares a trait for each kind whose client has methods besides those of the verbs, in a module for each group and version.
///
/// A kind says the trait, its plural name and its type. A method says its request, its name, and then, where it has one, the
/// subresource that it is sent to, the kind of its body in parentheses, and behind `->` the type of the response:
///
/// | request | the method takes | it returns |
/// |---|---|---|
/// | `get` | a name | `GetRequest` |
/// | `list` | nothing; of a subresource a name | `ListRequest` |
/// | `create` | a body; of a subresource a name and a body | `WriteRequest` |
/// | `update` | a name and a body | `WriteRequest` |
/// | `patch` | a name and a patch | `PatchRequest` |
/// | `apply` | a name, a configuration and the manager | `PatchRequest` |
/// | `connect` | a name, and before it the method of HTTP unless that is in the parentheses | `RawRequest` |
///
/// Types are paths that are valid in every module.
///
/// ```
/// apiloom_client::methods! {
///     version core_v1 "v1":
///         kind ConfigMapMethods "configmaps" of apiloom_kinds::core::v1::ConfigMap:
///             get find -> apiloom_kinds::core::v1::ConfigMap,
///             create make (apiloom_kinds::core::v1::ConfigMap) -> apiloom_kinds::core::v1::ConfigMap,
///             apply declare_owner "owner" (apiloom_kinds::core::v1::ConfigMap) -> apiloom_kinds::core::v1::Namespace,
///             connect open_log "log" (GET);
/// }
/// use core_v1::ConfigMapMethods as _;
/// # use apiloom_client::{Error, Namespaced, ResourceClient};
/// # async fn example(configs: ResourceClient<apiloom_kinds::core::v1::ConfigMap, Namespaced>) -> Result<(), Error> {
/// let config = configs.find("a").resource_version("0").await?;
/// configs.make(&config).dry_run().await?;
/// let owner = configs.declare_owner("a", &serde_json::json!({}), "me").force().await?;
/// let log = configs.open_log("a").query("follow", "true").stream().await?;
/// # let _: (apiloom_kinds::core::v1::ConfigMap, apiloom_kinds::core::v1::Namespace) = (config, owner);
/// # Ok(())
/// # }
/// ```
#[macro_export]
macro_rules! methods {
    ($(
        version $version:ident $name:literal:
            $(kind $methods:ident $plural:literal of $object:ty:
                $($verb:ident $method:ident $($subresource:literal)? $(($($argument:tt)*))? $(-> $output:ty)?),+ ;
            )+
    )*) => { $(
        #[doc = concat!("The kinds of `", $name, "`.")]
        pub mod $version { $(
            #[doc = concat!("Methods of the client of `", $plural, "`.")]
            pub trait $methods: $crate::client::ObjectClient {
                $( $crate::__method! { $verb $method ($($subresource)?) ($($($argument)*)?) $($output)? } )+
            }

            impl<S: $crate::client::ObjectScope> $methods for $crate::ResourceClient<$object, S> {}
        )+ }
    )* };
}

/// One method. The types of a request are given to the call, so that the compiler reports those that do not fit where they are
/// written.
#[doc(hidden)]
#[macro_export]
macro_rules! __method {
    (get $method:ident () () $output:ty) => {
        /// Reads an object.
        fn $method(&self, name: &str) -> $crate::client::GetRequest<$output> {
            self.get_as::<$output>(::core::option::Option::None, name)
        }
    };
    (get $method:ident ($subresource:literal) () $output:ty) => {
        #[doc = concat!("Reads the subresource `", $subresource, "` of an object.")]
        fn $method(&self, name: &str) -> $crate::client::GetRequest<$output> {
            self.get_as::<$output>(::core::option::Option::Some($subresource), name)
        }
    };
    (list $method:ident () () $output:ty) => {
        /// Lists the objects.
        fn $method(&self) -> $crate::client::ListRequest<$output> {
            self.list_as::<$output>(::core::option::Option::None)
        }
    };
    (list $method:ident ($subresource:literal) () $output:ty) => {
        #[doc = concat!("Lists the subresource `", $subresource, "` of an object.")]
        fn $method(&self, name: &str) -> $crate::client::ListRequest<$output> {
            self.list_as::<$output>(::core::option::Option::Some(($subresource, name)))
        }
    };
    (create $method:ident () ($input:ty) $output:ty) => {
        /// Creates an object.
        fn $method(&self, body: &$input) -> $crate::client::WriteRequest<$output> {
            self.create_as::<$input, $output>(::core::option::Option::None, body)
        }
    };
    (create $method:ident ($subresource:literal) ($input:ty) $output:ty) => {
        #[doc = concat!("Creates the subresource `", $subresource, "` of an object.")]
        fn $method(&self, name: &str, body: &$input) -> $crate::client::WriteRequest<$output> {
            self.create_as::<$input, $output>(::core::option::Option::Some(($subresource, name)), body)
        }
    };
    (update $method:ident () ($input:ty) $output:ty) => {
        /// Replaces an object.
        fn $method(&self, name: &str, body: &$input) -> $crate::client::WriteRequest<$output> {
            self.update_as::<$input, $output>(::core::option::Option::None, name, body)
        }
    };
    (update $method:ident ($subresource:literal) ($input:ty) $output:ty) => {
        #[doc = concat!("Replaces the subresource `", $subresource, "` of an object.")]
        fn $method(&self, name: &str, body: &$input) -> $crate::client::WriteRequest<$output> {
            self.update_as::<$input, $output>(::core::option::Option::Some($subresource), name, body)
        }
    };
    (patch $method:ident () () $output:ty) => {
        /// Patches an object.
        fn $method(&self, name: &str, patch: $crate::Patch) -> $crate::client::PatchRequest<$output> {
            self.patch_as::<$output>(::core::option::Option::None, name, patch)
        }
    };
    (patch $method:ident ($subresource:literal) () $output:ty) => {
        #[doc = concat!("Patches the subresource `", $subresource, "` of an object.")]
        fn $method(&self, name: &str, patch: $crate::Patch) -> $crate::client::PatchRequest<$output> {
            self.patch_as::<$output>(::core::option::Option::Some($subresource), name, patch)
        }
    };
    (apply $method:ident () ($input:ty) $output:ty) => {
        /// Applies a configuration to an object.
        fn $method(
            &self,
            name: &str,
            configuration: &(impl $crate::serde::Serialize + ?Sized),
            field_manager: &str,
        ) -> $crate::client::PatchRequest<$output> {
            self.apply_as::<$input, $output>(::core::option::Option::None, name, configuration, field_manager)
        }
    };
    (apply $method:ident ($subresource:literal) ($input:ty) $output:ty) => {
        #[doc = concat!("Applies a configuration to the subresource `", $subresource, "` of an object.")]
        fn $method(
            &self,
            name: &str,
            configuration: &(impl $crate::serde::Serialize + ?Sized),
            field_manager: &str,
        ) -> $crate::client::PatchRequest<$output> {
            self.apply_as::<$input, $output>(::core::option::Option::Some($subresource), name, configuration, field_manager)
        }
    };
    (connect $method:ident ($subresource:literal) ($verb:ident)) => {
        #[doc = concat!("Opens a stream of the subresource `", $subresource, "` of an object.")]
        fn $method(&self, name: &str) -> $crate::client::RawRequest {
            self.connect($crate::http::Method::$verb, $subresource, name)
        }
    };
    (connect $method:ident ($subresource:literal) ()) => {
        #[doc = concat!("Opens a stream of the subresource `", $subresource, "` of an object.")]
        fn $method(&self, method: $crate::http::Method, name: &str) -> $crate::client::RawRequest {
            self.connect(method, $subresource, name)
        }
    };
}
