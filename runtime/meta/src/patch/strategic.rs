//! Strategic merge patch: a merge patch whose lists are merged as the schema says, with directives.
//!
//! Texts and odd cases are those of kube-apiserver. The work of one patch is limited, and linear in the size of patch and
//! document except for patches that change one item many times.

use std::collections::{HashMap, HashSet};

use apiloom_schema::tree::{Node, PatchStrategy, child};
use serde_json::{Map, Value};

use super::error::PatchError;
use super::merge::insert_sorted;
use super::steps::Steps;
use crate::go_value;
use crate::interrupt::is_interrupted;

/// Replaces or deletes the object or list item in which it stands, or all items of the list.
const DIRECTIVE: &str = "$patch";
/// Lists the fields that an object keeps.
const RETAIN_KEYS: &str = "$retainKeys";
/// Prefix of the name of a list of scalars, with the items to remove.
const DELETE_FROM_LIST: &str = "$deleteFromPrimitiveList";
/// Prefix of the name of a list, with the order of its items, or of their keys.
const SET_ORDER: &str = "$setElementOrder";

/// Steps for an item of a merged list, which is hashed, looked up and sorted: a million items take below a second.
const STEPS_PER_ITEM: usize = 50;

type Fields = Map<String, Value>;

/// The document with the changes of a patch. `root` is the schema of the document.
///
/// # Errors
/// [`PatchError::BadFormat`], [`PatchError::Unmergeable`], [`PatchError::UnknownDirective`],
/// [`PatchError::NotApplicable`] if it takes too many steps.
pub(super) fn merge(root: &Node, document: Fields, patch: &Fields) -> Result<Fields, PatchError> {
    let mut document = document;
    Merge::default().fields(Some(root), &mut document, patch)?;
    Ok(document)
}

/// A merge in progress.
#[derive(Default)]
struct Merge {
    steps: Steps,
}

impl Merge {
    fn fields(
        &mut self,
        node: Option<&Node>,
        target: &mut Fields,
        patch: &Fields,
    ) -> Result<(), PatchError> {
        if let Some(directive) = patch.get(DIRECTIVE) {
            target.clear();
            return match directive.as_str() {
                Some("replace") => {
                    let others = patch.iter().filter(|(name, _)| *name != DIRECTIVE);
                    target.extend(others.map(|(name, value)| (name.clone(), value.clone())));
                    Ok(())
                }
                Some("delete") => Ok(()),
                _ => Err(unknown_directive(directive, patch)),
            };
        }
        self.retain_keys(target, patch)?;
        for (name, order) in patch.iter().filter(|(name, _)| name.starts_with(SET_ORDER)) {
            let name = behind(name, SET_ORDER)
                .ok_or_else(|| bad_format("invalid patch format of setElementOrder list"))?;
            self.ordered_list(List::of(node, name), target, patch, order)?;
        }
        let has_orders = patch.keys().any(|name| name.starts_with(SET_ORDER));
        let is_ordered =
            |name: &str| has_orders && patch.contains_key(&format!("{SET_ORDER}/{name}"));
        let mut new = Vec::new();
        for (name, value) in patch.iter().filter(|(name, _)| !is_directive(name)) {
            if !is_ordered(name)
                && let Some(value) = self.field(node, target, name, value)?
            {
                new.push((name.clone(), value));
            }
        }
        insert_sorted(target, new);
        for (name, items) in patch
            .iter()
            .filter(|(name, _)| name.starts_with(DELETE_FROM_LIST))
        {
            self.delete_from_list(target, name, items)?;
        }
        Ok(())
    }

    /// Merges a value into a field, or returns it if there is no such field.
    fn field(
        &mut self,
        node: Option<&Node>,
        target: &mut Fields,
        name: &str,
        value: &Value,
    ) -> Result<Option<Value>, PatchError> {
        self.steps.spend(1).map_err(PatchError::NotApplicable)?;
        let list = List::of(node, name);
        match (target.get_mut(name), value) {
            (_, Value::Null) => drop(target.remove(name)),
            (Some(Value::Object(old)), Value::Object(new)) => {
                if list.strategy.is_some_and(PatchStrategy::replaces) {
                    old.clone_from(new);
                } else {
                    self.fields(list.node, old, new)?;
                }
            }
            (Some(Value::Array(old)), Value::Array(new)) => {
                *old = self.list(list, std::mem::take(old), new)?;
            }
            (None, _) => return Ok(without_directives(value)),
            (Some(old), _) => match without_directives(value) {
                Some(value) => *old = value,
                None => drop(target.remove(name)),
            },
        }
        Ok(None)
    }

    /// Removes the fields that are not in the list of `$retainKeys`, which must have those of the patch.
    fn retain_keys(&mut self, target: &mut Fields, patch: &Fields) -> Result<(), PatchError> {
        let Some(retained) = patch.get(RETAIN_KEYS) else {
            return Ok(());
        };
        let refused = || bad_format("invalid patch format of retainKeys");
        let retained = retained.as_array().ok_or_else(refused)?;
        let retained: HashSet<&str> = retained.iter().filter_map(Value::as_str).collect();
        let is_change =
            |(name, value): &(&String, &Value)| !value.is_null() && !is_directive(name.as_str());
        if !patch
            .iter()
            .filter(is_change)
            .all(|(name, _)| retained.contains(name.as_str()))
        {
            return Err(refused());
        }
        self.spend(target.len())?;
        target.retain(|name, _| retained.contains(name.as_str()));
        Ok(())
    }

    /// Merges a list if its strategy says so, or replaces it.
    fn list(
        &mut self,
        list: List<'_>,
        old: Vec<Value>,
        patch: &[Value],
    ) -> Result<Vec<Value>, PatchError> {
        if !list.strategy.is_some_and(PatchStrategy::merges) {
            return Ok(patch.to_vec());
        }
        self.spend(old.len() + patch.len())?;
        match element_type(&old, patch)? {
            Some(ElementType::Object) => self.objects(list, old, patch),
            Some(ElementType::Scalar) => Ok(scalars(old, patch)),
            None => Ok(old),
        }
    }

    /// Merges a list whose items are objects with a key.
    fn objects(
        &mut self,
        list: List<'_>,
        old: Vec<Value>,
        patch: &[Value],
    ) -> Result<Vec<Value>, PatchError> {
        let key = list.merge_key.ok_or_else(|| {
            PatchError::Unmergeable("cannot merge lists without merge key for struct".to_owned())
        })?;
        let (mut merged, changes) = special_items(key, old, patch)?;
        let identity = Identity::Key(key);
        let before = identity.positions(&merged);
        let mut positions = before.clone();
        for change in &changes {
            let value = required_key(change, key)?;
            let Some(item) = positions.get(value).and_then(|at| merged.get_mut(*at)) else {
                positions.insert(value.clone(), merged.len());
                merged.push(as_decoded(change));
                continue;
            };
            if let Value::Object(item) = item {
                self.fields(list.items(), item, change)?;
            }
        }
        let mut order = HashMap::new();
        for (at, change) in changes.iter().enumerate() {
            if let Some(value) = change.get(key) {
                order.entry(value).or_insert(at);
            }
        }
        Ok(arrange(merged, identity, &order, &before))
    }

    /// Merges a list, if both have it, and sorts it as `$setElementOrder` says.
    fn ordered_list(
        &mut self,
        list: List<'_>,
        target: &mut Fields,
        patch: &Fields,
        order: &Value,
    ) -> Result<(), PatchError> {
        let order = list_of(order)?;
        let old = target.get(list.name).map(list_of).transpose()?;
        let changes = patch.get(list.name).map(list_of).transpose()?;
        check_order(changes.map_or(&[], Vec::as_slice), order, list.merge_key)?;
        let old_len = old.map_or(0, Vec::len);
        self.spend(old_len + changes.map_or(0, Vec::len) + order.len())?;
        let identity = list.merge_key.map_or(Identity::Item, Identity::Key);
        let before = identity.positions(old.map_or(&[], Vec::as_slice));
        let merged = match (old, changes) {
            (None, None) => return Ok(()),
            (None, Some(changes)) => changes.iter().filter_map(without_directives).collect(),
            (Some(_), _) => {
                // It is a list: `old` is one.
                let old = target.get_mut(list.name).and_then(Value::as_array_mut);
                let old = old.map(std::mem::take).unwrap_or_default();
                match changes {
                    Some(changes) => self.list(list, old, changes)?,
                    None => old,
                }
            }
        };
        let mut places = HashMap::new();
        for (at, item) in order.iter().enumerate() {
            places.entry(identity.required(item)?).or_insert(at);
        }
        let arranged = arrange(merged, identity, &places, &before);
        target.insert(list.name.to_owned(), Value::Array(arranged));
        Ok(())
    }

    fn delete_from_list(
        &mut self,
        target: &mut Fields,
        name: &str,
        items: &Value,
    ) -> Result<(), PatchError> {
        let refused = || bad_format("invalid patch format of primitive list");
        let name = behind(name, DELETE_FROM_LIST).ok_or_else(refused)?;
        // Null removes the field, as without the prefix.
        if items.is_null() {
            target.remove(name);
            return Ok(());
        }
        let items = items.as_array().ok_or_else(refused)?;
        let Some(Value::Array(list)) = target.get_mut(name) else {
            return Ok(());
        };
        if element_type(list, items)? == Some(ElementType::Object) {
            return Err(refused());
        }
        self.spend(list.len() + items.len())?;
        let removed: HashSet<&Value> = items.iter().collect();
        list.retain(|item| !removed.contains(item));
        Ok(())
    }

    fn spend(&mut self, items: usize) -> Result<(), PatchError> {
        let steps = items.saturating_mul(STEPS_PER_ITEM);
        self.steps.spend(steps).map_err(PatchError::NotApplicable)
    }
}

/// A field, which may be a list, and how it is merged.
#[derive(Clone, Copy)]
struct List<'a> {
    name: &'a str,
    node: Option<&'a Node>,
    strategy: Option<&'a PatchStrategy>,
    merge_key: Option<&'a str>,
}

impl<'a> List<'a> {
    fn of(parent: Option<&'a Node>, name: &'a str) -> Self {
        let node = child(parent, name);
        let strategy = node.and_then(|node| node.patch.as_deref());
        Self {
            name,
            node,
            strategy,
            merge_key: strategy.and_then(|strategy| strategy.merge_key.as_deref()),
        }
    }

    fn items(self) -> Option<&'a Node> {
        self.node.and_then(|node| node.items.as_deref())
    }
}

/// What tells the items of a list apart.
#[derive(Clone, Copy)]
enum Identity<'a> {
    /// The item itself.
    Item,
    /// This field of it.
    Key(&'a str),
}

impl Identity<'_> {
    fn of(self, item: &Value) -> Option<&Value> {
        match self {
            Self::Item => Some(item),
            Self::Key(key) => item.get(key),
        }
    }

    fn required(self, item: &Value) -> Result<&Value, PatchError> {
        match (self, item) {
            (Self::Item, _) => Ok(item),
            (Self::Key(key), Value::Object(fields)) => required_key(fields, key),
            (Self::Key(_), _) => Err(wrong_type("map[string]interface {}", item)),
        }
    }

    /// The first position of each identity.
    fn positions(self, items: &[Value]) -> HashMap<Value, usize> {
        let mut positions = HashMap::with_capacity(items.len());
        for (at, item) in items.iter().enumerate() {
            if let Some(value) = self.of(item) {
                positions.entry(value.clone()).or_insert(at);
            }
        }
        positions
    }
}

/// The type of all items of a list.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ElementType {
    Object,
    Scalar,
}

/// The type of the items of a list and of the list that is merged into it; `None` without items.
fn element_type(old: &[Value], patch: &[Value]) -> Result<Option<ElementType>, PatchError> {
    let mut items = old.iter().chain(patch);
    let Some(first) = items.next() else {
        return Ok(None);
    };
    if first.is_array() {
        let why = "lists of lists are not supported";
        return Err(PatchError::Unmergeable(why.to_owned()));
    }
    let first_type = std::mem::discriminant(first);
    if first.is_null() || !items.all(|item| std::mem::discriminant(item) == first_type) {
        return Err(PatchError::BadFormat(format!(
            "list element types are not identical: [{} {}]",
            go_list(old),
            go_list(patch)
        )));
    }
    Ok(Some(if first.is_object() {
        ElementType::Object
    } else {
        ElementType::Scalar
    }))
}

/// Applies the directives among the items of a list of objects. Returns the items of the old list that are left, and the
/// items of the patch that have no directive.
fn special_items<'p>(
    key: &str,
    mut old: Vec<Value>,
    patch: &'p [Value],
) -> Result<(Vec<Value>, Vec<&'p Fields>), PatchError> {
    let (mut changes, mut deleted) = (Vec::with_capacity(patch.len()), HashSet::new());
    let mut replaces = false;
    for fields in patch.iter().filter_map(Value::as_object) {
        let directive = fields.get(DIRECTIVE);
        match (directive, directive.and_then(Value::as_str)) {
            (None, _) => changes.push(fields),
            (_, Some("delete")) => drop(deleted.insert(required_key(fields, key)?)),
            (_, Some("replace")) => replaces = true,
            (_, Some("merge")) => {
                let why = "merging lists cannot yet be specified in the patch";
                return Err(PatchError::Unmergeable(why.to_owned()));
            }
            (Some(directive), _) => return Err(unknown_directive(directive, fields)),
        }
    }
    if replaces {
        old.clear();
    } else if !deleted.is_empty() {
        old.retain(|item| !item.get(key).is_some_and(|value| deleted.contains(value)));
    }
    Ok((old, changes))
}

/// Merges two lists of scalars, without duplicates.
fn scalars(old: Vec<Value>, patch: &[Value]) -> Vec<Value> {
    let before = Identity::Item.positions(&old);
    let mut order = HashMap::new();
    for (at, item) in patch.iter().enumerate() {
        order.entry(item).or_insert(at);
    }
    let mut seen = HashSet::new();
    let mut merged = old;
    merged.extend(patch.iter().cloned());
    merged.retain(|item| seen.insert(item.clone()));
    arrange(merged, Identity::Item, &order, &before)
}

/// Sorts a merged list: the items in `order` as there, the others as in the old list, where `before` has their
/// positions. An item of `order` stands before the others, except those that the old list has before it.
fn arrange(
    merged: Vec<Value>,
    identity: Identity<'_>,
    order: &HashMap<&Value, usize>,
    before: &HashMap<Value, usize>,
) -> Vec<Value> {
    let len = merged.len();
    let place = |item: &Value| order.get(identity.of(item)?).copied();
    let old_place = |item: &Value| before.get(identity.of(item)?).copied();
    let (mut ordered, mut others): (Vec<Value>, Vec<Value>) =
        merged.into_iter().partition(|item| place(item).is_some());
    ordered.sort_by_cached_key(place);
    others.sort_by_cached_key(|item| old_place(item).unwrap_or(usize::MAX));
    let (mut ordered, mut others) = (
        ordered.into_iter().peekable(),
        others.into_iter().peekable(),
    );
    let mut arranged = Vec::with_capacity(len);
    while let (Some(next), Some(other)) = (ordered.peek(), others.peek()) {
        let other_is_first = match (old_place(other), old_place(next)) {
            (Some(other), Some(next)) => other < next,
            _ => false,
        };
        arranged.extend(if other_is_first {
            others.next()
        } else {
            ordered.next()
        });
    }
    arranged.extend(ordered.chain(others));
    arranged
}

/// Checks that the items of a patch stand in the order of `$setElementOrder`, which has all of them.
fn check_order(
    changes: &[Value],
    order: &[Value],
    merge_key: Option<&str>,
) -> Result<(), PatchError> {
    if changes.is_empty() || order.is_empty() {
        return Ok(());
    }
    let identity = merge_key.map_or(Identity::Item, Identity::Key);
    let mut rest = order.iter();
    for change in changes
        .iter()
        .filter(|change| change.get(DIRECTIVE).is_none())
    {
        let wanted = identity.required(change)?;
        loop {
            let Some(next) = rest.next() else {
                return Err(PatchError::Unmergeable(format!(
                    "The order in patch list:\n{}\n doesn't match {SET_ORDER} list:\n{}\n",
                    go_list(changes),
                    go_list(order)
                )));
            };
            if identity.required(next)? == wanted {
                break;
            }
        }
    }
    Ok(())
}

/// Whether a name is that of a directive, with or without a field.
fn is_directive(name: &str) -> bool {
    name == RETAIN_KEYS || name.starts_with(DELETE_FROM_LIST) || name.starts_with(SET_ORDER)
}

/// The field that a directive with this prefix is about.
fn behind<'n>(name: &'n str, prefix: &str) -> Option<&'n str> {
    name.strip_prefix(prefix)?.strip_prefix('/')
}

/// A value that the document did not have, without directives and nulls; `None` if it has `$patch` itself.
fn without_directives(value: &Value) -> Option<Value> {
    Some(match value {
        _ if is_interrupted() => return None,
        Value::Object(fields) if fields.contains_key(DIRECTIVE) => return None,
        Value::Object(fields) => without_directives_in(fields),
        Value::Array(items) => items.iter().filter_map(without_directives).collect(),
        _ => value.clone(),
    })
}

fn without_directives_in(fields: &Fields) -> Value {
    let kept = fields
        .iter()
        .filter(|(name, value)| !value.is_null() && !is_directive(name));
    let fields = kept.filter_map(|(name, value)| Some((name.clone(), without_directives(value)?)));
    Value::Object(fields.collect())
}

/// An item that the list did not have. Kubernetes adds it as it is, and drops directives and nulls when it decodes the result: what has
/// `$patch` in it stays.
fn as_decoded(fields: &Fields) -> Value {
    fn kept(value: &Value) -> Value {
        match value {
            _ if is_interrupted() => Value::Null,
            Value::Object(fields) => as_decoded(fields),
            Value::Array(items) => items.iter().map(kept).collect(),
            scalar => scalar.clone(),
        }
    }
    let kept_fields = fields
        .iter()
        .filter(|(name, value)| !value.is_null() && *name != DIRECTIVE && !is_directive(name));
    let kept_fields = kept_fields.map(|(name, value)| (name.clone(), kept(value)));
    Value::Object(kept_fields.collect())
}

fn list_of(value: &Value) -> Result<&Vec<Value>, PatchError> {
    value
        .as_array()
        .ok_or_else(|| wrong_type("[]interface {}", value))
}

fn required_key<'f>(fields: &'f Fields, key: &str) -> Result<&'f Value, PatchError> {
    fields.get(key).ok_or_else(|| {
        let fields = go_fields(fields);
        let why = format!("map: {fields} does not contain declared merge key: {key}");
        PatchError::Unmergeable(why)
    })
}

fn unknown_directive(directive: &Value, fields: &Fields) -> PatchError {
    let mut shown = String::new();
    go_value::append(directive, &mut shown);
    let fields = go_fields(fields);
    PatchError::UnknownDirective(format!("unknown patch type: {shown} in map: {fields}"))
}

fn bad_format(why: &str) -> PatchError {
    PatchError::BadFormat(why.to_owned())
}

fn wrong_type(wanted: &str, found: &Value) -> PatchError {
    let found = match found {
        Value::Null => "%!s(<nil>)",
        found => go_value::go_type(found),
    };
    PatchError::BadFormat(format!("expected a {wanted}, but received a {found}"))
}

/// An object as Go's `%v` prints it: `map[a:1 b:[x y]]`.
pub(super) fn go_fields(fields: &Fields) -> String {
    let mut out = String::new();
    go_value::append_fields(fields, &mut out);
    out
}

fn go_list(items: &[Value]) -> String {
    let mut out = String::new();
    go_value::append_list(items, &mut out);
    out
}

#[cfg(test)]
mod tests;
