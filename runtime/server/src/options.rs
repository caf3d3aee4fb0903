//! Command line flags, named as kube-apiserver names its own. The only place that reads the environment.
//!
//! Flags become a plain [`Config`]; everything behind this file is told what to do by that value alone.

use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;

use clap::{Args, CommandFactory, FromArgMatches, Parser};

use crate::server::{Backend, Config, TlsFiles};

/// Every flag of a generated server, in groups.
#[derive(Clone, Debug, Parser)]
#[command(disable_help_subcommand = true)]
pub struct Options {
    #[command(flatten)]
    serving: SecureServing,
    #[command(flatten)]
    storage: Storage,
    #[command(flatten)]
    admission: AdmissionFlags,
    #[command(flatten)]
    api: ApiEnablement,
    #[command(flatten)]
    logs: Logs,
}

#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Secure serving flags")]
struct SecureServing {
    /// Address to listen on; 0.0.0.0 or :: for every interface.
    #[arg(long, value_name = "IP", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    bind_address: IpAddr,
    /// Port to serve HTTPS on; 0 picks a free one.
    #[arg(long, value_name = "PORT", default_value_t = 6443)]
    secure_port: u16,
    /// Folder of the serving certificate, which is made there when it is missing [default: DATA_DIR/pki].
    #[arg(long, value_name = "DIR")]
    cert_dir: Option<PathBuf>,
    /// Serving certificate in PEM form, intermediate certificates behind it.
    #[arg(long, value_name = "FILE", requires = "tls_private_key_file")]
    tls_cert_file: Option<PathBuf>,
    /// Private key of the serving certificate in PEM form.
    #[arg(long, value_name = "FILE", requires = "tls_cert_file")]
    tls_private_key_file: Option<PathBuf>,
}

#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Storage flags")]
struct Storage {
    /// Where objects are kept: in files below the data folder, or in memory only.
    #[arg(long, value_name = "NAME", default_value = "embedded")]
    storage_backend: String,
    /// Folder of the store, the certificates and admin.kubeconfig [default: NAME-data in the current folder].
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
}

#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Admission flags")]
struct AdmissionFlags {
    /// Admission plugins to leave out, by name.
    #[arg(long, value_name = "NAME,..", value_delimiter = ',')]
    disable_admission_plugins: Vec<String>,
}

#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "API enablement flags")]
struct ApiEnablement {
    /// Versions and resources to serve or not: GROUP/VERSION=false, GROUP/VERSION/RESOURCE=false, api/all=false.
    #[arg(long, value_name = "KEY=BOOL,..", value_delimiter = ',', value_parser = runtime_setting)]
    runtime_config: Vec<(String, bool)>,
}

#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Logs flags")]
struct Logs {
    /// How much to log to stderr: 0 warnings, 1 what happens to the server, 2 every request, 4 and up for debugging.
    #[arg(short = 'v', long = "v", value_name = "LEVEL", default_value_t = 0)]
    verbosity: u8,
}

fn runtime_setting(text: &str) -> Result<(String, bool), String> {
    let (key, value) = text.split_once('=').unwrap_or((text, "true"));
    match value {
        "true" => Ok((key.to_owned(), true)),
        "false" => Ok((key.to_owned(), false)),
        other => Err(format!("{other:?} is neither true nor false")),
    }
}

/// What the command line asks for.
#[derive(Debug)]
pub enum Parsed {
    /// Serve with these options.
    Serve(Box<Options>),
    /// Print this text and end well (`--help`, `--version`).
    Print(String),
    /// Print the documents of the compiled kinds as JSON (the second phase of `apiloom generate`).
    Dump,
}

impl Options {
    /// Reads the arguments of a server called `name`. Underscores in flag names are read as dashes, as kube-apiserver
    /// does.
    ///
    /// # Errors
    /// The text to print when an argument is unknown or malformed.
    pub fn parse(name: &str, args: impl IntoIterator<Item = OsString>) -> Result<Parsed, String> {
        let args: Vec<OsString> = args.into_iter().map(dashes).collect();
        if args.get(1).is_some_and(|first| first == "__dump") {
            return Ok(Parsed::Dump);
        }
        let command = Self::command()
            .name(name.to_owned())
            .version(env!("CARGO_PKG_VERSION"));
        let matches = match command.try_get_matches_from(args) {
            Ok(matches) => matches,
            Err(error) if !error.use_stderr() => {
                return Ok(Parsed::Print(error.render().to_string()));
            }
            Err(error) => return Err(error.render().to_string()),
        };
        Self::from_arg_matches(&matches)
            .map(|options| Parsed::Serve(Box::new(options)))
            .map_err(|error| error.to_string())
    }

    /// The configuration of a server called `name`.
    ///
    /// # Errors
    /// One line for a storage backend that does not exist.
    pub fn into_config(self, name: &str) -> Result<Config, String> {
        let data_dir = self
            .storage
            .data_dir
            .unwrap_or_else(|| PathBuf::from(format!("{name}-data")));
        let backend = Backend::from_name(&self.storage.storage_backend)?;
        let tls_files = match (
            self.serving.tls_cert_file,
            self.serving.tls_private_key_file,
        ) {
            (Some(certificate), Some(private_key)) => Some(TlsFiles {
                certificate,
                private_key,
            }),
            _ => None,
        };
        Ok(Config {
            name: name.to_owned(),
            bind_address: self.serving.bind_address,
            secure_port: self.serving.secure_port,
            cert_dir: self
                .serving
                .cert_dir
                .unwrap_or_else(|| data_dir.join("pki")),
            tls_files,
            backend,
            data_dir,
            disabled_admission: self.admission.disable_admission_plugins,
            runtime_config: self.api.runtime_config,
            verbosity: self.logs.verbosity,
        })
    }
}

/// `--secure_port=1` becomes `--secure-port=1`; values are left alone.
fn dashes(arg: OsString) -> OsString {
    let Some(text) = arg.to_str().filter(|text| text.starts_with("--")) else {
        return arg;
    };
    let (flag, value) = text
        .split_once('=')
        .map_or((text, None), |(flag, value)| (flag, Some(value)));
    let flag = flag.replace('_', "-");
    OsString::from(value.map_or(flag.clone(), |value| format!("{flag}={value}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(args: &[&str]) -> Result<Config, String> {
        let args = std::iter::once("srv")
            .chain(args.iter().copied())
            .map(OsString::from);
        match Options::parse("srv", args)? {
            Parsed::Serve(options) => options.into_config("srv"),
            other => Err(format!("{other:?}")),
        }
    }

    #[test]
    fn defaults_are_local_embedded_and_below_one_folder() {
        let config = config(&[]).unwrap();
        assert_eq!(
            (config.bind_address.to_string().as_str(), config.secure_port),
            ("127.0.0.1", 6443)
        );
        assert_eq!(config.backend, Backend::Embedded);
        assert_eq!(config.data_dir, PathBuf::from("srv-data"));
        assert_eq!(config.cert_dir, PathBuf::from("srv-data/pki"));
    }

    #[test]
    fn underscores_in_flag_names_are_dashes() {
        assert_eq!(
            config(&["--secure_port=7000", "--data_dir", "a_b"])
                .unwrap()
                .data_dir,
            PathBuf::from("a_b")
        );
    }

    #[test]
    fn an_unknown_backend_lists_the_valid_ones() {
        let error = config(&["--storage-backend=nope"]).unwrap_err();
        assert_eq!(
            error,
            "unknown storage backend \"nope\"; --storage-backend takes one of: embedded, memory"
        );
    }

    #[test]
    fn a_certificate_without_its_key_is_refused() {
        assert!(
            config(&["--tls-cert-file=a.pem"])
                .unwrap_err()
                .contains("--tls-private-key-file")
        );
    }

    #[test]
    fn runtime_config_takes_true_false_or_nothing() {
        let config = config(&["--runtime-config=a/v1=false,b/v1"]).unwrap();
        assert_eq!(
            config.runtime_config,
            [("a/v1".to_owned(), false), ("b/v1".to_owned(), true)]
        );
        assert!(super::runtime_setting("a=1").is_err());
    }

    #[test]
    fn help_has_a_heading_for_every_group() {
        let Ok(Parsed::Print(help)) = Options::parse("srv", ["srv", "--help"].map(OsString::from))
        else {
            panic!()
        };
        for heading in [
            "Secure serving flags:",
            "Storage flags:",
            "Admission flags:",
            "API enablement flags:",
            "Logs flags:",
        ] {
            assert!(help.contains(heading), "{heading} is missing in {help}");
        }
    }
}
