//! Configures how the C library's allocator treats large blocks.

#[cfg(target_env = "gnu")]
/// Blocks of this size or more are mapped separately, and returned to the system when freed.
const MMAP_THRESHOLD: i32 = 1 << 20;
#[cfg(target_env = "gnu")]
/// Free memory at the end of a heap beyond this is returned to the system.
const TRIM_THRESHOLD: i32 = 4 << 20;

/// Makes this process return large blocks to the system when they are freed, and grow them without copying.
///
/// By default glibc raises its threshold to 32 MiB after such blocks, keeps up to twice that in each arena, and copies a
/// block that grows: a memory budget for request bodies could not be enforced. Does nothing with other C libraries.
#[allow(unsafe_code, reason = "the allocator is configured through C")]
pub fn return_large_blocks() {
    #[cfg(target_env = "gnu")]
    // SAFETY: mallopt takes two integers, may be called at any time from any thread, and ignores unknown parameters.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, MMAP_THRESHOLD);
        libc::mallopt(libc::M_TRIM_THRESHOLD, TRIM_THRESHOLD);
    }
}
