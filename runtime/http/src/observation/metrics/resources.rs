//! Metrics of the registry: releases of groups, watch caches and lists. Read at each scrape.

use std::fmt;
use std::sync::Arc;

use apiloom_storage::cache::WAIT_BOUNDS;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;

use apiloom_registry::{CacheReport, Catalog, ListCounts, Registry, ResourceReport};

#[derive(Debug)]
pub(super) struct Resources(pub(super) Arc<Registry>);

/// Names and values of labels.
type LabelSet<'a, const N: usize> = [(&'static str, &'a str); N];

fn labels_of(report: &ResourceReport) -> LabelSet<'_, 2> {
    let resource = &report.resource;
    [("group", &resource.group), ("resource", &resource.resource)]
}

/// A metric of watch caches: name, help, value.
type OfCache = (&'static str, &'static str, fn(&CacheReport) -> u64);

const GAUGES: [OfCache; 6] = [
    (
        "watch_cache_capacity",
        "Changes for which the watch cache has room, by resource",
        |cache| cache.size.capacity.changes as u64,
    ),
    (
        "apiserver_watch_cache_resource_version",
        "The revision up to which the watch cache has come, by resource",
        |cache| cache.revision.0,
    ),
    (
        "apiloom_watch_cache_changes",
        "Changes in the window of the watch cache, by resource",
        |cache| cache.size.changes as u64,
    ),
    (
        "apiloom_watch_cache_history_bytes",
        "Bytes that only the window of the watch cache keeps, by resource",
        |cache| cache.size.history_bytes as u64,
    ),
    (
        "apiloom_watch_cache_object_bytes",
        "Bytes that the objects in the watch cache take, with their keys and indexes, by resource",
        |cache| cache.size.object_bytes as u64,
    ),
    (
        "apiloom_watch_cache_wire_bytes",
        "Bytes of the objects in the watch cache as clients get them, by resource",
        |cache| cache.size.wire_bytes as u64,
    ),
];

const COUNTERS: [OfCache; 6] = [
    (
        "watch_cache_capacity_increase",
        "How often the watch cache made room for more changes, by resource",
        |cache| cache.size.capacity.increases,
    ),
    (
        "watch_cache_capacity_decrease",
        "How often the watch cache gave room for changes back, by resource",
        |cache| cache.size.capacity.decreases,
    ),
    (
        "apiserver_watch_cache_events_received",
        "Changes that the watch cache received from storage, by resource",
        |cache| cache.counts.received,
    ),
    (
        "apiserver_watch_cache_events_dispatched",
        "Changes that the watch cache made known to watchers, by resource",
        |cache| cache.counts.dispatched,
    ),
    (
        "apiserver_watch_cache_initializations",
        "How often the watch cache was filled, by resource",
        |cache| cache.counts.fills,
    ),
    (
        "apiserver_terminated_watchers",
        "Watchers that were ended because they did not read, by resource",
        |cache| cache.counts.ended_watchers,
    ),
];

/// A metric of lists: name for the cache, name for the store, help, value.
type OfLists = (
    &'static str,
    &'static str,
    &'static str,
    fn(&ListCounts) -> u64,
);

const LISTS: [OfLists; 3] = [
    (
        "apiserver_cache_list",
        "apiserver_storage_list",
        "Lists that were answered from there, by resource",
        |counts| counts.lists,
    ),
    (
        "apiserver_cache_list_fetched_objects",
        "apiserver_storage_list_fetched_objects",
        "Objects that were looked at for lists, by resource",
        |counts| counts.fetched,
    ),
    (
        "apiserver_cache_list_returned_objects",
        "apiserver_storage_list_returned_objects",
        "Objects that lists had, by resource",
        |counts| counts.returned,
    ),
];

impl Collector for Resources {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        releases(&mut encoder, &self.0.catalog())?;
        let reports = self.0.report();
        lists(&mut encoder, &reports)?;
        let cached: Vec<(LabelSet<'_, 2>, &CacheReport)> = reports
            .iter()
            .filter_map(|report| Some((labels_of(report), report.cache.as_ref()?)))
            .collect();
        // Without any cache, these metrics are omitted.
        if cached.is_empty() {
            return Ok(());
        }
        for (name, help, value) in GAUGES {
            let values = cached.iter().map(|(labels, cache)| (*labels, value(cache)));
            gauge(&mut encoder, name, help, values)?;
        }
        for (name, help, value) in COUNTERS {
            let values = cached.iter().map(|(labels, cache)| (*labels, value(cache)));
            counter(&mut encoder, name, help, values)?;
        }
        consistent_reads(&mut encoder, &cached)?;
        waits(&mut encoder, &cached)
    }
}

/// A counter, with its value for each set of labels.
fn counter<'a, const N: usize>(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    values: impl Iterator<Item = (LabelSet<'a, N>, u64)>,
) -> fmt::Result {
    let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
    for (labels, value) in values {
        metric
            .encode_family(&labels)?
            .encode_counter::<NoLabelSet, _, u64>(&value, None)?;
    }
    Ok(())
}

/// A gauge, with its value for each set of labels.
fn gauge<'a, const N: usize>(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    values: impl Iterator<Item = (LabelSet<'a, N>, u64)>,
) -> fmt::Result {
    let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    for (labels, value) in values {
        metric.encode_family(&labels)?.encode_gauge(&value)?;
    }
    Ok(())
}

/// The releases of groups that declare one, with the labels that kube-apiserver has for components.
fn releases(encoder: &mut DescriptorEncoder<'_>, catalog: &Catalog) -> fmt::Result {
    let released = catalog.groups().iter();
    let released: Vec<[String; 3]> = released
        .filter_map(|group| {
            let binary = group.build_release?.to_string();
            Some([binary, group.name.clone(), group.release?.to_string()])
        })
        .collect();
    if released.is_empty() {
        return Ok(());
    }
    let labels = released.iter().map(|[binary, component, emulation]| {
        let labels: LabelSet<'_, 4> = [
            ("binary", binary),
            ("component", component),
            ("emulation", emulation),
            // What is written can be read by the build of the emulated release.
            ("min_compat", emulation),
        ];
        (labels, 1)
    });
    gauge(
        encoder,
        "version_info",
        "Always 1; the release of each group, the one that it emulates, and the oldest one that can read what is stored",
        labels,
    )
}

fn lists(encoder: &mut DescriptorEncoder<'_>, reports: &[ResourceReport]) -> fmt::Result {
    for (cache, storage, help, value) in LISTS {
        let cached = reports.iter().filter(|report| report.cache.is_some());
        let cached = cached.flat_map(|report| {
            let [group, resource] = labels_of(report);
            let lists = report.cache_lists.iter();
            lists.map(move |(index, counts)| {
                let labels = [group, resource, ("index", &**index)];
                (labels, value(counts))
            })
        });
        counter(encoder, cache, help, cached)?;
        let stored = reports
            .iter()
            .map(|report| (labels_of(report), value(&report.storage_lists)));
        counter(encoder, storage, help, stored)?;
    }
    // All objects read from the store are also decoded.
    let evaluated = reports
        .iter()
        .map(|report| (labels_of(report), report.storage_lists.fetched));
    counter(
        encoder,
        "apiserver_storage_list_evaluated_objects",
        "Objects that were looked into for lists from storage, by resource",
        evaluated,
    )?;
    let initial = reports
        .iter()
        .map(|report| (labels_of(report), report.initial_events));
    counter(
        encoder,
        "apiserver_init_events",
        "Objects that were looked at for the beginning of watches, by resource",
        initial,
    )
}

fn consistent_reads(
    encoder: &mut DescriptorEncoder<'_>,
    cached: &[(LabelSet<'_, 2>, &CacheReport)],
) -> fmt::Result {
    let values = cached.iter().flat_map(|([group, resource], cache)| {
        let counts = &cache.counts;
        [
            ("true", "false", counts.consistent_reads),
            ("true", "true", counts.consistent_fallbacks),
            ("false", "false", counts.consistent_failures),
        ]
        .map(|(success, fallback, value)| {
            let labels = [
                *group,
                *resource,
                ("success", success),
                ("fallback", fallback),
            ];
            (labels, value)
        })
    });
    counter(
        encoder,
        "apiserver_watch_cache_consistent_read",
        "Consistent reads, by whether they succeeded and whether storage had to answer them",
        values,
    )
}

fn waits(
    encoder: &mut DescriptorEncoder<'_>,
    cached: &[(LabelSet<'_, 2>, &CacheReport)],
) -> fmt::Result {
    let mut metric = encoder.encode_descriptor(
        "apiserver_watch_cache_read_wait_seconds",
        "How long reads waited for the watch cache to have what they want, by resource",
        None,
        MetricType::Histogram,
    )?;
    for (labels, cache) in cached {
        let counts = &cache.counts;
        let bounds = WAIT_BOUNDS.into_iter().chain([f64::MAX]);
        let buckets: Vec<(f64, u64)> = bounds.zip(counts.waits).collect();
        metric
            .encode_family(labels)?
            .encode_histogram::<NoLabelSet>(
                counts.waited_seconds,
                counts.waits.iter().sum(),
                &buckets,
                None,
            )?;
    }
    Ok(())
}
