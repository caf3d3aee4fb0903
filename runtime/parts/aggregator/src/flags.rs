//! Flags for requests to other API servers.

use std::path::PathBuf;

use clap::Args;

use super::problems::Problems;
use crate::server::TlsFiles;

#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Aggregation flags")]
pub(super) struct ProxyClientFlags {
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
    pub(super) fn files(self, problems: &mut Problems) -> Option<TlsFiles> {
        problems.check_pair(
            ("--proxy-client-cert-file", &self.proxy_client_cert_file),
            ("--proxy-client-key-file", &self.proxy_client_key_file),
        );
        Some(TlsFiles {
            certificate: self.proxy_client_cert_file?,
            private_key: self.proxy_client_key_file?,
        })
    }
}
