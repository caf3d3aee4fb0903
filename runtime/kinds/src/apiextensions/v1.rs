//! Version v1 of the group apiextensions.k8s.io.

use apiloom_macros::{api, resource};
use apiloom_meta::{JsonSchemaProps, ObjectMeta, Time};

use crate::condition::status_condition;

/// CustomResourceDefinition describes a kind that the server serves while it exists: its names, its scope and the schemas of
/// its versions. Its name is `<spec.names.plural>.<spec.group>`.
#[resource(group = "apiextensions.k8s.io", version = "v1", cluster, crate = apiloom_meta,
    proto(package = "k8s.io.apiextensions_apiserver.pkg.apis.apiextensions.v1"), shortname = "crd", shortname = "crds",
    category = "api-extensions", store_path = "apiextensions.k8s.io/customresourcedefinitions",
    subresource(name = "status", writes = with_metadata(status)), unconditional_update = false, strategic_merge_patch)]
#[derive(Default)]
pub struct CustomResourceDefinition {
    /// Standard object's metadata.
    #[api(proto = 1)]
    pub metadata: ObjectMeta,
    /// The kind.
    #[api(proto = 2)]
    pub spec: CustomResourceDefinitionSpec,
    /// What the server makes of it.
    #[api(proto = 3)]
    pub status: CustomResourceDefinitionStatus,
}

/// CustomResourceDefinitionSpec describes a kind.
#[api(crate = apiloom_meta)]
#[derive(Default)]
pub struct CustomResourceDefinitionSpec {
    /// The API group of the kind, a DNS subdomain with at least one dot.
    #[api(proto = 1)]
    pub group: String,
    /// The names of the kind and its resource.
    #[api(proto = 3)]
    pub names: CustomResourceDefinitionNames,
    /// Whether objects are in namespaces: Cluster or Namespaced.
    #[api(proto = 4)]
    pub scope: String,
    /// The versions of the kind. Exactly one is the storage version.
    #[api(proto = 7)]
    pub versions: Vec<CustomResourceDefinitionVersion>,
    /// How objects are converted between versions; by their apiVersion alone if it is not set.
    #[api(proto = 9)]
    pub conversion: Option<CustomResourceConversion>,
    /// Whether objects keep fields that no schema knows. It must be false.
    #[api(proto(number = 10, omit_empty))]
    pub preserve_unknown_fields: Option<bool>,
}

/// CustomResourceDefinitionNames are the names of a kind and its resource.
#[api(crate = apiloom_meta)]
#[derive(Default)]
pub struct CustomResourceDefinitionNames {
    /// The name of the resource in paths, in lower case.
    #[api(proto = 1)]
    pub plural: String,
    /// The name of one object, in lower case; the kind in lower case if it is not set.
    #[api(proto(number = 2, omit_empty))]
    pub singular: Option<String>,
    /// Short names for command lines, in lower case.
    #[api(proto = 3, atomic)]
    pub short_names: Vec<String>,
    /// The kind, in CamelCase.
    #[api(proto = 4)]
    pub kind: String,
    /// The kind of lists; the kind with List at its end if it is not set.
    #[api(proto(number = 5, omit_empty))]
    pub list_kind: Option<String>,
    /// Groups of resources that the resource belongs to, such as all.
    #[api(proto = 6, atomic)]
    pub categories: Vec<String>,
}

/// CustomResourceDefinitionVersion describes a version of a kind.
#[api(crate = apiloom_meta)]
#[derive(Default)]
pub struct CustomResourceDefinitionVersion {
    /// The name of the version in paths, such as v1 or v2beta1.
    #[api(proto = 1)]
    pub name: String,
    /// Whether the version is served.
    #[api(proto = 2)]
    pub served: bool,
    /// Whether objects are stored in this version.
    #[api(proto = 3)]
    pub storage: bool,
    /// Whether requests for the version get a warning.
    #[api(proto(number = 7, omit_empty))]
    pub deprecated: Option<bool>,
    /// The warning for requests of a deprecated version. A default names a version to use instead.
    #[api(proto = 8)]
    pub deprecation_warning: Option<String>,
    /// The schema of objects.
    #[api(proto = 4)]
    pub schema: Option<CustomResourceValidation>,
    /// Subresources of objects.
    #[api(proto = 5)]
    pub subresources: Option<CustomResourceSubresources>,
    /// Columns of tables, after the name; the age if there are none.
    #[api(proto = 6, atomic)]
    pub additional_printer_columns: Vec<CustomResourceColumnDefinition>,
    /// Fields by which objects can be selected, at most eight.
    #[api(proto = 9, atomic)]
    pub selectable_fields: Vec<SelectableField>,
}

/// CustomResourceValidation has the schema of objects.
#[api(crate = apiloom_meta)]
#[derive(Default)]
pub struct CustomResourceValidation {
    /// The structural OpenAPI v3 schema.
    #[api(proto = 1, json = "openAPIV3Schema")]
    pub open_api_v3_schema: Option<JsonSchemaProps>,
}

/// CustomResourceSubresources are subresources of objects.
#[api(crate = apiloom_meta)]
#[derive(Default)]
pub struct CustomResourceSubresources {
    /// The status is written apart from the rest of an object.
    #[api(proto = 1)]
    pub status: Option<CustomResourceSubresourceStatus>,
    /// The number of replicas can be read and written as a Scale.
    #[api(proto = 2)]
    pub scale: Option<CustomResourceSubresourceScale>,
}

/// CustomResourceSubresourceStatus has no settings.
#[api(crate = apiloom_meta)]
#[derive(Default)]
pub struct CustomResourceSubresourceStatus {}

/// CustomResourceSubresourceScale says where an object has its numbers of replicas.
#[api(crate = apiloom_meta)]
#[derive(Default)]
pub struct CustomResourceSubresourceScale {
    /// The path of the desired number, below .spec.
    #[api(proto = 1)]
    pub spec_replicas_path: String,
    /// The path of the present number, below .status.
    #[api(proto = 2)]
    pub status_replicas_path: String,
    /// The path of a label selector as text, below .spec or .status.
    #[api(proto = 3)]
    pub label_selector_path: Option<String>,
}

/// CustomResourceColumnDefinition is a column of tables.
#[api(crate = apiloom_meta)]
#[derive(Default)]
pub struct CustomResourceColumnDefinition {
    /// The header.
    #[api(proto = 1)]
    pub name: String,
    /// The type of the cells: integer, number, string, boolean or date.
    #[api(proto = 2, json = "type")]
    pub column_type: String,
    /// A hint for clients how to show the cells.
    #[api(proto(number = 3, omit_empty))]
    pub format: Option<String>,
    /// What the column shows.
    #[api(proto(number = 4, omit_empty))]
    pub description: Option<String>,
    /// 0 for a column that is always shown; others only in wide tables.
    #[api(proto(number = 5, omit_empty))]
    pub priority: Option<i32>,
    /// The JSONPath of the cells.
    #[api(proto = 6)]
    pub json_path: String,
}

/// SelectableField is a field by which objects can be selected.
#[api(crate = apiloom_meta)]
#[derive(Default)]
pub struct SelectableField {
    /// The path of the field, such as .spec.color.
    #[api(proto = 1)]
    pub json_path: String,
}

/// CustomResourceConversion says how objects are converted between versions.
#[api(crate = apiloom_meta)]
#[derive(Default)]
pub struct CustomResourceConversion {
    /// None, which changes the apiVersion alone, or Webhook.
    #[api(proto = 1)]
    pub strategy: String,
    /// The webhook, with the strategy Webhook.
    #[api(proto = 2)]
    pub webhook: Option<WebhookConversion>,
}

/// WebhookConversion says how a conversion webhook is called.
#[api(crate = apiloom_meta)]
#[derive(Default)]
pub struct WebhookConversion {
    /// How to reach the webhook.
    #[api(proto = 2)]
    pub client_config: Option<WebhookClientConfig>,
    /// The versions of ConversionReview that the webhook takes, preferred first.
    #[api(proto = 3, atomic)]
    pub conversion_review_versions: Vec<String>,
}

/// WebhookClientConfig says how to reach a webhook: by a URL or by a service.
#[api(crate = apiloom_meta)]
#[derive(Default)]
pub struct WebhookClientConfig {
    /// The URL of the webhook.
    #[api(proto = 3)]
    pub url: Option<String>,
    /// The service of the webhook.
    #[api(proto = 1)]
    pub service: Option<ServiceReference>,
    /// The certificate authorities of the webhook, in PEM and base64; those of the system if it is not set.
    #[api(proto(number = 2, omit_empty))]
    pub ca_bundle: Option<Vec<u8>>,
}

/// ServiceReference names a service.
#[api(crate = apiloom_meta)]
#[derive(Default)]
pub struct ServiceReference {
    /// The namespace of the service.
    #[api(proto = 1)]
    pub namespace: String,
    /// The name of the service.
    #[api(proto = 2)]
    pub name: String,
    /// The path of requests.
    #[api(proto = 3)]
    pub path: Option<String>,
    /// The port; 443 if it is not set.
    #[api(proto = 4)]
    pub port: Option<i32>,
}

/// CustomResourceDefinitionStatus is the state of a kind.
#[api(crate = apiloom_meta)]
#[derive(Default)]
pub struct CustomResourceDefinitionStatus {
    /// The state of the definition, by type.
    #[api(proto = 1, list = map(condition_type), nullable, default = None)]
    pub conditions: Option<Vec<CustomResourceDefinitionCondition>>,
    /// The names under which the kind is served.
    #[api(proto = 2)]
    pub accepted_names: Option<CustomResourceDefinitionNames>,
    /// All versions in which objects may be stored.
    #[api(proto = 3, atomic)]
    pub stored_versions: Vec<String>,
}

/// CustomResourceDefinitionCondition is one part of the state of a definition.
#[api(crate = apiloom_meta)]
#[derive(Default)]
pub struct CustomResourceDefinitionCondition {
    /// The type: Established, NamesAccepted, Terminating and others.
    #[api(proto = 1, json = "type", default = String::new(), present)]
    pub condition_type: String,
    /// True, False or Unknown.
    #[api(proto = 2, default = String::new(), present)]
    pub status: String,
    /// When the status changed last.
    #[api(proto = 3)]
    pub last_transition_time: Option<Time>,
    /// Why, in one word.
    #[api(proto(number = 4, omit_empty))]
    pub reason: Option<String>,
    /// Why, for people.
    #[api(proto(number = 5, omit_empty))]
    pub message: Option<String>,
    /// The generation of the definition on which the condition is based.
    #[api(proto(number = 6, omit_empty))]
    pub observed_generation: Option<i64>,
}

status_condition!(CustomResourceDefinitionCondition, observed_generation);
