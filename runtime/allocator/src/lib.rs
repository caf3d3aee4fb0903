//! The allocator of generated servers: mimalloc, which gives memory back soon.
//!
//! A server with a limit of memory is ended by what its allocator keeps as by what it uses. mimalloc keeps freed memory for a second, and
//! gives it back only when more is freed: crowds of large documents took a server to 300 MiB that needed 170. With 10 ms a GET and a
//! create take the same CPU time as before; without any delay a GET takes up to 8 us more.
//!
//! This is the one crate of the project with unsafe code.

use std::env;
use std::ffi::c_long;

use libmimalloc_sys::{mi_option_get, mi_option_set, mi_option_t};

pub use mimalloc::MiMalloc;

/// `mi_option_purge_delay` of mimalloc 3, which the bindings do not name: milliseconds for which freed memory is kept.
const PURGE_DELAY: mi_option_t = 15;

/// Its default. Should a later mimalloc number its options otherwise, this one has another.
const DEFAULT: c_long = 1000;

const SHORT: c_long = 10;

/// The variable with which mimalloc lets users choose, in milliseconds.
const VARIABLE: &str = "MIMALLOC_PURGE_DELAY";

/// For how long freed memory is kept, in milliseconds.
pub fn purge_delay() -> c_long {
    // SAFETY: the function reads a number, and takes every index.
    #[expect(unsafe_code, reason = "a call in C")]
    unsafe {
        mi_option_get(PURGE_DELAY)
    }
}

/// Gives freed memory back after 10 ms, unless the variable `MIMALLOC_PURGE_DELAY` says how long it is kept, in milliseconds. For the
/// beginning of `main`, before there are other threads.
pub fn keep_briefly() {
    if env::var_os(VARIABLE).is_some() || purge_delay() != DEFAULT {
        return;
    }
    // SAFETY: the function writes a number, and takes every index. Should another thread free memory at this moment, it takes the delay
    // of before or this one.
    #[expect(unsafe_code, reason = "a call in C")]
    unsafe {
        mi_option_set(PURGE_DELAY, SHORT);
    }
}
