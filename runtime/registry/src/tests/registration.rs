//! Registration of kinds: served resources, and problems.

use apiloom_meta::GroupVersionKind;
use apiloom_meta::kind::{Lifecycle, Release, SmolStr, Writes};

use super::*;

fn release(major: u32, minor: u32) -> Option<Release> {
    Some(Release { major, minor })
}

fn served(registry: &Registry) -> Vec<String> {
    let name = |e: &Arc<Endpoint>| format!("{}/{}", e.def().api_version(), e.def().plural);
    registry.catalog().endpoints().iter().map(name).collect()
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(super) struct Aged {
    pub(super) metadata: ObjectMeta,
}
impl ApiType for Aged {}
resource!(Aged, "v1beta1", "Aged", "aged", |def| ResourceDef {
    group: "old.example.com".into(),
    storage: true,
    lifecycle: Some(Lifecycle {
        introduced: release(1, 0),
        deprecated: release(1, 3),
        removed: release(1, 10),
        replacement: Some(GroupVersionKind::new("new.example.com", "v1", "Young")),
    }),
    ..def
});

async fn aged_at(at: Option<Release>) -> Registry {
    let mut builder = with_namespaces(Memory::new());
    builder.group(GroupDef {
        name: "old.example.com".into(),
        versions: vec!["v1beta1".into()].into(),
        release: at,
        place: None,
    });
    builder.kind::<Aged>();
    builder.build().unwrap()
}

#[tokio::test]
async fn a_version_is_deprecated_and_removed_by_release() {
    let warning = async |at| {
        let registry = aged_at(at).await;
        let endpoint = registry.endpoint("old.example.com", "v1beta1", "aged")?;
        Some(endpoint.deprecation_warning().map(str::to_owned))
    };
    let text = "old.example.com/v1beta1 Aged is deprecated in v1.3+, unavailable in v1.10+; use new.example.com/v1 Young";
    assert_eq!(warning(None).await, Some(None));
    assert_eq!(warning(release(1, 2)).await, Some(None));
    assert_eq!(warning(release(1, 0)).await, Some(None));
    assert_eq!(warning(release(0, 9)).await, None);
    assert_eq!(warning(release(1, 3)).await, Some(Some(text.to_owned())));
    assert_eq!(warning(release(1, 9)).await, Some(Some(text.to_owned())));
    assert_eq!(warning(release(1, 10)).await, None);
    assert_eq!(aged_at(release(1, 10)).await.catalog().groups().len(), 1);
}

#[tokio::test]
async fn groups_list_core_first_and_versions_as_declared() {
    let f = fixture().await;
    let catalog = f.registry.catalog();
    let groups: Vec<(&str, &[String])> = catalog
        .groups()
        .iter()
        .map(|g| (g.name.as_str(), &g.versions[..]))
        .collect();
    assert_eq!(
        groups,
        [
            ("", &["v1".to_owned()][..]),
            (GROUP, &["v1".to_owned(), "v1alpha1".to_owned()][..])
        ]
    );
    assert_eq!(f.widgets.storage_version(), "v1alpha1");
    assert!(f.registry.endpoint(GROUP, "v2", "widgets").is_none());
}

#[tokio::test]
async fn runtime_config_leaves_out_what_it_names() {
    let check = async |settings: &[(&str, bool)], expected: &[&str]| {
        let mut builder = builder(&Memory::new());
        let settings: Vec<(String, bool)> = settings
            .iter()
            .map(|(key, value)| ((*key).to_owned(), *value))
            .collect();
        builder.runtime_config(&settings);
        assert_eq!(served(&builder.build().unwrap()), expected);
    };
    let [namespaces, v1, alpha, gadgets] = [
        "v1/namespaces",
        "test.example.com/v1/widgets",
        "test.example.com/v1alpha1/widgets",
        "test.example.com/v1/gadgets",
    ];
    check(&[], &[namespaces, v1, alpha, gadgets]).await;
    check(&[("api/alpha", false)], &[namespaces, v1, gadgets]).await;
    check(&[("test.example.com/v1", false)], &[namespaces, alpha]).await;
    check(
        &[("test.example.com/v1/gadgets", false)],
        &[namespaces, v1, alpha],
    )
    .await;
    check(
        &[("api/all", false), ("test.example.com/v1", true)],
        &[namespaces, v1, gadgets],
    )
    .await;
}

#[tokio::test]
async fn problems_are_reported_together() {
    let mut builder = with_namespaces(Memory::new());
    builder.group(GroupDef {
        name: GROUP.into(),
        versions: vec!["v1".into()].into(),
        release: None,
        place: None,
    });
    builder.kind::<AlphaWidget>();
    builder.kind::<Gadget>();
    builder.kind::<Gadget>();
    builder.strategy::<Widget>(WidgetRules);
    builder.admission(|context| {
        Box::new(Judge {
            widgets: context.lister(),
        })
    });
    builder.disable_admission(&["Nobody".to_owned()]);
    builder.runtime_config(&[("no/v1".to_owned(), false)]);
    let problems = builder.build().err().unwrap();
    let expected = [
        "Widget of test.example.com/v1alpha1: group test.example.com declares the versions v1",
        "Gadget of test.example.com/v1 is registered twice",
        "Gadget of test.example.com/v1: the versions v1, v1 are all hubs, one must be",
        "Gadget of test.example.com/v1: the versions v1, v1 are all storage versions",
        "Widget of test.example.com/v1alpha1: its hub Widget v1 is not registered",
        "Widget of test.example.com/v1alpha1: no version is the hub",
        "a strategy for widgets of test.example.com/v1, which is not registered or has one already",
        "Widget test.example.com/v1 cannot be listed: it is not registered",
        "unknown admission plugin \"Nobody\", there are: NamespaceLifecycle, Judge",
        "runtime-config names \"no/v1\", which is neither a served version nor a resource of one: write GROUP/VERSION=true, GROUP/VERSION/RESOURCE=false or api/alpha=true",
    ];
    assert_eq!(problems, expected);
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(super) struct Columned {
    pub(super) metadata: ObjectMeta,
}
impl ApiType for Columned {}
resource!(Columned, "v1", "Columned", "columned", |def| ResourceDef {
    selectable: vec![
        JsonPath::new(["spec", "none"]).into(),
        JsonPath::new(["metadata", "labels"]).into()
    ],
    ..def
});

#[tokio::test]
async fn a_selectable_field_is_in_the_schema_and_comparable() {
    let mut builder = with_namespaces(Memory::new());
    builder.kind::<Columned>();
    let texts = [
        "Columned of test.example.com/v1: a selectable field is at .spec.none, which the schema does not know",
        "Columned of test.example.com/v1: a selectable field is at .metadata.labels, which is no string, integer or boolean",
    ];
    assert_eq!(builder.build().err().unwrap(), texts);
}

/// A kind of the core group.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Settings {
    metadata: ObjectMeta,
}
impl ApiType for Settings {}
resource!(Settings, "v1", "Settings", "settings", |def| ResourceDef {
    group: "".into(),
    storage: true,
    ..def
});

/// Another version of it, and the group's preferred one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Options {
    metadata: ObjectMeta,
}
impl ApiType for Options {}
resource!(Options, "v2beta1", "Options", "options", |def| {
    ResourceDef {
        group: "".into(),
        storage: true,
        ..def
    }
});

/// Not what the server itself calls so.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Space {
    metadata: ObjectMeta,
}
impl ApiType for Space {}
resource!(Space, "v2beta1", "Space", "namespaces", |def| ResourceDef {
    group: "".into(),
    storage: true,
    ..def
});

fn core(versions: &'static [&'static str]) -> GroupDef {
    GroupDef {
        name: "".into(),
        versions: versions
            .iter()
            .map(|version| SmolStr::new_static(version))
            .collect(),
        release: None,
        place: None,
    }
}

#[tokio::test]
async fn kinds_of_the_core_group_stand_beside_namespaces() {
    let check = |declared: Option<GroupDef>, versions: &[&str]| {
        let mut builder = with_namespaces(Memory::new());
        builder.kind::<Options>();
        builder.kind::<Settings>();
        if let Some(declared) = declared {
            builder.group(declared);
        }
        let registry = builder.build().unwrap();
        assert_eq!(
            served(&registry),
            ["v1/namespaces", "v2beta1/options", "v1/settings"]
        );
        assert_eq!(registry.catalog().groups().len(), 1);
        assert_eq!(registry.catalog().groups()[0].versions, versions);
    };
    check(None, &["v1", "v2beta1"]);
    check(Some(core(&["v2beta1", "v1"])), &["v2beta1", "v1"]);

    // Namespaces have a version that is always served.
    let mut builder = with_namespaces(Memory::new());
    builder.group(core(&["v2beta1"]));
    builder.kind::<Options>();
    let registry = builder.build().unwrap();
    assert_eq!(registry.catalog().groups()[0].versions, ["v2beta1", "v1"]);
}

#[tokio::test]
async fn the_core_group_is_declared_once_and_has_one_kind_of_namespaces() {
    let mut builder = with_namespaces(Memory::new());
    builder.group(core(&["v1"]));
    builder.group(core(&["v1"]));
    builder.kind::<Namespace>();
    builder.kind::<Options>();
    builder.kind::<Space>();
    let place = Namespace::definition().place.unwrap();
    let own =
        "the server itself serves the kind Namespace and the resource namespaces of the core group";
    let expected = [
        format!("{place}: Namespace of v1: {own}"),
        format!("Space of v2beta1: {own}"),
        "the core group is declared twice".to_owned(),
        "Options of v2beta1: the core group declares the versions v1".to_owned(),
    ];
    assert_eq!(builder.build().err().unwrap(), expected);
}

// Kinds of the core group other than Namespace are not the server's own.
#[tokio::test]
async fn wide_settings_leave_out_the_users_core_kinds() {
    let mut builder = with_namespaces(Memory::new());
    builder.kind::<Options>();
    builder.kind::<Settings>();
    builder.runtime_config(&[("api/all".to_owned(), false)]);
    assert_eq!(served(&builder.build().unwrap()), ["v1/namespaces"]);
}

/// A kind whose names another one has.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Twin {
    metadata: ObjectMeta,
}
impl ApiType for Twin {}
resource!(Twin, "v1", "GadgetList", "twins", |def| ResourceDef {
    singular: "gadget".into(),
    short_names: vec!["widget".into(), "tw".into()],
    storage: true,
    ..def
});

/// A version of gadgets that is called otherwise.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
struct NewGadget {
    metadata: ObjectMeta,
}
impl ApiType for NewGadget {}
resource!(NewGadget, "v2", "Gadget", "gadgets", |def| ResourceDef {
    scope: Scope::Cluster,
    subresources: Vec::new(),
    short_names: vec!["gd".into()],
    conversion: Some(Conversion {
        hub_version: "v1".into(),
        hub_kind: "Gadget".into(),
        hub_resource: None,
        method: ConversionMethod::InMemory(InMemoryConversion {
            json: None,
            to_hub: Ok,
            from_hub: Ok,
        }),
    }),
    ..def
});

/// A kind with a short name of namespaces; in its group there are none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Nest {
    metadata: ObjectMeta,
}
impl ApiType for Nest {}
resource!(Nest, "v1", "Nest", "nests", |def| ResourceDef {
    short_names: vec!["ns".into()],
    storage: true,
    ..def
});

/// The same in the core group.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
struct CoreNest {
    metadata: ObjectMeta,
}
impl ApiType for CoreNest {}
resource!(CoreNest, "v1", "Nest", "nests", |def| ResourceDef {
    group: "".into(),
    short_names: vec!["ns".into()],
    storage: true,
    ..def
});

#[tokio::test]
async fn a_group_has_each_name_once_and_versions_agree_on_theirs() {
    let mut builder = with_namespaces(Memory::new());
    builder.kind::<Widget>();
    builder.kind::<AlphaWidget>();
    builder.kind::<Gadget>();
    builder.kind::<NewGadget>();
    builder.kind::<Twin>();
    builder.kind::<Nest>();
    builder.kind::<CoreNest>();
    let expected = [
        "Gadget of test.example.com/v1 and Gadget of test.example.com/v2 differ in their short names: none and `gd`",
        "Widget of test.example.com/v1 and GadgetList of test.example.com/v1 share the name widget",
        "Gadget of test.example.com/v1 and GadgetList of test.example.com/v1 share the name GadgetList",
        "Gadget of test.example.com/v1 and GadgetList of test.example.com/v1 share the name gadget",
        "Namespace of v1 and Nest of v1 share the name ns",
    ];
    assert_eq!(builder.build().err().unwrap(), expected);
}

/// A kind whose type has no structural schema.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Pair {
    metadata: ObjectMeta,
    #[serde(default)]
    of: (i32, i32),
}
impl ApiType for Pair {}
resource!(Pair, "v1", "Pair", "pairs", |def| ResourceDef {
    storage: true,
    ..def
});

const PAIR_PROBLEM: &str = "of: a tuple has no structural schema; use a struct with named fields";

#[tokio::test]
async fn the_schema_of_a_lazy_kind_is_made_when_it_is_first_needed() {
    let mut builder = with_namespaces(Memory::new());
    builder.lazy_kind::<Widget>();
    builder.lazy_kind::<AlphaWidget>();
    let registry = builder.build().unwrap();
    registry.start().await.unwrap();
    let widgets = registry.endpoint(GROUP, "v1", "widgets").unwrap();
    let is_made = || widgets.versions().map(|(_, schema)| schema.is_made());
    assert_eq!(is_made().collect::<Vec<_>>(), [false, false]);
    let object =
        Object::from_value(json!({"metadata": {"name": "a"}, "spec": {"weight": 11}})).unwrap();
    let ctx = RequestContext::default();
    let options = CreateOptions::default();
    let refused = widgets
        .writes()
        .create(&ctx, Some("default"), object, &options)
        .await;
    assert_eq!(refused.unwrap_err().reason, Some(StatusReason::Invalid));
    assert!(is_made().any(|is_made| is_made));
}

/// A kind with subresources whose bodies have no structural schema.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Paired {
    metadata: ObjectMeta,
}
impl ApiType for Paired {}
resource!(Paired, "v1", "Paired", "paired", |def| ResourceDef {
    storage: true,
    subresources: vec![
        subresource_verbs::<Paired, Pairing>()
            .create()
            .of(SubresourceDef::new(
                "pair",
                &[Verb::Create],
                Writes::Nothing
            )),
        subresource_verbs::<Paired, Pairing>()
            .create()
            .of(SubresourceDef::new(
                "again",
                &[Verb::Create],
                Writes::Nothing
            )),
    ],
    ..def
});

#[derive(Default)]
struct Pairing;

impl Subresource<Paired> for Pairing {
    type Input = Pair;
    type Output = Pair;
}

#[async_trait]
impl CreateSubresource<Paired> for Pairing {
    async fn create(
        &self,
        _: &SubresourceRequest<'_, Paired>,
        body: Pair,
    ) -> Result<Pair, ApiError> {
        Ok(body)
    }
}

#[test]
fn bodies_of_handlers_without_structural_schema_are_reported_once() {
    let expected = format!("Pair of test.example.com/v1: {PAIR_PROBLEM}");
    let mut eager = with_namespaces(Memory::new());
    eager.kind::<Paired>();
    assert_eq!(eager.build().err(), Some(vec![expected.clone()]));
    let mut checked = with_namespaces(Memory::new());
    checked.lazy_kind::<Paired>();
    checked.check_lazy_kinds();
    assert_eq!(checked.build().err(), Some(vec![expected]));
    let mut lazy = with_namespaces(Memory::new());
    lazy.lazy_kind::<Paired>();
    assert!(lazy.build().is_ok(), "the generator has checked it");
}

#[tokio::test]
async fn a_lazy_kind_without_structural_schema_is_reported_by_the_dump_or_by_requests() {
    let builder = || {
        let mut builder = with_namespaces(Memory::new());
        builder.lazy_kind::<Pair>();
        builder.lazy_kind::<Columned>();
        builder
    };
    let mut checked = builder();
    checked.check_lazy_kinds();
    let problems = checked.build().err().unwrap();
    let last = format!("Pair of test.example.com/v1: {PAIR_PROBLEM}");
    assert_eq!((problems.len(), &problems[2]), (3, &last), "{problems:#?}");

    let registry = builder().build().unwrap();
    let pairs = registry.endpoint(GROUP, "v1", "pairs").unwrap();
    let error = pairs.check_schema().unwrap_err();
    assert_eq!(error.reason, Some(StatusReason::InternalError));
    let text = format!("Pair of test.example.com/v1: {PAIR_PROBLEM}");
    assert!(error.message.ends_with(&text), "{}", error.message);
    let object = Object::from_value(json!({"metadata": {"name": "a"}, "of": [1, 2]})).unwrap();
    let options = CreateOptions::default();
    let ctx = RequestContext::default();
    let refused = pairs
        .writes()
        .create(&ctx, Some("default"), object, &options)
        .await;
    assert!(refused.is_err(), "nothing is written without a schema");
}
