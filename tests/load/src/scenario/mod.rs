//! The scenarios. Each is run against the server and, where asked, against the floor, by the same code.

mod requests;
mod watch;

use std::time::Duration;

use anyhow::Result;

use crate::objects::Objects;
use crate::options::{Run, Scenario};
use crate::process;
use crate::report::Figures;
use crate::target::Target;

/// A server under load.
pub(crate) struct Bench {
    /// How to reach it.
    pub(crate) target: Target,
    /// Its processes.
    pub(crate) pids: Vec<u32>,
    /// What it serves.
    pub(crate) objects: Objects,
    /// What is asked for.
    pub(crate) run: Run,
    /// Whether it is the floor, which hands out the same bytes again and again.
    pub(crate) is_floor: bool,
}

impl Bench {
    /// Runs one scenario.
    pub(crate) async fn measure(&self, scenario: Scenario) -> Result<Figures> {
        match scenario {
            Scenario::Watch => watch::fan_out(self).await,
            Scenario::SelectiveWatch => watch::selective(self).await,
            _ => requests::measure(self, scenario).await,
        }
    }

    fn cpu(&self) -> Result<Option<Duration>> {
        match self.pids.as_slice() {
            [] => Ok(None),
            pids => process::cpu(pids).map(Some),
        }
    }

    fn resident_mib(&self) -> Result<Option<f64>> {
        match self.pids.as_slice() {
            [] => Ok(None),
            pids => Ok(Some(process::resident(pids)? as f64 / f64::from(1 << 20))),
        }
    }
}

/// The CPU time between two readings for each of `count` things, in microseconds.
fn each_us(before: Option<Duration>, after: Option<Duration>, count: u64) -> Option<f64> {
    let spent = after?.saturating_sub(before?);
    (count > 0).then(|| spent.as_secs_f64() * 1e6 / count as f64)
}
