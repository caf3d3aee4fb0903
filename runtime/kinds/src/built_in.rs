//! The trait of the built-in kinds, by which each is registered with its rules.

use apiloom_meta::kind::Resource;
use apiloom_registry::RegistryBuilder;

/// A kind of Kubernetes, which a server serves after `Builder::built_in`. Each group has a cargo feature: `core` and so on, which
/// is `apis-core` in `apiloom`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a built-in kind",
    note = "register your own kinds with `Builder::kind`; built-in kinds need the cargo feature of their group"
)]
pub trait BuiltIn: Resource {
    /// Registers the kind with its rules, as a kind of the server itself. Doing so twice is the same as once.
    fn register(registry: &mut RegistryBuilder);
}
