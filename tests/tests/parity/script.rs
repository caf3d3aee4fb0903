//! Scripts of requests. Paragraphs are separated by empty lines:
//! - `let NAME TEXT` puts TEXT in place of `${NAME}` in the lines below;
//! - `throughout NAME` says that the answers differ in NAME wherever they can;
//! - `METHOD PATH` begins a request; lines `HEADER: VALUE` follow (`type` is Content-Type), and lines `> TEXT` with its body;
//! - `keep: NAME POINTER` keeps a string of the answer as `${NAME}`, for each server its own;
//! - `lines: N` reads as many lines of a watch;
//! - `differs: NAME` says which difference the answers show;
//! - `#` begins a comment.

use std::collections::BTreeMap;
use std::fmt;

/// A script that was read.
#[derive(Default)]
pub(crate) struct Script {
    values: BTreeMap<String, String>,
    throughout: Vec<String>,
    pub(crate) requests: Vec<Request>,
}

/// A request, without values in place of names.
#[derive(Default)]
pub(crate) struct Request {
    pub(crate) method: String,
    path: String,
    headers: Vec<(String, String)>,
    body: Vec<String>,
    /// Names of values, and where they are in the answer.
    pub(crate) keep: Vec<(String, String)>,
    /// The number of lines of a watch that are read; 0 for a complete response.
    pub(crate) lines: usize,
    pub(crate) difference: Option<String>,
}

/// A request as it is sent.
pub(crate) struct Sent {
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Script {
    pub(crate) fn parse(text: &str) -> Self {
        let mut script = Self::default();
        for paragraph in text.split("\n\n") {
            let lines = paragraph.lines().filter(|line| !line.starts_with('#'));
            let mut request: Option<Request> = None;
            for line in lines.filter(|line| !line.is_empty()) {
                if let Some(given) = line.strip_prefix("let ") {
                    let (name, value) = given.split_once(' ').unwrap();
                    let value = replaced(value, &script.values);
                    script.values.insert(name.to_owned(), value);
                } else if let Some(name) = line.strip_prefix("throughout ") {
                    script.throughout.push(name.to_owned());
                } else if let Some(request) = &mut request {
                    request.read(line);
                } else {
                    let (method, path) = line.split_once(' ').unwrap();
                    request = Some(Request {
                        method: method.to_owned(),
                        path: path.to_owned(),
                        ..Request::default()
                    });
                }
            }
            script.requests.extend(request);
        }
        assert!(!script.requests.is_empty());
        script
    }

    /// The differences in all answers.
    pub(crate) fn all_through(&self) -> impl Iterator<Item = &str> {
        self.throughout.iter().map(String::as_str)
    }

    /// A request with values in place of names, also those that were kept of answers.
    pub(crate) fn sent(&self, request: &Request, kept: &BTreeMap<String, String>) -> Sent {
        let fill = |text: &str| replaced(&replaced(text, &self.values), kept);
        let mut headers: Vec<(String, String)> = Vec::new();
        for (name, value) in &request.headers {
            headers.push((name.clone(), fill(value)));
        }
        let has = |name: &str| request.headers.iter().any(|(given, _)| given == name);
        if !request.body.is_empty() && request.method != "PATCH" && !has("content-type") {
            headers.push(("content-type".to_owned(), "application/json".to_owned()));
        }
        if !has("user-agent") {
            headers.push(("user-agent".to_owned(), "parity/1".to_owned()));
        }
        Sent {
            path: fill(&request.path),
            headers,
            body: fill(&request.body.join("\n")),
        }
    }
}

impl Request {
    fn read(&mut self, line: &str) {
        if let Some(text) = line.strip_prefix('>') {
            self.body
                .push(text.strip_prefix(' ').unwrap_or(text).to_owned());
            return;
        }
        let (name, value) = line.split_once(": ").unwrap();
        match name {
            "keep" => {
                let (name, pointer) = value.split_once(' ').unwrap();
                self.keep.push((name.to_owned(), pointer.to_owned()));
            }
            "lines" => self.lines = value.parse().unwrap(),
            "differs" => self.difference = Some(value.to_owned()),
            "type" => self
                .headers
                .push(("content-type".to_owned(), value.to_owned())),
            _ => self.headers.push((name.to_owned(), value.to_owned())),
        }
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method, self.path)?;
        for (name, value) in &self.headers {
            write!(f, "\n{name}: {value}")?;
        }
        for line in &self.body {
            write!(f, "\n> {line}")?;
        }
        Ok(())
    }
}

fn replaced(text: &str, values: &BTreeMap<String, String>) -> String {
    let put = |text: String, (name, value): (&String, &String)| {
        text.replace(&format!("${{{name}}}"), value)
    };
    values.iter().fold(text.to_owned(), put)
}
