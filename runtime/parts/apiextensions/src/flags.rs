//! The flags of a server without a package.

use std::path::PathBuf;

use clap::Args;

#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Definition flags")]
pub(crate) struct DefinitionFlags {
    /// CustomResourceDefinitions to install: files of YAML or JSON, folders of such files, or - for standard input. The server
    /// is ready when it serves their kinds. At the next start they are applied again; definitions that are no longer named
    /// stay, with their objects.
    #[arg(long, value_name = "PATH", num_args = 1..)]
    pub(crate) crds: Vec<PathBuf>,
}

#[cfg(test)]
mod tests {
    use apiloom_server::Part as _;
    use clap::Command;

    use super::*;
    use crate::CustomResources;

    #[test]
    fn only_a_part_with_flags_has_definitions_of_the_command_line() {
        let read = |mut part: CustomResources, args: &[&str]| {
            let command = part.add_flags(Command::new("srv"));
            let args = ["srv"].iter().chain(args);
            let matches = command.try_get_matches_from(args)?;
            part.read_flags(&matches)?;
            Ok::<_, clap::Error>(part.definitions)
        };
        let with_flags = || CustomResources::default().with_flags();
        let given = read(with_flags(), &["--crds", "a", "b.yaml", "--crds=-"]);
        assert_eq!(given.unwrap(), ["a", "b.yaml", "-"].map(PathBuf::from));
        assert!(read(with_flags(), &["--crds"]).is_err());
        assert!(read(CustomResources::default(), &["--crds=a"]).is_err());
    }
}
