//! Compares what clients observed with the model.

use crate::client::{End, Item, Log, Start, Stream};
use crate::list::{Listing, Wanted};
use crate::model::{Event, Model, View, cut};
use crate::objects::{Form, Key};
use crate::plan::Fresh;

/// Compares the log of one client with the model of each era.
///
/// # Errors
/// The first difference.
pub(crate) fn check_log(models: &[Model], log: &Log) -> Result<(), String> {
    let plan = &log.plan;
    let views: Vec<View<'_>> = models
        .iter()
        .map(|model| model.view(&plan.interest, plan.form))
        .collect();
    for listing in &log.lists {
        check_listing(models, listing)?;
    }
    for (number, stream) in log.streams.iter().enumerate() {
        check_stream(models, &views, plan.form, stream).map_err(|why| {
            format!(
                "stream {number} of {} of {plan:?}, begun at {:?} in era {}, ended {:?}: {why}",
                log.streams.len(),
                stream.start,
                stream.era,
                stream.end
            )
        })?;
    }
    check_store(&views, log).map_err(|why| format!("{plan:?}: {why}"))
}

/// Checks clients that resumed from a revision of a store that has lost its history since: they must get an error that
/// makes them list again. The models cover clients that did.
///
/// # Errors
/// The first stream that got anything else.
pub(crate) fn check_resumed(log: &Log) -> Result<(), String> {
    let streams = log.streams.iter().filter_map(|stream| match stream.start {
        Start::After { era, revision } if era != stream.era => Some((stream, revision)),
        _ => None,
    });
    for (stream, revision) in streams {
        // A client may be cut off before it gets the error.
        let is_told = matches!(stream.end, End::Expired | End::Closed | End::Cut);
        if !is_told || !stream.items.is_empty() {
            return Err(format!(
                "{:?} resumed from {revision}, which the store never had, and was not told so but {:?} ({})",
                log.plan,
                stream.end,
                last(stream)
            ));
        }
    }
    Ok(())
}

/// The final objects of a client must be those of the model.
fn check_store(views: &[View<'_>], log: &Log) -> Result<(), String> {
    let plan = &log.plan;
    // Clients without the bookmark after the initial objects do not know whether these are complete; forms without
    // objects keep none.
    let is_known = plan.fresh != Fresh::Everything;
    if !is_known
        || plan
            .form
            .object(&serde_json::json!({"rows": [{}]}))
            .is_none()
    {
        return Ok(());
    }
    let view = views.last().ok_or("no model")?;
    let expected = view.objects_at(log.reached);
    let expected: Vec<(&Key, serde_json::Value)> = expected
        .into_iter()
        .map(|(key, object)| {
            let shown = plan.form.of_event(plan.interest.resource, object);
            (key, plan.form.object(&shown).cloned().unwrap_or_default())
        })
        .collect();
    let held: Vec<(&Key, serde_json::Value)> = log
        .store
        .iter()
        .map(|(key, object)| (key, object.clone()))
        .collect();
    if held == expected {
        return Ok(());
    }
    let different = held
        .iter()
        .zip(&expected)
        .find(|(held, expected)| held != expected);
    Err(format!(
        "at {} it holds {} objects, not {}; first difference {}",
        log.reached,
        held.len(),
        expected.len(),
        cut(&format!("{different:?}"))
    ))
}

fn check_stream(
    models: &[Model],
    views: &[View<'_>],
    form: Form,
    stream: &Stream,
) -> Result<(), String> {
    if matches!(form, Form::Table(..)) {
        let wrong = (0..)
            .zip(&stream.columns)
            .find(|(place, has)| (*place == 0) != **has);
        if let Some((place, has)) = wrong {
            return Err(format!("item {place} has columns: {has}"));
        }
    }
    match &stream.end {
        End::Late => return Err(format!("the end never came; last was {}", last(stream))),
        End::Wrong(what) => return Err(what.clone()),
        _ => {}
    }
    let view = &views[stream.era];
    match stream.start {
        // See `check_resumed`.
        Start::After { era, .. } if era != stream.era => Ok(()),
        _ if stream.end == End::Expired => Err("nothing was forgotten".to_owned()),
        Start::After { revision, .. } => {
            let expected: Vec<&Event> = view.events_after(revision).collect();
            compare(&stream.items, revision, &[], &expected)
        }
        Start::Objects {
            at_least,
            deletions,
        } => {
            let model = &models[stream.era];
            check_beginning(
                view,
                model,
                at_least.max(model.deleted_by(deletions)),
                stream,
            )
        }
    }
}

/// Checks a stream that begins with the objects of a state, which the following bookmark names.
fn check_beginning(
    view: &View<'_>,
    model: &Model,
    at_least: u64,
    stream: &Stream,
) -> Result<(), String> {
    let named = stream.items.iter().find_map(|item| match item {
        Item::Bookmark {
            revision,
            ends_objects: true,
        } => Some(*revision),
        _ => None,
    });
    let at = |revision: u64| {
        let objects = view.additions_at(revision);
        let expected: Vec<&Event> = view.events_after(revision).collect();
        compare(&stream.items, revision, &objects, &expected)
    };
    if let Some(revision) = named {
        if revision < at_least {
            return Err(format!(
                "it begins at {revision}, not at {at_least} or later"
            ));
        }
        return at(revision);
    }
    // Without a bookmark there must be some state that matches the initial events.
    let [first, last] = model.bounds();
    let begin = at_least.max(first);
    let mut states = [begin]
        .into_iter()
        .chain(view.turns(last).filter(|turn| *turn > begin));
    let error = match at(begin) {
        Ok(()) => return Ok(()),
        Err(error) => error,
    };
    if states.any(|revision| at(revision).is_ok()) {
        Ok(())
    } else {
        Err(format!(
            "it fits no state from {begin} on; for that one: {error}"
        ))
    }
}

/// Compares the items of a stream with the expected ones, as far as it was read: first the objects of a state, then
/// events.
fn compare(items: &[Item], from: u64, objects: &[Event], events: &[&Event]) -> Result<(), String> {
    let mut expected = objects
        .iter()
        .chain(events.iter().copied())
        .enumerate()
        .peekable();
    let mut reached = from;
    let mut has_event = false;
    for item in items {
        match item {
            Item::Event {
                kind,
                revision,
                object,
            } => {
                let next = expected.next();
                let told = next.is_some_and(|(_, next)| {
                    next.kind == kind && next.revision == *revision && next.object == *object
                });
                if !told {
                    let seen = format!("{kind} at {revision}: {}", brief(object));
                    let next = next.map(|(_, next)| next.to_string());
                    return Err(format!("after {reached} came {seen}, expected {next:?}"));
                }
                let is_object = next.is_some_and(|(place, _)| place < objects.len());
                if !is_object {
                    reached = *revision;
                    has_event = true;
                }
            }
            Item::Bookmark {
                revision,
                ends_objects,
            } => {
                let missing = expected
                    .peek()
                    .filter(|(place, next)| *place < objects.len() || next.revision <= *revision);
                if let Some((_, missing)) = missing {
                    return Err(format!("bookmark {revision} is ahead of {missing}"));
                }
                // The bookmark after the initial objects comes once, before any event.
                if *revision < reached || *ends_objects && has_event {
                    return Err(format!("bookmark {revision} after {reached}"));
                }
                has_event = true;
                reached = *revision;
            }
        }
    }
    Ok(())
}

fn brief(object: &serde_json::Value) -> String {
    match object.get("rows") {
        Some(rows) => cut(&rows[0]["cells"].to_string()),
        None => cut(&crate::objects::brief(object)),
    }
}

fn last(stream: &Stream) -> String {
    match stream.items.last() {
        Some(Item::Event { kind, revision, .. }) => format!("{kind} at {revision}"),
        Some(Item::Bookmark { revision, .. }) => format!("bookmark {revision}"),
        None => "nothing".to_owned(),
    }
}

/// Compares a list with the objects of the model at its revision.
///
/// # Errors
/// The first difference.
pub(crate) fn check_listing(models: &[Model], listing: &Listing) -> Result<(), String> {
    let context = |why: String| format!("list {} at {}: {why}", listing.url, listing.revision);
    if let Some(fault) = &listing.fault {
        return Err(context(fault.clone()));
    }
    let model = &models[listing.era];
    let at_least = match listing.wanted {
        Wanted::Present => listing.known.max(model.deleted_by(listing.deletions)),
        Wanted::AtLeast(revision) => revision,
        Wanted::Any => 0,
        Wanted::Exactly(revision) if revision != listing.revision => {
            return Err(context(format!("not at {revision}")));
        }
        Wanted::Exactly(revision) => revision,
    };
    if listing.revision < at_least {
        return Err(context(format!("it is older than {at_least}")));
    }
    let expected = model
        .view(&listing.interest, listing.form)
        .items_at(listing.revision);
    for (number, (shown, expected)) in listing.items.iter().zip(&expected).enumerate() {
        if shown != expected {
            let (shown, expected) = (cut(&shown.to_string()), cut(&expected.to_string()));
            return Err(context(format!(
                "item {number} is {shown}, expected {expected}"
            )));
        }
    }
    if listing.items.len() != expected.len() {
        let (shown, expected) = (listing.items.len(), expected.len());
        return Err(context(format!("{shown} items, expected {expected}")));
    }
    for (taken, left) in &listing.pages {
        if let Some(left) = left
            && *left != (expected.len() - taken) as u64
        {
            return Err(context(format!("{left} are said to be left after {taken}")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::interest::Interest;
    use crate::model::{Deletion, Put};
    use crate::plan::Plan;

    fn put(revision: u64, name: &str) -> Put {
        let metadata = json!({
            "name": name, "namespace": "default", "resourceVersion": revision.to_string(),
        });
        let object = json!({
            "apiVersion": "wardle.example.com/v1alpha1", "kind": "Flunder", "metadata": metadata,
        });
        Put {
            revision,
            place: None,
            key: Key::flunder("default", name),
            object: Some(object),
        }
    }

    /// `a` and `b` are created at 11 and 12, `a` is changed at 13 and deleted at 14.
    fn model() -> Model {
        let puts = [put(11, "a"), put(12, "b"), put(13, "a"), put(15, "c")];
        let deletion = Deletion {
            after: 13,
            keys: vec![Key::flunder("default", "a")],
        };
        Model::new(
            [10, 15],
            &puts,
            &[deletion],
            &Default::default(),
            &Default::default(),
        )
        .unwrap()
    }

    fn event(kind: &str, revision: u64, name: &str) -> Item {
        Item::Event {
            kind: kind.to_owned(),
            revision,
            object: put(revision, name).object.unwrap(),
        }
    }

    fn bookmark(revision: u64) -> Item {
        Item::Bookmark {
            revision,
            ends_objects: false,
        }
    }

    fn check(items: Vec<Item>) -> Result<(), String> {
        let (model, interest) = (model(), Interest::everything());
        let view = model.view(&interest, Form::Object);
        let stream = Stream {
            era: 0,
            start: Start::After {
                era: 0,
                revision: 10,
            },
            items,
            columns: Vec::new(),
            end: End::Cut,
        };
        check_stream(std::slice::from_ref(&model), &[view], Form::Object, &stream)
    }

    #[test]
    fn a_stream_of_what_happened_is_right_and_every_other_one_wrong() {
        let happened = || {
            vec![
                event("ADDED", 11, "a"),
                event("ADDED", 12, "b"),
                bookmark(12),
                event("MODIFIED", 13, "a"),
                event("DELETED", 14, "a"),
                bookmark(14),
            ]
        };
        assert_eq!(check(happened()), Ok(()));
        assert_eq!(check(happened()[..3].to_vec()), Ok(()), "it is cut off");
        for place in [0, 1, 3, 4] {
            let mut items = happened();
            items.remove(place);
            assert!(check(items).is_err(), "{place} is missing");
            let mut items = happened();
            items.insert(place, items[place].clone());
            assert!(check(items).is_err(), "{place} comes twice");
            let mut items = happened();
            items[place] = event("MODIFIED", 12, "c");
            assert!(check(items).is_err(), "{place} is another object");
        }
        let mut items = happened();
        items.swap(3, 4);
        assert!(check(items).is_err(), "the order is another");
        for (place, revision) in [(2, 13), (2, 11), (5, 15), (5, 13)] {
            let mut items = happened();
            items[place] = bookmark(revision);
            assert!(check(items).is_err(), "bookmark {revision} at {place}");
        }
    }

    #[test]
    fn a_list_of_the_state_is_right_and_every_other_one_wrong() {
        let listing = |revision, names: &[(u64, &str)]| {
            let item = |(revision, name): &(u64, &str)| -> Value {
                Form::Object.of_item(
                    put(*revision, name).key.resource,
                    &put(*revision, name).object.unwrap(),
                )
            };
            let listing = Listing {
                era: 0,
                interest: Interest::everything(),
                form: Form::Object,
                wanted: Wanted::AtLeast(12),
                known: 12,
                deletions: 0,
                url: String::new(),
                revision,
                items: names.iter().map(item).collect(),
                pages: vec![(1, Some(1)), (2, None)],
                fault: None,
            };
            check_listing(&[model()], &listing)
        };
        assert_eq!(listing(12, &[(11, "a"), (12, "b")]), Ok(()));
        assert!(
            listing(12, &[(12, "b"), (11, "a")]).is_err(),
            "the order is another"
        );
        assert!(listing(12, &[(11, "a")]).is_err(), "one is missing");
        assert!(listing(13, &[(11, "a"), (12, "b")]).is_err(), "one is old");
        assert!(
            listing(14, &[(13, "a"), (12, "b")]).is_err(),
            "one is deleted"
        );
        assert!(listing(11, &[(11, "a")]).is_err(), "the state is old");
    }

    #[test]
    fn a_store_that_misses_an_object_is_wrong() {
        let (model, plan) = (model(), Plan::reference());
        let key = |name: &str| Key::flunder("default", name);
        let object = |revision, name: &str| (key(name), put(revision, name).object.unwrap());
        let mut log = Log {
            plan,
            lists: Vec::new(),
            streams: Vec::new(),
            store: [object(12, "b"), object(15, "c")].into(),
            reached: 15,
        };
        let models = [model];
        assert_eq!(check_log(&models, &log), Ok(()));
        log.store.remove(&key("c"));
        assert!(check_log(&models, &log).is_err());
    }
}
