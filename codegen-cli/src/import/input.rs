//! Where definitions come from: files, folders, standard input, a cluster.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clap::Args;
use serde_json::Value;

use super::definition::{Definition, items};

/// Maximum size of one input. The largest bundles of definitions have some megabytes.
const MAX_BYTES: u64 = 256 << 20;

/// Maximum nesting of a document.
const MAX_DEPTH: usize = 1000;

const CRD_GROUP: &str = "apiextensions.k8s.io/";

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
        for path in paths {
            if path.as_os_str() == "-" {
                let mut text = String::new();
                let read = std::io::stdin()
                    .lock()
                    .take(MAX_BYTES)
                    .read_to_string(&mut text);
                read.map_err(|error| format!("cannot read standard input: {error}"))?;
                input.add_text(&text, "standard input")?;
            } else {
                input.add_path(path)?;
            }
        }
        Ok(input)
    }

    fn add_path(&mut self, path: &Path) -> Result<(), String> {
        let fail = |error: std::io::Error| format!("cannot read {}: {error}", path.display());
        let metadata = fs::metadata(path).map_err(fail)?;
        if metadata.is_file() {
            if metadata.len() > MAX_BYTES {
                return Err(format!(
                    "{} has more than {MAX_BYTES} bytes",
                    path.display()
                ));
            }
            let bytes = fs::read(path).map_err(fail)?;
            let text = String::from_utf8(bytes)
                .map_err(|_| format!("{} is no text in UTF-8", path.display()))?;
            return self.add_text(&text, &path.display().to_string());
        }
        let entries = fs::read_dir(path).map_err(fail)?;
        let mut below = entries
            .map(|entry| entry.map(|entry| entry.path()))
            .collect::<Result<Vec<_>, _>>()
            .map_err(fail)?;
        below.sort();
        for path in below {
            // A link may lead back to a folder above.
            let is_link = fs::symlink_metadata(&path).is_ok_and(|metadata| metadata.is_symlink());
            let is_document = path.extension().is_some_and(|extension| {
                ["yaml", "yml", "json"]
                    .iter()
                    .any(|known| extension == *known)
            });
            if is_document && path.is_file() || path.is_dir() && !is_link {
                self.add_path(&path)?;
            }
        }
        Ok(())
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
        self.add(&document, "the cluster")
    }

    fn add_text(&mut self, text: &str, source: &str) -> Result<(), String> {
        for document in documents(text).map_err(|error| format!("{source}: {error}"))? {
            self.add(&document, source)?;
        }
        Ok(())
    }

    fn add(&mut self, document: &Value, source: &str) -> Result<(), String> {
        let api_version = document["apiVersion"].as_str().unwrap_or_default();
        let kind = document["kind"].as_str().unwrap_or_default();
        let is_list = kind == "List" || kind == "CustomResourceDefinitionList";
        if is_list {
            for item in items(&document["items"]) {
                let mut item = item.clone();
                // Items of a typed list may have neither.
                if item.get("kind").is_none() && kind != "List" {
                    item["kind"] = "CustomResourceDefinition".into();
                    item["apiVersion"] = api_version.into();
                }
                self.add(&item, source)?;
            }
            return Ok(());
        }
        if kind != "CustomResourceDefinition" || !api_version.starts_with(CRD_GROUP) {
            self.others += usize::from(!document.is_null());
            return Ok(());
        }
        let name = document["metadata"]["name"]
            .as_str()
            .unwrap_or("a definition without a name");
        if api_version != "apiextensions.k8s.io/v1" {
            return Err(format!(
                "{source}: {name} is of {api_version}, which Kubernetes serves no more\n  \
                 help: convert it to apiextensions.k8s.io/v1 first, as `kubectl convert` does"
            ));
        }
        let definition = Definition::read(document, source)
            .map_err(|error| format!("{source}: {name}: {error}"))?;
        self.definitions.push(definition);
        Ok(())
    }
}

/// The documents of a text in YAML or JSON.
fn documents(text: &str) -> Result<Vec<Value>, String> {
    if text.trim_start().starts_with('{')
        && let Ok(document) = serde_json::from_str(text)
    {
        return Ok(vec![document]);
    }
    // Definitions are trusted as the code is that is made of them; the limits are those of what exists.
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: MAX_DEPTH,
            max_documents: 100_000,
            max_events: 50_000_000,
            max_nodes: 50_000_000,
            max_buffered_comment_events: 5_000_000,
            max_total_scalar_bytes: 256 << 20,
            enforce_alias_anchor_ratio: false,
        },
        with_snippet: false,
    };
    let documents = serde_saphyr::from_multiple_with_options(text, options);
    documents.map_err(|error: serde_saphyr::Error| {
        let text = error.to_string();
        text.lines().next().unwrap_or_default().to_owned()
    })
}
