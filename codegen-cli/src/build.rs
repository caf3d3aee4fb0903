//! Builds a server package with cargo: with a progress bar on a terminal, with one line before and after it in a pipe.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use cargo_metadata::Message;
use indicatif::{ProgressBar, ProgressStyle};

use crate::cargo::{self, Options};
use crate::console::{Console, Failure};
use crate::package::{Package, Server};
use crate::shared::{self, SharedBuild};

/// How often the spinner turns.
const TICK: Duration = Duration::from_millis(100);

/// Builds the server of a package and returns the path of its binary.
pub(crate) fn build(
    package: &Package,
    options: &Options,
    console: &mut Console<'_>,
) -> Result<PathBuf, Failure> {
    let server = package.server()?;
    // Held until the build ends.
    let shared = SharedBuild::prepare(package, options, console);
    let mut command = command(server, options, console.terminal);
    match &shared {
        Some(shared) => {
            command.args(&shared.arguments);
            let dir = shared.dir.display();
            console.phase(format_args!("building {}, sharing {dir}", server.bin));
        }
        None => {
            command.args(folders_of(server, options)?);
            console.phase(format_args!("building {}", server.bin));
        }
    }
    let built = run(&mut command, server, console)?;
    console.phase(format_args!(
        "built {}: {} crates compiled, {} reused",
        server.bin, built.compiled, built.reused
    ));
    if let Some(shared) = shared {
        shared.hand_over(&built.artifacts);
    }
    built
        .executable
        .ok_or_else(|| format!("cargo built no binary `{}`", server.bin).into())
}

/// What cargo said of a build.
#[derive(Default)]
struct Built {
    compiled: u32,
    reused: u32,
    /// The files of each artifact.
    artifacts: Vec<Vec<PathBuf>>,
    /// That of the server.
    executable: Option<PathBuf>,
}

impl Built {
    fn note(&mut self, message: Message, server: &Server, progress: &ProgressBar) {
        match message {
            Message::CompilerArtifact(artifact) => {
                progress.inc(1);
                progress.set_message(artifact.target.name.clone());
                if artifact.fresh {
                    self.reused += 1;
                } else {
                    self.compiled += 1;
                }
                if artifact.target.is_bin() && artifact.target.name == server.bin {
                    self.executable = artifact.executable.map(PathBuf::from);
                }
                let files = artifact.filenames.into_iter();
                self.artifacts.push(files.map(PathBuf::from).collect());
            }
            Message::BuildScriptExecuted(script) => {
                self.artifacts.push(vec![script.out_dir.into()]);
            }
            _ => {}
        }
    }
}

/// Runs a build to its end, with its progress.
fn run(command: &mut Command, server: &Server, console: &Console<'_>) -> Result<Built, Failure> {
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
    let mut built = Built::default();
    if let Some(stdout) = child.stdout.take() {
        // Lines that are not cargo messages are output of build scripts and the like.
        for message in Message::parse_stream(BufReader::new(stdout)).map_while(Result::ok) {
            built.note(message, server, &progress);
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
    Ok(built)
}

/// Arguments for cargo about its folders, for a build in the package's own.
fn folders_of(server: &Server, options: &Options) -> Result<Vec<OsString>, Failure> {
    let workspace = &server.workspace;
    Ok(match (&options.target_dir, &workspace.build_dir) {
        (Some(dir), _) => {
            let dir = std::path::absolute(dir)
                .map_err(|error| format!("cannot find the current directory: {error}"))?;
            vec!["--target-dir".into(), dir.into_os_string()]
        }
        (None, Some(build_dir)) => shared::folders(&workspace.target_dir, build_dir),
        (None, None) => Vec::new(),
    })
}

fn command(server: &Server, options: &Options, terminal: bool) -> Command {
    let mut command = cargo::command(&server.manifest);
    command.args(["build", "--quiet"]);
    command.arg("--message-format=json-render-diagnostics");
    command.args(["--bin", &server.bin]);
    if options.release {
        command.arg("--release");
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
