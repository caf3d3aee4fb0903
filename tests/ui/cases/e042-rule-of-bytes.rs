//! Bytes are a text on the wire: rules of lists have nothing to judge there.

use apiloom::prelude::*;

#[apiloom::api]
pub struct Part {
    #[api(items = ..=16)]
    pub blob: Vec<u8>,
    #[api(list = set)]
    pub maybe: Option<Vec<u8>>,
    #[api(unique, each(max = 9))]
    pub unique: Vec<u8>,
    #[api(len = 1..)]
    pub text: Vec<u8>,
    #[api(props = ..=9, each(items = 1..))]
    pub by_name: BTreeMap<String, Vec<u8>>,
    /// Rules of the list itself are right.
    #[api(items = ..=16)]
    pub several: Vec<Vec<u8>>,
}

fn main() {}
