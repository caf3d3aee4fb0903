//! Owner references: which object controls another.

use apiloom_meta::kind::Scope;
use apiloom_meta::{GroupKind, GroupVersion, ObjectMeta, OwnerReference, Resource};

use crate::cache::ObjectKey;

/// Why an object cannot be made the controller of another.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OwnerError {
    /// Another object controls it already.
    #[error("{kind} {name} controls the object already")]
    AlreadyControlled {
        /// The kind of the controller.
        kind: String,
        /// The name of the controller.
        name: String,
    },
    /// A garbage collector looks for a namespaced owner in the namespace of the dependent, and would delete this one.
    #[error(
        "the owner is in the namespace {owner:?}, and the object in {object:?}: an owner must be in the same namespace, or have none"
    )]
    OtherNamespace {
        /// The namespace of the owner.
        owner: String,
        /// The namespace of the object; empty without one.
        object: String,
    },
    /// The owner was not read from a server.
    #[error("the owner has no name or no uid; use the object that the server returned")]
    NotCreated,
}

/// Makes `owner` the controller of the object with this metadata: it is deleted after its owner, and
/// [`Controller::owns`](super::Controller::owns) finds the owner. An older reference to the same kind and name is replaced.
///
/// # Errors
///
/// If it has another controller, if the owner is in another namespace, or was not created yet. The metadata stays as it is.
pub fn set_controller<O: Resource>(metadata: &mut ObjectMeta, owner: &O) -> Result<(), OwnerError> {
    let reference = OwnerReference::to(owner).as_controller();
    if reference.name.is_empty() || reference.uid.is_empty() {
        return Err(OwnerError::NotCreated);
    }
    let owner_namespace = owner.metadata().namespace.as_deref().unwrap_or_default();
    let namespace = metadata.namespace.as_deref().unwrap_or_default();
    if !owner_namespace.is_empty() && owner_namespace != namespace {
        return Err(OwnerError::OtherNamespace {
            owner: owner_namespace.to_owned(),
            object: namespace.to_owned(),
        });
    }
    if let Some(controller) = controller_of(metadata)
        && controller.uid != reference.uid
    {
        return Err(OwnerError::AlreadyControlled {
            kind: controller.kind.clone(),
            name: controller.name.clone(),
        });
    }
    let is_same = |other: &OwnerReference| {
        other.uid == reference.uid
            || (group_kind(other) == group_kind(&reference) && other.name == reference.name)
    };
    match metadata
        .owner_references
        .iter_mut()
        .find(|other| is_same(other))
    {
        Some(other) => *other = reference,
        None => metadata.owner_references.push(reference),
    }
    Ok(())
}

/// The reference to the object that controls the one with this metadata. There is at most one.
pub fn controller_of(metadata: &ObjectMeta) -> Option<&OwnerReference> {
    let owners = &metadata.owner_references;
    owners.iter().find(|owner| owner.controller == Some(true))
}

/// Whether `owner` controls the object with this metadata: by its uid, so an earlier object of the same name does not.
pub fn is_controlled_by<O: Resource>(metadata: &ObjectMeta, owner: &O) -> bool {
    let uid = owner.metadata().uid.as_deref().unwrap_or_default();
    let controller = controller_of(metadata);
    !uid.is_empty() && controller.is_some_and(|controller| controller.uid == uid)
}

/// The key of the object that controls the one with this metadata, if it is of the kind `O`, of any version.
pub fn controller_key<O: Resource>(metadata: &ObjectMeta, scope: Scope) -> Option<ObjectKey> {
    let controller = controller_of(metadata)?;
    if group_kind(controller) != GroupKind::new(O::GROUP, O::KIND) {
        return None;
    }
    let namespace = match scope {
        Scope::Namespaced => metadata.namespace.as_deref().unwrap_or_default(),
        Scope::Cluster => "",
    };
    Some(ObjectKey::new(namespace, &controller.name))
}

fn group_kind(owner: &OwnerReference) -> GroupKind {
    let version = GroupVersion::parse(&owner.api_version);
    let group = version.map(|version| version.group).unwrap_or_default();
    GroupKind::new(group, owner.kind.clone())
}

#[cfg(test)]
mod tests {
    use apiloom_kinds::coordination::v1::Lease;
    use apiloom_kinds::core::v1::{ConfigMap, Namespace};

    use super::*;

    fn metadata(namespace: &str, name: &str, uid: &str) -> ObjectMeta {
        ObjectMeta {
            namespace: Some(namespace.to_owned()).filter(|namespace| !namespace.is_empty()),
            name: Some(name.to_owned()),
            uid: Some(uid.to_owned()),
            ..ObjectMeta::default()
        }
    }

    fn lease(name: &str, uid: &str) -> Lease {
        Lease {
            metadata: metadata("default", name, uid),
            ..Lease::default()
        }
    }

    #[test]
    fn an_owner_is_set_once_and_found_by_its_kind() {
        let mut child = metadata("default", "child", "c");
        let owner = lease("a", "1");
        set_controller(&mut child, &owner).unwrap();
        set_controller(&mut child, &owner).unwrap();
        assert_eq!(child.owner_references.len(), 1);
        assert!(is_controlled_by(&child, &owner));
        let key = controller_key::<Lease>(&child, Scope::Namespaced);
        assert_eq!(key, Some(ObjectKey::new("default", "a")));
        assert_eq!(controller_key::<ConfigMap>(&child, Scope::Namespaced), None);
        // Another version of the owner's kind is the same kind, and one of another group is not.
        child.owner_references[0].api_version = "coordination.k8s.io/v2".to_owned();
        assert!(controller_key::<Lease>(&child, Scope::Namespaced).is_some());
        child.owner_references[0].api_version = "other/v1".to_owned();
        assert!(controller_key::<Lease>(&child, Scope::Namespaced).is_none());
    }

    #[test]
    fn there_is_one_controller() {
        let mut child = metadata("default", "child", "c");
        set_controller(&mut child, &lease("a", "1")).unwrap();
        let before = child.clone();
        let error = set_controller(&mut child, &lease("b", "2")).unwrap_err();
        assert_eq!(error.to_string(), "Lease a controls the object already");
        // An object that was deleted and created again under the same name is another one.
        assert!(set_controller(&mut child, &lease("a", "3")).is_err());
        assert!(!is_controlled_by(&child, &lease("a", "3")));
        assert_eq!(child, before);
        // An owner that does not control it becomes its controller.
        child.owner_references[0].controller = None;
        set_controller(&mut child, &lease("a", "3")).unwrap();
        assert_eq!(child.owner_references.len(), 1);
        assert!(is_controlled_by(&child, &lease("a", "3")));
    }

    #[test]
    fn an_owner_is_in_the_same_namespace_or_has_none() {
        let mut other = metadata("other", "child", "c");
        let error = set_controller(&mut other, &lease("a", "1")).unwrap_err();
        assert!(matches!(error, OwnerError::OtherNamespace { .. }));
        let mut cluster = metadata("", "child", "c");
        assert!(set_controller(&mut cluster, &lease("a", "1")).is_err());
        let owner = Namespace {
            metadata: metadata("", "ns", "1"),
            ..Namespace::default()
        };
        set_controller(&mut other, &owner).unwrap();
        set_controller(&mut cluster, &owner).unwrap();
        let key = controller_key::<Namespace>(&other, Scope::Cluster);
        assert_eq!(key, Some(ObjectKey::new("", "ns")));
        let unborn = Lease::default();
        assert_eq!(
            set_controller(&mut other, &unborn),
            Err(OwnerError::NotCreated)
        );
        assert!(!is_controlled_by(&other, &unborn));
    }
}
