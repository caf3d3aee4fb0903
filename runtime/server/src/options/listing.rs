//! The subcommands that print what a server is made of. They take the flags of the server too: what it serves depends on them.

use std::ffi::OsString;
use std::str::FromStr;

use clap::{ArgMatches, Args, Command, Error, FromArgMatches as _};

/// A list of what a server is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listing {
    /// The filters that a request passes: `print-chain`.
    Chain,
    /// The paths that are served: `print-routes`.
    Routes,
}

impl Listing {
    const ALL: [Self; 2] = [Self::Chain, Self::Routes];

    fn name(self) -> &'static str {
        match self {
            Self::Chain => "print-chain",
            Self::Routes => "print-routes",
        }
    }

    fn about(self) -> &'static str {
        match self {
            Self::Chain => {
                "Print the filters that a request passes, in their order, and the parts that brought them"
            }
            Self::Routes => {
                "Print the paths that are served, in the order in which a request is matched, and the parts that brought them"
            }
        }
    }

    /// Takes the subcommand out of the arguments of a program, if there is one.
    pub(super) fn take(args: &mut Vec<OsString>) -> Option<Self> {
        let first = args.get(1)?;
        let listing = Self::ALL
            .into_iter()
            .find(|listing| first == listing.name())?;
        args.remove(1);
        Some(listing)
    }
}

/// The format of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListFormat {
    /// Columns with a header.
    Text,
    /// A JSON document.
    Json,
}

impl FromStr for ListFormat {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "text" => Ok(Self::Text),
            "json" => Ok(Self::Json),
            _ => Err("it must be text or json".to_owned()),
        }
    }
}

impl ListFormat {
    /// The format that the arguments of a subcommand ask for.
    pub(super) fn of_matches(matches: &ArgMatches) -> Result<Self, Error> {
        OutputFlags::from_arg_matches(matches).map(|flags| flags.output)
    }
}

#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Output flags")]
struct OutputFlags {
    /// Output format: text, columns with a header; or json.
    #[arg(short = 'o', long, value_name = "FORMAT", default_value = "text")]
    output: ListFormat,
}

/// The command of a server with a subcommand; without one its help names them.
pub(super) fn command(server: Command, listing: Option<Listing>) -> Command {
    let Some(listing) = listing else {
        let lines =
            Listing::ALL.map(|listing| format!("  {:<14}{}\n", listing.name(), listing.about()));
        return server.after_help(format!("Commands:\n{}", lines.concat()));
    };
    let program = server
        .get_bin_name()
        .unwrap_or(server.get_name())
        .to_owned();
    OutputFlags::augment_args(server)
        .bin_name(format!("{program} {}", listing.name()))
        .about(listing.about())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::{CommandLine, Options};

    fn parse(args: &[&str]) -> Result<CommandLine, Vec<String>> {
        let args = ["srv"].iter().chain(args).map(OsString::from);
        Options::parse("srv", args)
    }

    #[test]
    fn a_subcommand_takes_the_flags_of_the_server_and_a_format() {
        for (args, expected) in [
            (&["print-chain"][..], (Listing::Chain, ListFormat::Text)),
            (
                &["print-routes", "-o", "json"],
                (Listing::Routes, ListFormat::Json),
            ),
            (
                &["print-routes", "-ojson", "--secure_port=7"],
                (Listing::Routes, ListFormat::Json),
            ),
        ] {
            let Ok(CommandLine::List {
                listing,
                format,
                config,
            }) = parse(args)
            else {
                panic!("{args:?}")
            };
            assert_eq!((listing, format), expected);
            let is_given = args.contains(&"--secure_port=7");
            assert_eq!(config.secure_port == 7, is_given, "{args:?}");
        }
    }

    #[test]
    fn wrong_arguments_of_a_subcommand_are_all_told() {
        let refused = parse(&["print-routes", "-o", "xml", "--secure-port=x", "now"]).unwrap_err();
        assert_eq!(
            refused,
            [
                "invalid value 'xml' for '--output <FORMAT>': it must be text or json",
                "invalid value 'x' for '--secure-port <PORT>': invalid digit found in string",
                "unexpected argument 'now' found",
            ]
        );
        // The format is a flag of the subcommands alone, and these come first.
        for args in [
            &["-o", "json"][..],
            &["--secure-port=7", "print-chain"],
            &["print-chain", "print-chain"],
        ] {
            let refused = parse(args).unwrap_err();
            assert!(refused[0].starts_with("unexpected argument"), "{refused:?}");
        }
    }

    #[test]
    fn help_names_the_subcommands() {
        let help = |args: &[&str]| match parse(args) {
            Ok(CommandLine::Print(help)) => help,
            other => panic!("{other:?}"),
        };
        let of_server = help(&["--help"]);
        assert!(of_server.contains("\n  print-chain   Print"), "{of_server}");
        let own = help(&["print-routes", "--help"]);
        assert!(own.contains("Usage: srv print-routes [OPTIONS]"), "{own}");
        assert!(own.contains("Output flags:"), "{own}");
        assert!(!own.contains("Commands:"), "{own}");
    }
}
