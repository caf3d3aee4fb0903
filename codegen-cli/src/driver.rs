//! `apiloom generate`: the only module that compares outputs with the disk and writes files.

mod diff;

use std::fs;
use std::path::{Path, PathBuf};

use crate::client_crate;
use crate::console::{Console, Failure};
use crate::dump;
use crate::flags::Generate;
use crate::generate::{self, Files, RelPath, Settings};
use crate::model::Model;
use crate::numbers::{LOCK, Numbers};
use crate::outputs::{Change, ChangeKind, MANIFEST, Manifest, Phase, Plan};
use crate::package::{MAIN, Package, ServerPackage};
use crate::source_model;
use crate::{build, cargo};

/// Runs both phases, or with `--fast` the first.
pub(crate) fn generate(flags: &Generate, console: &mut Console<'_>) -> Result<(), Failure> {
    let mut package = Package::locate(&flags.target.path)?;
    package.has_client_crate = flags.client_crate.is_some();
    let model = source_model::load_or_tell(&package, console)?;
    let mode = if flags.check {
        Mode::Check
    } else if flags.force {
        Mode::Force
    } else {
        Mode::Write
    };
    let clients = match &flags.client_crate {
        Some(dir) => client_crate(&package, &model, dir, mode, console),
        None => Ok(()),
    };
    if let Err(Failure::Complaint(complaint)) = &clients {
        // A check goes on, so that everything is shown.
        if mode != Mode::Check {
            return clients;
        }
        console.note(format_args!("error: {complaint}"));
    }
    package_files(&package, &model, flags, mode, console)?;
    clients.map_err(|_| Failure::Told)
}

/// Writes or checks the clients of a package as a package of their own.
fn client_crate(
    package: &Package,
    model: &Model,
    dir: &Path,
    mode: Mode,
    console: &mut Console<'_>,
) -> Result<(), Failure> {
    let (name, features) = client_crate::begin(package, dir, mode != Mode::Check, console)?;
    let files = generate::client_crate(model, features).map_err(|error| error.to_string())?;
    let place = Place {
        name,
        dir: dir.to_owned(),
        command: format!("{} --client-crate {}", package.dir.display(), dir.display()),
    };
    let mut generation = Generation::begin_at(package, place, mode)?;
    generation.bring(Phase::Source, &files, console)?;
    generation.finish(console)
}

/// Runs both phases of a package, or with `--fast` the first.
fn package_files(
    package: &Package,
    model: &Model,
    flags: &Generate,
    mode: Mode,
    console: &mut Console<'_>,
) -> Result<(), Failure> {
    let mut generation = Generation::begin(package, mode)?;
    if !flags.fast {
        console.phase(format_args!("generating code of {}", package.name));
    }
    generation.source(model, console)?;
    if flags.fast || package.server().is_err() {
        return generation.finish(console);
    }
    if generation.differing > 0 && mode == Mode::Check {
        console.note("note: OpenAPI and CRDs were not checked: the server would be built from outdated files");
        generation.find_edits(Phase::Schema)?;
        return generation.finish(console);
    }
    let built;
    let server = if let Some(server) = &flags.server {
        check_age(server, package)?;
        server
    } else {
        let options = cargo::Options {
            target_dir: flags.target_dir.clone(),
            ..cargo::Options::default()
        };
        built = build::build(package, &options, console)?;
        &built
    };
    generation.schema(server, console)?;
    generation.finish(console)
}

/// Refuses a server that was built before the newest of the package's files, as cargo would build it again.
fn check_age(server: &Path, package: &Package) -> Result<(), Failure> {
    let changed = |path: &Path| {
        fs::metadata(path)
            .and_then(|metadata| metadata.modified())
            .map_err(|error| format!("cannot read {}: {error}", path.display()))
    };
    let built = changed(server)?;
    let mut paths = vec![package.dir.join("Cargo.toml"), package.dir.join("src")];
    if let Ok(server) = package.server() {
        paths.push(package.dir.join(&server.dir).join(MAIN));
    }
    while let Some(path) = paths.pop() {
        if path.is_dir() {
            let entries = fs::read_dir(&path)
                .and_then(|entries| entries.collect::<Result<Vec<_>, _>>())
                .map_err(|error| format!("cannot read {}: {error}", path.display()))?;
            paths.extend(entries.iter().map(fs::DirEntry::path));
        } else if changed(&path)? > built {
            return Err(format!(
                "{} was built before {} changed\n  help: build it again, or leave out --server",
                server.display(),
                path.display()
            )
            .into());
        }
    }
    Ok(())
}

/// How differences are handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Print them.
    Check,
    /// Write the files, unless edits by hand would be lost.
    Write,
    /// Write the files, even over edits.
    Force,
}

/// The package that files are written to.
#[derive(Debug)]
struct Place {
    name: String,
    dir: PathBuf,
    /// The arguments of `apiloom generate` that write it.
    command: String,
}

/// A generation in progress.
#[derive(Debug)]
pub(crate) struct Generation<'a> {
    package: &'a Package,
    place: Place,
    mode: Mode,
    manifest: Manifest,
    outputs: usize,
    differing: usize,
    /// Files with edits by hand that a check has found.
    by_hand: Vec<(RelPath, ChangeKind)>,
}

impl<'a> Generation<'a> {
    /// Reads the manifest of the last generation.
    pub(crate) fn begin(package: &'a Package, mode: Mode) -> Result<Generation<'a>, Failure> {
        let place = Place {
            name: package.name.clone(),
            dir: package.dir.clone(),
            command: package.dir.display().to_string(),
        };
        Self::begin_at(package, place, mode)
    }

    fn begin_at(package: &'a Package, place: Place, mode: Mode) -> Result<Generation<'a>, Failure> {
        let manifest = match Manifest::read(&place.dir) {
            Err(_) if mode == Mode::Force => Manifest::default(),
            other => other?,
        };
        Ok(Generation {
            package,
            place,
            mode,
            manifest,
            outputs: 0,
            differing: 0,
            by_hand: Vec::new(),
        })
    }

    /// Finds the edited files of a phase by comparison with the manifest, without generating them.
    fn find_edits(&mut self, phase: Phase) -> Result<(), Failure> {
        let edited = self.manifest.edited(&self.place.dir, phase)?;
        let edited = edited.into_iter().map(|path| (path, ChangeKind::Edited));
        self.by_hand.extend(edited);
        Ok(())
    }

    /// Runs phase 1, from the model.
    pub(crate) fn source(
        &mut self,
        model: &Model,
        console: &mut Console<'_>,
    ) -> Result<(), Failure> {
        let files =
            generate::generate(model, &self.settings()).map_err(|error| error.to_string())?;
        self.bring(Phase::Source, &files, console)
    }

    /// Runs phase 2, from the built server.
    pub(crate) fn schema(
        &mut self,
        server: &std::path::Path,
        console: &mut Console<'_>,
    ) -> Result<(), Failure> {
        console.phase(format_args!(
            "generating OpenAPI documents and CRDs of {}",
            self.package.name
        ));
        let header = self.settings().header(&self.package.name);
        let mut dump = dump::dump(server, self.package.openapi_v2)?;
        let numbers = Numbers::read(&self.package.dir)?;
        let next = numbers.after(&dump.proto)?;
        next.reserve(&mut dump.proto);
        self.bring(
            Phase::Schema,
            &dump.files(&self.package.name, &header)?,
            console,
        )?;
        self.bring_numbers(&numbers, &next, console)
    }

    /// Writes or checks the numbers of Protobuf fields.
    fn bring_numbers(
        &mut self,
        numbers: &Numbers,
        next: &Numbers,
        console: &mut Console<'_>,
    ) -> Result<(), Failure> {
        if numbers == next {
            self.outputs += usize::from(!next.is_empty());
            return Ok(());
        }
        self.outputs += 1;
        self.differing += 1;
        if self.mode == Mode::Check {
            let (old, kind) = if numbers.is_empty() {
                (Vec::new(), ChangeKind::Missing)
            } else {
                (numbers.text().into_bytes(), ChangeKind::Outdated)
            };
            let change = Change {
                path: LOCK.to_owned(),
                kind,
                old,
                new: next.text().into_bytes(),
            };
            diff::show(&change, console);
            return Ok(());
        }
        Ok(next.write(&self.package.dir)?)
    }

    fn settings(&self) -> Settings {
        match &self.package.server {
            ServerPackage::Known(server) => Settings {
                clients: self.package.clients,
                kube: self.package.kube,
                fake: self.package.fake,
                ..Settings::new(&server.bin, &server.dir)
            },
            ServerPackage::None { crate_path } => Settings::without_server(crate_path),
        }
    }

    /// Prints the summary; fails if a check found differences.
    pub(crate) fn finish(self, console: &mut Console<'_>) -> Result<(), Failure> {
        let &Generation {
            ref place,
            mode,
            outputs,
            differing,
            ..
        } = &self;
        if mode != Mode::Check {
            console.say(format_args!(
                "{}: {outputs} generated files, {differing} changed",
                place.name
            ));
            return Ok(());
        }
        if differing == 0 {
            console.say(format_args!(
                "{}: {outputs} generated files, all fresh",
                place.name
            ));
            return Ok(());
        }
        let verb = if differing == 1 {
            "file is"
        } else {
            "files are"
        };
        let dir = &place.command;
        let what = if self.by_hand.is_empty() {
            format!("\n  help: run: apiloom generate {dir}")
        } else {
            format!("; {}", self.loss(&self.by_hand))
        };
        Err(format!("{differing} generated {verb} not fresh{what}").into())
    }

    fn bring(
        &mut self,
        phase: Phase,
        files: &Files,
        console: &mut Console<'_>,
    ) -> Result<(), Failure> {
        let plan = match Plan::new(&self.place.dir, &self.manifest, phase, files) {
            Err(_) if self.mode == Mode::Force => {
                self.manifest = Manifest::default();
                Plan::new(&self.place.dir, &self.manifest, phase, files)?
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
                self.by_hand.extend(by_hand(&plan));
                return Ok(());
            }
            Mode::Write => {
                let by_hand = by_hand(&plan);
                if !by_hand.is_empty() {
                    return Err(self.loss(&by_hand).into());
                }
            }
            Mode::Force => {
                for (path, kind) in by_hand(&plan) {
                    console.note(format_args!("overwriting {}", self.shown(&path, kind)));
                }
            }
        }
        self.manifest = plan.apply(&self.place.dir)?;
        Ok(())
    }

    /// The line for a file with edits.
    fn shown(&self, path: &str, kind: ChangeKind) -> String {
        format!("{} ({})", self.place.dir.join(path).display(), kind.word())
    }

    /// Describes the edits that generating would overwrite, and how to keep them.
    fn loss(&self, by_hand: &[(RelPath, ChangeKind)]) -> String {
        let files: String = by_hand
            .iter()
            .map(|(path, kind)| format!("\n  {}", self.shown(path, *kind)))
            .collect();
        let is_unrecorded = by_hand
            .iter()
            .any(|(_, kind)| *kind == ChangeKind::Unrecorded);
        let (verb, note) = if is_unrecorded {
            (
                "could",
                format!(
                    "\n  note: {MANIFEST} records what was generated; it is committed with the other files"
                ),
            )
        } else {
            ("would", String::new())
        };
        let (these, them) = if by_hand.len() == 1 {
            ("this file", "it")
        } else {
            ("these files", "them")
        };
        let dir = &self.place.command;
        format!(
            "generating {verb} lose what was written by hand:{files}{note}\n  \
             help: move {these} elsewhere, then run: apiloom generate {dir}\n  \
             help: to overwrite {them} instead, run: apiloom generate {dir} --force"
        )
    }
}

/// The files of a plan with edits by hand.
fn by_hand(plan: &Plan) -> Vec<(RelPath, ChangeKind)> {
    plan.precious()
        .map(|change| (change.path.clone(), change.kind))
        .collect()
}
