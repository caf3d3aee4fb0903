//! A test of `#[apiloom::test]` is an asynchronous function with a server.

// Of `apiloom` with its feature `testing`, which needs a server that these cases do not build.
use apiloom_macros as apiloom;

#[apiloom::test]
fn not_asynchronous(server: TestServer) {}

#[apiloom::test]
async fn no_server() {}

#[apiloom::test]
async fn too_many(server: TestServer, control: Control, other: u8) {}

#[apiloom::test]
async fn generic<T>(server: T) {}

#[apiloom::test]
#[test]
async fn twice(server: TestServer) {}

struct Suite;

impl Suite {
    #[apiloom::test]
    async fn method(&self, server: TestServer) {}
}

#[apiloom::test]
struct NoFunction;

fn main() {}
