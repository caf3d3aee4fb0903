//! Command line flags, with the names of kube-apiserver. The only module that reads the environment.
//!
//! Flags are converted to a plain [`Config`]; the rest of the server depends on that value only. One file, because each flag is
//! declared, checked and converted here, and a new one is seen in all three places.

pub(crate) mod arguments;
mod listing;
mod problems;

use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use apiloom_http::request::timeout::parse_duration;
use apiloom_registry::{
    DEFAULT_DELETE_COLLECTION_WORKERS, DEFAULT_MAX_OBJECT_BYTES, EmulationVersion,
    StorageMediaType, default_history_bytes, default_max_definition_bytes,
};
use apiloom_storage::Retention;
use clap::{ArgAction, ArgMatches, Args, Command, CommandFactory, Error, FromArgMatches, Parser};

pub use self::listing::{ListFormat, Listing};
use self::problems::Problems;
use crate::server::{
    Backend, Config, ControllerNames, Endpoints, EtcdOptions, EtcdOverride, GoawayChance, TlsFiles,
    WatchCacheSize,
};

/// All flags of a generated server, in groups.
#[derive(Clone, Debug, Parser)]
#[command(disable_help_subcommand = true)]
pub struct Options {
    #[command(flatten)]
    generic: GenericFlags,
    #[command(flatten)]
    serving: SecureServingFlags,
    #[command(flatten)]
    storage: StorageFlags,
    #[command(flatten)]
    etcd: EtcdFlags,
    #[command(flatten)]
    watch_cache: WatchCacheFlags,
    #[command(flatten)]
    admission: AdmissionFlags,
    #[command(flatten)]
    api: ApiEnablementFlags,
    #[command(flatten)]
    controllers: ControllerFlags,
    #[command(flatten)]
    logs: LogFlags,
}

#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Generic flags")]
struct GenericFlags {
    /// Maximum number of non-mutating requests in flight at a given time, without watches; further requests are
    /// rejected with 429. 0 for no limit.
    #[arg(long, value_name = "NUMBER", default_value_t = 400)]
    max_requests_inflight: usize,
    /// Maximum number of mutating requests in flight at a given time; further requests are rejected with 429. 0 for no
    /// limit.
    #[arg(long, value_name = "NUMBER", default_value_t = 200)]
    max_mutating_requests_inflight: usize,
    /// Maximum size of an object in bytes of JSON; larger writes are rejected with 413. 0 for no limit.
    #[arg(long, value_name = "BYTES", default_value_t = DEFAULT_MAX_OBJECT_BYTES)]
    max_object_bytes: usize,
    /// Maximum memory that all CustomResourceDefinitions together may make the server keep, in bytes, estimated from their
    /// schemas; further ones are rejected with 403. The default is an eighth of the memory that the process may have, and no more
    /// than 512 MiB.
    #[arg(long, value_name = "BYTES", default_value_t = default_max_definition_bytes())]
    max_definition_bytes: usize,
    /// Number of objects that a deletecollection request deletes at the same time.
    #[arg(long, value_name = "NUMBER", default_value_t = DEFAULT_DELETE_COLLECTION_WORKERS)]
    delete_collection_workers: NonZeroUsize,
    /// Time for which events are kept after their last write. 0 for ever. Only servers that serve events use it.
    #[arg(long, value_name = "DURATION", default_value = "1h0m0s", value_parser = interval)]
    event_ttl: Duration,
    /// Namespaces that the server creates beside default, when it starts and again when they are gone; empty for none. Without
    /// the flag kube-system, kube-public and kube-node-lease where built-in kinds are served.
    #[arg(long, value_name = "NAME,..", value_parser = namespace_names)]
    system_namespaces: Option<NamespaceNames>,
    /// Time after which a request is ended with 504, unless it is long-running, such as a watch. A request can ask for less
    /// by its parameter `timeout`.
    #[arg(long, value_name = "DURATION", default_value = "1m0s", value_parser = positive_interval)]
    request_timeout: Duration,
    /// Time between the signal to stop and the end of new connections. All requests are answered in it, but /readyz
    /// fails, so that load balancers can go elsewhere.
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = interval)]
    shutdown_delay_duration: Duration,
    /// Fraction of HTTP/2 requests, chosen at random, that are answered with GOAWAY, so that clients reconnect and are
    /// balanced over several servers: 0 (off) to 0.02. Their other requests in flight are not affected.
    #[arg(long, value_name = "FRACTION", default_value = "0")]
    goaway_chance: GoawayChance,
    /// File with the addresses of services, such as conversion webhooks, for servers outside of a cluster: in YAML, a map of
    /// NAMESPACE/NAME:PORT to https://HOST:PORT [default: the DNS names of a cluster, NAME.NAMESPACE.svc].
    #[arg(long, value_name = "FILE")]
    service_resolver: Option<PathBuf>,
}

#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Secure serving flags")]
struct SecureServingFlags {
    /// IP address on which to listen for --secure-port; 0.0.0.0 or :: for all interfaces.
    #[arg(long, value_name = "IP", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST), value_parser = address)]
    bind_address: IpAddr,
    /// Port on which to serve HTTPS; 0 for a free one.
    #[arg(long, value_name = "PORT", default_value_t = 6443)]
    secure_port: u16,
    /// Directory of the serving certificate; a self-signed one is generated there if it is missing [default:
    /// DATA_DIR/pki].
    #[arg(long, value_name = "DIR")]
    cert_dir: Option<PathBuf>,
    /// File with the serving certificate in PEM format, followed by intermediate certificates.
    #[arg(long, value_name = "FILE")]
    tls_cert_file: Option<PathBuf>,
    /// File with the private key of the serving certificate in PEM format.
    #[arg(long, value_name = "FILE")]
    tls_private_key_file: Option<PathBuf>,
}

impl SecureServingFlags {
    /// The files of the serving certificate, if the flags for them are set.
    fn tls_files(&self, problems: &mut Problems) -> Option<TlsFiles> {
        let (certificate, private_key) = (&self.tls_cert_file, &self.tls_private_key_file);
        problems.check_pair(
            ("--tls-cert-file", certificate),
            ("--tls-private-key-file", private_key),
        );
        Some(TlsFiles {
            certificate: certificate.clone()?,
            private_key: private_key.clone()?,
        })
    }
}

#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Storage flags")]
struct StorageFlags {
    /// Storage backend: embedded, in files below the data directory; memory; or etcd, which several servers can share
    /// [default: embedded, or etcd if --etcd-servers is set].
    #[arg(long, value_name = "NAME")]
    storage_backend: Option<String>,
    /// Directory of the embedded store, the certificates and admin.kubeconfig [default: NAME-data in the current
    /// directory].
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Maximum size of the history of the embedded store for watches and exact lists, in bytes. Above it the oldest
    /// changes are compacted, even if they are younger than 5 minutes or among the last 10000.
    #[arg(long, value_name = "BYTES", default_value_t = Retention::default().max_bytes)]
    embedded_history_bytes: u64,
    /// Media type in which objects are stored: application/json or application/vnd.kubernetes.protobuf. Kinds whose fields
    /// have no numbers, and objects that Protobuf cannot express exactly, are stored as JSON. Stored objects of both media
    /// types are read, so it can be changed; an object gets the new one with its next write. A release whose kind has no
    /// numbers yet cannot read Protobuf: set it when all servers of the store have them. Groups with --emulation-version are
    /// stored as JSON, which every release reads.
    #[arg(long, value_name = "TYPE", default_value = StorageMediaType::Json.as_str())]
    storage_media_type: String,
}

#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Etcd flags")]
struct EtcdFlags {
    /// List of etcd servers to connect with (scheme://host:port), the preferred one first.
    #[arg(long, value_name = "URL,..", value_delimiter = ',')]
    etcd_servers: Vec<String>,
    /// Etcd servers for single resources: GROUP/RESOURCE#URL;URL.
    #[arg(long, value_name = "RESOURCE#URL;..,..", value_delimiter = ',')]
    etcd_servers_overrides: Vec<EtcdOverride>,
    /// Prefix of all keys in the store.
    #[arg(long, value_name = "PATH", default_value = "/registry")]
    etcd_prefix: String,
    /// File with the certificate authority of etcd's servers in PEM format; required for https.
    #[arg(long, value_name = "FILE")]
    etcd_cafile: Option<PathBuf>,
    /// File with the client certificate for etcd in PEM format.
    #[arg(long, value_name = "FILE")]
    etcd_certfile: Option<PathBuf>,
    /// File with the private key of the client certificate in PEM format.
    #[arg(long, value_name = "FILE")]
    etcd_keyfile: Option<PathBuf>,
    /// Interval of compaction requests to etcd, and minimum age of the history that they remove; several servers share
    /// one schedule. 0 disables the requests of this server.
    #[arg(long, value_name = "DURATION", default_value = "5m0s", value_parser = interval)]
    etcd_compaction_interval: Duration,
}

impl EtcdFlags {
    /// The backend with this name, or the default one; `None` for an unknown name.
    fn backend(&self, name: Option<&str>, problems: &mut Problems) -> Option<Backend> {
        let usual = if self.etcd_servers.is_empty() {
            "embedded"
        } else {
            "etcd"
        };
        match Backend::from_name(name.unwrap_or(usual)) {
            Ok(Backend::Etcd) if self.etcd_servers.is_empty() => {
                problems.require("--etcd-servers", "--etcd-servers must be specified");
                Some(Backend::Etcd)
            }
            Ok(backend) => Some(backend),
            Err(problem) => {
                problems.add(problem);
                None
            }
        }
    }

    /// Checks for flags that require each other.
    fn check(&self, problems: &mut Problems) {
        problems.check_pair(
            ("--etcd-certfile", &self.etcd_certfile),
            ("--etcd-keyfile", &self.etcd_keyfile),
        );
    }

    /// The prefix as a path, with a leading slash and without a trailing one.
    fn prefix(&self) -> String {
        let path = self.etcd_prefix.trim_matches('/');
        let slash = if path.is_empty() { "" } else { "/" };
        format!("{slash}{path}")
    }

    fn into_options(self) -> EtcdOptions {
        EtcdOptions {
            servers: self.etcd_servers,
            servers_overrides: self.etcd_servers_overrides,
            ca_file: self.etcd_cafile,
            cert_file: self.etcd_certfile,
            key_file: self.etcd_keyfile,
            compaction_interval: Some(self.etcd_compaction_interval)
                .filter(|interval| !interval.is_zero()),
        }
    }
}

#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Watch cache flags")]
struct WatchCacheFlags {
    /// Enable watch caches, which answer reads and watches from memory. If false, they go to the store.
    #[arg(long, value_name = "BOOL", default_value_t = true, action = ArgAction::Set)]
    watch_cache: bool,
    /// Memory limit for the history of all watch caches together, in bytes; watches resume from it. The default is a
    /// sixteenth of the memory that the process may have, and no more than 64 MiB.
    #[arg(long, value_name = "BYTES", default_value_t = default_history_bytes())]
    watch_cache_history_bytes: usize,
    /// Watch cache sizes of single resources, in changes (102400 by default): RESOURCE.GROUP#SIZE, or RESOURCE#SIZE
    /// for the core group. 0 disables the cache of a resource.
    #[arg(long, value_name = "RESOURCE.GROUP#SIZE,..", value_delimiter = ',')]
    watch_cache_sizes: Vec<WatchCacheSize>,
}

#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Admission flags")]
struct AdmissionFlags {
    /// Names of admission plugins to disable.
    #[arg(long, value_name = "NAME,..", value_delimiter = ',')]
    disable_admission_plugins: Vec<String>,
}

#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "API enablement flags")]
struct ApiEnablementFlags {
    /// Versions and resources to enable or disable: GROUP/VERSION=true, GROUP/VERSION/RESOURCE=false, and api/all, api/ga,
    /// api/beta or api/alpha for all versions, or those of one stability. The more specific setting wins. Without one, a
    /// version is enabled unless its kind says otherwise.
    #[arg(long, value_name = "KEY=BOOL,..", value_delimiter = ',', value_parser = runtime_setting)]
    runtime_config: Vec<(String, bool)>,
    /// Earlier release that the server behaves as, for an upgrade that can be rolled back: MAJOR.MINOR for all groups with a
    /// release, or GROUP=MAJOR.MINOR. Versions of kinds that it does not have are neither served nor stored,
    /// and objects are stored as JSON. Stored objects of these groups cannot be migrated meanwhile.
    #[arg(
        long,
        visible_alias = "emulated-version",
        value_name = "[GROUP=]X.Y,..",
        value_delimiter = ','
    )]
    emulation_version: Vec<EmulationVersion>,
}

#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Controller flags")]
struct ControllerFlags {
    // The help goes on with the names of the controllers that parts have.
    /// Controllers to run in the server: `*` for all, NAME for one, -NAME for all but one.
    #[arg(long, value_name = "NAME,..", default_value_t = ControllerNames::default(), allow_hyphen_values = true)]
    controllers: ControllerNames,
}

#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Logs flags")]
struct LogFlags {
    /// Log verbosity: 0 warnings, 1 start and stop, 2 every request, 4 to 10 for debugging.
    #[arg(short = 'v', long = "v", value_name = "LEVEL", default_value_t = 0)]
    verbosity: u8,
}

/// The value of a flag that lists namespaces, which may be empty.
#[derive(Clone, Debug)]
struct NamespaceNames(Vec<String>);

fn namespace_names(text: &str) -> Result<NamespaceNames, String> {
    let names: Vec<String> = text
        .split(',')
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect();
    let wrong = names
        .iter()
        .find_map(|name| Some((name, apiloom_meta::names::dns_label(name).pop()?)));
    match wrong {
        None => Ok(NamespaceNames(names)),
        Some((name, why)) => Err(format!("{name:?} is not the name of a namespace: {why}")),
    }
}

/// A duration of a flag, such as `5m0s` or `30s`.
///
/// # Errors
/// What it should be.
pub fn interval(text: &str) -> Result<Duration, String> {
    let interval = parse_duration(text).filter(|_| !text.starts_with('-'));
    interval.ok_or_else(|| format!("{text:?} is not a duration such as 5m0s or 30s"))
}

fn positive_interval(text: &str) -> Result<Duration, String> {
    let is_positive = |interval: &Duration| !interval.is_zero();
    let interval = interval(text).ok().filter(is_positive);
    interval.ok_or_else(|| format!("{text:?} is not a duration above zero such as 1m0s or 30s"))
}

fn runtime_setting(text: &str) -> Result<(String, bool), String> {
    let (key, value) = text.split_once('=').unwrap_or((text, "true"));
    match value {
        "true" => Ok((key.to_owned(), true)),
        "false" => Ok((key.to_owned(), false)),
        other => Err(format!("{other:?} is neither true nor false")),
    }
}

fn address(text: &str) -> Result<IpAddr, String> {
    let parsed = text.parse();
    parsed.map_err(|_| {
        "it is no IP address: write 127.0.0.1, ::1, or 0.0.0.0 for all interfaces".to_owned()
    })
}

/// The result of parsing a command line.
#[derive(Debug)]
pub enum CommandLine {
    /// Run the server with this configuration.
    Serve(Box<Config>),
    /// Print this text and exit with 0 (`--help`, `--version`).
    Print(String),
    /// Print what the server is made of and exit with 0 (`print-chain`, `print-routes`).
    List {
        /// The list.
        listing: Listing,
        /// Its format.
        format: ListFormat,
        /// The configuration of the server.
        config: Box<Config>,
    },
    /// Print the documents of the compiled kinds as JSON (the second phase of `apiloom generate`).
    Dump,
}

/// The result of reading arguments.
pub(crate) struct Reading {
    pub(crate) result: Result<CommandLine, Vec<String>>,
    /// Whether further flags can change the result: there are unknown arguments, or the flags are asked for.
    pub(crate) lacks_flags: bool,
}

impl Reading {
    fn of(result: Result<CommandLine, Vec<String>>) -> Self {
        Self {
            result,
            lacks_flags: false,
        }
    }
}

impl Options {
    /// Parses the arguments of a server called `name`. Underscores in flag names are treated as dashes, as in
    /// kube-apiserver.
    ///
    /// # Errors
    /// All problems of all flags: unknown or malformed arguments, an unknown storage backend, a flag that requires a
    /// missing one.
    pub fn parse(
        name: &str,
        args: impl IntoIterator<Item = OsString>,
    ) -> Result<CommandLine, Vec<String>> {
        let args: Vec<OsString> = args.into_iter().collect();
        if args.get(1).is_some_and(|first| first == "__dump") {
            return Ok(CommandLine::Dump);
        }
        Self::read(name, Self::command(), args, |_, _| Vec::new()).result
    }

    /// Reads the arguments by a command; `extend` reads the flags that only it has, and returns the problems of these.
    fn read(
        name: &str,
        command: Command,
        args: Vec<OsString>,
        extend: impl FnOnce(&mut Config, &ArgMatches) -> Vec<Error>,
    ) -> Reading {
        let mut problems = Problems::default();
        let result = Self::read_with(name, command, args, extend, &mut problems);
        Reading {
            result,
            lacks_flags: problems.lacks_flags,
        }
    }

    fn read_with(
        name: &str,
        command: Command,
        args: Vec<OsString>,
        extend: impl FnOnce(&mut Config, &ArgMatches) -> Vec<Error>,
        problems: &mut Problems,
    ) -> Result<CommandLine, Vec<String>> {
        let (listing, matches) = Self::matches(name, command, args, problems);
        let matches = match matches {
            Ok(Some(matches)) => matches,
            Ok(None) => return Err(std::mem::take(&mut problems.lines)),
            Err(text) => return Ok(CommandLine::Print(text)),
        };
        let told = |error: Error| vec![error.to_string()];
        let options = Self::from_arg_matches(&matches).map_err(told)?;
        let config = options.into_config(name, problems);
        let mut config = config.unwrap_or_else(|| Config::new(name, ""));
        for error in extend(&mut config, &matches) {
            problems.add_error(&error);
        }
        if !problems.lines.is_empty() {
            return Err(std::mem::take(&mut problems.lines));
        }
        let config = Box::new(config);
        Ok(match listing {
            None => CommandLine::Serve(config),
            Some(listing) => CommandLine::List {
                listing,
                format: ListFormat::of_matches(&matches).map_err(told)?,
                config,
            },
        })
    }

    /// The configuration by the arguments without problems; `None` if they cannot be told apart, or the help is asked for.
    fn without_problems(name: &str, command: Command, args: Vec<OsString>) -> Option<Config> {
        let mut problems = Problems::default();
        let (_, matches) = Self::matches(name, command, args, &mut problems);
        let options = Self::from_arg_matches(&matches.ok()??).ok()?;
        options.into_config(name, &mut problems)
    }

    /// Parses the arguments without those that have problems, as [`Problems::read_arguments`]; the subcommand is taken out of them.
    fn matches(
        name: &str,
        command: Command,
        args: Vec<OsString>,
        problems: &mut Problems,
    ) -> (Option<Listing>, Result<Option<ArgMatches>, String>) {
        let mut args: Vec<OsString> = args.into_iter().map(dashes).collect();
        let listing = Listing::take(&mut args);
        let command = command
            .name(name.to_owned())
            .version(env!("CARGO_PKG_VERSION"));
        let command = listing::command(command, listing);
        (listing, problems.read_arguments(&command, args))
    }

    /// The configuration of a server called `name`; `None` if there are problems.
    fn into_config(self, name: &str, problems: &mut Problems) -> Option<Config> {
        let storage_backend = self.storage.storage_backend.as_deref();
        let backend = self.etcd.backend(storage_backend, problems);
        let tls_files = self.serving.tls_files(problems);
        self.etcd.check(problems);
        let media_type = self.storage.storage_media_type.parse();
        let media_type = media_type
            .map_err(|problem: String| problems.add(problem))
            .ok();
        let data_dir = self
            .storage
            .data_dir
            .unwrap_or_else(|| PathBuf::from(format!("{name}-data")));
        Some(Config {
            name: name.to_owned(),
            bind_address: self.serving.bind_address,
            secure_port: self.serving.secure_port,
            cert_dir: self
                .serving
                .cert_dir
                .unwrap_or_else(|| data_dir.join("pki")),
            tls_files,
            backend: backend?,
            embedded_history_bytes: self.storage.embedded_history_bytes,
            storage_prefix: self.etcd.prefix(),
            storage_media_type: media_type?,
            etcd: self.etcd.into_options(),
            data_dir,
            kubeconfig: None,
            watch_cache_history_bytes: Some(self.watch_cache.watch_cache_history_bytes)
                .filter(|_| self.watch_cache.watch_cache),
            watch_cache_sizes: self.watch_cache.watch_cache_sizes,
            max_requests_inflight: self.generic.max_requests_inflight,
            max_mutating_requests_inflight: self.generic.max_mutating_requests_inflight,
            max_object_bytes: self.generic.max_object_bytes,
            max_definition_bytes: self.generic.max_definition_bytes,
            delete_collection_workers: self.generic.delete_collection_workers,
            event_ttl: self.generic.event_ttl,
            system_namespaces: self.generic.system_namespaces.map(|names| names.0),
            request_timeout: self.generic.request_timeout,
            shutdown_delay: self.generic.shutdown_delay_duration,
            goaway_chance: self.generic.goaway_chance,
            disabled_admission: self.admission.disable_admission_plugins,
            runtime_config: self.api.runtime_config,
            emulation_versions: self.api.emulation_version,
            service_resolver: self.generic.service_resolver,
            endpoints: Endpoints::default(),
            controllers: self.controllers.controllers,
            verbosity: self.logs.verbosity,
        })
    }
}

/// Replaces underscores in a flag's name, not in its value: `--secure_port=1` becomes `--secure-port=1`.
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

    fn parse(args: &[&str]) -> Result<Config, Vec<String>> {
        let args = std::iter::once("srv")
            .chain(args.iter().copied())
            .map(OsString::from);
        match Options::parse("srv", args)? {
            CommandLine::Serve(config) => Ok(*config),
            other => Err(vec![format!("{other:?}")]),
        }
    }

    fn config(args: &[&str]) -> Result<Config, String> {
        parse(args).map_err(|problems| problems.join("\n"))
    }

    #[test]
    fn problems_of_all_groups_are_reported_at_once() {
        let check = |args: &[&str], expected: &[&str]| {
            let problems = parse(args).unwrap_err();
            let firsts: Vec<&str> = problems.iter().filter_map(|p| p.lines().next()).collect();
            assert_eq!(firsts, expected, "{args:?}");
        };
        check(
            &[
                "--secure-port=x",
                "--goaway-chance",
                "7",
                "--storage-backend=nope",
                "--secure-prot",
                "1",
                "-vx",
                "--tls-cert-file=a.pem",
                "--etcd-keyfile=b.pem",
                "--max-requests-inflight",
                "--runtime-config=a=b",
            ],
            &[
                "invalid value 'x' for '--secure-port <PORT>': invalid digit found in string",
                "invalid value '7' for '--goaway-chance <FRACTION>': --goaway-chance can not be less than 0 or greater than 0.02",
                "unexpected argument '--secure-prot' found",
                "invalid value 'x' for '--v <LEVEL>': invalid digit found in string",
                "a value is required for '--max-requests-inflight <NUMBER>' but none was supplied",
                "invalid value 'a=b' for '--runtime-config <KEY=BOOL,..>': \"b\" is neither true nor false",
                "unknown storage backend \"nope\"; --storage-backend takes one of: embedded, memory, etcd",
                "--tls-cert-file requires --tls-private-key-file",
                "--etcd-keyfile requires --etcd-certfile",
            ],
        );
        // A flag with a malformed value is not reported as missing.
        check(
            &["--tls-cert-file", "--tls-private-key-file=b.pem"],
            &["a value is required for '--tls-cert-file <FILE>' but none was supplied"],
        );
        check(
            &["a", "b"],
            &[
                "unexpected argument 'a' found",
                "unexpected argument 'b' found",
            ],
        );
        let twice = "the argument '--secure-port <PORT>' cannot be used multiple times";
        check(&["--secure-port=1", "--secure-port=2"], &[twice]);
        let help = Options::parse(
            "srv",
            ["srv", "--secure-port=x", "--help"].map(OsString::from),
        );
        assert!(matches!(help, Ok(CommandLine::Print(_))), "{help:?}");
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
            "unknown storage backend \"nope\"; --storage-backend takes one of: embedded, memory, etcd"
        );
    }

    #[test]
    fn etcd_of_version_2_is_retired() {
        let error = config(&["--storage-backend=etcd2"]).unwrap_err();
        assert_eq!(
            error,
            "etcd's version 2 API is retired; use the storage backend etcd or embedded"
        );
    }

    #[test]
    fn prefix_is_a_path() {
        let check = |given: &str, expected: &str| {
            let config = config(&["--etcd-prefix", given]).unwrap();
            assert_eq!(config.storage_prefix, expected, "{given:?}");
        };
        check("/registry", "/registry");
        check("registry/", "/registry");
        check("/a/b/", "/a/b");
        check("/", "");
    }

    #[test]
    fn etcd_defaults_are_those_of_kube_apiserver() {
        let config = config(&[]).unwrap();
        assert_eq!(config.storage_prefix, "/registry");
        assert_eq!(config.etcd, EtcdOptions::default());
    }

    #[test]
    fn overrides_name_a_resource_and_its_servers() {
        let check = |given: &str, expected: &[(&str, &str, &[&str])]| {
            let config = config(&["--etcd-servers-overrides", given]).unwrap();
            let overrides = config.etcd.servers_overrides.iter().map(|own| {
                let servers = own.servers.iter().map(String::as_str).collect::<Vec<_>>();
                (own.group.as_str(), own.resource.as_str(), servers)
            });
            let expected = expected.iter().map(|(g, r, s)| (*g, *r, s.to_vec()));
            assert_eq!(
                overrides.collect::<Vec<_>>(),
                expected.collect::<Vec<_>>(),
                "{given:?}"
            );
        };
        check("/pods#http://a", &[("", "pods", &["http://a"])]);
        check(
            "g.io/things#http://a;http://b,/events#c",
            &[
                ("g.io", "things", &["http://a", "http://b"]),
                ("", "events", &["c"]),
            ],
        );
        for wrong in ["pods#http://a", "/pods", "/pods#", "/#http://a", ""] {
            let error = config(&["--etcd-servers-overrides", wrong]).unwrap_err();
            assert!(
                error.contains("GROUP/RESOURCE#URL;URL"),
                "{wrong:?}: {error}"
            );
        }
    }

    #[test]
    fn watch_cache_sizes_name_a_resource_and_its_changes() {
        let sizes = |given: &str| {
            let config = config(&["--watch-cache-sizes", given])?;
            let sizes = config.watch_cache_sizes.into_iter();
            let sizes = sizes.map(|own| (own.resource.to_string(), own.changes));
            Ok::<_, String>(sizes.collect::<Vec<_>>())
        };
        let expected = [("flunders.wardle.example.com", 0), ("namespaces", 500)];
        let expected = expected.map(|(resource, changes)| (resource.to_owned(), changes));
        assert_eq!(
            sizes("flunders.wardle.example.com#0,namespaces#500").unwrap(),
            expected
        );
        for wrong in ["flunders", "flunders#", "#5", "flunders#-1", "a/b#1", "a#x"] {
            let error = sizes(wrong).unwrap_err();
            assert!(
                error.contains("--watch-cache-sizes") && error.contains("RESOURCE.GROUP#SIZE"),
                "{wrong}: {error}"
            );
        }
    }

    #[test]
    fn compaction_interval_is_a_duration_and_0_is_never() {
        let interval = |text: &str| {
            let config = config(&["--etcd-compaction-interval", text]);
            config.map(|config| config.etcd.compaction_interval)
        };
        assert_eq!(interval("90s"), Ok(Some(Duration::from_secs(90))));
        assert_eq!(interval("0"), Ok(None));
        assert!(interval("soon").unwrap_err().contains("is not a duration"));
    }

    #[cfg(not(feature = "etcd"))]
    #[test]
    fn a_server_without_etcd_says_how_to_get_it() {
        for args in [["--storage-backend=etcd"], ["--etcd-servers=http://a"]] {
            let error = config(&args).unwrap_err();
            assert!(
                error.contains("`apiloom run PATH --features etcd`"),
                "{error}"
            );
        }
    }

    #[cfg(feature = "etcd")]
    #[test]
    fn etcd_is_chosen_by_its_servers_and_needs_them() {
        let config = |args| super::tests::config(args).map(|config| config.backend);
        assert_eq!(config(&["--etcd-servers=http://a"]), Ok(Backend::Etcd));
        assert_eq!(
            config(&["--storage-backend=etcd3"]),
            Err("--etcd-servers must be specified".to_owned())
        );
    }

    #[test]
    fn limits_on_requests_in_flight_are_those_of_kube_apiserver() {
        let limits = |args| {
            let config = config(args).unwrap();
            (
                config.max_requests_inflight,
                config.max_mutating_requests_inflight,
            )
        };
        assert_eq!(limits(&[]), (400, 200));
        let flags = [
            "--max-requests-inflight=7",
            "--max-mutating-requests-inflight=0",
        ];
        assert_eq!(limits(&flags), (7, 0));
    }

    #[test]
    fn the_storage_media_type_is_json_or_protobuf() {
        let media_type = |args: &[&str]| config(args).map(|config| config.storage_media_type);
        assert_eq!(media_type(&[]), Ok(StorageMediaType::Json));
        let protobuf = "--storage-media-type=application/vnd.kubernetes.protobuf";
        assert_eq!(media_type(&[protobuf]), Ok(StorageMediaType::Protobuf));
        for refused in ["application/yaml", "protobuf", ""] {
            let problem = format!(
                "--storage-media-type {refused:?} invalid, allowed values: application/json, application/vnd.kubernetes.protobuf"
            );
            let flag = format!("--storage-media-type={refused}");
            assert_eq!(media_type(&[&flag]), Err(problem));
        }
    }

    #[test]
    fn an_object_may_be_as_large_as_a_body() {
        let limit = |args: &[&str]| config(args).unwrap().max_object_bytes;
        assert_eq!(limit(&[]), 3 * 1024 * 1024);
        assert_eq!(limit(&["--max-object-bytes=1500000"]), 1_500_000);
        assert_eq!(limit(&["--max-object-bytes=0"]), 0);
    }

    #[test]
    fn a_collection_is_deleted_by_at_least_one_worker() {
        let workers = |args: &[&str]| {
            let workers = config(args)?.delete_collection_workers.get();
            Ok::<usize, String>(workers)
        };
        assert_eq!(workers(&[]), Ok(16));
        assert_eq!(workers(&["--delete-collection-workers=1"]), Ok(1));
        let refused = workers(&["--delete-collection-workers=0"]).unwrap_err();
        assert!(refused.contains("number would be zero"), "{refused}");
    }

    #[test]
    fn goaway_chance_is_bounded_as_in_kube_apiserver() {
        let chance = |text: &str| {
            let config = config(&[&format!("--goaway-chance={text}")]);
            config.map(|config| config.goaway_chance)
        };
        let default = config(&[]).unwrap().goaway_chance;
        assert_eq!(chance("0"), Ok(default));
        for good in ["0.001", "0.02", "1e-6"] {
            assert_ne!(chance(good), Ok(default), "{good}");
        }
        for bad in ["-0.1", "0.021", "1", "NaN", "inf"] {
            let error = chance(bad).unwrap_err();
            assert!(
                error.contains("can not be less than 0 or greater than 0.02"),
                "{error}"
            );
        }
        assert!(chance("often").unwrap_err().contains("is not a number"));
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
    fn a_host_is_no_address_to_listen_on() {
        let problems = config(&["--bind-address=localhost"]).unwrap_err();
        assert!(
            problems.ends_with("write 127.0.0.1, ::1, or 0.0.0.0 for all interfaces"),
            "{problems}"
        );
        assert!(config(&["--bind-address=::1"]).is_ok());
    }

    #[test]
    fn help_has_a_heading_for_every_group() {
        let Ok(CommandLine::Print(help)) =
            Options::parse("srv", ["srv", "--help"].map(OsString::from))
        else {
            panic!()
        };
        for heading in [
            "Generic flags:",
            "Secure serving flags:",
            "Storage flags:",
            "Etcd flags:",
            "Admission flags:",
            "API enablement flags:",
            "Logs flags:",
        ] {
            assert!(help.contains(heading), "{heading} is missing in {help}");
        }
    }
}
