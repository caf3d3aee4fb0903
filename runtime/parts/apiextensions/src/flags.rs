//! The flags of a server without a package, besides those of generated servers.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{ArgMatches, Args, Command, CommandFactory as _, Error, FromArgMatches as _};

use super::{CommandLine, Options};
use crate::server::Config;

/// Flags of `apiloom serve`.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Definition flags")]
struct DefinitionFlags {
    /// CustomResourceDefinitions to install: files of YAML or JSON, folders of such files, or - for standard input. The server
    /// is ready when it serves their kinds. At the next start they are applied again; definitions that are no longer named
    /// stay, with their objects.
    #[arg(long, value_name = "PATH", num_args = 1..)]
    crds: Vec<PathBuf>,
    /// File to write the administrator's kubeconfig to [default: DATA_DIR/admin.kubeconfig]. A file that this server did not
    /// write is not overwritten.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
}

impl Options {
    /// As [`Options::parse`], with the flags of a server without a package, which is called as `apiloom serve`.
    ///
    /// # Errors
    /// As [`Options::parse`].
    pub fn parse_with_definitions(
        name: &str,
        args: impl IntoIterator<Item = OsString>,
    ) -> Result<CommandLine, Vec<String>> {
        let args = args.into_iter().collect();
        Self::read(name, command(), args, extend).result
    }
}

/// The command with the flags of `apiloom serve`.
pub(super) fn command() -> Command {
    DefinitionFlags::augment_args(Options::command()).bin_name("apiloom serve")
}

/// Reads the flags that only `apiloom serve` has.
pub(super) fn extend(config: &mut Config, matches: &ArgMatches) -> Result<(), Error> {
    let flags = DefinitionFlags::from_arg_matches(matches)?;
    config.crds = flags.crds;
    config.kubeconfig = flags.kubeconfig;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_without_a_package_has_further_flags() {
        let parse = |args: &[&str]| {
            let args = args.iter().copied().map(OsString::from);
            Options::parse_with_definitions("srv", args)
        };
        let args = [
            "srv",
            "--crds",
            "a",
            "b.yaml",
            "--secure_port=7",
            "--crds=-",
            "--kubeconfig",
            "k",
        ];
        let Ok(CommandLine::Serve(config)) = parse(&args) else {
            panic!()
        };
        assert_eq!(config.crds, ["a", "b.yaml", "-"].map(PathBuf::from));
        assert_eq!(config.kubeconfig, Some(PathBuf::from("k")));
        assert_eq!(config.secure_port, 7);
        let Ok(CommandLine::Print(help)) = parse(&["srv", "--help"]) else {
            panic!()
        };
        assert!(help.contains("Usage: apiloom serve [OPTIONS]"), "{help}");
        assert!(help.contains("Definition flags:"), "{help}");
        let generated = Options::parse("srv", ["srv", "--crds=a"].map(OsString::from));
        let refused = generated.expect_err("a flag of another command");
        let expected = "unexpected argument '--crds' found";
        assert!(refused[0].starts_with(expected), "{refused:?}");
        assert!(parse(&["srv", "--crds"]).is_err());
    }
}
