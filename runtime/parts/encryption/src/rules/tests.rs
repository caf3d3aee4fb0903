//! Which configuration is in use.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::fs;

use super::*;

const SECRET: &str = "YWJjZGVmZ2hpamtsbW5vcHFyc3R1dnd4eXoxMjM0NTY=";

/// A configuration that encrypts resources, in YAML of one line, with a key of this name.
fn document(resources: &str, key: &str) -> String {
    format!(
        "{{apiVersion: apiserver.config.k8s.io/v1, kind: EncryptionConfiguration, resources: [{{resources: {resources}, \
         providers: [aesgcm: {{keys: [{{name: {key}, secret: {SECRET}}}]}}]}}]}}"
    )
}

fn prefix(cipher: &dyn ValueCipher) -> String {
    let sealed = cipher.encrypt("/a", &Bytes::from_static(b"{}")).unwrap();
    String::from_utf8_lossy(&sealed[..sealed.len().min(20)]).into_owned()
}

#[test]
fn a_resource_has_its_own_providers_or_those_of_a_wildcard() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("e.yaml");
    let entry = |resources: &str, key: &str| {
        let whole = document(resources, key);
        let begin = whole.find("[{").unwrap();
        whole[begin + 1..whole.len() - 2].to_owned()
    };
    let entries = [
        entry("[secrets]", "a"),
        entry("['*.apps']", "b"),
        entry("['*.']", "c"),
        entry("['*.*']", "d"),
    ];
    let text = format!(
        "{{apiVersion: apiserver.config.k8s.io/v1, kind: EncryptionConfiguration, resources: [{}]}}",
        entries.join(", ")
    );
    fs::write(&file, text).unwrap();
    let encryption = ConfiguredEncryption::new(&file);
    encryption.read().unwrap();
    for (group, resource, key) in [
        ("", "secrets", "a"),
        ("apps", "deployments", "b"),
        ("", "configmaps", "c"),
        ("example.com", "secrets", "d"),
    ] {
        let cipher = encryption.cipher(&GroupResource::new(group, resource));
        assert_eq!(prefix(&*cipher), format!("k8s:enc:aesgcm:v1:{key}:"));
    }
}

#[test]
fn other_resources_are_plain_and_refuse_encrypted_values() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("e.yaml");
    fs::write(&file, document("[secrets]", "a")).unwrap();
    let encryption = ConfiguredEncryption::new(&file);
    encryption.read().unwrap();
    let cipher = encryption.cipher(&GroupResource::new("", "configmaps"));
    assert!(cipher.is_identity());
    assert_eq!(prefix(&*cipher), "{}");
    let plain = cipher.decrypt("/a", b"{}").unwrap();
    assert!(matches!(plain.bytes, std::borrow::Cow::Borrowed(b"{}")) && !plain.is_stale);
    let refused = cipher.decrypt("/a", b"k8s:enc:aesgcm:v1:a:x").unwrap_err();
    assert_eq!(refused, "identity transformer tried to read encrypted data");
}

#[test]
fn a_changed_file_is_used_and_one_that_is_wrong_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("e.yaml");
    let encryption = ConfiguredEncryption::new(&file);
    let missing = encryption.read().unwrap_err();
    assert!(
        missing.starts_with("--encryption-provider-config "),
        "{missing}"
    );
    fs::write(&file, document("[secrets]", "a")).unwrap();
    encryption.read().unwrap();
    let cipher = encryption.cipher(&GroupResource::new("", "secrets"));
    assert_eq!(encryption.reload(), Ok(false));

    fs::write(&file, document("[secrets]", "b")).unwrap();
    assert_eq!(encryption.reload(), Ok(true));
    assert_eq!(prefix(&*cipher), "k8s:enc:aesgcm:v1:b:");
    for wrong in ["", "resources: [", &document("[Secrets]", "c")] {
        fs::write(&file, wrong).unwrap();
        let why = encryption.reload().unwrap_err();
        assert!(!why.contains(SECRET), "{why}");
        assert_eq!(prefix(&*cipher), "k8s:enc:aesgcm:v1:b:");
    }
    let [failed, used] = &encryption.0.metrics.reloads_by_result();
    assert_eq!((*failed, *used), (3, 1));
    let shown = format!("{encryption:?} {cipher:?}");
    assert!(!shown.contains(SECRET), "{shown}");
}
