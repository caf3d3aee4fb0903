//! Answers of a webhook that are kept for a time, and questions that several requests ask together.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use aws_lc_rs::hmac;
use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared, WeakShared};
use parking_lot::Mutex;

/// The digest of a question, by a key that only this process has: questions are secrets, and made by clients.
pub type Question = [u8; 32];

/// Answers by their questions. What is kept is bounded in bytes: the oldest answers leave first. The same question is asked once for all
/// that wait for its answer, and no longer when none waits.
#[derive(Clone)]
pub struct Answers<A>(Arc<Inner<A>>);

struct Inner<A> {
    key: hmac::Key,
    max_bytes: usize,
    bytes_of: fn(&A) -> usize,
    kept: Mutex<Kept<A>>,
    /// The questions that are being asked.
    asked: Mutex<HashMap<Question, WeakShared<BoxFuture<'static, A>>>>,
}

struct Kept<A> {
    answers: HashMap<Question, KeptAnswer<A>>,
    /// Questions in the order of their answers.
    order: BTreeMap<u64, Question>,
    last: u64,
    bytes: usize,
}

struct KeptAnswer<A> {
    answer: A,
    until: Instant,
    place: u64,
    bytes: usize,
}

/// Without questions and answers.
impl<A> fmt::Debug for Answers<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answers")
            .field("kept", &self.0.kept.lock().answers.len())
            .finish_non_exhaustive()
    }
}

impl<A: Clone + Send + Sync + 'static> Answers<A> {
    /// What an answer takes besides its own bytes.
    const OVERHEAD: usize = size_of::<KeptAnswer<A>>() + 4 * size_of::<Question>();

    /// No answers yet. At most `max_bytes` are kept; `bytes_of` tells what an answer takes.
    ///
    /// # Errors
    /// If the system has no random numbers.
    pub fn new(max_bytes: usize, bytes_of: fn(&A) -> usize) -> Result<Self, String> {
        let key = hmac::Key::generate(hmac::HMAC_SHA256, &aws_lc_rs::rand::SystemRandom::new());
        Ok(Self(Arc::new(Inner {
            key: key.map_err(|_| "the system has no random numbers".to_owned())?,
            max_bytes,
            bytes_of,
            kept: Mutex::new(Kept {
                answers: HashMap::new(),
                order: BTreeMap::new(),
                last: 0,
                bytes: 0,
            }),
            asked: Mutex::default(),
        })))
    }

    /// The question that these parts make. Other parts make another one, also if they are the same bytes together.
    pub fn question<'a>(&self, parts: impl IntoIterator<Item = &'a [u8]>) -> Question {
        let mut context = hmac::Context::with_key(&self.0.key);
        for part in parts {
            context.update(&(part.len() as u64).to_be_bytes());
            context.update(part);
        }
        let mut question = Question::default();
        question.copy_from_slice(context.sign().as_ref());
        question
    }

    /// The answer that is kept.
    pub fn kept(&self, question: &Question) -> Option<A> {
        let kept = self.0.kept.lock();
        let kept = kept.answers.get(question)?;
        (kept.until > Instant::now()).then(|| kept.answer.clone())
    }

    /// The answer that is kept, or that of `ask`, which says for how long it may be kept. Where the same question is being asked already, the
    /// answer of that.
    pub fn get<F>(
        &self,
        question: Question,
        ask: impl FnOnce() -> F,
    ) -> impl Future<Output = A> + Send + 'static
    where
        F: Future<Output = (A, Duration)> + Send + 'static,
    {
        match self.kept(&question) {
            Some(answer) => futures_util::future::Either::Left(std::future::ready(answer)),
            None => futures_util::future::Either::Right(self.asked(question, ask)),
        }
    }

    fn asked<F>(&self, question: Question, ask: impl FnOnce() -> F) -> Shared<BoxFuture<'static, A>>
    where
        F: Future<Output = (A, Duration)> + Send + 'static,
    {
        let mut asked = self.0.asked.lock();
        if let Some(present) = asked.get(&question).and_then(WeakShared::upgrade) {
            return present;
        }
        let end = End {
            answers: self.clone(),
            question,
        };
        let ask = ask();
        let answer = async move {
            let (answer, ttl) = ask.await;
            end.answers.keep(question, &answer, ttl);
            drop(end);
            answer
        };
        let answer = answer.boxed().shared();
        if let Some(weak) = answer.downgrade() {
            asked.insert(question, weak);
        }
        answer
    }

    fn keep(&self, question: Question, answer: &A, ttl: Duration) {
        let bytes = (self.0.bytes_of)(answer).saturating_add(Self::OVERHEAD);
        if ttl.is_zero() || bytes > self.0.max_bytes {
            return;
        }
        let now = Instant::now();
        let Some(until) = now.checked_add(ttl) else {
            return;
        };
        let mut kept = self.0.kept.lock();
        kept.remove(&question);
        while kept.bytes + bytes > self.0.max_bytes || kept.is_oldest_over(now) {
            let Some((_, oldest)) = kept.order.first_key_value().map(|(at, one)| (*at, *one))
            else {
                break;
            };
            kept.remove(&oldest);
        }
        kept.last += 1;
        let place = kept.last;
        kept.order.insert(place, question);
        kept.bytes += bytes;
        let answer = KeptAnswer {
            answer: answer.clone(),
            until,
            place,
            bytes,
        };
        kept.answers.insert(question, answer);
    }
}

impl<A> Kept<A> {
    fn remove(&mut self, question: &Question) {
        if let Some(answer) = self.answers.remove(question) {
            self.order.remove(&answer.place);
            self.bytes -= answer.bytes;
        }
    }

    fn is_oldest_over(&self, now: Instant) -> bool {
        let oldest = self.order.first_key_value();
        let oldest = oldest.and_then(|(_, question)| self.answers.get(question));
        oldest.is_some_and(|answer| answer.until <= now)
    }
}

/// Forgets that a question is being asked, when it is answered and when none waits for the answer.
struct End<A> {
    answers: Answers<A>,
    question: Question,
}

impl<A> Drop for End<A> {
    fn drop(&mut self) {
        self.answers.0.asked.lock().remove(&self.question);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::sync::Notify;

    use super::*;

    const TTL: Duration = Duration::from_secs(600);

    fn answers(max: usize) -> Answers<String> {
        Answers::new(max * (Answers::<String>::OVERHEAD + 1), String::len).unwrap()
    }

    #[tokio::test]
    async fn an_answer_is_kept_for_its_time() {
        let answers = answers(9);
        let [cat, dog] = [b"cat", b"dog"].map(|part| answers.question([&part[..]]));
        let asked = AtomicUsize::new(0);
        let get = |question, ttl| {
            let asked = &asked;
            let number = move || asked.fetch_add(1, Ordering::AcqRel);
            answers.get(question, move || {
                let answer = number().to_string();
                async move { (answer, ttl) }
            })
        };
        assert_eq!(get(cat, TTL).await, "0");
        assert_eq!(get(cat, TTL).await, "0");
        assert_eq!(get(dog, Duration::ZERO).await, "1");
        assert_eq!(get(dog, Duration::from_nanos(1)).await, "2");
        assert_eq!(get(dog, TTL).await, "3");
        assert!(answers.0.asked.lock().is_empty());
    }

    #[test]
    fn questions_are_their_parts() {
        let [answers, other] = [answers(1), answers(1)];
        let question = |parts: &[&str]| answers.question(parts.iter().map(|part| part.as_bytes()));
        assert_eq!(question(&["a", "b"]), question(&["a", "b"]));
        assert_ne!(question(&["a", "b"]), question(&["ab"]));
        assert_ne!(question(&["a", "b"]), question(&["", "ab"]));
        assert_ne!(question(&["a"]), other.question([&b"a"[..]]));
    }

    #[tokio::test]
    async fn answers_have_a_bound_together() {
        let answers = answers(3);
        let question = |number: u8| answers.question([&[number][..]]);
        let keep = |number: u8, text: &str, ttl| {
            let answer = text.to_owned();
            answers.get(question(number), move || async move { (answer, ttl) })
        };
        for number in 0..200 {
            keep(number, "a", TTL).await;
            let kept = answers.0.kept.lock();
            assert!(kept.answers.len() <= 3 && kept.order.len() == kept.answers.len());
            assert!(kept.bytes <= answers.0.max_bytes);
        }
        assert!(answers.kept(&question(196)).is_none());
        assert!(answers.kept(&question(197)).is_some());
        // One that is too large takes the place of no other.
        keep(200, &"a".repeat(answers.0.max_bytes), TTL).await;
        assert!(answers.kept(&question(200)).is_none());
        assert_eq!(answers.0.kept.lock().answers.len(), 3);
        // What is over leaves before it is in the way.
        keep(197, "b", Duration::from_nanos(1)).await;
        assert_eq!(answers.kept(&question(197)).as_deref(), Some("a"));
    }

    #[tokio::test]
    async fn a_question_is_asked_once_for_all_that_wait() {
        let answers = answers(9);
        let question = answers.question([&b"cat"[..]]);
        let (asked, go) = (Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
        let get = || {
            let (asked, go) = (Arc::clone(&asked), Arc::clone(&go));
            answers.get(question, || async move {
                asked.fetch_add(1, Ordering::AcqRel);
                go.notified().await;
                ("yes".to_owned(), Duration::ZERO)
            })
        };
        let first = tokio::spawn(get());
        let others = [tokio::spawn(get()), tokio::spawn(get())];
        while asked.load(Ordering::Acquire) == 0 {
            tokio::task::yield_now().await;
        }
        // The one that asked leaves; the others wait on.
        first.abort();
        assert!(first.await.is_err());
        go.notify_one();
        for other in others {
            assert_eq!(other.await.unwrap(), "yes");
        }
        assert_eq!(asked.load(Ordering::Acquire), 1);
        // Where all leave, it is not asked any more.
        let last = tokio::spawn(get());
        while asked.load(Ordering::Acquire) == 1 {
            tokio::task::yield_now().await;
        }
        last.abort();
        assert!(last.await.is_err());
        assert!(answers.0.asked.lock().is_empty());
    }
}
