//! The admission plugin APIServiceQuota: bounds how many versions are left to other servers. Each of them is looked at all the time,
//! and its documents are kept.

use apiloom_meta::{ApiError, Object};
use apiloom_registry::{Admission, AdmissionRequest, Lister};
use async_trait::async_trait;

use crate::apiregistration::v1::APIService;

/// Maximum number of APIServices with a server of their own. An installation has some dozen.
pub(super) const MAX_SERVERS: usize = 1_000;

/// Refuses APIServices of other servers above the bound.
pub(super) struct APIServiceQuota(pub(super) Lister<APIService>);

#[async_trait]
impl Admission for APIServiceQuota {
    fn name(&self) -> &'static str {
        "APIServiceQuota"
    }

    async fn validate(&self, request: &AdmissionRequest<'_>) -> Result<(), ApiError> {
        let is_new = request.is::<APIService>()
            && request.object.as_deref().is_some_and(is_remote)
            && !request.old_object.is_some_and(is_remote);
        if !is_new {
            return Ok(());
        }
        self.0.ready().await?;
        let known = self.0.list()?;
        let used = known.iter().filter(|known| known.spec.service.is_some());
        let used = used.count();
        if used < MAX_SERVERS {
            return Ok(());
        }
        let why = format!(
            "exceeded quota: apiservices, requested: servers=1, used: servers={used}, limited: servers={MAX_SERVERS}"
        );
        Err(request.forbidden(&why))
    }
}

/// Whether an APIService leaves its version to another server.
fn is_remote(object: &Object) -> bool {
    let spec = object.fields().get("spec");
    let service = spec.and_then(|spec| spec.get("service"));
    service.is_some_and(serde_json::Value::is_object)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use apiloom_meta::Resource as _;
    use apiloom_registry::{CreateOptions, Endpoint, Registry, RequestContext};
    use apiloom_storage::Memory;
    use serde_json::{Value, json};

    use super::*;
    use crate::built_in::BuiltIn as _;

    async fn create(endpoint: &Endpoint, number: usize, service: Value) -> Result<(), ApiError> {
        let group = format!("g{number}.io");
        let object = json!({"metadata": {"name": format!("v1.{group}")}, "spec": {
            "group": group, "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 100,
            "insecureSkipTLSVerify": !service.is_null(), "service": service,
        }});
        let object = Object::from_value(object).unwrap();
        let (ctx, options) = (RequestContext::default(), CreateOptions::default());
        let created = endpoint.writes().create(&ctx, None, object, &options);
        created.await.map(drop)
    }

    #[tokio::test]
    async fn versions_of_other_servers_have_a_bound() {
        let mut builder = Registry::builder(Memory::new());
        APIService::register(&mut builder);
        let registry = Arc::new(builder.build().unwrap());
        registry.start().await.unwrap();
        let (group, version) = (APIService::GROUP, APIService::VERSION);
        let endpoint = registry.endpoint(group, version, APIService::PLURAL);
        let endpoint = endpoint.unwrap();
        let service = json!({"namespace": "a", "name": "b", "port": 443});
        for number in 0..MAX_SERVERS {
            create(&endpoint, number, service.clone()).await.unwrap();
        }
        let refused = create(&endpoint, MAX_SERVERS, service).await.unwrap_err();
        assert_eq!(
            refused.message,
            "apiservices.apiregistration.k8s.io \"v1.g1000.io\" is forbidden: exceeded quota: apiservices, \
             requested: servers=1, used: servers=1000, limited: servers=1000"
        );
        create(&endpoint, MAX_SERVERS, Value::Null).await.unwrap();
    }
}
