//! A lane's part of the GPU: a queue of its own, pinned memory, places in device memory.
//!
//! A batch goes in on the lane's stream, is worked on in the session's, and comes out on the lane's again. The streams
//! wait for each other on the device, so that the processor waits once, at the end, and another lane's batch is copied
//! and queued meanwhile.

use std::sync::Arc;

use cudock_map::{Mapping, SharedMemory};

use crate::cuda::{CudaError, DeviceMemory, Gpu, Pinned, Stream};

/// What a lane has of a GPU.
pub(crate) struct LaneGpu {
    gpu: Arc<Gpu>,
    /// The GPU's number, as the engine counts.
    pub(crate) number: u32,
    stream: Stream,
    pin: bool,
    pinned: Vec<Option<Pinned>>,
    places: Vec<Option<Arc<DeviceMemory>>>,
}

impl LaneGpu {
    /// For so many tensors, inputs and outputs together.
    pub(crate) fn new(gpu: &Arc<Gpu>, number: u32, tensors: usize, pin: bool) -> Result<Self, CudaError> {
        Ok(Self {
            gpu: Arc::clone(gpu),
            number,
            stream: Stream::new(gpu)?,
            pin,
            pinned: (0..tensors).map(|_| None).collect(),
            places: vec![None; tensors],
        })
    }

    /// Pins a tensor's memory, if that is wanted, and lets go of where it was before. Memory that cannot be pinned is
    /// copied through a buffer of the driver's: slower, and otherwise the same.
    pub(crate) fn pin(&mut self, tensor: usize, memory: &SharedMemory) {
        if let Some(pinned) = self.pinned.get_mut(tensor).filter(|_| self.pin) {
            *pinned = None;
            *pinned = Pinned::new(&self.gpu, memory.mapping()).ok();
        }
    }

    /// A tensor's place on the device, with room for so many bytes. It stays where it is until more is asked for;
    /// whoever holds an earlier place keeps that one.
    pub(crate) fn place(&mut self, tensor: usize, bytes: usize) -> Result<Arc<DeviceMemory>, CudaError> {
        let known = self.places.get(tensor).cloned().flatten().filter(|place| place.size() >= bytes);
        if let Some(place) = known {
            return Ok(place);
        }
        let place = DeviceMemory::new(&self.gpu, bytes.checked_next_power_of_two().unwrap_or(bytes))?;
        if let Some(slot) = self.places.get_mut(tensor) {
            *slot = Some(Arc::clone(&place));
        }
        Ok(place)
    }

    /// Makes the GPU that of the calling thread; first of all for every batch.
    pub(crate) fn enter(&self) -> Result<(), CudaError> {
        self.gpu.enter()
    }

    pub(crate) fn copy_in(&self, from: &Mapping, to: &DeviceMemory, bytes: usize) -> Result<(), CudaError> {
        if bytes == 0 { Ok(()) } else { self.stream.copy_in(from, to, bytes) }
    }

    pub(crate) fn copy_out(&self, from: &DeviceMemory, to: &Mapping, bytes: usize) -> Result<(), CudaError> {
        if bytes == 0 { Ok(()) } else { self.stream.copy_out(from, to, bytes) }
    }

    /// Has the session's work wait for this lane's copies so far.
    pub(crate) fn before_work(&self, session: &Stream) -> Result<(), CudaError> {
        session.wait_for(&self.stream)
    }

    /// Has this lane's copies wait for the session's work so far.
    pub(crate) fn after_work(&self, session: &Stream) -> Result<(), CudaError> {
        self.stream.wait_for(session)
    }

    /// Waits for everything this lane has queued.
    pub(crate) fn finish(&self) -> Result<(), CudaError> {
        self.stream.finish()
    }

    /// Why this process can do nothing with the GPU any more, if so.
    pub(crate) fn broken(&self) -> Option<CudaError> {
        self.stream.broken()
    }
}

impl Drop for LaneGpu {
    fn drop(&mut self) {
        // Memory must not go while a copy is under way; what the driver says to it changes nothing now.
        let _ = self.gpu.enter().and_then(|()| self.stream.finish());
    }
}
