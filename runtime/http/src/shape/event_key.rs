//! Identifies events that are equal for several watchers, so that they are encoded once and kept with the change.

use std::time::Duration;

use apiloom_registry::WatchEventKind;

use super::form::{Form, MetaVersion};
use super::format::{self, StreamWriter};
use crate::request::params::IncludeObject;

/// Maximum age of an encoded row of a Table, which has the age of its object in seconds.
const ROW_AGE: Duration = Duration::from_millis(500);

/// The form and format of a watch. Watchers with the same ones get the same bytes for an event of an endpoint.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EventKey {
    form: Form,
    number: u64,
}

impl EventKey {
    pub(crate) fn new(form: Form, stream: &dyn StreamWriter) -> Self {
        let version = |version| match version {
            MetaVersion::V1 => 0,
            MetaVersion::V1beta1 => 1,
        };
        let form_number = match form {
            Form::Object => 0,
            Form::Partial(of) | Form::PartialList(of) => 1 + version(of),
            Form::Table(of, IncludeObject::None) => 3 + version(of),
            Form::Table(of, IncludeObject::Metadata) => 5 + version(of),
            Form::Table(of, IncludeObject::Object) => 7 + version(of),
        };
        let format = format::stream_types().take_while(|other| *other != stream.listed_type());
        Self {
            form,
            number: (format.count() as u64) << 8 | form_number << 4,
        }
    }

    /// Number of the combination of form, format and event type; differs for a table that begins with its columns.
    pub(crate) fn number(self, kind: WatchEventKind, with_columns: bool) -> u64 {
        let kind = match kind {
            WatchEventKind::Added => 0,
            WatchEventKind::Modified => 1,
            WatchEventKind::Deleted => 2,
            WatchEventKind::Bookmark => 3,
        };
        let with_columns = with_columns && matches!(self.form, Form::Table(..));
        self.number | u64::from(with_columns) << 3 | kind
    }

    /// Maximum age of an encoded event; `None` if it does not change with time.
    pub(crate) fn max_age(self) -> Option<Duration> {
        matches!(self.form, Form::Table(..)).then_some(ROW_AGE)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::shape::format::Writer;

    #[test]
    fn other_bytes_have_another_number() {
        let versions = [MetaVersion::V1, MetaVersion::V1beta1];
        let includes = [
            IncludeObject::None,
            IncludeObject::Metadata,
            IncludeObject::Object,
        ];
        let kinds = [
            WatchEventKind::Added,
            WatchEventKind::Modified,
            WatchEventKind::Deleted,
            WatchEventKind::Bookmark,
        ];
        let partial = versions.map(Form::Partial);
        let tables = versions.map(|version| includes.map(|include| Form::Table(version, include)));
        let forms = [&[Form::Object], &partial[..], tables.as_flattened()].concat();
        let (mut numbers, mut count) = (HashSet::new(), 0);
        let stream_of = |writer: &dyn Writer| writer.stream();
        for stream in format::writers().filter_map(stream_of) {
            for (form, kind) in forms
                .iter()
                .flat_map(|form| kinds.map(|kind| (*form, kind)))
            {
                let rendered = EventKey::new(form, stream);
                let is_table = rendered.max_age().is_some();
                numbers.extend([true, false].map(|columns| rendered.number(kind, columns)));
                count += 1 + usize::from(is_table);
            }
        }
        assert_eq!(numbers.len(), count);
        let list = EventKey::new(Form::PartialList(MetaVersion::V1), &format::JSON);
        let one = EventKey::new(Form::Partial(MetaVersion::V1), &format::JSON);
        assert_eq!(list.number, one.number, "they differ in lists alone");
    }
}
