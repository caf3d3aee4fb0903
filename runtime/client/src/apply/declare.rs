//! `configurations!`: declares builders. `apiloom generate` writes its calls.

/// Declares the builders of apply configurations, of kinds and of the structs inside them.
///
/// A kind says its scope, `status` if it has that subresource, and its type. Each field has its Rust name, its JSON name
/// and the form of its value:
///
/// | form | the setter takes |
/// |---|---|
/// | `text`, `texts`, `text_map` | what becomes a `String`; an iterator of them; of pairs |
/// | `value(T)`, `list(T)`, `map(T)` | a `T`, an iterator of `T`, or of pairs of a name and a `T`. What `T` serializes is sent |
/// | `nullable(T)` | a `T`, or `None` for null |
/// | `bytes(T)` | bytes, or a list or map of them: base64 text in JSON |
/// | `part(T, edit)`, `parts(T, edit)`, `part_map(T, edit)` | a builder, an iterator of them, or of pairs. The method `edit` changes those that are set |
/// | `flat(T)` | a value whose fields are inlined |
///
/// The fields of a part marked `union` exclude each other: setting one unsets the others.
///
/// ```
/// apiloom_client::configurations! {
///     kind ConfigMap(namespaced) of apiloom_kinds::core::v1::ConfigMap:
///         data "data": text_map,
///         immutable "immutable": value(bool);
/// }
/// let config = ConfigMap::new("default", "a").data([("color", "red")]);
/// let json = serde_json::json!({
///     "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "default", "name": "a"}, "data": {"color": "red"},
/// });
/// assert_eq!(serde_json::to_value(&config).unwrap(), json);
/// ```
#[macro_export]
macro_rules! configurations {
    ($(
        $word:ident $name:ident $(($($flag:ident),*))? $(of $kind:ty)? :
            $($(#[$attribute:meta])* $field:ident $json:literal : $form:ident $(($($argument:tt)*))?),* ;
    )*) => { $(
        #[doc = concat!("The fields of `", stringify!($name), "` that a manager applies. All are optional.")]
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct $name($crate::apply::Fields);

        impl $crate::apply::Part for $name {
            fn from_fields(fields: $crate::apply::Fields) -> Self {
                Self(fields)
            }
            fn fields(&self) -> &$crate::apply::Fields {
                &self.0
            }
            fn fields_mut(&mut self) -> &mut $crate::apply::Fields {
                &mut self.0
            }
        }

        impl $crate::__serde::Serialize for $name {
            fn serialize<S: $crate::__serde::Serializer>(&self, serializer: S) -> ::core::result::Result<S::Ok, S::Error> {
                $crate::__serde::Serialize::serialize(&self.0, serializer)
            }
        }

        $crate::__configuration!($word $name ($($($flag)*)?) $($kind)?);

        #[allow(missing_docs, reason = "the attributes may be conditions")]
        impl $name {
            $(
                $(#[$attribute])*
                $crate::__setter! { $field $json ($word) $form $(($($argument)*))? }
            )*
        }
    )* };
}

/// Constructors and metadata: the methods of a builder besides its setters.
#[doc(hidden)]
#[macro_export]
macro_rules! __configuration {
    (part $name:ident ()) => {
        impl $name {
            /// A builder without fields; what it becomes is an empty object.
            #[must_use]
            pub fn new() -> Self {
                <Self as ::core::default::Default>::default()
            }
        }
    };
    (union $name:ident ()) => {
        $crate::__configuration!(part $name ());
    };
    (kind $name:ident (namespaced $($flag:ident)?) $kind:ty) => {
        impl $name {
            /// The configuration of an object that sets no field yet.
            #[must_use]
            pub fn new(namespace: impl ::core::convert::Into<::std::string::String>, name: impl ::core::convert::Into<::std::string::String>) -> Self {
                let mut new = $crate::apply::new::<$kind, Self>(name.into());
                $crate::apply::set_metadata(&mut new.0, "namespace", &namespace.into());
                new
            }

            fn of(object: &$kind) -> Self {
                let metadata = $crate::object::HasMetadata::namespace(object);
                Self::new(metadata, $crate::object::HasMetadata::name(object))
            }
        }

        $crate::__configuration!(@common $name ($($flag)?) $kind);
    };
    (kind $name:ident (cluster $($flag:ident)?) $kind:ty) => {
        impl $name {
            /// The configuration of an object that sets no field yet.
            #[must_use]
            pub fn new(name: impl ::core::convert::Into<::std::string::String>) -> Self {
                $crate::apply::new::<$kind, Self>(name.into())
            }

            fn of(object: &$kind) -> Self {
                Self::new($crate::object::HasMetadata::name(object))
            }
        }

        $crate::__configuration!(@common $name ($($flag)?) $kind);
    };
    (@common $name:ident ($($status:ident)?) $kind:ty) => {
        impl $name {
            /// The configuration that a manager has applied, as the object's managedFields say: changed and applied again,
            /// it changes nothing else. Without fields if the manager has applied none.
            ///
            /// # Errors
            /// If the object has no managedFields, or its manager has applied it in another version.
            pub fn extract(object: &$kind, field_manager: &str) -> ::core::result::Result<Self, $crate::apply::ExtractError> {
                $crate::apply::extract(Self::of(object), object, field_manager, "")
            }

            $(
                /// As `extract`, of what was applied through the subresource `status`.
                ///
                /// # Errors
                /// As `extract`.
                pub fn extract_status(object: &$kind, field_manager: &str) -> ::core::result::Result<Self, $crate::apply::ExtractError> {
                    $crate::apply::extract(Self::of(object), object, field_manager, stringify!($status))
                }
            )?

            /// Sets the labels.
            #[must_use]
            pub fn labels<Key: ::core::convert::Into<::std::string::String>, Text: ::core::convert::Into<::std::string::String>>(self, labels: impl ::core::iter::IntoIterator<Item = (Key, Text)>) -> Self {
                $crate::apply::with_texts(self, "labels", labels)
            }

            /// Sets the annotations.
            #[must_use]
            pub fn annotations<Key: ::core::convert::Into<::std::string::String>, Text: ::core::convert::Into<::std::string::String>>(self, annotations: impl ::core::iter::IntoIterator<Item = (Key, Text)>) -> Self {
                $crate::apply::with_texts(self, "annotations", annotations)
            }

            /// Sets the finalizers of this manager; those of others stay.
            #[must_use]
            pub fn finalizers<Text: ::core::convert::Into<::std::string::String>>(mut self, finalizers: impl ::core::iter::IntoIterator<Item = Text>) -> Self {
                let finalizers: ::std::vec::Vec<::std::string::String> = finalizers.into_iter().map(::core::convert::Into::into).collect();
                $crate::apply::set_metadata(&mut self.0, "finalizers", &finalizers);
                self
            }

            /// Sets the owner references of this manager; those of others stay.
            #[must_use]
            pub fn owner_references(mut self, owners: impl ::core::iter::IntoIterator<Item = $crate::apply::OwnerReference>) -> Self {
                let owners: ::std::vec::Vec<_> = owners.into_iter().collect();
                $crate::apply::set_metadata(&mut self.0, "ownerReferences", &owners);
                self
            }

            /// Applies only to the object with this uid: one that was deleted meanwhile is not created again.
            #[must_use]
            pub fn uid(mut self, uid: impl ::core::convert::Into<::std::string::String>) -> Self {
                $crate::apply::set_metadata(&mut self.0, "uid", &uid.into());
                self
            }

            /// Applies only if the object still has this resourceVersion.
            #[must_use]
            pub fn resource_version(mut self, version: impl ::core::convert::Into<::std::string::String>) -> Self {
                $crate::apply::set_metadata(&mut self.0, "resourceVersion", &version.into());
                self
            }
        }

        impl $crate::apply::Configuration<$kind> for $name {
            fn name(&self) -> &str {
                $crate::apply::metadata_text(self, "name").unwrap_or_default()
            }
            fn namespace(&self) -> ::core::option::Option<&str> {
                $crate::apply::metadata_text(self, "namespace")
            }
            fn document(&self) -> ::core::result::Result<$crate::apply::Document, $crate::error::Error> {
                $crate::apply::document::<$kind>(self)
            }
        }
    };
}

/// The methods of one field. Values are passed on as they are: what they become is decided in `Fields`.
#[doc(hidden)]
#[macro_export]
macro_rules! __setter {
    ($field:ident $json:literal (union) $form:ident $(($($argument:tt)*))?) => {
        $crate::__setter! { @$form clear $field $json $(($($argument)*))? }
    };
    ($field:ident $json:literal ($word:ident) $form:ident $(($($argument:tt)*))?) => {
        $crate::__setter! { @$form keep $field $json $(($($argument)*))? }
    };
    (@text $before:ident $field:ident $json:literal) => {
        $crate::__setter! { @set $before $field $json [] (impl ::core::convert::Into<::std::string::String>) set value => value.into() }
    };
    (@texts $before:ident $field:ident $json:literal) => {
        $crate::__setter! { @set $before $field $json [Text: ::core::convert::Into<::std::string::String>] (impl ::core::iter::IntoIterator<Item = Text>) set
            value => value.into_iter().map(::core::convert::Into::<::std::string::String>::into).collect::<::std::vec::Vec<_>>() }
    };
    (@text_map $before:ident $field:ident $json:literal) => {
        $crate::__setter! { @set $before $field $json [] (impl ::core::iter::IntoIterator<Item = (impl ::core::convert::Into<::std::string::String>, impl ::core::convert::Into<::std::string::String>)>) set
            value => value.into_iter().map(|(key, text)| (key.into(), text.into())).collect::<::std::collections::BTreeMap<::std::string::String, _>>() }
    };
    (@value $before:ident $field:ident $json:literal ($type:ty)) => {
        $crate::__setter! { @set $before $field $json [] ($type) set value => value }
    };
    (@list $before:ident $field:ident $json:literal ($type:ty)) => {
        $crate::__setter! { @set $before $field $json [] (impl ::core::iter::IntoIterator<Item = $type>) set
            value => value.into_iter().collect::<::std::vec::Vec<_>>() }
    };
    (@map $before:ident $field:ident $json:literal ($type:ty)) => {
        $crate::__setter! { @set $before $field $json [] (impl ::core::iter::IntoIterator<Item = (impl ::core::convert::Into<::std::string::String>, $type)>) set
            value => value.into_iter().map(|(key, value)| (key.into(), value)).collect::<::std::collections::BTreeMap<::std::string::String, _>>() }
    };
    (@nullable $before:ident $field:ident $json:literal ($type:ty)) => {
        $crate::__setter! { @set $before $field $json [] (impl ::core::convert::Into<::core::option::Option<$type>>) set_nullable value => value.into() }
    };
    (@bytes $before:ident $field:ident $json:literal ($type:ty)) => {
        $crate::__setter! { @set $before $field $json [] ($type) set_nullable value => $crate::apply::Base64(value) }
    };
    (@flat $before:ident $field:ident $json:literal ($type:ty)) => {
        $crate::__setter! { @set $before $field $json [] ($type) set_flat value => value }
    };
    (@part $before:ident $field:ident $json:literal ($type:ty, $edit:ident)) => {
        $crate::__setter! { @value $before $field $json ($type) }
        $crate::__setter! { @edit $before $edit $json ($type) }
    };
    (@parts $before:ident $field:ident $json:literal ($type:ty, $edit:ident)) => {
        $crate::__setter! { @list $before $field $json ($type) }
        $crate::__setter! { @edit $before $edit $json (::std::vec::Vec<$type>) }
    };
    (@part_map $before:ident $field:ident $json:literal ($type:ty, $edit:ident)) => {
        $crate::__setter! { @map $before $field $json ($type) }
        $crate::__setter! { @edit $before $edit $json (::std::collections::BTreeMap<::std::string::String, $type>) }
    };
    (@set $before:ident $field:ident $json:literal [$($generics:tt)*] ($type:ty) $method:ident
        $value:ident => $encoded:expr) => {
        #[doc = concat!("Sets `", $json, "`.")]
        #[must_use]
        pub fn $field<$($generics)*>(mut self, $value: $type) -> Self {
            self.0.$before();
            let value = $encoded;
            self.0.$method($json, &value);
            self
        }
    };
    (@edit $before:ident $edit:ident $json:literal ($type:ty)) => {
        #[doc = concat!("Changes `", $json, "` as far as it is set; it is empty otherwise.")]
        #[must_use]
        pub fn $edit(mut self, edit: impl FnOnce($type) -> $type) -> Self {
            self.0.edit($json, $crate::apply::Fields::$before, edit);
            self
        }
    };
}
