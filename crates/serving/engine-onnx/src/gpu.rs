//! The GPU resources of a lane: a stream, pinned memory, device buffers.
//!
//! A batch is copied in on the lane's stream, computed on the session's, and copied out on the lane's again. The
//! streams wait for each other on the device, so that the CPU waits only once, at the end, while another lane's batch
//! is copied and enqueued.

use std::sync::Arc;

use cudock_mmap::SharedMemory;

use crate::cuda::{CudaGpu, CudaStream, DeviceMemory, PinnedMemory};
use crate::memory_limit::BufferBudget;

pub(crate) struct LaneGpu {
    pub(crate) gpu: Arc<CudaGpu>,
    /// The GPU's index for ONNX Runtime.
    pub(crate) number: u32,
    pub(crate) stream: CudaStream,
    budget: Arc<BufferBudget>,
    pin: bool,
    pinned: Vec<Option<PinnedMemory>>,
    buffers: Vec<Option<Arc<DeviceMemory>>>,
}

impl LaneGpu {
    /// Creates the resources for `tensors` inputs and outputs.
    pub(crate) fn new(
        gpu: &Arc<CudaGpu>,
        budget: &Arc<BufferBudget>,
        number: u32,
        tensors: usize,
        pin: bool,
    ) -> Result<Self, String> {
        Ok(Self {
            gpu: Arc::clone(gpu),
            number,
            stream: CudaStream::new(gpu)?,
            budget: Arc::clone(budget),
            pin,
            pinned: (0..tensors).map(|_| None).collect(),
            buffers: vec![None; tensors],
        })
    }

    /// Pins a tensor's memory, if requested, and unpins its previous memory. Memory that cannot be pinned is copied
    /// through a buffer of the driver: slower, and otherwise the same.
    pub(crate) fn pin(&mut self, tensor: usize, memory: &SharedMemory) {
        if let Some(pinned) = self.pinned.get_mut(tensor).filter(|_| self.pin) {
            *pinned = None;
            *pinned = PinnedMemory::new(&self.gpu, memory.mapping()).ok();
        }
    }

    /// A tensor's device buffer of at least `bytes`. It does not move until more is requested; references to an earlier
    /// buffer stay valid.
    pub(crate) fn buffer(&mut self, tensor: usize, bytes: usize) -> Result<Arc<DeviceMemory>, String> {
        let known = self.buffers.get(tensor).cloned().flatten().filter(|buffer| buffer.size() >= bytes);
        if let Some(buffer) = known {
            return Ok(buffer);
        }
        let allocate = |size: usize| DeviceMemory::new(&self.gpu, &self.budget, size);
        let rounded = bytes.checked_next_power_of_two().unwrap_or(bytes);
        let buffer = allocate(rounded).or_else(|_| allocate(bytes))?;
        if let Some(slot) = self.buffers.get_mut(tensor) {
            *slot = Some(Arc::clone(&buffer));
        }
        Ok(buffer)
    }

    /// Forgets all buffers, which are freed with the last plan that uses them.
    pub(crate) fn release_buffers(&mut self) {
        self.buffers.fill(None);
    }
}

impl Drop for LaneGpu {
    fn drop(&mut self) {
        // Memory must not go while a copy is in progress; an error of the driver changes nothing now.
        let _ = self.gpu.enter().and_then(|()| self.stream.finish());
    }
}
