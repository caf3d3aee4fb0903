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

    /// The configuration by the flags that can be read without those of the program's parts.
    pub(crate) fn known_config(&self) -> Config {
        let known = Options::without_problems(&self.name, self.command.clone(), self.args.clone());
        known.unwrap_or_else(|| self.default_config())
    }

    /// The configuration of a server without flags.
    pub(crate) fn default_config(&self) -> Config {
        Config::new(&self.name, PathBuf::from(format!("{}-data", self.name)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The arguments of a program whose part has the flag `--shelves`.
    fn arguments(args: &[&str]) -> Arguments {
        let args = ["srv"].iter().chain(args).map(OsString::from);
        Arguments::of_package("srv", args)
    }

    #[test]
    fn the_flags_of_the_server_are_known_before_those_of_parts() {
        for args in [
            &["-v", "2", "--shelves=3", "--secure-port=7"][..],
            &["--shelves", "3", "-v2", "--secure_port", "7"],
            &["print-chain", "--secure-port=7", "--shelves", "--v=2"],
        ] {
            let arguments = arguments(args);
            let first = arguments.read(&mut []);
            assert!(first.lacks_flags && first.result.is_err(), "{args:?}");
            let known = arguments.known_config();
            assert_eq!((known.verbosity, known.secure_port), (2, 7), "{args:?}");
        }
        for args in [&["--help"][..], &["--storage-backend=none", "--shelves=3"]] {
            let arguments = arguments(args);
            assert!(arguments.read(&mut []).lacks_flags, "{args:?}");
            let known = arguments.known_config();
            assert_eq!(known.secure_port, arguments.default_config().secure_port);
        }
    }
}
