//! What a program and its configuration add to a server, as the builder collects it.

use std::sync::Arc;

use super::ServerError;
use super::hooks::Hook;
use super::installation::Installation;
use crate::http::documents::health::Check;
use crate::http::{PathHandler, PathHandlers};

/// The additions of a program and of its configuration to a server.
#[derive(Default)]
pub(super) struct Additions {
    pub(super) installation: Installation,
    pub(super) handlers: PathHandlers,
    pub(super) hooks: Vec<Hook>,
    pub(super) checks: Vec<Check>,
}

/// A handler, the path or prefix that it is for, and whether that is listed at `/`.
pub(super) struct AddedHandler {
    pub(super) path: String,
    pub(super) is_prefix: bool,
    pub(super) is_listed: bool,
    pub(super) handler: Arc<dyn PathHandler>,
}

/// The handlers of a program.
///
/// # Errors
/// All problems of their paths, and hooks of the same name.
pub(super) fn path_handlers(
    added: Vec<AddedHandler>,
    hooks: &[Hook],
) -> Result<PathHandlers, ServerError> {
    let mut handlers = PathHandlers::default();
    let mut problems = Vec::new();
    for AddedHandler {
        path,
        is_prefix,
        is_listed,
        handler,
    } in added
    {
        if let Err(problem) = handlers.add((&path, is_prefix), handler, is_listed) {
            problems.push(problem);
        }
    }
    for (index, hook) in hooks.iter().enumerate() {
        if hooks[..index].iter().any(|one| one.name() == hook.name()) {
            problems.push(format!("there are two post-start hooks {:?}", hook.name()));
        }
    }
    if problems.is_empty() {
        Ok(handlers)
    } else {
        Err(ServerError::Invalid(problems))
    }
}
