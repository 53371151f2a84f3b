//! How the C library's allocator treats large blocks.

#[cfg(target_env = "gnu")]
/// Blocks of this size and more are mapped one by one and go back to the system as soon as they are freed.
const MAPPED_FROM: i32 = 1 << 20;
#[cfg(target_env = "gnu")]
/// Free memory at the end of a heap beyond this goes back to the system.
const KEPT_FREE: i32 = 4 << 20;

/// Makes this process give large blocks back to the system when they are freed, and grow them without copying.
///
/// By default glibc raises its threshold to 32 MiB once it has seen such blocks, keeps up to twice that for each arena,
/// and copies a block that grows: a memory budget for request bodies could not be held to. Does nothing with another
/// C library.
#[allow(unsafe_code, reason = "the allocator is set through C")]
pub fn return_large_blocks() {
    #[cfg(target_env = "gnu")]
    // SAFETY: mallopt takes two numbers by value, may be called at any time and from any thread, and ignores what it
    // does not know.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, MAPPED_FROM);
        libc::mallopt(libc::M_TRIM_THRESHOLD, KEPT_FREE);
    }
}
