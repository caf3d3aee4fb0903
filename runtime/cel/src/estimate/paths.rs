//! The places in a schema from which the values of an expression come.
//!
//! cel-go keeps a path as a slice of names and appends to it: paths with a common beginning can share memory, and then the
//! last one that was made decides where the others lead. Estimates show it (`self.a.b.c.list.all(x, x.foo.all(y,
//! x.bar.exists(z, ..)))`), so paths share their steps here in the same way.

use super::cost::Cost;
use crate::schema::{Decl, Shape};

/// A step from a value to one inside of it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step<'c> {
    /// A variable at the beginning, or a field.
    Name(&'c str),
    /// An item of a list, or a value of a map.
    Element,
    /// A key of a map.
    Key,
    /// An index of a list, which has no place in a schema.
    Index,
}

/// A path: the first steps of an array of [`Paths`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Path {
    array: usize,
    len: usize,
}

/// Steps with the number for which there is room, as Go allots it.
#[derive(Debug)]
struct Array<'c> {
    steps: Vec<Step<'c>>,
    room: usize,
}

/// The paths of an expression.
#[derive(Debug, Default)]
pub(super) struct Paths<'c> {
    arrays: Vec<Array<'c>>,
}

impl<'c> Paths<'c> {
    /// A path with one step more. It takes the place of other paths that go on from the same one where there is room.
    pub(super) fn append(&mut self, path: Option<Path>, step: Step<'c>) -> Path {
        let Some(Path { array, len }) = path else {
            return self.allot(vec![step], 1);
        };
        let shared = &mut self.arrays[array];
        if len == shared.room {
            let mut steps = Vec::with_capacity(len + 1);
            steps.extend_from_slice(&shared.steps[..len]);
            steps.push(step);
            return self.allot(steps, len * 2);
        }
        match shared.steps.get_mut(len) {
            Some(taken) => *taken = step,
            None => shared.steps.push(step),
        }
        Path {
            array,
            len: len + 1,
        }
    }

    fn allot(&mut self, steps: Vec<Step<'c>>, room: usize) -> Path {
        let path = Path {
            array: self.arrays.len(),
            len: steps.len(),
        };
        self.arrays.push(Array { steps, room });
        path
    }

    /// The size of the values at a path, and one step on from there; `None` if it leads nowhere. The first step is a
    /// variable, whichever, and stands for the root.
    pub(super) fn size(&self, path: Path, root: &Decl, more: Option<Step<'c>>) -> Option<Cost> {
        let steps = &self.arrays[path.array].steps[1..path.len];
        let mut at = root;
        let mut steps = steps.iter().copied().chain(more);
        while let Some(step) = steps.next() {
            at = match (step, &at.shape) {
                (Step::Element, _) => at.element()?,
                // Other spellings of reserved words, which rules may use too, are unknown to the estimate.
                (Step::Name(name), Shape::Object(fields)) => &fields.by_rule_name.get(name)?.1,
                // Keys have no size, and nothing inside.
                (Step::Key, Shape::Map(_)) => {
                    return steps.next().is_none().then(Cost::default);
                }
                _ => return None,
            };
        }
        Some(Cost::up_to(at.max_elements))
    }
}
