//! What is known of the versions that other servers serve, as one immutable value.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::remote::RemoteServer;
use crate::documents::served::RemoteResource;
use crate::request::version_path::key_of;
use crate::response::static_doc::PackedDoc;

/// Name of the group of APIServices, which this server itself serves in any case: so a wrong APIService can be removed.
pub const GROUP: &str = "apiregistration.k8s.io";

/// The APIServices at one time.
#[derive(Debug, Default)]
pub(crate) struct Table {
    generation: u64,
    services: Vec<Service>,
    /// Their positions by `GROUP/VERSION`; of core by `/v1`.
    by_version: HashMap<String, usize>,
    local: Vec<LocalService>,
}

/// The place of a version in discovery, as an APIService has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Priority {
    /// `groupPriorityMinimum`: the group with the greater one comes first.
    pub group: i32,
    /// `versionPriority` within the group.
    pub version: i32,
}

/// An APIService of this server itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalService {
    /// Its group; empty for core.
    pub group: String,
    /// Its version.
    pub version: String,
    /// Its place in discovery.
    pub priority: Priority,
    /// Whether a server has made it for a version that it serves, and deletes it after that.
    pub is_automanaged: bool,
}

/// An APIService of another server.
#[derive(Clone, Debug, PartialEq)]
pub struct Service {
    /// The name of the APIService.
    pub name: String,
    /// Its group; empty for core.
    pub group: String,
    /// Its version.
    pub version: String,
    /// Its place in discovery.
    pub priority: Priority,
    /// The other server.
    pub server: Arc<RemoteServer>,
    /// The condition Available.
    pub is_available: bool,
    /// What the server last said of the version.
    pub documents: RemoteDocuments,
}

/// The documents of another server about a version, as they were last read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RemoteDocuments {
    /// The resources; `None` if they were never read.
    pub resources: Option<Arc<Vec<RemoteResource>>>,
    /// The ETag of the document that has them.
    pub etag: Option<String>,
    /// Whether the last attempt to read them failed.
    pub is_stale: bool,
    /// The OpenAPI v3 document.
    pub openapi_v3: Option<RemoteV3>,
    /// The part of the OpenAPI v2 document that is about the version.
    pub openapi_v2: Option<Arc<PackedDoc>>,
    /// The ETag of that document.
    pub v2_etag: Option<String>,
}

/// The OpenAPI v3 document of a version, as far as it is about that.
#[derive(Clone, Debug, PartialEq)]
pub struct RemoteV3 {
    /// Its path at the other server, with a hash.
    pub url: String,
    /// Its ETag.
    pub etag: Option<String>,
    /// In JSON.
    pub document: Arc<PackedDoc>,
}

/// The memory that documents of other servers may take, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DocumentRoom {
    /// Of lists of resources.
    pub resources: usize,
    /// Of OpenAPI documents.
    pub openapi: usize,
}

impl DocumentRoom {
    /// What is left of it beside some documents.
    pub fn beside(self, taken: &RemoteDocuments) -> Self {
        Self {
            resources: self.resources.saturating_sub(taken.resource_bytes()),
            openapi: self.openapi.saturating_sub(taken.openapi_bytes()),
        }
    }
}

impl RemoteDocuments {
    /// The bytes of OpenAPI of both versions.
    pub(crate) fn openapi_bytes(&self) -> usize {
        let of_v3 = self.openapi_v3.as_ref().map(|of| of.document.size());
        self.v2_bytes() + of_v3.unwrap_or_default()
    }

    fn v2_bytes(&self) -> usize {
        self.openapi_v2.as_ref().map_or(0, |part| part.size())
    }

    fn resource_bytes(&self) -> usize {
        let resources = self.resources.iter().flat_map(|resources| resources.iter());
        resources.map(RemoteResource::memory).sum()
    }

    /// Without what there is no room for: OpenAPI, of which the part of v2 comes first, and the resources, which are stale then as those
    /// that could never be read.
    pub fn within(mut self, room: DocumentRoom) -> Self {
        if self.v2_bytes() > room.openapi {
            (self.openapi_v2, self.v2_etag) = (None, None);
        }
        if self.openapi_bytes() > room.openapi {
            self.openapi_v3 = None;
        }
        if self.resource_bytes() > room.resources {
            (self.resources, self.etag, self.is_stale) = (None, None, true);
        }
        self
    }
}

impl Table {
    pub(super) fn new(services: Vec<Service>, local: Vec<LocalService>) -> Self {
        static GENERATIONS: AtomicU64 = AtomicU64::new(1);
        let key = |service: &Service| format!("{}/{}", service.group, service.version);
        let positions = services.iter().enumerate();
        Self {
            generation: GENERATIONS.fetch_add(1, Ordering::Relaxed),
            by_version: positions.map(|(at, of)| (key(of), at)).collect(),
            services,
            local,
        }
    }

    /// Number of the table, unique in the process.
    pub(crate) fn generation(&self) -> u64 {
        self.generation
    }

    /// All APIServices of other servers.
    pub(crate) fn services(&self) -> &[Service] {
        &self.services
    }

    /// The APIServices of this server itself.
    pub(crate) fn local(&self) -> &[LocalService] {
        &self.local
    }

    /// The service to which a path is forwarded, if there is one: `/apis/GROUP/VERSION` and below.
    pub(crate) fn service_of(&self, path: &str) -> Option<&Service> {
        if self.services.is_empty() {
            return None;
        }
        self.services.get(*self.by_version.get(key_of(path)?.0)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn openapi_is_kept_within_the_room_for_it() {
        let document = |bytes| Arc::new(PackedDoc::new(&vec![b' '; bytes]));
        let v3 = RemoteV3 {
            url: "/openapi/v3/apis/g/v1".to_owned(),
            etag: None,
            document: document(50),
        };
        let documents = RemoteDocuments {
            openapi_v2: Some(document(100)),
            v2_etag: Some("a".to_owned()),
            openapi_v3: Some(v3),
            ..RemoteDocuments::default()
        };
        for (room, expected) in [
            (150, (true, true)),
            (149, (true, false)),
            (100, (true, false)),
            (99, (false, true)),
            (49, (false, false)),
        ] {
            let bound = DocumentRoom {
                resources: 0,
                openapi: room,
            };
            let kept = documents.clone().within(bound);
            let found = (kept.openapi_v2.is_some(), kept.openapi_v3.is_some());
            assert_eq!(found, expected, "{room}");
            assert_eq!(kept.v2_etag.is_some(), expected.0, "{room}");
            assert!(kept.openapi_bytes() <= room);
        }
    }

    #[test]
    fn resources_are_kept_within_the_room_for_those_of_all_servers() {
        let resource = RemoteResource {
            resource: "a".repeat(100),
            verbs: vec!["get".to_owned(); 50],
            ..RemoteResource::default()
        };
        let bytes = resource.memory();
        // Short names take more than their texts.
        assert!(bytes > 100 + 50 * size_of::<String>(), "{bytes}");
        let documents = RemoteDocuments {
            resources: Some(Arc::new(vec![resource; 3])),
            etag: Some("a".to_owned()),
            ..RemoteDocuments::default()
        };
        let all = DocumentRoom {
            resources: 5 * bytes,
            openapi: 0,
        };
        assert_eq!(documents.clone().within(all), documents);
        let refused = documents.clone().within(all.beside(&documents));
        assert_eq!((&refused.resources, &refused.etag), (&None, &None));
        assert!(refused.is_stale);
    }
}
