//! Installs the CustomResourceDefinitions of files when a server starts: they are checked before anything is opened, applied
//! once the server runs, and the start ends when their kinds are served.

#[cfg(feature = "apis-apiextensions")]
mod definitions;
#[cfg(feature = "apis-apiextensions")]
mod step;
#[cfg(feature = "apis-apiextensions")]
mod waiting;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use apiloom_registry::Registry;

use super::{Config, ServerError};

/// What a server installs when it starts. Cheap to clone; clones are the same installation.
#[derive(Clone, Debug)]
pub(super) struct Installation {
    #[cfg(feature = "apis-apiextensions")]
    definitions: definitions::Definitions,
    is_finished: Arc<AtomicBool>,
}

impl Default for Installation {
    /// One that has nothing to install.
    fn default() -> Self {
        Self {
            #[cfg(feature = "apis-apiextensions")]
            definitions: definitions::Definitions::default(),
            is_finished: Arc::new(AtomicBool::new(true)),
        }
    }
}

impl Installation {
    /// Reads the definitions that the configuration names, and checks them as a server does that gets them. Nothing else is
    /// opened.
    ///
    /// # Errors
    /// All problems, with file, document and field.
    #[cfg(feature = "apis-apiextensions")]
    pub(super) async fn read(config: &Config) -> Result<Self, ServerError> {
        if config.crds.is_empty() {
            return Ok(Self::default());
        }
        Ok(Self {
            definitions: definitions::Definitions::read(config).await?,
            is_finished: Arc::default(),
        })
    }

    /// Nothing.
    ///
    /// # Errors
    /// If there are definitions to install.
    #[cfg(not(feature = "apis-apiextensions"))]
    pub(super) async fn read(config: &Config) -> Result<Self, ServerError> {
        if config.crds.is_empty() {
            return Ok(Self::default());
        }
        let problem = "definitions cannot be installed: this server is built without the cargo feature apis-apiextensions";
        Err(ServerError::Invalid(vec![problem.to_owned()]))
    }

    /// Applies the definitions in a server whose controllers run, and waits until their kinds are served.
    ///
    /// # Errors
    /// What the server refuses, for instance since a stored definition has the names, and what is not served in time.
    pub(super) async fn run(&self, registry: &Registry) -> Result<(), ServerError> {
        #[cfg(feature = "apis-apiextensions")]
        self.definitions.run(registry).await?;
        #[cfg(not(feature = "apis-apiextensions"))]
        let _ = registry;
        self.is_finished.store(true, Ordering::Release);
        Ok(())
    }

    /// Whether there was nothing to install, or all of it is.
    pub(super) fn is_finished(&self) -> bool {
        self.is_finished.load(Ordering::Acquire)
    }
}
