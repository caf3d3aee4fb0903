//! The answers to reviews: whether a user may do something, and what the one who asks may do.

use std::sync::Arc;

use apiloom_kinds::authorization::v1::{
    LocalSubjectAccessReview, NonResourceAttributes, NonResourceRule, ResourceAttributes,
    ResourceRule, SelfSubjectAccessReview, SelfSubjectRulesReview, SubjectAccessReview,
    SubjectAccessReviewSpec, SubjectAccessReviewStatus, SubjectRulesReviewStatus,
};
use apiloom_meta::{ApiError, FieldError, FieldPath, GroupKind, ObjectMeta, Resource as _};
use apiloom_registry::auth::{Access, Attributes, UserInfo};
use apiloom_registry::{CreateOptions, Handler, RequestContext};
use apiloom_server::Builder;
use async_trait::async_trait;
use serde_json::{Map, Value, json};

use crate::text::text;

/// Adds the reviews to a server.
pub(crate) fn add(builder: Builder) -> Builder {
    let reviews = || Reviews(builder.access());
    let (of_self, of_all, local, rules) = (reviews(), reviews(), reviews(), reviews());
    builder
        .built_in::<SelfSubjectAccessReview>()
        .handler::<SelfSubjectAccessReview>(of_self)
        .built_in::<SubjectAccessReview>()
        .handler::<SubjectAccessReview>(of_all)
        .built_in::<LocalSubjectAccessReview>()
        .handler::<LocalSubjectAccessReview>(local)
        .built_in::<SelfSubjectRulesReview>()
        .handler::<SelfSubjectRulesReview>(rules)
}

/// Answers reviews by the authorizers of the server.
#[derive(Debug)]
struct Reviews(Access);

#[async_trait]
impl Handler<SelfSubjectAccessReview> for Reviews {
    async fn create(
        &self,
        ctx: &RequestContext,
        mut review: SelfSubjectAccessReview,
        _: &CreateOptions,
    ) -> Result<SelfSubjectAccessReview, ApiError> {
        let question = Question {
            resource: review.spec.resource_attributes.as_ref(),
            path: review.spec.non_resource_attributes.as_ref(),
        };
        let mut errors = question.errors();
        errors.extend(metadata_errors(&review.metadata, "must be empty"));
        refuse(&errors)?;
        review.status = self.judge(question, &ctx.user).await?;
        Ok(review)
    }
}

#[async_trait]
impl Handler<SubjectAccessReview> for Reviews {
    async fn create(
        &self,
        _: &RequestContext,
        mut review: SubjectAccessReview,
        _: &CreateOptions,
    ) -> Result<SubjectAccessReview, ApiError> {
        let mut errors = spec_errors(&review.spec);
        errors.extend(metadata_errors(&review.metadata, "must be empty"));
        refuse(&errors)?;
        let user = user(&review.spec);
        review.status = self.judge(Question::of(&review.spec), &user).await?;
        Ok(review)
    }
}

#[async_trait]
impl Handler<LocalSubjectAccessReview> for Reviews {
    async fn create(
        &self,
        _: &RequestContext,
        mut review: LocalSubjectAccessReview,
        _: &CreateOptions,
    ) -> Result<LocalSubjectAccessReview, ApiError> {
        let mut errors = spec_errors(&review.spec);
        let metadata = ObjectMeta {
            namespace: None,
            ..review.metadata.clone()
        };
        errors.extend(metadata_errors(
            &metadata,
            "must be empty except for namespace",
        ));
        errors.extend(place_errors(&review));
        refuse(&errors)?;
        let user = user(&review.spec);
        review.status = self.judge(Question::of(&review.spec), &user).await?;
        Ok(review)
    }
}

#[async_trait]
impl Handler<SelfSubjectRulesReview> for Reviews {
    async fn create(
        &self,
        ctx: &RequestContext,
        mut review: SelfSubjectRulesReview,
        _: &CreateOptions,
    ) -> Result<SelfSubjectRulesReview, ApiError> {
        let namespace = text(&review.spec.namespace);
        if namespace.is_empty() {
            return Err(ApiError::bad_request("no namespace on request"));
        }
        let permissions = self.0.permissions(&ctx.user, namespace)?;
        let resources = permissions.resources.into_iter();
        let paths = permissions.paths.into_iter();
        let errors = permissions.errors;
        review.status = SubjectRulesReviewStatus {
            resource_rules: resources
                .map(|one| ResourceRule {
                    verbs: one.verbs,
                    api_groups: one.api_groups,
                    resources: one.resources,
                    resource_names: one.resource_names,
                })
                .collect(),
            non_resource_rules: paths
                .map(|one| NonResourceRule {
                    verbs: one.verbs,
                    non_resource_urls: one.paths,
                })
                .collect(),
            incomplete: permissions.is_incomplete,
            evaluation_error: (!errors.is_empty()).then(|| errors.join(", ")),
        };
        Ok(review)
    }
}

impl Reviews {
    async fn judge(
        &self,
        question: Question<'_>,
        user: &UserInfo,
    ) -> Result<SubjectAccessReviewStatus, ApiError> {
        let verdict = self.0.judge(&question.attributes(user)).await?;
        let reason = verdict.reason.to_string();
        Ok(SubjectAccessReviewStatus {
            allowed: verdict.is_allowed,
            denied: verdict.is_denied.then_some(true),
            reason: Some(reason).filter(|reason| !reason.is_empty()),
            evaluation_error: verdict.error,
        })
    }
}

/// What is asked.
#[derive(Clone, Copy)]
struct Question<'a> {
    resource: Option<&'a ResourceAttributes>,
    path: Option<&'a NonResourceAttributes>,
}

impl<'a> Question<'a> {
    fn of(spec: &'a SubjectAccessReviewSpec) -> Self {
        Self {
            resource: spec.resource_attributes.as_ref(),
            path: spec.non_resource_attributes.as_ref(),
        }
    }

    fn errors(self) -> Vec<FieldError> {
        let spec = FieldPath::new("spec");
        match (self.resource, self.path) {
            (Some(_), Some(path)) => {
                let why = "cannot be specified in combination with resourceAttributes";
                let path_value = go_path(path);
                let path = spec.child("nonResourceAttributes");
                vec![FieldError::invalid(&path, path_value, why)]
            }
            (None, None) => {
                let why =
                    "exactly one of nonResourceAttributes or resourceAttributes must be specified";
                let path = spec.child("resourceAttributes");
                vec![FieldError::invalid(&path, Value::Null, why)]
            }
            _ => Vec::new(),
        }
    }

    fn attributes(self, user: &'a UserInfo) -> Attributes<'a> {
        let Some(resource) = self.resource else {
            let path = self.path.map_or("", |path| text(&path.path));
            let verb = self.path.map_or("", |path| text(&path.verb));
            return Attributes::of_path(user, verb, path);
        };
        let mut attributes = Attributes::of_path(user, text(&resource.verb), "");
        attributes.is_resource_request = true;
        attributes.api_group = text(&resource.group);
        attributes.api_version = text(&resource.version);
        attributes.resource = text(&resource.resource);
        attributes.subresource = text(&resource.subresource);
        attributes.namespace = text(&resource.namespace);
        attributes.name = text(&resource.name);
        attributes
    }
}

/// The attributes as Go prints its struct.
fn go_path(path: &NonResourceAttributes) -> Value {
    json!({"Path": text(&path.path), "Verb": text(&path.verb)})
}

fn spec_errors(spec: &SubjectAccessReviewSpec) -> Vec<FieldError> {
    let mut errors = Question::of(spec).errors();
    if text(&spec.user).is_empty() && spec.groups.is_empty() {
        let path = FieldPath::new("spec").child("user");
        let why = "at least one of user or group must be specified";
        errors.push(FieldError::invalid(&path, text(&spec.user), why));
    }
    errors
}

/// The errors of a local review that asks about another place than its own.
fn place_errors(review: &LocalSubjectAccessReview) -> Vec<FieldError> {
    let spec = FieldPath::new("spec");
    let mut errors = Vec::new();
    if let Some(resource) = &review.spec.resource_attributes {
        let namespace = text(&resource.namespace);
        if namespace != text(&review.metadata.namespace) {
            let path = spec.child("resourceAttributes").child("namespace");
            errors.push(FieldError::invalid(
                &path,
                namespace,
                "must match metadata.namespace",
            ));
        }
    }
    if let Some(path) = &review.spec.non_resource_attributes {
        let value = go_path(path);
        let path = spec.child("nonResourceAttributes");
        errors.push(FieldError::invalid(
            &path,
            value,
            "disallowed on this kind of request",
        ));
    }
    errors
}

/// The error of metadata that means nothing here. What the server itself writes is not the client's.
fn metadata_errors(metadata: &ObjectMeta, why: &str) -> Option<FieldError> {
    let value = serde_json::to_value(metadata).unwrap_or_default();
    let mut given = value.as_object().cloned().unwrap_or_else(Map::new);
    given.remove("managedFields");
    given.remove("creationTimestamp");
    given.remove("uid");
    (!given.is_empty()).then(|| FieldError::invalid(&FieldPath::new("metadata"), given, why))
}

/// The error of a review, which names the group and no kind, as that of kube-apiserver.
fn refuse(errors: &[FieldError]) -> Result<(), ApiError> {
    if errors.is_empty() {
        return Ok(());
    }
    let kind = GroupKind::new(SubjectAccessReview::GROUP, "");
    Err(ApiError::invalid(&kind, "", errors))
}

/// The user that a review is about, as it says: without the groups that authentication adds.
fn user(spec: &SubjectAccessReviewSpec) -> Arc<UserInfo> {
    Arc::new(UserInfo {
        name: text(&spec.user).to_owned(),
        uid: text(&spec.uid).to_owned(),
        groups: spec.groups.clone(),
        extra: spec.extra.clone(),
    })
}
