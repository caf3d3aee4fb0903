//! The setup of attacks: a server that is attacked, a second one that is not, and the same other user working on both.
//!
//! The other user's latencies are compared with two references: the same server before the attack, and the second
//! server during it. The first has the machine's usual load, the second also that of the attackers. So a noisy machine
//! changes all values, and the attack only one.
//!
//! These do not show one effect: a server with work to do, as the attacked one has, gets only its share of cores that
//! other processes use too. [`Load`] measures that share, and the limit for the other user grows accordingly.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use apiloom_tests::Server;
use tokio::runtime::Runtime;

use crate::process::{self, MIB};
use crate::user::{PACE, Sample, User};
use crate::wire::Target;

/// Attacks are measured one at a time, except for one that waits nearly all of its time.
static TURN: Mutex<()> = Mutex::new(());

/// Waits until no other attack is measured.
pub(crate) fn turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Allowed growth of the other user's p99.
const FACTOR: u32 = 4;

/// A p99 below this is good, even if an idle server's is far lower. A debug build on two cores that it shares with the
/// attackers responds within some milliseconds or after some turns of the scheduler; the defects that this suite looks
/// for delay others by seconds.
const ALWAYS_GOOD: Duration = Duration::from_millis(100);

/// No call of the other user may take this long in any round, unless calls to the second server do as well.
const STALL: Duration = Duration::from_secs(5);

/// Maximum repetitions of an attack if the other user's p99 was too high, since the machine may have been the cause.
const ROUNDS: usize = 3;

/// Rounds of calls of the other user that are measured before the attack, and at least during it.
const CALLS: usize = 20;

/// Timeout of an attack, if no other process needs a processor; all of them take less on a server that withstands them.
const PATIENCE: Duration = Duration::from_secs(60);

/// How often it is asked whether that has passed.
const PAUSE: Duration = Duration::from_secs(1);

/// A request that takes no longer than this, if no other process needs a processor, has ended before any deadline: the
/// earliest is that of writes, 34 s.
const BEFORE_DEADLINE: Duration = Duration::from_secs(30);

/// The two servers and their users.
pub(crate) struct Arena {
    // Dropped in this order: users end before their servers.
    users: [User; 2],
    server: Server,
    control: Server,
    runtime: Runtime,
    /// The failures. All attacks of a test run, so that one failure does not hide others.
    failures: RefCell<Vec<String>>,
    _turn: Option<MutexGuard<'static, ()>>,
}

impl Arena {
    /// Starts both servers with further arguments, over memory unless these name a store.
    pub(crate) fn start(args: &[&str]) -> Self {
        Self::with(args, Some(turn()), true, Server::start)
    }

    /// The same with this limit of open files for each server, and another user who does not reconnect. The attack must leave the
    /// processor alone, since others are measured at the same time.
    pub(crate) fn with_files(files: u32) -> Self {
        let start = |args: &[&str]| Server::start_with_files(files, args);
        Self::with(&[], None, false, start)
    }

    fn with(
        args: &[&str],
        turn: Option<MutexGuard<'static, ()>>,
        reconnects: bool,
        start: impl Fn(&[&str]) -> Server,
    ) -> Self {
        let names_store = args.iter().any(|arg| arg.starts_with("--storage-backend"));
        let memory: &[&str] = if names_store {
            &[]
        } else {
            &["--storage-backend=memory"]
        };
        let args = [memory, args].concat();
        let (server, control) = (start(&args), start(&args));
        let users = [&server, &control].map(|server| User::start(server.kubeconfig(), reconnects));
        Self {
            users,
            server,
            control,
            runtime: Runtime::new().unwrap(),
            failures: RefCell::default(),
            _turn: turn,
        }
    }

    /// The attacked server.
    pub(crate) fn server(&self) -> &Server {
        &self.server
    }

    /// The attacked server, as attackers use it.
    pub(crate) fn target(&self) -> Target {
        Target::of(&self.server)
    }

    /// Runs a preparation that is not part of an attack.
    pub(crate) fn prepare<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.block_on(work)
    }

    /// Runs an attack, and records a failure if the other user is not served or memory grows by more than `memory_mib`.
    ///
    /// The result of the attack, usually connections, is kept until the other user has been measured.
    pub(crate) fn withstands<T>(
        &self,
        attack: &str,
        memory_mib: u64,
        run: impl AsyncFn(Target) -> T,
    ) {
        let Some(idle) = self.measure_idle() else {
            return self.fail(
                attack,
                "not tried: the server is busy with what came before",
            );
        };
        for round in 1.. {
            let measured = self.attack(&run);
            println!("{attack}: {}", measured.describe(&idle));
            let judged = measured.judge(&idle, memory_mib, round == ROUNDS);
            match judged {
                Judged::Withstood => return,
                Judged::Again => {}
                Judged::Failed(why) => return self.fail(attack, &why),
            }
        }
    }

    /// Records a failure.
    pub(crate) fn fail(&self, attack: &str, why: &str) {
        println!("{attack}: FAILED: {why}");
        self.failures.borrow_mut().push(format!("{attack}: {why}"));
    }

    /// The other user's calls before an attack; `None` if they fail.
    fn measure_idle(&self) -> Option<Calls> {
        let since = Instant::now();
        let goes_on = self.users[0].wait_for_rounds(since, CALLS);
        goes_on.then(|| Calls::of(&self.users[0].samples(since)))
    }

    /// The load from now on.
    pub(crate) fn load(&self) -> Load {
        Load::now(self.server.pid(), &[self.control.pid()])
    }

    fn attack<T>(&self, run: &impl AsyncFn(Target) -> T) -> Measured {
        let pid = self.server.pid();
        let (before, cpu) = (process::resident(pid), process::cpu(pid));
        process::reset_peak(pid);
        let load = self.load();
        let since = Instant::now();
        let held = self
            .runtime
            .block_on(within_patience(run(self.target()), &load));
        let took = since.elapsed();
        let [goes_on, _] = self
            .users
            .each_ref()
            .map(|user| user.wait_for_rounds(since, CALLS));
        let [attacked, control] = self
            .users
            .each_ref()
            .map(|user| Calls::of(&user.samples(since)));
        let measured = Measured {
            before,
            peak: process::peak(pid),
            cpu: process::cpu(pid) - cpu,
            threads: process::threads(pid),
            slowdown: load.slowdown_since(),
            took,
            is_over: held.is_some(),
            goes_on,
            attacked,
            control,
        };
        // Connections are closed by tasks of their own.
        self.runtime.block_on(async { drop(held) });
        measured
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        let failures = self.failures.get_mut();
        if !std::thread::panicking() {
            assert!(failures.is_empty(), "{}", failures.join("\n"));
        }
    }
}

/// Runs an attack until its timeout; `None` if it is not over then.
async fn within_patience<T>(attack: impl Future<Output = T>, load: &Load) -> Option<T> {
    let mut attack = pin!(attack);
    loop {
        if let Ok(held) = tokio::time::timeout(PAUSE, attack.as_mut()).await {
            return Some(held);
        }
        if load.time_alone() > PATIENCE {
            return None;
        }
    }
}

/// The result of a round of an attack.
enum Judged {
    Withstood,
    /// The other user waited too long, perhaps because of the machine.
    Again,
    Failed(String),
}

/// The measurements of one attack.
struct Measured {
    before: u64,
    peak: u64,
    cpu: Duration,
    threads: u64,
    slowdown: f64,
    took: Duration,
    /// Whether the attack ended in time.
    is_over: bool,
    /// Whether the other user's calls continued after the attack.
    goes_on: bool,
    attacked: Calls,
    control: Calls,
}

impl Measured {
    fn judge(&self, idle: &Calls, memory_mib: u64, is_last: bool) -> Judged {
        let grown = self.peak.saturating_sub(self.before) / MIB;
        let Calls {
            p99, worst, error, ..
        } = &self.attacked;
        let limit = self.limit(idle);
        let why = if let Some(error) = error {
            format!("the other user: {error}")
        } else if !self.goes_on {
            "the other user is not served any more".to_owned()
        } else if !self.is_over {
            format!(
                "not answered within {PATIENCE:?}, slowed down {:.1} times",
                self.slowdown
            )
        } else if grown >= memory_mib {
            format!("memory grew by {grown} MiB, {memory_mib} are allowed")
        } else if *worst
            > STALL
                .max(FACTOR * self.control.worst)
                .mul_f64(self.slowdown)
        {
            format!("the other user waited for {worst:?}")
        } else if *p99 <= limit {
            return Judged::Withstood;
        } else if !is_last {
            return Judged::Again;
        } else {
            format!("the other user's p99 is {p99:?}, {limit:?} are allowed")
        };
        Judged::Failed(why)
    }

    fn limit(&self, idle: &Calls) -> Duration {
        let limit = (FACTOR * idle.p99.max(self.control.p99)).max(ALWAYS_GOOD);
        limit.mul_f64(self.slowdown)
    }

    fn describe(&self, idle: &Calls) -> String {
        format!(
            "{:.1?}, memory {} to {} MiB, p99 {:.1?} of {} (idle {:.1?}, control {:.1?}), worst {:.1?}, \
             server CPU {:.1?}, {} threads, slowdown {:.1}",
            self.took,
            self.before / MIB,
            self.peak / MIB,
            self.attacked.p99,
            self.attacked.count,
            idle.p99,
            self.control.p99,
            self.attacked.worst,
            self.cpu,
            self.threads,
            self.slowdown
        )
    }
}

/// CPU usage of the servers, this process and the machine up to a moment.
pub(crate) struct Load {
    attacked: u32,
    /// The other servers of the test.
    others: Vec<u32>,
    moment: Instant,
    /// The machine's total CPU time, and the used part.
    machine: [Duration; 2],
    /// CPU time of the attacked server, of the others, and of this process.
    own: [Duration; 3],
    /// The attacked server's threads: the time that they ran, and that they waited for a core.
    scheduled: [Duration; 2],
}

impl Load {
    pub(crate) fn now(attacked: u32, others: &[u32]) -> Self {
        Self {
            attacked,
            others: others.to_vec(),
            moment: Instant::now(),
            machine: process::machine(),
            own: [
                process::cpu(attacked),
                others.iter().copied().map(process::cpu).sum(),
                process::cpu(std::process::id()),
            ],
            scheduled: process::ran_and_waited(attacked),
        }
    }

    /// The same at this moment.
    fn again(&self) -> Self {
        Self::now(self.attacked, &self.others)
    }

    /// CPU time of each of the processes since then.
    fn own_until(&self, now: &Self) -> [Duration; 3] {
        [0, 1, 2].map(|index| now.own[index].saturating_sub(self.own[index]))
    }

    /// The time since then that threads of the attacked server ran, and that they waited for a core.
    fn scheduled_until(&self, now: &Self) -> [Duration; 2] {
        [0, 1].map(|index| now.scheduled[index].saturating_sub(self.scheduled[index]))
    }

    /// CPU time of the attacked server since then, without that for the other user, who costs the other server as much.
    pub(crate) fn cpu_of_attack(&self) -> Duration {
        let [attacked, others, _] = self.own_until(&self.again());
        attacked.saturating_sub(others)
    }

    /// The time since then, divided by the slowdown: about what the same would have taken alone on the machine.
    fn time_alone(&self) -> Duration {
        self.moment.elapsed().div_f64(self.slowdown_since())
    }

    /// Whether a request since then that was ended by a deadline of the server has not taken too long by itself: the
    /// attacked server had little of the machine, and its threads wanted more. One that waits for something else, such as a
    /// lock, is not excused.
    pub(crate) fn explains_timeout(&self) -> bool {
        let [ran, waited] = self.scheduled_until(&self.again());
        let elapsed = self.moment.elapsed();
        // Work on the request is a thread that runs or waits for a core all the time; the other user makes less.
        ran + waited > elapsed * 3 / 4 && self.time_alone() < BEFORE_DEADLINE
    }

    /// By which factor, 1 to 10, the attacked server was slower since then than alone on the machine.
    ///
    /// It waits for a core because of other processes or because of its own threads, and only the first counts. So this
    /// is its waiting time, but no more than other processes caused: if they use three quarters of the cores, a quarter
    /// is left.
    pub(crate) fn slowdown_since(&self) -> f64 {
        let now = self.again();
        let [ran, waited] = self.scheduled_until(&now).map(|time| time.as_secs_f64());
        let [all, used] = [0, 1].map(|index| {
            let time = now.machine[index].saturating_sub(self.machine[index]);
            time.as_secs_f64()
        });
        let own: Duration = self.own_until(&now).into_iter().sum();
        let others = used - own.as_secs_f64();
        let by_waiting = 1.0 + waited / ran.max(0.001);
        let by_others = all / (all - others).max(0.001);
        by_waiting.min(by_others).clamp(1.0, 10.0)
    }
}

/// The other user's calls and their latencies.
pub(crate) struct Calls {
    pub(crate) count: usize,
    pub(crate) p50: Duration,
    pub(crate) p99: Duration,
    pub(crate) worst: Duration,
    pub(crate) error: Option<String>,
}

impl Calls {
    pub(crate) fn of(samples: &[Sample]) -> Self {
        // While a call waits the user makes no others. The calls it would have made are counted as having waited too;
        // else one long stall would be one call among many (coordinated omission).
        let mut times = Vec::new();
        for sample in samples.iter().filter(|sample| !is_rare(sample.call)) {
            let mut took = sample.took;
            times.push(took);
            while took > PACE {
                took -= PACE;
                times.push(took);
            }
        }
        times.sort_unstable();
        let worst = samples.iter().map(|sample| sample.took).max();
        let error = samples.iter().find_map(|sample| {
            let error = sample.error.as_ref()?;
            Some(format!("{} after {:?}: {error}", sample.call, sample.took))
        });
        let percentile = |of_100| times.get(times.len() * of_100 / 100).copied();
        Self {
            count: times.len(),
            p50: percentile(50).unwrap_or_default(),
            p99: percentile(99).unwrap_or_default(),
            worst: worst.unwrap_or_default(),
            error,
        }
    }
}

/// The p99 and the worst of each kind of call.
pub(crate) fn by_kind(samples: &[Sample]) -> BTreeMap<&'static str, [Duration; 2]> {
    let mut times: BTreeMap<_, Vec<Duration>> = BTreeMap::new();
    for sample in samples {
        times.entry(sample.call).or_default().push(sample.took);
    }
    let of = |mut times: Vec<Duration>| {
        times.sort_unstable();
        [times.len() * 99 / 100, times.len() - 1].map(|at| times[at])
    };
    times
        .into_iter()
        .map(|(call, times)| (call, of(times)))
        .collect()
}

/// The p99 of each tenth of a time, which shows whether calls become slower with what the server keeps.
pub(crate) fn by_tenth(samples: &[Sample], since: Instant) -> [Duration; 10] {
    let last = samples.last().map_or(since, |sample| sample.ended);
    let of_tenth = (last - since) / 10;
    std::array::from_fn(|tenth| {
        let begin = since + of_tenth * tenth as u32;
        let within = |sample: &&Sample| sample.ended >= begin && sample.ended <= begin + of_tenth;
        let samples: Vec<_> = samples.iter().filter(within).cloned().collect();
        Calls::of(&samples).p99
    })
}

/// Calls that are slow by nature, such as a TLS handshake in a debug build: they must succeed and not stall.
fn is_rare(call: &str) -> bool {
    matches!(call, "connect" | "open watch")
}
