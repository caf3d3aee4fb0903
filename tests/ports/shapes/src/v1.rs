//! shapes.example.com/v1.

use std::collections::BTreeMap;

use apiloom::prelude::*;
use serde_json::Value;

/// Blueprint has a field of each shape.
#[apiloom::resource(group = "shapes.example.com", version = "v1", cluster, status, strategic_merge_patch, shortname = "bp",
    printcolumn(name = "Interval", path = spec.interval), printcolumn(name = "Memory", json_path = ".spec.hard.memory"),
    printcolumn(name = "Surge", path = spec.max_surge), printcolumn(name = "Weight", json_path = ".spec.weights['first one']"))]
pub struct Blueprint {
    pub metadata: ObjectMeta,
    /// The shapes.
    pub spec: BlueprintSpec,
    /// When they were built.
    pub status: Option<BlueprintStatus>,
}

/// BlueprintSpec is a field of each shape.
#[apiloom::api]
pub struct BlueprintSpec {
    /// A tree, as the schemas of custom resources are.
    pub schema: Option<SchemaNode>,
    /// Bytes by name, as a Secret has them.
    pub data: BTreeMap<String, Vec<u8>>,
    /// Bytes, as a webhook has them.
    pub ca_bundle: Option<Vec<u8>>,
    /// Further bytes.
    #[api(items = ..=2)]
    pub chain: Vec<Vec<u8>>,
    /// A number or a share, as a Deployment has them.
    #[api(default = "25%")]
    pub max_surge: IntOrString,
    /// Ports by number or name, as a NetworkPolicy has them.
    #[api(list = set)]
    pub ports: Vec<IntOrString>,
    /// Parts by name, of which clients patch one at a time.
    #[api(list = map(name), patch(merge))]
    pub layers: Vec<Layer>,
    /// Words, each once.
    #[api(patch(merge))]
    pub words: Vec<String>,
    /// Where it stands, as one value.
    #[api(patch(replace))]
    pub place: Option<BTreeMap<String, String>>,
    /// Amounts by name, as a ResourceQuota has them.
    pub hard: BTreeMap<String, Quantity>,
    /// An amount.
    pub limit: Option<Quantity>,
    /// How often.
    #[api(default = Duration::from_secs(600))]
    pub interval: Duration,
    /// How long at most.
    pub timeout: Option<Duration>,
    /// When, to the microsecond, as a Lease has it.
    pub renew_time: Option<MicroTime>,
    /// Another object, whole.
    #[api(embedded_resource)]
    pub template: Option<Value>,
    /// Further objects.
    #[api(each(embedded_resource), items = ..=3)]
    pub manifests: Vec<Value>,
    /// The beginning of an object, as a Deployment has one.
    pub pod: Option<PodTemplate>,
    /// Texts by two names, as an ApplicationSet has them.
    #[api(props(max = 2), each(props(max = 2), each(len = 1..=5)))]
    pub overrides: BTreeMap<String, BTreeMap<String, String>>,
    /// Lists of structs by name.
    pub routes: BTreeMap<String, Vec<Route>>,
    /// Numbers by name, of which some names are no identifiers.
    #[api(keys(pattern = "^[a-z ]+$"))]
    pub weights: BTreeMap<String, u16>,
    /// Values of any form, as the values of a chart.
    #[api(preserve_unknown)]
    pub values: Option<Value>,
    /// Some known fields, and any others.
    pub settings: Option<Settings>,
    /// One of several forms.
    pub source: Option<Source>,
    /// Numbers of each size.
    pub numbers: Option<Numbers>,
    /// A text that may be null.
    #[api(nullable)]
    pub note: Option<String>,
    /// A name whose spelling does not follow from Rust's.
    #[api(json = "clusterIP", format = ip)]
    pub cluster_ip: Option<String>,
}

/// Layer is a part of a blueprint.
#[apiloom::api]
pub struct Layer {
    pub name: String,
    /// Of what it is made.
    pub material: Option<String>,
    /// Its words.
    #[api(patch(merge))]
    pub words: Vec<String>,
}

/// SchemaNode is a schema, and those of its fields and items.
#[apiloom::api]
pub struct SchemaNode {
    /// The type of the value.
    pub r#type: String,
    /// The schemas of its fields.
    #[api(preserve_unknown)]
    pub properties: BTreeMap<String, SchemaNode>,
    /// The schema of its items.
    #[api(preserve_unknown)]
    pub items: Option<Box<SchemaNode>>,
}

/// PodTemplate is the beginning of an object.
#[apiloom::api]
pub struct PodTemplate {
    /// Labels and the like.
    pub metadata: Option<ObjectMeta>,
    /// The node that it runs on.
    pub node_name: Option<String>,
}

/// Route is where something goes.
#[apiloom::api]
pub struct Route {
    /// To where.
    pub to: String,
    /// How much of it.
    #[api(default = 100, range = 0..=100)]
    pub percent: u8,
}

/// Settings are some known fields, and any others.
#[apiloom::api]
#[api(preserve_unknown)]
pub struct Settings {
    /// Whether they are on.
    #[api(default = true)]
    pub enabled: bool,
}

/// Source is one of several forms, told apart by the field that is there.
#[apiloom::api]
pub enum Source {
    /// A text.
    Inline(String),
    /// A file.
    File {
        /// Its path.
        path: String,
        /// Its bytes.
        #[api(default = false)]
        optional: bool,
    },
}

/// Numbers are numbers of each size.
#[apiloom::api]
pub struct Numbers {
    /// 8 bits.
    pub tiny: Option<i8>,
    /// 16 bits without a sign.
    pub small: Option<u16>,
    /// 32 bits without a sign.
    pub medium: Option<u32>,
    /// 64 bits without a sign.
    pub large: Option<u64>,
    /// 64 bits with a fraction.
    #[api(gt = 0.0, lt = 1.0)]
    pub share: Option<f64>,
}

/// BlueprintStatus is when the shapes were built.
#[apiloom::api]
pub struct BlueprintStatus {
    /// When.
    pub built: Option<Time>,
    /// Observations, one of each type.
    #[api(list = map(type))]
    pub conditions: Vec<Condition>,
}
