//! The form of source files, the words of their comments, and matches that should be an `if`.

use std::fs;
use std::path::{Path, PathBuf};

use super::modules::workspace;

/// Longer files say in their first lines why they are not split, with the words [`REASON`].
const MAX_LINES: usize = 800;
const REASON: &str = "One file, because";

/// Pronouns that hide what a sentence is about: name the caller, the client or the value instead.
const BANNED: [&str; 5] = ["whoever", "whatever", "nobody", "somebody", "anybody"];

/// The first words of doc comments that ask in place of naming the item: `/// Which.`, `/// How many.`.
const QUESTIONS: [&str; 8] = [
    "which", "what", "why", "where", "who", "whose", "how", "when",
];

/// Folders whose doc comments are read in the code. Those of kinds elsewhere are descriptions in published documents.
const LIBRARIES: [&str; 4] = ["runtime", "macros", "codegen-cli", "serve"];

/// Doc comments that are descriptions in published OpenAPI documents and CRDs.
const PUBLISHED: [&str; 1] = ["/// Greeting says hello to somebody."];

/// Folders without source files of the workspace, and those with files that are generated or wrong on purpose.
const SKIPPED: [&str; 5] = [
    "target",
    "generated",
    "fixtures",
    "snapshots",
    "node_modules",
];

/// The source files and documents below a folder of the workspace, by their paths in it.
pub(super) fn files(root: &Path) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder that can be read") {
            let path = entry.expect("an entry").path();
            let name = path
                .file_name()
                .and_then(|name| name.to_str())
                .unwrap_or_default();
            if path.is_dir() {
                if !name.starts_with('.') && !SKIPPED.contains(&name) {
                    folders.push(path);
                }
            } else if name.ends_with(".rs") || name.ends_with(".md") {
                let text = fs::read_to_string(&path).expect("a text file");
                let place = path.strip_prefix(root).expect("a path below the root");
                found.push((place.to_owned(), text));
            }
        }
    }
    found.sort();
    found
}

pub(super) fn is_rust(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "rs")
}

/// The problems of a file's form: its first line and its length.
fn problems_of_form(text: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if !text.starts_with("//!") {
        problems.push("1: the file does not begin with a `//!` line".to_owned());
    }
    let lines = text.lines().count();
    let head: Vec<&str> = text
        .lines()
        .take_while(|line| line.starts_with("//!"))
        .collect();
    if lines > MAX_LINES && !head.join(" ").contains(REASON) {
        problems.push(format!(
            "1: {lines} lines; split the file, or begin a sentence of its head with `{REASON}`"
        ));
    }
    problems
}

/// The comment in a line of Rust, if it has one. Two slashes are no comment within a string, which is open after an odd
/// number of quotes that are not escaped, or directly behind another character, as in a URL.
pub(super) fn comment(line: &str) -> Option<&str> {
    let mut starts = line.match_indices("//").map(|(start, _)| start);
    let start = starts.find(|&start| {
        let before = &line[..start];
        let quotes = before.replace("\\\"", "").matches('"').count();
        (before.is_empty() || before.ends_with(' ')) && quotes.is_multiple_of(2)
    })?;
    Some(&line[start..])
}

/// The banned words in the comments of a Rust file, or in the whole text of a document.
fn problems_of_words(text: &str, is_rust: bool) -> Vec<String> {
    let mut problems = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let checked = if is_rust { comment(line) } else { Some(line) };
        let Some(checked) = checked.filter(|text| !PUBLISHED.contains(text)) else {
            continue;
        };
        let words = checked.split(|character: char| !character.is_alphabetic());
        for word in words.map(str::to_lowercase) {
            if BANNED.contains(&word.as_str()) {
                problems.push(format!("{}: `{word}` in a comment", index + 1));
            }
        }
    }
    problems
}

/// Doc comments that do not say what their item is: a question of one or two words, or a reference to the module.
fn problems_of_questions(text: &str) -> Vec<String> {
    let is_doc = |line: Option<&&str>| line.is_some_and(|line| line.starts_with("///"));
    let lines: Vec<&str> = text.lines().map(str::trim_start).collect();
    let mut problems = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let before = index.checked_sub(1).and_then(|before| lines.get(before));
        let Some(doc) = line.strip_prefix("/// ") else {
            continue;
        };
        if is_doc(before) || is_doc(lines.get(index + 1)) {
            continue;
        }
        let words: Vec<&str> = doc.trim_end_matches('.').split_whitespace().collect();
        let is_reference = doc == "See the module.";
        if is_reference || words.len() <= 2 && QUESTIONS.contains(&words[0].to_lowercase().as_str())
        {
            problems.push(format!("{}: `{doc}` does not name the item", index + 1));
        }
    }
    problems
}

/// References to a list of issues, which readers of the sources do not have.
fn problems_of_references(text: &str, is_rust: bool) -> Vec<String> {
    let mut problems = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let checked = if is_rust { comment(line) } else { Some(line) };
        let checked = checked.unwrap_or_default().to_lowercase();
        let has_number = |rest: &str| rest.starts_with(|digit: char| digit.is_ascii_digit());
        if checked.split("issue ").skip(1).any(has_number) {
            problems.push(format!("{}: the number of an issue", index + 1));
        }
    }
    problems
}

/// Matches of a boolean. Their arms are the only lines of Rust that begin so.
fn problems_of_matches(text: &str) -> Vec<String> {
    let is_arm = |line: &str| line.starts_with("true =>") || line.starts_with("false =>");
    let lines = text.lines().enumerate();
    lines
        .filter(|(_, line)| is_arm(line.trim_start()))
        .map(|(index, _)| format!("{}: a match of a boolean; use `if`", index + 1))
        .collect()
}

#[test]
fn files_have_a_head_and_plain_words() {
    let files = files(workspace());
    assert!(files.len() > 500, "only {} files were found", files.len());
    let mut problems = Vec::new();
    for (path, text) in &files {
        let mut found = Vec::new();
        if is_rust(path) {
            found.extend(problems_of_form(text));
            found.extend(problems_of_matches(text));
        }
        if is_rust(path) && LIBRARIES.iter().any(|folder| path.starts_with(folder)) {
            found.extend(problems_of_questions(text));
        }
        found.extend(problems_of_words(text, is_rust(path)));
        found.extend(problems_of_references(text, is_rust(path)));
        problems.extend(
            found
                .iter()
                .map(|problem| format!("{}:{problem}", path.display())),
        );
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn a_missing_head_is_found() {
    assert_eq!(problems_of_form("//! A module.\n").len(), 0);
    assert_eq!(problems_of_form("use std::fs;\n").len(), 1);
    assert_eq!(problems_of_form("// A module.\n").len(), 1);
}

#[test]
fn a_long_file_without_a_reason_is_found() {
    let body = "fn f() {}\n".repeat(MAX_LINES);
    assert_eq!(problems_of_form(&format!("//! A module.\n{body}")).len(), 1);
    let with_reason =
        format!("//! A module.\n//! One file, because its parts are one table.\n{body}");
    assert_eq!(problems_of_form(&with_reason).len(), 0);
}

#[test]
fn a_banned_word_in_a_comment_is_found() {
    let found = |text: &str| problems_of_words(text, true);
    assert_eq!(found("/// Whoever asks."), ["1: `whoever` in a comment"]);
    assert_eq!(
        found("fn f() {\n    g(); // For anybody's use.\n}"),
        ["2: `anybody` in a comment"]
    );
    assert_eq!(
        found("let a = \"x\"; // Nobody reads it."),
        ["1: `nobody` in a comment"]
    );
    // Names and texts of the code are no comments.
    assert_eq!(found("let nobody = \"http://nobody // nobody\";"), [""; 0]);
    assert_eq!(found("/// Greeting says hello to somebody."), [""; 0]);
    assert_eq!(
        problems_of_words("Whatever it is.", false),
        ["1: `whatever` in a comment"]
    );
}

#[test]
fn a_doc_comment_that_only_asks_is_found() {
    let found = problems_of_questions;
    assert_eq!(
        found("struct File {\n    /// Which.\n    path: PathBuf,\n}"),
        ["2: `Which.` does not name the item"]
    );
    assert_eq!(
        found("/// How many.\nfn f() {}"),
        ["1: `How many.` does not name the item"]
    );
    assert_eq!(
        found("/// See the module.\nstruct S;"),
        ["1: `See the module.` does not name the item"]
    );
    // More words, other words, and the end of a longer comment.
    assert_eq!(found("/// When the request ends.\nfn f() {}"), [""; 0]);
    assert_eq!(found("/// The path.\nfn f() {}"), [""; 0]);
    assert_eq!(
        found("/// The time, which says\n/// when.\nfn f() {}"),
        [""; 0]
    );
}

#[test]
fn the_number_of_an_issue_is_found() {
    let issue = "issue ";
    assert_eq!(
        problems_of_references(&format!("// See {issue}9, point 2."), true),
        ["1: the number of an issue"]
    );
    assert_eq!(
        problems_of_references(&format!("Mends {issue}12."), false),
        ["1: the number of an issue"]
    );
    assert_eq!(problems_of_references("// Issues of a CRD.", true), [""; 0]);
}

#[test]
fn a_match_of_a_boolean_is_found() {
    let arms = "match flag {\n    true => a(),\n    false => b(),\n}";
    assert_eq!(
        problems_of_matches(&arms.replace("false =>", "_ =>")),
        ["2: a match of a boolean; use `if`"]
    );
    assert_eq!(problems_of_matches(arms).len(), 2);
    assert_eq!(
        problems_of_matches("match (a, b) {\n    (true, _) => c(),\n}"),
        [""; 0]
    );
}
