//! The view of `fake.rs`: clients with a server of their own, for tests.

use apiloom_model::names::identifier;
use serde::Serialize;

use crate::model::Model;

/// `fake.rs`.
#[derive(Debug, Serialize)]
pub(crate) struct FakeView {
    pub(crate) package: String,
    /// The calls that register what the server serves.
    pub(crate) steps: String,
}

impl FakeView {
    pub(crate) fn new(model: &Model) -> FakeView {
        Self::with_paths(model, "super::install", "crate::configure")
    }

    /// In a package with the clients of another one.
    pub(crate) fn of_another_crate(model: &Model) -> FakeView {
        let own = identifier(&model.crate_name);
        let path = |name: &str| format!("::{own}::{name}");
        Self::with_paths(model, &path("generated::install"), &path("configure"))
    }

    fn with_paths(model: &Model, install: &str, configure: &str) -> FakeView {
        let mut steps = format!(".install({install})");
        if model.configure {
            steps.push_str(&format!(".install({configure})"));
        }
        FakeView {
            package: model.package.clone(),
            steps,
        }
    }
}
