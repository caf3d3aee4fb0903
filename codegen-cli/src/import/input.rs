//! Where definitions and documents of OpenAPI come from: files, folders, standard input, a cluster.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use apiloom_kinds::definition_files::{DefinitionFile, DefinitionFiles};
use clap::Args;
use serde_json::Value;

use super::definition::Definition;
use super::openapi;
use crate::console::cause;

/// The server whose definitions are read.
#[derive(Debug, Args)]
pub(crate) struct Cluster {
    /// The server's kubeconfig [default: that of kubectl, $KUBECONFIG or ~/.kube/config]
    #[arg(long, value_name = "FILE", requires = "from_cluster")]
    kubeconfig: Option<PathBuf>,
    /// The context in the kubeconfig [default: the current one]
    #[arg(long, value_name = "NAME", requires = "from_cluster")]
    context: Option<String>,
    /// A definition to import, such as certificates.cert-manager.io; several times for several [default: all, unless --openapi is given]
    #[arg(long = "crd", value_name = "NAME", requires = "from_cluster")]
    crds: Vec<String>,
    /// A version of a group whose kinds are read from the server's document of OpenAPI v3, such as apps/v1, or v1 for the core
    /// group; several times for several
    #[arg(long, value_name = "GROUP/VERSION", requires = "from_cluster")]
    openapi: Vec<String>,
    /// The kubectl to read them with
    #[arg(
        long,
        value_name = "PROGRAM",
        default_value = "kubectl",
        requires = "from_cluster"
    )]
    kubectl: PathBuf,
}

impl Cluster {
    /// The JSON that kubectl prints with these arguments.
    fn read(&self, arguments: &[&str], what: &str) -> Result<Value, String> {
        let program = self.kubectl.display();
        let mut command = Command::new(&self.kubectl);
        if let Some(path) = &self.kubeconfig {
            command.arg("--kubeconfig").arg(path);
        }
        if let Some(name) = &self.context {
            command.arg("--context").arg(name);
        }
        let output = command
            .args(arguments)
            .stdin(Stdio::null())
            .output()
            .map_err(|error| format!("cannot start {program}: {error}\n  help: install kubectl, or name it with --kubectl"))?;
        if !output.status.success() {
            let text = String::from_utf8_lossy(&output.stderr);
            return Err(format!("{program} could not read {what}: {}", cause(&text)));
        }
        serde_json::from_slice(&output.stdout)
            .map_err(|error| format!("{program} printed something else than JSON: {error}"))
    }
}

/// What was read.
#[derive(Debug, Default)]
pub(crate) struct Input {
    pub(crate) definitions: Vec<Definition>,
    /// Why definitions and documents of OpenAPI were left out, with their places.
    pub(crate) failures: Vec<String>,
    /// Number of documents that are neither.
    pub(crate) others: usize,
    /// Fields that a document has twice, with its place.
    pub(crate) duplicates: Vec<String>,
}

impl Input {
    /// Reads files, folders, and `-`, standard input.
    ///
    /// # Errors
    /// The first input that cannot be read.
    pub(crate) fn read(paths: &[PathBuf]) -> Result<Self, String> {
        let mut input = Self::default();
        input.add(DefinitionFiles::read(paths)?)?;
        Ok(input)
    }

    /// Reads the definitions of a cluster with kubectl, which knows from the kubeconfig how; or documents of OpenAPI, if some
    /// are named.
    ///
    /// # Errors
    /// What kubectl says.
    pub(crate) fn add_cluster(&mut self, cluster: &Cluster) -> Result<(), String> {
        let mut files = DefinitionFiles::default();
        for version in &cluster.openapi {
            let path = match version.split_once('/') {
                Some(_) => format!("/openapi/v3/apis/{version}"),
                None => format!("/openapi/v3/api/{version}"),
            };
            let what = format!("the document of {version}");
            let document = cluster.read(&["get", "--raw", &path], &what)?;
            files.add(document, &what)?;
        }
        if cluster.openapi.is_empty() || !cluster.crds.is_empty() {
            let mut arguments = vec![
                "get",
                "customresourcedefinitions.apiextensions.k8s.io",
                "--output=json",
            ];
            arguments.extend(cluster.crds.iter().map(String::as_str));
            files.add(cluster.read(&arguments, "the definitions")?, "the cluster")?;
        }
        self.add(files)
    }

    fn add(&mut self, files: DefinitionFiles) -> Result<(), String> {
        self.others += files.others;
        self.duplicates.extend(files.duplicates);
        let documents: Vec<(&str, &Value)> = files
            .openapi
            .iter()
            .map(|file| (&*file.place, &file.document))
            .collect();
        let (definitions, failures) = openapi::read_each(&documents)?;
        self.definitions.extend(definitions);
        self.failures.extend(failures);
        for DefinitionFile {
            place,
            name,
            document,
        } in files.definitions
        {
            match Definition::read(&document, &place) {
                Ok(definition) => self.definitions.push(definition),
                Err(error) if name.is_empty() => {
                    let failure = format!("{place}: a definition without a name: {error}");
                    self.failures.push(failure);
                }
                Err(error) => self.failures.push(format!("{place}: {name}: {error}")),
            }
        }
        Ok(())
    }
}
