//! The field of an index is checked by rustc: it exists, and its type has keys.

use apiloom::prelude::*;

#[apiloom::api]
pub struct ShelfSpec {
    pub weight: f64,
    pub color: Color,
    pub row: Option<Vec<i32>>,
}

/// Color has no `#[derive(Eq, Hash)]`.
#[apiloom::api]
pub enum Color {
    Red,
    Blue,
}

#[apiloom::resource(group = "example.com", version = "v1", namespaced,
    index(name = "row", path = spec.row),
    index(name = "column", path = spec.column),
    index(name = "weight", path = spec.weight),
    index(name = "color", path = spec.color))]
pub struct Shelf {
    pub metadata: ObjectMeta,
    pub spec: ShelfSpec,
}

fn main() {}
