//! Keys of maps and floats, as Kubernetes' decoders of JSON and YAML convert them.

use serde::de::{DeserializeSeed, Deserializer};

/// A key of a map, with its line number in YAML.
pub(super) struct Key {
    pub(super) is_yaml: bool,
}

impl<'de> DeserializeSeed<'de> for Key {
    type Value = (String, Option<u64>);

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        use serde::Deserialize;
        #[cfg(feature = "yaml")]
        if self.is_yaml {
            return yaml::key(deserializer);
        }
        Ok((String::deserialize(deserializer)?, None))
    }
}

#[cfg(feature = "yaml")]
mod yaml {
    use std::fmt;

    use serde::de::{Deserialize as _, Deserializer, Visitor};

    /// A key of a map, with its line number.
    ///
    /// # Errors
    /// Those of the parser, and of a key that is a list or a map.
    pub(super) fn key<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<(String, Option<u64>), D::Error> {
        let key = serde_saphyr::Spanned::<YamlKey>::deserialize(deserializer)?;
        let line = key.referenced.line();
        Ok((key.value.0, Some(line)))
    }

    /// A key of YAML, converted to JSON as in Go: a plain `yes` is `true` and a plain `014` is `12`.
    struct YamlKey(String);

    impl<'de> serde::Deserialize<'de> for YamlKey {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            deserializer.deserialize_any(YamlKeyVisitor).map(Self)
        }
    }

    struct YamlKeyVisitor;

    impl<'de> Visitor<'de> for YamlKeyVisitor {
        type Value = String;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a key that is a string, a number or a boolean")
        }
        fn visit_bool<E>(self, key: bool) -> Result<String, E> {
            Ok(key.to_string())
        }
        fn visit_i64<E>(self, key: i64) -> Result<String, E> {
            Ok(key.to_string())
        }
        fn visit_u64<E>(self, key: u64) -> Result<String, E> {
            Ok(key.to_string())
        }
        fn visit_f64<E>(self, key: f64) -> Result<String, E> {
            let digits = super::super::encode::json(&crate::number::shortest(key));
            Ok(String::from_utf8_lossy(&digits).into_owned())
        }
        fn visit_str<E>(self, key: &str) -> Result<String, E> {
            Ok(key.to_owned())
        }
        fn visit_string<E>(self, key: String) -> Result<String, E> {
            Ok(key)
        }
    }
}
