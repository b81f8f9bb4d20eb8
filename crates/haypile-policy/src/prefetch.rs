//! Hints to the processor about memory that is needed soon. They change nothing that a program can see.

#![expect(unsafe_code, reason = "instructions that take any address")]

/// The length of a line of the processor's cache, in bytes.
pub const CACHE_LINE_BYTES: usize = 64;

/// Prefetches the line with this address into the processor's cache.
#[inline]
pub fn prefetch<T>(place: *const T) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: a prefetch reads nothing and accepts any address.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(place.cast());
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = place;
}

/// Prefetches the line with this address into the processor's cache for writing: no other processor has it then.
#[inline]
pub fn prefetch_to_write<T>(place: *const T) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: a prefetch accesses nothing and accepts any address; a processor without the instruction
    // does nothing.
    unsafe {
        std::arch::asm!("prefetchw [{}]", in(reg) place, options(nostack, preserves_flags, readonly));
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = place;
}
