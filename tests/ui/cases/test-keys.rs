//! The keys of `#[apiloom::test]`.

use apiloom_macros as apiloom;

#[apiloom::test(pause)]
async fn unknown_key(server: TestServer) {}

#[apiloom::test(install)]
async fn no_path(server: TestServer) {}

#[apiloom::test(install = "wardle::install")]
fn path_as_text_and_not_asynchronous(server: TestServer) {}

fn main() {}
