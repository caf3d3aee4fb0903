//! The memory that patterns take, and its limit.

/// Maximum cost of a pattern in bytes: the memory of its program. Go has a limit of 128 MiB of a form in which a class of
/// characters is one instruction; here it is an automaton over the bytes of UTF-8.
pub const MAX_COST: usize = 16 * 1024 * 1024;

/// The memory of one step over one byte in the forward and the reverse automaton, in bytes.
pub(super) const STEP: usize = 64;

/// The memory of any program, in bytes.
pub(super) const PROGRAM: usize = 4096;

/// The bytes of memory of one character.
pub(super) fn character_cost(c: char, folds: bool) -> usize {
    let steps = match (folds, c.is_ascii()) {
        (false, _) => c.len_utf8(),
        // The letters k and s have a third form, which is not ASCII.
        (true, true) => 8,
        (true, false) => 16,
    };
    steps * STEP
}
