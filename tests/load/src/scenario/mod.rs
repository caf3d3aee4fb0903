//! The scenarios. The same code runs each against the server and, with `--floor`, against the baseline.

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
    /// Its address and credentials.
    pub(crate) target: Target,
    /// Its processes, for CPU time and memory.
    pub(crate) pids: Vec<u32>,
    /// The objects on it.
    pub(crate) objects: Objects,
    /// The options of the run.
    pub(crate) run: Run,
    /// Whether it is the baseline, which serves the same bytes repeatedly.
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
