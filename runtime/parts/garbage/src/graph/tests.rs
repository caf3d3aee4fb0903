//! Each rule of the graph on a few objects, and random changes against a plain reading of the rules.

use apiloom_meta::kind::SmolStr;

use super::*;

fn uid(name: &str) -> Uid {
    Uid::of(&format!("uid of {name}"))
}

fn place(name: &str) -> Place {
    Place {
        group: "example.com".into(),
        kind: "Thing".into(),
        namespace: "default".into(),
        name: name.into(),
    }
}

fn reference(owner: &str) -> Reference {
    Reference {
        uid: uid(owner),
        group: "example.com".into(),
        kind: "Thing".into(),
        name: owner.into(),
        blocks: false,
    }
}

fn blocking(owner: &str) -> Reference {
    Reference {
        blocks: true,
        ..reference(owner)
    }
}

fn object(name: &str, owners: &[Reference]) -> ObservedObject {
    ObservedObject {
        uid: uid(name),
        place: place(name),
        owners: owners.to_vec(),
        is_deleting: false,
        finalizer: None,
    }
}

fn deleting(name: &str, owners: &[Reference], finalizer: Finalizer) -> ObservedObject {
    ObservedObject {
        is_deleting: true,
        finalizer: Some(finalizer),
        ..object(name, owners)
    }
}

/// The work since the last call, sorted.
fn work(graph: &mut Graph) -> Vec<Work> {
    sorted(graph.take_work())
}

fn sorted(mut work: Vec<Work>) -> Vec<Work> {
    work.sort_by_key(|work| match work {
        Work::Judge(uid) => (0, *uid),
        Work::Orphan(uid) => (1, *uid),
        Work::BreakCircles => (2, Uid::of("")),
    });
    work.dedup();
    work
}

fn judge<const N: usize>(names: [&str; N]) -> Vec<Work> {
    sorted(names.map(|name| Work::Judge(uid(name))).to_vec())
}

#[test]
fn a_dependent_is_judged_when_its_owner_is_unknown_or_goes() {
    let mut graph = Graph::default();
    graph.observe(object("b", &[reference("a")]));
    assert_eq!(work(&mut graph), judge(["b"]), "the owner is not known yet");
    graph.observe(object("a", &[]));
    assert_eq!(work(&mut graph), [], "the owner is there");
    graph.observe(object("c", &[reference("a")]));
    assert_eq!(work(&mut graph), [], "the owner is known");
    graph.remove(uid("a"));
    assert_eq!(work(&mut graph), judge(["b", "c"]));
    graph.remove(uid("b"));
    graph.remove(uid("c"));
    assert_eq!(work(&mut graph), []);
    assert_eq!(graph.len(), 0, "nothing is kept of what is gone");
}

#[test]
fn a_foreground_deletion_judges_dependents_and_is_judged_when_they_go() {
    let mut graph = Graph::default();
    graph.observe(object("a", &[]));
    graph.observe(object("b", &[blocking("a")]));
    graph.observe(object("c", &[reference("a")]));
    graph.observe(deleting("a", &[], Finalizer::Foreground));
    assert_eq!(work(&mut graph), judge(["a", "b", "c"]));
    let names = |known: Vec<(Uid, Known)>| -> Vec<SmolStr> {
        known
            .into_iter()
            .map(|(_, known)| known.place.name)
            .collect()
    };
    assert_eq!(names(graph.blocking_dependents(uid("a"))), ["b"]);
    assert!(graph.get(uid("a")).unwrap().is_foreground);
    graph.observe(deleting("a", &[], Finalizer::Foreground));
    assert_eq!(work(&mut graph), [], "the same again");
    graph.remove(uid("b"));
    assert_eq!(work(&mut graph), judge(["a"]));
    assert_eq!(names(graph.blocking_dependents(uid("a"))), [""; 0]);
}

#[test]
fn an_owner_is_judged_when_a_dependent_stops_to_block_it() {
    for owners in [vec![], vec![reference("a")]] {
        let mut graph = Graph::default();
        graph.observe(deleting("a", &[], Finalizer::Foreground));
        graph.observe(object("b", &[blocking("a")]));
        work(&mut graph);
        graph.observe(object("b", &owners));
        assert!(work(&mut graph).contains(&Work::Judge(uid("a"))));
    }
}

#[test]
fn an_owner_that_orphans_is_said_once() {
    let mut graph = Graph::default();
    graph.observe(object("b", &[reference("a")]));
    graph.observe(object("a", &[]));
    work(&mut graph);
    let orphaning = deleting("a", &[], Finalizer::Orphan);
    graph.observe(ObservedObject {
        is_deleting: false,
        ..orphaning.clone()
    });
    assert_eq!(work(&mut graph), [], "it is not deleted");
    graph.observe(orphaning.clone());
    assert_eq!(work(&mut graph), [Work::Orphan(uid("a"))]);
    graph.observe(orphaning.clone());
    assert_eq!(work(&mut graph), []);
    let mut fresh = Graph::default();
    fresh.observe(orphaning);
    assert_eq!(work(&mut fresh), [Work::Orphan(uid("a"))], "at the start");
}

#[test]
fn a_reference_to_another_place_is_judged() {
    let other = |change: fn(&mut Place)| {
        let mut owner = object("a", &[]);
        change(&mut owner.place);
        owner
    };
    let elsewhere = other(|place| place.namespace = "other".into());
    for owner in [
        elsewhere,
        other(|place| place.name = "z".into()),
        other(|place| place.kind = "Other".into()),
    ] {
        let dependent = || object("b", &[reference("a")]);
        for order in [[owner.clone(), dependent()], [dependent(), owner.clone()]] {
            let mut graph = Graph::default();
            order.into_iter().for_each(|object| graph.observe(object));
            assert!(work(&mut graph).contains(&Work::Judge(uid("b"))));
        }
    }
    let mut graph = Graph::default();
    graph.observe(other(|place| place.namespace = "".into()));
    graph.observe(object("b", &[reference("a")]));
    assert_eq!(
        work(&mut graph),
        [],
        "a cluster-scoped owner is in no other namespace"
    );
}

#[test]
fn what_a_complete_list_lacks_is_removed() {
    let mut graph = Graph::default();
    graph.observe(object("a", &[]));
    graph.observe(object("b", &[reference("a")]));
    let mut other = object("c", &[reference("a")]);
    other.place.kind = "Other".into();
    graph.observe(other);
    work(&mut graph);
    graph.retain("example.com", "Thing", &HashSet::from([uid("b")]));
    assert_eq!(graph.get(uid("a")), None);
    assert_eq!(work(&mut graph), judge(["b", "c"]));
}

#[test]
fn objects_that_were_put_off_are_judged_once() {
    let mut graph = Graph::default();
    for name in ["a", "b", "c"] {
        graph.observe(object(name, &[]));
        graph.postpone(uid(name));
    }
    graph.remove(uid("c"));
    graph.observe(object("c", &[]));
    assert_eq!(work(&mut graph), []);
    graph.resume();
    assert_eq!(work(&mut graph), judge(["a", "b"]));
    graph.resume();
    assert_eq!(work(&mut graph), []);
}

#[test]
fn objects_may_own_themselves_and_each_other() {
    let mut graph = Graph::default();
    graph.observe(object("a", &[reference("a"), reference("b")]));
    graph.observe(object("b", &[reference("a")]));
    graph.take_work();
    graph.remove(uid("a"));
    assert_eq!(work(&mut graph), judge(["b"]));
    graph.remove(uid("b"));
    assert_eq!(graph.len(), 0);
}

#[test]
fn foreground_deletions_in_circles_are_found() {
    let foreground = |name, owners: &[Reference]| deleting(name, owners, Finalizer::Foreground);
    let mut graph = Graph::default();
    // Two circles, a path between them, paths that lead to them and from them, and an object that owns itself.
    graph.observe(foreground("a", &[blocking("b"), blocking("to")]));
    graph.observe(foreground("to", &[]));
    graph.observe(foreground("from", &[blocking("a"), blocking("d")]));
    graph.observe(foreground("own", &[blocking("own")]));
    graph.observe(foreground("between", &[blocking("a")]));
    graph.observe(foreground("c", &[blocking("d"), blocking("between")]));
    graph.observe(foreground("d", &[blocking("c"), blocking("d")]));
    assert!(work(&mut graph).contains(&Work::BreakCircles));
    assert_eq!(
        graph.circles(),
        HashSet::from(["c", "d"].map(uid)),
        "b is not deleted yet"
    );
    graph.observe(foreground("b", &[blocking("a")]));
    assert!(work(&mut graph).contains(&Work::BreakCircles));
    let all = HashSet::from(["a", "b", "between", "c", "d"].map(uid));
    assert_eq!(graph.circles(), all);
    graph.observe(foreground("a", &[reference("b"), blocking("to")]));
    assert_eq!(graph.circles(), HashSet::from(["c", "d"].map(uid)));
    graph.remove(uid("c"));
    assert_eq!(graph.circles(), HashSet::new());
}

#[test]
fn a_chain_of_foreground_deletions_is_not_searched_for_circles() {
    let names = ["a", "b", "c", "d"];
    let mut graph = Graph::default();
    for pair in names.windows(2) {
        graph.observe(object(pair[1], &[blocking(pair[0])]));
    }
    graph.observe(deleting("a", &[], Finalizer::Foreground));
    for pair in names.windows(2) {
        graph.observe(deleting(
            pair[1],
            &[blocking(pair[0])],
            Finalizer::Foreground,
        ));
    }
    assert!(!work(&mut graph).contains(&Work::BreakCircles));
    assert_eq!(graph.circles(), HashSet::new());
}

/// Random changes; the edges and the work must be those of a plain search through all objects.
#[test]
fn random_changes_keep_the_edges_of_the_objects() {
    let names = ["a", "b", "c", "d", "e"];
    let mut seed = 0x2545_F491_4F6C_DD1D_u64;
    let mut below = |count: u64| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed % count
    };
    let mut graph = Graph::default();
    let mut objects: HashMap<&str, ObservedObject> = HashMap::new();
    for step in 0..20_000 {
        let name = names[below(5) as usize];
        let existed = objects.remove(name);
        if existed.is_some() && below(3) == 0 {
            graph.remove(uid(name));
            let work = work(&mut graph);
            for (other, object) in &objects {
                let depends = object.owners.iter().any(|owner| owner.uid == uid(name));
                assert!(
                    !depends || work.contains(&Work::Judge(uid(other))),
                    "step {step}"
                );
            }
        } else {
            let owners: Vec<Reference> = names
                .iter()
                .filter_map(|owner| match below(6) {
                    0 => Some(reference(owner)),
                    1 => Some(blocking(owner)),
                    _ => None,
                })
                .collect();
            let finalizer = [None, Some(Finalizer::Orphan), Some(Finalizer::Foreground)];
            let new = ObservedObject {
                is_deleting: below(2) == 0,
                finalizer: finalizer[below(3) as usize],
                ..object(name, &owners)
            };
            graph.observe(new.clone());
            let work = work(&mut graph);
            for owner in &new.owners {
                let is_known =
                    owner.uid == uid(name) || objects.values().any(|known| known.uid == owner.uid);
                let was_there = existed
                    .as_ref()
                    .is_some_and(|old| old.owners.contains(owner));
                assert!(
                    is_known || was_there || work.contains(&Work::Judge(new.uid)),
                    "step {step}: an owner that is not known is looked for"
                );
            }
            objects.insert(name, new);
        }
        let is_foreground = |object: &ObservedObject| {
            object.is_deleting && object.finalizer == Some(Finalizer::Foreground)
        };
        let waiting = objects
            .values()
            .filter(|object| is_foreground(object))
            .count();
        assert_eq!(graph.foreground.len(), waiting, "step {step}");
        for name in names {
            let expected: HashSet<Uid> = objects
                .values()
                .filter(|object| object.owners.iter().any(|owner| owner.uid == uid(name)))
                .map(|object| object.uid)
                .collect();
            let found = graph.dependents(uid(name)).into_iter().map(|(uid, _)| uid);
            assert_eq!(found.collect::<HashSet<_>>(), expected, "step {step}");
            assert_eq!(graph.get(uid(name)).is_some(), objects.contains_key(name));
        }
    }
    for name in names {
        graph.remove(uid(name));
    }
    assert_eq!(graph.len(), 0);
}
