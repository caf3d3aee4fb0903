//! Nouns: a sentence of many pronouns, and a type with the name of a participle, do not say what they are about.

use super::modules::{Crate, libraries, workspace};
use super::words::{files, is_rust};

/// Pronouns in place of nouns.
const PRONOUNS: [&str; 5] = ["that of", "those of", "one that", "which", "what"];

/// Most of them in a sentence of a doc comment.
const MOST: usize = 2;

/// Words that end as participles and are nouns or terms of the field.
const NOUNS: [&str; 9] = [
    "Authenticated",
    "Embedded",
    "Feed",
    "Kubernetes",
    "Namespaced",
    "Sealed",
    "Seed",
    "Speed",
    "Token",
];

/// The sentences of the doc comments of a file.
fn sentences(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut paragraph = String::new();
    let mut is_code = false;
    for line in text.lines().chain([""]) {
        let line = line.trim_start();
        let doc = line
            .strip_prefix("///")
            .or_else(|| line.strip_prefix("//!"));
        let doc = doc.map(str::trim);
        is_code ^= doc.is_some_and(|doc| doc.starts_with("```"));
        match doc.filter(|doc| !doc.is_empty() && !is_code && !doc.starts_with("```")) {
            Some(doc) => {
                paragraph += doc;
                paragraph.push(' ');
            }
            None => {
                let text = std::mem::take(&mut paragraph);
                let parts = text.split_inclusive(['.', ';', ':']).map(str::trim);
                let parts = parts.filter(|sentence| !sentence.is_empty());
                found.extend(parts.map(str::to_owned));
            }
        }
    }
    found
}

/// How many of the pronouns a sentence has, as whole words.
fn pronouns(sentence: &str) -> usize {
    let words: Vec<String> = sentence
        .split(|character: char| !character.is_alphanumeric() && character != '_')
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect();
    let text = format!(" {} ", words.join(" "));
    let count = |pronoun: &&str| text.matches(&format!(" {pronoun} ")).count();
    PRONOUNS.iter().map(count).sum()
}

#[test]
fn sentences_have_nouns() {
    let mut lines = Vec::new();
    for (path, text) in files(workspace()) {
        if !is_rust(&path) {
            continue;
        }
        let many = sentences(&text);
        let many = many.into_iter().filter(|one| pronouns(one) > MOST);
        lines.extend(many.map(|one| format!("{}: {one}\n", path.display())));
    }
    assert!(lines.is_empty(), "{}", lines.concat());
}

/// Whether a name is a single word with the ending of a participle.
fn is_participle(name: &str) -> bool {
    let is_word = name
        .chars()
        .filter(|character| character.is_uppercase())
        .count()
        == 1;
    let has_ending = name.ends_with("ed") || name.ends_with("en");
    is_word && has_ending && name.len() > 4 && !NOUNS.contains(&name)
}

#[test]
fn types_are_named_by_nouns() {
    let mut found = Vec::new();
    for library in libraries() {
        let krate = Crate::read(&library.source.join("lib.rs"));
        for module in &krate.modules {
            for item in &module.code {
                let name = match item {
                    syn::Item::Struct(item) => &item.ident,
                    syn::Item::Enum(item) => &item.ident,
                    syn::Item::Trait(item) => &item.ident,
                    syn::Item::Type(item) => &item.ident,
                    _ => continue,
                };
                if is_participle(&name.to_string()) {
                    found.push(format!("{}: {name}\n", module.path()));
                }
            }
        }
    }
    assert!(found.is_empty(), "{}", found.concat());
}

#[test]
fn pronouns_are_counted_by_sentence() {
    let text = "//! A head. What it is of those of which one that is.\n\n/// Which\n/// and which and\n/// what.\nfn f() {}\n/// ```\n/// what which what\n/// ```\n/// Whatever, somewhat, that off: one.";
    let sentences = sentences(text);
    let found: Vec<usize> = sentences.iter().map(|one| pronouns(one)).collect();
    assert_eq!(found, [0, 4, 3, 0, 0]);
    assert!(is_participle("Changed") && is_participle("Written"));
    assert!(!is_participle("ChangedObject") && !is_participle("Feed") && !is_participle("Red"));
}
