//! Events as they are sent, made once for all watchers that are sent them at about the same time.

use std::time::Duration;

use apiloom_storage::Revision;
use bytes::Bytes;
use tokio::time::Instant;

use super::negotiate::Target;
use super::params::IncludeObject;
use crate::recent::Recent;
use crate::registry::WatchEventKind;

/// For how long they are kept: tables say how old objects are, in seconds.
const KEPT_FOR: Duration = Duration::from_millis(500);

/// What makes two events the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Same {
    /// The resource and its version, by where the endpoint is.
    pub(super) endpoint: usize,
    pub(super) kind: WatchEventKind,
    /// The revision that wrote the state, and the one that is shown.
    pub(super) state: (Revision, Revision),
    pub(super) target: Target,
    pub(super) include: IncludeObject,
    /// Whether a table begins with its columns.
    pub(super) columns: bool,
}

#[derive(Debug)]
struct Made {
    same: Same,
    line: Bytes,
    at: Instant,
}

/// Events, for all watchers.
#[derive(Debug, Default)]
pub(super) struct Rendered(Recent<Made>);

impl Rendered {
    /// The event as a line, made now unless it was lately.
    pub(super) fn get(&self, same: Same, make: impl FnOnce() -> Vec<u8>) -> Bytes {
        let known = self.0.find(|made| {
            let usable = made.same == same && made.at.elapsed() < KEPT_FOR;
            usable.then(|| made.line.clone())
        });
        known.unwrap_or_else(|| {
            let line = Bytes::from(make());
            self.0.keep(Made {
                same,
                line: line.clone(),
                at: Instant::now(),
            });
            line
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::negotiate::MetaVersion;
    use crate::recent::KEPT;

    #[tokio::test(start_paused = true)]
    async fn a_form_is_made_once_and_again_when_it_is_old() {
        let rendered = Rendered::default();
        let mut made = 0;
        let mut get = |revision, columns| {
            let same = Same {
                endpoint: 1,
                kind: WatchEventKind::Modified,
                state: (Revision(revision), Revision(revision)),
                target: Target::Table(MetaVersion::V1),
                include: IncludeObject::Metadata,
                columns,
            };
            let json = rendered.get(same, || {
                made += 1;
                made.to_string().into_bytes()
            });
            String::from_utf8(json.to_vec()).unwrap()
        };
        assert_eq!((get(1, true), get(1, true)), ("1".into(), "1".into()));
        assert_eq!((get(1, false), get(2, true)), ("2".into(), "3".into()));
        tokio::time::advance(KEPT_FOR).await;
        assert_eq!(get(1, true), "4");
        for revision in 10..10 + KEPT as u64 {
            get(revision, true);
        }
        assert_eq!(get(1, true), "69");
    }
}
