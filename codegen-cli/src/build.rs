//! Builds a server package with cargo: with a progress bar on a terminal, with one line before and after it in a pipe.

use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use cargo_metadata::Message;
use indicatif::{ProgressBar, ProgressStyle};

use crate::cargo::{self, Options};
use crate::console::{Console, Failure};
use crate::package::{Package, Server};
use crate::shared::SharedBuild;

/// How often the spinner turns.
const TICK: Duration = Duration::from_millis(100);

/// Builds the server of a package and returns the path of its binary.
pub(crate) fn build(
    package: &Package,
    options: &Options,
    console: &mut Console<'_>,
) -> Result<PathBuf, Failure> {
    // Held until the build ends.
    let shared = SharedBuild::prepare(package, options, console);
    build_server(package.server()?, shared.as_ref(), options, console)
}

/// Builds a server and returns the path of its binary.
pub(crate) fn build_server(
    server: &Server,
    shared: Option<&SharedBuild>,
    options: &Options,
    console: &mut Console<'_>,
) -> Result<PathBuf, Failure> {
    let mut command = command(server, options, console.terminal);
    match shared {
        Some(shared) => {
            command.args(&shared.arguments);
            let dir = shared.dir.display();
            console.phase(format_args!("building {}, sharing {dir}", server.bin));
        }
        None => console.phase(format_args!("building {}", server.bin)),
    }
    let progress = progress(console.terminal, &server.bin);
    let mut child = command.spawn().map_err(|error| {
        format!(
            "cannot start {}: {error}",
            command.get_program().to_string_lossy()
        )
    })?;
    let problems = child.stderr.take().map(|stderr| {
        let progress = progress.clone();
        std::thread::spawn(move || pass_on(stderr, &progress))
    });
    let mut executable = None;
    let (mut compiled, mut reused) = (0_u32, 0_u32);
    if let Some(stdout) = child.stdout.take() {
        // Lines that are not cargo messages are output of build scripts and the like.
        for message in Message::parse_stream(BufReader::new(stdout)).map_while(Result::ok) {
            if let Message::CompilerArtifact(artifact) = message {
                progress.inc(1);
                if artifact.fresh {
                    reused += 1;
                } else {
                    compiled += 1;
                }
                progress.set_message(artifact.target.name.clone());
                if artifact.target.is_bin() && artifact.target.name == server.bin {
                    executable = artifact.executable.map(PathBuf::from);
                }
            }
        }
    }
    let status = child
        .wait()
        .map_err(|error| format!("cargo went away: {error}"))?;
    if let Some(problems) = problems {
        // The thread ends with cargo's stderr and cannot panic.
        let _ = problems.join();
    }
    progress.finish_and_clear();
    if !status.success() {
        return Err(format!("building `{}` failed", server.bin).into());
    }
    console.phase(format_args!(
        "built {}: {compiled} crates compiled, {reused} reused",
        server.bin
    ));
    executable.ok_or_else(|| format!("cargo built no binary `{}`", server.bin).into())
}

fn command(server: &Server, options: &Options, terminal: bool) -> Command {
    let mut command = Command::new(cargo::program());
    command.args([
        "build",
        "--quiet",
        "--message-format=json-render-diagnostics",
        "--manifest-path",
    ]);
    command.arg(&server.manifest).args(["--bin", &server.bin]);
    if options.release {
        command.arg("--release");
    }
    if let Some(dir) = &options.target_dir {
        command.arg("--target-dir").arg(dir);
    }
    if !options.features.is_empty() {
        command.arg("--features").arg(options.features.join(","));
    }
    command.envs(
        options
            .environment
            .iter()
            .map(|(name, value)| (name, value)),
    );
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    if terminal {
        command.arg("--color=always").stderr(Stdio::piped());
    }
    command
}

fn progress(terminal: bool, bin: &str) -> ProgressBar {
    if !terminal {
        return ProgressBar::hidden();
    }
    let template =
        format!("{{spinner}} building {bin}: {{pos}} crates, {{elapsed}} {{wide_msg:.dim}}");
    let progress = ProgressBar::new_spinner();
    if let Ok(style) = ProgressStyle::with_template(&template) {
        progress.set_style(style);
    }
    progress.enable_steady_tick(TICK);
    progress
}

/// Prints cargo's problems above the progress line.
fn pass_on(stderr: impl Read, progress: &ProgressBar) {
    for line in BufReader::new(stderr).lines().map_while(Result::ok) {
        progress.println(line);
    }
}
