//! What a client that watches does: what it asks for, in which form, of whom, and how often it is cut off.

use crate::interest::Interest;
use crate::objects::{Form, Include, Meta};
use crate::random::{Random, one_in, pick};

/// How a client gets the objects that are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fresh {
    /// By a list, whose revision its watch begins at.
    List,
    /// By a watch that sends them first and says by a bookmark where they end.
    Stream,
    /// By a watch that sends them first and does not say so.
    Everything,
}

/// What a client does.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) number: u64,
    pub(crate) interest: Interest,
    pub(crate) form: Form,
    pub(crate) fresh: Fresh,
    pub(crate) is_http1: bool,
    /// Which server it asks; any, each time, if none.
    pub(crate) server: Option<usize>,
    /// How many writes there are before it begins.
    pub(crate) begins_after: usize,
    /// How often it is cut off.
    pub(crate) cuts: usize,
    /// Whether it asks for bookmarks and for streams that end soon.
    pub(crate) is_brief: bool,
}

impl Plan {
    /// A client that is told of every change of flunders, and is never cut off.
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
        // What can never be shown anything is told by bookmarks alone how far it is.
        let is_brief = interest.example(number).is_none() || one_in(random, 8);
        let fresh = pick(
            random,
            &[Fresh::List, Fresh::List, Fresh::Stream, Fresh::Everything],
        );
        let fresh = match fresh {
            // It is not told where the objects end, so it must be one of them that says that this is the end.
            Fresh::Everything if is_brief || interest.name().is_some() => Fresh::List,
            // The bookmark shows no annotation.
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
