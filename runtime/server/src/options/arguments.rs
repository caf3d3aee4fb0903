//! The arguments of a server. They are read twice if need be: the flags of parts are known only when the program has made its builder, which
//! it makes of a configuration.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{ArgMatches, Args, Command, CommandFactory as _, Error, FromArgMatches as _};

use super::{CommandLine, Options, Reading};
use crate::server::{Config, Part};

/// Flags of a server without a package.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Definition flags")]
struct CommandFlags {
    /// File to write the administrator's kubeconfig to [default: DATA_DIR/admin.kubeconfig]. A file that this server did not
    /// write is not overwritten.
    // Behind the flags of parts.
    #[arg(long, value_name = "FILE", display_order = 1000)]
    kubeconfig: Option<PathBuf>,
}

/// The arguments of a server.
pub(crate) struct Arguments {
    name: String,
    /// The name of a command without a package.
    command: Option<&'static str>,
    args: Vec<OsString>,
}

impl Arguments {
    /// The arguments of a server called `name`. `command` is that of one without a package.
    pub(crate) fn new(
        name: &str,
        command: Option<&'static str>,
        args: impl IntoIterator<Item = OsString>,
    ) -> Self {
        Self {
            name: name.to_owned(),
            command,
            args: args.into_iter().collect(),
        }
    }

    /// Reads the arguments with the flags of these parts, which read theirs.
    pub(crate) fn read(&self, parts: &mut [Box<dyn Part>]) -> Reading {
        if self.args.get(1).is_some_and(|first| first == "__dump") {
            return Reading::of(Ok(CommandLine::Dump));
        }
        let command = self.command(parts);
        Options::read(&self.name, command, self.args.clone(), |config, matches| {
            let own = self.read_own(config, matches).err();
            let of_parts = parts.iter_mut();
            let of_parts = of_parts.filter_map(|part| part.read_flags(matches).err());
            own.into_iter().chain(of_parts).collect()
        })
    }

    /// The configuration by the flags that can be read with those of these parts alone.
    pub(crate) fn known_config(&self, parts: &[Box<dyn Part>]) -> Config {
        let known = Options::without_problems(&self.name, self.command(parts), self.args.clone());
        known.unwrap_or_else(|| self.default_config())
    }

    /// The configuration of a server without flags.
    pub(crate) fn default_config(&self) -> Config {
        Config::new(&self.name, PathBuf::from(format!("{}-data", self.name)))
    }

    /// The command with the flags of the server and of these parts.
    fn command(&self, parts: &[Box<dyn Part>]) -> Command {
        let mut command = Options::command();
        if let Some(name) = self.command {
            command = CommandFlags::augment_args(command).bin_name(name);
        }
        // A group of flags brings what its own comment says, too.
        let about = command.get_about().cloned().unwrap_or_default();
        let command = parts
            .iter()
            .fold(command, |command, part| part.add_flags(command));
        with_controllers(command.about(about).long_about(None::<&'static str>), parts)
    }

    /// Reads the flags that only a server without a package has.
    fn read_own(&self, config: &mut Config, matches: &ArgMatches) -> Result<(), Error> {
        if self.command.is_some() {
            config.kubeconfig = CommandFlags::from_arg_matches(matches)?.kubeconfig;
        }
        Ok(())
    }
}

/// Names the controllers of parts in the help of `--controllers`.
fn with_controllers(command: Command, parts: &[Box<dyn Part>]) -> Command {
    let named = parts.iter().filter_map(|part| part.controller());
    let named: Vec<_> = named
        .map(|(name, meaning)| format!("{name}, which {meaning}"))
        .collect();
    if named.is_empty() {
        return command;
    }
    let names = named.join(", and ");
    command.mut_arg("controllers", |flag| {
        let help = flag.get_help().map(ToString::to_string).unwrap_or_default();
        flag.help(format!("{help}. The names are {names}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The arguments of a program whose part has the flag `--shelves`.
    fn arguments(args: &[&str]) -> Arguments {
        let args = ["srv"].iter().chain(args).map(OsString::from);
        Arguments::new("srv", None, args)
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
            let known = arguments.known_config(&[]);
            assert_eq!((known.verbosity, known.secure_port), (2, 7), "{args:?}");
        }
        for args in [&["--help"][..], &["--storage-backend=none", "--shelves=3"]] {
            let arguments = arguments(args);
            assert!(arguments.read(&mut []).lacks_flags, "{args:?}");
            let known = arguments.known_config(&[]);
            assert_eq!(known.secure_port, arguments.default_config().secure_port);
        }
    }

    #[test]
    fn a_server_without_a_package_has_a_flag_more() {
        let read = |args: &[&str]| {
            let args = args.iter().map(OsString::from);
            Arguments::new("srv", Some("do serve"), args).read(&mut [])
        };
        let args = ["srv", "--kubeconfig", "k", "--secure_port=7"];
        let Ok(CommandLine::Serve(config)) = read(&args).result else {
            panic!()
        };
        assert_eq!(config.kubeconfig, Some(PathBuf::from("k")));
        assert_eq!(config.secure_port, 7);
        let Ok(CommandLine::Print(help)) = read(&["srv", "--help"]).result else {
            panic!()
        };
        assert!(help.contains("Usage: do serve [OPTIONS]"), "{help}");
        assert!(help.contains("Definition flags:"), "{help}");
        let refused = arguments(&["--kubeconfig=k"]).read(&mut []).result;
        let refused = refused.expect_err("a flag of another command");
        let expected = "unexpected argument '--kubeconfig' found";
        assert!(refused[0].starts_with(expected), "{refused:?}");
    }

    /// A part with a controller, and with a flag that needs another one.
    struct Shelves;

    impl Part for Shelves {
        fn name(&self) -> &'static str {
            "shelves"
        }

        fn controller(&self) -> Option<(&'static str, &'static str)> {
            Some(("shelf-controller", "fills shelves"))
        }

        fn add_flags(&self, command: Command) -> Command {
            let flags = ["shelves", "rooms"].map(|name| clap::Arg::new(name).long(name));
            command.args(flags).about("Shelves.")
        }

        fn read_flags(&mut self, matches: &ArgMatches) -> Result<(), Error> {
            if matches.contains_id("shelves") && !matches.contains_id("rooms") {
                let problem = "--shelves requires --rooms";
                return Err(Error::raw(
                    clap::error::ErrorKind::MissingRequiredArgument,
                    problem,
                ));
            }
            Ok(())
        }

        fn register(self: Box<Self>, builder: crate::server::Builder) -> crate::server::Builder {
            builder
        }
    }

    #[test]
    fn problems_of_parts_are_told_with_all_others() {
        let read = |args: &[&str]| arguments(args).read(&mut [Box::new(Shelves)]).result;
        assert_eq!(
            read(&["--shelves=3", "--storage-backend=nope"]).unwrap_err(),
            [
                "unknown storage backend \"nope\"; --storage-backend takes one of: embedded, memory, etcd",
                "--shelves requires --rooms",
            ]
        );
        // A flag with a malformed value is not reported as missing.
        let refused = read(&["--shelves=3", "--rooms"]).unwrap_err();
        assert_eq!(refused.len(), 1, "{refused:?}");
        assert!(read(&["--shelves=3", "--rooms=2"]).is_ok());
    }

    #[test]
    fn help_names_the_controllers_of_parts_and_is_about_the_server() {
        let Ok(CommandLine::Print(help)) =
            arguments(&["--help"]).read(&mut [Box::new(Shelves)]).result
        else {
            panic!()
        };
        let names = "The names are shelf-controller, which fills shelves [default";
        let words = help.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains(names), "{help}");
        assert!(!help.contains("Shelves."), "{help}");
    }
}
