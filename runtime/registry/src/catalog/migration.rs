//! Migration of stored objects: rewrites those whose stored bytes are stale, while the server serves.
//!
//! Objects are read in pages of the current state, and some of a page are rewritten at a time. A migration that is dropped or
//! interrupted leaves a mixture that is served as before, and the next one finds what is left. Several servers over one
//! store may migrate at the same time.

use std::collections::{BTreeMap, VecDeque};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use apiloom_meta::field::{echoed, go_quote};
use apiloom_meta::{ApiError, GroupResource, StatusReason};
use apiloom_storage::{Entry, ListRequest};
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;

use super::resources::Registry;
use super::snapshot::CatalogKind;
use crate::objects::kind::Kind;
use crate::objects::versioned_resource::VersionedResource;
use crate::writes::Writes;
use crate::writes::migrate::{MigrateError, MigrationOutcome};

/// Objects in a page: few, since a page with the largest objects takes their size times this in memory.
const PAGE: usize = 64;

/// Maximum number of objects that are rewritten at the same time: as deletecollection deletes.
const MAX_WRITES_AT_ONCE: usize = 16;

/// Number of writes in a second for which one more object is rewritten at the same time.
const WRITES_AT_ONCE_FROM: u32 = 50;

/// Longest time between two reports.
const REPORT_INTERVAL: Duration = Duration::from_secs(1);

/// Maximum number of error texts for a resource; further failures are only counted.
const MAX_ERRORS: usize = 20;

/// Options of a migration.
#[derive(Clone, Debug, Default)]
pub struct MigrationOptions {
    /// The resources to migrate; all if empty.
    pub resources: Vec<GroupResource>,
    /// Counts stale objects, but rewrites none.
    pub dry_run: bool,
    /// Maximum number of objects that are rewritten in a second; `None` for as many as the store takes.
    pub max_writes_per_second: Option<NonZeroU32>,
}

/// The progress of a migration in one resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MigrationReport {
    /// Group and plural name.
    pub resource: GroupResource,
    /// The `apiVersion` in which objects are stored now.
    pub storage_version: String,
    /// Number of objects that were read.
    pub objects: u64,
    /// Number of those that were rewritten, or would be without a dry run.
    pub rewritten: u64,
    /// Number of those that could not be rewritten.
    pub failed: u64,
    /// Number of objects by the `apiVersion` in which they were stored.
    pub stored_versions: BTreeMap<String, u64>,
    /// Why objects could not be rewritten, since the last report; at most 20 texts for a resource.
    pub errors: Vec<String>,
    /// Whether this was the last report on the resource.
    pub is_complete: bool,
}

impl MigrationReport {
    /// The report on a resource of which no object was read.
    fn new(resource: GroupResource, storage_version: String) -> Self {
        Self {
            resource,
            storage_version,
            objects: 0,
            rewritten: 0,
            failed: 0,
            stored_versions: BTreeMap::new(),
            errors: Vec::new(),
            is_complete: false,
        }
    }
}

/// A running migration; dropping it ends it, and the writes that it has begun may still take effect.
#[derive(Debug)]
pub struct Migration {
    registry: Arc<Registry>,
    options: MigrationOptions,
    left: VecDeque<GroupResource>,
    current: Option<ResourceMigration>,
    /// Earliest time of the next write.
    next_write: Instant,
    _only_one: OwnedSemaphorePermit,
}

/// The migration of one resource.
#[derive(Debug)]
struct ResourceMigration {
    kind: Arc<Kind>,
    writes: Arc<Writes>,
    page: VecDeque<Entry>,
    /// First key of the next page; `None` after the last one.
    next: Option<String>,
    report: MigrationReport,
    errors: usize,
}

impl Registry {
    /// Starts a migration of stored objects, which runs as far as [`Migration::next`] is called.
    ///
    /// # Errors
    /// BadRequest for a resource that is not registered or has no store; Conflict if a group of one emulates an earlier
    /// release, and if this server migrates already.
    pub fn migrate(self: &Arc<Self>, options: MigrationOptions) -> Result<Migration, ApiError> {
        let catalog = self.catalog();
        let stored = catalog.kinds.iter().filter(|(_, of)| of.kind.has_store());
        let known: Vec<&GroupResource> = stored.map(|(resource, _)| resource).collect();
        if let Some(unknown) = options.resources.iter().find(|of| !known.contains(of)) {
            let known: Vec<String> = known.iter().map(|of| of.to_string()).collect();
            let unknown = unknown.to_string();
            return Err(ApiError::bad_request(format!(
                "no objects of the resource {} are stored; there are: {}",
                go_quote(&echoed(&unknown)),
                known.join(", ")
            )));
        }
        let is_asked_for =
            |of: &&GroupResource| options.resources.is_empty() || options.resources.contains(of);
        let left: VecDeque<GroupResource> =
            known.into_iter().filter(is_asked_for).cloned().collect();
        let emulated = left.iter().find_map(|resource| {
            let emulates = catalog.kinds.get(resource)?.kind.emulates.as_deref();
            Some((resource, emulates?))
        });
        if let Some((resource, emulates)) = emulated {
            return Err(ApiError::new(
                StatusReason::Conflict,
                format!(
                    "{resource} cannot be migrated while {emulates}: objects would be rewritten as that release stores them, \
                     without the fields that it does not have; migrate after --emulation-version is removed, or name \
                     other resources"
                ),
            ));
        }
        let only_one = Arc::clone(&self.migrating).try_acquire_owned();
        let only_one = only_one.map_err(|_| {
            ApiError::new(
                StatusReason::Conflict,
                "this server is migrating stored objects already; wait for the end of that migration",
            )
        })?;
        Ok(Migration {
            left,
            registry: Arc::clone(self),
            options,
            current: None,
            next_write: Instant::now(),
            _only_one: only_one,
        })
    }

    /// The migration of a resource; `None` if there is no such kind any more.
    fn resource_migration(&self, resource: &GroupResource) -> Option<ResourceMigration> {
        let catalog = self.catalog();
        let CatalogKind { kind, cache } = catalog.kinds.get(resource)?;
        let versioned = VersionedResource {
            kind: Arc::clone(kind),
            version: kind.versions.stored,
            cache: cache.as_ref().map(|of| Arc::clone(&of.cache)),
            large: kind.versions.large_documents(&self.settings.shared.large),
        };
        let writes = Writes::new(
            Arc::new(versioned),
            Arc::clone(&self.settings.shared.writes),
            None,
        );
        Some(ResourceMigration {
            writes: Arc::new(writes),
            page: VecDeque::new(),
            next: Some(String::new()),
            report: MigrationReport::new(
                resource.clone(),
                kind.versions.stored_version().api_version.clone(),
            ),
            kind: Arc::clone(kind),
            errors: 0,
        })
    }

    /// Whether a resource is still of this kind.
    fn has_kind(&self, kind: &Arc<Kind>) -> bool {
        let catalog = self.catalog();
        let present = catalog.kinds.get(&kind.resource);
        present.is_some_and(|of| Arc::ptr_eq(&of.kind, kind))
    }
}

impl Migration {
    /// Migrates further objects, and reports after a page, after about a second, and at the end of a resource. `None`
    /// when all is done. A resource whose kind was changed or removed at run time is reported with an error, and the
    /// migration goes on with the next one.
    ///
    /// # Errors
    /// The store cannot be read or written. The migration has ended then.
    pub async fn next(&mut self) -> Option<Result<MigrationReport, ApiError>> {
        let mut current = match self.current.take() {
            Some(current) => current,
            None => {
                let resource = self.left.pop_front()?;
                match self.registry.resource_migration(&resource) {
                    Some(current) => current,
                    None => return Some(Ok(without_kind(resource))),
                }
            }
        };
        if let Err(error) = self.step(&mut current).await {
            self.left.clear();
            return Some(Err(error));
        }
        let errors = std::mem::take(&mut current.report.errors);
        let report = MigrationReport {
            errors,
            is_complete: current.page.is_empty() && current.next.is_none(),
            ..current.report.clone()
        };
        if !report.is_complete {
            self.current = Some(current);
        }
        Some(Ok(report))
    }

    /// Migrates the objects of a page, or some of them, several at a time.
    async fn step(&mut self, current: &mut ResourceMigration) -> Result<(), ApiError> {
        let begun = Instant::now();
        if current.page.is_empty() {
            current.read_page().await?;
        }
        let at_once = self.writes_at_once();
        let writes = Arc::clone(&current.writes);
        let mut running = FuturesUnordered::new();
        loop {
            while running.len() < at_once
                && begun.elapsed() < REPORT_INTERVAL
                && let Some(entry) = current.page.pop_front()
            {
                if !self.registry.has_kind(&current.kind) {
                    current.give_up();
                    break;
                }
                let (writes, dry_run) = (&writes, self.options.dry_run);
                running.push(async move {
                    let key = entry.key.clone();
                    (key, writes.migrate(entry, dry_run).await)
                });
            }
            let Some((key, migrated)) = running.next().await else {
                return Ok(());
            };
            if current.count(&key, migrated)? && !self.options.dry_run {
                self.pace().await;
            }
        }
    }

    /// Number of objects that are rewritten at the same time. For a low rate one after the other, so that the pauses
    /// between them are equal.
    fn writes_at_once(&self) -> usize {
        let of_rate = |rate: NonZeroU32| (rate.get() / WRITES_AT_ONCE_FROM).max(1) as usize;
        let rate = self.options.max_writes_per_second;
        rate.map_or(MAX_WRITES_AT_ONCE, of_rate)
            .min(MAX_WRITES_AT_ONCE)
    }

    /// Waits after a write until the next one may follow.
    async fn pace(&mut self) {
        if let Some(rate) = self.options.max_writes_per_second {
            let interval = Duration::from_secs(1) / rate.get();
            self.next_write = self.next_write.max(Instant::now()) + interval;
            tokio::time::sleep_until(self.next_write).await;
        }
    }
}

impl ResourceMigration {
    /// Leaves the other objects, since they are of another kind now.
    fn give_up(&mut self) {
        self.page.clear();
        self.next = None;
        self.report
            .errors
            .push(format!("{}: {CHANGED}", self.report.resource));
    }

    async fn read_page(&mut self) -> Result<(), ApiError> {
        let Some(start) = self.next.take() else {
            return Ok(());
        };
        // Each page is of the current state: what is written meanwhile is not stale, and old states are compacted.
        let request = ListRequest {
            prefix: self.kind.keys.of_all().to_owned(),
            start,
            limit: PAGE,
            at: None,
            uncounted: true,
        };
        let page = self.kind.store.list(request).await;
        let page = page.map_err(|error| self.kind.error(error, "list"))?;
        self.next = page.entries.last().filter(|_| page.more).map(|last| {
            // The next key in byte order.
            format!("{}\0", last.key)
        });
        self.page = page.entries.into();
        Ok(())
    }

    /// Counts an object; returns whether it was rewritten.
    fn count(
        &mut self,
        key: &str,
        migrated: Result<MigrationOutcome, MigrateError>,
    ) -> Result<bool, ApiError> {
        let report = &mut self.report;
        let (version, is_rewritten) = match migrated {
            Ok(MigrationOutcome::Current(version)) => (version, false),
            Ok(MigrationOutcome::Rewritten(version)) => (version, true),
            Ok(MigrationOutcome::Deleted) => return Ok(false),
            Err(MigrateError::Store(error)) => return Err(error),
            Err(MigrateError::Object(error)) => {
                report.objects += 1;
                report.failed += 1;
                if self.errors < MAX_ERRORS {
                    self.errors += 1;
                    report.errors.push(format!("{key}: {}", error.message));
                }
                return Ok(false);
            }
        };
        report.objects += 1;
        report.rewritten += u64::from(is_rewritten);
        let version = &self.kind.versions[version].api_version;
        match report.stored_versions.get_mut(version) {
            Some(count) => *count += 1,
            None => drop(report.stored_versions.insert(version.clone(), 1)),
        }
        Ok(is_rewritten)
    }
}

/// Why a resource is not migrated whose kind was replaced or removed.
const CHANGED: &str = "the kind was changed or removed during the migration; start the migration again if it is still served";

/// The report on a resource whose kind was removed before its turn.
fn without_kind(resource: GroupResource) -> MigrationReport {
    MigrationReport {
        errors: vec![format!("{resource}: {CHANGED}")],
        is_complete: true,
        ..MigrationReport::new(resource, String::new())
    }
}
