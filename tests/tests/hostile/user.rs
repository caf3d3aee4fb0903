//! The other user: reads, lists, writes and watches continuously, and records the latency of each call.
//!
//! It runs on its own thread and runtime, so that attackers in the same process do not delay it more than another
//! process would.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use apiloom_tests::wardle::flunder;
use apiloom_tests::{Answer, Client, Watch};
use serde_json::json;

/// The namespaces of the other user, which no attack uses.
const NAMESPACES: &str = "/api/v1/namespaces";
const READ: &str = "/apis/wardle.example.com/v1alpha1/namespaces/other-read/flunders";
const WRITTEN: &str = "/apis/wardle.example.com/v1alpha1/namespaces/other-write/flunders";

/// The interval between rounds of calls; a longer round is followed at once by the next.
pub(crate) const PACE: Duration = Duration::from_millis(25);

/// How long a watch is used, as by client-go.
const WATCH: Duration = Duration::from_secs(5 * 60);

/// Timeout of a call: longer than any that is served, on a busy machine too. Who measures the calls says how long they may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// Timeout for a number of rounds, in which some calls may have failed.
const ROUNDS_PATIENCE: Duration = Duration::from_secs(60);

/// Rounds between new connections, as a new user would open them.
const ROUNDS_PER_CONNECTION: u64 = 5;

/// One call of the other user.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    pub(crate) call: &'static str,
    pub(crate) ended: Instant,
    pub(crate) took: Duration,
    pub(crate) error: Option<String>,
}

/// The state of the user's thread.
#[derive(Default)]
struct Done {
    samples: Vec<Sample>,
    /// When each finished round began.
    rounds: Vec<Instant>,
}

/// A working user; dropping it ends the work.
pub(crate) struct User {
    done: Arc<(Mutex<Done>, Condvar)>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl User {
    /// Creates the user's objects on a server and starts its work; with new connections from time to time if
    /// `reconnects`.
    pub(crate) fn start(kubeconfig: &Path, reconnects: bool) -> Self {
        let done = Arc::<(Mutex<Done>, Condvar)>::default();
        let stop = Arc::new(AtomicBool::new(false));
        let worker = Worker {
            kubeconfig: kubeconfig.to_owned(),
            done: Arc::clone(&done),
            stop: Arc::clone(&stop),
            reconnects,
            created: 0,
        };
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            runtime.unwrap().block_on(worker.work());
        });
        Self {
            done,
            stop,
            thread: Some(thread),
        }
    }

    /// Waits for this many finished rounds that began after `since`, and for one that began after this call. Returns
    /// false on timeout, when calls fail repeatedly.
    pub(crate) fn wait_for_rounds(&self, since: Instant, count: usize) -> bool {
        let now = Instant::now();
        let (done, changed) = &*self.done;
        let mut done = done.lock().unwrap();
        let is_over = |done: &Done| {
            let after = |time| done.rounds.iter().filter(|began| **began >= time).count();
            after(since) >= count && after(now) >= 1
        };
        while !is_over(&done) {
            let thread = self.thread.as_ref().unwrap();
            assert!(!thread.is_finished(), "the other user cannot begin");
            if now.elapsed() > ROUNDS_PATIENCE {
                return false;
            }
            done = changed.wait_timeout(done, PACE).unwrap().0;
        }
        true
    }

    /// The calls that ended after `since`.
    pub(crate) fn samples(&self, since: Instant) -> Vec<Sample> {
        let samples = &self.done.0.lock().unwrap().samples;
        let after = samples.iter().filter(|sample| sample.ended >= since);
        after.cloned().collect()
    }
}

impl Drop for User {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // The reason of a panic has been printed; panicking again would abort the test.
            let _ = thread.join();
        }
    }
}

struct Worker {
    kubeconfig: PathBuf,
    done: Arc<(Mutex<Done>, Condvar)>,
    stop: Arc<AtomicBool>,
    reconnects: bool,
    created: u64,
}

impl Worker {
    async fn work(mut self) {
        let client = Client::new(&self.kubeconfig);
        for name in ["other-read", "other-write"] {
            let answer = client
                .post(NAMESPACES, &json!({"metadata": {"name": name}}))
                .await;
            assert_eq!(answer.code, 201, "{}", answer.text());
        }
        for index in 0..5 {
            let answer = client.post(READ, &flunder(&format!("read-{index}"))).await;
            assert_eq!(answer.code, 201, "{}", answer.text());
        }
        while !self.stop.load(Ordering::Relaxed) {
            // After an error the user reconnects, as a controller would.
            self.work_with_a_watch().await;
        }
    }

    /// Works until an error, or until the watch is as old as informers let theirs be: the server ends one after half an hour.
    async fn work_with_a_watch(&mut self) -> Option<()> {
        let client = Client::new(&self.kubeconfig);
        let opened = Instant::now();
        let mut watch = self.noted("open watch", open_watch(&client)).await?;
        let mut ticks = tokio::time::interval(PACE);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        for round in 0_u64.. {
            ticks.tick().await;
            if self.stop.load(Ordering::Relaxed) || opened.elapsed() > WATCH {
                break;
            }
            let began = Instant::now();
            self.round(&client, &mut watch).await?;
            if self.reconnects && round % ROUNDS_PER_CONNECTION == 0 {
                let newcomer = Client::new(&self.kubeconfig);
                self.noted("connect", called(newcomer, "GET", "/livez".into(), None))
                    .await?;
            }
            let (done, changed) = &*self.done;
            done.lock().unwrap().rounds.push(began);
            changed.notify_all();
        }
        Some(())
    }

    async fn round(&mut self, client: &Client, watch: &mut Watch) -> Option<()> {
        let call = |method, path: String, body| called(client.clone(), method, path, body);
        self.noted("get", call("GET", format!("{READ}/read-0"), None))
            .await?;
        self.noted("list", call("GET", READ.into(), None)).await?;
        self.noted("livez", call("GET", "/livez".into(), None))
            .await?;
        self.created += 1;
        let name = format!("written-{}", self.created);
        let began = Instant::now();
        let body = Some(flunder(&name).to_string());
        self.noted("create", call("POST", WRITTEN.into(), body))
            .await?;
        let seen = async {
            loop {
                let line = watch.try_line().await?.ok_or("the watch ended")?;
                if line.contains(&format!("\"name\":\"{name}\"")) {
                    return Ok(());
                }
            }
        };
        self.noted_since(began, "event", seen).await?;
        self.noted("delete", call("DELETE", format!("{WRITTEN}/{name}"), None))
            .await
    }

    async fn noted<T>(
        &self,
        call: &'static str,
        work: impl Future<Output = Result<T, String>>,
    ) -> Option<T> {
        self.noted_since(Instant::now(), call, work).await
    }

    async fn noted_since<T>(
        &self,
        began: Instant,
        call: &'static str,
        work: impl Future<Output = Result<T, String>>,
    ) -> Option<T> {
        let answer = tokio::time::timeout(PATIENCE, work).await;
        let answer = answer.unwrap_or_else(|_| Err(format!("no answer within {PATIENCE:?}")));
        let ended = Instant::now();
        let sample = Sample {
            call,
            ended,
            took: ended - began,
            error: answer.as_ref().err().cloned(),
        };
        self.done.0.lock().unwrap().samples.push(sample);
        answer.ok()
    }
}

/// A call that must succeed.
async fn called(
    client: Client,
    method: &str,
    path: String,
    body: Option<String>,
) -> Result<(), String> {
    let headers: &[_] = &[("content-type", "application/json")];
    let headers = if body.is_some() { headers } else { &[] };
    let body = body.unwrap_or_default();
    let Answer { code, body, .. } = client.try_call(method, &path, headers, body).await?;
    match code {
        200 | 201 => Ok(()),
        _ => Err(format!("{code} {}", String::from_utf8_lossy(&body))),
    }
}

/// A watch of later changes only, without initial events.
async fn open_watch(client: &Client) -> Result<Watch, String> {
    let list = client.try_call("GET", WRITTEN, &[], "").await?;
    let version = apiloom_tests::revision(&list.json());
    let path = format!("{WRITTEN}?watch=1&resourceVersion={version}");
    let watch = client.try_watch_as(&path, "application/json").await;
    watch.map_err(|error| format!("{error:?}"))
}
