//! The plan of a watching client: its selection, form and server, and how often it is cut off.

use crate::interest::Interest;
use crate::objects::{Form, Include, Meta};
use crate::random::{Random, one_in, pick};

/// How a client gets the initial objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fresh {
    /// By a list, at whose revision its watch begins.
    List,
    /// By a watch with initial events and a bookmark at their end.
    Stream,
    /// By a watch with initial events and no such bookmark.
    Everything,
}

/// The plan of a client.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) number: u64,
    pub(crate) interest: Interest,
    pub(crate) form: Form,
    pub(crate) fresh: Fresh,
    pub(crate) is_http1: bool,
    /// The server that it uses; a random one for each request if `None`.
    pub(crate) server: Option<usize>,
    /// The number of writes before it begins.
    pub(crate) begins_after: usize,
    /// How often it is cut off.
    pub(crate) cuts: usize,
    /// Whether it requests bookmarks and short streams.
    pub(crate) is_brief: bool,
}

impl Plan {
    /// A client that sees every change of flunders, and is never cut off.
    pub(crate) fn reference() -> Self {
        Self {
            number: 0,
            interest: Interest::everything(),
            form: Form::Object,
            fresh: Fresh::List,
            is_http1: false,
            server: Some(0),
            begins_after: 0,
            cuts: 0,
            is_brief: false,
        }
    }

    pub(crate) fn random(number: u64, random: &mut Random, writes: usize) -> Self {
        let interest = Interest::random(random);
        let meta = pick(random, &[Meta::V1, Meta::V1, Meta::V1beta1]);
        let table = |include| Form::Table(meta, include);
        let form = pick(
            random,
            &[
                Form::Object,
                Form::Object,
                Form::Object,
                Form::Partial(meta),
                table(Include::Metadata),
                table(Include::Object),
                table(Include::None),
            ],
        );
        // A selection without possible objects learns its progress only from bookmarks.
        let is_brief = interest.example(number).is_none() || one_in(random, 8);
        let fresh = pick(
            random,
            &[Fresh::List, Fresh::List, Fresh::Stream, Fresh::Everything],
        );
        let fresh = match fresh {
            // Without the bookmark, the client's own selection must contain the object that marks the end.
            Fresh::Everything if is_brief || interest.name().is_some() => Fresh::List,
            // The bookmark in this form has no annotation.
            Fresh::Stream if form == table(Include::None) => Fresh::List,
            other => other,
        };
        Self {
            number,
            interest,
            form,
            fresh,
            is_http1: one_in(random, 5),
            server: one_in(random, 2).then(|| random.below(2)),
            begins_after: random.below(writes),
            cuts: random.below(8),
            is_brief,
        }
    }
}
