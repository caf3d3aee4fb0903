//! References between objects: the indexes that find them, and which Flunders a change concerns.

use apiloom::client::cache::{Event, Index, Lister, ObjectKey};
use wardle::v1alpha1::{Fischer, Flunder};
use wardle::v1beta1::ReferenceType;

/// What a Flunder refers to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Reference {
    /// A Flunder of the same namespace.
    Flunder(ObjectKey),
    /// A Fischer.
    Fischer(String),
}

impl Reference {
    /// The reference of a Flunder, if it has one.
    pub fn of(flunder: &Flunder) -> Option<Self> {
        let spec = flunder.spec.as_ref()?;
        let name = spec.reference.as_deref()?;
        match spec.reference_type {
            Some(ReferenceType::Fischer) => Some(Self::Fischer(name.to_owned())),
            _ => {
                let namespace = flunder.metadata.namespace.as_deref().unwrap_or_default();
                Some(Self::Flunder(ObjectKey::new(namespace, name)))
            }
        }
    }
}

/// Flunders by what they refer to.
pub struct ByReference;

impl Index<Flunder> for ByReference {
    type Key = Reference;
    const NAME: &'static str = "reference";
    fn keys(flunder: &Flunder, emit: &mut dyn FnMut(Reference)) {
        Reference::of(flunder).into_iter().for_each(emit);
    }
}

/// Flunders by the name of the Flunder that they refer to, in any namespace.
pub struct ByReferencedName;

impl Index<Flunder> for ByReferencedName {
    type Key = String;
    const NAME: &'static str = "referenced-name";
    fn keys(flunder: &Flunder, emit: &mut dyn FnMut(String)) {
        if let Some(Reference::Flunder(key)) = Reference::of(flunder) {
            emit(key.name.to_string());
        }
    }
}

/// Fischers by the names that they disallow.
pub struct ByDisallowedName;

impl Index<Fischer> for ByDisallowedName {
    type Key = String;
    const NAME: &'static str = "disallowed-name";
    fn keys(fischer: &Fischer, emit: &mut dyn FnMut(String)) {
        fischer.disallowed_flunders.iter().cloned().for_each(emit);
    }
}

/// The state of a Flunder's reference, as its label shows it.
pub fn state(
    flunder: &Flunder,
    flunders: &Lister<Flunder>,
    fischers: &Lister<Fischer>,
) -> &'static str {
    let is_found = match Reference::of(flunder) {
        None => return "None",
        Some(Reference::Flunder(key)) => {
            let name = key.name.to_string();
            if !fischers.by_index::<ByDisallowedName>(&name).is_empty() {
                return "Disallowed";
            }
            flunders.get_key(&key).is_some()
        }
        Some(Reference::Fischer(name)) => fischers.get("", &name).is_some(),
    };
    if is_found { "Found" } else { "Missing" }
}

/// Whether another Flunder that is not being deleted refers to this one.
pub fn is_in_use(flunder: &Flunder, flunders: &Lister<Flunder>) -> bool {
    let key = ObjectKey::of(flunder);
    let referring = flunders.by_index::<ByReference>(&Reference::Flunder(key.clone()));
    referring
        .iter()
        .any(|other| ObjectKey::of(&**other) != key && other.metadata.deletion_timestamp.is_none())
}

/// The other Flunders that a change of a Flunder concerns: those that refer to it when it comes or goes, and the one that it
/// no longer refers to, which may be waiting for that.
pub fn concerned(event: &Event<Flunder>, flunders: &Lister<Flunder>) -> Vec<ObjectKey> {
    let mut keys = Vec::new();
    if let Event::Added { object, .. } | Event::Deleted { last: object, .. } = event {
        let reference = Reference::Flunder(ObjectKey::of(&**object));
        let referring = flunders.by_index::<ByReference>(&reference);
        keys.extend(referring.iter().map(|other| ObjectKey::of(&**other)));
    }
    let released = match event {
        Event::Deleted { last, .. } => Reference::of(last),
        Event::Updated { old, new } => {
            let is_released = new.metadata.deletion_timestamp.is_some()
                || Reference::of(old) != Reference::of(new);
            Reference::of(old).filter(|_| is_released)
        }
        _ => None,
    };
    if let Some(Reference::Flunder(key)) = released {
        keys.push(key);
    }
    keys
}

/// The Flunders that a Fischer concerns: those that refer to it, and those that refer to a name that it disallows.
pub fn referring_to_fischer(fischer: &Fischer, flunders: &Lister<Flunder>) -> Vec<ObjectKey> {
    let name = fischer.metadata.name.clone().unwrap_or_default();
    let mut referring = flunders.by_index::<ByReference>(&Reference::Fischer(name));
    for name in &fischer.disallowed_flunders {
        referring.extend(flunders.by_index::<ByReferencedName>(name));
    }
    let keys = referring.iter().map(|flunder| ObjectKey::of(&**flunder));
    keys.collect()
}
