//! The memory of a lane: the inputs and outputs of one batch, shared between two processes.

pub(crate) mod output_view;

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use cudock_mmap::SharedMemory;
use cudock_tensor::{DType, Signature, TensorSpec, elements};

use crate::{EngineError, OutputView};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    pub shape: Vec<usize>,
    pub bytes: usize,
}

impl Extent {
    /// Whether the size is that of the shape; strings have any size.
    pub(crate) fn fits(&self, dtype: DType) -> bool {
        let expected = dtype.size().and_then(|size| elements(&self.shape)?.checked_mul(size));
        dtype == DType::String || expected == Some(self.bytes)
    }
}

/// The memory of a lane, in signature order. It grows with the batches and is reused by the next one.
pub struct LaneMemory {
    pub signature: Arc<Signature>,
    pub inputs: Vec<SharedMemory>,
    pub outputs: Vec<SharedMemory>,
    pub batch: Vec<Extent>,
    pub results: Vec<Extent>,
}

impl LaneMemory {
    /// Allocates memory for a model's tensors.
    pub fn new(signature: &Arc<Signature>) -> io::Result<Self> {
        let allocate = |specs: &[TensorSpec]| -> io::Result<Vec<SharedMemory>> {
            specs.iter().map(|_| SharedMemory::new(0)).collect()
        };
        Ok(Self::of(signature, allocate(&signature.inputs)?, allocate(&signature.outputs)?))
    }

    /// Maps the memory of [`LaneMemory::descriptors`] in another process.
    pub(crate) fn from_descriptors(
        signature: &Arc<Signature>,
        descriptors: impl Iterator<Item = OwnedFd>,
    ) -> io::Result<Self> {
        let mut inputs: Vec<_> = descriptors.map(SharedMemory::from_descriptor).collect::<io::Result<_>>()?;
        let outputs = inputs.split_off(signature.inputs.len().min(inputs.len()));
        Ok(Self::of(signature, inputs, outputs))
    }

    fn of(signature: &Arc<Signature>, inputs: Vec<SharedMemory>, outputs: Vec<SharedMemory>) -> Self {
        Self {
            signature: Arc::clone(signature),
            batch: vec![Extent::default(); inputs.len()],
            results: vec![Extent::default(); outputs.len()],
            inputs,
            outputs,
        }
    }

    pub(crate) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.inputs.iter().chain(&self.outputs).map(AsFd::as_fd)
    }

    /// Makes room for an input of the next batch; returns whether its address changed.
    pub fn grow_input(&mut self, index: usize, shape: &[usize], bytes: usize) -> Result<bool, EngineError> {
        let memory = self.set_input(index, shape, bytes)?;
        memory.grow(bytes).map_err(|source| EngineError::OutOfMemory(bytes, source))
    }

    /// Maps an input of the next batch that the other process has written; returns whether its address changed.
    pub fn follow_input(&mut self, index: usize, shape: &[usize], bytes: usize) -> Result<bool, EngineError> {
        let memory = self.set_input(index, shape, bytes)?;
        memory.follow(bytes).map_err(|source| EngineError::OutOfMemory(bytes, source))
    }

    fn set_input(
        &mut self,
        index: usize,
        shape: &[usize],
        bytes: usize,
    ) -> Result<&mut SharedMemory, EngineError> {
        let (Some(spec), Some(extent), Some(memory)) =
            (self.signature.inputs.get(index), self.batch.get_mut(index), self.inputs.get_mut(index))
        else {
            return Err(EngineError::Failed(format!("the model has no input {index}")));
        };
        extent.shape.clear();
        extent.shape.extend_from_slice(shape);
        extent.bytes = bytes;
        if extent.fits(spec.dtype) {
            return Ok(memory);
        }
        let text = format!("input {:?}: {} {shape:?} does not have {bytes} bytes", spec.name, spec.dtype);
        Err(EngineError::Failed(text))
    }

    pub fn input_mut(&mut self, index: usize) -> &mut [u8] {
        let bytes = self.batch.get(index).map_or(0, |extent| extent.bytes);
        self.inputs.get_mut(index).and_then(|memory| memory.bytes_mut().get_mut(..bytes)).unwrap_or_default()
    }

    /// Makes room for an output; returns whether its address changed.
    pub fn grow_output(&mut self, index: usize, bytes: usize) -> Result<bool, EngineError> {
        let memory = self
            .outputs
            .get_mut(index)
            .ok_or_else(|| EngineError::Failed(format!("the model has no output {index}")))?;
        memory.grow(bytes).map_err(|source| EngineError::OutOfMemory(bytes, source))
    }

    pub fn write_output(
        &mut self,
        index: usize,
        shape: Vec<usize>,
        data: &[u8],
    ) -> Result<bool, EngineError> {
        let has_moved = self.grow_output(index, data.len())?;
        if let (Some(memory), Some(result)) = (self.outputs.get_mut(index), self.results.get_mut(index)) {
            memory.bytes_mut().get_mut(..data.len()).unwrap_or_default().copy_from_slice(data);
            *result = Extent { shape, bytes: data.len() };
        }
        Ok(has_moved)
    }

    pub fn output_views(&self) -> Result<Vec<OutputView<'_>>, EngineError> {
        let outputs = self.signature.outputs.iter().zip(&self.results).zip(&self.outputs);
        outputs
            .map(|((spec, result), memory)| {
                let data = memory.bytes().get(..result.bytes).ok_or_else(|| {
                    EngineError::OutOfMemory(result.bytes, io::ErrorKind::InvalidData.into())
                })?;
                Ok(OutputView { dtype: spec.dtype, shape: result.shape.clone(), data })
            })
            .collect()
    }
}
