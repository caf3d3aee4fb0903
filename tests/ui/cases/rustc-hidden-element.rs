//! What an element is, stands in the type of the field: another name for it would change what is on the wire.

use apiloom::prelude::*;

type Maybe = Option<String>;
type Blob = Vec<u8>;

#[apiloom::api]
pub struct Part {
    pub names: Vec<Maybe>,
    pub blobs: BTreeMap<String, Blob>,
    pub blob: Option<Blob>,
}

fn main() {}
