//! Definitions of files: read, checked as a new server checks them, applied.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use apiloom_kinds::apiextensions::v1::CustomResourceDefinition;
use apiloom_kinds::definition_files::{DefinitionFile, DefinitionFiles};
use apiloom_meta::{Object, Resource as _};
use apiloom_registry::{Endpoint, Registry};
use apiloom_server::{Config, ServerError};
use apiloom_storage::Memory;
use futures_util::StreamExt as _;
use serde_json::Value;

use super::step::{Step, problem};
use super::waiting::Waiting;
use crate::definitions::NameCheck;

/// Number of definitions that are checked or applied at the same time. They wait for a disk together.
const CONCURRENCY: usize = 64;

/// Metadata that servers set. `kubectl get -o yaml` prints it too, but it cannot be applied.
const OF_SERVERS: [&str; 7] = [
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
    "uid",
];

/// The definitions to install.
#[derive(Clone, Debug, Default)]
pub(super) struct Definitions {
    files: Arc<Vec<DefinitionFile>>,
}

impl Definitions {
    /// Reads the definitions in files and folders, and checks them as a server does that gets them. Nothing else is
    /// opened.
    ///
    /// # Errors
    /// All problems, with file, document and field.
    pub(super) async fn read(paths: &[PathBuf], config: &Config) -> Result<Self, ServerError> {
        if paths.is_empty() {
            return Ok(Self::default());
        }
        let of_task = paths.to_vec();
        let read = tokio::task::spawn_blocking(move || DefinitionFiles::read(&of_task)).await;
        let read = read.unwrap_or_else(|error| Err(error.to_string()));
        let mut read = read.map_err(|problem| ServerError::Invalid(vec![problem]))?;
        for duplicate in &read.duplicates {
            tracing::warn!("{duplicate}");
        }
        if read.definitions.is_empty() {
            let paths = paths.iter().map(|path| path.display().to_string());
            let paths = paths.collect::<Vec<_>>().join(", ");
            let problem = format!("--crds={paths}: there is no CustomResourceDefinition");
            return Err(refuse(&problem));
        }
        let others = read.others + read.openapi.len();
        if others > 0 {
            tracing::info!(
                count = others,
                "documents that are no CustomResourceDefinitions are skipped"
            );
        }
        let files = read.definitions.iter_mut();
        files.for_each(|file| forget_of_servers(&mut file.document));
        let definitions = Self {
            files: Arc::new(read.definitions),
        };
        let problems = definitions.problems(config).await?;
        if problems.is_empty() {
            Ok(definitions)
        } else {
            Err(ServerError::Invalid(problems))
        }
    }

    /// The problems that a new server finds in the definitions, in each and in all together.
    async fn problems(&self, config: &Config) -> Result<Vec<String>, ServerError> {
        let mut builder = apiloom_kinds::registry(Memory::new());
        apiloom_kinds::register_all(&mut builder);
        builder.watch_cache(None);
        builder.max_object_bytes(config.max_object_bytes);
        builder.max_definition_bytes(config.max_definition_bytes);
        let registry = builder.build().map_err(ServerError::Invalid)?;
        let found = self.each(&endpoint(&registry)?, Step::Check).await;
        let mut names = NameCheck::new(registry.catalog());
        let mut places: HashMap<&str, &str> = HashMap::new();
        let mut problems = Vec::new();
        for (file, found) in self.files.iter().zip(found) {
            let found = found.and_then(|object| {
                let typed = object.to_typed::<CustomResourceDefinition>();
                typed.map_err(|error| vec![error.to_string()])
            });
            match found {
                Err(lines) => problems.extend(lines.iter().map(|line| problem(file, line))),
                Ok(definition) => match places.insert(&file.name, &file.place) {
                    Some(first) => {
                        problems.push(format!("{} is in {first} and in {}", file.name, file.place));
                    }
                    None => problems.extend(names.add(definition).map(|why| problem(file, &why))),
                },
            }
        }
        Ok(problems)
    }

    /// Applies the definitions in a server whose controllers run, and waits until their kinds are served.
    ///
    /// # Errors
    /// What the server refuses, for instance since a stored definition has the names, and what is not served in time.
    pub(super) async fn run(&self, registry: &Registry) -> Result<(), ServerError> {
        if self.files.is_empty() {
            return Ok(());
        }
        let endpoint = endpoint(registry)?;
        let applied = self.each(&endpoint, Step::Apply).await;
        let files = self.files.iter().zip(applied);
        let mut problems: Vec<String> = files
            .filter_map(|(file, applied)| Some((file, applied.err()?)))
            .flat_map(|(file, lines)| lines.into_iter().map(|line| problem(file, &line)))
            .collect();
        if problems.is_empty() {
            problems = Waiting::new(registry, &self.files).run(endpoint).await;
        }
        if problems.is_empty() {
            Ok(())
        } else {
            Err(ServerError::Invalid(problems))
        }
    }

    /// Runs a step for all definitions, some at the same time. The results are in the order of the definitions.
    async fn each(&self, endpoint: &Arc<Endpoint>, step: Step) -> Vec<Result<Object, Vec<String>>> {
        let steps = (0..self.files.len()).map(|at| {
            let (files, endpoint) = (Arc::clone(&self.files), Arc::clone(endpoint));
            async move {
                let ended =
                    tokio::spawn(async move { step.run(&endpoint, &files[at]).await }).await;
                ended.unwrap_or_else(|error| Err(vec![error.to_string()]))
            }
        });
        let steps = futures_util::stream::iter(steps);
        steps.buffered(CONCURRENCY).collect().await
    }
}

/// The endpoint of definitions.
fn endpoint(registry: &Registry) -> Result<Arc<Endpoint>, ServerError> {
    let (group, version) = (
        CustomResourceDefinition::GROUP,
        CustomResourceDefinition::VERSION,
    );
    let endpoint = registry.endpoint(group, version, CustomResourceDefinition::PLURAL);
    endpoint.ok_or_else(|| {
        refuse(
            "definitions cannot be installed: this server does not serve CustomResourceDefinition",
        )
    })
}

fn refuse(problem: &str) -> ServerError {
    ServerError::Invalid(vec![problem.to_owned()])
}

/// Forgets what only servers write.
fn forget_of_servers(document: &mut Value) {
    if let Some(fields) = document.as_object_mut() {
        fields.remove("status");
    }
    if let Some(metadata) = document.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|name, _| !OF_SERVERS.contains(&name.as_str()));
    }
}
