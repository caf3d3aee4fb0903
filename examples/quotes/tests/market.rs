//! The market as the server asks it.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on panics, and says where"
)]

use apiloom::meta::StatusReason;
use apiloom::prelude::*;
use apiloom::server::{ListOptions, ObjectEvent, ObjectEvents, Reader};
use futures_util::{FutureExt as _, StreamExt as _};
use quotes::Quote;
use quotes::market::Market;

/// A watch of the changes after a version.
fn watch(market: &Market, version: &str) -> ObjectEvents<Quote> {
    let options = ListOptions {
        resource_version: version.to_owned(),
        ..ListOptions::default()
    };
    let ctx = RequestContext::default();
    let events = market.watch(&ctx, None, &options).now_or_never();
    events.expect("it begins at once").unwrap()
}

#[test]
fn changes_follow_the_version_before_them() {
    let market = Market::open();
    let mut events = watch(&market, "1");
    assert!(events.next().now_or_never().is_none(), "no trade yet");
    market.trade();
    market.trade();
    for (version, name) in [("2", "globex"), ("3", "initech")] {
        let event = events.next().now_or_never().flatten().unwrap();
        let Ok(ObjectEvent::Modified { old, new }) = event else {
            panic!("{event:?}")
        };
        assert_eq!(new.metadata.name.as_deref(), Some(name));
        assert_eq!(new.metadata.resource_version.as_deref(), Some(version));
        assert_eq!(new.price, old.price + 1);
    }
    assert!(events.next().now_or_never().is_none());
    let mut from_now = watch(&market, "");
    market.trade();
    assert!(from_now.next().now_or_never().flatten().is_some());
}

#[test]
fn changes_that_are_no_longer_known_end_a_watch_with_an_error() {
    let market = Market::open();
    for _ in 0..2000 {
        market.trade();
    }
    let mut events = watch(&market, "2");
    let expired = events.next().now_or_never().flatten().unwrap();
    let expired = expired.unwrap_err();
    assert_eq!(expired.reason, Some(StatusReason::Expired));
    assert!(events.next().now_or_never().flatten().is_none());
    let options = ListOptions {
        resource_version: "yesterday".to_owned(),
        ..ListOptions::default()
    };
    let ctx = RequestContext::default();
    let refused = market.watch(&ctx, None, &options).now_or_never().unwrap();
    let reason = refused.unwrap_err().reason;
    assert_eq!(reason, Some(StatusReason::BadRequest));
}

#[test]
fn a_quote_is_read_in_its_namespace() {
    let (market, ctx) = (Market::open(), RequestContext::default());
    let read = |namespace, name| market.get(&ctx, Some(namespace), name).now_or_never();
    let found = read("tokyo", "nakatomi").unwrap().unwrap();
    assert_eq!((&*found.currency, found.price), ("JPY", 150_000));
    let missing = read("default", "nakatomi").unwrap().unwrap_err();
    assert_eq!(missing.reason, Some(StatusReason::NotFound));
}
