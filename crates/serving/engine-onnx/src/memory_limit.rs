//! The limit of an engine's device memory, divided among those that allocate it.
//!
//! Sessions allocate memory from arenas of their own, one each, for weights, intermediate values
//! and the workspaces of convolutions. Inputs and outputs of lanes are allocated separately.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::OnnxEngineSettings;

/// Share of the limit for inputs and outputs of lanes.
const BUFFER_SHARE: usize = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MemoryLimit {
    /// Bytes of one session.
    pub(crate) session: usize,
    /// Bytes of the buffers of all lanes.
    pub(crate) buffers: usize,
}

impl MemoryLimit {
    pub(crate) fn of(settings: &OnnxEngineSettings) -> Option<Self> {
        let limit = usize::try_from(settings.gpu_memory?).unwrap_or(usize::MAX);
        let buffers = if settings.kind.io_binding { limit / BUFFER_SHARE } else { 0 };
        let sessions = settings.kind.sessions.max(1).min(settings.lanes.max(1));
        Some(Self { session: (limit - buffers) / sessions, buffers })
    }
}

/// Bytes that lanes may allocate for inputs and outputs.
#[derive(Debug)]
pub(crate) struct BufferBudget {
    limit: usize,
    held: AtomicUsize,
}

impl BufferBudget {
    pub(crate) fn new(limit: Option<MemoryLimit>) -> Self {
        Self { limit: limit.map_or(usize::MAX, |limit| limit.buffers), held: AtomicUsize::new(0) }
    }

    /// Reserves memory, unless that exceeds the limit.
    pub(crate) fn reserve(&self, bytes: usize) -> Result<(), String> {
        let add = |held: usize| held.checked_add(bytes).filter(|held| *held <= self.limit);
        let reserved = self.held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
        reserved.map(drop).map_err(|held| {
            format!(
                "{OUT_OF_BUDGET}: {bytes} bytes for inputs and outputs, {held} of {} are in use",
                self.limit
            )
        })
    }

    pub(crate) fn release(&self, bytes: usize) {
        self.held.fetch_sub(bytes, Ordering::Relaxed);
    }
}

const OUT_OF_BUDGET: &str = "the limit of device memory is reached";

/// Whether the engine or the driver failed for lack of device memory. Neither has an error code for it, only text.
pub(crate) fn is_out_of_memory(text: &str) -> bool {
    let messages = [
        OUT_OF_BUDGET,
        // ONNX Runtime's arena.
        "Failed to allocate memory for requested buffer",
        "BFCArena",
        // The CUDA runtime and driver, with number and name.
        "CUDA failure 2:",
        "(CUDA error 2)",
        "cudaErrorMemoryAllocation",
        "CUDNN_STATUS_ALLOC_FAILED",
        "CUBLAS_STATUS_ALLOC_FAILED",
        // TensorRT.
        "OutOfMemory",
    ];
    messages.iter().any(|message| text.contains(message))
        || text.to_ascii_lowercase().contains("out of memory")
}

#[cfg(test)]
mod tests {
    use cudock_engine::EngineSettings;

    use super::*;
    use crate::OnnxSettings;

    fn settings(sessions: usize, lanes: usize, io_binding: bool) -> OnnxEngineSettings {
        let kind = OnnxSettings { sessions, io_binding, ..OnnxSettings::new("") };
        EngineSettings { lanes, gpu_memory: Some(800), ..EngineSettings::new("", kind) }
    }

    #[test]
    fn sessions_and_buffers_together_stay_within_the_limit() {
        for (sessions, lanes, io_binding, session, buffers) in
            [(1, 2, true, 700, 100), (2, 4, true, 350, 100), (1, 1, false, 800, 0), (4, 2, true, 350, 100)]
        {
            let limit = MemoryLimit::of(&settings(sessions, lanes, io_binding)).unwrap();
            assert_eq!(limit, MemoryLimit { session, buffers });
        }
        let unlimited = EngineSettings { gpu_memory: None, ..settings(1, 1, true) };
        assert_eq!(MemoryLimit::of(&unlimited), None);
    }

    #[test]
    fn buffers_beyond_the_limit_are_out_of_memory() {
        let budget = BufferBudget::new(MemoryLimit::of(&settings(1, 2, true)));
        budget.reserve(60).unwrap();
        let error = budget.reserve(41).unwrap_err();
        assert!(is_out_of_memory(&error), "{error}");
        budget.release(60);
        budget.reserve(100).unwrap();
        assert!(BufferBudget::new(None).reserve(usize::MAX).is_ok());
    }

    #[test]
    fn messages_about_memory_are_recognized() {
        for text in [
            "Non-zero status code returned while running Conv node. Name:'' Status Message: \
             /onnxruntime_src/onnxruntime/core/framework/bfc_arena.cc:376 void* onnxruntime::BFCArena::AllocateRawInternal(\
             size_t, bool, Stream*) Failed to allocate memory for requested buffer of size 2147483648",
            "CUDA failure 2: out of memory ; GPU=0 ; hostname=x ; expr=cudaMalloc((void**)&p, size);",
            "cannot allocate GPU memory: out of memory (CUDA error 2)",
            "CUDNN failure 4000: CUDNN_STATUS_ALLOC_FAILED",
        ] {
            assert!(is_out_of_memory(text), "{text}");
        }
        for text in
            ["indices element out of data bounds, idx=8", "CUDA failure 700: an illegal memory access"]
        {
            assert!(!is_out_of_memory(text), "{text}");
        }
    }
}
