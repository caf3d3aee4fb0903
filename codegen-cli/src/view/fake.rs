//! The view of `fake.rs`: clients with a server of their own, for tests.

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
        let install = ".install(super::install)";
        let configure = if model.configure {
            ".install(crate::configure)"
        } else {
            ""
        };
        FakeView {
            package: model.package.clone(),
            steps: format!("{install}{configure}"),
        }
    }
}
