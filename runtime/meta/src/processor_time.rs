//! The time that a thread had a processor: others that have it meanwhile do not count.

/// The processor time of this thread so far, in nanoseconds.
fn now() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    text.split_whitespace().next().unwrap().parse().unwrap()
}

/// What is long enough to be measured once, in nanoseconds: what others do meanwhile is little of it.
const LONG: u64 = 100_000_000;

/// The processor time that some work takes, in nanoseconds; the least of three attempts, or of fewer that take long.
pub(crate) fn least<T>(mut work: impl FnMut() -> T) -> u64 {
    least_with(|| (), |()| work())
}

/// As [`least`], for work on something that is made anew for each attempt, and whose making does not count.
pub(crate) fn least_with<I, T>(mut make: impl FnMut() -> I, mut work: impl FnMut(I) -> T) -> u64 {
    let mut once = || {
        let input = make();
        let started = now();
        let result = work(input);
        let took = now() - started;
        drop(result);
        took
    };
    let mut least = once();
    for _ in 0..2 {
        if least > LONG {
            break;
        }
        least = least.min(once());
    }
    least
}
