//! The objects: ConfigMaps of about 2 KiB with labels, annotations, an owner and managedFields.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, Result};
use apiloom_client::Client;
use apiloom_client::config::{Config, Kubeconfig};
use apiloom_kinds::core::v1::ConfigMap;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use serde_json::{Value, json};

/// Where the objects are.
pub(crate) const NAMESPACE: &str = "informers";

/// A ConfigMap as a client writes it.
pub(crate) fn config_map(number: usize) -> Value {
    let data: BTreeMap<String, String> = (0..12)
        .map(|field| (format!("key-{field}"), format!("{number:08}-").repeat(11)))
        .collect();
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {
            "name": format!("config-{number}"), "namespace": NAMESPACE,
            "labels": {"app": format!("app-{}", number % 50), "tier": "backend", "app.kubernetes.io/managed-by": "load"},
            "annotations": {"example.com/revision": "1", "example.com/note": "one of many"},
        },
        "data": data,
    })
}

/// The client of a kubeconfig file.
pub(crate) fn client(kubeconfig: &Path) -> Result<Client> {
    let kubeconfig = Kubeconfig::read(&[kubeconfig.to_owned()])?;
    let config = Config::from_kubeconfig(&kubeconfig, None)?;
    Ok(config.client()?.build()?)
}

/// Creates the objects that are missing.
pub(crate) async fn fill(kubeconfig: &Path, count: usize) -> Result<()> {
    let client = client(kubeconfig)?;
    let path = "/api/v1/namespaces";
    let namespace = json!({"metadata": {"name": NAMESPACE}});
    let created = client.request(http::Method::POST, path);
    match created.json_body(&namespace).await {
        Err(error) if !error.is_already_exists() => return Err(error).context("a namespace"),
        _ => {}
    }
    let config_maps = client.namespaced::<ConfigMap>(NAMESPACE);
    stream::iter((0..count).map(anyhow::Ok))
        .try_for_each_concurrent(32, |number| {
            let config_maps = &config_maps;
            async move {
                let object: ConfigMap = serde_json::from_value(config_map(number))?;
                match config_maps.create(&object).field_manager("load").await {
                    Err(error) if error.is_already_exists() => Ok(()),
                    result => result.map(|_| ()).context("a ConfigMap"),
                }
            }
        })
        .await?;
    let mut others = config_maps.list().limit(1).stream();
    others.next().await.context("there are objects")??;
    Ok(())
}
