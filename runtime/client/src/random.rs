//! Random numbers for jitter. Not for secrets.

use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

/// A random number from 0 up to, but without, 1.
pub(crate) fn fraction() -> f64 {
    // Each state has keys of its own; their hash of nothing is a random number of 64 bits, of which 53 fill an f64.
    let random = RandomState::new().hash_one(()) >> 11;
    random as f64 / (1_u64 << 53) as f64
}

/// The duration, longer by a random part of up to `most` times itself.
pub(crate) fn jittered(duration: Duration, most: f64) -> Duration {
    duration.mul_f64(1.0 + fraction() * most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_differ_and_fill_the_range() {
        let drawn: Vec<f64> = (0..1_000).map(|_| fraction()).collect();
        assert!(drawn.iter().all(|one| (0.0..1.0).contains(one)));
        assert!(drawn.iter().any(|one| *one < 0.1) && drawn.iter().any(|one| *one > 0.9));
    }

    #[test]
    fn jitter_only_lengthens() {
        let second = Duration::from_secs(1);
        for _ in 0..100 {
            let longer = jittered(second, 0.5);
            assert!(longer >= second && longer < second.mul_f64(1.5));
        }
    }
}
