//! Scripts of kubectl commands and their expected transcripts.
//!
//! A script (`tests/kubectl/NAME.script`) holds commands; the transcript of each kubectl release lies beside it
//! (`NAME.1.36.txt`): every command with its exit code, standard output and standard error. Only what cannot repeat is
//! replaced: times, ages, uids, resource versions and what holds them, addresses, which store it is. `UPDATE=1` writes
//! the transcripts; read the diff.
//!
//! Lines of a script:
//! - `$ ARGS`: run kubectl with these words (quotes as in a shell); the lines behind it that begin with `> ` are its
//!   standard input.
//! - `& ARGS`: start kubectl in the background.
//! - `set NAME ARGS`: run kubectl, and put what it prints in place of `${NAME}` in later lines.
//! - `gone ARGS`: run `kubectl get ARGS` until it finds nothing.
//! - `begun ARGS`: run `kubectl get ARGS` until its status has conditions. Until controllers have written the first one, `kubectl wait`
//!   fails, also with Kubernetes: null is no list to it.
//! - `until N`: wait until the background kubectl has printed N lines, end it, and show them.
//! - `# TEXT`: kept in the transcript.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use regex::Regex;

use crate::{Kubectl, Output};

/// Timeout for a line of the background kubectl.
const PATIENCE: Duration = Duration::from_secs(30);

/// Runs a script against a server and returns its transcript.
pub fn run(script: &str, kubectl: &Kubectl) -> String {
    let masks = Masks::new();
    let mut transcript = String::new();
    let mut background: Option<Background> = None;
    let mut values = BTreeMap::new();
    let mut lines = script.lines().peekable();
    while let Some(line) = lines.next() {
        let mut stdin = String::new();
        while let Some(input) = lines.peek().and_then(|next| next.strip_prefix('>')) {
            stdin.push_str(input.strip_prefix(' ').unwrap_or(input));
            stdin.push('\n');
            lines.next();
        }
        let _ = writeln!(transcript, "{line}");
        for input in stdin.lines() {
            let _ = writeln!(transcript, "> {input}");
        }
        let line = with_values(line, &values);
        let stdin = with_values(&stdin, &values);
        let run = |words: &[String]| {
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            kubectl.run(&words, &stdin)
        };
        match line.split_once(' ').unwrap_or((&line, "")) {
            ("$", args) => show(&mut transcript, &masks, &run(&words(args))),
            ("set", args) => {
                let (name, args) = args.split_once(' ').expect("a name and a command");
                let output = run(&words(args));
                assert_eq!(output.code, 0, "{line}: {}", output.stderr);
                values.insert(format!("${{{name}}}"), output.stdout);
            }
            ("gone", args) => {
                let get = words(&format!("get {args}"));
                wait_until("still finds something", &get, || run(&get).code != 0);
            }
            ("begun", args) => {
                let get = words(&format!(
                    "get {args} -o jsonpath={{.status.conditions[*].type}}"
                ));
                wait_until("finds no conditions", &get, || !run(&get).stdout.is_empty());
            }
            ("&", args) => background = Some(Background::start(kubectl, &words(args))),
            ("until", count) => {
                let started = background.take().expect("a kubectl runs in the background");
                let stdout = started.until(count.parse().unwrap());
                show(
                    &mut transcript,
                    &masks,
                    &Output {
                        code: 0,
                        stdout,
                        stderr: String::new(),
                    },
                );
            }
            ("#" | "", _) => {}
            _ => panic!("not a line of a script: {line}"),
        }
    }
    transcript
}

fn with_values(text: &str, values: &BTreeMap<String, String>) -> String {
    let put = |text: String, (name, value): (&String, &String)| text.replace(name, value);
    values.iter().fold(text.to_owned(), put)
}

/// Waits until a command has a result; `otherwise` says what it does until then.
fn wait_until(otherwise: &str, command: &[String], has_result: impl Fn() -> bool) {
    let started = Instant::now();
    while !has_result() {
        assert!(started.elapsed() < PATIENCE, "{command:?} {otherwise}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Compares a transcript with the committed one, or writes it when `UPDATE` is set.
pub fn check(path: &Path, transcript: &str) {
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(path, transcript).unwrap();
        return;
    }
    let expected = std::fs::read_to_string(path).unwrap_or_default();
    if expected != transcript {
        let at = expected
            .lines()
            .zip(transcript.lines())
            .position(|(a, b)| a != b);
        let at = at.unwrap_or_else(|| expected.lines().count().min(transcript.lines().count()));
        let around = |text: &str| {
            text.lines()
                .skip(at.saturating_sub(6))
                .take(24)
                .collect::<Vec<_>>()
                .join("\n")
        };
        panic!(
            "{} differs at line {}:\n--- expected\n{}\n--- got\n{}\n(UPDATE=1 writes it)",
            path.display(),
            at + 1,
            around(&expected),
            around(transcript)
        );
    }
}

fn show(transcript: &mut String, masks: &Masks, output: &Output) {
    for line in masks.apply(&output.stdout).lines() {
        let _ = writeln!(transcript, "{}", format!("    {line}").trim_end());
    }
    for line in masks.apply(&output.stderr).lines() {
        let _ = writeln!(transcript, "{}", format!("  ! {line}").trim_end());
    }
    let _ = writeln!(transcript, "= {}\n", output.code);
}

/// Splits at blanks outside quotes, as a shell does.
pub fn words(text: &str) -> Vec<String> {
    let (mut words, mut word, mut quote, mut open) = (Vec::new(), String::new(), None, false);
    for c in text.chars() {
        match quote {
            Some(q) if c == q => quote = None,
            Some(_) => word.push(c),
            None if c == '\'' || c == '"' => (quote, open) = (Some(c), true),
            None if c == ' ' => {
                if open || !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
                open = false;
            }
            None => word.push(c),
        }
    }
    if open || !word.is_empty() {
        words.push(word);
    }
    words
}

/// A kubectl in the background; a thread passes its lines on, so that waiting for one has a timeout.
struct Background {
    process: Child,
    lines: Receiver<String>,
    /// Its output until it was known to be watching.
    first: String,
}

impl Background {
    fn start(kubectl: &Kubectl, words: &[String]) -> Self {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let mut process = kubectl
            .command(&words)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdout = BufReader::new(process.stdout.take().unwrap());
        let (sender, lines) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            stdout
                .lines()
                .map_while(Result::ok)
                .try_for_each(|line| sender.send(line))
        });
        // A watch that has printed its first line misses no later change.
        let first = lines
            .recv_timeout(PATIENCE)
            .expect("the background kubectl prints something at once");
        Self {
            process,
            lines,
            first,
        }
    }

    fn until(mut self, count: usize) -> String {
        let mut text = format!("{}\n", self.first);
        for _ in 1..count {
            let Ok(line) = self.lines.recv_timeout(PATIENCE) else {
                break;
            };
            text.push_str(&line);
            text.push('\n');
        }
        // It never ends by itself; if it has ended already, its lines show that.
        let _ = self.process.kill();
        let _ = self.process.wait();
        text
    }
}

struct Masks(Vec<(Regex, &'static str)>);

#[test]
fn the_watch_of_a_wait_that_has_ended_is_not_shown() {
    let late = "E1123 18:59:01.120000   71410 reflector.go:227] \"Failed to watch\" err=\"context deadline exceeded\"\n";
    let cut_off = "I1130 18:19:01.120000   71410 reflector.go:664] \"Warning: watch ended with error\" err=\"an error on the server (\\\"unable to decode an event from the watch stream: context canceled\\\") has prevented the request from succeeding\"\n";
    let said = "error: timed out\n";
    let masked = Masks::new().apply(&format!("{late}{cut_off}{said}"));
    assert_eq!(masked, said);
}

impl Masks {
    fn new() -> Self {
        let mask = |pattern: &str, with| (Regex::new(pattern).unwrap(), with);
        Self(vec![
            mask(
                r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
                "UID",
            ),
            mask(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "TIME"),
            mask(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+ [+-]\d{4}", "TIME"),
            mask(
                r"[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d [+-]\d{4}",
                "TIME",
            ),
            mask(
                r#"(resourceVersion\\?"?: ?\\?"?|Resource Version: +)\d+"#,
                "${1}RV",
            ),
            mask(r#""continue":"[^"]+""#, r#""continue":"TOKEN""#),
            // The kind of store.
            mask(
                r"\[\+\](storage ok|etcd ok\n\[\+\]etcd-readiness ok)",
                "[+]STORE ok",
            ),
            // Whether a wait that ends has begun its watch by then, or is reading an event of it.
            mask(
                r"(?m)^[EIW]\d{4} [^\n]*reflector\.go[^\n]*context (deadline exceeded|canceled)[^\n]*\n",
                "",
            ),
            // What kubectl logs: the time and its process id.
            mask(
                r"(?m)^([EIW])\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ ",
                "${1}TIME PID ",
            ),
            mask(r"https://127\.0\.0\.1:\d+", "https://SERVER"),
            mask(r"127\.0\.0\.1:\d+", "SERVER"),
            mask(r"(?m)( {2,})\d+(?:ms|s|m)( {2,}|$)", "${1}AGE$2"),
            mask(r"/tmp/[A-Za-z0-9._/-]+", "/tmp/FILE"),
        ])
    }

    fn apply(&self, text: &str) -> String {
        self.0
            .iter()
            .fold(text.to_owned(), |text, (pattern, with)| {
                pattern.replace_all(&text, *with).into_owned()
            })
    }
}
