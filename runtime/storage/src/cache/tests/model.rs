//! Random histories of writers, readers, watchers, failures of the store and compactions. Every state that a reader
//! sees and every stream is compared with what the store did.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use async_trait::async_trait;
use futures_util::{StreamExt, stream};

use self::random::Random;
use super::*;
use crate::{Layer, ListRequest, Page, WatchStart, WatchStream};

#[path = "../../../tests/random/mod.rs"]
mod random;

/// A store whose watches can be cut, and which can be made unavailable.
#[derive(Debug)]
struct Flaky {
    store: Arc<Memory>,
    away: AtomicBool,
    cut: watch::Sender<()>,
}

impl Flaky {
    fn check(&self) -> Result<(), StorageError> {
        if self.away.load(Ordering::Relaxed) {
            Err(StorageError::Unavailable("it is away".to_owned()))
        } else {
            Ok(())
        }
    }
}

#[async_trait]
impl Layer for Flaky {
    fn behind(&self) -> &dyn Storage {
        &*self.store
    }
    async fn list(&self, request: ListRequest) -> Result<Page, StorageError> {
        self.check()?;
        self.store.list(request).await
    }
    async fn watch(&self, prefix: &str, start: WatchStart) -> Result<WatchStream, StorageError> {
        self.check()?;
        let mut cut = self.cut.subscribe();
        let cut = async move { cut.changed().await.is_ok() };
        let changes = self.store.watch(prefix, start).await?;
        let lost = stream::once(async { Err(StorageError::Unavailable("it is cut".to_owned())) });
        Ok(changes.take_until(Box::pin(cut)).chain(lost).boxed())
    }
    async fn request_progress(&self) -> Result<(), StorageError> {
        self.check()?;
        self.store.request_progress().await
    }
    async fn current_revision(&self) -> Result<Revision, StorageError> {
        self.check()?;
        self.store.current_revision().await
    }
}

type State = BTreeMap<String, String>;

/// A watch and what it delivered.
struct Watcher {
    cursor: Cursor<Text>,
    after: u64,
    taken: Vec<Arc<Change<String>>>,
    reached: Revision,
    ended: Option<CursorEnd>,
}

struct Model {
    seed: u64,
    random: Random,
    store: Arc<Flaky>,
    cache: Arc<WatchCache<Text>>,
    /// All objects of the store, per revision.
    states: Vec<State>,
    watchers: Vec<Watcher>,
    /// The newest state that a reader saw.
    seen: Revision,
}

impl Model {
    fn new(seed: u64) -> Self {
        let mut random = Random(seed);
        let (cut, _) = watch::channel(());
        let store = Arc::new(Flaky {
            store: memory(),
            away: AtomicBool::new(false),
            cut,
        });
        let bytes = [3_000, Budget::DEFAULT_BYTES][random.below(2)];
        let over = Arc::clone(&store) as Arc<dyn Storage>;
        let cache = WatchCache::new(over, PREFIX, Text, Budget::new(bytes));
        tokio::spawn(Arc::clone(&cache).run());
        Self {
            seed,
            random,
            store,
            cache,
            states: vec![State::new()],
            watchers: Vec::new(),
            seen: Revision(0),
        }
    }

    async fn step(&mut self) {
        let key = format!("/r/{}/{}", self.random.below(2), self.random.below(4));
        match self.random.below(24) {
            0..=7 => {
                let value = self.random.below(5).to_string();
                let revision = put(&self.store.store, &key, &value).await;
                self.next_state(|state| state.insert(key, format!("{value}@{revision}")));
            }
            8 | 9 if self.state(self.states.len() - 1).contains_key(&key) => {
                delete(&self.store.store, &key).await;
                self.next_state(|state| state.remove(&key));
            }
            10..=12 => tokio::task::yield_now().await,
            13 => tokio::time::sleep(Duration::from_millis(self.random.below(200) as u64)).await,
            14 => self.store.cut.send_modify(|()| {}),
            15 => {
                let away = self.random.below(2) == 0;
                self.store.away.store(away, Ordering::Relaxed);
            }
            16 if self.random.below(4) == 0 => {
                let current = Revision(self.states.len() as u64 - 1);
                self.store.store.compact(current).await.unwrap();
            }
            17 | 18 => self.watch(&key),
            19..=21 => self.take(5),
            _ => self.read(),
        }
    }

    fn state(&self, revision: usize) -> &State {
        &self.states[revision]
    }

    fn next_state<T>(&mut self, change: impl FnOnce(&mut State) -> T) {
        let mut state = self.states.last().unwrap().clone();
        change(&mut state);
        self.states.push(state);
    }

    /// Begins a watch, if the start is in the window.
    fn watch(&mut self, key: &str) {
        let interest = match self.random.below(4) {
            0 => Interest::Everything,
            1 => Interest::Key(key.into()),
            2 => Interest::Below(key[..5].into()),
            _ => {
                let value = self.random.below(5).to_string();
                let below = (self.random.below(2) == 0).then_some(&key[..5]);
                indexed(&value, below)
            }
        };
        let after = self.random.below(self.states.len() + 2) as u64;
        let after = (self.random.below(3) > 0).then_some(Revision(after));
        let Ok((state, cursor)) = self.cache.watch_with_state(interest, after) else {
            return;
        };
        self.watchers.push(Watcher {
            cursor,
            after: after.unwrap_or(state.revision()).0,
            taken: Vec::new(),
            reached: Revision(0),
            ended: None,
        });
    }

    /// Every watcher takes some changes.
    fn take(&mut self, most: usize) {
        for watcher in self.watchers.iter_mut().filter(|w| w.ended.is_none()) {
            let most = 1 + self.random.below(most);
            match watcher.cursor.take(most, &mut watcher.taken) {
                Ok(reached) => {
                    assert!(reached >= watcher.reached, "seed {}", self.seed);
                    watcher.reached = reached;
                }
                Err(end) => watcher.ended = Some(end),
            }
        }
    }

    /// Reads the newest state and a past one.
    fn read(&mut self) {
        let newest = self.cache.snapshot();
        assert!(newest.revision() >= self.seen, "seed {}", self.seed);
        self.seen = newest.revision();
        // Before the first fill the state is empty, at revision 0.
        self.check_state(&newest);
        let at = Revision(self.random.below(self.states.len()) as u64);
        match self.cache.snapshot_at(at) {
            Ok(state) => {
                assert_eq!(state.revision(), at, "seed {}", self.seed);
                self.check_state(&state);
            }
            Err(OutsideWindow::NotFilled) => {}
            Err(OutsideWindow::Future { current, .. }) => {
                assert!(at > current, "seed {}", self.seed);
            }
            Err(OutsideWindow::TooOld { oldest, .. }) => {
                assert!(at < oldest, "seed {}", self.seed);
            }
        }
    }

    fn check_state(&self, snapshot: &Snapshot<String>) {
        let (seed, at) = (self.seed, snapshot.revision());
        let state = &self.states[at.0 as usize];
        let found = texts(snapshot, PREFIX);
        let expected: Vec<&String> = state.values().collect();
        assert_eq!(found.iter().collect::<Vec<_>>(), expected, "{seed} at {at}");
        for value in ["0", "1", "4"] {
            let found: Vec<&str> = snapshot.indexed(0, value).map(|item| &*item.key).collect();
            let expected = state.iter().filter(|(_, text)| text.starts_with(value));
            let expected: Vec<&str> = expected.map(|(key, _)| key.as_str()).collect();
            assert_eq!(found, expected, "seed {seed}, {value} at {at}");
        }
    }

    /// Stops the failures and lets every watcher read to the end; then every stream must match the history. Returns why
    /// streams ended early.
    async fn finish(mut self) -> Vec<CursorEnd> {
        self.store.away.store(false, Ordering::Relaxed);
        let current = Revision(self.states.len() as u64 - 1);
        let came = tokio::time::timeout(LONG, async {
            let mut progress = self.cache.progress();
            let is_following = |progress: &CacheProgress| progress.fill == Fill::Following;
            let _ = progress.wait_for(is_following).await;
            self.cache.wait_for(current, LONG).await
        });
        assert_eq!(came.await, Ok(true), "seed {}", self.seed);
        self.read();
        assert_eq!(self.seen, current);
        for _ in 0..self.states.len() {
            self.take(50);
        }
        for watcher in &self.watchers {
            if watcher.ended.is_none() {
                assert_eq!(watcher.reached, current, "seed {}", self.seed);
            }
            self.check_watcher(watcher);
        }
        self.watchers.iter().filter_map(|w| w.ended).collect()
    }

    fn check_watcher(&self, watcher: &Watcher) {
        let interest = watcher.cursor.interest();
        let concerns = |change: &Told| match interest {
            // A wake-up by an index may deliver other changes too.
            Interest::Indexed { value, .. } => {
                let texts = [&change.2, &change.3].into_iter().flatten();
                interest.covers(&change.1)
                    && texts.into_iter().any(|text| text.starts_with(&**value))
            }
            _ => interest.covers(&change.1),
        };
        let begin = watcher.after as usize + 1;
        let end = watcher.reached.0 as usize;
        let happened: Vec<Told> = (begin..=end).filter_map(|at| self.told(at)).collect();
        let told: Vec<Told> = watcher.taken.iter().map(|change| told(change)).collect();
        let context = || format!("seed {}, {interest:?} after {begin}", self.seed);
        let revisions = told.windows(2).all(|two| two[0].0 < two[1].0);
        assert!(revisions, "{}: {told:?}", context());
        for change in &told {
            assert!(happened.contains(change), "{}: {change:?}", context());
            assert!(interest.covers(&change.1), "{}: {change:?}", context());
        }
        let wanted = |changes: Vec<Told>| changes.into_iter().filter(concerns).collect::<Vec<_>>();
        assert_eq!(wanted(told), wanted(happened), "{}", context());
    }

    /// The change at a revision.
    fn told(&self, revision: usize) -> Option<Told> {
        let (old, new) = (&self.states[revision - 1], &self.states[revision]);
        let mut keys = old.keys().chain(new.keys());
        let key = keys.find(|key| old.get(*key) != new.get(*key))?;
        let text = |state: &State| state.get(key).cloned();
        Some((revision as u64, key.clone(), text(old), text(new)))
    }
}

/// A revision, a key, and the object before and after.
type Told = (u64, String, Option<String>, Option<String>);

fn told(change: &Change<String>) -> Told {
    let text = |item: &Option<Arc<Item<String>>>| item.as_ref()?.object.clone().ok();
    (
        change.revision.0,
        change.key.to_string(),
        text(&change.old),
        text(&change.new),
    )
}

#[tokio::test(start_paused = true)]
async fn every_interleaving_tells_the_stores_history() {
    let mut ends = Vec::new();
    for seed in 1..=120 {
        let mut model = Model::new(seed);
        for _ in 0..250 {
            model.step().await;
        }
        ends.extend(model.finish().await);
    }
    for end in [CursorEnd::Lagged, CursorEnd::Lost] {
        let count = ends.iter().filter(|known| **known == end).count();
        assert!(count > 20, "hardly any stream ended so: {end:?}, {count}");
    }
}
