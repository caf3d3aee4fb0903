//! wardle-controller as a process, over TLS, against wardle-server: kills of both under load, and leaders that are frozen.
//!
//! The kills go on for `APILOOM_KILL_SECONDS`, 6 by default.

#![allow(clippy::unwrap_used, reason = "tests")]

mod load;
mod replica;

use std::time::Duration;

use apiloom_tests::wardle::{FLUNDERS, flunder};
use apiloom_tests::{Client, RestartableServer, Server};
use futures_util::future::join_all;
use load::{Dice, Load, converges};
use replica::{LEASE, LOST, Replica, signal};
use tokio::time::{Instant, sleep, timeout};

const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until a replica holds the lease, and returns its name. `meanwhile` runs now and then.
async fn leader(
    client: &Client,
    is_wanted: impl Fn(&str) -> bool,
    mut meanwhile: impl FnMut(),
) -> String {
    let leads = async {
        loop {
            let lease = client.get(LEASE).await;
            if lease.code == 200 {
                let lease = lease.json();
                let holder = lease["spec"]["holderIdentity"].as_str().unwrap_or_default();
                if is_wanted(holder) {
                    return holder.to_owned();
                }
            }
            meanwhile();
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(PATIENCE, leads).await.expect("a replica leads")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn objects_converge_after_kills_of_the_server_and_of_controllers() {
    let seconds = std::env::var("APILOOM_KILL_SECONDS");
    let seconds = seconds.map_or(6, |seconds| seconds.parse().unwrap());
    let mut server = RestartableServer::start().await;
    let kubeconfig = server.kubeconfig().to_owned();
    let mut replicas = ["a", "b"].map(|name| Replica::start(name, &kubeconfig));
    leader(
        &Client::new(&kubeconfig),
        |holder| !holder.is_empty(),
        || {},
    )
    .await;
    let load = Load::start(&kubeconfig);
    let mut dice = Dice::new(7);
    let mut kills = [0, 0];
    let started = Instant::now();
    let has_begun =
        |kills: [usize; 2]| kills.iter().all(|kills| *kills > 0) && load.written() > 100;
    while started.elapsed() < Duration::from_secs(seconds) || !has_begun(kills) {
        assert!(
            started.elapsed() < PATIENCE.max(2 * Duration::from_secs(seconds)),
            "{kills:?}, {} writes",
            load.written()
        );
        sleep(Duration::from_millis(200 + dice.below(1300))).await;
        match dice.below(3) {
            0 => {
                server.kill();
                kills[0] += 1;
            }
            replica => {
                replicas[replica as usize - 1].kill();
                kills[1] += 1;
            }
        }
        // A replica that lost its lease ends.
        replicas.iter_mut().for_each(Replica::supervise);
    }
    load.stop().await;
    let client = Client::new(&kubeconfig);
    converges(&client, || replicas.iter_mut().for_each(Replica::supervise)).await;
    replicas.into_iter().for_each(Replica::stop);
}

/// Creates so many Flunders at a time that the leader is in the middle of its work when this returns.
async fn burst(client: &Client, created: &mut usize) {
    const OBJECTS: usize = 200;
    let creates = (*created..*created + OBJECTS).map(|number| async move {
        let answer = client
            .post(FLUNDERS, &flunder(&format!("burst-{number}")))
            .await;
        assert_eq!(answer.code, 201, "{}", answer.text());
    });
    join_all(creates).await;
    *created += OBJECTS;
}

/// A line of the server's log: who sent a write, to what, and whether it was executed.
struct Write<'a> {
    identity: &'a str,
    is_lease: bool,
    is_executed: bool,
}

/// The writes of controllers in the order in which the server executed them.
fn writes(log: &str) -> Vec<Write<'_>> {
    let writes = log.lines().filter_map(|line| {
        let part = |name: &str| line.split_once(name)?.1.split([' ', '"']).next();
        let agent = line.split_once("user_agent=\"wardle-controller/")?.1;
        let identity = agent.split(['"', ' ']).nth(1)?;
        let code: u16 = part(" code=")?.parse().unwrap();
        let method = part(" method=")?;
        (method != "GET").then(|| Write {
            identity,
            is_lease: line.contains("/leases"),
            is_executed: code < 300,
        })
    });
    writes.collect()
}

/// The number of writes of a controller that the server executed, but for its lease.
fn written_by(log: &str, identity: &str) -> usize {
    let writes = writes(log).into_iter();
    let own =
        |write: &Write<'_>| write.identity == identity && write.is_executed && !write.is_lease;
    writes.filter(own).count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn trap_42_a_leader_that_was_frozen_never_writes_beside_the_next_one() {
    const ROUNDS: usize = 2;
    const FEW: usize = 10;
    let server = Server::start(&["-v", "2"]);
    let client = server.client();
    let mut replicas = ["a", "b"].map(|name| Replica::start(name, server.kubeconfig()));
    let load = Load::start(server.kubeconfig());
    let (mut rounds, mut created) = (0, 0);
    while rounds < ROUNDS {
        let holder = leader(&client, |holder| !holder.is_empty(), || {}).await;
        burst(&client, &mut created).await;
        if written_by(&server.log(), &holder) <= FEW {
            replicas.iter_mut().for_each(Replica::supervise);
            continue;
        }
        let frozen = usize::from(replicas[1].identity() == holder);
        // All that the leader has sent waits in the server when the leader is frozen: each of its workers is in the middle
        // of a call, and would send the next write of it later.
        signal(server.pid(), "-STOP");
        sleep(Duration::from_millis(500)).await;
        replicas[frozen].freeze();
        signal(server.pid(), "-CONT");
        // On a busy machine it may have lost the lease before.
        if leader(&client, |_| true, || {}).await != replicas[frozen].identity() {
            replicas[frozen].wake();
            replicas.iter_mut().for_each(Replica::supervise);
            continue;
        }
        let next = leader(
            &client,
            |now| !now.is_empty() && now != holder,
            || replicas[1 - frozen].supervise(),
        );
        next.await;
        sleep(Duration::from_millis(300)).await;
        replicas[frozen].wake();
        // It notices by itself, and ends.
        let (status, log) = replicas[frozen].replace().wait();
        assert!(!status.success() && log.contains(LOST), "{log}");
        rounds += 1;
    }
    load.stop().await;
    converges(&client, || replicas.iter_mut().for_each(Replica::supervise)).await;
    replicas.into_iter().for_each(Replica::stop);

    let log = server.log();
    let (mut owner, mut takeovers) = ("", 0);
    let mut written = [0, 0];
    for (number, write) in writes(&log).iter().enumerate() {
        if !write.is_executed {
            continue;
        }
        if write.is_lease {
            takeovers += usize::from(owner != write.identity);
            owner = write.identity;
            continue;
        }
        assert_eq!(write.identity, owner, "write {number} is not the leader's");
        written[usize::from(owner.starts_with('b'))] += 1;
    }
    assert!(takeovers > ROUNDS, "{takeovers} takeovers");
    assert!(written.iter().all(|count| *count > FEW), "{written:?}");
}
