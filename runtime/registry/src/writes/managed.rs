//! What writes do with the managedFields of an object as a whole.

use apiloom_meta::Object;
use apiloom_meta::managed_fields::ManagedFields;
use serde_json::Value;

use crate::options::RequestContext;

/// Removes and returns the managedFields of an object.
pub(crate) fn take(object: &mut Object) -> Option<Value> {
    ManagedFields::value(object)?;
    object.meta_mut().remove("managedFields")
}

/// Puts managedFields back into an object.
pub(crate) fn put(object: &mut Object, managed: Option<Value>) {
    if let Some(managed) = managed {
        object
            .meta_mut()
            .insert("managedFields".to_owned(), managed);
    }
}

/// Gives an object the managedFields of another one.
pub(crate) fn copy_managed(object: &mut Object, other: &Object) {
    let managed = ManagedFields::value(other);
    if managed == ManagedFields::value(object) {
        return;
    }
    match managed.cloned() {
        None => drop(take(object)),
        managed => put(object, managed),
    }
}

/// Restores managedFields of before admission if a plugin made them invalid, with a warning for the client.
pub(crate) fn restore_managed(ctx: &RequestContext, object: &mut Object, before: Option<Value>) {
    if ManagedFields::value(object) == before.as_ref() {
        return;
    }
    let Err(why) = ManagedFields::check(object) else {
        return;
    };
    ctx.warn(format!(
        ".metadata.managedFields was in an invalid state after admission; this could be caused by an outdated mutating \
         admission controller; please fix your requests: {why}"
    ));
    match before {
        None => drop(take(object)),
        before => put(object, before),
    }
}

/// Gives the new object the managedFields of the present one, if they differ in nothing but times and nothing else
/// differs, so that such a write changes nothing.
pub(crate) fn keep_times(new: &mut Object, old: &Object) {
    let (Some(sent), Some(present)) = (ManagedFields::value(new), ManagedFields::value(old)) else {
        return;
    };
    if sent == present || !is_same_but_managed(new, old) {
        return;
    }
    let (Ok(new_fields), Ok(old_fields)) = (ManagedFields::read(new), ManagedFields::read(old))
    else {
        return;
    };
    if new_fields.differ_in_time(&old_fields) {
        copy_managed(new, old);
    }
}

/// Whether two objects differ in nothing but managedFields.
fn is_same_but_managed(a: &Object, b: &Object) -> bool {
    a.fields().len() == b.fields().len()
        && a.fields()
            .iter()
            .all(|(name, value)| name == "metadata" || b.fields().get(name) == Some(value))
        && metadata_but_managed(a).eq(metadata_but_managed(b))
}

fn metadata_but_managed(object: &Object) -> impl Iterator<Item = (&String, &Value)> {
    let fields = object.meta().into_iter().flatten();
    fields.filter(|(name, _)| *name != "managedFields")
}
