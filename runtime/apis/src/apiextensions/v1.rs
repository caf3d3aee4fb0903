//! Version v1 of the group apiextensions.k8s.io.

use apiloom_macros::{api, resource};
use apiloom_meta::{JsonSchemaProps, ObjectMeta, Time};

/// CustomResourceDefinition describes a kind that the server serves while it exists: its names, its scope and the schemas of
/// its versions. Its name is `<spec.names.plural>.<spec.group>`.
#[resource(group = "apiextensions.k8s.io", version = "v1", cluster, crate = apiloom_meta, shortname = "crd", shortname = "crds",
    category = "api-extensions", store_path = "apiextensions.k8s.io/customresourcedefinitions", status,
    unconditional_update = false, strategic_merge_patch)]
#[derive(Default)]
pub struct CustomResourceDefinition {
    /// Standard object's metadata.
    pub metadata: ObjectMeta,
    /// The kind.
    pub spec: CustomResourceDefinitionSpec,
    /// What the server makes of it.
    pub status: CustomResourceDefinitionStatus,
}

/// CustomResourceDefinitionSpec describes a kind.
#[api(crate = apiloom_meta)]
#[derive(Default)]
pub struct CustomResourceDefinitionSpec {
    /// The API group of the kind, a DNS subdomain with at least one dot.
    pub group: String,
    /// The names of the kind and its resource.
    pub names: CustomResourceDefinitionNames,
    /// Whether objects are in namespaces: Cluster or Namespaced.
    pub scope: String,
    /// The versions of the kind. Exactly one is the storage version.
    pub versions: Vec<CustomResourceDefinitionVersion>,
    /// How objects are converted between versions; by their apiVersion alone if it is not set.
    pub conversion: Option<CustomResourceConversion>,
    /// Whether objects keep fields that no schema knows. It must be false.
    pub preserve_unknown_fields: Option<bool>,
}

/// CustomResourceDefinitionNames are the names of a kind and its resource.
#[api(crate = apiloom_meta)]
#[derive(Default)]
pub struct CustomResourceDefinitionNames {
    /// The name of the resource in paths, in lower case.
    pub plural: String,
    /// The name of one object, in lower case; the kind in lower case if it is not set.
    pub singular: Option<String>,
    /// Short names for command lines, in lower case.
    #[api(atomic)]
    pub short_names: Vec<String>,
    /// The kind, in CamelCase.
    pub kind: String,
    /// The kind of lists; the kind with List at its end if it is not set.
    pub list_kind: Option<String>,
    /// Groups of resources that the resource belongs to, such as all.
    #[api(atomic)]
    pub categories: Vec<String>,
}

/// CustomResourceDefinitionVersion describes a version of a kind.
#[api(crate = apiloom_meta)]
#[derive(Default)]
pub struct CustomResourceDefinitionVersion {
    /// The name of the version in paths, such as v1 or v2beta1.
    pub name: String,
    /// Whether the version is served.
    pub served: bool,
    /// Whether objects are stored in this version.
    pub storage: bool,
    /// Whether requests for the version get a warning.
    pub deprecated: Option<bool>,
    /// The warning for requests of a deprecated version. A default names a version to use instead.
    pub deprecation_warning: Option<String>,
    /// The schema of objects.
    pub schema: Option<CustomResourceValidation>,
    /// Subresources of objects.
    pub subresources: Option<CustomResourceSubresources>,
    /// Columns of tables, after the name; the age if there are none.
    #[api(atomic)]
    pub additional_printer_columns: Vec<CustomResourceColumnDefinition>,
    /// Fields by which objects can be selected, at most eight.
    #[api(atomic)]
    pub selectable_fields: Vec<SelectableField>,
}

/// CustomResourceValidation has the schema of objects.
#[api(crate = apiloom_meta)]
#[derive(Default)]
pub struct CustomResourceValidation {
    /// The structural OpenAPI v3 schema.
    #[api(json = "openAPIV3Schema")]
    pub open_api_v3_schema: Option<JsonSchemaProps>,
}

/// CustomResourceSubresources are subresources of objects.
#[api(crate = apiloom_meta)]
#[derive(Default)]
pub struct CustomResourceSubresources {
    /// The status is written apart from the rest of an object.
    pub status: Option<CustomResourceSubresourceStatus>,
    /// The number of replicas can be read and written as a Scale.
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
    pub spec_replicas_path: String,
    /// The path of the present number, below .status.
    pub status_replicas_path: String,
    /// The path of a label selector as text, below .spec or .status.
    pub label_selector_path: Option<String>,
}

/// CustomResourceColumnDefinition is a column of tables.
#[api(crate = apiloom_meta)]
#[derive(Default)]
pub struct CustomResourceColumnDefinition {
    /// The header.
    pub name: String,
    /// The type of the cells: integer, number, string, boolean or date.
    #[api(json = "type")]
    pub column_type: String,
    /// A hint for clients how to show the cells.
    pub format: Option<String>,
    /// What the column shows.
    pub description: Option<String>,
    /// 0 for a column that is always shown; others only in wide tables.
    pub priority: Option<i32>,
    /// The JSONPath of the cells.
    pub json_path: String,
}

/// SelectableField is a field by which objects can be selected.
#[api(crate = apiloom_meta)]
#[derive(Default)]
pub struct SelectableField {
    /// The path of the field, such as .spec.color.
    pub json_path: String,
}

/// CustomResourceConversion says how objects are converted between versions.
#[api(crate = apiloom_meta)]
#[derive(Default)]
pub struct CustomResourceConversion {
    /// None, which changes the apiVersion alone, or Webhook.
    pub strategy: String,
    /// The webhook, with the strategy Webhook.
    pub webhook: Option<WebhookConversion>,
}

/// WebhookConversion says how a conversion webhook is called.
#[api(crate = apiloom_meta)]
#[derive(Default)]
pub struct WebhookConversion {
    /// How to reach the webhook.
    pub client_config: Option<WebhookClientConfig>,
    /// The versions of ConversionReview that the webhook takes, preferred first.
    #[api(atomic)]
    pub conversion_review_versions: Vec<String>,
}

/// WebhookClientConfig says how to reach a webhook: by a URL or by a service.
#[api(crate = apiloom_meta)]
#[derive(Default)]
pub struct WebhookClientConfig {
    /// The URL of the webhook.
    pub url: Option<String>,
    /// The service of the webhook.
    pub service: Option<ServiceReference>,
    /// The certificate authorities of the webhook, in PEM and base64; those of the system if it is not set.
    pub ca_bundle: Option<String>,
}

/// ServiceReference names a service.
#[api(crate = apiloom_meta)]
#[derive(Default)]
pub struct ServiceReference {
    /// The namespace of the service.
    pub namespace: String,
    /// The name of the service.
    pub name: String,
    /// The path of requests.
    pub path: Option<String>,
    /// The port; 443 if it is not set.
    pub port: Option<i32>,
}

/// CustomResourceDefinitionStatus is the state of a kind.
#[api(crate = apiloom_meta)]
#[derive(Default)]
pub struct CustomResourceDefinitionStatus {
    /// The state of the definition, by type.
    #[api(list = map(condition_type), nullable, default = None)]
    pub conditions: Option<Vec<CustomResourceDefinitionCondition>>,
    /// The names under which the kind is served.
    pub accepted_names: Option<CustomResourceDefinitionNames>,
    /// All versions in which objects may be stored.
    #[api(atomic)]
    pub stored_versions: Vec<String>,
}

/// CustomResourceDefinitionCondition is one part of the state of a definition.
#[api(crate = apiloom_meta)]
#[derive(Default)]
pub struct CustomResourceDefinitionCondition {
    /// The type: Established, NamesAccepted, Terminating and others.
    #[api(json = "type")]
    pub condition_type: String,
    /// True, False or Unknown.
    pub status: String,
    /// When the status changed last.
    pub last_transition_time: Option<Time>,
    /// Why, in one word.
    pub reason: Option<String>,
    /// Why, for people.
    pub message: Option<String>,
    /// The generation of the definition on which the condition is based.
    pub observed_generation: Option<i64>,
}
