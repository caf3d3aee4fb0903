//! Laws of applies, updates and patches of several managers in two versions, against a small model of who owns what.

mod model;

use apiloom_meta::patch::Patch;
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use self::model::{Leaves, Model, Operation, Version, Writer};

use super::managed_fields::{by, owners};
use super::*;

/// A kind with maps, sets, lists by key, values that are owned as a whole, and structs in structs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Shelf {
    metadata: ObjectMeta,
    #[serde(default)]
    spec: Value,
}

/// The version that is stored and names two fields otherwise.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
struct AlphaShelf {
    metadata: ObjectMeta,
    #[serde(default)]
    spec: Value,
}

impl ApiType for Shelf {}
impl ApiType for AlphaShelf {}

/// The fields whose names differ between the versions: that of v1, that of v1alpha1.
const RENAMED: [(&str, &str); 2] = [("size", "amount"), ("labels", "marks")];

resource!(Shelf, "v1", "Shelf", "shelves", |def| ResourceDef {
    schema: SchemaSource::Type(|| schema(&[])),
    ..def
});
resource!(AlphaShelf, "v1alpha1", "Shelf", "shelves", |def| {
    ResourceDef {
        storage: true,
        schema: SchemaSource::Type(|| schema(&RENAMED)),
        conversion: Some(Conversion {
            hub_version: "v1".into(),
            hub_kind: "Shelf".into(),
            hub_resource: None,
            method: ConversionMethod::InMemory(InMemoryConversion {
                json: None,
                to_hub: |value| {
                    Ok(RENAMED
                        .iter()
                        .fold(value, |value, (hub, alpha)| renamed(value, alpha, hub)))
                },
                from_hub: |value| {
                    Ok(RENAMED
                        .iter()
                        .fold(value, |value, (hub, alpha)| renamed(value, hub, alpha)))
                },
            }),
        }),
        ..def
    }
});

fn schema(names: &[(&str, &str)]) -> Result<Schema, apiloom_meta::schema::SchemaErrors> {
    let text = json!({"type": "string"});
    let number = json!({"type": "integer"});
    let pair = json!({"type": "object", "properties": {"x": {"type": "integer"}, "y": {"type": "integer"}}});
    let mut point = pair.clone();
    point["x-kubernetes-map-type"] = json!("atomic");
    let mut fields = json!({
        "size": number,
        "on": {"type": "boolean"},
        "labels": {"type": "object", "additionalProperties": text},
        "point": point,
        "ports": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["port"],
            "items": {"type": "object", "required": ["port"], "properties": {"port": number, "name": text}}},
        "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": text},
        "args": {"type": "array", "items": text},
        "deep": {"type": "object", "properties": {"inner": pair}},
        "groups": {"type": "object", "additionalProperties": pair},
    });
    if let Value::Object(fields) = &mut fields {
        for (hub, alpha) in names {
            let field = fields.remove(*hub).unwrap_or_default();
            fields.insert((*alpha).to_owned(), field);
        }
    }
    Schema::of_resource(&json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": fields}}}))
}

const BASE: Writer = Writer {
    name: "base",
    version: Version::Hub,
};

/// A registry with the kind, and an object of it.
struct Shelves {
    f: Fixture,
    endpoints: [Arc<Endpoint>; 2],
}

impl Shelves {
    /// With an object that the manager `base` has applied.
    async fn new() -> Self {
        let (f, endpoints) = two_versions::<Shelf, AlphaShelf>().await;
        let shelves = Self { f, endpoints };
        let applied = shelves.apply(BASE, &model::base(), false).await;
        applied.unwrap();
        shelves
    }

    fn endpoint(&self, version: Version) -> &Endpoint {
        match version {
            Version::Hub => &self.endpoints[0],
            Version::Alpha => &self.endpoints[1],
        }
    }

    fn document(version: Version, leaves: &Leaves) -> Object {
        let mut document = json!({"apiVersion": version.api_version(), "kind": "Shelf",
            "metadata": {"name": "a", "namespace": "default"}, "spec": model::spec(leaves)});
        if version == Version::Alpha {
            for (hub, alpha) in RENAMED {
                document = renamed(document, hub, alpha);
            }
        }
        object(document)
    }

    /// The leaves of the hub version.
    fn leaves(version: Version, mut written: Object) -> Leaves {
        if version == Version::Alpha {
            let mut value = written.into_value();
            for (hub, alpha) in RENAMED {
                value = renamed(value, alpha, hub);
            }
            written = object(value);
        }
        model::leaves(&at(&written, "/spec"))
    }

    async fn apply(
        &self,
        writer: Writer,
        leaves: &Leaves,
        force: bool,
    ) -> Result<Object, ApiError> {
        let document = Self::document(writer.version, leaves);
        let options = by(writer.name);
        let writes = self.endpoint(writer.version).writes();
        let document = document.into();
        let request = WriteRequest::new(&self.f.ctx, NS, "a").with(&options);
        let applied = writes.apply(WriteRequest { force, ..request }, &document);
        applied.await.map(|(written, _)| written.object)
    }

    /// Runs an operation on the object and in the model, and compares the results.
    async fn run(&self, model: &mut Model, operation: &Operation) -> Result<(), TestCaseError> {
        let writer = operation.writer();
        let before = self.read().await;
        let was = model.clone();
        let expected = model.run(operation);
        let options = by(writer.name);
        let endpoint = self.endpoint(writer.version);
        let written = match operation {
            Operation::Apply(_, leaves, force) => {
                let applied = self.apply(writer, leaves, *force).await;
                if let Err(error) = &applied {
                    prop_assert_eq!(error.reason, Some(StatusReason::Conflict));
                    if expected && is_about_parents(error) {
                        *model = was;
                        prop_assert_eq!(self.read().await, before);
                        return Ok(());
                    }
                }
                prop_assert_eq!(applied.is_ok(), expected, "conflicts");
                applied.ok()
            }
            Operation::Update(_, leaves) => {
                let mut all = leaves.clone();
                all.extend(model::base());
                let document = Self::document(writer.version, &all);
                let updated = endpoint.writes().update(
                    WriteRequest::new(&self.f.ctx, NS, "a").with(&options),
                    document,
                );
                Some(updated.await.map_err(failed)?.0.object)
            }
            Operation::Patch(_, leaves) => {
                let document = Self::document(writer.version, leaves);
                let patch = json!({"spec": document.fields()["spec"]});
                let patch = Patch::parse_merge(patch.to_string().as_bytes()).unwrap();
                let patched = endpoint.writes().patch(
                    WriteRequest::new(&self.f.ctx, NS, "a").with(&options),
                    &patch,
                );
                Some(patched.await.map_err(failed)?.object)
            }
        };
        let Some(written) = written else {
            prop_assert_eq!(self.read().await, before, "a refusal writes nothing");
            return Ok(());
        };
        prop_assert_eq!(
            &Self::leaves(writer.version, written.clone()),
            &model.leaves
        );
        prop_assert_eq!(&model::owners(&written), &model.owners());
        if let Operation::Apply(_, leaves, _) = operation {
            let again = self.apply(writer, leaves, false).await.map_err(failed)?;
            prop_assert_eq!(again, written, "applying again writes nothing");
        }
        Ok(())
    }

    async fn read(&self) -> Option<Object> {
        let options = GetOptions::default();
        let got = self.endpoints[0]
            .reads()
            .get(&self.f.ctx, NS, "a", &options);
        got.await.ok().map(|document| decoded(&document))
    }
}

/// Whether a conflict is about nothing but structs, maps and lists, which the model does not have. Who creates one by an
/// update owns it even after an apply has removed the last of its fields, and then conflicts with who adds one again.
fn is_about_parents(error: &ApiError) -> bool {
    const PARENTS: [&str; 8] = [
        ".spec",
        ".spec.deep",
        ".spec.deep.inner",
        ".spec.groups",
        ".spec.labels",
        ".spec.marks",
        ".spec.ports",
        ".spec.tags",
    ];
    let causes = error.details.iter().flat_map(|details| &details.causes);
    causes
        .map(|cause| cause.field.as_str())
        .all(|field| PARENTS.contains(&field))
}

fn failed(error: ApiError) -> TestCaseError {
    TestCaseError::fail(error.message)
}

/// Runs a test case.
fn block_on(case: impl Future<Output = Result<(), TestCaseError>>) -> Result<(), TestCaseError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.unwrap().block_on(case)
}

/// As in structured-merge-diff: of what an apply drops, each version keeps what its own entries own, and the version of
/// the manager's last apply comes first.
#[tokio::test]
async fn a_dropped_field_stays_only_with_an_owner_of_its_item_in_this_or_an_earlier_version() {
    for (last, is_kept) in [(Version::Hub, false), (Version::Alpha, true)] {
        let shelves = Shelves::new().await;
        let mut model = Model::new(BASE);
        let writer = |version| Writer {
            name: "one",
            version,
        };
        let item = |x: i64| {
            Leaves::from([
                ("groups/h".to_owned(), Value::Null),
                ("groups/h/x".to_owned(), json!(x)),
            ])
        };
        let operations = [
            Operation::Patch(writer(Version::Alpha), item(1)),
            Operation::Patch(writer(Version::Hub), item(2)),
            Operation::Apply(writer(last), item(2), false),
            Operation::Apply(writer(last), Leaves::new(), false),
        ];
        for operation in operations {
            shelves.run(&mut model, &operation).await.unwrap();
        }
        let leaves = Shelves::leaves(Version::Hub, shelves.read().await.unwrap());
        assert!(leaves.contains_key("groups/h"), "{leaves:?}");
        assert_eq!(leaves.contains_key("groups/h/x"), is_kept, "{leaves:?}");
    }
}

/// Kubernetes compares the object with one that has no fields, as it does for custom resources.
#[tokio::test]
async fn an_empty_spec_that_no_manager_owns_is_owned_from_before_the_first_apply() {
    let shelves = Shelves::new().await;
    let patch = json!({"metadata": {"managedFields": [{}]}, "spec": {"on": null}});
    let patch = Patch::parse_merge(patch.to_string().as_bytes()).unwrap();
    let (writes, options) = (shelves.endpoints[0].writes(), by("two"));
    let cleared = writes.patch(
        WriteRequest::new(&shelves.f.ctx, NS, "a").with(&options),
        &patch,
    );
    let cleared = cleared.await.unwrap().object;
    assert_eq!(at(&cleared, "/spec"), json!({}));
    assert_eq!(at(&cleared, "/metadata/managedFields"), Value::Null);
    let applied = shelves.apply(BASE, &model::base(), false).await.unwrap();
    assert_eq!(
        owners(&applied),
        [
            ("base Apply v1".to_owned(), json!({"f:spec": {"f:on": {}}})),
            (
                "before-first-apply Update v1".to_owned(),
                json!({"f:spec": {}})
            ),
        ]
    );
}

/// `APILOOM_APPLY_CASES=5000` runs that many cases of each law.
fn config() -> ProptestConfig {
    let cases = std::env::var("APILOOM_APPLY_CASES").ok();
    ProptestConfig {
        cases: cases.map_or(32, |cases| cases.parse().unwrap()),
        failure_persistence: None,
        max_shrink_time: 20_000,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config())]

    /// What an object has and who owns it is what the model says, after each of many operations; applying twice writes
    /// nothing; and what managers own is what the object has.
    #[test]
    fn operations_do_what_the_model_says(operations in prop::collection::vec(model::operation(), 1..14)) {
        block_on(async {
            let shelves = Shelves::new().await;
            let mut model = Model::new(BASE);
            for operation in &operations {
                shelves.run(&mut model, operation).await?;
                model.check_union()?;
            }
            Ok(())
        })?;
    }

    /// Applies that are not in conflict give the same fields and owners in any order.
    #[test]
    fn the_order_of_applies_without_conflict_does_not_matter(
        first in model::leaves_of_any(),
        all in prop::collection::vec((model::version(), model::leaves_of_any()), 2..4),
    ) {
        block_on(async {
            let names = ["one", "two", "three"];
            let mut results = Vec::new();
            for is_reversed in [false, true] {
                let shelves = Shelves::new().await;
                shelves.apply(BASE, &first, false).await.map_err(failed)?;
                let mut applies: Vec<_> = names.into_iter().zip(&all).collect();
                if is_reversed {
                    applies.reverse();
                }
                let mut is_refused = false;
                for (name, (version, leaves)) in applies {
                    let writer = Writer { name, version: *version };
                    is_refused |= shelves.apply(writer, leaves, false).await.is_err();
                }
                let object = shelves.read().await.unwrap();
                results.push((is_refused, model::owners(&object), Shelves::leaves(Version::Hub, object)));
            }
            prop_assert_eq!(results[0].0, results[1].0);
            if !results[0].0 {
                prop_assert_eq!(&results[0], &results[1]);
            }
            Ok(())
        })?;
    }

    /// Updates of many managers are merged to ten entries, and no owner is lost.
    #[test]
    fn the_fields_of_merged_updates_keep_an_owner(updates in prop::collection::vec(
        (0..30_usize, model::version(), model::leaves_of_any()), 12..24)) {
        block_on(async {
            const NAMES: [&str; 30] = [
                "m00", "m01", "m02", "m03", "m04", "m05", "m06", "m07", "m08", "m09", "m10", "m11", "m12", "m13", "m14",
                "m15", "m16", "m17", "m18", "m19", "m20", "m21", "m22", "m23", "m24", "m25", "m26", "m27", "m28", "m29",
            ];
            let shelves = Shelves::new().await;
            for (name, version, leaves) in updates {
                let document = Shelves::document(version, &leaves);
                let patch = json!({"spec": document.fields()["spec"]});
                let patch = Patch::parse_merge(patch.to_string().as_bytes()).unwrap();
                let options = by(NAMES[name]);
                let writes = shelves.endpoint(version).writes();
                let patched = writes.patch(WriteRequest::new(&shelves.f.ctx, NS, "a").with(&options), &patch);
                let object = patched.await.map_err(failed)?.object;
                let owners = model::owners(&object);
                let updates = owners.keys().filter(|who| who.contains(" Update ")).count();
                prop_assert!(updates <= 10, "{:?}", owners);
                let mut owned: BTreeSet<String> = owners.into_values().flatten().collect();
                let leaves = Shelves::leaves(version, object);
                owned.retain(|path| model::is_leaf(path));
                prop_assert_eq!(owned, leaves.into_keys().collect::<BTreeSet<String>>());
            }
            Ok(())
        })?;
    }
}
