//! The folder of the package to write.

use std::path::{Path, PathBuf};

use crate::console::{Console, Failure};
use crate::new;

/// A new package.
#[derive(Debug)]
pub(crate) struct Place {
    /// The name of the package.
    pub(crate) name: String,
    /// The folder as the user gave it.
    path: PathBuf,
    folder: PathBuf,
    /// The folder of the facade, in a clone of apiloom.
    apiloom: Option<PathBuf>,
}

impl Place {
    /// A place for a package, by the folder unless it has a name of its own.
    ///
    /// # Errors
    /// A folder that is not empty, a name that no package can have, a path without apiloom.
    pub(crate) fn new(
        path: &Path,
        name: Option<&str>,
        apiloom: Option<&Path>,
    ) -> Result<Self, String> {
        let folder = new::absolute(path)?;
        let of_folder = folder.file_name().unwrap_or_default().to_string_lossy();
        let name = name.unwrap_or(&of_folder).to_owned();
        new::names::check_package(&name, false)?;
        new::check_free(path, &folder)?;
        let apiloom = match apiloom {
            Some(path) => Some(new::checkout(path).ok_or_else(|| new::no_checkout(path))?),
            None => new::checkout_around(&folder).or_else(new::own_checkout),
        };
        Ok(Self {
            name,
            path: path.to_owned(),
            folder,
            apiloom,
        })
    }

    /// The value of the dependency on apiloom.
    pub(super) fn dependency(&self) -> String {
        new::dependency(self.apiloom.as_deref(), &self.folder)
    }

    /// Whether the folder is in that of a workspace.
    pub(super) fn is_alone(&self) -> bool {
        new::is_in_workspace(&self.folder)
    }

    /// Writes the files.
    pub(super) fn write(&self, files: &[(String, String)]) -> Result<(), String> {
        let files: Vec<(&str, String)> = files
            .iter()
            .map(|(path, text)| (path.as_str(), text.clone()))
            .collect();
        let written = new::write(&self.folder, &files, self.apiloom.as_deref());
        written.map_err(|error| format!("cannot write {}: {error}", self.path.display()))
    }

    /// Writes the generated files that need no build.
    pub(super) fn generate(&self, console: &mut Console<'_>) -> Result<(), Failure> {
        new::generate(&self.path, console)
    }
}
