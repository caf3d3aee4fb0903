//! Two kinds written by hand, as the macros would write them.

use std::borrow::Cow;

use apiloom_meta::kind::{
    ApiType, CellSource, Column, ColumnType, Lifecycle, Release, ScalePaths, Scope, SmolStr,
    SubresourceDef, Verb,
};
use apiloom_meta::schema::Schema;
use apiloom_meta::{GroupDef, GroupVersionKind, JsonPath, ObjectMeta, Resource, ResourceDef};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(super) const GROUP: GroupDef = GroupDef {
    name: SmolStr::new_static("wardle.example.com"),
    versions: Cow::Borrowed(&[SmolStr::new_static("v1alpha1")]),
    release: Some(Release { major: 1, minor: 3 }),
    place: None,
};

/// A namespaced kind with columns and a status.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Flunder {
    metadata: ObjectMeta,
    spec: FlunderSpec,
    status: FlunderStatus,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct FlunderSpec {
    #[serde(skip_serializing_if = "Option::is_none")]
    reference: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct FlunderStatus {
    #[serde(skip_serializing_if = "Option::is_none")]
    phase: Option<String>,
}

/// A cluster kind without columns, deprecated, that cannot be watched.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Fischer {
    metadata: ObjectMeta,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    disallowed_flunders: Vec<String>,
}

/// A kind that can only be created and read, with a status.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct Receipt {
    metadata: ObjectMeta,
    status: FlunderStatus,
}

/// A kind with the subresource scale.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct Scaled {
    metadata: ObjectMeta,
    spec: Replicas,
    status: Replicas,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct Replicas {
    #[serde(skip_serializing_if = "Option::is_none")]
    replicas: Option<i32>,
}

/// A kind of which nothing but changes can be had.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct Feed {
    metadata: ObjectMeta,
}

macro_rules! resource {
    ($kind:ident, $plural:literal, $scope:expr, $change:expr) => {
        impl ApiType for $kind {}
        impl Resource for $kind {
            const GROUP: &'static str = "wardle.example.com";
            const VERSION: &'static str = "v1alpha1";
            const KIND: &'static str = stringify!($kind);
            const PLURAL: &'static str = $plural;

            fn definition() -> ResourceDef {
                let change: fn(ResourceDef) -> ResourceDef = $change;
                change(definition::<Self>($scope, Schema::for_resource::<Self>))
            }
            fn metadata(&self) -> &ObjectMeta {
                &self.metadata
            }
            fn metadata_mut(&mut self) -> &mut ObjectMeta {
                &mut self.metadata
            }
        }
    };
}

resource!(Flunder, "flunders", Scope::Namespaced, |def| {
    let reference = Column {
        name: "Reference".into(),
        column_type: ColumnType::String,
        format: "".into(),
        priority: 0,
        description: "What it refers to.".into(),
        source: CellSource::Path(JsonPath::new(["spec", "reference"])),
    };
    ResourceDef {
        columns: vec![reference],
        selectable: vec![JsonPath::new(["spec", "reference"]).into()],
        subresources: vec![SubresourceDef::status()],
        ..def
    }
});
resource!(Scaled, "scaleds", Scope::Namespaced, |def| {
    let paths = ScalePaths {
        spec: JsonPath::new(["spec", "replicas"]),
        status: JsonPath::new(["status", "replicas"]),
        selector: None,
    };
    ResourceDef {
        subresources: vec![SubresourceDef::scale(paths), SubresourceDef::status()],
        ..def
    }
});
resource!(Fischer, "fischers", Scope::Cluster, |def| {
    let release = |minor| Some(Release { major: 1, minor });
    ResourceDef {
        verbs: Verb::DEFAULT
            .into_iter()
            .filter(|verb| *verb != Verb::Watch)
            .collect(),
        lifecycle: Some(Lifecycle {
            introduced: release(0),
            deprecated: release(3),
            removed: release(10),
            replacement: Some(GroupVersionKind::new("wardle.example.com", "v1", "Fischer")),
        }),
        ..def
    }
});
resource!(Receipt, "receipts", Scope::Namespaced, |def| ResourceDef {
    verbs: vec![Verb::Create, Verb::Get, Verb::List, Verb::Watch],
    subresources: vec![SubresourceDef::status()],
    ..def
});
resource!(Feed, "feeds", Scope::Cluster, |def| ResourceDef {
    verbs: vec![Verb::Watch],
    ..def
});

fn definition<K: Resource>(
    scope: Scope,
    schema: fn() -> Result<Schema, apiloom_meta::schema::SchemaErrors>,
) -> ResourceDef {
    ResourceDef {
        scope,
        description: "A kind for tests.".into(),
        ..ResourceDef::of_type::<K>(schema)
    }
}
