//! `apiloom store migrate`: asks a running server to rewrite the objects that it would store differently now.
//!
//! The request is sent by kubectl, which knows from the kubeconfig where the server is and who the user is.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Read as _};
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use clap::Args;
use serde::Deserialize;

use crate::console::{Console, Failure, cause};

/// The endpoint of the server.
const PATH: &str = "/storage/migrate";

/// Interval of progress lines.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(5);

/// Which server and which objects.
#[derive(Debug, Args)]
pub(crate) struct Migrate {
    /// The server's kubeconfig [default: that of kubectl, $KUBECONFIG or ~/.kube/config]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The context in the kubeconfig [default: the current one]
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    /// A resource to migrate, as RESOURCE.GROUP or, in the core group, RESOURCE; several times for several [default: all]
    #[arg(long = "resource", value_name = "RESOURCE.GROUP", value_parser = resource)]
    resources: Vec<String>,
    /// Show how objects are stored, and rewrite none
    #[arg(long)]
    dry_run: bool,
    /// Maximum number of objects that are rewritten in a second [default: no limit; one after the other]
    #[arg(long, value_name = "NUMBER")]
    max_writes_per_second: Option<NonZeroU32>,
    /// The kubectl to send the request with
    #[arg(long, value_name = "PROGRAM", default_value = "kubectl")]
    kubectl: PathBuf,
}

/// Checks that the name of a resource needs no escapes in a URL.
fn resource(text: &str) -> Result<String, String> {
    let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.".contains(c);
    if !text.is_empty() && text.chars().all(is_name) {
        return Ok(text.to_owned());
    }
    Err("it must be of the form RESOURCE.GROUP, such as flunders.wardle.example.com".to_owned())
}

/// A line of the response: a report on a resource, or at the end a Status.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Line {
    Report(Report),
    Status(Status),
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    resource: String,
    storage_version: String,
    objects: u64,
    rewritten: u64,
    failed: u64,
    stored_versions: BTreeMap<String, u64>,
    #[serde(default)]
    errors: Vec<String>,
    complete: bool,
}

#[derive(Debug, Deserialize)]
struct Status {
    status: String,
    #[serde(default)]
    message: String,
}

/// Runs the command.
pub(crate) fn run(flags: &Migrate, console: &mut Console<'_>) -> Result<(), Failure> {
    let mut request = Request::send(flags)?;
    let status = request.read_reports(flags.dry_run, console);
    let errors = request.wait()?;
    match status? {
        Some(Status { status, .. }) if status == "Success" => Ok(()),
        Some(Status { message, .. }) => Err(message.into()),
        None if !errors.is_empty() => Err(errors.into()),
        None => Err(
            "the migration ended before all objects were read, since the server stopped or the connection broke; run it again \
            to continue"
                .to_owned()
                .into(),
        ),
    }
}

/// A running kubectl.
struct Request {
    child: Child,
    stdout: BufReader<ChildStdout>,
    stderr: JoinHandle<String>,
}

impl Request {
    fn send(flags: &Migrate) -> Result<Self, Failure> {
        let program = flags.kubectl.display();
        let mut command = Command::new(&flags.kubectl);
        for (flag, value) in [
            (
                "--kubeconfig",
                flags.kubeconfig.as_deref().map(AsRef::as_ref),
            ),
            ("--context", flags.context.as_deref().map(AsRef::as_ref)),
        ] {
            let value: Option<&std::ffi::OsStr> = value;
            command.args(value.into_iter().flat_map(|value| [flag.as_ref(), value]));
        }
        command
            .args(["create", "--raw", &flags.path(), "-f", "-"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| {
            format!("cannot run {program}: {error}; install kubectl, or name it with --kubectl")
        })?;
        match (child.stdout.take(), child.stderr.take()) {
            (Some(stdout), Some(stderr)) => Ok(Self {
                child,
                stdout: BufReader::new(stdout),
                stderr: std::thread::spawn(move || text(stderr)),
            }),
            _ => Err(format!("cannot read the output of {program}").into()),
        }
    }

    /// Prints the reports; returns the Status at their end, `None` if there is none.
    fn read_reports(
        &mut self,
        dry_run: bool,
        console: &mut Console<'_>,
    ) -> Result<Option<Status>, Failure> {
        let mut shown = Instant::now();
        let mut line = String::new();
        loop {
            line.clear();
            let read = self.stdout.read_line(&mut line);
            if read.map_err(|error| error.to_string())? == 0 {
                return Ok(None);
            }
            match serde_json::from_str(&line) {
                Ok(Line::Report(report)) => {
                    for error in &report.errors {
                        console.note(format_args!("not rewritten: {error}"));
                    }
                    if report.complete {
                        console.say(report.text(dry_run));
                    } else if shown.elapsed() >= PROGRESS_INTERVAL {
                        shown = Instant::now();
                        console.note(format_args!("{} ...", report.text(dry_run)));
                    }
                }
                Ok(Line::Status(status)) => return Ok(Some(status)),
                // The rest of a line whose connection broke, or another server's response.
                Err(_) => return Ok(None),
            }
        }
    }

    /// Waits for kubectl; returns its error messages.
    fn wait(mut self) -> Result<String, Failure> {
        drop(self.stdout);
        self.child.wait().map_err(|error| error.to_string())?;
        Ok(cause(&self.stderr.join().unwrap_or_default()).to_owned())
    }
}

/// Everything that a program writes to its error stream.
fn text(mut stream: ChildStderr) -> String {
    let mut bytes = Vec::new();
    // What was read before an error is kept.
    let _ = stream.read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

impl Migrate {
    /// Path and query of the request.
    fn path(&self) -> String {
        let mut query: Vec<String> = self
            .resources
            .iter()
            .map(|resource| format!("resource={resource}"))
            .collect();
        if self.dry_run {
            query.push("dryRun=All".to_owned());
        }
        query.extend(
            self.max_writes_per_second
                .map(|rate| format!("maxWritesPerSecond={rate}")),
        );
        if query.is_empty() {
            return PATH.to_owned();
        }
        format!("{PATH}?{}", query.join("&"))
    }
}

impl Report {
    /// `flunders.wardle.example.com: 12 of 500 objects rewritten as v1; they were stored as v1 (488), v1beta1 (12)`.
    fn text(&self, dry_run: bool) -> String {
        let done = if dry_run { "to rewrite" } else { "rewritten" };
        let version = |api_version: &str| {
            let name = api_version.rsplit_once('/').map(|(_, version)| version);
            name.unwrap_or(api_version).to_owned()
        };
        let mut text = format!(
            "{}: {} of {} objects {done} as {}",
            self.resource,
            self.rewritten,
            self.objects,
            version(&self.storage_version)
        );
        let stored = self.stored_versions.iter();
        let stored: Vec<String> = stored
            .map(|(of, count)| format!("{} ({count})", version(of)))
            .collect();
        if !stored.is_empty() {
            // Writing to a string cannot fail.
            let _ = write!(text, "; they were stored as {}", stored.join(", "));
        }
        if self.failed > 0 {
            let _ = write!(text, "; {} cannot be rewritten", self.failed);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Flags {
        #[command(flatten)]
        migrate: Migrate,
    }

    fn path(args: &[&str]) -> Result<String, String> {
        let args = std::iter::once("migrate").chain(args.iter().copied());
        let flags = Flags::try_parse_from(args).map_err(|error| error.to_string())?;
        Ok(flags.migrate.path())
    }

    #[test]
    fn flags_become_parameters() {
        let check = |args: &[&str], expected: &str| assert_eq!(path(args).unwrap(), expected);
        check(&[], "/storage/migrate");
        check(
            &[
                "--resource=a.b.c",
                "--resource",
                "namespaces",
                "--dry-run",
                "--max-writes-per-second=20",
            ],
            "/storage/migrate?resource=a.b.c&resource=namespaces&dryRun=All&maxWritesPerSecond=20",
        );
    }

    #[test]
    fn malformed_flags_are_refused() {
        let check = |arg: &str, expected: &str| {
            let error = path(&[arg]).unwrap_err();
            assert!(error.contains(expected), "{error}");
        };
        for name in ["", "a/b", "a&b=c", "Ä"] {
            check(&format!("--resource={name}"), "of the form RESOURCE.GROUP");
        }
        check("--max-writes-per-second=0", "zero");
    }

    #[test]
    fn a_report_is_a_line() {
        let report = r#"{"resource":"a.g","storageVersion":"g/v1","objects":5,"rewritten":3,"failed":1,
            "storedVersions":{"g/v1":2,"g/v1beta1":2},"complete":true}"#;
        let Ok(Line::Report(report)) = serde_json::from_str(report) else {
            panic!("it is no report");
        };
        let text = "a.g: 3 of 5 objects rewritten as v1; they were stored as v1 (2), v1beta1 (2); 1 cannot be rewritten";
        assert_eq!(report.text(false), text);
        let status = serde_json::from_str(r#"{"kind":"Status","status":"Success"}"#);
        assert!(matches!(status, Ok(Line::Status(_))));
    }
}
