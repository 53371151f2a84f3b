//! How to run batches of certain shapes: the engine's tensors over a lane's memory, created once and reused.

use std::sync::Arc;
use std::thread::ThreadId;

use cudock_engine::Extent;
use cudock_mmap::SharedMemory;
use cudock_tensor::{DType, Signature, TensorSpec, elements};
use ort::session::RunOptions;

use crate::cuda::DeviceMemory;
use crate::gpu::LaneGpu;
use crate::ort_tensor::OrtTensor;

/// Everything that a run with certain shapes needs.
pub(crate) struct RunPlan {
    pub(crate) inputs: Vec<OrtTensor>,
    /// `None` if the engine allocates the output.
    pub(crate) outputs: Vec<Option<OrtTensor>>,
    /// The extents of outputs with a known shape.
    pub(crate) extents: Vec<Option<Extent>>,
    pub(crate) options: Arc<RunOptions>,
    /// Device buffers of inputs and outputs, if they are on the device.
    pub(crate) buffers: Option<DeviceBuffers>,
    /// Whether this run is captured as a CUDA graph, so that its buffers must not move.
    pub(crate) captured: bool,
    /// The thread that captured it: the engine keeps graphs per thread.
    pub(crate) captured_by: Option<ThreadId>,
}

impl RunPlan {
    /// Whether the next run will capture a graph.
    pub(crate) fn will_capture(&self) -> bool {
        self.captured && self.captured_by != Some(std::thread::current().id())
    }
}

/// Device buffers; `None` for tensors in host memory.
pub(crate) struct DeviceBuffers {
    pub(crate) inputs: Vec<Option<Arc<DeviceMemory>>>,
    pub(crate) outputs: Vec<Option<Arc<DeviceMemory>>>,
}

pub(crate) struct RunPlanInputs<'lane> {
    pub(crate) signature: &'lane Signature,
    pub(crate) inputs: &'lane [SharedMemory],
    pub(crate) outputs: &'lane [SharedMemory],
    pub(crate) batch: &'lane [Extent],
    /// The extent of each output, if known.
    pub(crate) extents: Vec<Option<Extent>>,
    /// The id of the CUDA graph, if the run is captured.
    pub(crate) graph_id: Option<u32>,
    /// Whether the engine uses CUDA graphs at all, so that other runs must opt out.
    pub(crate) uses_graphs: bool,
}

impl RunPlan {
    /// A plan with all tensors in host memory.
    pub(crate) fn on_host(parts: RunPlanInputs<'_>) -> Result<Self, String> {
        let inputs = (0..parts.signature.inputs.len()).map(|index| host_input(&parts, index));
        let inputs = inputs.collect::<Result<_, String>>()?;
        let outputs = parts
            .extents
            .iter()
            .zip(&parts.signature.outputs)
            .zip(parts.outputs)
            .map(|((extent, spec), memory)| {
                extent
                    .as_ref()
                    .map(|extent| OrtTensor::on_host(memory.mapping(), spec.dtype, &extent.shape))
                    .transpose()
            })
            .collect::<Result<_, String>>()?;
        let options = RunOptions::new().map_err(|error| error.to_string())?;
        Ok(Self {
            inputs,
            outputs,
            extents: parts.extents,
            options: Arc::new(options),
            buffers: None,
            captured: false,
            captured_by: None,
        })
    }

    /// A plan with all tensors in device memory that can be.
    pub(crate) fn on_device(parts: RunPlanInputs<'_>, gpu: &mut LaneGpu) -> Result<Self, String> {
        let mut buffers = DeviceBuffers { inputs: Vec::new(), outputs: Vec::new() };
        let mut inputs = Vec::new();
        for (index, (spec, extent)) in parts.signature.inputs.iter().zip(parts.batch).enumerate() {
            if spec.dtype == DType::String {
                inputs.push(host_input(&parts, index)?);
                buffers.inputs.push(None);
            } else {
                let (tensor, buffer) = device_tensor(gpu, index, spec.dtype, extent)?;
                inputs.push(tensor);
                buffers.inputs.push(Some(buffer));
            }
        }
        let mut outputs = Vec::new();
        for (index, (spec, extent)) in parts.signature.outputs.iter().zip(&parts.extents).enumerate() {
            let number = parts.inputs.len() + index;
            let made = extent.as_ref().map(|extent| device_tensor(gpu, number, spec.dtype, extent));
            let (tensor, buffer) = made.transpose()?.unzip();
            outputs.push(tensor);
            buffers.outputs.push(buffer);
        }
        let all_on_device = buffers.inputs.iter().chain(&buffers.outputs).all(Option::is_some);
        let captured = parts.graph_id.filter(|_| all_on_device);
        let options =
            device_options(all_on_device, captured, parts.uses_graphs).map_err(|error| error.to_string())?;
        let captured = captured.is_some();
        Ok(Self {
            inputs,
            outputs,
            extents: parts.extents,
            options: Arc::new(options),
            buffers: Some(buffers),
            captured,
            captured_by: None,
        })
    }
}

/// A tensor in the lane's device buffer with that number, and the buffer.
fn device_tensor(
    gpu: &mut LaneGpu,
    number: usize,
    dtype: DType,
    extent: &Extent,
) -> Result<(OrtTensor, Arc<DeviceMemory>), String> {
    let buffer = gpu.buffer(number, extent.bytes)?;
    Ok((OrtTensor::on_device(Arc::clone(&buffer), gpu.number, dtype, &extent.shape)?, buffer))
}

/// If no output is in host memory, the lane itself waits for the device later. Otherwise everything must be done when
/// the run returns.
fn device_options(all_on_device: bool, graph_id: Option<u32>, uses_graphs: bool) -> ort::Result<RunOptions> {
    let mut options = RunOptions::new()?;
    if all_on_device {
        options.disable_device_sync()?;
    }
    if uses_graphs {
        options.set("gpu_graph_id", graph_id.map_or("-1".to_owned(), |number| number.to_string()))?;
    }
    Ok(options)
}

fn host_input(parts: &RunPlanInputs<'_>, index: usize) -> Result<OrtTensor, String> {
    let (Some(spec), Some(memory), Some(extent)) =
        (parts.signature.inputs.get(index), parts.inputs.get(index), parts.batch.get(index))
    else {
        return Err(format!("the model has no input {index}"));
    };
    if spec.dtype != DType::String {
        return OrtTensor::on_host(memory.mapping(), spec.dtype, &extent.shape);
    }
    let strings = memory.bytes().get(..extent.bytes).ok_or("strings beyond the memory there is")?;
    OrtTensor::of_strings(&extent.shape, strings)
}

/// The extent of an output, if the model declares it: its rows are those of the batch, its other dimensions are static.
pub(crate) fn known_extent(spec: &TensorSpec, batched: bool, rows: usize) -> Option<Extent> {
    let size = spec.dtype.size().filter(|_| !spec.any_rank)?;
    let dimension = |(index, size): (usize, &Option<usize>)| size.or((batched && index == 0).then_some(rows));
    let shape: Vec<usize> = spec.shape.iter().enumerate().map(dimension).collect::<Option<_>>()?;
    let bytes = elements(&shape)?.checked_mul(size)?;
    Some(Extent { shape, bytes })
}

#[cfg(test)]
mod tests {
    use cudock_engine::Extent;
    use cudock_tensor::{DType, TensorSpec};

    use super::known_extent;

    fn spec(dtype: DType, shape: &[Option<usize>]) -> TensorSpec {
        TensorSpec::new("y", dtype, shape)
    }

    #[test]
    fn rows_of_the_batch_and_static_dimensions_make_a_shape() {
        let known = known_extent(&spec(DType::F16, &[None, Some(10)]), true, 3);
        assert_eq!(known, Some(Extent { shape: vec![3, 10], bytes: 60 }));
    }

    #[test]
    fn a_shape_that_depends_on_values_is_not_known() {
        assert_eq!(known_extent(&spec(DType::F32, &[None, None]), true, 3), None);
        assert_eq!(known_extent(&spec(DType::F32, &[None]), false, 3), None);
        assert_eq!(known_extent(&spec(DType::String, &[Some(2)]), false, 3), None);
        assert_eq!(known_extent(&spec(DType::F32, &[Some(usize::MAX)]), false, 3), None);
    }

    #[test]
    fn the_shape_of_a_scalar_is_known() {
        assert_eq!(known_extent(&spec(DType::I64, &[]), false, 1), Some(Extent { shape: vec![], bytes: 8 }));
    }
}
