//! Flags for requests to other API servers.

use std::path::PathBuf;

use apiloom_server::server::TlsFiles;
use clap::error::ErrorKind;
use clap::{Args, Error};

#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Aggregation flags")]
pub(crate) struct ProxyClientFlags {
    /// File with the client certificate of this server in PEM format, for the servers behind APIServices: by it these know that
    /// the users named in its requests are authenticated.
    #[arg(long, value_name = "FILE")]
    proxy_client_cert_file: Option<PathBuf>,
    /// File with the private key of the client certificate in PEM format.
    #[arg(long, value_name = "FILE")]
    proxy_client_key_file: Option<PathBuf>,
}

impl ProxyClientFlags {
    /// The files, if the flags for them are set.
    ///
    /// # Errors
    /// If only one is set.
    pub(crate) fn files(self) -> Result<Option<TlsFiles>, Error> {
        let (cert, key) = ("--proxy-client-cert-file", "--proxy-client-key-file");
        let lacks = |given, missing| {
            let problem = format!("{given} requires {missing}");
            Err(Error::raw(ErrorKind::MissingRequiredArgument, problem))
        };
        match (self.proxy_client_cert_file, self.proxy_client_key_file) {
            (Some(certificate), Some(private_key)) => Ok(Some(TlsFiles {
                certificate,
                private_key,
            })),
            (Some(_), None) => lacks(cert, key),
            (None, Some(_)) => lacks(key, cert),
            (None, None) => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::{Command, FromArgMatches as _};

    use super::*;

    #[test]
    fn a_certificate_without_its_key_is_refused() {
        let files = |args: &[&str]| {
            let command = ProxyClientFlags::augment_args(Command::new("srv"));
            let args = ["srv"].iter().chain(args);
            let matches = command.get_matches_from(args);
            ProxyClientFlags::from_arg_matches(&matches).and_then(ProxyClientFlags::files)
        };
        let (cert, key) = ("--proxy-client-cert-file=c", "--proxy-client-key-file=k");
        assert!(files(&[cert, key]).unwrap().is_some());
        assert_eq!(files(&[]).unwrap(), None);
        let refused = files(&[cert]).unwrap_err().to_string();
        let expected = "--proxy-client-cert-file requires --proxy-client-key-file";
        assert!(refused.contains(expected), "{refused}");
        assert!(files(&[key]).is_err());
    }
}
