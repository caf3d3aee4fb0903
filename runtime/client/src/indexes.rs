//! `indexes!`: declares the indexes of local copies. `apiloom generate` writes its calls.

/// Declares a type for each index, which is an [`Index`](crate::cache::Index) of the kinds that have it.
///
/// A kind says its type, the type of the keys, and the value of an object that has them: a text, an integer, a `bool` or an enum,
/// or an option, list or map of these.
///
/// ```
/// use apiloom_client::cache::Index;
/// # use apiloom_kinds::core::v1::ConfigMap;
///
/// apiloom_client::indexes! {
///     index Name "name":
///         apiloom_kinds::core::v1::ConfigMap: ::std::string::String = |object| object.metadata.name,
///         apiloom_kinds::core::v1::Namespace: ::std::string::String = |object| object.metadata.name;
/// }
/// let mut config = ConfigMap::default();
/// config.metadata.name = Some("a".to_owned());
/// let mut keys = Vec::new();
/// Name::keys(&config, &mut |key| keys.push(key));
/// assert_eq!(keys, ["a"]);
/// ```
#[macro_export]
macro_rules! indexes {
    ($(
        index $index:ident $name:literal:
            $($kind:ty: $key:ty = |$object:ident| $value:expr),+ ;
    )*) => { $(
        #[doc = concat!("The index `", $name, "`.")]
        #[derive(Debug)]
        pub struct $index;

        $(
            impl $crate::cache::Index<$kind> for $index {
                type Key = $key;
                const NAME: &'static str = $name;
                fn keys($object: &$kind, emit: &mut dyn FnMut(Self::Key)) {
                    $crate::__IndexKeys::each_key(&$value, emit);
                }
            }
        )+
    )* };
}
