//! Memory shared by two processes, each at its own address.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use memmap2::MmapRaw;
use rustix::fs::{
    FallocateFlags, MemfdFlags, SealFlags, fallocate, fcntl_add_seals, fcntl_get_seals, memfd_create,
};

/// Sizes are multiples of this, which is a multiple of the page size on all machines.
const STEP: usize = 64 << 10;

/// Anonymous memory that can be passed to another process. It can grow but never shrink: the kernel prevents it, so that no
/// process can remove pages that another one uses.
///
/// Writes are visible to the other process. Nothing here prevents concurrent writes; both sides must agree on turns.
#[derive(Debug)]
pub struct SharedMemory {
    file: File,
    mapping: Arc<Mapping>,
}

/// An address range of shared memory, valid as long as this value, even if the memory has grown and moved since.
#[derive(Debug)]
pub struct Mapping(MmapRaw);

impl Mapping {
    #[must_use]
    pub fn address(&self) -> *mut u8 {
        self.0.as_mut_ptr()
    }

    /// The size in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        self.0.len()
    }
}

impl SharedMemory {
    /// Creates zeroed memory of at least `bytes`.
    pub fn new(bytes: usize) -> io::Result<Self> {
        let file = memfd_create("cudock", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        fcntl_add_seals(&file, SealFlags::SHRINK)?;
        let file = File::from(file);
        file.set_len(round_up(bytes)?)?;
        let mapping = Arc::new(Mapping(MmapRaw::map_raw(&file)?));
        Ok(Self { file, mapping })
    }

    /// Maps memory of a descriptor from another process. Rejected unless it is sealed against shrinking.
    pub fn from_descriptor(descriptor: OwnedFd) -> io::Result<Self> {
        if !fcntl_get_seals(&descriptor)?.contains(SealFlags::SHRINK) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "shared memory is not sealed against shrinking",
            ));
        }
        let file = File::from(descriptor);
        let mapping = Arc::new(Mapping(MmapRaw::map_raw(&file)?));
        Ok(Self { file, mapping })
    }

    /// Grows it to at least `bytes`; returns whether its address changed.
    pub fn grow(&mut self, bytes: usize) -> io::Result<bool> {
        if bytes <= self.mapping.size() {
            return Ok(false);
        }
        let new_size = round_up(bytes.checked_next_power_of_two().unwrap_or(bytes))?;
        if self.file.metadata()?.len() < new_size {
            self.file.set_len(new_size)?;
        }
        self.remap()?;
        Ok(true)
    }

    /// Maps at least `bytes`, if the other process has grown the memory; fails if it has not. Returns whether the address
    /// changed.
    pub fn follow(&mut self, bytes: usize) -> io::Result<bool> {
        if bytes <= self.mapping.size() {
            return Ok(false);
        }
        let available = self.file.metadata()?.len();
        if available < as_length(bytes)? {
            let text = format!("shared memory has {available} bytes, not {bytes}");
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
        self.remap()?;
        Ok(true)
    }

    /// Returns the memory after the first `beyond` bytes to the system. The size does not change; it reads as zero in both
    /// processes. Not for memory that a device reads.
    pub fn discard(&mut self, beyond: usize) -> io::Result<()> {
        let size = self.mapping.size();
        if size > beyond {
            let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            fallocate(&self.file, hole, beyond as u64, (size - beyond) as u64)?;
        }
        Ok(())
    }

    #[must_use]
    #[allow(unsafe_code, reason = "a mapping is a raw pointer")]
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the mapping is readable, `size` bytes long, and lives as long as `self`; the seal prevents the file from
        // becoming shorter. The other process could write at the same time, against the agreement: then any bytes may be
        // read, as with a mapped file, and no caller relies on two reads giving the same.
        unsafe { std::slice::from_raw_parts(self.mapping.address(), self.mapping.size()) }
    }

    #[allow(unsafe_code, reason = "a mapping is a raw pointer")]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as for `bytes`; the mapping is writable, and `&mut self` excludes all other slices of it.
        unsafe { std::slice::from_raw_parts_mut(self.mapping.address(), self.mapping.size()) }
    }

    /// The current mapping, to keep it alive.
    #[must_use]
    pub fn mapping(&self) -> Arc<Mapping> {
        Arc::clone(&self.mapping)
    }

    fn remap(&mut self) -> io::Result<()> {
        self.mapping = Arc::new(Mapping(MmapRaw::map_raw(&self.file)?));
        Ok(())
    }
}

impl AsFd for SharedMemory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

fn round_up(bytes: usize) -> io::Result<u64> {
    bytes.max(1).checked_next_multiple_of(STEP).map_or_else(|| Err(too_large()), as_length)
}

fn as_length(bytes: usize) -> io::Result<u64> {
    u64::try_from(bytes).map_err(|_| too_large())
}

fn too_large() -> io::Error {
    io::Error::new(io::ErrorKind::OutOfMemory, "size exceeds the address space")
}

#[cfg(test)]
mod tests {
    use rustix::fs::{MemfdFlags, memfd_create};

    use super::SharedMemory;

    fn other_side(memory: &SharedMemory) -> SharedMemory {
        SharedMemory::from_descriptor(memory.file.try_clone().unwrap().into()).unwrap()
    }

    #[test]
    fn writes_are_visible_to_the_other_side() {
        let mut ours = SharedMemory::new(10).unwrap();
        let theirs = other_side(&ours);
        ours.bytes_mut()[..3].copy_from_slice(b"abc");
        assert_eq!(&theirs.bytes()[..4], b"abc\0");
    }

    #[test]
    fn discarded_memory_is_zero_on_both_sides_and_writable() {
        let mut ours = SharedMemory::new(1 << 20).unwrap();
        let theirs = other_side(&ours);
        ours.bytes_mut().fill(7);
        ours.discard(64 << 10).unwrap();
        for side in [ours.bytes(), theirs.bytes()] {
            assert_eq!((side.len(), side[0], side[(64 << 10) - 1]), (1 << 20, 7, 7));
            assert!(side[64 << 10..].iter().all(|byte| *byte == 0));
        }
        ours.bytes_mut()[1 << 19] = 9;
        assert_eq!(theirs.bytes()[1 << 19], 9);
    }

    #[test]
    fn growing_keeps_the_contents_and_the_other_side_follows() {
        let mut ours = SharedMemory::new(1).unwrap();
        let mut theirs = other_side(&ours);
        let first = ours.bytes().len();
        ours.bytes_mut()[first - 1] = 7;
        assert!(ours.grow(first + 1).unwrap());
        assert!(!ours.grow(first + 1).unwrap());
        let last = ours.bytes().len() - 1;
        ours.bytes_mut()[last] = 9;
        assert!(theirs.follow(last + 1).unwrap());
        assert_eq!((theirs.bytes()[first - 1], theirs.bytes()[last]), (7, 9));
    }

    #[test]
    fn an_old_mapping_stays_valid_after_growth() {
        let mut memory = SharedMemory::new(1).unwrap();
        let old = memory.mapping();
        memory.grow(old.size() * 8).unwrap();
        assert_ne!(old.size(), memory.mapping().size());
        assert!(!old.address().is_null());
    }

    #[test]
    fn a_claim_beyond_the_size_is_rejected() {
        let mut memory = SharedMemory::new(1).unwrap();
        let claim = memory.bytes().len() + 1;
        assert!(memory.follow(claim).unwrap_err().to_string().contains("not "));
    }

    #[test]
    fn memory_that_could_shrink_is_rejected() {
        let open = memfd_create("test", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
        assert!(SharedMemory::from_descriptor(open).is_err());
    }

    #[test]
    fn an_impossible_size_is_an_error() {
        assert!(SharedMemory::new(usize::MAX).is_err());
        assert!(SharedMemory::new(1).unwrap().grow(usize::MAX).is_err());
    }
}
