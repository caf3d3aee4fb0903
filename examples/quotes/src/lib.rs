//! A kind whose objects are in no store: quotes of a market, which is a table in memory. Its get, list and watch are code, in
//! `market.rs`; everything else is the server's.

#[rustfmt::skip]
pub mod generated;
pub mod market;

use std::time::Duration;

use apiloom::prelude::*;
use apiloom::server::Host;
use tokio::time::sleep;

use crate::market::Market;

apiloom::group! { name = "quotes.example.com", versions = [v1], release = "1.0" }

/// How often a share is traded.
const TRADE_INTERVAL: Duration = Duration::from_millis(500);

/// Quote is the last price of a share.
//
// `store = code` says that a `Reader` answers get, list and watch, which are its verbs. Columns, selectable fields, names and so
// on are those of any kind.
#[apiloom::resource(group = "quotes.example.com", version = "v1", namespaced, store = code, shortname = "qt",
    selectable(currency), printcolumn(name = "Price", path = price), printcolumn(name = "Currency", path = currency))]
pub struct Quote {
    pub metadata: ObjectMeta,
    /// Currency of the price, such as EUR.
    pub currency: String,
    /// Price of one share, in hundredths of the currency.
    pub price: i64,
}

/// What the server has besides its kind: the market, and its trades.
pub fn configure(builder: Builder) -> Builder {
    let market = Market::open();
    let traded = market.clone();
    let trade = async move |host: Host| {
        let pause = || host.stop.run_until_cancelled(sleep(TRADE_INTERVAL));
        while pause().await.is_some() {
            traded.trade();
        }
    };
    let builder = builder.reader::<Quote>(market);
    builder.controller("quotes-trade", trade)
}
