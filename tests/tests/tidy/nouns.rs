//! Nouns: a sentence of many pronouns, and a type with the name of a participle, do not say what they are about.

use std::collections::BTreeMap;

use super::modules::{Crate, libraries, workspace};
use super::words::{files, is_rust};

/// Pronouns in place of nouns.
const PRONOUNS: [&str; 5] = ["that of", "those of", "one that", "which", "what"];

/// Most of them in a sentence of a doc comment.
const MOST: usize = 2;

/// Words that end as participles and are nouns or terms of the field.
const NOUNS: [&str; 8] = [
    "Authenticated",
    "Embedded",
    "Feed",
    "Kubernetes",
    "Namespaced",
    "Seed",
    "Speed",
    "Token",
];

/// The sentences of the doc comments of a file, each with the line on which its paragraph begins.
fn sentences(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut paragraph = (0, String::new());
    let mut is_code = false;
    for (index, line) in text.lines().chain([""]).enumerate() {
        let line = line.trim_start();
        let doc = line
            .strip_prefix("///")
            .or_else(|| line.strip_prefix("//!"));
        let doc = doc.map(str::trim);
        is_code ^= doc.is_some_and(|doc| doc.starts_with("```"));
        match doc.filter(|doc| !doc.is_empty() && !is_code && !doc.starts_with("```")) {
            Some(doc) => {
                if paragraph.1.is_empty() {
                    paragraph.0 = index + 1;
                }
                paragraph.1 += doc;
                paragraph.1.push(' ');
            }
            None => {
                let (line, text) = std::mem::take(&mut paragraph);
                let parts = text.split_inclusive(['.', ';', ':']).map(str::trim);
                let parts = parts.filter(|sentence| !sentence.is_empty());
                found.extend(parts.map(|sentence| (line, sentence.to_owned())));
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

/// The known ones. A change that mends some removes their lines from the snapshot; none may be added.
#[test]
fn sentences_have_nouns() {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (path, text) in files(workspace()) {
        if !is_rust(&path) {
            continue;
        }
        for (_, sentence) in sentences(&text) {
            if pronouns(&sentence) > MOST {
                found
                    .entry(path.display().to_string())
                    .or_default()
                    .push(sentence);
            }
        }
    }
    let lines = found
        .iter()
        .flat_map(|(file, sentences)| sentences.iter().map(move |one| format!("{file}: {one}\n")));
    insta::assert_snapshot!(lines.collect::<String>());
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

/// As above.
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
                    let file = module.file.strip_prefix(workspace()).expect("a file of it");
                    found.push(format!("{}: {name}\n", file.display()));
                }
            }
        }
    }
    found.sort();
    insta::assert_snapshot!(found.concat());
}

#[test]
fn pronouns_are_counted_by_sentence() {
    let text = "//! A head. What it is of those of which one that is.\n\n/// Which\n/// and which and\n/// what.\nfn f() {}\n/// ```\n/// what which what\n/// ```\n/// Whatever, somewhat, that off: one.";
    let found: Vec<(usize, usize)> = sentences(text)
        .iter()
        .map(|(line, sentence)| (*line, pronouns(sentence)))
        .collect();
    assert_eq!(found, [(1, 0), (1, 4), (3, 3), (10, 0), (10, 0)]);
    assert!(is_participle("Changed") && is_participle("Written"));
    assert!(!is_participle("ChangedObject") && !is_participle("Feed") && !is_participle("Red"));
}
