//! `--emulation-version`: what is served and how objects are stored.

use apiloom_meta::kind::{Lifecycle, Release};

use super::*;
use crate::objects::stored_value::StorageMediaType;

fn release(text: &str) -> Release {
    text.parse().unwrap()
}

fn lifecycle(introduced: &str, removed: Option<&str>) -> Option<Lifecycle> {
    Some(Lifecycle {
        introduced: Some(release(introduced)),
        removed: removed.map(release),
        ..Lifecycle::default()
    })
}

fn spoke() -> Option<Conversion> {
    Some(Conversion {
        hub_version: "v1".into(),
        hub_kind: "Age".into(),
        hub_resource: None,
        method: ConversionMethod::InMemory(InMemoryConversion {
            json: None,
            to_hub: |value| Ok(with_name(value, "age", "years")),
            from_hub: |value| Ok(with_name(value, "years", "age")),
        }),
    })
}

fn with_name(mut value: Value, from: &str, to: &str) -> Value {
    if let Some(fields) = value.as_object_mut()
        && let Some(age) = fields.remove(from)
    {
        fields.insert(to.to_owned(), age);
    }
    value
}

macro_rules! age {
    ($name:ident { $field:ident $(, $default:ident)? }, $version:literal, $change:expr) => {
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
        pub(super) struct $name {
            metadata: ObjectMeta,
            #[serde(default, skip_serializing_if = "Option::is_none")]
            $field: Option<i64>,
            $(
                #[serde(default, skip_serializing_if = "Option::is_none")]
                #[schemars(extend("x-apiloom-default" = "earth"))]
                $default: Option<String>,
            )?
        }
        impl ApiType for $name {}
        resource!($name, $version, "Age", "ages", $change);
    };
}

age!(Old { age }, "v1alpha1", |def| ResourceDef {
    lifecycle: lifecycle("1.0", Some("1.3")).map(|lifecycle| Lifecycle {
        deprecated: Some(release("1.2")),
        ..lifecycle
    }),
    conversion: spoke(),
    ..def
});
age!(Middle { age }, "v1beta1", |def| ResourceDef {
    lifecycle: lifecycle("1.1", None),
    conversion: spoke(),
    ..def
});
age!(New { years, planet }, "v1", |def| ResourceDef {
    lifecycle: lifecycle("1.3", None),
    storage: true,
    ..def
});

/// A builder with three versions of a kind, at release 1.4.
pub(super) fn ages(store: &Arc<Memory>, emulated: &[&str]) -> RegistryBuilder {
    ages_over(Arc::clone(store) as Arc<dyn Storage>, emulated)
}

/// As [`ages`], over any store.
pub(super) fn ages_over(store: Arc<dyn Storage>, emulated: &[&str]) -> RegistryBuilder {
    let mut builder = with_namespaces(store);
    builder.group(GroupDef {
        name: GROUP.into(),
        versions: vec!["v1".into(), "v1beta1".into(), "v1alpha1".into()].into(),
        release: Some(release("1.4")),
        place: None,
    });
    builder.kind::<Old>();
    builder.kind::<Middle>();
    builder.kind::<New>();
    let emulated: Vec<EmulationVersion> = emulated.iter().map(|of| of.parse().unwrap()).collect();
    builder.emulation_versions(&emulated);
    builder
}

#[tokio::test]
async fn an_emulated_release_decides_what_is_served_and_stored() {
    let check = |emulated: &[&str], served: &[&str], stored: &str| {
        let registry = ages(&Memory::new(), emulated).build().unwrap();
        let catalog = registry.catalog();
        let group = catalog.groups().iter().find(|group| group.name == GROUP);
        let versions = group.map_or(&[][..], |group| &group.versions);
        assert_eq!(versions, served, "{emulated:?}");
        let endpoint = registry.endpoint(GROUP, served[0], "ages").unwrap();
        assert_eq!(endpoint.storage_version(), stored, "{emulated:?}");
    };
    check(&[], &["v1", "v1beta1"], "v1");
    check(&["1.4"], &["v1", "v1beta1"], "v1");
    check(&["1.3"], &["v1", "v1beta1"], "v1");
    check(&["1.2"], &["v1beta1", "v1alpha1"], "v1beta1");
    check(
        &["test.example.com=1.1"],
        &["v1beta1", "v1alpha1"],
        "v1beta1",
    );
    check(&["1.0"], &["v1alpha1"], "v1alpha1");
    // The group's own release wins.
    check(&["1.0", "test.example.com=1.3"], &["v1", "v1beta1"], "v1");
}

#[tokio::test]
async fn an_emulated_release_decides_what_is_deprecated() {
    let warning = |emulated: &str| {
        let registry = ages(&Memory::new(), &[emulated]).build().unwrap();
        let endpoint = registry.endpoint(GROUP, "v1alpha1", "ages")?;
        Some(endpoint.deprecation_warning().map(str::to_owned))
    };
    let text = "test.example.com/v1alpha1 Age is deprecated in v1.2+, unavailable in v1.3+";
    assert_eq!(warning("1.1"), Some(None));
    assert_eq!(warning("1.2"), Some(Some(text.to_owned())));
    assert_eq!(warning("1.3"), None);
}

#[tokio::test]
async fn objects_are_stored_so_that_the_emulated_build_reads_them() {
    let store = Memory::new();
    let registry = ages(&store, &["1.2"]).build().unwrap();
    let endpoint = registry.endpoint(GROUP, "v1alpha1", "ages").unwrap();
    let document = json!({"metadata": {"name": "a", "namespace": "default"}});
    let object = Object::from_value(document).unwrap();
    let (ctx, options) = (RequestContext::default(), CreateOptions::default());
    registry.start().await.unwrap();
    let writes = endpoint.writes();
    writes
        .create(&ctx, Some("default"), object, &options)
        .await
        .unwrap();
    let key = "/registry/test.example.com/ages/default/a";
    let (stored, _) = store.get(key).await.unwrap();
    let stored: Value = serde_json::from_slice(&stored.unwrap().value).unwrap();
    assert_eq!(stored["apiVersion"], "test.example.com/v1beta1");

    // The build itself reads it in the version that is not emulated.
    let registry = ages(&store, &[]).build().unwrap();
    let endpoint = registry.endpoint(GROUP, "v1", "ages").unwrap();
    let read = endpoint.reads();
    let read = read
        .get(&ctx, Some("default"), "a", &GetOptions::default())
        .await;
    let read = read.unwrap().object().unwrap();
    assert_eq!(read.api_version(), "test.example.com/v1");
}

/// An earlier release may not know the numbers of fields, but every release reads JSON.
#[tokio::test]
async fn objects_of_an_emulated_release_are_stored_as_json() {
    let media_type = |emulated: &[&str]| {
        let mut builder = ages(&Memory::new(), emulated);
        builder.storage_media_type(StorageMediaType::Protobuf);
        let registry = builder.build().unwrap();
        let catalog = registry.catalog();
        let ages = apiloom_meta::GroupResource::new(GROUP, "ages");
        let of = |resource| catalog.kinds[resource].kind.media_type;
        let namespaces = apiloom_meta::GroupResource::new("", "namespaces");
        (of(&ages), of(&namespaces))
    };
    use StorageMediaType::{Json, Protobuf};
    assert_eq!(media_type(&[]), (Protobuf, Protobuf));
    assert_eq!(media_type(&["1.4"]), (Protobuf, Protobuf));
    assert_eq!(media_type(&["1.3"]), (Json, Protobuf));
}

#[tokio::test]
async fn releases_that_cannot_be_emulated_are_refused() {
    let check = |emulated: &[&str], expected: &[&str]| {
        let problems = ages(&Memory::new(), emulated).build().unwrap_err();
        assert_eq!(problems, expected, "{emulated:?}");
    };
    let range = "is not between 1.0, the first release with one of its versions, and 1.4, the release of this build";
    for wrong in ["0.9", "1.5", "2.0"] {
        check(
            &[wrong],
            &[&format!(
                "emulation-version {wrong} of group test.example.com {range}"
            )],
        );
    }
    check(
        &["test.exmaple.com=1.2"],
        &[
            "emulation-version test.exmaple.com=1.2 is for a group without a release; there are: test.example.com",
        ],
    );
    check(
        &["1.2", "1.3", "test.example.com=1.2", "test.example.com=1.2"],
        &[
            "emulation-version is given twice for all groups",
            "emulation-version is given twice for group test.example.com",
        ],
    );
    let mut builder = builder(&Memory::new());
    builder.emulation_versions(&["1.2".parse().unwrap()]);
    assert_eq!(
        builder.build().unwrap_err(),
        [
            "emulation-version 1.2 is for a group without a release; no group has one: declare it with `release = \"..\"` in its `group!`"
        ]
    );
    for wrong in [
        "",
        "1",
        "1.2.3",
        "v1.2",
        "1.x",
        "g=",
        "=1.+2",
        "1.99999999999",
    ] {
        let error = wrong.parse::<EmulationVersion>().unwrap_err();
        assert!(
            error.contains("is not a release such as 1.2"),
            "{wrong}: {error}"
        );
    }
}

#[tokio::test]
async fn a_version_that_the_release_does_not_have_cannot_be_enabled() {
    let check = |emulated: &[&str], key: &str, expected: Result<(), &str>| {
        let mut builder = ages(&Memory::new(), emulated);
        builder.runtime_config(&[(key.to_owned(), true)]);
        let built = builder
            .build()
            .map(drop)
            .map_err(|problems| problems.join("\n"));
        assert_eq!(built, expected.map_err(str::to_owned), "{emulated:?} {key}");
    };
    check(&[], "test.example.com/v1", Ok(()));
    check(&["1.2"], "test.example.com/v1alpha1", Ok(()));
    check(
        &["1.2"],
        "test.example.com/v1",
        Err(
            "runtime-config enables \"test.example.com/v1\", which release 1.2 of group test.example.com does not have",
        ),
    );
    check(
        &[],
        "test.example.com/v1alpha1/ages",
        Err(
            "runtime-config enables \"test.example.com/v1alpha1/ages\", which release 1.4 of group test.example.com does not have",
        ),
    );
}

age!(Trial { age }, "v2alpha1", |def| ResourceDef {
    conversion: spoke(),
    disabled_by_default: true,
    ..def
});

#[tokio::test]
async fn a_version_that_is_disabled_by_default_is_enabled_by_settings() {
    let check = |settings: &[(&str, bool)], expected: &[&str]| {
        let mut builder = with_namespaces(Memory::new());
        builder.kind::<New>();
        builder.kind::<Trial>();
        let owned = settings.iter().map(|(key, on)| ((*key).to_owned(), *on));
        builder.runtime_config(&owned.collect::<Vec<_>>());
        let registry = builder.build().unwrap();
        let catalog = registry.catalog();
        let served = catalog.endpoints().iter().skip(1);
        let served: Vec<&str> = served.map(|endpoint| &*endpoint.def().version).collect();
        assert_eq!(served, expected, "{settings:?}");
        let groups = catalog.groups().iter().filter(|group| group.name == GROUP);
        let versions: Vec<&String> = groups.flat_map(|group| &group.versions).collect();
        assert_eq!(versions, expected, "{settings:?}");
    };
    let both = ["v1", "v2alpha1"];
    check(&[], &["v1"]);
    check(&[("test.example.com/v2alpha1", true)], &both);
    check(&[("test.example.com/v2alpha1/ages", true)], &both);
    check(&[("api/alpha", true)], &both);
    check(&[("api/all", true)], &both);
    check(&[("api/beta", true)], &["v1"]);
    check(
        &[("api/all", true), ("test.example.com/v2alpha1", false)],
        &["v1"],
    );
    check(
        &[("api/ga", false), ("test.example.com/v2alpha1", true)],
        &["v2alpha1"],
    );
}

/// A kind without an enabled version has no watch cache, and its objects stay in the store until it has one.
#[tokio::test]
async fn a_kind_without_an_enabled_version_is_nowhere() {
    let store = Memory::new();
    let started = async |key: &str, is_on| {
        let mut builder = with_namespaces(Arc::clone(&store) as Arc<dyn Storage>);
        builder.kind::<New>();
        builder.kind::<Trial>();
        builder.runtime_config(&[(key.to_owned(), is_on)]);
        let registry = builder.build().unwrap();
        registry.start().await.unwrap();
        registry
    };
    let is_cached = |registry: &Registry| {
        let catalog = registry.catalog();
        catalog
            .caches()
            .any(|(resource, _)| resource.resource == "ages")
    };
    let ctx = RequestContext::default();
    let on = started("api/alpha", true).await;
    let endpoint = on.endpoint(GROUP, "v2alpha1", "ages").unwrap();
    let document = object(json!({"metadata": {"name": "a"}, "age": 3}));
    let options = CreateOptions::default();
    let writes = endpoint.writes();
    writes.create(&ctx, NS, document, &options).await.unwrap();
    assert!(is_cached(&on));

    let off = started("test.example.com/v1", false).await;
    assert!(
        off.catalog()
            .groups()
            .iter()
            .all(|group| group.name != GROUP)
    );
    assert!(!is_cached(&off));
    let on = started("test.example.com/v1", true).await;
    let endpoint = on.endpoint(GROUP, "v1", "ages").unwrap();
    let options = GetOptions::default();
    let read = endpoint.reads().get(&ctx, NS, "a", &options).await;
    assert_eq!(at(&decoded(&read.unwrap()), "/years"), 3);
}

/// A kind that is added while the server runs is stored by the emulated release too.
#[tokio::test]
async fn kinds_that_are_added_later_are_emulated_too() {
    let store = Memory::new();
    let registry = ages(&store, &["1.2"]).build().unwrap();
    let change = CatalogChange::new()
        .kind::<Old>()
        .kind::<Middle>()
        .kind::<New>();
    registry.change(change).await.unwrap();
    assert!(registry.endpoint(GROUP, "v1", "ages").is_none());
    let endpoint = registry.endpoint(GROUP, "v1beta1", "ages").unwrap();
    assert_eq!(endpoint.storage_version(), "v1beta1");
    let group = |release| GroupDef {
        name: GROUP.into(),
        versions: vec!["v1".into(), "v1beta1".into(), "v1alpha1".into()].into(),
        release: Some(release),
        place: None,
    };
    let change = CatalogChange::new().group(group(release("1.1")));
    let refused = registry.change(change).await.unwrap_err();
    assert!(refused[0].contains("is not between 1.0"), "{refused:?}");
}
