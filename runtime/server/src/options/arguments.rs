//! The arguments of a server. They are read twice if need be: the flags of parts are known only when the program has made its builder, which
//! it makes of a configuration.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{ArgMatches, Command, CommandFactory as _, Error};

use super::{CommandLine, Options, Reading};
use crate::server::{Config, Part};

/// Reads the flags that only one command has.
type Extend = fn(&mut Config, &ArgMatches) -> Result<(), Error>;

/// The arguments of a server.
pub(crate) struct Arguments {
    name: String,
    command: Command,
    args: Vec<OsString>,
    extend: Extend,
}

impl Arguments {
    /// The arguments of a server called `name` with a package.
    pub(crate) fn of_package(name: &str, args: impl IntoIterator<Item = OsString>) -> Self {
        Self {
            name: name.to_owned(),
            command: Options::command(),
            args: args.into_iter().collect(),
            extend: |_, _| Ok(()),
        }
    }

    /// The arguments of `apiloom serve`.
    #[cfg(feature = "apis-apiextensions")]
    pub(crate) fn of_definitions(name: &str, args: impl IntoIterator<Item = OsString>) -> Self {
        use super::definitions;
        Self {
            name: name.to_owned(),
            command: definitions::command(),
            args: args.into_iter().collect(),
            extend: definitions::extend,
        }
    }

    /// Reads the arguments with the flags of these parts, which read theirs.
    pub(crate) fn read(&self, parts: &mut [Box<dyn Part>]) -> Reading {
        if self.args.get(1).is_some_and(|first| first == "__dump") {
            return Reading::of(Ok(CommandLine::Dump));
        }
        let command = self.command.clone();
        let command = parts
            .iter()
            .fold(command, |command, part| part.add_flags(command));
        Options::read(&self.name, command, self.args.clone(), |config, matches| {
            (self.extend)(config, matches)?;
            parts
                .iter_mut()
                .try_for_each(|part| part.read_flags(matches))
        })
    }

    /// The configuration of a server without flags, for a program whose flags cannot be read without those of its parts.
    pub(crate) fn default_config(&self) -> Config {
        Config::new(&self.name, PathBuf::from(format!("{}-data", self.name)))
    }
}
