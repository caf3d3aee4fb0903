//! Events as they are sent, made once for all watchers that are sent them at about the same time.

use std::time::Duration;

use apiloom_storage::Revision;
use bytes::Bytes;
use tokio::time::Instant;

use super::form::Form;
use super::format::Writer;
use crate::recent::Recent;
use crate::registry::{Encoded, EndpointId, StateId, WatchEventKind};

/// For how long they are kept: tables say how old objects are, in seconds.
const KEPT_FOR: Duration = Duration::from_millis(500);

/// What makes two events of one state of an object the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    /// The resource and its version.
    pub(super) endpoint: EndpointId,
    pub(super) kind: WatchEventKind,
    pub(super) form: Form,
    pub(super) format: &'static dyn Writer,
    /// Whether a table begins with its columns.
    pub(super) columns: bool,
}

#[derive(Debug)]
struct Made {
    state: (StateId, Option<Revision>),
    shape: Shape,
    line: Bytes,
    at: Instant,
}

/// Events, for all watchers.
#[derive(Debug, Default)]
pub(super) struct Rendered(Recent<Made>);

impl Rendered {
    /// The event as a line, made now unless it was lately.
    pub(super) fn get(
        &self,
        document: &Encoded,
        shape: Shape,
        make: impl FnOnce() -> Vec<u8>,
    ) -> Bytes {
        let known = self.0.find(|made| {
            let same = document.has_id(&made.state) && made.shape == shape;
            let usable = same && made.at.elapsed() < KEPT_FOR;
            usable.then(|| made.line.clone())
        });
        known.unwrap_or_else(|| {
            let line = make();
            let bytes = line.capacity() + size_of::<Made>();
            let line = Bytes::from(line);
            let made = Made {
                state: document.id(),
                shape,
                line: line.clone(),
                at: Instant::now(),
            };
            self.0.keep(made, bytes);
            line
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::form::MetaVersion;
    use crate::http::format::INDENTED;
    use crate::http::params::IncludeObject;
    use crate::recent::KEPT;

    #[tokio::test(start_paused = true)]
    async fn a_form_is_made_once_and_again_when_it_is_old() {
        let rendered = Rendered::default();
        let (mut made, endpoint) = (0, EndpointId::next());
        let mut get = |document: &Encoded, columns| {
            let shape = Shape {
                endpoint,
                kind: WatchEventKind::Modified,
                form: Form::Table(MetaVersion::V1, IncludeObject::Metadata),
                format: &INDENTED,
                columns,
            };
            let json = rendered.get(document, shape, || {
                made += 1;
                made.to_string().into_bytes()
            });
            String::from_utf8(json.to_vec()).unwrap()
        };
        let [first, second] = [1, 2].map(|at| Encoded::unreadable(Revision(at)));
        assert_eq!(
            (get(&first, true), get(&first, true)),
            ("1".into(), "1".into())
        );
        assert_eq!(
            (get(&first, false), get(&second, true)),
            ("2".into(), "3".into())
        );
        tokio::time::advance(KEPT_FOR).await;
        assert_eq!(get(&first, true), "4");
        for revision in 10..10 + KEPT as u64 {
            get(&Encoded::unreadable(Revision(revision)), true);
        }
        assert_eq!(get(&first, true), "69");
        // Issue 9, point 4.
        let other = Encoded::unreadable(Revision(1));
        assert_eq!(get(&other, true), "70", "two states may share a revision");
    }
}
