//! The example of a kind whose get, list and watch are code, with real kubectl.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on panics, and says where"
)]

use std::collections::BTreeMap;

use apiloom_tests::{Kubectl, Server, build, transcript};

/// A quotes-server, where prices rise, and a kubectl.
fn quotes() -> (Server, Kubectl) {
    let server = Server::start_binary(&build("quotes-server"), &[]);
    let kubectl = Kubectl::new("1.36", server.kubeconfig());
    (server, kubectl)
}

/// Runs kubectl; returns its output, or its error.
fn run(kubectl: &Kubectl, line: &str) -> Result<String, String> {
    let words = transcript::words(line);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let output = kubectl.run(&words, "");
    if output.code == 0 {
        Ok(output.stdout)
    } else {
        Err(output.stderr.trim().to_owned())
    }
}

#[test]
fn kubectl_gets_lists_and_explains_what_no_store_has() {
    let (_server, kubectl) = quotes();
    let table = run(&kubectl, "get quotes").unwrap();
    let rows: Vec<Vec<&str>> = table
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(rows[0], ["NAME", "PRICE", "CURRENCY", "AGE"]);
    let columns: Vec<(&str, &str)> = rows[1..].iter().map(|row| (row[0], row[2])).collect();
    let expected = [
        ("acme", "USD"),
        ("globex", "USD"),
        ("initech", "EUR"),
        ("umbrella", "EUR"),
    ];
    assert_eq!(columns, expected);

    let check = |arguments: &str, expected: &[&str]| {
        let listed = run(&kubectl, &format!("get qt -o name {arguments}")).unwrap();
        let names = listed
            .lines()
            .map(|line| line.trim_start_matches("quote.quotes.example.com/"));
        assert_eq!(Vec::from_iter(names), expected, "{arguments}");
    };
    check("", &["acme", "globex", "initech", "umbrella"]);
    check("--chunk-size=1", &["acme", "globex", "initech", "umbrella"]);
    check(
        "-A --chunk-size=2",
        &["acme", "globex", "initech", "umbrella", "nakatomi"],
    );
    check("-l sector=energy", &["globex"]);
    check("-A -l sector=industry", &["acme", "nakatomi"]);
    check("--field-selector currency=EUR", &["initech", "umbrella"]);
    check("--field-selector metadata.name=acme", &["acme"]);
    check("-n tokyo nakatomi", &["nakatomi"]);

    let yaml = run(&kubectl, "get quote acme -o yaml").unwrap();
    for expected in [
        "apiVersion: quotes.example.com/v1\n",
        "currency: USD\n",
        "kind: Quote\n",
        "  name: acme\n  namespace: default\n  resourceVersion: \"",
        "price: ",
    ] {
        assert!(yaml.contains(expected), "{expected}: {yaml}");
    }
    for (resource, expected) in [
        ("quotes", "Quote is the last price of a share."),
        ("quotes.price", "hundredths of the currency"),
    ] {
        let explained = run(&kubectl, &format!("explain {resource}")).unwrap();
        assert!(explained.contains(expected), "{explained}");
    }
}

#[test]
fn kubectl_is_told_what_there_is_not() {
    let (_server, kubectl) = quotes();
    for (line, expected) in [
        (
            "get qt enron",
            "Error from server (NotFound): quotes.quotes.example.com \"enron\" not found",
        ),
        (
            // kubectl looks for the namespace of an object that it does not find.
            "get qt acme -n tokyo",
            "Error from server (NotFound): namespaces \"tokyo\" not found",
        ),
        (
            "get qt --field-selector price=1",
            "Error from server (BadRequest): Unable to find \"quotes.example.com/v1, Resource=quotes\" that match label \
             selector \"\", field selector \"price=1\": field label not supported: price",
        ),
        (
            "delete qt acme",
            "Error from server (MethodNotAllowed): the server does not allow this method on the requested resource",
        ),
    ] {
        assert_eq!(run(&kubectl, line).unwrap_err(), expected, "{line}");
    }
    let resources = run(
        &kubectl,
        "api-resources --api-group=quotes.example.com -o wide",
    );
    let resources = resources.unwrap();
    assert!(resources.contains("get,list,watch"), "{resources}");
    assert!(!resources.contains("create"), "{resources}");
}

#[test]
fn kubectl_watches_prices_rise() {
    let (_server, kubectl) = quotes();
    let text = transcript::run("& get qt -w --no-headers\nuntil 8\n", &kubectl);
    let mut prices: BTreeMap<&str, Vec<i64>> = BTreeMap::new();
    for line in text.lines().filter_map(|line| line.strip_prefix("    ")) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let of_share = prices.entry(words[0]).or_default();
        of_share.push(words[1].parse().unwrap());
    }
    assert_eq!(prices.len(), 4, "{text}");
    let rises = prices.values().filter(|prices| prices.len() > 1);
    assert!(rises.clone().count() > 0, "{text}");
    for prices in rises {
        let is_next = |pair: &[i64]| pair[1] == pair[0] + 1;
        assert!(prices.windows(2).all(is_next), "{text}");
    }

    let selected = transcript::run("& get qt acme -w --no-headers\nuntil 3\n", &kubectl);
    let lines = selected.lines().filter(|line| line.starts_with("    "));
    assert!(lines.clone().count() == 3 && lines.clone().all(|line| line.starts_with("    acme ")));
}
