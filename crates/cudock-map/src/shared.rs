//! Memory that two processes look at, each at an address of its own.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use memmap2::MmapRaw;
use rustix::fs::{
    FallocateFlags, MemfdFlags, SealFlags, fallocate, fcntl_add_seals, fcntl_get_seals, memfd_create,
};

/// Sizes are multiples of this: pages of every machine fit into it.
const STEP: usize = 64 << 10;

/// Memory without a name in any file system, which can be handed to another process and grows, but never shrinks: the
/// kernel itself refuses to, so that no process can take pages away under another.
///
/// What one side writes the other sees. Nothing here keeps the two from writing at once; they must agree on turns.
#[derive(Debug)]
pub struct SharedMemory {
    file: File,
    mapping: Arc<Mapping>,
}

/// Addresses of shared memory, valid for as long as this lives, even if the memory has grown and moved since.
#[derive(Debug)]
pub struct Mapping(MmapRaw);

impl Mapping {
    /// Its first byte.
    #[must_use]
    pub fn address(&self) -> *mut u8 {
        self.0.as_mut_ptr()
    }

    /// Its bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        self.0.len()
    }
}

impl SharedMemory {
    /// Memory of at least so many bytes, all zero.
    pub fn new(bytes: usize) -> io::Result<Self> {
        let file = memfd_create("cudock", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        fcntl_add_seals(&file, SealFlags::SHRINK)?;
        let file = File::from(file);
        file.set_len(rounded(bytes)?)?;
        let mapping = Arc::new(Mapping(MmapRaw::map_raw(&file)?));
        Ok(Self { file, mapping })
    }

    /// The memory behind a descriptor that another process sent. Refused unless the kernel keeps it from shrinking.
    pub fn from_descriptor(descriptor: OwnedFd) -> io::Result<Self> {
        if !fcntl_get_seals(&descriptor)?.contains(SealFlags::SHRINK) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "shared memory that could shrink"));
        }
        let file = File::from(descriptor);
        let mapping = Arc::new(Mapping(MmapRaw::map_raw(&file)?));
        Ok(Self { file, mapping })
    }

    /// Makes it at least so large, by growing it. Says whether it moved to other addresses.
    pub fn grow(&mut self, bytes: usize) -> io::Result<bool> {
        if bytes <= self.mapping.size() {
            return Ok(false);
        }
        let wanted = rounded(bytes.checked_next_power_of_two().unwrap_or(bytes))?;
        if self.file.metadata()?.len() < wanted {
            self.file.set_len(wanted)?;
        }
        self.map_again()?;
        Ok(true)
    }

    /// Sees to it that so many bytes can be looked at, if the other side made it that large; an error if it did not.
    /// Says whether it moved to other addresses.
    pub fn follow(&mut self, bytes: usize) -> io::Result<bool> {
        if bytes <= self.mapping.size() {
            return Ok(false);
        }
        let there = self.file.metadata()?.len();
        if there < as_length(bytes)? {
            let text = format!("shared memory has {there} bytes, not {bytes}");
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
        self.map_again()?;
        Ok(true)
    }

    /// Gives the memory beyond so many bytes back to the system. Its size stays; what is read there next is zero, in
    /// both processes. Not for memory that a device was told to read.
    pub fn discard(&mut self, beyond: usize) -> io::Result<()> {
        let size = self.mapping.size();
        if size > beyond {
            let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            fallocate(&self.file, hole, beyond as u64, (size - beyond) as u64)?;
        }
        Ok(())
    }

    /// All bytes of it.
    #[must_use]
    #[allow(unsafe_code, reason = "a mapping is a bare address")]
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the mapping is readable, `size` bytes long, and lives as long as `self`; the seal keeps the file
        // from becoming shorter than it. The other process could write meanwhile, against the agreement: then the
        // bytes read are any bytes, as with a mapped file, and nothing here or in any caller relies on two reads
        // giving the same.
        unsafe { std::slice::from_raw_parts(self.mapping.address(), self.mapping.size()) }
    }

    /// All bytes of it, to be written.
    #[allow(unsafe_code, reason = "a mapping is a bare address")]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as for `bytes`; the mapping is writable, and `&mut self` keeps every other slice of this one away.
        unsafe { std::slice::from_raw_parts_mut(self.mapping.address(), self.mapping.size()) }
    }

    /// Its addresses, for whoever must keep them.
    #[must_use]
    pub fn mapping(&self) -> Arc<Mapping> {
        Arc::clone(&self.mapping)
    }

    fn map_again(&mut self) -> io::Result<()> {
        self.mapping = Arc::new(Mapping(MmapRaw::map_raw(&self.file)?));
        Ok(())
    }
}

impl AsFd for SharedMemory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

fn rounded(bytes: usize) -> io::Result<u64> {
    bytes.max(1).checked_next_multiple_of(STEP).map_or_else(|| Err(too_large()), as_length)
}

fn as_length(bytes: usize) -> io::Result<u64> {
    u64::try_from(bytes).map_err(|_| too_large())
}

fn too_large() -> io::Error {
    io::Error::new(io::ErrorKind::OutOfMemory, "more bytes than a machine can address")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may fail loudly")]

    use rustix::fs::{MemfdFlags, memfd_create};

    use super::SharedMemory;

    fn another(memory: &SharedMemory) -> SharedMemory {
        SharedMemory::from_descriptor(memory.file.try_clone().unwrap().into()).unwrap()
    }

    #[test]
    fn what_one_side_writes_the_other_sees() {
        let mut ours = SharedMemory::new(10).unwrap();
        let theirs = another(&ours);
        ours.bytes_mut()[..3].copy_from_slice(b"abc");
        assert_eq!(&theirs.bytes()[..4], b"abc\0");
    }

    #[test]
    fn what_is_discarded_is_zero_on_both_sides_and_can_be_written_again() {
        let mut ours = SharedMemory::new(1 << 20).unwrap();
        let theirs = another(&ours);
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
    fn growing_keeps_the_bytes_and_the_other_side_follows() {
        let mut ours = SharedMemory::new(1).unwrap();
        let mut theirs = another(&ours);
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
    fn a_claim_of_more_than_there_is_is_refused() {
        let mut memory = SharedMemory::new(1).unwrap();
        let claim = memory.bytes().len() + 1;
        assert!(memory.follow(claim).unwrap_err().to_string().contains("not "));
    }

    #[test]
    fn memory_that_could_shrink_is_refused() {
        let open = memfd_create("test", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
        assert!(SharedMemory::from_descriptor(open).is_err());
    }

    #[test]
    fn a_size_beyond_the_machine_is_an_error_and_no_panic() {
        assert!(SharedMemory::new(usize::MAX).is_err());
        assert!(SharedMemory::new(1).unwrap().grow(usize::MAX).is_err());
    }
}
