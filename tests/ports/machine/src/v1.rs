//! The kind, and the kinds of the bodies of its subresources.

mod console;
mod issuer;
mod logs;
mod power;
mod proxy;
mod restarter;

pub use console::Console;
pub use issuer::Issuer;
pub use logs::Logs;
pub use power::Power;
pub use proxy::Proxy;
pub use restarter::Restarter;

use apiloom::prelude::*;

/// Machine runs an image.
#[apiloom::resource(group = "machine.example.com", version = "v1", namespaced, status,
    verbs(skip = [delete_collection]), unconditional_update,
    subresource(name = "power", verbs = [get, update], handler = Power),
    subresource(name = "restart", verbs = [create], handler = Restarter),
    subresource(name = "token", verbs = [create], handler = Issuer),
    connect(name = "console", verbs = [create, get], handler = Console),
    connect(name = "log", verbs = [get], handler = Logs),
    connect(name = "proxy", verbs = [create, delete, get, patch, update], handler = Proxy),
    method(name = "power_of", verb = get, subresource = "power"),
    method(name = "switch", verb = update, subresource = "power"),
    method(name = "reboot", verb = create, subresource = "restart"),
    method(name = "fleet", verb = list),
    method(name = "build", verb = create, input = Machine, output = Machine),
    method(name = "rebuild", verb = update, input = Machine),
    method(name = "amend", verb = patch, output = Machine),
    method(name = "declare", verb = apply, input = Machine),
    printcolumn(name = "On", path = spec.on), printcolumn(name = "Restarts", path = status.restarts))]
pub struct Machine {
    pub metadata: ObjectMeta,
    pub spec: MachineSpec,
    pub status: Option<MachineStatus>,
}

/// MachineSpec is what is run.
#[apiloom::api]
pub struct MachineSpec {
    /// The program.
    #[api(len = 1..=60)]
    pub image: String,
    /// Whether it is switched on.
    #[api(default = false)]
    pub on: bool,
    /// Where its HTTP server listens: `HOST:PORT`.
    pub address: Option<String>,
}

/// MachineStatus is what runs.
#[apiloom::api]
#[derive(Default)]
pub struct MachineStatus {
    /// How often it was restarted.
    #[api(default = 0)]
    pub restarts: i32,
}

/// Restart asks for a restart.
#[apiloom::resource(group = "machine.example.com", version = "v1", simple)]
pub struct Restart {
    pub metadata: ObjectMeta,
    /// Why it is restarted.
    #[api(len = 1..=60)]
    pub reason: String,
}

/// PowerState is whether a machine is switched on.
#[apiloom::resource(
    group = "machine.example.com",
    version = "v1",
    simple,
    proto(package = "machine.example.com.v1")
)]
pub struct PowerState {
    #[api(proto = 1)]
    pub metadata: ObjectMeta,
    /// Whether it is switched on.
    #[api(proto = 2)]
    pub on: bool,
}

/// TokenRequest asks for a token by which a machine identifies itself.
#[apiloom::resource(group = "machine.example.com", version = "v1", simple)]
pub struct TokenRequest {
    pub metadata: ObjectMeta,
    /// Who may read the token.
    #[api(items = 1..=4)]
    pub audiences: Vec<String>,
    /// The token, in the response.
    pub token: Option<String>,
}
