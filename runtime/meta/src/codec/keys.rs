//! Keys of maps and floats, as Kubernetes' decoders of JSON and YAML convert them.

use serde::de::{DeserializeSeed, Deserializer};

/// Decodes a key of a map.
pub(super) struct Key {
    pub(super) is_yaml: bool,
}

/// A key of a map.
pub(super) struct KeyText {
    pub(super) name: String,
    /// The line number in YAML; `None` for JSON.
    pub(super) line: Option<u64>,
    /// Whether it is a string, which has quotes in Go's texts.
    pub(super) is_string: bool,
}

impl<'de> DeserializeSeed<'de> for Key {
    type Value = KeyText;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<KeyText, D::Error> {
        use serde::Deserialize;
        #[cfg(feature = "yaml")]
        if self.is_yaml {
            return yaml::key(deserializer);
        }
        Ok(KeyText {
            name: String::deserialize(deserializer)?,
            line: None,
            is_string: true,
        })
    }
}

#[cfg(feature = "yaml")]
mod yaml {
    use std::fmt;

    use serde::de::{Deserialize as _, Deserializer, Visitor};

    use super::KeyText;

    /// A key of a map, with its line number.
    ///
    /// # Errors
    /// Those of the parser, and of a key that is a list or a map.
    pub(super) fn key<'de, D: Deserializer<'de>>(deserializer: D) -> Result<KeyText, D::Error> {
        let key = serde_saphyr::Spanned::<YamlKey>::deserialize(deserializer)?;
        let line = Some(key.referenced.line());
        let YamlKey { name, is_string } = key.value;
        Ok(KeyText {
            name,
            line,
            is_string,
        })
    }

    /// A key of YAML, converted to JSON as in Go: a plain `yes` is `true` and a plain `014` is `12`.
    struct YamlKey {
        name: String,
        is_string: bool,
    }

    impl YamlKey {
        fn string(name: String) -> Self {
            Self {
                name,
                is_string: true,
            }
        }
        fn scalar(name: String) -> Self {
            Self {
                name,
                is_string: false,
            }
        }
    }

    impl<'de> serde::Deserialize<'de> for YamlKey {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            deserializer.deserialize_any(YamlKeyVisitor)
        }
    }

    struct YamlKeyVisitor;

    impl<'de> Visitor<'de> for YamlKeyVisitor {
        type Value = YamlKey;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a key that is a string, a number or a boolean")
        }
        fn visit_bool<E>(self, key: bool) -> Result<YamlKey, E> {
            Ok(YamlKey::scalar(key.to_string()))
        }
        fn visit_i64<E>(self, key: i64) -> Result<YamlKey, E> {
            Ok(YamlKey::scalar(key.to_string()))
        }
        fn visit_u64<E>(self, key: u64) -> Result<YamlKey, E> {
            Ok(YamlKey::scalar(key.to_string()))
        }
        fn visit_f64<E>(self, key: f64) -> Result<YamlKey, E> {
            let digits = super::super::Encoder::json(&apiloom_schema::number::shortest(key));
            Ok(YamlKey::scalar(
                String::from_utf8_lossy(&digits).into_owned(),
            ))
        }
        fn visit_str<E>(self, key: &str) -> Result<YamlKey, E> {
            Ok(YamlKey::string(key.to_owned()))
        }
        fn visit_string<E>(self, key: String) -> Result<YamlKey, E> {
            Ok(YamlKey::string(key))
        }
    }
}
