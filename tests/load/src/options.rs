//! What to measure, and against which server.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// Puts load on a Kubernetes API server and prints what each operation costs it.
#[derive(Debug, Parser)]
#[command(name = "apiloom-load", version)]
pub(crate) struct Options {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Runs scenarios against a server.
    Run(Box<Run>),
    /// Serves ready bytes with bare hyper and rustls: the least that any server must spend. Started by `run --floor`.
    #[command(hide = true)]
    Floor,
}

/// One run.
#[derive(Args, Clone, Debug)]
pub(crate) struct Run {
    /// Scenarios, in this order; they share one set of objects
    #[arg(value_enum, required = true)]
    pub(crate) scenarios: Vec<Scenario>,

    /// Whom to talk to, and with which credentials (a token or a client certificate)
    #[arg(long, value_name = "FILE", env = "KUBECONFIG")]
    pub(crate) kubeconfig: PathBuf,
    /// Processes of the server, whose CPU time and memory are reported; etcd's may be among them
    #[arg(long = "pid", value_name = "PID")]
    pub(crate) pids: Vec<u32>,
    /// Measure bare hyper and rustls with the same bytes as well
    #[arg(long)]
    pub(crate) floor: bool,

    /// The resource under load, as GROUP/VERSION/PLURAL; core/v1/configmaps works too
    #[arg(
        long,
        value_name = "RESOURCE",
        default_value = "wardle.example.com/v1alpha1/flunders"
    )]
    pub(crate) resource: String,
    /// Kind of the resource
    #[arg(long, value_name = "KIND", default_value = "Flunder")]
    pub(crate) kind: String,
    /// Namespace of the objects, made when it is missing
    #[arg(long, value_name = "NAME", default_value = "load")]
    pub(crate) namespace: String,
    /// Objects that are there before a scenario begins
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub(crate) objects: usize,
    /// Bytes of one object
    #[arg(long, value_name = "BYTES", default_value_t = 1500)]
    pub(crate) size: usize,

    /// Which managedFields the objects have before a scenario begins
    #[arg(long, value_enum, default_value_t = Managed::One)]
    pub(crate) managed: Managed,

    /// Requests under way at a time
    #[arg(long, value_name = "N", default_value_t = 32)]
    pub(crate) concurrency: usize,
    /// Lists under way at a time; a list keeps a core busy by itself, so more measure the queue, or what they hold
    #[arg(long, value_name = "N", default_value_t = 4)]
    pub(crate) list_concurrency: usize,
    /// Connections that they share; HTTP/1.1 opens one for each request under way
    #[arg(long, value_name = "N", default_value_t = 4)]
    pub(crate) connections: usize,
    /// Version of HTTP
    #[arg(long, value_enum, default_value_t = Http::H2)]
    pub(crate) http: Http,
    /// Media type of the scenarios list and consistent-list, such as application/vnd.kubernetes.protobuf
    #[arg(long, value_name = "TYPE", default_value = "application/json")]
    pub(crate) accept: String,
    /// How long each scenario of requests runs
    #[arg(long, value_name = "SECONDS", default_value_t = 5)]
    pub(crate) seconds: u64,
    /// Requests of each scenario, in place of a time: two runs then do the same work
    #[arg(long, value_name = "N", conflicts_with = "seconds")]
    pub(crate) requests: Option<usize>,

    /// Watchers of the scenario watch
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub(crate) watchers: usize,
    /// Watchers of the scenario selective-watch, each on one name
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    pub(crate) selective_watchers: usize,
    /// Watchers that share a connection
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub(crate) watchers_per_connection: usize,
    /// Updates that watchers see
    #[arg(long, value_name = "N", default_value_t = 500)]
    pub(crate) updates: usize,
    /// Updates a second; 0 for one after the other without pause
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) rate: u32,

    /// Write the figures as JSON to this file as well
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
}

/// What is done to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Scenario {
    /// POST of new objects
    Create,
    /// GET of one object
    Get,
    /// PUT of one object, without a resourceVersion
    Update,
    /// GET and PUT of one object
    ReadUpdate,
    /// Merge PATCH of one object
    Patch,
    /// Server-side apply that changes nothing
    Apply,
    /// Server-side apply that changes an annotation
    ApplyChange,
    /// LIST of all objects, however old (resourceVersion=0)
    List,
    /// LIST of all objects as they are now
    ConsistentList,
    /// LIST of all objects in pages of 500
    Pages,
    /// LIST of all objects as a Table
    Table,
    /// Updates seen by many watchers
    Watch,
    /// Updates of one object beside watchers of other names
    SelectiveWatch,
    /// DELETE of objects
    Delete,
}

impl Scenario {
    /// Its name on the command line.
    pub(crate) fn name(self) -> String {
        self.to_possible_value()
            .map(|value| value.get_name().to_owned())
            .unwrap_or_default()
    }
}

/// Which managedFields the objects have before a scenario begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Managed {
    /// None: they are cleared, and the server adds none at an update
    None,
    /// One entry, of the manager who created the object
    One,
    /// Two entries: a second manager applies labels and an annotation that the object has already
    Two,
}

/// Version of HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Http {
    /// HTTP/1.1
    #[value(name = "1")]
    H1,
    /// HTTP/2
    #[value(name = "2")]
    H2,
}
