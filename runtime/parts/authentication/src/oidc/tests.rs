//! Flags and files.

use super::*;

fn users(flags: Oidc, config_file: Option<PathBuf>) -> JwtUsers {
    JwtUsers::new(OidcOptions {
        flags,
        config_file,
        anonymous: true,
        disallowed: vec!["https://own.test".to_owned()],
    })
}

#[test]
fn flags_are_an_issuer() {
    let mut flags = Oidc::default();
    assert!(!flags.is_set() && users(flags.clone(), None).problems().is_empty());
    flags.groups_claim = Some("groups".to_owned());
    let problems = users(flags.clone(), None).problems();
    assert_eq!(
        problems,
        [
            "--oidc-issuer-url and --oidc-client-id must be specified together when any --oidc-* flags are set"
        ]
    );
    flags.issuer_url = Some("https://a.test".to_owned());
    flags.client_id = Some("me".to_owned());
    flags.required_claims = vec!["hd=a=b".to_owned()];
    assert!(users(flags.clone(), None).problems().is_empty());
    let issuer = flags.issuer().unwrap().unwrap();
    assert_eq!(issuer.issuer.audiences, ["me"]);
    let mappings = &issuer.claim_mappings;
    assert_eq!(mappings.username.prefix.as_deref(), Some("https://a.test#"));
    assert_eq!(mappings.groups.prefix.as_deref(), Some(""));
    let rule = &issuer.claim_validation_rules[0];
    assert_eq!((&*rule.claim, &*rule.required_value), ("hd", "a=b"));
    let prefix = |claim: &str, prefix: Option<&str>| {
        let flags = Oidc {
            username_claim: claim.to_owned(),
            username_prefix: prefix.map(str::to_owned),
            ..flags.clone()
        };
        let issuer = flags.issuer().unwrap().unwrap();
        issuer.claim_mappings.username.prefix.unwrap()
    };
    assert_eq!(prefix("email", None), "");
    assert_eq!(prefix("email", Some("p:")), "p:");
    assert_eq!(prefix("sub", Some("-")), "");
    assert_eq!(prefix("sub", Some("")), "https://a.test#");
    flags.signing_algs = vec!["HS256".to_owned(), "ES512".to_owned()];
    flags.required_claims = vec!["hd".to_owned()];
    let problems = users(flags, Some(PathBuf::from("f"))).problems();
    assert_eq!(problems.len(), 4, "{problems:?}");
    assert!(problems[0].contains("unsupported signing alg: \"HS256\""));
    assert!(problems[2].contains("is not of the form CLAIM=VALUE"));
    assert!(problems[3].ends_with("are mutually exclusive"));
}

#[test]
fn flags_that_are_no_issuer_are_refused() {
    let flags = Oidc {
        issuer_url: Some("https://own.test".to_owned()),
        client_id: Some("me".to_owned()),
        ..Oidc::default()
    };
    let error = users(flags.clone(), None).read().unwrap_err();
    assert!(
        error.contains("URL must not overlap with disallowed issuers: [https://own.test]"),
        "{error}"
    );
    let folder = tempfile::tempdir().unwrap();
    let empty = folder.path().join("ca.pem");
    std::fs::write(&empty, "\n").unwrap();
    let flags = Oidc {
        ca_file: Some(empty.clone()),
        ..flags
    };
    let error = users(flags, None).read().unwrap_err();
    assert_eq!(
        error,
        format!("--oidc-ca-file {}: it has no certificates", empty.display())
    );
}

#[test]
fn a_file_is_an_authentication_configuration() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.yaml");
    let read = |text: &str| {
        std::fs::write(&file, text).unwrap();
        let users = users(Oidc::default(), Some(file.clone()));
        users.read().map(|()| users)
    };
    let head = "apiVersion: apiserver.config.k8s.io/v1beta1\nkind: AuthenticationConfiguration\n";
    let issuer = "jwt: [{issuer: {url: 'https://a.test', audiences: [x]}, claimMappings: {username: {claim: sub, prefix: ''}}}]\n";
    let known = read(&format!("{head}{issuer}")).unwrap();
    assert_eq!(known.current.load().issuers.len(), 1);
    assert!(known.allows_anonymous("/anything"));
    let some = read(&format!(
        "{head}anonymous: {{enabled: true, conditions: [{{path: /livez}}]}}\n"
    ))
    .unwrap();
    assert!(
        some.allows_anonymous("/livez")
            && !some.allows_anonymous("/livez/")
            && !some.allows_anonymous("/api")
    );
    let none = read(&format!("{head}anonymous: {{enabled: false}}\n")).unwrap();
    assert!(!none.allows_anonymous("/livez"));
    for (text, why) in [
        ("a: [", "it is no YAML"),
        (
            "{}",
            "it should have apiVersion: apiserver.config.k8s.io/v1",
        ),
        (&format!("{head}jwt: []\njwt: []\n"), "already set in map"),
        (
            &format!("{head}jwt: [{{issuer: {{uri: a}}}}]\n"),
            "unknown field `uri`",
        ),
        (
            &format!("{head}jwt: [{{}}]\n"),
            "jwt[0].issuer.url: Required value",
        ),
    ] {
        let error = read(text).unwrap_err();
        assert!(
            error.starts_with(&format!("--authentication-config {}: ", file.display())),
            "{error}"
        );
        assert!(error.contains(why), "{error}");
    }
}
