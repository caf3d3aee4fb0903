//! The objects and paths that the tests use on a wardle server.

use serde_json::{Value, json};

/// Flunders of the `default` namespace, in the stored version.
pub const FLUNDERS: &str = "/apis/wardle.example.com/v1alpha1/namespaces/default/flunders";
/// The same in the hub.
pub const FLUNDERS_BETA: &str = "/apis/wardle.example.com/v1beta1/namespaces/default/flunders";
/// Flunders of all namespaces.
pub const ALL_FLUNDERS: &str = "/apis/wardle.example.com/v1alpha1/flunders";
/// Fischers.
pub const FISCHERS: &str = "/apis/wardle.example.com/v1alpha1/fischers";

/// A flunder in the stored version.
pub fn flunder(name: &str) -> Value {
    json!({"apiVersion": "wardle.example.com/v1alpha1", "kind": "Flunder", "metadata": {"name": name}})
}
