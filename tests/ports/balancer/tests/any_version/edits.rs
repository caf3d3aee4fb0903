//! Changes of a balancer: what a client of a version does to the document that it read, and what that means for the hub.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// A version, newest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    V1,
    Beta,
    Alpha,
}

pub const VERSIONS: [Version; 3] = [Version::V1, Version::Beta, Version::Alpha];

impl Version {
    pub fn name(self) -> &'static str {
        match self {
            Self::V1 => "v1",
            Self::Beta => "v1beta1",
            Self::Alpha => "v1alpha1",
        }
    }

    /// The specification of a new object in this version, and what the hub makes of it.
    pub fn first(self) -> (Value, Value) {
        let drain = self != Self::Alpha;
        let hub = json!({"class": "c", "weight": 1, "timeoutSeconds": 60, "policy": "RoundRobin", "drain": drain});
        let spec = match self {
            Self::V1 => json!({"class": "c", "drain": drain}),
            Self::Beta => json!({"class": "c", "comment": "lost"}),
            Self::Alpha => json!({"class": "c"}),
        };
        (spec, hub)
    }
}

type Name = &'static str;

/// One change.
#[derive(Clone, Debug)]
pub enum Edit {
    Label(i32),
    Class(Name),
    Weight(i32),
    /// In the unit of the version.
    Timeout(i32),
    /// The number of the policy in the version.
    Policy(usize),
    Comment(Name),
    Drain(bool),
    Session(Option<Name>),
    Health(Option<Check>),
    Expect(i32),
    /// Port and number of connections of a listener.
    Listener(Name, Option<(i32, Option<i32>)>),
    Certificate(Name, Name),
    Burst(Name, i32),
    TurnListeners,
    Backend(Name, Option<Name>),
    BackendWeight(Name, i32),
    AddStep(u32),
    ChangeStep(usize, u32),
    RemoveStep(usize),
    TurnSteps,
    Note(usize, Name),
    Alias(Name, bool),
    Ready(i32),
    Refused(i32),
}

/// How it is found out whether a backend is well.
#[derive(Clone, Debug)]
pub enum Check {
    Tcp(i32),
    Http(Name),
    Grpc(Name),
}

/// Any change.
pub fn edit() -> impl Strategy<Value = Edit> {
    use Edit as E;
    let name = || prop::sample::select(vec!["a", "b", "c"]);
    let port = || prop::sample::select(vec![1, 80, 443, 8080, 0]);
    let number = || -3..30_i32;
    // Steps have no names: two that are the same could not be told apart.
    let action = || any::<u32>().no_shrink();
    let check = prop_oneof![
        port().prop_map(Check::Tcp),
        name().prop_map(Check::Http),
        name().prop_map(Check::Grpc),
    ];
    let listener = (port(), prop::option::of(number()));
    let of_the_whole = prop_oneof![
        (0..30).prop_map(E::Label),
        prop::sample::select(vec!["c", "d"]).prop_map(E::Class),
        (-5..105).prop_map(E::Weight),
        prop::sample::select(vec![0, 1, 2, 59, 61, 90, 2000]).prop_map(E::Timeout),
        (0..3_usize).prop_map(E::Policy),
        name().prop_map(E::Comment),
        any::<bool>().prop_map(E::Drain),
        prop::option::of(name()).prop_map(E::Session),
        prop::option::weighted(0.8, check).prop_map(E::Health),
        (90..300).prop_map(E::Expect),
        number().prop_map(E::Ready),
        number().prop_map(E::Refused),
    ];
    let of_parts = prop_oneof![
        3 => (name(), prop::option::weighted(0.8, listener)).prop_map(|(name, to)| E::Listener(name, to)),
        1 => (name(), name()).prop_map(|(name, to)| E::Certificate(name, to)),
        1 => (name(), number()).prop_map(|(name, to)| E::Burst(name, to)),
        1 => Just(E::TurnListeners),
        2 => (name(), prop::option::weighted(0.8, prop::sample::select(vec!["x", "y", ""])))
            .prop_map(|(name, to)| E::Backend(name, to)),
        1 => (name(), number()).prop_map(|(name, to)| E::BackendWeight(name, to)),
        2 => action().prop_map(E::AddStep),
        1 => (0..3_usize, action()).prop_map(|(at, to)| E::ChangeStep(at, to)),
        1 => (0..3_usize).prop_map(E::RemoveStep),
        1 => Just(E::TurnSteps),
        2 => (0..3_usize, name()).prop_map(|(at, to)| E::Note(at, to)),
        1 => (name(), any::<bool>()).prop_map(|(name, to)| E::Alias(name, to)),
    ];
    prop_oneof![of_the_whole, of_parts]
}

impl Edit {
    /// What it changes; of two changes of the same thing at once, only what comes of both together can be seen.
    pub fn target(&self) -> String {
        use Edit as E;
        match self {
            E::Listener(name, _) => format!("listener {name}"),
            E::Backend(name, _) => format!("backend {name}"),
            E::AddStep(_) | E::ChangeStep(..) | E::RemoveStep(_) | E::TurnSteps => {
                "steps".to_owned()
            }
            other => format!("{other:?}").split('(').next().unwrap().to_owned(),
        }
    }

    pub fn is_of_status(&self) -> bool {
        matches!(self, Self::Ready(_) | Self::Refused(_))
    }

    /// Whether a version has a way to say it.
    pub fn can_be_said(&self, version: Version) -> bool {
        use Edit as E;
        let by = match self {
            E::Label(_) | E::Class(_) | E::Weight(_) | E::Timeout(_) => &VERSIONS[..],
            E::Backend(..) | E::Ready(_) => &VERSIONS[..],
            E::Comment(_) => &[Version::Beta],
            E::Drain(_) | E::Session(_) | E::Expect(_) | E::Certificate(..) => &[Version::V1],
            E::Burst(..) | E::BackendWeight(..) | E::Note(..) => &[Version::V1],
            E::Health(Some(Check::Grpc(_))) => &[Version::V1],
            _ => &[Version::V1, Version::Beta],
        };
        by.contains(&version)
    }

    /// Makes the change in a document of a version: in the specification, or in the status.
    pub fn apply(&self, version: Version, document: &mut Value) {
        use Edit as E;
        let fields = object(document);
        match (self, version) {
            (E::Timeout(to), Version::Beta) => put(fields, "idleSeconds", json!(to)),
            (E::Timeout(to), Version::Alpha) => put(fields, "timeoutMinutes", json!(to)),
            (E::Policy(to), Version::Beta) => {
                put(fields, "policy", json!(["RoundRobin", "ByLoad"][to % 2]));
            }
            (E::Comment(to), _) => put(fields, "comment", json!(to)),
            (E::Backend(name, to), Version::Alpha) => {
                let mut backends = fields.remove("backends").unwrap_or_default();
                match to {
                    Some(address) => put(object(&mut backends), name, json!(address)),
                    None => drop(object(&mut backends).remove(*name)),
                }
                put(fields, "backends", backends);
            }
            (E::Backend(name, Some(address)), Version::Beta) => {
                let mut backends = fields.remove("backends").unwrap_or_default();
                put(object(&mut backends), name, json!({ "address": address }));
                put(fields, "backends", backends);
            }
            (E::Health(to), Version::Beta) => put(fields, "health", health(to.as_ref())),
            _ => self.apply_in_hub(Version::V1, document),
        }
    }

    /// Makes the change that a client of a version means in a document of the hub.
    pub fn apply_in_hub(&self, version: Version, document: &mut Value) {
        use Edit as E;
        let fields = object(document);
        match self {
            E::Label(_) | E::Comment(_) => {}
            E::Class(to) => put(fields, "class", json!(to)),
            E::Weight(to) => put(fields, "weight", json!(to)),
            E::Timeout(to) => {
                let old = fields["timeoutSeconds"].as_i64().unwrap();
                let to = i64::from(*to);
                let new = match version {
                    Version::Alpha if old / 60 == to => old,
                    Version::Alpha => to * 60,
                    _ => to,
                };
                put(fields, "timeoutSeconds", json!(new));
            }
            E::Policy(to) => {
                let is_by_load = fields["policy"] != "RoundRobin";
                let to = match version {
                    Version::Beta if is_by_load == (to % 2 == 1) => return,
                    Version::Beta => to % 2,
                    _ => *to,
                };
                let names = ["RoundRobin", "LeastLoaded", "Random"];
                put(fields, "policy", json!(names[to]));
            }
            E::Drain(to) => put(fields, "drain", json!(to)),
            E::Session(to) => {
                let session = to.map(|cookie| json!({ "cookie": cookie }));
                put(fields, "session", session.unwrap_or_default());
            }
            E::Health(to) => {
                let mut new = health(to.as_ref());
                if version == Version::Beta
                    && new.get("http").is_some()
                    && let Some(expect) = fields
                        .get("health")
                        .and_then(|old| old["http"].get("expect"))
                {
                    new["http"]["expect"] = expect.clone();
                }
                put(fields, "health", new);
            }
            E::Expect(to) => {
                if let Some(http) = fields.get_mut("health").and_then(|old| old.get_mut("http")) {
                    http["expect"] = json!(to);
                }
            }
            E::Listener(name, to) => change_listeners(fields, |listeners| match to {
                None => listeners.retain(|listener| listener["name"] != *name),
                Some((port, connections)) => {
                    let place = listeners
                        .iter()
                        .position(|listener| listener["name"] == *name);
                    let place = place.unwrap_or_else(|| {
                        listeners.push(json!({ "name": name }));
                        listeners.len() - 1
                    });
                    let listener = &mut listeners[place];
                    listener["port"] = json!(port);
                    match connections {
                        Some(to) => listener["limits"]["connections"] = json!(to),
                        None => drop(object(listener).remove("limits")),
                    }
                }
            }),
            E::Certificate(name, to) => change_listeners(fields, |listeners| {
                for listener in listeners.iter_mut().filter(|one| one["name"] == *name) {
                    listener["certificate"] = json!(to);
                }
            }),
            E::Burst(name, to) => change_listeners(fields, |listeners| {
                for listener in listeners.iter_mut().filter(|one| one["name"] == *name) {
                    if let Some(limits) = listener.get_mut("limits") {
                        limits["burst"] = json!(to);
                    }
                }
            }),
            E::TurnListeners => change_listeners(fields, |listeners| listeners.reverse()),
            E::Backend(name, to) => {
                let mut backends = fields.remove("backends").unwrap_or_default();
                match to {
                    None => drop(object(&mut backends).remove(*name)),
                    Some(address) => {
                        let backend = &mut backends[*name];
                        backend["address"] = json!(address);
                        if backend.get("weight").is_none() {
                            backend["weight"] = json!(1);
                        }
                    }
                }
                put(fields, "backends", backends);
            }
            E::BackendWeight(name, to) => {
                let backends = fields.get_mut("backends");
                if let Some(backend) = backends.and_then(|backends| backends.get_mut(*name)) {
                    backend["weight"] = json!(to);
                }
            }
            E::AddStep(action) => change(fields, "steps", |steps| {
                steps.push(json!({"action": action.to_string()}));
            }),
            E::ChangeStep(at, action) => change(fields, "steps", |steps| {
                if let Some(step) = steps.get_mut(*at) {
                    step["action"] = json!(action.to_string());
                }
            }),
            E::RemoveStep(at) => change(fields, "steps", |steps| {
                if *at < steps.len() {
                    steps.remove(*at);
                }
            }),
            E::TurnSteps => change(fields, "steps", |steps| steps.reverse()),
            E::Note(at, note) => change(fields, "steps", |steps| {
                if let Some(step) = steps.get_mut(*at) {
                    step["note"] = json!(note);
                }
            }),
            E::Alias(name, is_there) => change(fields, "aliases", |aliases| {
                aliases.retain(|alias| alias != name);
                if *is_there {
                    aliases.push(json!(name));
                }
            }),
            E::Ready(to) => put(fields, "ready", json!(to)),
            E::Refused(to) => put(fields, "refused", json!(to)),
        }
    }
}

fn health(check: Option<&Check>) -> Value {
    match check {
        Some(Check::Tcp(port)) => json!({"tcp": {"port": port}}),
        Some(Check::Http(path)) => json!({"http": {"path": path}}),
        Some(Check::Grpc(service)) => json!({"grpc": {"service": service}}),
        None => Value::Null,
    }
}

fn object(value: &mut Value) -> &mut Map<String, Value> {
    if value.is_null() {
        *value = json!({});
    }
    value.as_object_mut().unwrap()
}

/// Sets a field; null and what is empty is left out.
fn put(fields: &mut Map<String, Value>, name: &str, value: Value) {
    let is_empty = match &value {
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        value => value.is_null(),
    };
    if is_empty {
        fields.remove(name);
    } else {
        fields.insert(name.to_owned(), value);
    }
}

fn change_listeners(fields: &mut Map<String, Value>, edit: impl FnOnce(&mut Vec<Value>)) {
    change(fields, "listeners", edit);
}

/// Changes a list.
fn change(fields: &mut Map<String, Value>, name: &str, edit: impl FnOnce(&mut Vec<Value>)) {
    let mut list = fields.remove(name).unwrap_or_else(|| json!([]));
    edit(list.as_array_mut().unwrap());
    put(fields, name, list);
}

/// Whether the rules of the hub allow a change; what was there before held to them.
pub fn holds(old: &Value, new: &Value) -> bool {
    let within = |value: &Value, min: i64, max: i64| {
        value.is_null()
            || value
                .as_i64()
                .is_some_and(|value| (min..=max).contains(&value))
    };
    let items = |name: &str| new[name].as_array().into_iter().flatten();
    let mut backends = new["backends"].as_object().into_iter().flatten();
    let health = &new["health"];
    old["class"] == new["class"]
        && within(&new["weight"], 0, 100)
        && within(&new["timeoutSeconds"], 1, 86_400)
        && within(&health["tcp"]["port"], 1, 65_535)
        && within(&health["http"]["expect"], 100, 599)
        && items("listeners").all(|listener| {
            within(&listener["port"], 1, 65_535)
                && within(&listener["limits"]["connections"], 0, i64::MAX)
                && within(&listener["limits"]["burst"], 0, i64::MAX)
        })
        && backends
            .all(|(_, backend)| backend["address"] != "" && within(&backend["weight"], 0, 100))
}

/// The same of the status.
pub fn holds_in_status(old: Option<&Value>, new: Option<&Value>) -> bool {
    let number =
        |status: Option<&Value>, name: &str| status.and_then(|status| status[name].as_i64());
    let refused = (number(old, "refused"), number(new, "refused"));
    new.is_none_or(|_| number(new, "ready").is_some_and(|ready| ready >= 0))
        && !matches!(refused, (Some(old), Some(new)) if new < old)
}
