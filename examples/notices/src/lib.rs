//! A part of a server of one's own: the administrator writes notices as objects, and the server shows them with all its responses.
//!
//! Everything of the part is in this folder: the kind Notice, the controller that puts notices on the [`Board`] and tells in their status
//! whether they are shown, the filter that adds them to responses, the path `/notices`, the flag `--max-notices`, a health check
//! and a metric. A server has it with one line, `builder.part(Notices::default())`, and without that line nothing of it.

mod board;
mod controller;
mod show;

use std::sync::Arc;

use apiloom::prelude::*;
use apiloom::server::Part;
use apiloom::server::health::Check;
use apiloom::server::http::PathRequest;
use apiloom::server::metrics::Samples;
use clap::{ArgMatches, Args, Command, FromArgMatches as _};

pub use board::Board;

/// Notice is a text that the server shows with its responses.
#[apiloom::resource(group = "notices.example.com", version = "v1", cluster, status,
    printcolumn(name = "Text", path = spec.text), printcolumn(name = "Shown", path = status.shown))]
pub struct Notice {
    pub metadata: ObjectMeta,
    pub spec: NoticeSpec,
    pub status: Option<NoticeStatus>,
}

/// NoticeSpec is what the administrator writes.
#[apiloom::api]
pub struct NoticeSpec {
    /// The text, in one line of ASCII, as it is shown in a header.
    #[api(len(min = 1, max = 200), pattern = "^[ -~]+$")]
    pub text: String,
}

/// NoticeStatus is what the server tells.
#[apiloom::api]
pub struct NoticeStatus {
    /// Whether the notice is shown: only the first ones are, by name.
    pub shown: Option<bool>,
}

/// The part.
#[derive(Debug, Default)]
pub struct Notices {
    /// The flags, or their defaults in a server that is made in code.
    flags: NoticeFlags,
}

#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Notice flags")]
struct NoticeFlags {
    /// Maximum number of notices that are shown with a response.
    #[arg(long, value_name = "NUMBER", default_value_t = NoticeFlags::default().max_notices)]
    max_notices: usize,
}

impl Default for NoticeFlags {
    fn default() -> Self {
        Self { max_notices: 3 }
    }
}

impl Part for Notices {
    fn name(&self) -> &'static str {
        "notices"
    }

    fn add_flags(&self, command: Command) -> Command {
        NoticeFlags::augment_args(command)
    }

    fn read_flags(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.flags = NoticeFlags::from_arg_matches(matches)?;
        Ok(())
    }

    fn register(self: Box<Self>, builder: Builder) -> Builder {
        let board = Arc::new(Board::new(self.flags.max_notices));
        let (answered, checked, counted, cleared) =
            (board.clone(), board.clone(), board.clone(), board.clone());
        let answer = move |_: PathRequest| {
            let lines = answered.texts().into_iter().map(|text| text + "\n");
            let text: String = lines.collect();
            async move { text }
        };
        let is_filled = move || {
            let missing = || "the notices are not read yet".to_owned();
            checked.is_filled().then_some(()).ok_or_else(missing)
        };
        let count = move |samples: &mut Samples| {
            let shown = counted.texts().len() as f64;
            samples.gauge("notices_shown", "Notices that are shown.", &[], shown);
        };
        builder
            .kind::<Notice>()
            .filter(show::ShowNotices(board.clone()))
            .path("/notices", answer)
            .health_check(Check::new("notices", is_filled))
            .metrics(count)
            .controller("notices", move |host| controller::run(host, board))
            .stop_hook("notices", async move |_| cleared.clear())
    }
}

/// The server: its kinds are those of the part.
pub fn configure(builder: Builder) -> Builder {
    builder.part(Notices::default())
}
