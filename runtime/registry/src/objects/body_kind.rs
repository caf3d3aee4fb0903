//! Kinds of the bodies of subresources, such as Scale. They are not served themselves and have no objects in the store.

use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, OnceLock};

use apiloom_meta::ResourceDef;

use super::code::KindCode;
use super::encryption::IdentityCipher;
use super::kind::Kind;
use super::kind_version::KindVersion;
use super::kind_versions::{KindConversion, KindVersions};
use super::prepared_object::PendingWrites;
use super::read_counts::ReadCounts;
use super::readers::Readers;
use super::stored_value::StorageMediaType;

impl Kind {
    /// The kind of the bodies of a subresource of `parent`, whose scope and keys they share. Its schema is made when it is first
    /// needed.
    pub(crate) fn of_bodies(def: ResourceDef, parent: &Self) -> Self {
        let schema = def.schema.clone().lazy();
        let def = ResourceDef {
            schema,
            has_store: false,
            ..def
        };
        let resource = def.group_resource();
        let version = KindVersion::new(0, Arc::new(def), None, KindCode::default());
        Self {
            versions: KindVersions::new(vec![version], 0, 0, KindConversion::InMemory),
            has_other_versions: AtomicBool::new(false),
            resource,
            scope: parent.scope,
            is_own: true,
            is_terminating: Arc::default(),
            store: Arc::clone(&parent.store),
            cipher: Arc::new(IdentityCipher),
            keys: parent.keys.clone(),
            emulates: None,
            media_type: StorageMediaType::default(),
            newest_write: AtomicU64::new(0),
            listed: OnceLock::new(),
            reads: ReadCounts::new(0),
            pending_writes: PendingWrites::default(),
            // Bodies are never listed.
            readers: Readers::new(0),
        }
    }
}
