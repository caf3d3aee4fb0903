//! Where services are reached: conversion webhooks, and other API servers.
//!
//! Definitions name a service, not an address. A resolver only says where to connect: the certificate of the service must
//! have its name, and requests name it as their host, wherever it is.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::path::Path;

use apiloom_client::config::read_file;
use apiloom_meta::codec::{Decoder, Format};
use async_trait::async_trait;

use super::ServerError;

/// The port of a service without a port.
pub const DEFAULT_SERVICE_PORT: u16 = 443;

/// A port of a service.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServicePort {
    /// The namespace of the service.
    pub namespace: String,
    /// The name of the service.
    pub name: String,
    /// The port of the service.
    pub port: u16,
}

impl ServicePort {
    /// The host name of the service in a cluster, `NAME.NAMESPACE.svc`, which its certificate must have.
    pub fn host(&self) -> String {
        format!("{}.{}.svc", self.name, self.namespace)
    }

    /// The URL of the service in a cluster: `https://NAME.NAMESPACE.svc:PORT`.
    pub fn url(&self) -> String {
        format!("https://{}:{}", self.host(), self.port)
    }
}

impl fmt::Display for ServicePort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}:{}", self.namespace, self.name, self.port)
    }
}

/// Where a port of a service is reached, with TLS.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServiceAddress {
    /// A host name or an IP address; one of IPv6 without brackets.
    pub host: String,
    /// The port there.
    pub port: u16,
}

impl From<SocketAddr> for ServiceAddress {
    fn from(address: SocketAddr) -> Self {
        Self {
            host: address.ip().to_string(),
            port: address.port(),
        }
    }
}

impl fmt::Display for ServiceAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

/// Why a service cannot be reached.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ServiceError {
    /// There is no such service.
    #[error("service {:?} not found in namespace {:?}", .0.name, .0.namespace)]
    NotFound(ServicePort),
    /// The service has no such port.
    #[error("no service port {} found for service {:?} in namespace {:?}", .0.port, .0.name, .0.namespace)]
    PortNotFound(ServicePort),
    /// Nothing has noted where the service is served.
    #[error("endpoints {:?} not found in namespace {:?}", .0.name, .0.namespace)]
    EndpointsNotFound(ServicePort),
    /// Nothing serves the service at present.
    #[error("no endpoints available for service {:?} in namespace {:?}", .0.name, .0.namespace)]
    NoEndpoints(ServicePort),
    /// Another problem, such as that the services cannot be read.
    #[error("{0}")]
    Unavailable(String),
}

/// Finds the address of a service. Given to [`Builder::service_resolver`](super::Builder::service_resolver).
///
/// ```
/// use apiloom_server::services::{ServiceAddress, ServiceError, ServicePort, ServiceResolver};
///
/// /// All services are behind one proxy.
/// #[derive(Debug)]
/// struct Proxy(ServiceAddress);
///
/// #[apiloom_server::async_trait]
/// impl ServiceResolver for Proxy {
///     async fn resolve(&self, _: &ServicePort) -> Result<ServiceAddress, ServiceError> {
///         Ok(self.0.clone())
///     }
/// }
/// ```
#[async_trait]
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not find addresses of services",
    note = "implement `ServiceResolver`, or use `ServiceMap`"
)]
pub trait ServiceResolver: fmt::Debug + Send + Sync + 'static {
    /// The address of a port of a service. Called before each request to the service, so it answers quickly from memory; a
    /// request that goes to another address than the one before gets another connection.
    ///
    /// # Errors
    /// If there is none at present. The request fails, and the next one asks again.
    async fn resolve(&self, service: &ServicePort) -> Result<ServiceAddress, ServiceError>;
}

/// Leaves services to the DNS of a cluster: `NAME.NAMESPACE.svc`. Used by a server without another resolver.
#[derive(Clone, Copy, Debug, Default)]
pub struct ClusterDns;

#[async_trait]
impl ServiceResolver for ClusterDns {
    async fn resolve(&self, service: &ServicePort) -> Result<ServiceAddress, ServiceError> {
        Ok(ServiceAddress {
            host: service.host(),
            port: service.port,
        })
    }
}

/// Addresses of services in a map, for servers outside of a cluster: the file of `--service-resolver`.
///
/// ```
/// use apiloom_server::services::ServiceMap;
///
/// let map = ServiceMap::parse("
/// ## The webhook of an operator that runs here
/// default/hook: https://127.0.0.1:9443
/// kube-system/metrics:8443: https://metrics.example.com
/// ")?;
/// # assert!(ServiceMap::parse("hook: https://a").is_err());
/// # let _ = map;
/// # Ok::<(), Vec<String>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServiceMap(BTreeMap<ServicePort, ServiceAddress>);

impl ServiceMap {
    /// A map without services.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a service, or replaces its address.
    #[must_use]
    pub fn with(mut self, service: ServicePort, address: impl Into<ServiceAddress>) -> Self {
        self.0.insert(service, address.into());
        self
    }

    /// Reads a map of `NAMESPACE/NAME:PORT` to `https://HOST:PORT` in YAML or JSON. A port that is missing is 443.
    ///
    /// # Errors
    /// One line for each entry that cannot be used.
    pub fn parse(text: &str) -> Result<Self, Vec<String>> {
        let document = Decoder::new(Format::Yaml).value(text.as_bytes());
        let document = document.map_err(|error| vec![error.to_string()])?;
        let Some(entries) = document.as_object() else {
            let problem = "it must be a map of NAMESPACE/NAME:PORT to https://HOST:PORT";
            return Err(vec![problem.to_owned()]);
        };
        let (mut map, mut problems) = (Self::new(), Vec::new());
        for (service, url) in entries {
            let parsed = parse_service(service).and_then(|service| {
                let url = url.as_str().ok_or("its URL must be a text")?;
                Ok((service, parse_url(url)?))
            });
            match parsed {
                Ok((service, address)) if !map.0.contains_key(&service) => {
                    map = map.with(service, address);
                }
                Ok((port, _)) => problems.push(format!("{service:?}: {port} has an entry already")),
                Err(problem) => problems.push(format!("{service:?}: {problem}")),
            }
        }
        if problems.is_empty() {
            Ok(map)
        } else {
            Err(problems)
        }
    }

    /// Reads a file; see [`ServiceMap::parse`].
    ///
    /// # Errors
    /// A file that cannot be read, or has entries that cannot be used.
    pub fn read(path: &Path) -> Result<Self, ServerError> {
        let error = |reason: String| ServerError::File {
            path: path.to_owned(),
            reason: format!("cannot read the addresses of services: {reason}"),
        };
        let text = read_file(path).map_err(|problem| error(problem.to_string()))?;
        let text =
            String::from_utf8(text).map_err(|_| error("it is no text in UTF-8".to_owned()))?;
        Self::parse(&text).map_err(|problems| error(problems.join("; ")))
    }
}

fn parse_service(text: &str) -> Result<ServicePort, &'static str> {
    const FORM: &str =
        "a service is NAMESPACE/NAME or NAMESPACE/NAME:PORT, such as default/hook:443";
    let (namespace, name) = text.split_once('/').ok_or(FORM)?;
    let (name, port) = match name.split_once(':') {
        Some((name, port)) => (name, port.parse().map_err(|_| FORM)?),
        None => (name, DEFAULT_SERVICE_PORT),
    };
    if namespace.is_empty() || name.is_empty() || name.contains('/') || port == 0 {
        return Err(FORM);
    }
    Ok(ServicePort {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        port,
    })
}

/// A URL of a host and a port: paths are those of the requests.
fn parse_url(text: &str) -> Result<ServiceAddress, &'static str> {
    const FORM: &str =
        "the URL must be https://HOST or https://HOST:PORT, such as https://127.0.0.1:9443";
    let uri: http::Uri = text.parse().map_err(|_| FORM)?;
    let authority = uri.authority().ok_or(FORM)?;
    let has_more = uri.query().is_some()
        || !matches!(uri.path(), "" | "/")
        || authority.as_str().contains('@');
    if uri.scheme_str() != Some("https") || authority.host().is_empty() || has_more {
        return Err(FORM);
    }
    let has_port = authority.as_str().len() > authority.host().len();
    let port = match authority.port_u16() {
        Some(port) => port,
        None if has_port => return Err(FORM),
        None => DEFAULT_SERVICE_PORT,
    };
    Ok(ServiceAddress {
        host: authority.host().trim_matches(['[', ']']).to_owned(),
        port,
    })
}

#[async_trait]
impl ServiceResolver for ServiceMap {
    async fn resolve(&self, service: &ServicePort) -> Result<ServiceAddress, ServiceError> {
        if let Some(address) = self.0.get(service) {
            return Ok(address.clone());
        }
        let is_known = self
            .0
            .keys()
            .any(|known| known.namespace == service.namespace && known.name == service.name);
        Err(if is_known {
            ServiceError::PortNotFound(service.clone())
        } else {
            ServiceError::NotFound(service.clone())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn port(namespace: &str, name: &str, port: u16) -> ServicePort {
        ServicePort {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            port,
        }
    }

    #[tokio::test]
    async fn a_map_has_the_addresses_of_its_services_alone() {
        let map = ServiceMap::parse(
            "# one\na/b: https://127.0.0.1:9443\na/b:8443: https://[::1]:1/\nc/d:1: https://example.com\n",
        )
        .unwrap();
        let resolve = async |service: ServicePort| {
            let address = map.resolve(&service).await;
            address
                .map(|address| address.to_string())
                .map_err(|error| error.to_string())
        };
        assert_eq!(
            resolve(port("a", "b", 443)).await.unwrap(),
            "127.0.0.1:9443"
        );
        assert_eq!(resolve(port("a", "b", 8443)).await.unwrap(), "[::1]:1");
        assert_eq!(resolve(port("c", "d", 1)).await.unwrap(), "example.com:443");
        assert_eq!(
            resolve(port("c", "d", 443)).await.unwrap_err(),
            "no service port 443 found for service \"d\" in namespace \"c\""
        );
        assert_eq!(
            resolve(port("c", "b", 443)).await.unwrap_err(),
            "service \"b\" not found in namespace \"c\""
        );
    }

    #[tokio::test]
    async fn a_cluster_has_names_for_its_services() {
        let service = port("ns", "hook", 443);
        let address = ClusterDns.resolve(&service).await.unwrap();
        assert_eq!(address.to_string(), "hook.ns.svc:443");
        assert_eq!(service.url(), "https://hook.ns.svc:443");
    }

    #[test]
    fn all_entries_that_cannot_be_used_are_told() {
        let problems = |text: &str| ServiceMap::parse(text).unwrap_err();
        let told = problems(
            "hook: https://a\n/x: https://a\na/: https://a\na/b:0: https://a\na/b:x: https://a\na/b/c: https://a",
        );
        assert_eq!(told.len(), 6, "{told:?}");
        assert!(told.iter().all(|line| line.contains("default/hook:443")));
        for url in [
            "http://a",
            "a:443",
            "https://",
            "https://a:b",
            "https://a:99999",
            "https://a/path",
            "https://a?x",
            "https://me:pw@a",
        ] {
            let told = problems(&format!("a/b: {url:?}"));
            assert!(
                told[0].contains("https://127.0.0.1:9443"),
                "{url}: {told:?}"
            );
        }
        assert!(problems("a/b: 1")[0].contains("must be a text"));
        assert!(problems("- a")[0].contains("must be a map"));
        let twice = problems("a/b: https://a\na/b:443: https://b");
        assert!(twice[0].contains("has an entry already"), "{twice:?}");
    }

    #[test]
    fn a_file_that_cannot_be_read_is_named() {
        let error = ServiceMap::read(Path::new("/nowhere/services.yaml")).unwrap_err();
        let text = error.to_string();
        assert!(
            text.starts_with("/nowhere/services.yaml: cannot read"),
            "{text}"
        );
    }
}
