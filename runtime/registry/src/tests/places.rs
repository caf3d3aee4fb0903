//! Errors of a registry's build name the source locations of kinds and groups.

use apiloom_meta::kind::{CellSource, ColumnType, Place};

use super::*;

/// A kind that is declared on a line of `src/v1.rs`, `src/v2.rs` and so on.
macro_rules! declared {
    ($name:ident, $version:literal, $kind:literal, $plural:literal, line $line:literal, $change:expr) => {
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
        struct $name {
            metadata: ObjectMeta,
        }
        impl ApiType for $name {}
        resource!($name, $version, $kind, $plural, |def| {
            let change: fn(ResourceDef) -> ResourceDef = $change;
            change(ResourceDef {
                subresources: Vec::new(),
                place: Some(Place {
                    file: concat!("src/", $version, ".rs"),
                    line: $line,
                }),
                ..def
            })
        });
    };
}

fn spoke_of(hub_version: &'static str) -> Option<Conversion> {
    Some(Conversion {
        hub_version: hub_version.into(),
        hub_kind: "Lamp".into(),
        hub_resource: None,
        method: ConversionMethod::InMemory(InMemoryConversion {
            json: None,
            to_hub: Ok,
            from_hub: Ok,
        }),
    })
}

declared!(Lamp, "v1", "Lamp", "lamps", line 3, |def| ResourceDef {
    storage: true,
    ..def
});
declared!(OtherLamp, "v1", "Lamp", "lamps", line 9, |def| ResourceDef {
    conversion: spoke_of("v1"),
    ..def
});
declared!(NewLamp, "v2", "Lamp", "lamps", line 5, |def| ResourceDef {
    short_names: vec!["la".into()],
    storage: true,
    ..def
});
declared!(ClusterLamp, "v3", "Lamp", "lamps", line 7, |def| ResourceDef {
    scope: Scope::Cluster,
    conversion: spoke_of("v1"),
    ..def
});
declared!(LostLamp, "v4", "Lamp", "lamps", line 8, |def| ResourceDef {
    conversion: spoke_of("v9"),
    ..def
});
declared!(LostLampToo, "v5", "Lamp", "lamps", line 2, |def| ResourceDef {
    conversion: spoke_of("v9"),
    ..def
});
declared!(Torch, "v2", "Torch", "torches", line 30, |def| ResourceDef {
    short_names: vec!["lamp".into()],
    ..def
});
declared!(Space, "v1", "Space", "namespaces", line 40, |def| ResourceDef {
    group: "".into(),
    ..def
});
declared!(Nest, "v1", "Nest", "nests", line 50, |def| ResourceDef {
    group: "".into(),
    short_names: vec!["ns".into()],
    ..def
});
declared!(Fields, "v1", "Fields", "fields", line 60, |def| ResourceDef {
    columns: vec![Column {
        name: "Color".into(),
        column_type: ColumnType::String,
        format: "".into(),
        priority: 0,
        description: "".into(),
        source: CellSource::Path(JsonPath::new(["spec", "color"])),
    }],
    selectable: vec![
        JsonPath::new(["spec", "none"]).into(),
        JsonPath::new(["metadata", "labels"]).into(),
    ],
    ..def
});
declared!(Untyped, "v1", "Untyped", "untypeds", line 70, |def| ResourceDef {
    schema: SchemaSource::Type(|| {
        let line = "spec.size: the default \"big\" is no integer".to_owned();
        Err(apiloom_meta::schema::SchemaErrors(vec![line]))
    }),
    ..def
});

/// The problems of a registry with these kinds.
fn problems(register: impl FnOnce(&mut RegistryBuilder)) -> Vec<String> {
    let mut builder = with_namespaces(Memory::new());
    register(&mut builder);
    builder.build().err().unwrap()
}

#[tokio::test]
async fn a_problem_of_one_kind_begins_with_its_place() {
    let told = problems(|builder| {
        builder.kind::<Fields>();
        builder.kind::<Untyped>();
        builder.kind::<Space>();
        builder.kind::<LostLamp>();
    });
    let expected = [
        "src/v1.rs:40: Space of v1: the server itself serves the kind Namespace and the resource namespaces of the core group",
        "src/v1.rs:60: Fields of test.example.com/v1: column \"Color\" is at .spec.color, which the schema does not know",
        "src/v1.rs:60: Fields of test.example.com/v1: a selectable field is at .spec.none, which the schema does not know",
        "src/v1.rs:60: Fields of test.example.com/v1: a selectable field is at .metadata.labels, which is no string, integer or boolean",
        "src/v4.rs:8: Lamp of test.example.com/v4: its hub Lamp v9 is not registered",
        "src/v4.rs:8: Lamp of test.example.com/v4: no version is the hub",
        "src/v1.rs:70: Untyped of test.example.com/v1: spec.size: the default \"big\" is no integer",
    ];
    assert_eq!(told, expected);
}

#[tokio::test]
async fn a_problem_between_kinds_begins_with_all_their_places() {
    let check = |register: fn(&mut RegistryBuilder), expected: &[&str]| {
        assert_eq!(problems(register), expected);
    };
    // Two versions with different names, both declared as hub and storage version.
    check(
        |builder| {
            builder.kind::<Lamp>();
            builder.kind::<NewLamp>();
        },
        &[
            "src/v1.rs:3, src/v2.rs:5: Lamp of test.example.com/v1 and Lamp of test.example.com/v2 differ in their short names: none and `la`",
            "src/v1.rs:3, src/v2.rs:5: Lamp of test.example.com/v1: the versions v1, v2 are all hubs, one must be",
            "src/v1.rs:3, src/v2.rs:5: Lamp of test.example.com/v1: the versions v1, v2 are all storage versions",
        ],
    );
    check(
        |builder| {
            builder.kind::<Lamp>();
            builder.kind::<ClusterLamp>();
            builder.kind::<Torch>();
        },
        &[
            "src/v1.rs:3, src/v2.rs:30: Lamp of test.example.com/v1 and Torch of test.example.com/v2 share the name lamp",
            "src/v1.rs:3, src/v3.rs:7: Lamp of test.example.com/v1 and Lamp of test.example.com/v3 differ in kind or scope",
        ],
    );
    check(
        |builder| {
            builder.kind::<LostLamp>();
            builder.kind::<LostLampToo>();
        },
        &[
            "src/v4.rs:8: Lamp of test.example.com/v4: its hub Lamp v9 is not registered",
            "src/v5.rs:2: Lamp of test.example.com/v5: its hub Lamp v9 is not registered",
            "src/v4.rs:8, src/v5.rs:2: Lamp of test.example.com/v4: no version is the hub",
            "src/v4.rs:8, src/v5.rs:2: Lamp of test.example.com/v4: no version is the storage version",
        ],
    );
    // The server's own namespaces have no source location.
    check(
        |builder| builder.kind::<Nest>(),
        &["src/v1.rs:50: Namespace of v1 and Nest of v1 share the name ns"],
    );
}

#[tokio::test]
async fn what_is_registered_twice_is_told_with_both_places() {
    let told = problems(|builder| {
        builder.kind::<Lamp>();
        builder.kind::<OtherLamp>();
    });
    let expected = "src/v1.rs:3, src/v1.rs:9: Lamp of test.example.com/v1 is registered twice";
    assert_eq!(told, [expected]);

    // A location that two problems share is part of both.
    let told = problems(|builder| {
        builder.kind::<Lamp>();
        builder.kind::<Lamp>();
    });
    let expected = "src/v1.rs:3: Lamp of test.example.com/v1 is registered twice";
    assert_eq!(told[0], expected);
}

#[tokio::test]
async fn rules_and_listers_of_unknown_kinds_are_told_with_the_places_of_the_kinds() {
    struct LampRules;
    impl Strategy<Lamp> for LampRules {}
    struct LampPlugin {
        _lamps: Lister<Lamp>,
    }
    #[async_trait]
    impl Admission for LampPlugin {
        fn name(&self) -> &'static str {
            "LampPlugin"
        }
    }
    let told = problems(|builder| {
        builder.strategy::<Lamp>(LampRules);
        builder.admission(|context| {
            Box::new(LampPlugin {
                _lamps: context.lister(),
            })
        });
    });
    let expected = [
        "src/v1.rs:3: a strategy for lamps of test.example.com/v1, which is not registered or has one already",
        "src/v1.rs:3: Lamp test.example.com/v1 cannot be listed: it is not registered",
    ];
    assert_eq!(told, expected);
}

#[tokio::test]
async fn problems_of_groups_are_told_with_the_places_of_the_groups() {
    let group = |line| GroupDef {
        name: GROUP.into(),
        versions: vec!["v2".into()].into(),
        release: None,
        place: Some(Place {
            file: "src/lib.rs",
            line,
        }),
    };
    let told = problems(|builder| {
        builder.group(group(1));
        builder.group(group(7));
        builder.kind::<Lamp>();
    });
    let expected = [
        "src/lib.rs:1, src/lib.rs:7: group test.example.com is declared twice",
        "src/v1.rs:3, src/lib.rs:1: Lamp of test.example.com/v1: group test.example.com declares the versions v2",
    ];
    assert_eq!(told, expected);
}
