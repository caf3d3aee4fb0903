//! Version v1 of the group authorization.k8s.io: reviews, which are created and answered, and not stored.

use std::collections::BTreeMap;

use apiloom_macros::{api, resource};
use apiloom_meta::{LabelSelectorRequirement, ObjectMeta};

/// SubjectAccessReview asks whether a user may do something.
#[resource(group = "authorization.k8s.io", version = "v1", cluster, crate = apiloom_meta, store = none,
    proto(package = "k8s.io.api.authorization.v1"))]
#[derive(Default)]
pub struct SubjectAccessReview {
    /// Standard object's metadata. It must be empty.
    #[api(proto = 1)]
    pub metadata: ObjectMeta,
    /// The question.
    #[api(proto = 2, default = SubjectAccessReviewSpec::default(), present)]
    pub spec: SubjectAccessReviewSpec,
    /// The answer, which the server writes.
    #[api(proto = 3, default = SubjectAccessReviewStatus::default())]
    pub status: SubjectAccessReviewStatus,
}

/// LocalSubjectAccessReview asks whether a user may do something in a namespace.
#[resource(group = "authorization.k8s.io", version = "v1", namespaced, crate = apiloom_meta, store = none,
    proto(package = "k8s.io.api.authorization.v1"))]
#[derive(Default)]
pub struct LocalSubjectAccessReview {
    /// Standard object's metadata. All but the namespace must be empty.
    #[api(proto = 1)]
    pub metadata: ObjectMeta,
    /// The question, about resources of the namespace.
    #[api(proto = 2, default = SubjectAccessReviewSpec::default(), present)]
    pub spec: SubjectAccessReviewSpec,
    /// The answer, which the server writes.
    #[api(proto = 3, default = SubjectAccessReviewStatus::default())]
    pub status: SubjectAccessReviewStatus,
}

/// SelfSubjectAccessReview asks whether the user who asks may do something.
#[resource(group = "authorization.k8s.io", version = "v1", cluster, crate = apiloom_meta, store = none,
    proto(package = "k8s.io.api.authorization.v1"))]
#[derive(Default)]
pub struct SelfSubjectAccessReview {
    /// Standard object's metadata. It must be empty.
    #[api(proto = 1)]
    pub metadata: ObjectMeta,
    /// The question.
    #[api(proto = 2, default = SelfSubjectAccessReviewSpec::default(), present)]
    pub spec: SelfSubjectAccessReviewSpec,
    /// The answer, which the server writes.
    #[api(proto = 3, default = SubjectAccessReviewStatus::default())]
    pub status: SubjectAccessReviewStatus,
}

/// SelfSubjectRulesReview asks what the user who asks may do in a namespace.
#[resource(group = "authorization.k8s.io", version = "v1", cluster, crate = apiloom_meta, store = none,
    proto(package = "k8s.io.api.authorization.v1"))]
#[derive(Default)]
pub struct SelfSubjectRulesReview {
    /// Standard object's metadata.
    #[api(proto = 1)]
    pub metadata: ObjectMeta,
    /// The question.
    #[api(proto = 2, default = SelfSubjectRulesReviewSpec::default(), present)]
    pub spec: SelfSubjectRulesReviewSpec,
    /// The answer, which the server writes.
    #[api(proto = 3, default = SubjectRulesReviewStatus::default())]
    pub status: SubjectRulesReviewStatus,
}

/// SubjectAccessReviewSpec is what a user would do: something with a resource, or with another path.
#[api(crate = apiloom_meta)]
#[derive(Default)]
pub struct SubjectAccessReviewSpec {
    /// A request for a resource.
    #[api(proto = 1)]
    pub resource_attributes: Option<ResourceAttributes>,
    /// A request for another path.
    #[api(proto = 2)]
    pub non_resource_attributes: Option<NonResourceAttributes>,
    /// The name of the user.
    #[api(proto(number = 3, omit_empty))]
    pub user: Option<String>,
    /// The groups of the user.
    #[api(proto = 4, list = atomic)]
    pub groups: Vec<String>,
    /// Further attributes of the user.
    #[api(proto = 5)]
    pub extra: BTreeMap<String, Vec<String>>,
    /// The unique id of the user.
    #[api(proto(number = 6, omit_empty))]
    pub uid: Option<String>,
}

/// SelfSubjectAccessReviewSpec is what the user who asks would do.
#[api(crate = apiloom_meta)]
#[derive(Default)]
pub struct SelfSubjectAccessReviewSpec {
    /// A request for a resource.
    #[api(proto = 1)]
    pub resource_attributes: Option<ResourceAttributes>,
    /// A request for another path.
    #[api(proto = 2)]
    pub non_resource_attributes: Option<NonResourceAttributes>,
}

/// ResourceAttributes is a request for a resource. An empty verb, group or resource is that, and `*` is all.
#[api(crate = apiloom_meta)]
#[derive(Default)]
pub struct ResourceAttributes {
    /// The namespace; none for objects outside of namespaces, and for all namespaces.
    #[api(proto(number = 1, omit_empty))]
    pub namespace: Option<String>,
    /// get, list, watch, create, update, patch, delete, deletecollection and so on.
    #[api(proto(number = 2, omit_empty))]
    pub verb: Option<String>,
    /// The group; empty for core.
    #[api(proto(number = 3, omit_empty))]
    pub group: Option<String>,
    /// The version.
    #[api(proto(number = 4, omit_empty))]
    pub version: Option<String>,
    /// The resource: its plural name.
    #[api(proto(number = 5, omit_empty))]
    pub resource: Option<String>,
    /// The subresource; empty for the object itself.
    #[api(proto(number = 6, omit_empty))]
    pub subresource: Option<String>,
    /// The name of the object; empty for all.
    #[api(proto(number = 7, omit_empty))]
    pub name: Option<String>,
    /// The fields by which the request selects objects.
    #[api(proto = 8)]
    pub field_selector: Option<FieldSelectorAttributes>,
    /// The labels by which the request selects objects.
    #[api(proto = 9)]
    pub label_selector: Option<LabelSelectorAttributes>,
}

/// FieldSelectorAttributes is a field selector: as text, or as requirements.
#[api(crate = apiloom_meta)]
#[derive(Default)]
pub struct FieldSelectorAttributes {
    /// The selector as in a query.
    #[api(proto(number = 1, omit_empty))]
    pub raw_selector: Option<String>,
    /// The parts of the selector, which all hold.
    #[api(proto = 2, list = atomic)]
    pub requirements: Vec<FieldSelectorRequirement>,
}

/// FieldSelectorRequirement is a part of a field selector.
#[api(crate = apiloom_meta)]
#[derive(Default)]
pub struct FieldSelectorRequirement {
    /// The path of the field.
    #[api(proto = 1, default = String::new(), present)]
    pub key: String,
    /// In, NotIn, Exists or DoesNotExist.
    #[api(proto = 2, default = String::new(), present)]
    pub operator: String,
    /// The values.
    #[api(proto = 3, list = atomic)]
    pub values: Vec<String>,
}

/// LabelSelectorAttributes is a label selector: as text, or as requirements.
#[api(crate = apiloom_meta)]
#[derive(Default)]
pub struct LabelSelectorAttributes {
    /// The selector as in a query.
    #[api(proto(number = 1, omit_empty))]
    pub raw_selector: Option<String>,
    /// The parts of the selector, which all hold.
    #[api(proto = 2, list = atomic)]
    pub requirements: Vec<LabelSelectorRequirement>,
}

/// NonResourceAttributes is a request for a path that is no resource.
#[api(crate = apiloom_meta)]
#[derive(Default)]
pub struct NonResourceAttributes {
    /// The path.
    #[api(proto(number = 1, omit_empty))]
    pub path: Option<String>,
    /// The method, in lower case.
    #[api(proto(number = 2, omit_empty))]
    pub verb: Option<String>,
}

/// SubjectAccessReviewStatus says whether the request would be allowed.
#[api(crate = apiloom_meta)]
#[derive(Default)]
pub struct SubjectAccessReviewStatus {
    /// Whether it would be.
    #[api(proto = 1, default = false, present)]
    pub allowed: bool,
    /// Whether it is denied for sure. If neither is set, no authorizer has decided, and the request is refused as well.
    #[api(proto(number = 4, omit_empty))]
    pub denied: Option<bool>,
    /// Why it is allowed or not.
    #[api(proto(number = 2, omit_empty))]
    pub reason: Option<String>,
    /// Why the answer may be incomplete.
    #[api(proto(number = 3, omit_empty))]
    pub evaluation_error: Option<String>,
}

/// SelfSubjectRulesReviewSpec names a namespace.
#[api(crate = apiloom_meta)]
#[derive(Default)]
pub struct SelfSubjectRulesReviewSpec {
    /// The namespace. It is required.
    #[api(proto(number = 1, omit_empty))]
    pub namespace: Option<String>,
}

/// SubjectRulesReviewStatus is what a user may do.
#[api(crate = apiloom_meta)]
#[derive(Default)]
pub struct SubjectRulesReviewStatus {
    /// What the user may do with resources, in no order and perhaps twice.
    #[api(proto = 1, default = Vec::new(), present, list = atomic)]
    pub resource_rules: Vec<ResourceRule>,
    /// What the user may do with other paths.
    #[api(proto = 2, default = Vec::new(), present, list = atomic)]
    pub non_resource_rules: Vec<NonResourceRule>,
    /// Whether the user may do more: some authorizers cannot say what they allow.
    #[api(proto = 3, default = false, present)]
    pub incomplete: bool,
    /// Why the answer may be incomplete.
    #[api(proto(number = 4, omit_empty))]
    pub evaluation_error: Option<String>,
}

/// ResourceRule is what a user may do with resources.
#[api(crate = apiloom_meta)]
#[derive(Default)]
pub struct ResourceRule {
    /// The verbs; `*` for all.
    #[api(proto = 1, default = Vec::new(), present, list = atomic)]
    pub verbs: Vec<String>,
    /// The groups; the empty one is core, `*` is all.
    #[api(proto = 2, list = atomic)]
    pub api_groups: Vec<String>,
    /// The resources; `*` for all.
    #[api(proto = 3, list = atomic)]
    pub resources: Vec<String>,
    /// The names of the objects; none for all.
    #[api(proto = 4, list = atomic)]
    pub resource_names: Vec<String>,
}

/// NonResourceRule is what a user may do with other paths.
#[api(crate = apiloom_meta)]
#[derive(Default)]
pub struct NonResourceRule {
    /// The methods, in lower case; `*` for all.
    #[api(proto = 1, default = Vec::new(), present, list = atomic)]
    pub verbs: Vec<String>,
    /// The paths; `*` at the end is any rest.
    #[api(proto = 2, json = "nonResourceURLs", list = atomic)]
    pub non_resource_urls: Vec<String>,
}
