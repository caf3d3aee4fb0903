//! What a webhook is sent about a write, and how its answer is read: AdmissionReview of admission.k8s.io, v1 and v1beta1.

use std::collections::BTreeMap;

use apiloom_meta::{ApiError, Object, Status};
use apiloom_registry::{AdmissionRequest, Operation};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// The versions of AdmissionReview.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReviewVersion {
    V1,
    /// Neither the kind nor the uid of an answer is compared, and a patch needs no type, as in kube-apiserver.
    V1Beta1,
}

impl ReviewVersion {
    /// The first of these versions that is known.
    ///
    /// # Errors
    /// If none is.
    pub(crate) fn of(versions: &[String]) -> Result<Self, String> {
        let known = versions.iter().find_map(|version| match version.as_str() {
            "v1" => Some(Self::V1),
            "v1beta1" => Some(Self::V1Beta1),
            _ => None,
        });
        known.ok_or_else(|| {
            "webhook does not accept known AdmissionReview versions (v1, v1beta1)".to_owned()
        })
    }

    fn api_version(self) -> &'static str {
        match self {
            Self::V1 => "admission.k8s.io/v1",
            Self::V1Beta1 => "admission.k8s.io/v1beta1",
        }
    }
}

/// The name of an operation in rules and reviews.
pub(crate) fn operation(operation: Operation) -> &'static str {
    match operation {
        Operation::Create => "CREATE",
        Operation::Update => "UPDATE",
        Operation::Delete => "DELETE",
        Operation::Connect => "CONNECT",
    }
}

/// The objects of a write in a version of the resource; null if there is none.
#[derive(Clone, Debug)]
pub(crate) struct Shown {
    pub(crate) version: String,
    pub(crate) object: Value,
    pub(crate) old_object: Value,
}

impl Shown {
    /// The objects of a write in a version.
    ///
    /// # Errors
    /// InternalError if one cannot be converted.
    pub(crate) async fn of(
        request: &AdmissionRequest<'_>,
        version: &str,
    ) -> Result<Self, ApiError> {
        let (new, old) = (request.object.as_deref(), request.old_object);
        Ok(Self {
            object: shown(request, new, version).await?,
            old_object: shown(request, old, version).await?,
            version: version.to_owned(),
        })
    }

    /// What the review says of the write besides its objects.
    pub(crate) fn request(&self, request: &AdmissionRequest<'_>) -> Value {
        let user = &request.ctx.user;
        let kind = |version: &str| {
            let (group, kind) = (&request.kind.group, &request.kind.kind);
            json!({"group": group, "version": version, "kind": kind})
        };
        let resource = |version: &str| {
            let (group, resource) = (&request.resource.group, &request.resource.resource);
            json!({"group": group, "version": version, "resource": resource})
        };
        // The kind of the body of a subresource is the same in all versions of the resource.
        let kind_version = if request.kind_version() == request.version {
            &self.version
        } else {
            request.kind_version()
        };
        let mut user_info = Map::new();
        let mut set = |name: &str, value: Value, is_empty: bool| {
            if !is_empty {
                user_info.insert(name.to_owned(), value);
            }
        };
        set("username", json!(user.name), user.name.is_empty());
        set("uid", json!(user.uid), user.uid.is_empty());
        set("groups", json!(user.groups), user.groups.is_empty());
        set("extra", json!(user.extra), user.extra.is_empty());
        let mut about = json!({
            "kind": kind(kind_version),
            "resource": resource(&self.version),
            "requestKind": kind(request.kind_version()),
            "requestResource": resource(request.version),
            "operation": operation(request.operation),
            "userInfo": user_info,
            "dryRun": request.dry_run,
            "options": options(request),
        });
        if let Some(fields) = about.as_object_mut() {
            let texts = [
                ("subResource", request.subresource),
                ("requestSubResource", request.subresource),
                ("name", name(request)),
                ("namespace", namespace(request)),
            ];
            for (field, text) in texts {
                if !text.is_empty() {
                    fields.insert(field.to_owned(), text.into());
                }
            }
        }
        about
    }

    /// The review for a webhook.
    pub(crate) fn review(
        &self,
        request: &AdmissionRequest<'_>,
        version: ReviewVersion,
        uid: &str,
    ) -> Bytes {
        let about = self.request(request);
        let review = SentReview {
            kind: "AdmissionReview",
            api_version: version.api_version(),
            request: SentRequest {
                uid,
                about: about.as_object(),
                object: &self.object,
                old_object: &self.old_object,
            },
        };
        // Its keys are texts, and a vector takes all.
        serde_json::to_vec(&review).unwrap_or_default().into()
    }
}

/// A review as it is sent.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SentReview<'a> {
    kind: &'static str,
    api_version: &'static str,
    request: SentRequest<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SentRequest<'a> {
    uid: &'a str,
    #[serde(flatten)]
    about: Option<&'a Map<String, Value>>,
    object: &'a Value,
    old_object: &'a Value,
}

async fn shown(
    request: &AdmissionRequest<'_>,
    object: Option<&Object>,
    version: &str,
) -> Result<Value, ApiError> {
    let Some(object) = object else {
        return Ok(Value::Null);
    };
    if version == request.version {
        return Ok(object.clone().into_tree());
    }
    let shown = request.shown_in(object, version).await?;
    Ok(shown.into_tree())
}

/// The name of the object of a write. One that is not generated yet is not known.
fn name<'r>(request: &'r AdmissionRequest<'_>) -> &'r str {
    if !request.name.is_empty() {
        return request.name;
    }
    request.object.as_deref().map_or("", Object::name)
}

/// The namespace of a write; that of a namespace is its own name.
fn namespace<'r>(request: &'r AdmissionRequest<'_>) -> &'r str {
    let is_namespace =
        request.resource.group.is_empty() && request.resource.resource == "namespaces";
    if request.namespace.is_empty() && is_namespace {
        return name(request);
    }
    request.namespace
}

/// The options of the write, as far as they are known.
fn options(request: &AdmissionRequest<'_>) -> Value {
    let kind = match request.operation {
        Operation::Create => "CreateOptions",
        Operation::Update => "UpdateOptions",
        Operation::Delete => "DeleteOptions",
        Operation::Connect => return Value::Null,
    };
    let mut options = json!({"kind": kind, "apiVersion": "meta.k8s.io/v1"});
    if request.dry_run {
        options["dryRun"] = json!(["All"]);
    }
    options
}

/// What a webhook answers.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    pub(crate) is_allowed: bool,
    /// The answer to the client of a write that is not allowed.
    pub(crate) status: Option<Status>,
    /// A JSON patch; `None` without one.
    pub(crate) patch: Option<Vec<u8>>,
    pub(crate) annotations: BTreeMap<String, String>,
    pub(crate) warnings: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
struct Review {
    kind: String,
    api_version: String,
    response: Option<Response>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
struct Response {
    uid: Option<String>,
    allowed: Option<bool>,
    status: Option<Value>,
    patch: Option<String>,
    patch_type: Option<String>,
    audit_annotations: Option<BTreeMap<String, String>>,
    warnings: Option<Vec<String>>,
}

/// Reads the answer of a webhook to the review with this uid.
///
/// # Errors
/// Why it is none.
pub(crate) fn verdict(
    body: &[u8],
    version: ReviewVersion,
    uid: &str,
    may_patch: bool,
) -> Result<Verdict, String> {
    let review: Review = serde_json::from_slice(body).map_err(|error| error.to_string())?;
    let response = review.response.ok_or("webhook response was absent")?;
    let patch_type = response.patch_type;
    let patch = response.patch.unwrap_or_default();
    if version == ReviewVersion::V1 {
        let given = response.uid.unwrap_or_default();
        if given != uid {
            return Err(format!("expected response.uid={uid:?}, got {given:?}"));
        }
        let (group, of_group) = review
            .api_version
            .split_once('/')
            .unwrap_or(("", &review.api_version));
        if review.kind != "AdmissionReview" || review.api_version != version.api_version() {
            return Err(format!(
                "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got {group}/{of_group}, Kind={}",
                review.kind
            ));
        }
        let problem = match (may_patch, patch.is_empty(), patch_type.as_deref()) {
            (true, false, None) => "webhook returned response.patch but not response.patchType",
            (true, true, Some(_)) => "webhook returned response.patchType but not response.patch",
            (true, _, Some("")) => "webhook returned invalid response.patchType of \"\"",
            (false, false, _) => "validating webhook may not return response.patch",
            (false, _, Some(_)) => "validating webhook may not return response.patchType",
            _ => "",
        };
        if !problem.is_empty() {
            return Err(problem.to_owned());
        }
    }
    if let Some(other) =
        patch_type.filter(|name| version == ReviewVersion::V1 && name != "JSONPatch")
    {
        return Err(format!("unsupported patch type {other:?}"));
    }
    let patch = Some(patch).filter(|patch| may_patch && !patch.is_empty());
    let patch = patch.map(|patch| STANDARD.decode(patch)).transpose();
    Ok(Verdict {
        is_allowed: response.allowed.unwrap_or_default(),
        status: response.status.map(status).transpose()?,
        patch: patch.map_err(|error| format!("the patch is not base64: {error}"))?,
        annotations: response.audit_annotations.unwrap_or_default(),
        warnings: response.warnings.unwrap_or_default(),
    })
}

/// The status in an answer, which need not say that it is one.
fn status(mut status: Value) -> Result<Status, String> {
    if let Some(fields) = status.as_object_mut() {
        fields.insert("kind".to_owned(), "Status".into());
        fields.insert("apiVersion".to_owned(), "v1".into());
        fields.retain(|_, value| !value.is_null());
    }
    serde_json::from_value(status).map_err(|error| error.to_string())
}

/// The error of a write that a webhook of this name does not allow.
pub(crate) fn denial(webhook: &str, status: Option<Status>) -> ApiError {
    let mut status = status.unwrap_or_else(|| Status::failure(&ApiError::internal_text("")));
    let by = format!("admission webhook {webhook:?} denied the request");
    status.message = match (&*status.message, &*status.reason) {
        ("", "") => format!("{by} without explanation"),
        ("", reason) => format!("{by}: {reason}"),
        (message, _) => format!("{by}: {message}"),
    };
    ApiError::of_status(status)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(version: ReviewVersion, response: &Value, may_patch: bool) -> Result<Verdict, String> {
        let review = json!({"apiVersion": version.api_version(), "kind": "AdmissionReview", "response": response});
        verdict(review.to_string().as_bytes(), version, "u", may_patch)
    }

    #[test]
    fn an_answer_is_for_its_review() {
        let good =
            json!({"uid": "u", "allowed": true, "warnings": ["w"], "auditAnnotations": {"a": "b"}});
        let found = read(ReviewVersion::V1, &good, false).unwrap();
        assert!(found.is_allowed && found.patch.is_none() && found.status.is_none());
        assert_eq!(found.warnings, ["w"]);
        assert_eq!(found.annotations["a"], "b");
        let other = json!({"uid": "v", "allowed": true});
        let why = read(ReviewVersion::V1, &other, false).unwrap_err();
        assert_eq!(why, "expected response.uid=\"u\", got \"v\"");
        assert!(read(ReviewVersion::V1Beta1, &other, false).is_ok());
        let body =
            json!({"apiVersion": "admission.k8s.io/v1beta1", "kind": "Review", "response": good});
        let why = verdict(body.to_string().as_bytes(), ReviewVersion::V1, "u", false).unwrap_err();
        assert_eq!(
            why,
            "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got admission.k8s.io/v1beta1, Kind=Review"
        );
        let why = verdict(b"<html>", ReviewVersion::V1, "u", false).unwrap_err();
        assert!(why.starts_with("expected value"), "{why}");
        let why = verdict(b"{}", ReviewVersion::V1Beta1, "u", false).unwrap_err();
        assert_eq!(why, "webhook response was absent");
        // An answer without a word does not allow.
        assert!(
            !read(ReviewVersion::V1, &json!({"uid": "u"}), false)
                .unwrap()
                .is_allowed
        );
    }

    #[test]
    fn a_patch_has_a_type_and_is_of_a_mutating_webhook() {
        let answer = |fields: &Value| {
            let mut answer = json!({"uid": "u", "allowed": true});
            for (name, value) in fields.as_object().unwrap() {
                answer[name] = value.clone();
            }
            answer
        };
        let whole = answer(&json!({"patch": "W10=", "patchType": "JSONPatch"}));
        let found = read(ReviewVersion::V1, &whole, true).unwrap();
        assert_eq!(found.patch.as_deref(), Some(&b"[]"[..]));
        for (fields, may_patch, why) in [
            (
                json!({"patch": "W10="}),
                true,
                "webhook returned response.patch but not response.patchType",
            ),
            (
                json!({"patchType": "JSONPatch"}),
                true,
                "webhook returned response.patchType but not response.patch",
            ),
            (
                json!({"patch": "W10=", "patchType": ""}),
                true,
                "webhook returned invalid response.patchType of \"\"",
            ),
            (
                json!({"patch": "W10=", "patchType": "Merge"}),
                true,
                "unsupported patch type \"Merge\"",
            ),
            (
                json!({"patch": "W10=", "patchType": "JSONPatch"}),
                false,
                "validating webhook may not return response.patch",
            ),
            (
                json!({"patchType": "JSONPatch"}),
                false,
                "validating webhook may not return response.patchType",
            ),
        ] {
            let found = read(ReviewVersion::V1, &answer(&fields), may_patch);
            assert_eq!(found.unwrap_err(), why, "{fields}");
        }
        let untyped = answer(&json!({"patch": "W10="}));
        assert!(
            read(ReviewVersion::V1Beta1, &untyped, true)
                .unwrap()
                .patch
                .is_some()
        );
        assert!(
            read(ReviewVersion::V1Beta1, &untyped, false)
                .unwrap()
                .patch
                .is_none()
        );
        let malformed = answer(&json!({"patch": "%", "patchType": "JSONPatch"}));
        let why = read(ReviewVersion::V1, &malformed, true).unwrap_err();
        assert!(why.starts_with("the patch is not base64: "), "{why}");
    }

    #[test]
    fn a_denial_says_why_and_by_whom() {
        let by = "admission webhook \"a.b.c\" denied the request";
        for (status, code, message) in [
            (
                json!({"message": "no", "code": 422, "reason": "Invalid"}),
                422,
                format!("{by}: no"),
            ),
            (
                json!({"reason": "Gone", "code": 200}),
                400,
                format!("{by}: Gone"),
            ),
            (
                json!({"metadata": null, "status": "Success"}),
                400,
                format!("{by} without explanation"),
            ),
        ] {
            let error = denial("a.b.c", Some(super::status(status).unwrap()));
            assert_eq!(error.message, message);
            let foreign = error.foreign.unwrap();
            assert_eq!((foreign.code, &*foreign.status), (Some(code), "Failure"));
        }
        let error = denial("a.b.c", None);
        assert_eq!(error.message, format!("{by} without explanation"));
    }

    #[test]
    fn the_first_version_that_is_known_is_sent() {
        let of = |versions: &[&str]| {
            let versions: Vec<String> = versions.iter().map(|name| (*name).to_owned()).collect();
            ReviewVersion::of(&versions)
        };
        assert_eq!(of(&["v2", "v1beta1", "v1"]), Ok(ReviewVersion::V1Beta1));
        assert_eq!(of(&["v1"]), Ok(ReviewVersion::V1));
        assert!(
            of(&["v2"])
                .unwrap_err()
                .contains("known AdmissionReview versions")
        );
    }
}
