//! Where definitions come from: files, folders, standard input, a cluster.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use apiloom_apis::definition_files::{DefinitionFile, DefinitionFiles};
use clap::Args;
use serde_json::Value;

use super::definition::Definition;

/// The server whose definitions are read.
#[derive(Debug, Args)]
pub(crate) struct Cluster {
    /// The server's kubeconfig [default: that of kubectl, $KUBECONFIG or ~/.kube/config]
    #[arg(long, value_name = "FILE", requires = "from_cluster")]
    kubeconfig: Option<PathBuf>,
    /// The context in the kubeconfig [default: the current one]
    #[arg(long, value_name = "NAME", requires = "from_cluster")]
    context: Option<String>,
    /// A definition to import, such as certificates.cert-manager.io; several times for several [default: all]
    #[arg(long = "crd", value_name = "NAME", requires = "from_cluster")]
    crds: Vec<String>,
    /// The kubectl to read them with
    #[arg(
        long,
        value_name = "PROGRAM",
        default_value = "kubectl",
        requires = "from_cluster"
    )]
    kubectl: PathBuf,
}

/// What was read.
#[derive(Debug, Default)]
pub(crate) struct Input {
    pub(crate) definitions: Vec<Definition>,
    /// Number of documents that are no definitions.
    pub(crate) others: usize,
}

impl Input {
    /// Reads files, folders, and `-`, standard input.
    ///
    /// # Errors
    /// The first input that cannot be read, or definition that is none.
    pub(crate) fn read(paths: &[PathBuf]) -> Result<Self, String> {
        let mut input = Self::default();
        input.add(DefinitionFiles::read(paths)?)?;
        Ok(input)
    }

    /// Reads the definitions of a cluster with kubectl, which knows from the kubeconfig how.
    ///
    /// # Errors
    /// What kubectl says.
    pub(crate) fn add_cluster(&mut self, cluster: &Cluster) -> Result<(), String> {
        let program = cluster.kubectl.display();
        let mut command = Command::new(&cluster.kubectl);
        for (flag, value) in [
            (
                "--kubeconfig",
                cluster.kubeconfig.as_deref().map(AsRef::as_ref),
            ),
            (
                "--context",
                cluster
                    .context
                    .as_deref()
                    .map(AsRef::<std::ffi::OsStr>::as_ref),
            ),
        ] {
            if let Some(value) = value {
                command.arg(flag).arg(value);
            }
        }
        command.args([
            "get",
            "customresourcedefinitions.apiextensions.k8s.io",
            "--output=json",
        ]);
        command.args(&cluster.crds);
        let output = command
            .stdin(Stdio::null())
            .output()
            .map_err(|error| format!("cannot start {program}: {error}\n  help: install kubectl, or name it with --kubectl"))?;
        if !output.status.success() {
            let text = String::from_utf8_lossy(&output.stderr);
            return Err(format!(
                "{program} could not read the definitions: {}",
                text.trim()
            ));
        }
        let document: Value = serde_json::from_slice(&output.stdout)
            .map_err(|error| format!("{program} printed something else than JSON: {error}"))?;
        let mut files = DefinitionFiles::default();
        files.add(&document, "the cluster")?;
        self.add(files)
    }

    fn add(&mut self, files: DefinitionFiles) -> Result<(), String> {
        self.others += files.others;
        for DefinitionFile {
            place,
            name,
            document,
        } in files.definitions
        {
            let definition = Definition::read(&document, &place).map_err(|error| {
                if name.is_empty() {
                    format!("{place}: a definition without a name: {error}")
                } else {
                    format!("{place}: {name}: {error}")
                }
            })?;
            self.definitions.push(definition);
        }
        Ok(())
    }
}
