//! The allocator of generated servers: mimalloc, which gives memory back soon.
//!
//! A server with a limit of memory is ended by what its allocator keeps as by what it uses. Some of mimalloc's options decide on it; each
//! has a variable of the environment that wins over what is set here.
//! - `MIMALLOC_PURGE_DELAY`, the milliseconds for which freed memory is kept. A second, its default, is given back only when more is freed:
//!   crowds of large documents took a server to 300 MiB that needed 170. With 10 ms a GET and a create take the same CPU time as before;
//!   without any delay a GET takes up to 8 us more.
//! - `MIMALLOC_ARENA_MAX_OBJECT_SIZE`, such as `4MiB`: what is larger comes from the system by itself, and goes back whole. By default 2 GiB, so
//!   that large objects share the arenas with small ones, and those that find no room in one piece between them make another arena. With
//!   4 MiB documents take the same CPU time, and less memory at once.
//! - `MIMALLOC_ARENA_RESERVE`, such as `1GiB`: the address space of an arena, 1 GiB, and 128 MiB where that is too much. None is reserved after the
//!   first where the address space is little (`ulimit -v`): what else is needed comes from the system and goes back. A server with 116 MiB in
//!   use had reserved nearly all of 512 MiB, because each thread has pages of 4 MiB for each size of larger objects.
//!
//! This is the one crate of the project with unsafe code.

use std::alloc::{GlobalAlloc, Layout};
use std::env;
use std::ffi::c_long;

use libmimalloc_sys::{
    mi_free, mi_malloc, mi_malloc_aligned, mi_option_get, mi_option_set, mi_option_t, mi_realloc,
    mi_realloc_aligned, mi_zalloc, mi_zalloc_aligned,
};

/// mimalloc as the allocator of a program.
///
/// Nearly everything takes mimalloc's ordinary functions, which align as C's `malloc` does. Those for any alignment, which the crate `mimalloc`
/// always calls, take up to 200 instructions more when the first page of a size is full, and 15 bytes more than were asked for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Allocator;

/// The largest alignment that a type of C has, which `malloc` obeys for what is at least as large.
const LARGEST_OF_C: usize = 16;

/// Whether the ordinary functions align as much as is asked for.
const fn is_ordinary(size: usize, align: usize) -> bool {
    align <= LARGEST_OF_C && align <= size
}

// SAFETY: mimalloc gives each caller memory of its own of at least the asked size and alignment or null, moves its content when it grows, and
// neither unwinds nor calls back. An ordinary function aligns to 8 bytes below 16 bytes of size, and to 16 from there on. Memory of either kind of
// function can be given to `mi_free` and to either kind of `realloc`.
#[expect(unsafe_code, reason = "the interface of allocators")]
unsafe impl GlobalAlloc for Allocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let (size, align) = (layout.size(), layout.align());
        // SAFETY: the functions take every size, and every alignment that is a power of two.
        unsafe {
            if is_ordinary(size, align) {
                mi_malloc(size).cast()
            } else {
                mi_malloc_aligned(size, align).cast()
            }
        }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let (size, align) = (layout.size(), layout.align());
        // SAFETY: as above.
        unsafe {
            if is_ordinary(size, align) {
                mi_zalloc(size).cast()
            } else {
                mi_zalloc_aligned(size, align).cast()
            }
        }
    }

    #[inline]
    unsafe fn dealloc(&self, memory: *mut u8, _: Layout) {
        // SAFETY: the caller got the memory from this allocator, and uses it no more.
        unsafe { mi_free(memory.cast()) }
    }

    #[inline]
    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let align = layout.align();
        // SAFETY: the caller got the memory from this allocator, and uses what is returned in its place.
        unsafe {
            if is_ordinary(size, align) {
                mi_realloc(memory.cast(), size).cast()
            } else {
                mi_realloc_aligned(memory.cast(), size, align).cast()
            }
        }
    }
}

/// An option of mimalloc 3 that the bindings do not name.
#[derive(Debug)]
pub struct Setting {
    option: mi_option_t,
    /// Its default. Should a later mimalloc number its options otherwise, this one has another.
    default: c_long,
    ours: c_long,
    /// With which mimalloc lets users choose.
    variable: &'static str,
}

/// For how long freed memory is kept, in milliseconds: 10.
pub const PURGE_DELAY: Setting = Setting {
    option: 15,
    default: 1000,
    ours: 10,
    variable: "MIMALLOC_PURGE_DELAY",
};

/// The largest object that lies beside others, in KiB: 4096.
pub const LARGEST_IN_ARENA: Setting = Setting {
    option: 45,
    default: 2 * 1024 * 1024,
    ours: 4 * 1024,
    variable: "MIMALLOC_ARENA_MAX_OBJECT_SIZE",
};

/// The address space of a further arena, in KiB: 0, which is none, where the address space has a limit below 2 GiB.
pub const FURTHER_ARENAS: Setting = Setting {
    option: 23,
    default: 1024 * 1024,
    ours: 0,
    variable: "MIMALLOC_ARENA_RESERVE",
};

/// A limit of the address space in bytes below which there is one arena: 2 GiB. What is mapped by itself is 64 KiB and more, and Linux maps
/// up to 65,530 pieces.
const LITTLE: u64 = 2 * 1024 * 1024 * 1024;

impl Setting {
    /// What it is in this process.
    pub fn get(&self) -> c_long {
        // SAFETY: the function reads a number, and takes every index.
        #[expect(unsafe_code, reason = "a call in C")]
        unsafe {
            mi_option_get(self.option)
        }
    }

    fn set_ours(&self) {
        if env::var_os(self.variable).is_some() || self.get() != self.default {
            return;
        }
        // SAFETY: the function writes a number, and takes every index. Should another thread use the allocator at this moment, it takes
        // the number of before or this one.
        #[expect(unsafe_code, reason = "a call in C")]
        unsafe {
            mi_option_set(self.option, self.ours);
        }
    }
}

/// Gives freed memory back soon, unless the environment says otherwise. For the beginning of `main`, before there are other threads.
pub fn keep_little() {
    PURGE_DELAY.set_ours();
    LARGEST_IN_ARENA.set_ours();
    if address_space().is_some_and(|limit| limit < LITTLE) {
        FURTHER_ARENAS.set_ours();
    }
}

/// The limit of the address space in bytes, as `ulimit -v` sets it.
fn address_space() -> Option<u64> {
    #[cfg(unix)]
    return rustix::process::getrlimit(rustix::process::Resource::As).current;
    #[cfg(not(unix))]
    None
}
