//! `apiloom store`: checks, exports and imports the folder of an embedded store that no server has open, and migrates the
//! store of a running server.

use std::io::{self, BufWriter};
use std::path::PathBuf;

use apiloom_storage::Embedded;
use clap::{Args, Subcommand};

use crate::console::{Console, Failure};
use crate::migrate::{self, Migrate};

/// What to do with a store.
#[derive(Debug, Subcommand)]
pub(crate) enum Store {
    /// Verify every checksum and structure; exit with 1 if anything is damaged
    Check(Folder),
    /// Write every object to standard output, one JSON line each, and a last line that says that it is all
    Export(Folder),
    /// Fill a folder without a store from the lines of an export on standard input; revisions are kept
    Import(Folder),
    /// Rewrite the objects of a running server that it would store differently now, such as those of a former storage
    /// version; clients may read and write meanwhile. After an interruption, the next call continues
    Migrate(Migrate),
}

/// Where the store is.
#[derive(Debug, Args)]
pub(crate) struct Folder {
    /// The store's folder: `store` in the server's data folder
    dir: PathBuf,
}

/// Runs one of the commands.
pub(crate) fn run(command: &Store, console: &mut Console<'_>) -> Result<(), Failure> {
    match command {
        Store::Check(folder) => check(folder, console),
        Store::Export(folder) => export(folder, console),
        Store::Import(folder) => import(folder, console),
        Store::Migrate(flags) => migrate::run(flags, console),
    }
}

fn check(folder: &Folder, console: &mut Console<'_>) -> Result<(), Failure> {
    let checked = Embedded::check(&folder.dir).map_err(|error| error.to_string())?;
    for line in &checked.damage {
        console.say(line);
    }
    let count = checked.damage.len();
    if count > 0 {
        let complaint = format!("{} is damaged: {count} found", folder.dir.display());
        return Err(complaint.into());
    }
    console.say(format_args!(
        "{}: no damage; {} objects at revision {}, history after revision {}",
        folder.dir.display(),
        checked.objects,
        checked.revision,
        checked.compacted
    ));
    Ok(())
}

fn export(folder: &Folder, console: &mut Console<'_>) -> Result<(), Failure> {
    let mut out = BufWriter::new(&mut *console.out);
    let moved = Embedded::export(&folder.dir, &mut out).map_err(|error| error.to_string())?;
    drop(out);
    console.note(format_args!(
        "exported {} objects at revision {}",
        moved.objects, moved.revision
    ));
    Ok(())
}

fn import(folder: &Folder, console: &mut Console<'_>) -> Result<(), Failure> {
    let moved = Embedded::import(&folder.dir, &mut io::stdin().lock())
        .map_err(|error| error.to_string())?;
    console.note(format_args!(
        "imported {} objects at revision {}",
        moved.objects, moved.revision
    ));
    Ok(())
}
