//! Fixed-point quantities with suffixes: `100m`, `1Gi`, `1e3`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A quantity; keeps the suffix family it was written in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Quantity(String);
