//! Installs the CustomResourceDefinitions of files when a server starts: they are checked before anything is opened, applied
//! once the server runs, and the start ends when their kinds are served.

mod definitions;
mod step;
mod waiting;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use apiloom_http::documents::health::{Check, Probe};
use apiloom_registry::Registry;
use apiloom_server::{Config, ServerError};

use self::definitions::Definitions;

/// What a server installs when it starts.
#[derive(Debug)]
pub(super) struct Installation {
    /// Files and folders of the definitions.
    paths: Vec<PathBuf>,
    /// Set once they are read.
    definitions: OnceLock<Definitions>,
    /// Whether there was nothing to install, or all of it is.
    is_finished: Arc<AtomicBool>,
}

impl Installation {
    /// The installation of the definitions in these files and folders.
    pub(super) fn new(paths: Vec<PathBuf>) -> Self {
        Self {
            definitions: OnceLock::new(),
            is_finished: Arc::new(AtomicBool::new(paths.is_empty())),
            paths,
        }
    }

    /// Reads the definitions, and checks them as a server does that gets them. Nothing else is opened.
    ///
    /// # Errors
    /// All problems, with file, document and field.
    pub(super) async fn read(&self, config: &Config) -> Result<(), ServerError> {
        let definitions = Definitions::read(&self.paths, config).await?;
        // They are read once.
        let _ = self.definitions.set(definitions);
        Ok(())
    }

    /// Applies the definitions in a server whose controllers run, and waits until their kinds are served.
    ///
    /// # Errors
    /// What the server refuses, for instance since a stored definition has the names, and what is not served in time.
    pub(super) async fn run(&self, registry: &Registry) -> Result<(), ServerError> {
        if let Some(definitions) = self.definitions.get() {
            definitions.run(registry).await?;
        }
        self.is_finished.store(true, Ordering::Release);
        Ok(())
    }

    /// The check that fails until all is installed; `None` if there is nothing.
    pub(super) fn check(&self) -> Option<Check> {
        if self.is_finished.load(Ordering::Acquire) {
            return None;
        }
        let is_finished = Arc::clone(&self.is_finished);
        let is_installed = move || {
            if is_finished.load(Ordering::Acquire) {
                Ok(())
            } else {
                Err("not finished".to_owned())
            }
        };
        let check = Check::new("poststarthook/install-definitions", is_installed);
        Some(check.on(&[Probe::Readyz]))
    }
}
