//! What is read of a configuration, and what is refused, with the texts of kube-apiserver.

#![allow(clippy::unwrap_used, reason = "tests")]

use super::*;

/// 16, 24 and 32 bytes in base64.
const KEY_16: &str = "c2VjcmV0IGlzIHNlY3VyZQ==";
const KEY_24: &str = "c2VjcmV0IGlzIHNlY3VyZSwgaXMgaXQ/";
const KEY_32: &str = "YWJjZGVmZ2hpamtsbW5vcHFyc3R1dnd4eXoxMjM0NTY=";

fn parse(document: &str) -> Result<Configuration, String> {
    let head = "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\n";
    Configuration::parse([head, document].concat().as_bytes())
}

fn refused(document: &str) -> String {
    let Err(why) = parse(document) else {
        panic!("it is accepted: {document}");
    };
    why
}

/// The problem of a configuration of one entry with these resources and providers, in YAML of one line.
fn check(resources: &str, providers: &str, problem: &str) {
    let why = refused(&format!(
        "resources: [{{resources: {resources}, providers: {providers}}}]"
    ));
    assert_eq!(why, problem, "{resources} {providers}");
}

/// Resources with their providers, in words.
fn shown(document: &str) -> Vec<String> {
    let chains = parse(document).unwrap().chains().unwrap();
    let shown = chains.iter().map(|(resource, chain)| {
        let providers = chain.providers.iter().map(|provider| match provider {
            Provider::Identity => "identity".to_owned(),
            Provider::Keys(provider) => {
                let keys: String = provider.keys.iter().map(|key| &*key.prefix).collect();
                format!("{}{keys}", provider.prefix)
            }
        });
        let providers: Vec<String> = providers.collect();
        format!("{resource} {}", providers.join(" "))
    });
    shown.collect()
}

#[test]
fn providers_and_keys_are_kept_in_their_order() {
    let document = format!(
        "
resources:
- resources: [secrets, widgets.example.com]
  providers:
  - aesgcm: {{keys: [{{name: b, secret: {KEY_16}}}, {{name: a, secret: {KEY_24}}}]}}
  - aescbc: {{keys: [{{name: c, secret: {KEY_32}}}]}}
  - secretbox: {{keys: [{{name: d, secret: {KEY_32}}}]}}
  - identity: {{}}
- resources: [secrets]
  providers: [identity: {{}}]
- resources: ['*.apps', '*.']
  providers: [identity: {{}}]
- resources: ['*.*']
  providers: [aesgcm: {{keys: [{{name: e, secret: {KEY_16}}}]}}]
"
    );
    let all = "k8s:enc:aesgcm:v1:b:a: k8s:enc:aescbc:v1:c: k8s:enc:secretbox:v1:d: identity";
    assert_eq!(
        shown(&document),
        [
            &format!("secrets {all} identity"),
            &format!("widgets.example.com {all}"),
            "*.apps identity",
            "* identity",
            "*.* k8s:enc:aesgcm:v1:e:",
        ]
    );
}

#[test]
fn json_and_the_early_type_are_read() {
    let json = r#"{"kind":"EncryptionConfig","apiVersion":"v1",
        "resources":[{"resources":["secrets"],"providers":[{"identity":{}}]}]}"#;
    let parsed = Configuration::parse(json.as_bytes()).unwrap();
    assert_eq!(parsed.entries.len(), 1);
}

#[test]
fn what_kube_apiserver_refuses_is_refused_with_its_texts() {
    let identity = "[identity: {}]";
    assert_eq!(
        refused("resources: []"),
        "resources: Required value: at least one resources is required"
    );
    check(
        "[]",
        identity,
        "resources[0].resources: Required value: at least one resources[0].resources is required",
    );
    check(
        "[secrets]",
        "[]",
        "resources[0].providers: Required value: at least one resources[0].providers is required",
    );
    check(
        "[secrets]",
        "[{}]",
        r#"resources[0].providers[0]: Invalid value: "REDACTED": provider does not contain any of the expected providers: KMS, AESGCM, AESCBC, Secretbox, Identity"#,
    );
    check(
        "[secrets]",
        "[identity: null]",
        r#"resources[0].providers[0]: Invalid value: "REDACTED": provider does not contain any of the expected providers: KMS, AESGCM, AESCBC, Secretbox, Identity"#,
    );
    let two = format!("[{{identity: {{}}, aesgcm: {{keys: [{{name: a, secret: {KEY_16}}}]}}}}]");
    check(
        "[secrets]",
        &two,
        r#"resources[0].providers[0]: Invalid value: "REDACTED": more than one provider specified in a single element, should split into different list elements"#,
    );
    check(
        "[secrets]",
        "[kms: {apiVersion: v2, name: k, endpoint: 'unix:///k'}]",
        r#"resources[0].providers[0]: Unsupported value: "kms": supported values: "aescbc", "aesgcm", "identity", "secretbox""#,
    );
}

#[test]
fn names_of_resources_are_checked() {
    for (name, why) in [
        (
            "Secrets",
            "resource name should not contain capital letters",
        ),
        (
            "*",
            "use '*.' to encrypt all the resources from core API group or *.* to encrypt all resources",
        ),
        (
            "apiserveripinfo",
            "resources which do not have REST API/s cannot be encrypted",
        ),
        (
            "events.events.k8s.io",
            "'*.events.k8s.io' objects are stored using the 'events' API group in etcd. Use 'events' instead in the config file",
        ),
        (
            "ingresses.extensions",
            "'extensions' group has been removed and cannot be used for encryption",
        ),
        (
            "pods.*",
            "encrypting the same resource across groups is not supported",
        ),
    ] {
        check(
            &format!("['{name}']"),
            "[identity: {}]",
            &format!("resources[0].resources[0]: Invalid value: {name:?}: {why}"),
        );
    }
}

#[test]
fn resources_of_one_list_may_not_overlap() {
    let duplicate = "the same resource cannot be specified multiple times";
    let overlap = "using overlapping resources such as 'secrets' and '*.' in the same resource list is not allowed as they will be masked";
    let problem =
        |list: &str, why: &str| format!("resources[0].resources: Invalid value: {list}: {why}");
    for (resources, list, why) in [
        ("[a, b, a]", r#"["a","b","a"]"#, &[duplicate][..]),
        ("[a, '*.']", r#"["a","*."]"#, &[overlap]),
        ("['*.*', a.b]", r#"["*.*","a.b"]"#, &[overlap]),
        ("['*.b', a.b]", r#"["*.b","a.b"]"#, &[overlap]),
        ("['*.b', '*.b']", r#"["*.b","*.b"]"#, &[duplicate, overlap]),
    ] {
        let problems: Vec<String> = why.iter().map(|why| problem(list, why)).collect();
        let expected = match &problems[..] {
            [one] => one.clone(),
            several => format!("[{}]", several.join(", ")),
        };
        check(resources, "[identity: {}]", &expected);
    }
    let apart = "resources: [{resources: [a, '*.b', c.d, '*.e'], providers: [identity: {}]}]";
    assert!(parse(apart).is_ok());
}

#[test]
fn a_resource_behind_its_wildcard_is_refused() {
    for (first, second, problem) in [
        ("*.", "a", r#"resource "a" is masked by earlier rule "*.""#),
        (
            "*.b",
            "a.b",
            r#"resource "a.b" is masked by earlier rule "*.b""#,
        ),
        (
            "*.*",
            "a.b",
            r#"resource "a.b" is masked by earlier rule "*.*""#,
        ),
        (
            "*.*",
            "*.",
            r#"resource "*." is masked by earlier rule "*.*""#,
        ),
        (
            "*.b",
            "*.b",
            r#"resource "*.b" is masked by earlier rule "*.b""#,
        ),
    ] {
        let entries = [first, second]
            .map(|name| format!("{{resources: ['{name}'], providers: [identity: {{}}]}}"));
        assert_eq!(
            refused(&format!("resources: [{}]", entries.join(", "))),
            problem
        );
    }
}

#[test]
fn keys_are_checked_and_never_shown() {
    let of_gcm = "resources[0].providers[0].aesgcm.keys";
    let gcm = |keys: &str| format!("[aesgcm: {{keys: {keys}}}]");
    check(
        "[a]",
        &gcm("[]"),
        &format!("{of_gcm}: Required value: at least one keys is required"),
    );
    check(
        "[a]",
        &gcm(&format!("[{{secret: {KEY_16}}}]")),
        &format!("{of_gcm}[0].name: Required value: name is a mandatory field for a key"),
    );
    check(
        "[a]",
        &gcm("[{name: k}]"),
        &format!("{of_gcm}[0].secret: Required value: secret is a mandatory field for a key"),
    );
    check(
        "[a]",
        &gcm("[{name: k, secret: 'not base64'}]"),
        &format!(
            r#"{of_gcm}[0].secret: Invalid value: "REDACTED": secrets must be base64 encoded"#
        ),
    );
    check(
        "[a]",
        &gcm("[{name: k, secret: YWJj}]"),
        &format!(
            r#"{of_gcm}[0].secret: Invalid value: "REDACTED": secret is not of the expected length, got 3, expected one of [16 24 32]"#
        ),
    );
    check(
        "[a]",
        &format!("[secretbox: {{keys: [{{name: k, secret: {KEY_16}}}]}}]"),
        r#"resources[0].providers[0].secretbox.keys[0].secret: Invalid value: "REDACTED": secret is not of the expected length, got 16, expected one of [32]"#,
    );
}

#[test]
fn all_problems_are_reported_at_once() {
    let why = refused(
        "resources: [{resources: [A], providers: [{}]}, {resources: [], providers: [aescbc: {keys: []}]}]",
    );
    let parts = [
        "resources[0].resources[0]: ",
        "resources[0].providers[0]: ",
        "resources[1].resources: ",
        "resources[1].providers[0].aescbc.keys: ",
    ];
    assert!(parts.iter().all(|part| why.contains(part)), "{why}");
}

#[test]
fn another_structure_is_refused_without_its_values() {
    let secret = "c2VjcmV0LXRoYXQtaXMtbm90LXNob3du";
    for (document, problem) in [
        (
            format!("resources: [{{resources: [a], providers: [aesgcm: {{keys: {secret}}}]}}]"),
            "resources[0].providers[0].aesgcm.keys: it must be a list",
        ),
        (
            format!("resources: [{{resources: [a], providers: [aesgcm: {secret}]}}]"),
            "resources[0].providers[0].aesgcm: it must be a map",
        ),
        (
            format!("resources: [{{resources: [a], providers: {secret}}}]"),
            "resources[0].providers: it must be a list",
        ),
        (
            "resources: [{resources: [1], providers: [aescbc: {keys: [{name: 2, secret: true}]}]}]"
                .to_owned(),
            "resources[0].resources[0]: it must be a string, resources[0].providers[0].aescbc.keys[0].name: it must be a string, resources[0].providers[0].aescbc.keys[0].secret: it must be a string",
        ),
        (
            "resources: [{resources: [a], provider: []}]\nmore: 1".to_owned(),
            r#"unknown field "more", unknown field "resources[0].provider""#,
        ),
        (
            "resources: [{resources: [a], providers: [identity: {key: 1}]}]".to_owned(),
            r#"unknown field "resources[0].providers[0].identity.key""#,
        ),
        (
            format!("resources: [}}{secret}"),
            "it is neither YAML nor JSON: line 3",
        ),
        (
            format!("resources:\n - {secret}: [\n"),
            "it is neither YAML nor JSON: line 4",
        ),
    ] {
        let why = refused(&document);
        assert_eq!(why, problem);
        assert!(!why.contains(secret));
    }
}

#[test]
fn documents_of_other_types_are_refused() {
    for text in [
        "a: 1",
        "[]",
        "text",
        "apiVersion: v1\nkind: EncryptionConfiguration",
        "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfig",
    ] {
        let why = Configuration::parse(text.as_bytes()).err().unwrap();
        assert_eq!(
            why,
            "it is of another type; it must have apiVersion: apiserver.config.k8s.io/v1 and kind: EncryptionConfiguration"
        );
    }
}
