//! What a program and its configuration add to a server, as the builder collects it.

use std::collections::BTreeSet;
use std::sync::Arc;

use apiloom_client::metrics::Collect;
use apiloom_http::documents::health::Check;
use apiloom_http::part_name::{HOST, PROGRAM, PartName};
use apiloom_http::{KindParts, PathHandler, PathHandlers};

use super::ServerError;
use super::chain::ChainFilter;
use super::filter::AddedFilters;
use super::hooks::{Hook, Task};

/// The additions of a program and of its configuration to a server.
#[derive(Default)]
pub(super) struct Additions {
    pub(super) handlers: PathHandlers,
    pub(super) kinds: KindParts,
    pub(super) hooks: Vec<Hook>,
    pub(super) checks: Vec<Check>,
    pub(super) filters: AddedFilters,
    pub(super) controllers: Vec<Task>,
    pub(super) stop_hooks: Vec<Task>,
    pub(super) metrics: Vec<Arc<dyn Collect>>,
}

/// The additions of a program, as the builder collects them.
#[derive(Default)]
pub(super) struct AdditionList {
    /// The parts that were added.
    pub(super) parts: Vec<PartName>,
    pub(super) handlers: Vec<AddedHandler>,
    pub(super) kinds: KindParts,
    pub(super) hooks: Vec<Hook>,
    pub(super) checks: Vec<Check>,
    pub(super) filters: AddedFilters,
    pub(super) controllers: Vec<Task>,
    pub(super) stop_hooks: Vec<Task>,
    pub(super) metrics: Vec<Arc<dyn Collect>>,
}

/// A handler, the path or prefix that it is for, and whether that is listed at `/`.
pub(super) struct AddedHandler {
    pub(super) part: PartName,
    pub(super) path: String,
    pub(super) is_prefix: bool,
    pub(super) is_listed: bool,
    pub(super) handler: Arc<dyn PathHandler>,
}

impl AdditionList {
    /// The additions of a server whose filters are in this chain.
    ///
    /// # Errors
    /// All problems of paths; parts, hooks, controllers and filters of the same name.
    pub(super) fn check(self, chain: &[ChainFilter]) -> Result<Additions, ServerError> {
        let mut problems = Vec::new();
        let handlers = path_handlers(self.handlers, &mut problems);
        let parts = self.parts.iter().copied();
        problems.extend(doubles("parts", [HOST, PROGRAM].into_iter().chain(parts)));
        let controllers = self.controllers.iter().map(Task::name);
        problems.extend(doubles("controllers", controllers));
        let stop_hooks = self.stop_hooks.iter().map(Task::name);
        problems.extend(doubles("stop hooks", stop_hooks));
        let hooks = self.hooks.iter().map(Hook::name);
        problems.extend(doubles("post-start hooks", hooks));
        let filters = chain.iter().map(|filter| &*filter.name);
        problems.extend(doubles("filters", filters));
        if !problems.is_empty() {
            return Err(ServerError::Invalid(problems));
        }
        Ok(Additions {
            handlers,
            kinds: self.kinds,
            hooks: self.hooks,
            checks: self.checks,
            filters: self.filters,
            controllers: self.controllers,
            stop_hooks: self.stop_hooks,
            metrics: self.metrics,
        })
    }
}

/// The handlers of a program; the problems of their paths are added to `problems`.
fn path_handlers(added: Vec<AddedHandler>, problems: &mut Vec<String>) -> PathHandlers {
    let mut handlers = PathHandlers::default();
    for AddedHandler {
        part,
        path,
        is_prefix,
        is_listed,
        handler,
    } in added
    {
        if let Err(problem) = handlers.add(part, (&path, is_prefix), handler, is_listed) {
            problems.push(problem);
        }
    }
    handlers
}

/// A problem for each name that is there again.
fn doubles<'a>(things: &str, names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let again = names.filter(|name| !seen.insert(*name));
    again
        .map(|name| format!("there are two {things} {name:?}"))
        .collect()
}
