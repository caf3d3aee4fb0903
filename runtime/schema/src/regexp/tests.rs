//! Patterns against those of Go, their costs, and their bounds.

use std::time::{Duration, Instant};

use super::*;

/// What Go 1.26 says of patterns and texts, made by `tests/patterns/main.go`.
const GO: &str = include_str!("tests/go.jsonl");

/// What Go says of a pattern.
#[derive(serde::Deserialize)]
#[serde(untagged)]
enum Answer {
    Error(String),
    /// Texts, with the beginnings and ends of their matches.
    Matches(Vec<(String, Vec<usize>)>),
}

fn places(pattern: &Pattern, text: &str) -> Vec<usize> {
    let mut all = Vec::new();
    let all_of_them: Result<(), ()> = pattern.find_each(text, |found| {
        all.extend([found.start, found.end]);
        Ok(())
    });
    all_of_them.unwrap();
    all
}

/// The places of a search that can be interrupted, and whether it says that there is a match.
fn places_in_steps(pattern: &str, text: &str) -> (Vec<usize>, bool) {
    let parsed = parse(pattern).unwrap();
    let mut all = Vec::new();
    let all_of_them: Result<(), ()> = stepped::find_each(&parsed, text, |found| {
        all.extend([found.start, found.end]);
        Ok(())
    });
    all_of_them.unwrap();
    (all, stepped::is_match(&parsed, text).unwrap())
}

#[test]
fn patterns_are_those_of_go() {
    let mut differences = Vec::new();
    let mut known = 0;
    for line in GO.lines() {
        let (text, answer): (String, Answer) = serde_json::from_str(line).unwrap();
        known += 1;
        match (Pattern::new(&text), answer) {
            (Err(error), Answer::Error(expected)) if error.to_string() == expected => {}
            (Ok(pattern), Answer::Matches(all)) => {
                for (value, expected) in all {
                    let found = places(&pattern, &value);
                    let (in_steps, matches_in_steps) = places_in_steps(&text, &value);
                    if in_steps != found || matches_in_steps == found.is_empty() {
                        differences.push(format!(
                            "{text}: {value:?}: {found:?}, in steps {in_steps:?}"
                        ));
                    }
                    let first = pattern.find(&value).map(|range| range.start);
                    let is_match = pattern.is_match(&value);
                    if found != expected
                        || is_match == expected.is_empty()
                        || first != expected.first().copied()
                    {
                        differences.push(format!("{text}: {value:?}: {found:?}, Go {expected:?}"));
                    }
                }
            }
            (Err(error), Answer::Error(expected)) => {
                differences.push(format!("{text}: {error}, Go {expected}"));
            }
            (Err(error), Answer::Matches(_)) => differences.push(format!("{text}: {error}")),
            (Ok(_), Answer::Error(expected)) => differences.push(format!("{text}: Go {expected}")),
        }
    }
    assert!(known >= 3000, "{known}");
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[test]
fn searches_in_steps_find_the_same() {
    let mut compared = 0;
    // Each search builds its automata.
    for line in GO.lines().step_by(23) {
        let (text, answer): (String, Answer) = serde_json::from_str(line).unwrap();
        let Answer::Matches(all) = answer else {
            continue;
        };
        for (value, expected) in all.into_iter().filter(|(value, _)| !value.is_empty()) {
            let (found, is_match) = places_in_steps(&text, &value);
            assert_eq!(found, expected, "{text}: {value:?}");
            assert_eq!(is_match, !expected.is_empty(), "{text}: {value:?}");
            compared += 1;
        }
    }
    assert!(compared > 300, "{compared}");
}

#[test]
fn equal_patterns_share_a_program() {
    let [first, second] = ["^shared[0-9]$"; 2].map(|text| Pattern::new(text).unwrap());
    assert!(Arc::ptr_eq(&first.0, &second.0));
    assert!(!first.is_compiled(), "not yet used");
    assert!(second.is_match("shared1") && !second.is_match("shared"));
    assert!(first.is_compiled());
}

#[test]
fn a_program_without_room_is_not_kept_and_still_right() {
    let program = || Program::compile(&parse("^room[0-9]$").unwrap()).unwrap();
    let unkept = KeptProgram::new(program(), MAX_KEPT_PROGRAMS + 1).unwrap_err();
    let loan = Loan::Own(Box::new(unkept));
    assert!(loan.is_match("room1") && !loan.is_match("room"));
    assert!(KeptProgram::new(program(), usize::MAX).is_err());
    // What was refused took no room.
    assert!(KEPT_PROGRAMS.used() < MAX_KEPT_PROGRAMS);
}

/// Patterns whose programs have accelerations, or parts whose memory is not obvious from the text.
const VARIED: &[&str] = &[
    "",
    "hello",
    "abc|def|ghi|jkl|mno",
    "(foo|bar)+baz",
    r"\w+@\w+\.com",
    "(?i)hello world",
    "[ab]{7}cdefghijklmnopqrstuvwxyz",
    "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
    "^.{1,1000}$",
    "(?s).{1000}",
    "^[^/]{1,253}$",
    "((a?){30}){30}",
    "(a*b?){0,900}",
    r"^[\pL]{0,100}$",
    r"\PL{20}",
    r"[\PL\P{Greek}\p{Cn}\d]{5}",
    r"[^\pL\pN_-]{5}",
    r"(?i)\pL{10}",
    r"(?i)\PL{10}",
    "(?i)[à-ÿ]{20}",
    r"(?i)[\x{80}-\x{10ffff}]{20}",
    r"(?i)[k-s]{500}",
    "[[:^alpha:]]{50}",
    r"(?i)\W{50}",
];

#[test]
fn a_program_takes_no_more_memory_than_its_pattern_costs() {
    let all = GO.lines().map(|line| {
        let (text, _): (String, serde_json::Value) = serde_json::from_str(line).unwrap();
        text
    });
    let (mut compared, mut costs, mut memories) = (0, 0, 0);
    for text in all.chain(VARIED.iter().map(|text| (*text).to_owned())) {
        let Ok(pattern) = Pattern::new(&text) else {
            continue;
        };
        let memory = pattern.program().unwrap().memory();
        let cost = pattern.cost();
        assert!(memory <= cost, "{text}: {memory} of {cost}");
        compared += 1;
        costs += cost;
        memories += memory;
    }
    assert!(compared > 2000, "{compared}");
    // Not far too much either, or patterns would be refused without need.
    assert!(costs < 3 * memories, "{memories} of {costs}");
}

#[test]
fn limits_are_those_of_go() {
    let nested = |depth| format!("{}a{}", "(".repeat(depth), ")".repeat(depth));
    let starred = |depth| format!("{}a{}", "(?:".repeat(depth), "*)".repeat(depth));
    for text in [nested(999), starred(999)] {
        let pattern = Pattern::new(&text).unwrap();
        assert!(pattern.is_match("a"), "{text}");
    }
    for text in [nested(1000), starred(1000), nested(10_000)] {
        let error = Pattern::new(&text).unwrap_err().to_string();
        let expected = format!("error parsing regexp: expression nests too deeply: `{text}`");
        assert!(error == expected, "{}", &error[..60]);
    }
    for text in [
        "(a{500}){3}",
        "((a{10}){10}){11}",
        "(a{1000}){0,}{2}",
        "((a{1000}){0,}b){2}",
    ] {
        assert!(Pattern::new(text).is_err(), "{text}");
    }
    for text in ["(a{1000}){1}", "((a{10}){10}){10}", "((a{1000}){0}b){2}"] {
        assert!(Pattern::new(text).is_ok(), "{text}");
    }
}

#[test]
fn what_would_be_too_large_is_refused_before_it_is_compiled() {
    let many = |text: &str| text.repeat(2_000_000 / text.len());
    let start = Instant::now();
    for text in [
        r"[\pL\pN]{900}".to_owned(),
        r"\pL{200}\pN{900}\pL{400}".to_owned(),
        many(r"\pL"),
        many(r"(?i)[A-\x{10ffff}]"),
        many("("),
        many("(?:"),
        many("a|"),
        many("a*"),
        many("a{9}"),
        many("[a]"),
        many("x"),
        format!("[{}]", many(r"\d")),
        format!("[{}]", many("a-z")),
        format!("(?i)[{}]", many("À-Ö")),
    ] {
        let error = Pattern::new(&text).unwrap_err().to_string();
        let kind = "error parsing regexp: expression too large: `";
        assert!(error.starts_with(kind), "{}", &error[..60]);
    }
    // 28 MB of patterns, without optimizations of the compiler.
    assert!(
        start.elapsed() < Duration::from_secs(20),
        "{:?}",
        start.elapsed()
    );
}

#[test]
fn caches_of_searches_are_bounded_in_sum() {
    // Each has a cache of about 100 KiB.
    let patterns: Vec<_> = (0..600)
        .map(|number| Pattern::new(&format!(r"x{number}[\pL]{{2}}(a|b)*c")).unwrap())
        .collect();
    for pattern in &patterns {
        assert!(!pattern.is_match("xéabababéabababéa"));
        assert!(pattern.is_match(&format!(
            "{}éabac",
            pattern.text().replace(r"[\pL]{2}(a|b)*c", "é")
        )));
    }
    let kept: usize = patterns
        .iter()
        .map(|pattern| pattern.program().unwrap().kept_bytes())
        .sum();
    assert!(kept > 0 && kept <= MAX_KEPT_CACHES, "{kept}");
    drop(patterns);
}
