//! Formats of keys and certificates that Java and Windows read.

/// Keystores are the further formats in the Secret.
#[apiloom::api]
pub struct Keystores {
    /// A keystore of Java's own format.
    pub jks: Option<JksKeystore>,
    /// A keystore of PKCS#12.
    pub pkcs12: Option<Pkcs12Keystore>,
}

/// JksKeystore is a keystore of Java's own format.
#[apiloom::api]
pub struct JksKeystore {
    /// Whether it is written.
    pub create: bool,
    /// The name of the key in it.
    pub alias: Option<String>,
    /// Where its password is.
    #[api(conflicts(password))]
    pub password_secret_ref: Option<SecretKey>,
    /// Its password.
    pub password: Option<String>,
}

/// Pkcs12Keystore is a keystore of PKCS#12.
#[apiloom::api]
pub struct Pkcs12Keystore {
    /// Whether it is written.
    pub create: bool,
    /// Which algorithms it is encrypted with.
    pub profile: Option<Pkcs12Profile>,
    /// Where its password is.
    #[api(conflicts(password))]
    pub password_secret_ref: Option<SecretKey>,
    /// Its password.
    pub password: Option<String>,
}

/// Pkcs12Profile is a choice of algorithms by their age.
#[apiloom::api]
pub enum Pkcs12Profile {
    #[api(json = "LegacyRC2")]
    LegacyRc2,
    #[api(json = "LegacyDES")]
    LegacyDes,
    Modern2023,
    Modern2026,
}

/// SecretKey names one value of a Secret in the same namespace.
#[apiloom::api]
pub struct SecretKey {
    /// The name of the Secret.
    pub name: String,
    /// The key of the value.
    pub key: Option<String>,
}
