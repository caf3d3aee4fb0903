//! The status that the controller gives to a definition, and the patch that writes it. Other fields of the definition, of which
//! the schemas are large, are neither read nor sent.

use apiloom_kinds::apiextensions::rules::{
    APPROVAL, Approval, has_invalid_authorities, is_protected,
};
use apiloom_kinds::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceDefinitionNames, CustomResourceDefinitionStatus,
};
use apiloom_meta::{Condition, Conditions as _, ObjectMeta, Time};
use apiloom_server::host::{OtherServers, RequestError, Requests};
use serde_json::{Map, Value, json};
use tokio::time::Duration;

use super::known::path;
use super::publish::Problem;

/// Time after which a failed write is repeated, and other servers are looked for again.
pub(super) const AGAIN: Duration = Duration::from_millis(100);

/// Time between the acceptance of names and the end of the installation with several servers, as in kube-apiserver: until then
/// the others serve the kind too.
const INSTALLATION: Duration = Duration::from_secs(5);

/// The condition of a definition whose schemas have problems.
const REFUSED: &str = "NonStructuralSchema";

/// The condition of a definition that is not served, since all definitions together would take too much memory. Kubernetes has no such
/// bound.
const EXCEEDS_QUOTA: &str = "ExceedsQuota";

/// Sets the conditions about the schemas, which have a problem or none, and the approval.
pub(super) fn judge(object: &mut CustomResourceDefinition, problem: Option<&Problem>) {
    let conditions = &mut object.status.conditions;
    let found = problem.map(|problem| match problem {
        Problem::Schemas(why) => (REFUSED, "Violations", why),
        Problem::NoRoom(why) => (EXCEEDS_QUOTA, "DefinitionMemory", why),
    });
    let present = found.map(|(condition, ..)| condition);
    if let Some(conditions) = conditions {
        let is_past = |of: &str| [REFUSED, EXCEEDS_QUOTA].contains(&of) && Some(of) != present;
        conditions.retain(|one| !is_past(&one.condition_type));
    }
    if let Some((condition, reason, why)) = found {
        conditions.set_condition(Condition::new(condition, true, reason, why).into());
    }
    if !is_protected(&object.spec.group) {
        return;
    }
    let approval = Approval::of(&object.metadata);
    let annotation = object.metadata.annotations.get(APPROVAL);
    let annotation = annotation.cloned().unwrap_or_default();
    let (is_approved, reason, message) = match &approval {
        Approval::Approved => (
            true,
            "ApprovedAnnotation",
            format!("approved in {annotation}"),
        ),
        Approval::Bypassed => (
            false,
            "UnapprovedAnnotation",
            format!("not approved: {annotation:?}"),
        ),
        Approval::Missing => (
            false,
            "MissingAnnotation",
            approval.problem().unwrap_or_default(),
        ),
        Approval::Invalid(_) => (
            false,
            "InvalidAnnotation",
            approval.problem().unwrap_or_default(),
        ),
    };
    let condition = "KubernetesAPIApprovalPolicyConformant";
    let condition = Condition::new(condition, is_approved, reason, message);
    object.status.conditions.set_condition(condition.into());
}

/// Whether a definition has all its names, and is not established yet.
pub(super) fn is_installing(object: &CustomResourceDefinition) -> bool {
    let conditions = &object.status.conditions;
    conditions.is_condition_true("NamesAccepted") && !conditions.is_condition_true("Established")
}

/// Sets the condition Established of a definition that is being installed and whose kind is served. Returns the time after which
/// this is possible, if it is too early beside other servers.
pub(super) fn establish(
    object: &mut CustomResourceDefinition,
    others: OtherServers,
) -> Option<Duration> {
    if others == OtherServers::NotYetKnown {
        return Some(AGAIN);
    }
    if others == OtherServers::Some {
        let accepted = object.status.conditions.condition("NamesAccepted");
        let since = accepted.and_then(|one| one.last_transition_time);
        let since = since.map_or(Duration::ZERO, |at| Time::now().duration_since(at));
        let rest = INSTALLATION.saturating_sub(since);
        if !rest.is_zero() {
            return Some(rest);
        }
    }
    let (is_established, reason, message) = if has_invalid_authorities(object) {
        let why = "The conversion webhook CABundle is invalid";
        (false, "InvalidCABundle", why)
    } else {
        let why = "the initial names have been accepted";
        (true, "InitialNamesAccepted", why)
    };
    let condition = Condition::new("Established", is_established, reason, message);
    object.status.conditions.set_condition(condition.into());
    None
}

/// A change of the status of a definition.
pub(super) struct StatusPatch {
    name: String,
    body: Value,
}

impl StatusPatch {
    /// What changes the status before to that of the object; `None` if they are equal. It fails if the definition has changed
    /// since the object was read.
    pub(super) fn new(
        before: &CustomResourceDefinitionStatus,
        object: &CustomResourceDefinition,
    ) -> Option<Self> {
        let (metadata, status) = (&object.metadata, &object.status);
        let mut changed = Map::new();
        if status.accepted_names != before.accepted_names {
            let names = difference(&before.accepted_names, &status.accepted_names);
            changed.insert("acceptedNames".to_owned(), names);
        }
        if status.conditions != before.conditions {
            changed.insert("conditions".to_owned(), json!(status.conditions));
        }
        (!changed.is_empty()).then(|| Self {
            name: metadata.name.clone().unwrap_or_default(),
            body: json!({
                "metadata": {"uid": metadata.uid, "resourceVersion": metadata.resource_version},
                "status": changed,
            }),
        })
    }

    /// Writes the change; returns the metadata of the definition, or `None` if it does not exist.
    pub(super) async fn write(
        self,
        requests: Requests,
    ) -> Result<Option<ObjectMeta>, RequestError> {
        let path = format!("{}/status", path(&self.name));
        requests.merge(&path, &self.body).await
    }
}

/// The merge patch from names to others.
fn difference(
    before: &Option<CustomResourceDefinitionNames>,
    after: &Option<CustomResourceDefinitionNames>,
) -> Value {
    let mut patch = json!(after);
    let before = json!(before);
    if let (Some(patch), Some(before)) = (patch.as_object_mut(), before.as_object()) {
        for name in before.keys() {
            patch.entry(name).or_insert(Value::Null);
        }
    }
    patch
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(value: Value) -> Option<CustomResourceDefinitionNames> {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn a_patch_of_names_removes_those_that_are_left_out() {
        let before = names(json!({"plural": "foos", "kind": "Foo", "shortNames": ["f"]}));
        let after = names(json!({"plural": "foos", "kind": "Fox"}));
        assert_eq!(
            difference(&before, &after),
            json!({"plural": "foos", "kind": "Fox", "shortNames": null})
        );
    }

    #[test]
    fn a_patch_has_what_changes_and_the_state_that_it_changes() {
        let mut object = CustomResourceDefinition::default();
        object.metadata.uid = Some("1".to_owned());
        object.metadata.resource_version = Some("7".to_owned());
        let before = object.status.clone();
        assert!(StatusPatch::new(&before, &object).is_none());
        let condition = Condition::new("Established", true, "R", "m");
        object.status.conditions.set_condition(condition.into());
        let patch = StatusPatch::new(&before, &object).unwrap().body;
        let conditions = json!(object.status.conditions);
        assert_eq!(
            patch,
            json!({"metadata": {"uid": "1", "resourceVersion": "7"}, "status": {"conditions": conditions}})
        );
    }
}
