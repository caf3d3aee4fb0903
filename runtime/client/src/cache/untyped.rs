//! Informers of resources that are known at run time: whole objects as JSON, and metadata alone.

use super::factory::{self, InformerFactory};
use super::informer::Informer;
use crate::client::{ApiResource, ResourceClient, Scope};
use crate::dynamic::{DynamicObject, PartialObjectMetadata};

/// An informer of objects without a Rust type.
pub type DynamicInformer = Informer<DynamicObject>;

/// An informer of metadata alone, for resources whose objects are large.
///
/// Servers convert the objects for it (`PartialObjectMetadata`). One that does not know how responds with 406, which is an
/// error of the cache that says so: [`DynamicInformer`] reads whole objects of any server.
pub type MetadataInformer = Informer<PartialObjectMetadata>;

impl InformerFactory {
    /// The informer of a namespaced resource, in the namespace of this factory or in all.
    ///
    /// ```no_run
    /// # use apiloom_client::{ApiResource, Client};
    /// # use apiloom_client::cache::InformerFactory;
    /// # fn example(client: &Client) {
    /// let deployments = ApiResource::new("apps", "v1", "Deployment", "deployments");
    /// let informer = InformerFactory::new(client).dynamic_informer(&deployments);
    /// let metadata = InformerFactory::new(client).metadata_informer(&deployments);
    /// # }
    /// ```
    pub fn dynamic_informer(&self, resource: &ApiResource) -> DynamicInformer {
        let (client, resource) = (self.client(), resource.clone());
        match self.only_namespace() {
            Some(namespace) => self.make_dynamic(&client.dynamic_in(namespace, resource)),
            None => self.make_dynamic(&client.dynamic_everywhere(resource)),
        }
    }

    /// The informer of a resource without namespaces.
    pub fn dynamic_cluster_informer(&self, resource: &ApiResource) -> DynamicInformer {
        self.make_dynamic(&self.client().dynamic_in_cluster(resource.clone()))
    }

    /// Nothing is fuller than JSON.
    fn make_dynamic<S: Scope>(&self, client: &ResourceClient<DynamicObject, S>) -> DynamicInformer {
        self.make_of(client, |_| None)
    }

    /// The informer of the metadata of a namespaced resource, in the namespace of this factory or in all. If the factory has a
    /// typed or dynamic informer of these objects when this one is started, they come from that one; see [`InformerFactory`].
    pub fn metadata_informer(&self, resource: &ApiResource) -> MetadataInformer {
        let (client, resource) = (self.client(), resource.clone());
        match self.only_namespace() {
            Some(namespace) => {
                let client = client.dynamic_in(namespace, resource);
                self.make_metadata(&client.metadata_only())
            }
            None => {
                let client = client.dynamic_everywhere(resource);
                self.make_metadata(&client.metadata_only())
            }
        }
    }

    /// The informer of the metadata of a resource without namespaces.
    pub fn metadata_cluster_informer(&self, resource: &ApiResource) -> MetadataInformer {
        let client = self.client().dynamic_in_cluster(resource.clone());
        self.make_metadata(&client.metadata_only())
    }

    fn make_metadata<S: Scope>(
        &self,
        client: &ResourceClient<PartialObjectMetadata, S>,
    ) -> MetadataInformer {
        self.make_of(client, factory::metadata)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::client::Client;
    use crate::object::HasMetadata as _;
    use crate::scripted::{End, Script};

    const LIMIT: Duration = Duration::from_secs(5);
    const AS_METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";

    fn pots() -> ApiResource {
        ApiResource::new("kitchen.example.com", "v1", "Pot", "pots")
    }

    fn lines(lines: &[&str]) -> Vec<String> {
        lines.iter().map(|line| format!("{line}\n")).collect()
    }

    /// A pot, and the end of the initial events.
    fn synced() -> Vec<String> {
        lines(&[
            r#"{"type":"ADDED","object":{"kind":"Pot","metadata":{"name":"a","namespace":"ns","resourceVersion":"3","labels":{"app":"x"},"managedFields":[{"manager":"m"}]},"spec":{"litres":2}}}"#,
            r#"{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"9","annotations":{"k8s.io/initial-events-end":"true"}}}}"#,
        ])
    }

    fn script(pieces: &[String]) -> Script {
        let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
        Script::new().pieces(&pieces, End::Open)
    }

    #[tokio::test(start_paused = true)]
    async fn dynamic_and_metadata_informers_are_known_by_their_resource() {
        let script = script(&synced());
        let factory = InformerFactory::new(&Client::new(script.clone())).namespace("ns");
        let informer = factory.dynamic_informer(&pots());
        factory.start();
        factory.wait_for_sync(LIMIT).await.expect("synced");
        let pot = informer.lister().get("ns", "a").expect("it is there");
        assert_eq!(pot.data["spec"]["litres"], 2);
        assert_eq!(pot.metadata.managed_fields, [], "left out");
        // The same one, which reads nothing again.
        let same = factory.dynamic_informer(&pots());
        assert_eq!(same.lister().len(), 1);
        let lines = script.lines();
        assert_eq!(lines.len(), 1);
        assert!(
            lines[0].starts_with("GET /apis/kitchen.example.com/v1/namespaces/ns/pots?"),
            "{lines:?}"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_metadata_informer_asks_for_metadata_alone() {
        let script = script(&synced());
        let factory = InformerFactory::new(&Client::new(script.clone()));
        let informer = factory.metadata_cluster_informer(&pots());
        factory.start();
        factory.wait_for_sync(LIMIT).await.expect("synced");
        let pot = informer.lister().get("ns", "a").expect("it is there");
        assert_eq!(pot.label("app"), Some("x"));
        let sent = script.sent();
        assert_eq!(sent[0].headers["accept"], AS_METADATA);
        assert!(
            sent[0]
                .uri
                .starts_with("/apis/kitchen.example.com/v1/pots?")
        );
    }

    #[tokio::test(start_paused = true)]
    async fn metadata_comes_from_an_informer_of_the_whole_objects() {
        let mut pieces = synced();
        pieces.extend(lines(&[
            r#"{"type":"ADDED","object":{"kind":"Pot","metadata":{"name":"b","namespace":"ns","resourceVersion":"10"}}}"#,
            r#"{"type":"MODIFIED","object":{"kind":"Pot","metadata":{"name":"a","namespace":"ns","resourceVersion":"11","labels":{"app":"y"}},"spec":{}}}"#,
            r#"{"type":"DELETED","object":{"kind":"Pot","metadata":{"name":"b","namespace":"ns","resourceVersion":"12"}}}"#,
        ]));
        let mut script = script(&pieces);
        for _ in 0..8 {
            // Later watches, in which nothing happens.
            script = script.pieces(&[], End::Open);
        }
        let factory = InformerFactory::new(&Client::new(script.clone()));
        let whole = factory.dynamic_informer(&pots());
        let metadata = factory.metadata_informer(&pots());
        assert_eq!(factory.clone().metadata_informer(&pots()).lister().len(), 0);
        // It starts the other one.
        metadata.start();
        metadata.wait_for_sync(LIMIT).await.expect("synced");
        let lister = metadata.lister();
        let is_changed = || {
            lister
                .get("ns", "a")
                .is_some_and(|pot| pot.label("app") == Some("y"))
        };
        let changed = lister.wait_until(|| is_changed() && lister.len() == 1);
        tokio::time::timeout(LIMIT, changed)
            .await
            .expect("all changes");
        assert_eq!(whole.lister().len(), 1);
        assert_eq!(script.lines().len(), 1, "one watch: {:?}", script.lines());
        // Without an event it is neither taken for broken nor opened again.
        let watches = metadata.metrics().watches;
        tokio::time::sleep(Duration::from_secs(1500)).await;
        assert_eq!(
            (metadata.metrics().watches, metadata.metrics().failures),
            (watches, 0)
        );
        factory.shutdown().await;
    }

    #[tokio::test(start_paused = true)]
    async fn metadata_of_other_objects_has_a_watch_of_its_own() {
        let factory = |script: &Script| InformerFactory::new(&Client::new(script.clone()));
        let of_namespace = script(&synced());
        let all = factory(&of_namespace);
        let _whole = all.dynamic_informer(&pots());
        let metadata = all.namespace("ns").metadata_informer(&pots());
        metadata.start();
        metadata.wait_for_sync(LIMIT).await.expect("synced");
        assert_eq!(of_namespace.sent()[0].headers["accept"], AS_METADATA);
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_without_metadata_alone_gives_an_error_that_says_so() {
        let refusal = r#"{"kind":"Status","apiVersion":"v1","status":"Failure","message":"only the following media types are accepted: application/json","reason":"NotAcceptable","code":406}"#;
        let mut script = Script::new();
        for _ in 0..20 {
            script = script.answer(406, refusal);
        }
        let factory = InformerFactory::new(&Client::new(script));
        let informer = factory.metadata_informer(&pots());
        informer.start();
        let error = informer.wait_for_sync(LIMIT).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "the cache of pots.kitchen.example.com has no complete state after 5s: the server does not send the \
              metadata of pots.kitchen.example.com alone (406: only the following media types are accepted: \
              application/json); a dynamic or typed informer reads whole objects"
        );
    }
}
