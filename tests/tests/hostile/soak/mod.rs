//! A soak: one tenant, who may write definitions, webhooks and APIServices, tries everything at random against a server with 512 MiB of
//! memory, while another user works. The server stays up, and the other user is served.
//!
//! `APILOOM_SOAK_SECONDS=3600` runs it for an hour, and limits the p99 of the other user; that of some seconds beside other tests
//! would tell of these. `APILOOM_SOAK_SEED=7` makes other choices.

mod attacks;
mod limit;
#[path = "../../../../runtime/storage/tests/random/mod.rs"]
mod random;
mod rogue;

use std::time::{Duration, Instant};

use apiloom_tests::Server;
use apiloom_tests::wardle::ALL_FLUNDERS;
use futures_util::future::join_all;
use tokio::runtime::Runtime;

use self::attacks::{SERVICES, Tenant};
use self::limit::{Limit, MEMORY};
use self::random::Random;
use self::rogue::Rogue;
use crate::arena::{self, Calls, Load};
use crate::definitions::CRDS;
use crate::process::{self, MIB};
use crate::user::User;
use crate::wire::Target;

/// The p99 of the other user, if no other process needs a processor.
const P99: Duration = Duration::from_millis(50);

/// The longest call of the other user, if no other process needs a processor.
const WORST: Duration = Duration::from_secs(15);

/// Attacks that run at the same time.
const WORKERS: u64 = 3;

const SECONDS: u64 = 25;
const SEED: u64 = 36;

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    let number = text.parse();
    Some(number.unwrap_or_else(|_| panic!("{variable} is a number")))
}

/// How many objects there are of what the tenant creates: it does not know of those whose answers it did not wait for.
async fn left(server: &Server) -> String {
    let client = server.client();
    let count = async |path: &str| {
        let list = client.get(&format!("{path}?limit=1")).await.json();
        let first = list["items"].as_array().map_or(0, Vec::len) as u64;
        first + list["metadata"]["remainingItemCount"].as_u64().unwrap_or(0)
    };
    let (definitions, services) = (count(CRDS).await, count(SERVICES).await);
    let objects = count(ALL_FLUNDERS).await;
    format!("{definitions} definitions, {services} APIServices, {objects} objects")
}

#[test]
fn a_server_with_little_memory_withstands_a_tenant() {
    let _turn = arena::turn();
    let seed = number("APILOOM_SOAK_SEED").unwrap_or(SEED);
    let seconds = number("APILOOM_SOAK_SECONDS");
    let length = Duration::from_secs(seconds.unwrap_or(SECONDS));
    let runtime = Runtime::new().unwrap();
    let rogue = runtime.block_on(Rogue::start(seed));
    let memory = Limit::new();
    let server = Server::start_after(&memory.set(), &[&rogue.resolver()]);
    let user = User::start(server.kubeconfig(), true);
    assert!(
        user.wait_for_rounds(Instant::now(), 20),
        "the other user is served"
    );

    println!("seed {seed}, {length:?}");
    let (load, cpu) = (
        Load::now(server.pid(), &[]),
        [server.pid(), std::process::id()].map(process::cpu),
    );
    let since = Instant::now();
    let tried = runtime.block_on(async {
        let workers = (0..WORKERS).map(|worker| {
            let random = Random(seed.wrapping_mul(0x0001_0000_01B3) ^ worker);
            let tenant = Tenant::new(Target::of(&server), &rogue, worker, random);
            tenant.attack_until(since + length, server.pid())
        });
        join_all(workers).await
    });
    println!("attacks and answers: {:?}", attacks::sum(tried));
    println!("the server says: {}", server.log());
    assert!(
        !process::has_ended(server.pid()),
        "the server ended after {:?}",
        since.elapsed()
    );
    let slowdown = load.slowdown_since();
    assert!(
        user.wait_for_rounds(Instant::now(), 1),
        "the other user is served: {:?}",
        user.samples(since).last()
    );
    let samples = user.samples(since);
    let calls = Calls::of(&samples);
    println!("p99 and worst by kind: {:?}", arena::by_kind(&samples));
    println!("p99 by tenths: {:?}", arena::by_tenth(&samples, since));
    println!("what is left: {}", runtime.block_on(left(&server)));
    drop(user);
    let pid = server.pid();
    let peak = process::peak(pid);
    println!(
        "peak {} MiB, {:?} MiB of what `{}` limits, CPU {:?} and of the attackers {:?}, slowdown {slowdown:.1}, \
         the other user's {} calls: p50 {:?}, p99 {:?}, worst {:?}",
        peak / MIB,
        memory.peak().map(|bytes| bytes / MIB),
        memory.set(),
        process::cpu(pid) - cpu[0],
        process::cpu(std::process::id()) - cpu[1],
        calls.count,
        calls.p50,
        calls.p99,
        calls.worst
    );
    assert_eq!(calls.error, None);
    let longest = WORST.mul_f64(slowdown);
    assert!(
        calls.worst <= longest,
        "the other user waited for {:?}, {longest:?} are allowed",
        calls.worst
    );
    // The kernel holds a control group to its memory. An address space is larger than the memory in it.
    if memory.peak().is_none() {
        assert!(peak <= MEMORY, "{} MiB", peak / MIB);
    }
    let slowest = P99.mul_f64(slowdown);
    assert!(
        seconds.is_none() || calls.p99 <= slowest,
        "p99 {:?}, {slowest:?} are allowed",
        calls.p99
    );
    server.stop();
}
