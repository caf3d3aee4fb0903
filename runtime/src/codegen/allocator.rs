//! The allocator of generated servers. The server's binary selects it with `allocator!();`; libraries do not.

#[cfg(feature = "mimalloc")]
pub use apiloom_allocator::Allocator;
#[cfg(not(feature = "mimalloc"))]
pub use std::alloc::System as Allocator;

/// The allocator, for a static in the binary.
pub const ALLOCATOR: Allocator = Allocator;

/// For the beginning of the server's `main`.
pub(super) fn prepare() {
    #[cfg(feature = "mimalloc")]
    apiloom_allocator::keep_little();
}

#[doc(hidden)]
#[macro_export]
macro_rules! __allocator {
    () => {
        #[global_allocator]
        static ALLOCATOR: $crate::codegen::Allocator = $crate::codegen::ALLOCATOR;
    };
}
