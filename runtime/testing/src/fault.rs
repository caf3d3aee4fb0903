//! Faults: requests that a test server refuses, or whose connection breaks.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use apiloom_meta::kind::Verb;
use apiloom_meta::{ApiError, GroupResource, Resource, StatusDetails, StatusReason};

use super::action::Action;

/// What a conflict says, as kube-apiserver does.
const MODIFIED: &str =
    "the object has been modified; please apply your changes to the latest version and try again";

/// A fault: which requests fail, and how. Given to [`Control::inject`](super::Control::inject).
///
/// ```
/// use std::time::Duration;
/// use apiloom_meta::kind::Verb;
/// use apiloom_testing::Fault;
///
/// // The second update of a status is refused with 409.
/// let second = Fault::on(Verb::Update).subresource("status").nth(2).conflict();
/// // The next three requests are refused with 429.
/// let busy = Fault::on_any().times(3).too_many_requests(Duration::from_secs(1));
/// // The next create takes effect, but its response is lost.
/// let lost = Fault::on(Verb::Create).lost_after();
/// ```
#[derive(Clone, Debug)]
#[must_use = "a fault takes effect when it is injected"]
pub struct Fault {
    requests: FaultBuilder,
    effect: Effect,
}

/// The requests that fail, before it is said how. See [`Fault`].
#[derive(Clone, Debug)]
#[must_use = "a fault is complete when it is said how requests fail"]
pub struct FaultBuilder {
    verb: Option<Verb>,
    only_apply: bool,
    /// Group, version and plural name.
    resource: Option<(String, String, String)>,
    /// `None` for all; empty for the object itself.
    subresource: Option<String>,
    namespace: Option<String>,
    name: Option<String>,
    /// How many matching requests are let through first.
    skip: u32,
    /// How many fail then; `None` for all.
    times: Option<u32>,
}

/// How a request fails.
#[derive(Clone)]
pub(crate) enum Effect {
    /// It is answered with an error, which the request's resource and name are part of.
    Refused(Arc<dyn Fn(&Action) -> ApiError + Send + Sync>),
    /// Its connection breaks before the server gets it.
    LostBefore,
    /// It takes effect, and its connection breaks before the response.
    LostAfter,
}

impl fmt::Debug for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Refused(_) => "Refused",
            Self::LostBefore => "LostBefore",
            Self::LostAfter => "LostAfter",
        })
    }
}

impl Fault {
    /// Requests with this verb, for objects themselves. Those for a subresource are chosen by
    /// [`FaultBuilder::subresource`]. [`Verb::Patch`] includes applies.
    pub fn on(verb: Verb) -> FaultBuilder {
        FaultBuilder {
            verb: Some(verb),
            subresource: Some(String::new()),
            ..Self::on_any()
        }
    }

    /// Applies of objects themselves.
    pub fn on_apply() -> FaultBuilder {
        FaultBuilder {
            only_apply: true,
            ..Self::on(Verb::Patch)
        }
    }

    /// All requests, also those for subresources.
    pub fn on_any() -> FaultBuilder {
        FaultBuilder {
            verb: None,
            only_apply: false,
            resource: None,
            subresource: None,
            namespace: None,
            name: None,
            skip: 0,
            times: Some(1),
        }
    }
}

impl FaultBuilder {
    /// Only requests for a kind, in its version.
    pub fn kind<K: Resource>(mut self) -> Self {
        let parts = [K::GROUP, K::VERSION, K::PLURAL].map(str::to_owned);
        self.resource = Some(parts.into());
        self
    }

    /// Only requests for this subresource, such as `status`.
    pub fn subresource(mut self, subresource: impl Into<String>) -> Self {
        self.subresource = Some(subresource.into());
        self
    }

    /// Only requests in this namespace.
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = Some(namespace.into());
        self
    }

    /// Only requests for the object with this name.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// The first request that fails, counted from 1 and from the injection. Default 1.
    pub fn nth(mut self, number: u32) -> Self {
        self.skip = number.saturating_sub(1);
        self
    }

    /// How many requests fail, one after the other. Default 1.
    pub fn times(mut self, times: u32) -> Self {
        self.times = Some(times);
        self
    }

    /// All further requests fail, until [`FaultHandle::end`].
    pub fn always(mut self) -> Self {
        self.times = None;
        self
    }

    /// They are refused with this error. Nothing is written.
    pub fn error(self, error: ApiError) -> Fault {
        self.refused(move |_| error.clone())
    }

    /// They are refused with 409: the object was modified meanwhile.
    pub fn conflict(self) -> Fault {
        self.refused(|action| {
            let resource = GroupResource::new(&*action.group, &*action.resource);
            ApiError::conflict(&resource, &action.name(), MODIFIED)
        })
    }

    /// They are refused with 429, and a `Retry-After` of as many seconds, rounded up. The client of apiloom waits for that time and
    /// tries again by itself.
    pub fn too_many_requests(self, retry_after: Duration) -> Fault {
        let seconds = retry_after.as_secs() + u64::from(retry_after.subsec_nanos() > 0);
        let details = StatusDetails {
            retry_after_seconds: u32::try_from(seconds).unwrap_or(u32::MAX),
            ..StatusDetails::default()
        };
        let message = "too many requests, please try again later";
        self.error(ApiError::new(StatusReason::TooManyRequests, message).with_details(details))
    }

    /// They are refused with 500.
    pub fn internal_error(self) -> Fault {
        self.error(ApiError::internal("injected by the test"))
    }

    /// They are refused with 504, as if their time had run out. Nothing is written.
    pub fn timeout(self) -> Fault {
        let message = "Timeout: request did not complete within the allotted timeout";
        self.error(ApiError::new(StatusReason::Timeout, message))
    }

    /// Their connection breaks before the server gets them, so nothing is written. The client cannot know that.
    pub fn lost_before(self) -> Fault {
        self.with(Effect::LostBefore)
    }

    /// They take effect, and their connection breaks before the response.
    pub fn lost_after(self) -> Fault {
        self.with(Effect::LostAfter)
    }

    fn refused(self, error: impl Fn(&Action) -> ApiError + Send + Sync + 'static) -> Fault {
        self.with(Effect::Refused(Arc::new(error)))
    }

    fn with(self, effect: Effect) -> Fault {
        Fault {
            requests: self,
            effect,
        }
    }

    fn matches(&self, action: &Action) -> bool {
        let is = |expected: &Option<String>, found: &str| {
            expected.as_ref().is_none_or(|expected| expected == found)
        };
        self.verb.is_none_or(|verb| action.verb == Some(verb))
            && (!self.only_apply || action.is_apply())
            && self
                .resource
                .as_ref()
                .is_none_or(|(group, version, resource)| {
                    *group == action.group
                        && *version == action.version
                        && *resource == action.resource
                })
            && is(&self.subresource, &action.subresource)
            && is(&self.namespace, &action.namespace)
            && self.name.as_ref().is_none_or(|name| *name == action.name())
    }
}

/// An injected fault.
#[derive(Clone, Debug)]
pub struct FaultHandle(Arc<Counters>);

#[derive(Debug)]
struct Counters {
    /// Matching requests that are still let through.
    skip: AtomicU32,
    /// Matching requests that still fail; `u32::MAX` for all.
    times: AtomicU32,
    hits: AtomicU32,
}

impl FaultHandle {
    /// How many requests failed by it.
    pub fn hits(&self) -> u32 {
        self.0.hits.load(Ordering::SeqCst)
    }

    /// Whether no further request fails by it.
    pub fn is_over(&self) -> bool {
        self.0.times.load(Ordering::SeqCst) == 0
    }

    /// Lets all further requests through.
    pub fn end(&self) {
        self.0.times.store(0, Ordering::SeqCst);
    }

    /// Counts a matching request; returns whether it fails.
    fn count(&self) -> bool {
        let decrement = |number: u32| match number {
            0 => None,
            u32::MAX => Some(u32::MAX),
            number => Some(number - 1),
        };
        let Counters { skip, times, hits } = &*self.0;
        let take = |counter: &AtomicU32| {
            counter
                .fetch_update(Ordering::SeqCst, Ordering::SeqCst, decrement)
                .is_ok()
        };
        if take(skip) || !take(times) {
            return false;
        }
        hits.fetch_add(1, Ordering::SeqCst);
        true
    }
}

/// The injected faults, in the order of their injection.
#[derive(Debug, Default)]
pub(crate) struct Faults(Vec<(Fault, FaultHandle)>);

impl Faults {
    pub(crate) fn inject(&mut self, fault: Fault) -> FaultHandle {
        let handle = FaultHandle(Arc::new(Counters {
            skip: AtomicU32::new(fault.requests.skip),
            times: AtomicU32::new(fault.requests.times.unwrap_or(u32::MAX)),
            hits: AtomicU32::new(0),
        }));
        self.0.push((fault, handle.clone()));
        handle
    }

    /// How a request fails; `None` if it does not. Of several faults the first one takes it, and the others do not count it.
    pub(crate) fn take(&mut self, action: &Action) -> Option<Effect> {
        self.0.retain(|(_, handle)| !handle.is_over());
        let mut matching = self
            .0
            .iter()
            .filter(|(fault, _)| fault.requests.matches(action));
        let (fault, _) = matching.find(|(_, handle)| handle.count())?;
        Some(fault.effect.clone())
    }
}
