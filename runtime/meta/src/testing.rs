//! Checks for the tests of packages with kinds.

use std::sync::Arc;

use crate::kind::{InMemoryConversion, Resource};
use crate::schema::{Schema, merge_difference};
use serde_json::{Map, Value, json};

/// Number of random documents of each version.
const SAMPLES: u64 = 300;

/// Converts random documents of a version and of its hub in both directions. `#[apiloom::resource]` generates a test
/// that calls it for every version with `spoke_of`.
///
/// - Every valid document can be converted.
/// - Converting a document of the version to the hub, back, and to the hub again gives the same document of the hub.
/// - Converting a document of the hub to the version, back, and to the version again gives the same document of the
///   version.
/// - A client that writes a document of the version unchanged does not change the hub's, and one that writes another
///   document reads it back.
///
/// # Panics
/// With the documents for which a check fails.
#[track_caller]
pub fn check_conversion<Spoke: Resource, Hub: Resource>() {
    let spoke = Version::of::<Spoke>();
    let hub = Version::of::<Hub>();
    let conversion = Spoke::definition().conversion;
    let Some(conversion) = conversion.as_ref().and_then(|of| of.in_memory()).copied() else {
        panic!("{} has no conversion", spoke.name);
    };
    let there_and_back = ThereAndBack {
        conversion,
        spoke: &spoke,
        hub: &hub,
    };
    for seed in 0..SAMPLES {
        there_and_back.check(spoke.sample(seed).as_ref(), hub.sample(seed).as_ref());
    }
}

/// A version of a kind.
struct Version {
    name: String,
    schema: Arc<Schema>,
}

impl Version {
    fn of<K: Resource>() -> Self {
        let definition = K::definition();
        let name = definition.api_version();
        match definition.schema.schema() {
            Ok(schema) => Self { name, schema },
            Err(errors) => panic!("{name}: {errors}"),
        }
    }

    /// A random object; `None` if it is invalid, since then it need not be convertible.
    fn sample(&self, seed: u64) -> Option<Value> {
        let mut sample = self.schema.sample(seed);
        sample["metadata"] = json!({"name": "a"});
        self.schema.default(&mut sample);
        self.schema.validate(&sample).is_empty().then_some(sample)
    }
}

struct ThereAndBack<'a> {
    conversion: InMemoryConversion,
    spoke: &'a Version,
    hub: &'a Version,
}

impl ThereAndBack<'_> {
    #[track_caller]
    fn check(&self, said: Option<&Value>, stored: Option<&Value>) {
        let told = said.map(|said| self.to_hub(said));
        if let (Some(said), Some(told)) = (said, &told) {
            let again = self.to_hub(&self.to_spoke(told));
            let what =
                "the hub is told something else when what it was told is read and written back";
            assert_eq!(
                again, *told,
                "{what}\nwritten in {}: {said}",
                self.spoke.name
            );
        }
        let Some(stored) = stored else {
            return;
        };
        let shown = self.to_spoke(stored);
        let back = self.to_hub(&shown);
        let what = "the version shows something else when what it shows is written back";
        assert_eq!(self.to_spoke(&back), shown, "{what}\nstored: {stored}");
        let (Some(said), Some(told)) = (said, told) else {
            return;
        };
        let mut updated = fields(stored);
        let schema = Some(&*self.hub.schema);
        merge_difference(schema, &mut updated, &fields(&back), fields(&told));
        let what = "a client does not read what it wrote over what was stored";
        assert_eq!(
            self.to_spoke(&Value::Object(updated)),
            self.to_spoke(&told),
            "{what}\nwritten in {}: {said}\nstored: {stored}",
            self.spoke.name,
        );
    }

    #[track_caller]
    fn to_hub(&self, document: &Value) -> Value {
        let converted = (self.conversion.to_hub)(document.clone());
        let mut converted = self.converted(document, converted, self.spoke, self.hub);
        self.hub.schema.default(&mut converted);
        converted
    }

    #[track_caller]
    fn to_spoke(&self, document: &Value) -> Value {
        let converted = (self.conversion.from_hub)(document.clone());
        self.converted(document, converted, self.hub, self.spoke)
    }

    #[track_caller]
    fn converted(
        &self,
        document: &Value,
        converted: Result<Value, String>,
        from: &Version,
        to: &Version,
    ) -> Value {
        converted.unwrap_or_else(|why| {
            panic!(
                "converting from {} to {}: {why}\nThe schema of {} allows: {document}",
                from.name, to.name, from.name
            )
        })
    }
}

fn fields(document: &Value) -> Map<String, Value> {
    document.as_object().cloned().unwrap_or_default()
}
