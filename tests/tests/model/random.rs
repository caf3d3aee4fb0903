//! Random choices that are the same for the same seed.

#[path = "../../../runtime/storage/tests/random/mod.rs"]
mod numbers;

pub(crate) use numbers::Random;

/// True once in `count` times.
pub(crate) fn one_in(random: &mut Random, count: usize) -> bool {
    random.below(count) == 0
}

/// A random element.
pub(crate) fn pick<T: Clone>(random: &mut Random, some: &[T]) -> T {
    some[random.below(some.len())].clone()
}

/// A generator of its own for a part of a run, so that a change in one part does not change the others.
pub(crate) fn branch(seed: u64, part: u64) -> Random {
    let mut random = Random(seed.wrapping_mul(0x0001_0000_01B3) ^ part);
    Random(random.next())
}
