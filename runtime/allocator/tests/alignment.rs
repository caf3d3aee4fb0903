//! A program of this allocator gets memory of every size as its types are aligned, zeroed where it asks for that, and keeps it when it grows.

use std::hint::black_box;

use apiloom_allocator::Allocator;

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

/// Sizes around those of mimalloc's pages.
fn sizes() -> impl Iterator<Item = usize> {
    (1..=300).chain([
        511, 512, 513, 1023, 1024, 4095, 4097, 8191, 65_537, 1_000_003,
    ])
}

/// The bytes of the largest elements together, and of the largest that stay beside others.
const LARGEST: usize = 4 * 1024 * 1024;
const KEPT: usize = 16 * 1024;

/// Elements of one alignment: many of each size, so that pages become full, with a test of where each lies.
fn check<T: Clone + PartialEq + From<u8>>() {
    let align = align_of::<T>();
    let mut kept = Vec::new();
    for size in sizes().filter(|size| size * align <= LARGEST) {
        for round in 0..5 {
            let mut elements = black_box(Vec::<T>::with_capacity(size));
            assert_eq!(elements.as_ptr().addr() % align, 0, "{size} of {align}");
            elements.resize(size, T::from(7));
            if round % 2 == 0 {
                // To grow is to move.
                elements.reserve_exact(size + 1);
                assert_eq!(
                    elements.as_ptr().addr() % align,
                    0,
                    "{size} of {align}, grown"
                );
                assert!(elements.iter().all(|one| *one == T::from(7)));
                elements.truncate(size.div_ceil(2));
                elements.shrink_to_fit();
                assert_eq!(
                    elements.as_ptr().addr() % align,
                    0,
                    "{size} of {align}, less"
                );
            }
            if size * align <= KEPT {
                kept.push(elements);
            }
        }
    }
    let mut all = kept.iter().flatten();
    assert!(all.all(|one| *one == T::from(7)), "nothing lies on another");
}

macro_rules! aligned {
    ($($name:ident $align:literal)+) => {
        $(
            #[derive(Clone, PartialEq)]
            #[repr(align($align))]
            struct $name(u8);

            impl From<u8> for $name {
                fn from(value: u8) -> Self {
                    Self(value)
                }
            }
        )+
    };
}

aligned!(Of16 16 Of32 32 Of64 64 Of4096 4096);

#[test]
fn memory_is_aligned_as_its_types() {
    check::<u8>();
    check::<u16>();
    check::<u32>();
    check::<u64>();
    check::<Of16>();
    check::<Of32>();
    check::<Of64>();
    check::<Of4096>();
}

#[test]
fn zeroed_memory_is_zero_also_where_other_content_was() {
    for size in sizes() {
        for _ in 0..3 {
            drop(black_box(vec![0xff_u8; size]));
            let zeroed = black_box(vec![0_u8; size]);
            assert!(zeroed.iter().all(|byte| *byte == 0), "{size}");
            let zeroed = black_box(vec![0_u128; size]);
            assert_eq!(zeroed.as_ptr().addr() % 16, 0, "{size}");
            assert!(zeroed.iter().all(|number| *number == 0), "{size}");
        }
    }
}
