//! `clientset!`: declares the clients and informers of a package's kinds. `apiloom generate` writes its calls.

/// Declares `Clientset` and `Informers`. Both have a method for each group and version, whose types have methods for each kind.
///
/// A version says its method, its name, and its two types. A kind says its method, its plural name, its scope, what else there
/// is of it, and its type:
///
/// | word | declares |
/// |---|---|
/// | `namespaced` | the method of a kind with namespaces: its client in a namespace |
/// | `cluster` | the method of a kind without namespaces: its client |
/// | `all(method)` | a method of another name: the client of all namespaces |
/// | `informer` | the method of `Informers` |
///
/// ```
/// apiloom_client::clientset! {
///     version core_v1 "v1" (CoreV1, CoreV1Informers):
///         configmaps "configmaps" (namespaced, all(all_configmaps), informer) of apiloom_kinds::core::v1::ConfigMap,
///         namespaces "namespaces" (cluster, informer) of apiloom_kinds::core::v1::Namespace;
/// }
/// # use apiloom_client::{Client, Error, cache::InformerFactory};
/// # async fn example(client: Client) -> Result<(), Error> {
/// let informers = Informers::new(InformerFactory::new(&client));
/// let namespaces = informers.core_v1().namespaces();
/// let clients = Clientset::new(client);
/// let config = clients.core_v1().configmaps("default").get("a").await?;
/// let configs = clients.core_v1().all_configmaps().list().await?;
/// # Ok(())
/// # }
/// ```
#[macro_export]
macro_rules! clientset {
    ($(
        version $version:ident $name:literal ($clients:ident, $informers:ident):
            $($kind:ident $plural:literal ($scope:ident $(, $word:ident $(($method:ident))?)*) of $object:ty),+ ;
    )*) => {
        /// The clients of all kinds, by group and version.
        #[derive(Clone, Debug)]
        pub struct Clientset($crate::Client);

        impl Clientset {
            /// Clients that send their requests by a client.
            pub fn new(client: $crate::Client) -> Self {
                Self(client)
            }
            /// The client that sends the requests.
            pub fn client(&self) -> &$crate::Client {
                &self.0
            }
            $(
                #[doc = concat!("The kinds of `", $name, "`.")]
                pub fn $version(&self) -> $clients {
                    $clients(self.0.clone())
                }
            )*
        }

        /// The informers of all kinds, by group and version. Those of the same objects are one.
        #[derive(Clone, Debug)]
        pub struct Informers($crate::cache::InformerFactory);

        impl Informers {
            /// Informers of a factory, with its namespace and selectors.
            pub fn new(factory: $crate::cache::InformerFactory) -> Self {
                Self(factory)
            }
            /// The factory, which starts them, waits for them and stops them.
            pub fn factory(&self) -> &$crate::cache::InformerFactory {
                &self.0
            }
            $(
                #[doc = concat!("The kinds of `", $name, "`.")]
                pub fn $version(&self) -> $informers {
                    $informers(self.0.clone())
                }
            )*
        }

        $(
            #[doc = concat!("The clients of `", $name, "`.")]
            #[derive(Clone, Debug)]
            pub struct $clients($crate::Client);

            impl $clients {
                $(
                    $crate::__client_of_kind! { $scope $kind $plural $object }
                    $( $crate::__more_of_kind! { $word ($($method)?) $plural $object } )*
                )+
            }

            #[doc = concat!("The informers of `", $name, "`.")]
            #[derive(Clone, Debug)]
            pub struct $informers($crate::cache::InformerFactory);

            impl $informers {
                $($( $crate::__informer_of_kind! { $word $scope $kind $plural $object } )*)+
            }
        )*
    };
}

/// The client of a kind: the method that all have.
#[doc(hidden)]
#[macro_export]
macro_rules! __client_of_kind {
    (namespaced $kind:ident $plural:literal $object:ty) => {
        #[doc = concat!("The client of `", $plural, "` in a namespace.")]
        pub fn $kind(
            &self,
            namespace: &str,
        ) -> $crate::ResourceClient<$object, $crate::Namespaced> {
            self.0.namespaced(namespace)
        }
    };
    (cluster $kind:ident $plural:literal $object:ty) => {
        #[doc = concat!("The client of `", $plural, "`.")]
        pub fn $kind(&self) -> $crate::ResourceClient<$object, $crate::Cluster> {
            self.0.cluster()
        }
    };
}

/// A client of a kind that not all have.
#[doc(hidden)]
#[macro_export]
macro_rules! __more_of_kind {
    (all ($method:ident) $plural:literal $object:ty) => {
        #[doc = concat!("Lists and watches `", $plural, "` in all namespaces.")]
        pub fn $method(&self) -> $crate::ResourceClient<$object, $crate::AllNamespaces> {
            self.0.all_namespaces()
        }
    };
    (informer () $plural:literal $object:ty) => {};
}

/// The informer of a kind, if it has one.
#[doc(hidden)]
#[macro_export]
macro_rules! __informer_of_kind {
    (informer namespaced $kind:ident $plural:literal $object:ty) => {
        #[doc = concat!("The informer of `", $plural, "`.")]
        pub fn $kind(&self) -> $crate::cache::Informer<$object> {
            self.0.informer()
        }
    };
    (informer cluster $kind:ident $plural:literal $object:ty) => {
        #[doc = concat!("The informer of `", $plural, "`.")]
        pub fn $kind(&self) -> $crate::cache::Informer<$object> {
            self.0.cluster_informer()
        }
    };
    (all $scope:ident $kind:ident $plural:literal $object:ty) => {};
}
