//! `apiloom generate`: the only place that compares outputs with the disk and changes it.

mod diff;

use crate::cargo;
use crate::cli::{Console, Failure, Generate};
use crate::dump;
use crate::generate::{self, Files, Settings};
use crate::model::Model;
use crate::outputs::{ChangeKind, MANIFEST, Manifest, Phase, Plan};
use crate::package::Package;
use crate::source_model;

/// Runs both phases, or with `--fast` the first.
pub(crate) fn generate(flags: &Generate, console: &mut Console<'_>) -> Result<(), Failure> {
    let package = Package::locate(&flags.target.path)?;
    let model = source_model::load_or_tell(&package, console)?;
    let mode = if flags.check {
        Mode::Check
    } else if flags.force {
        Mode::Force
    } else {
        Mode::Write
    };
    let mut generation = Generation::begin(&package, mode)?;
    if !flags.fast {
        console.phase(format_args!("generating code of {}", package.name));
    }
    generation.source(&model, console)?;
    if flags.fast {
        return generation.finish(console);
    }
    if generation.differing > 0 && mode == Mode::Check {
        console.note("note: OpenAPI and CRDs were not checked: the server would be built from outdated files");
        return generation.finish(console);
    }
    let options = cargo::Options {
        target_dir: flags.target_dir.clone(),
        ..cargo::Options::default()
    };
    let server = cargo::build(&package, &options, console)?;
    generation.schema(&server, console)?;
    generation.finish(console)
}

/// What to do about differences.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Show them.
    Check,
    /// Write, but lose no one's edits.
    Write,
    /// Write whatever is there.
    Force,
}

/// A generation under way.
#[derive(Debug)]
pub(crate) struct Generation<'a> {
    package: &'a Package,
    mode: Mode,
    manifest: Manifest,
    outputs: usize,
    differing: usize,
}

impl<'a> Generation<'a> {
    /// Reads what was written last.
    pub(crate) fn begin(package: &'a Package, mode: Mode) -> Result<Generation<'a>, Failure> {
        let manifest = match Manifest::read(&package.dir) {
            Err(_) if mode == Mode::Force => Manifest::default(),
            other => other?,
        };
        Ok(Generation {
            package,
            mode,
            manifest,
            outputs: 0,
            differing: 0,
        })
    }

    /// Phase 1, from the model.
    pub(crate) fn source(
        &mut self,
        model: &Model,
        console: &mut Console<'_>,
    ) -> Result<(), Failure> {
        let files =
            generate::generate(model, &self.settings()).map_err(|error| error.to_string())?;
        self.bring(Phase::Source, &files, console)
    }

    /// Phase 2, from the built server.
    pub(crate) fn schema(
        &mut self,
        server: &std::path::Path,
        console: &mut Console<'_>,
    ) -> Result<(), Failure> {
        console.phase(format_args!(
            "generating OpenAPI documents and CRDs of {}",
            self.package.name
        ));
        let files = dump::dump(server, &self.settings().header(&self.package.name))?;
        self.bring(Phase::Schema, &files, console)
    }

    fn settings(&self) -> Settings {
        Settings::new(&self.package.server.bin, &self.package.server.dir)
    }

    /// Says how it went; fails when a check found differences.
    pub(crate) fn finish(self, console: &mut Console<'_>) -> Result<(), Failure> {
        let Generation {
            package,
            mode,
            outputs,
            differing,
            ..
        } = self;
        if mode != Mode::Check {
            console.say(format_args!(
                "{}: {outputs} generated files, {differing} changed",
                package.name
            ));
            return Ok(());
        }
        if differing == 0 {
            console.say(format_args!(
                "{}: {outputs} generated files, all fresh",
                package.name
            ));
            return Ok(());
        }
        let verb = if differing == 1 {
            "file is"
        } else {
            "files are"
        };
        let dir = package.dir.display();
        Err(
            format!("{differing} generated {verb} not fresh\n  help: run: apiloom generate {dir}")
                .into(),
        )
    }

    fn bring(
        &mut self,
        phase: Phase,
        files: &Files,
        console: &mut Console<'_>,
    ) -> Result<(), Failure> {
        let plan = match Plan::new(&self.package.dir, &self.manifest, phase, files) {
            Err(_) if self.mode == Mode::Force => {
                self.manifest = Manifest::default();
                Plan::new(&self.package.dir, &self.manifest, phase, files)?
            }
            other => other?,
        };
        self.outputs += files.len();
        self.differing += plan.notable().count();
        match self.mode {
            Mode::Check => {
                for change in plan.notable() {
                    diff::show(change, console);
                }
                return Ok(());
            }
            Mode::Write => self.refuse_to_lose(&plan)?,
            Mode::Force => {}
        }
        self.manifest = plan.apply(&self.package.dir)?;
        Ok(())
    }

    fn refuse_to_lose(&self, plan: &Plan) -> Result<(), Failure> {
        let precious: Vec<String> = plan
            .precious()
            .map(|change| {
                format!(
                    "\n  {} ({})",
                    self.package.dir.join(&change.path).display(),
                    change.kind.word()
                )
            })
            .collect();
        if precious.is_empty() {
            return Ok(());
        }
        let unrecorded = plan
            .precious()
            .any(|change| change.kind == ChangeKind::Unrecorded);
        let (lost, note) = if unrecorded {
            (
                "could lose what was written by hand",
                format!(
                    "\n  note: {MANIFEST} records what was generated; it is committed with the other files"
                ),
            )
        } else {
            ("would lose what was written by hand", String::new())
        };
        Err(format!(
            "{lost}:{}{note}\n  help: move the edit elsewhere, then run: apiloom generate {} --force",
            precious.concat(),
            self.package.dir.display()
        )
        .into())
    }
}
