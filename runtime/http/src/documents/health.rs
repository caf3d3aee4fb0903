//! `/healthz`, `/livez`, `/readyz`, and one path below them for each check, for probes of load balancers and
//! supervisors.
//!
//! They can be read without authentication, so they list only the names of failed checks; the reason is in the log,
//! and in the response of the check's own path.

use std::collections::BTreeSet;
use std::fmt;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, join_all};
use http::header::X_CONTENT_TYPE_OPTIONS;
use http::request::Parts;
use http::{HeaderValue, Response, StatusCode};

use crate::part_name::{HOST, PartName};
use crate::request::query::Query;
use crate::response::{Body, plain};

/// A health endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Probe {
    /// `/healthz`, the general endpoint, deprecated in kube-apiserver.
    Healthz,
    /// `/livez`, for liveness: a failure means that the server should be restarted.
    Livez,
    /// `/readyz`, for readiness: a failure means that the server should receive no requests.
    Readyz,
}

impl Probe {
    const ALL: [Probe; 3] = [Probe::Healthz, Probe::Livez, Probe::Readyz];

    fn as_str(self) -> &'static str {
        match self {
            Self::Healthz => "healthz",
            Self::Livez => "livez",
            Self::Readyz => "readyz",
        }
    }
}

/// Timeout of a check, that of kube-apiserver's storage check; a timeout is a failure.
const PATIENCE: Duration = Duration::from_secs(2);

type Run = dyn Fn() -> BoxFuture<'static, Result<(), String>> + Send + Sync;

/// A named check, which passes or fails with a reason.
#[derive(Clone)]
pub struct Check {
    name: String,
    /// The part that brought it.
    part: PartName,
    group: Option<&'static str>,
    probes: Vec<Probe>,
    /// Whether a failure is reported, and fails the path of the check alone.
    is_advisory: bool,
    run: Arc<Run>,
    /// Whether the last run failed; only changes are logged as warnings.
    is_failing: Arc<AtomicBool>,
}

impl fmt::Debug for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Check")
            .field("name", &self.name)
            .field("probes", &self.probes)
            .finish_non_exhaustive()
    }
}

impl Check {
    /// A synchronous check, part of all three endpoints.
    pub fn new(
        name: impl Into<String>,
        run: impl Fn() -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        Self::from_async(name, move || std::future::ready(run()))
    }

    /// An asynchronous check; it fails after 2 s.
    pub fn from_async<F>(
        name: impl Into<String>,
        run: impl Fn() -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<(), String>> + Send + 'static,
    {
        Self {
            name: name.into(),
            part: HOST,
            group: None,
            probes: Probe::ALL.to_vec(),
            is_advisory: false,
            run: Arc::new(move || run().boxed()),
            is_failing: Arc::default(),
        }
    }

    /// The same check, which a part brought.
    #[must_use]
    pub fn of_part(mut self, part: PartName) -> Self {
        self.part = part;
        self
    }

    /// Restricts the check to these endpoints.
    #[must_use]
    pub fn on(mut self, probes: &[Probe]) -> Self {
        self.probes = probes.to_vec();
        self
    }

    /// Lets a failure fail only the path of the check itself, and show in `?verbose`: what other clients of the server can
    /// cause must not take it out of service.
    #[must_use]
    pub fn advisory(mut self) -> Self {
        self.is_advisory = true;
        self
    }

    /// Lets the check pass only if another one does too.
    fn join(&mut self, other: &Self) {
        let (one, other) = (Arc::clone(&self.run), Arc::clone(&other.run));
        self.run = Arc::new(move || {
            let (one, other) = (one(), other());
            async move {
                one.await?;
                other.await
            }
            .boxed()
        });
    }

    /// Adds the check to a group, which `?exclude=GROUP` excludes as a whole.
    #[must_use]
    pub fn grouped(mut self, group: &'static str) -> Self {
        self.group = Some(group);
        self
    }
}

/// The health endpoints with their checks, in the order of reports.
#[derive(Clone, Debug)]
pub struct Health {
    checks: Vec<Check>,
}

/// The result of one check.
enum CheckResult<'a> {
    Excluded,
    ExcludedWith(&'a str),
    /// One failed that is advisory.
    Noted,
    Finished(Result<(), String>),
}

impl Health {
    /// The endpoints with the checks `ping` and `log`, which always pass, and then these.
    pub fn new(checks: impl IntoIterator<Item = Check>) -> Self {
        let always = ["ping", "log"].map(|name| Check::new(name, || Ok(())));
        Self {
            checks: always.into_iter().chain(checks).collect(),
        }
    }

    /// Adds the checks of the next server of a chain, before the last one. One with the name of a present check becomes a part of
    /// that.
    #[must_use]
    pub(crate) fn with_checks_of(mut self, next: &Self) -> Self {
        for check in &next.checks {
            let same = |own: &&mut Check| own.name == check.name && own.probes == check.probes;
            match self.checks.iter_mut().find(same) {
                Some(own) => own.join(check),
                None => {
                    let at = self.checks.len().saturating_sub(1);
                    self.checks.insert(at, check.clone());
                }
            }
        }
        self
    }

    /// All paths of the endpoints, for the list at `/`.
    pub fn paths(&self) -> impl Iterator<Item = String> + use<'_> {
        self.listed().map(|(path, _)| path)
    }

    /// All paths, with the parts that brought their checks.
    pub(crate) fn listed(&self) -> impl Iterator<Item = (String, PartName)> + use<'_> {
        Probe::ALL.into_iter().flat_map(|probe| {
            let checks = self.checks_of(probe).map(move |check| {
                let path = format!("/{}/{}", probe.as_str(), check.name);
                (path, check.part)
            });
            std::iter::once((format!("/{}", probe.as_str()), HOST)).chain(checks)
        })
    }

    /// Whether a path is that of an endpoint or of one check.
    pub(crate) fn has(&self, path: &str) -> bool {
        self.find(path).is_some()
    }

    /// The endpoint of a path, with the check if it is that of one.
    fn find(&self, path: &str) -> Option<(Probe, Option<&Check>)> {
        let path = path.strip_prefix('/')?;
        let (endpoint, name) = match path.split_once('/') {
            Some((endpoint, name)) => (endpoint, Some(name)),
            None => (path, None),
        };
        let mut probes = Probe::ALL.into_iter();
        let probe = probes.find(|probe| probe.as_str() == endpoint)?;
        let Some(name) = name else {
            return Some((probe, None));
        };
        let check = self.checks_of(probe).find(|check| check.name == name)?;
        Some((probe, Some(check)))
    }

    /// Responds to a health endpoint or the path of one check; `None` for other paths.
    pub async fn respond(&self, request: &Parts) -> Option<Response<Body>> {
        let (probe, check) = self.find(request.uri.path())?;
        let Some(check) = check else {
            return Some(self.all(probe, &Query::of(&request.uri)).await);
        };
        Some(match finish(check).await {
            Ok(()) => text(StatusCode::OK, "ok".to_owned()),
            Err(why) => text(
                StatusCode::INTERNAL_SERVER_ERROR,
                format!("internal server error: {why}\n"),
            ),
        })
    }

    fn checks_of(&self, probe: Probe) -> impl Iterator<Item = &Check> {
        self.checks
            .iter()
            .filter(move |check| check.probes.contains(&probe))
    }

    async fn all(&self, probe: Probe, query: &Query) -> Response<Body> {
        let verbose = query.first("verbose").is_some();
        let excluded: BTreeSet<&str> = query.all("exclude").collect();
        let outcomes = join_all(self.checks_of(probe).map(async |check| {
            let outcome = match check.group {
                _ if excluded.contains(check.name.as_str()) => CheckResult::Excluded,
                Some(group) if excluded.contains(group) => CheckResult::ExcludedWith(group),
                _ => match finish(check).await {
                    Err(_) if check.is_advisory => CheckResult::Noted,
                    finished => CheckResult::Finished(finished),
                },
            };
            (check.name.as_str(), outcome)
        }))
        .await;
        let unmatched = excluded
            .iter()
            .copied()
            .filter(|name| !self.checks_of(probe).any(|check| is_called(check, name)));
        let (report, failed) = report(&outcomes, unmatched);
        let endpoint = probe.as_str();
        match (failed, verbose) {
            (true, _) => text(
                StatusCode::INTERNAL_SERVER_ERROR,
                format!("{report}{endpoint} check failed\n"),
            ),
            (false, true) => text(StatusCode::OK, format!("{report}{endpoint} check passed\n")),
            (false, false) => text(StatusCode::OK, "ok".to_owned()),
        }
    }
}

fn is_called(check: &Check, name: &str) -> bool {
    check.name == name || check.group == Some(name)
}

async fn finish(check: &Check) -> Result<(), String> {
    let outcome = tokio::time::timeout(PATIENCE, (check.run)()).await;
    let outcome =
        outcome.unwrap_or_else(|_| Err(format!("no answer within {} s", PATIENCE.as_secs())));
    let was_failing = check.is_failing.swap(outcome.is_err(), Ordering::Relaxed);
    match &outcome {
        Err(why) if !was_failing => {
            tracing::warn!(check = %check.name, %why, "health check failed");
        }
        Err(why) => tracing::debug!(check = %check.name, %why, "health check still fails"),
        Ok(()) if was_failing => tracing::warn!(check = %check.name, "health check passes again"),
        Ok(()) => {}
    }
    outcome
}

/// A report with one line for each check, and whether one failed.
fn report<'a>(
    outcomes: &[(&str, CheckResult<'_>)],
    unmatched: impl Iterator<Item = &'a str>,
) -> (String, bool) {
    let mut lines = String::new();
    let mut failed = false;
    for (name, outcome) in outcomes {
        // Writing to a string cannot fail.
        let _ = match outcome {
            CheckResult::Excluded => writeln!(lines, "[+]{name} excluded: ok"),
            CheckResult::ExcludedWith(group) => {
                writeln!(lines, "[+]{name} excluded with {group}: ok")
            }
            CheckResult::Noted => writeln!(lines, "[!]{name} failed, not counted: reason withheld"),
            CheckResult::Finished(Ok(())) => writeln!(lines, "[+]{name} ok"),
            CheckResult::Finished(Err(_)) => {
                failed = true;
                writeln!(lines, "[-]{name} failed: reason withheld")
            }
        };
    }
    let unmatched: Vec<String> = unmatched.map(apiloom_meta::field::go_quote).collect();
    if !unmatched.is_empty() {
        let _ = writeln!(
            lines,
            "warn: some health checks cannot be excluded: no matches for {}",
            unmatched.join(",")
        );
    }
    (lines, failed)
}

fn text(code: StatusCode, text: String) -> Response<Body> {
    let mut response = plain(code, text);
    response
        .headers_mut()
        .insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{body, get, header};

    fn health(storage: Result<(), &'static str>, stopping: bool) -> Health {
        Health::new([
            Check::from_async("storage", move || {
                std::future::ready(storage.map_err(str::to_owned))
            })
            .grouped("etcd"),
            Check::new("poststarthook/default-namespace", || Ok(())),
            Check::new("shutdown", move || {
                if stopping {
                    Err("process is shutting down".to_owned())
                } else {
                    Ok(())
                }
            })
            .on(&[Probe::Readyz]),
        ])
    }

    async fn check(health: &Health, uri: &str, code: u16, expected: &str) {
        let response = health.respond(&get(uri, &[])).await.expect(uri);
        assert_eq!(response.status().as_u16(), code, "{uri}");
        assert_eq!(
            header(&response, "content-type"),
            "text/plain; charset=utf-8"
        );
        assert_eq!(header(&response, "x-content-type-options"), "nosniff");
        assert_eq!(body(response), expected, "{uri}");
    }

    #[tokio::test]
    async fn good_health_is_two_letters_or_a_list() {
        let health = health(Ok(()), false);
        check(&health, "/livez", 200, "ok").await;
        let lines = "[+]ping ok\n[+]log ok\n[+]storage ok\n[+]poststarthook/default-namespace ok\n";
        check(
            &health,
            "/healthz?verbose",
            200,
            &format!("{lines}healthz check passed\n"),
        )
        .await;
        check(
            &health,
            "/readyz?verbose=1",
            200,
            &format!("{lines}[+]shutdown ok\nreadyz check passed\n"),
        )
        .await;
    }

    #[tokio::test]
    async fn a_failure_lists_everything_but_its_reason() {
        let failing = health(Err("disk full"), false);
        let lines = "[+]ping ok\n[+]log ok\n[-]storage failed: reason withheld\n[+]poststarthook/default-namespace ok\n";
        check(
            &failing,
            "/livez",
            500,
            &format!("{lines}livez check failed\n"),
        )
        .await;
        check(
            &failing,
            "/livez/storage",
            500,
            "internal server error: disk full\n",
        )
        .await;
        check(&failing, "/livez/ping", 200, "ok").await;
    }

    #[tokio::test]
    async fn checks_are_excluded_by_name_and_by_group() {
        let failing = health(Err("disk full"), false);
        check(&failing, "/livez?exclude=storage", 200, "ok").await;
        let lines = "[+]ping excluded: ok\n[+]log ok\n[+]storage excluded with etcd: ok\n[+]poststarthook/default-namespace ok\n\
            warn: some health checks cannot be excluded: no matches for \"a b\",\"zz\"\nlivez check passed\n";
        check(
            &failing,
            "/livez?verbose&exclude=etcd&exclude=ping&exclude=zz&exclude=a%20b",
            200,
            lines,
        )
        .await;
    }

    #[tokio::test]
    async fn shutdown_ends_readiness_only() {
        let stopping = health(Ok(()), true);
        check(&stopping, "/livez", 200, "ok").await;
        check(
            &stopping,
            "/readyz/shutdown",
            500,
            "internal server error: process is shutting down\n",
        )
        .await;
        assert_eq!(
            stopping
                .respond(&get("/readyz", &[]))
                .await
                .unwrap()
                .status()
                .as_u16(),
            500
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_check_that_hangs_has_failed() {
        let hanging = Health::new([Check::from_async("storage", std::future::pending)]);
        check(
            &hanging,
            "/readyz/storage",
            500,
            "internal server error: no answer within 2 s\n",
        )
        .await;
    }

    #[tokio::test]
    async fn other_paths_are_left_to_others() {
        let health = health(Ok(()), false);
        for path in ["/livez/nope", "/livez/shutdown", "/livez/", "/health", "/"] {
            assert!(health.respond(&get(path, &[])).await.is_none(), "{path}");
        }
        assert_eq!(health.paths().count(), 3 + 4 + 4 + 5);
    }
}
