//! A kind without a store: creates that a handler answers, and nothing else.

use std::fs;

use apiloom::meta::GroupResource;
use apiloom::prelude::*;
use apiloom::server::{
    self, Backend, Config, CreateOptions, Handler, RequestContext, WatchCacheSize, async_trait,
};
use apiloom::storage::Memory;
use apiloom_tests::{Client, Kubectl};
use serde_json::json;

use super::with_server_of;

/// TasteReview says whether a meal tastes good to the user who asks.
#[apiloom::resource(group = "kitchen.example.com", version = "v1", namespaced, store = none)]
pub struct TasteReview {
    pub metadata: ObjectMeta,
    pub spec: TasteReviewSpec,
    pub status: Option<TasteReviewStatus>,
}

/// The line where `TasteReview` is declared.
const LINE: u32 = line!() - 7;

#[apiloom::api]
pub struct TasteReviewSpec {
    #[api(len = 1..=20)]
    pub meal: String,
    #[api(default = 1)]
    pub salt: i32,
}

#[apiloom::api]
pub struct TasteReviewStatus {
    pub tastes: bool,
    pub user: String,
    pub dry_run: bool,
}

struct Taster;

#[async_trait]
impl Handler<TasteReview> for Taster {
    async fn create(
        &self,
        ctx: &RequestContext,
        mut review: TasteReview,
        options: &CreateOptions,
    ) -> Result<TasteReview, ApiError> {
        if review.spec.meal == "poison" {
            return Err(ApiError::bad_request("poison is not reviewed"));
        }
        if review.spec.salt > 3 {
            ctx.warn("much salt");
        }
        review.status = Some(TasteReviewStatus {
            tastes: review.spec.salt <= 3,
            user: ctx.user.name.clone(),
            dry_run: options.dry_run,
        });
        Ok(review)
    }
}

const REVIEWS: &str = "/apis/kitchen.example.com/v1/namespaces/default/tastereviews";

fn review(spec: &serde_json::Value) -> serde_json::Value {
    json!({"apiVersion": "kitchen.example.com/v1", "kind": "TasteReview", "spec": spec})
}

async fn with_taster<F: Future<Output = ()>>(run: impl FnOnce(Client, std::path::PathBuf) -> F) {
    with_server_of(
        |builder| builder.kind::<TasteReview>().handler::<TasteReview>(Taster),
        run,
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handler_answers_creates_and_nothing_is_stored() {
    with_taster(|client, _| async move {
        let created = client
            .post(REVIEWS, &review(&json!({"meal": "soup"})))
            .await;
        assert_eq!(created.code, 201, "{}", created.text());
        let object = created.json();
        assert_eq!(object["metadata"], json!({"namespace": "default"}));
        assert_eq!(object["kind"], "TasteReview");
        assert_eq!(object["spec"], json!({"meal": "soup", "salt": 1}));
        assert_eq!(object["status"]["tastes"], true);
        assert!(
            object["status"]["user"]
                .as_str()
                .is_some_and(|user| !user.is_empty())
        );

        // Names are not needed, mean nothing, and are free again.
        let mut named = review(&json!({"meal": "soup"}));
        named["metadata"] = json!({"name": "a"});
        for _ in 0..2 {
            assert_eq!(client.post(REVIEWS, &named).await.code, 201);
        }
        // A namespace that does not exist is not told.
        let elsewhere = REVIEWS.replace("default", "nowhere");
        let answer = client
            .post(&elsewhere, &review(&json!({"meal": "soup"})))
            .await;
        assert_eq!(answer.code, 201, "{}", answer.text());

        let dry = format!("{REVIEWS}?dryRun=All");
        let answer = client.post(&dry, &review(&json!({"meal": "soup"}))).await;
        assert_eq!(answer.json()["status"]["dryRun"], true);

        let refused = client
            .post(REVIEWS, &review(&json!({"meal": "poison"})))
            .await;
        assert_eq!(
            (refused.code, &refused.json()["message"]),
            (400, &json!("poison is not reviewed"))
        );
        let invalid = client.post(REVIEWS, &review(&json!({"meal": ""}))).await;
        assert_eq!(
            (invalid.code, &invalid.json()["reason"]),
            (422, &json!("Invalid"))
        );
        let strict = format!("{REVIEWS}?fieldValidation=Strict");
        let unknown = client
            .post(&strict, &review(&json!({"meal": "soup", "oil": 1})))
            .await;
        assert_eq!(
            (unknown.code, &unknown.json()["reason"]),
            (400, &json!("BadRequest"))
        );

        for path in [REVIEWS, &format!("{REVIEWS}?watch=true")] {
            assert_eq!(client.get(path).await.code, 405, "{path}");
        }
        assert_eq!(client.get(&format!("{REVIEWS}/a")).await.code, 404);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_list_the_create_alone() {
    with_taster(|client, _| async move {
        let list = client.get("/apis/kitchen.example.com/v1").await.json();
        let entries = list["resources"].as_array().unwrap();
        let entry = entries
            .iter()
            .find(|entry| entry["name"] == "tastereviews")
            .unwrap();
        assert_eq!(entry["verbs"], json!(["create"]));
        assert_eq!(entry.get("storageVersionHash"), None);

        let openapi = client
            .get("/openapi/v3/apis/kitchen.example.com/v1")
            .await
            .json();
        let paths = openapi["paths"].as_object().unwrap();
        let of_reviews: Vec<_> = paths
            .iter()
            .filter(|(path, _)| path.contains("tastereviews"))
            .collect();
        let [(path, operations)] = of_reviews.as_slice() else {
            panic!("{of_reviews:?}");
        };
        assert_eq!(
            *path,
            "/apis/kitchen.example.com/v1/namespaces/{namespace}/tastereviews"
        );
        let methods: Vec<&String> = operations.as_object().unwrap().keys().collect();
        assert_eq!(methods, ["parameters", "post"]);
        let schemas = openapi["components"]["schemas"].as_object().unwrap();
        assert!(!schemas.keys().any(|name| name.ends_with("TasteReviewList")));

        // No Tables, as in kube-apiserver.
        let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
        let either = format!("{table},application/json");
        let json_body = ("content-type", "application/json");
        let body = review(&json!({"meal": "soup"}));
        let answer = client
            .call(
                "POST",
                REVIEWS,
                &[("accept", table), json_body],
                body.to_string(),
            )
            .await;
        assert_eq!(answer.code, 406, "{}", answer.text());
        let answer = client
            .call(
                "POST",
                REVIEWS,
                &[("accept", &either), json_body],
                body.to_string(),
            )
            .await;
        assert_eq!(
            (answer.code, &answer.json()["kind"]),
            (201, &json!("TasteReview"))
        );
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn kubectl_creates_what_is_not_stored() {
    with_taster(|_, kubeconfig| async move {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("review.json");
        let mut body = review(&json!({"meal": "soup", "salt": 5}));
        body["metadata"] = json!({"name": "mine"});
        fs::write(&file, body.to_string()).unwrap();
        let run = tokio::task::spawn_blocking(move || {
            let kubectl = Kubectl::new("1.36", &kubeconfig);
            kubectl.run(
                &["create", "-o", "yaml", "-f", &file.display().to_string()],
                "",
            )
        });
        let output = run.await.unwrap();
        assert!(output.code == 0, "{}", output.stderr);
        assert!(output.stdout.contains("tastes: false"), "{}", output.stdout);
        assert!(
            output.stderr.contains("Warning: much salt"),
            "{}",
            output.stderr
        );
    })
    .await;
}

#[tokio::test]
async fn a_kind_without_store_and_handler_is_refused_with_its_place() {
    let mut config = Config::new("kitchen", "unused");
    config.backend = Backend::Memory;
    let builder = server::builder(config).kind::<TasteReview>();
    let error = builder.dump().unwrap_err().to_string();
    let expected = format!(
        "{}:{LINE}: TasteReview of kitchen.example.com/v1: it has no store, and no handler answers creates: add \
         `.handler::<TasteReview>(..)` to the builder",
        file!()
    );
    assert_eq!(error, expected);
}

#[tokio::test]
async fn settings_of_a_store_for_a_kind_without_one_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = Config::new("kitchen", dir.path());
    config.backend = Backend::Memory;
    config.watch_cache_sizes.push(WatchCacheSize {
        resource: GroupResource::new("kitchen.example.com", "tastereviews"),
        changes: 0,
    });
    let builder = server::builder(config)
        .kind::<TasteReview>()
        .handler::<TasteReview>(Taster)
        .storage_of::<TasteReview>(Memory::new());
    let error = builder.build().await.err().unwrap().to_string();
    for expected in [
        "a store for tastereviews.kitchen.example.com, which has no store",
        "a watch cache size for tastereviews.kitchen.example.com (0), which has no store",
    ] {
        assert!(error.contains(expected), "{error}");
    }
}
