//! Markers of Go's generators in comments of API types: they have no effect, so each is a warning.

use apiloom_model::markers;
use syn::DeriveInput;
use syn::spanned::Spanned as _;

use crate::problem::{Location, Problem};
use crate::source::{Crate, ModuleId};

/// A warning for each marker in the comments above an item and inside it.
pub(super) fn warnings(krate: &Crate, module: ModuleId, item: &DeriveInput) -> Vec<Problem> {
    let place = krate.locate(module, item.span());
    let text = krate.files[place.file].text.as_str();
    let end = place.range.end.min(text.len());
    let start = comments_above(text, place.range.start.min(end));
    let Some(part) = text.get(start..end) else {
        return Vec::new();
    };
    let mut warnings = Vec::new();
    let mut offset = start;
    for line in part.split_inclusive('\n') {
        warnings.extend(warning(line, offset, place.file));
        offset += line.len();
    }
    warnings
}

/// The start of the comments directly above a position.
fn comments_above(text: &str, place: usize) -> usize {
    let line = text[..place].rfind('\n').map_or(0, |end| end + 1);
    let mut start = line;
    for above in text[..line].split_inclusive('\n').rev() {
        if comment(above).is_none() {
            break;
        }
        start -= above.len();
    }
    start
}

/// The text after the slashes, if the line is a comment.
fn comment(line: &str) -> Option<&str> {
    let body = line.trim_start().strip_prefix("//")?;
    Some(body.trim_start_matches(['/', '!']))
}

fn warning(line: &str, offset: usize, file: usize) -> Option<Problem> {
    let marker = markers::of_comment(comment(line)?)?;
    let start = offset + line.find(&marker.text)?;
    let range = start..start + marker.text.len();
    Some(
        Problem::warning("apiloom does not read markers in comments")
            .at(Location { file, range })
            .help(marker.help),
    )
}
