//! The allocator of generated servers. Libraries choose none; the server's binary does, with `allocator!();`.

#[cfg(feature = "mimalloc")]
pub use mimalloc::MiMalloc as Allocator;
#[cfg(not(feature = "mimalloc"))]
pub use std::alloc::System as Allocator;

/// The allocator, for the binary's static.
pub const ALLOCATOR: Allocator = Allocator;

#[doc(hidden)]
#[macro_export]
macro_rules! __allocator {
    () => {
        #[global_allocator]
        static ALLOCATOR: $crate::codegen::Allocator = $crate::codegen::ALLOCATOR;
    };
}
