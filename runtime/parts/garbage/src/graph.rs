//! The graph of owner references, and what is to be done after each change of it.
//!
//! The nodes are the objects of all kinds; an edge leads from a dependent to the uid of an owner. An owner that was not
//! observed yet is a node too, without a place: it may come later, or not exist. Nothing is deleted on the word of this
//! graph alone: it only says which objects are to be judged, by their state in the store.
//!
//! The rules are those of Kubernetes' garbage collector.

use std::collections::{HashMap, HashSet};

use apiloom_server::host::{Finalizer, ObservedObject, Place, Reference, Uid};

/// Work that follows from a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Work {
    /// Decide whether an object is deleted, by its owners, or whether its own foreground deletion is complete.
    Judge(Uid),
    /// Remove the references of the dependents of an object, then its finalizer.
    Orphan(Uid),
    /// Look for foreground deletions that wait for each other.
    BreakCircles,
}

#[derive(Debug, Default)]
struct Node {
    /// `None` for an owner that was not observed.
    place: Option<Place>,
    owners: Vec<Reference>,
    dependents: Dependents,
    is_deleting: bool,
    finalizer: Option<Finalizer>,
    /// Whether it is judged again when other kinds are served.
    is_postponed: bool,
}

impl Node {
    /// The finalizer, once the deletion has begun.
    fn deletion(&self) -> Option<Finalizer> {
        self.finalizer.filter(|_| self.is_deleting)
    }

    fn namespace(&self) -> &str {
        self.place.as_ref().map_or("", |place| &place.namespace)
    }
}

/// The uids of the dependents. Most objects have none, which costs no memory.
type Dependents = Option<Box<HashSet<Uid>>>;

/// An object of the graph, as it is judged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Known {
    pub(crate) place: Place,
    pub(crate) is_deleting: bool,
    /// Whether its dependents are deleted before it.
    pub(crate) is_foreground: bool,
}

/// The graph of owner references, with the work that follows from its last changes.
#[derive(Debug, Default)]
pub(crate) struct Graph {
    nodes: HashMap<Uid, Node>,
    /// The nodes whose deletion waits for dependents.
    foreground: HashSet<Uid>,
    work: Vec<Work>,
}

impl Graph {
    /// The work that follows from the changes since the last call, in order.
    pub(crate) fn take_work(&mut self) -> Vec<Work> {
        std::mem::take(&mut self.work)
    }

    /// Records the state of an object, new or changed.
    pub(crate) fn observe(&mut self, object: ObservedObject) {
        let uid = object.uid;
        let node = self.nodes.entry(uid).or_default();
        let before = node.deletion();
        let is_first = node.place.is_none();
        let old = std::mem::replace(&mut node.owners, object.owners);
        node.place = Some(object.place);
        node.is_deleting = object.is_deleting;
        node.finalizer = object.finalizer;
        let after = node.deletion();
        if is_first {
            self.judge_dependents_elsewhere(uid);
        }
        self.change_owners(uid, &old);
        if after != before {
            self.foreground.remove(&uid);
            match after {
                Some(Finalizer::Orphan) => self.work.push(Work::Orphan(uid)),
                Some(Finalizer::Foreground) => {
                    self.foreground.insert(uid);
                    self.judge_dependents(uid);
                    self.judge(uid);
                }
                None => {}
            }
        }
        if self.may_close_circle(uid) {
            self.work.push(Work::BreakCircles);
        }
    }

    /// Records that an object does not exist any more.
    pub(crate) fn remove(&mut self, uid: Uid) {
        let Some(node) = self.nodes.get_mut(&uid) else {
            return;
        };
        if node.place.take().is_none() {
            return;
        }
        node.is_deleting = false;
        node.finalizer = None;
        node.is_postponed = false;
        self.foreground.remove(&uid);
        let owners = std::mem::take(&mut node.owners);
        for owner in &owners {
            self.leave(owner.uid, uid);
            // It may have waited for this object.
            if self.deletion(owner.uid) == Some(Finalizer::Foreground) {
                self.judge(owner.uid);
            }
        }
        self.judge_dependents(uid);
        self.drop_if_unused(uid);
    }

    /// Removes the objects of a kind that a complete list does not have.
    pub(crate) fn retain(&mut self, group: &str, kind: &str, listed: &HashSet<Uid>) {
        let is_gone = |(uid, node): (&Uid, &Node)| {
            let place = node.place.as_ref()?;
            let is_of_kind = place.group == group && place.kind == kind;
            (is_of_kind && !listed.contains(uid)).then_some(*uid)
        };
        let gone: Vec<Uid> = self.nodes.iter().filter_map(is_gone).collect();
        for uid in gone {
            self.remove(uid);
        }
    }

    /// Puts an object off until [`Graph::resume`].
    pub(crate) fn postpone(&mut self, uid: Uid) {
        if let Some(node) = self.nodes.get_mut(&uid) {
            node.is_postponed = true;
        }
    }

    /// Judges the objects that were put off.
    pub(crate) fn resume(&mut self) {
        for (uid, node) in &mut self.nodes {
            if std::mem::take(&mut node.is_postponed) {
                self.work.push(Work::Judge(*uid));
            }
        }
    }

    /// An object that was observed.
    pub(crate) fn get(&self, uid: Uid) -> Option<Known> {
        let node = self.nodes.get(&uid)?;
        Some(Known {
            place: node.place.clone()?,
            is_deleting: node.is_deleting,
            is_foreground: node.deletion() == Some(Finalizer::Foreground),
        })
    }

    /// The dependents of an object that were observed.
    pub(crate) fn dependents(&self, uid: Uid) -> Vec<(Uid, Known)> {
        let dependents = self.dependents_of(uid);
        dependents
            .filter_map(|dependent| Some((dependent, self.get(dependent)?)))
            .collect()
    }

    /// The dependents for which a foreground deletion of an object waits.
    pub(crate) fn blocking_dependents(&self, uid: Uid) -> Vec<(Uid, Known)> {
        let mut dependents = self.dependents(uid);
        dependents.retain(|(dependent, _)| {
            // An object that owns itself does not wait for itself.
            if *dependent == uid {
                return false;
            }
            let node = self.nodes.get(dependent);
            let mut owners = node.into_iter().flat_map(|node| &node.owners);
            owners.any(|owner| owner.uid == uid && owner.blocks)
        });
        dependents
    }

    /// The objects whose foreground deletions wait for each other in circles, or lead from one circle to another. Takes
    /// time in proportion to the foreground deletions and their owners.
    pub(crate) fn circles(&self) -> HashSet<Uid> {
        let waits: Vec<(Uid, Uid)> = self
            .foreground
            .iter()
            .flat_map(|dependent| {
                self.awaiting_owners(*dependent)
                    .map(|owner| (owner, *dependent))
            })
            .collect();
        let others: Vec<(Uid, Uid)> = waits
            .iter()
            .map(|(owner, dependent)| (*dependent, *owner))
            .collect();
        let mut left = self.foreground.clone();
        // What waits for nothing is in no circle, nor is what nothing waits for.
        for edges in [&waits, &others] {
            remove_ends(&mut left, edges);
        }
        left
    }

    /// The owners whose foreground deletions wait for that of an object.
    fn awaiting_owners(&self, dependent: Uid) -> impl Iterator<Item = Uid> {
        let owners = self.nodes.get(&dependent).map(|node| &node.owners);
        let awaiting = owners.into_iter().flatten().filter(move |owner| {
            owner.blocks && owner.uid != dependent && self.foreground.contains(&owner.uid)
        });
        awaiting.map(|owner| owner.uid)
    }

    /// Whether an object whose state was recorded may be the last of a circle of foreground deletions: it waits for one,
    /// and one waits for it.
    fn may_close_circle(&self, uid: Uid) -> bool {
        self.foreground.contains(&uid)
            && self.awaiting_owners(uid).next().is_some()
            && self
                .dependents_of(uid)
                .any(|dependent| dependent != uid && self.foreground.contains(&dependent))
    }

    /// Number of nodes.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    fn deletion(&self, uid: Uid) -> Option<Finalizer> {
        self.nodes.get(&uid)?.deletion()
    }

    fn dependents_of(&self, uid: Uid) -> impl Iterator<Item = Uid> {
        let dependents = self
            .nodes
            .get(&uid)
            .and_then(|node| node.dependents.as_ref());
        dependents.into_iter().flat_map(|all| all.iter().copied())
    }

    fn judge(&mut self, uid: Uid) {
        self.work.push(Work::Judge(uid));
    }

    fn judge_dependents(&mut self, uid: Uid) {
        let dependents: Vec<Uid> = self.dependents_of(uid).collect();
        self.work.extend(dependents.into_iter().map(Work::Judge));
    }

    /// After the first observation of an owner: judges the dependents whose references describe another object.
    fn judge_dependents_elsewhere(&mut self, uid: Uid) {
        for dependent in self.dependents_of(uid).collect::<Vec<_>>() {
            let owners = self.nodes.get(&dependent).map(|node| &node.owners);
            let reference = owners.and_then(|owners| owners.iter().rfind(|owner| owner.uid == uid));
            if let Some(reference) = reference.cloned() {
                self.check_reference(dependent, &reference);
            }
        }
    }

    /// Judges a dependent whose reference does not describe the owner that has the uid, or whose owner is not known.
    fn check_reference(&mut self, dependent: Uid, reference: &Reference) {
        let Some(node) = self.nodes.get(&dependent) else {
            return;
        };
        let owner = self.nodes.get(&reference.uid);
        let owner = owner.and_then(|node| node.place.as_ref());
        if owner.is_some_and(|place| reference.describes(place, node.namespace())) {
            return;
        }
        self.work.push(Work::Judge(dependent));
    }

    /// Brings the edges up to date with the owners of an object, which had other owners before.
    fn change_owners(&mut self, uid: Uid, old: &[Reference]) {
        let Some(node) = self.nodes.get(&uid) else {
            return;
        };
        if node.owners == old {
            return;
        }
        // An object may have many owners. Of several references to one, the last counts.
        let by_uid = |all: &[Reference]| -> HashMap<Uid, Reference> {
            all.iter().map(|owner| (owner.uid, owner.clone())).collect()
        };
        let (new, old) = (by_uid(&node.owners), by_uid(old));
        for (owner, reference) in &new {
            if old.get(owner) != Some(reference) {
                let node = self.nodes.entry(*owner).or_default();
                node.dependents.get_or_insert_default().insert(uid);
                self.check_reference(uid, reference);
            }
        }
        for owner in old.values() {
            let now = new.get(&owner.uid);
            // A foreground deletion may have waited for this object, and waits no more.
            if owner.blocks && !now.is_some_and(|now| now.blocks) {
                self.judge(owner.uid);
            }
            if now.is_none() {
                self.leave(owner.uid, uid);
            }
        }
    }

    /// Removes a dependent from an owner.
    fn leave(&mut self, owner: Uid, dependent: Uid) {
        if let Some(node) = self.nodes.get_mut(&owner)
            && let Some(dependents) = &mut node.dependents
        {
            dependents.remove(&dependent);
            if dependents.is_empty() {
                node.dependents = None;
            }
        }
        self.drop_if_unused(owner);
    }

    /// Removes a node that is neither an object nor an owner.
    fn drop_if_unused(&mut self, uid: Uid) {
        let node = self.nodes.get(&uid);
        if node.is_some_and(|node| node.place.is_none() && node.dependents.is_none()) {
            self.nodes.remove(&uid);
        }
    }
}

/// Removes the nodes from which no edge leads to one that is left, until each has one.
fn remove_ends(left: &mut HashSet<Uid>, edges: &[(Uid, Uid)]) {
    let mut counts: HashMap<Uid, usize> = left.iter().map(|uid| (*uid, 0)).collect();
    let mut backwards: HashMap<Uid, Vec<Uid>> = HashMap::new();
    for (from, to) in edges {
        if left.contains(from) && left.contains(to) {
            *counts.entry(*from).or_default() += 1;
            backwards.entry(*to).or_default().push(*from);
        }
    }
    let mut ends: Vec<Uid> = counts
        .iter()
        .filter(|(_, count)| **count == 0)
        .map(|(uid, _)| *uid)
        .collect();
    while let Some(end) = ends.pop() {
        left.remove(&end);
        for from in backwards.remove(&end).unwrap_or_default() {
            if let Some(count) = counts.get_mut(&from) {
                *count -= 1;
                if *count == 0 {
                    ends.push(from);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
