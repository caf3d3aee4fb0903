//! One kind, from annotation to kubectl. Read from top to bottom; every line says what it is for.

// What the generator makes from this file lives in `src/generated`; it is committed and never edited.
#[rustfmt::skip]
pub mod generated;

// The names that types need: ObjectMeta, Time, FieldError and so on.
use apiloom::prelude::*;

// The group is declared once: its name, its versions with the preferred one first, and the release of this program,
// with which lifecycles of versions compare.
apiloom::group! { name = "hello.example.com", versions = [v1], release = "1.0" }

/// Greeting says hello to somebody.
//
// `resource` makes the struct a kind: it is served at /apis/hello.example.com/v1/namespaces/NAMESPACE/greetings.
// `namespaced` (or `cluster`) must be said. `status` gives it a status subresource, `shortname` is for `kubectl get gr`,
// `printcolumn` adds a column to `kubectl get`; rustc checks the path.
#[apiloom::resource(group = "hello.example.com", version = "v1", namespaced, status, shortname = "gr",
    printcolumn(name = "To", path = spec.to), printcolumn(name = "Times", path = spec.times))]
pub struct Greeting {
    // Name, labels, resourceVersion and so on; every kind has it.
    pub metadata: ObjectMeta,
    /// Whom to greet, and how often.
    pub spec: GreetingSpec,
    /// What came of it; only the status subresource changes it.
    pub status: Option<GreetingStatus>,
}

/// GreetingSpec is what the user asks for.
// `api` is for every type inside a kind: it adds the derives, and spells fields in camelCase.
#[apiloom::api]
pub struct GreetingSpec {
    /// Name of who is greeted.
    // A field that is not an Option must be given; `len` bounds it, and the server refuses what is outside.
    #[api(len(min = 1, max = 63))]
    pub to: String,
    /// How often.
    // The server fills a default in, for new objects and for those that were stored before the field existed.
    #[api(default = 1, min = 1, max = 10)]
    pub times: i32,
}

/// GreetingStatus is what a controller reports.
#[apiloom::api]
pub struct GreetingStatus {
    /// How often the greeting was said.
    pub said: Option<i32>,
}
