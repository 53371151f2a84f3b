//! How batches of one set of shapes are run: the engine's values over a lane's memory, made once and used again.

use std::sync::Arc;
use std::thread::ThreadId;

use cudock_map::SharedMemory;
use cudock_tensor::{DType, Signature, TensorSpec, elements};
use ort::session::RunOptions;

use crate::cuda::DeviceMemory;
use crate::gpu::LaneGpu;
use crate::value::Value;

/// A tensor's shape and how many bytes it takes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) shape: Vec<usize>,
    pub(crate) bytes: usize,
}

/// All that a run of certain shapes needs.
pub(crate) struct Plan {
    pub(crate) inputs: Vec<Value>,
    /// None where the engine is to make the value.
    pub(crate) outputs: Vec<Option<Value>>,
    /// What the outputs that have a value will be like.
    pub(crate) extents: Vec<Option<Extent>>,
    pub(crate) options: Arc<RunOptions>,
    /// Places on the device of the inputs and outputs, where they are there.
    pub(crate) placed: Option<Placed>,
    /// Whether this run's launches are recorded, so that it must keep its places.
    pub(crate) recorded: bool,
    /// The thread that recorded them: the engine keeps a recording for each thread.
    pub(crate) recorded_by: Option<ThreadId>,
}

impl Plan {
    /// Whether the coming run will record launches.
    pub(crate) fn will_record(&self) -> bool {
        self.recorded && self.recorded_by != Some(std::thread::current().id())
    }
}

/// Places on the device; none for tensors that stay on the host.
pub(crate) struct Placed {
    pub(crate) inputs: Vec<Option<Arc<DeviceMemory>>>,
    pub(crate) outputs: Vec<Option<Arc<DeviceMemory>>>,
}

/// What plans are made of.
pub(crate) struct Parts<'lane> {
    pub(crate) signature: &'lane Signature,
    pub(crate) inputs: &'lane [SharedMemory],
    pub(crate) outputs: &'lane [SharedMemory],
    /// The batch: what each input is like.
    pub(crate) batch: &'lane [Extent],
    /// What each output will be like, where that is known.
    pub(crate) extents: Vec<Option<Extent>>,
    /// The number under which the launches are recorded, if they are.
    pub(crate) recording: Option<u32>,
    /// Whether the engine records at all, so that runs that are not recorded must say so.
    pub(crate) records: bool,
}

impl Plan {
    /// A plan with everything in host memory.
    pub(crate) fn on_host(parts: Parts<'_>) -> Result<Self, String> {
        let inputs = host_inputs(&parts)?;
        let outputs = parts
            .extents
            .iter()
            .zip(&parts.signature.outputs)
            .zip(parts.outputs)
            .map(|((extent, spec), memory)| {
                extent
                    .as_ref()
                    .map(|extent| Value::on_host(memory.mapping(), spec.dtype, &extent.shape))
                    .transpose()
            })
            .collect::<Result<_, String>>()?;
        let options = RunOptions::new().map_err(|error| error.to_string())?;
        Ok(Self {
            inputs,
            outputs,
            extents: parts.extents,
            options: Arc::new(options),
            placed: None,
            recorded: false,
            recorded_by: None,
        })
    }

    /// A plan with everything that can be in device memory there.
    pub(crate) fn on_device(parts: Parts<'_>, gpu: &mut LaneGpu) -> Result<Self, String> {
        let mut placed = Placed { inputs: Vec::new(), outputs: Vec::new() };
        let mut inputs = Vec::new();
        for (index, (spec, extent)) in parts.signature.inputs.iter().zip(parts.batch).enumerate() {
            if spec.dtype == DType::String {
                inputs.push(host_input(&parts, index)?);
                placed.inputs.push(None);
            } else {
                let place = gpu.place(index, extent.bytes).map_err(|error| error.to_string())?;
                inputs.push(Value::on_device(Arc::clone(&place), gpu.number, spec.dtype, &extent.shape)?);
                placed.inputs.push(Some(place));
            }
        }
        let mut outputs = Vec::new();
        for (index, (spec, extent)) in parts.signature.outputs.iter().zip(&parts.extents).enumerate() {
            let place = extent
                .as_ref()
                .map(|extent| gpu.place(parts.inputs.len() + index, extent.bytes))
                .transpose()
                .map_err(|error| error.to_string())?;
            outputs.push(match (&place, extent) {
                (Some(place), Some(extent)) => {
                    Some(Value::on_device(Arc::clone(place), gpu.number, spec.dtype, &extent.shape)?)
                }
                _ => None,
            });
            placed.outputs.push(place);
        }
        let all_placed = placed.inputs.iter().chain(&placed.outputs).all(Option::is_some);
        let recorded = parts.recording.filter(|_| all_placed);
        let options =
            device_options(all_placed, recorded, parts.records).map_err(|error| error.to_string())?;
        let recorded = recorded.is_some();
        Ok(Self {
            inputs,
            outputs,
            extents: parts.extents,
            options: Arc::new(options),
            placed: Some(placed),
            recorded,
            recorded_by: None,
        })
    }
}

/// Where nothing comes back in host memory, the lane waits for the work itself, later. Everything else must have been
/// done when the run returns.
fn device_options(all_placed: bool, recording: Option<u32>, records: bool) -> ort::Result<RunOptions> {
    let mut options = RunOptions::new()?;
    if all_placed {
        options.disable_device_sync()?;
    }
    if records {
        options.set("gpu_graph_id", recording.map_or("-1".to_owned(), |number| number.to_string()))?;
    }
    Ok(options)
}

fn host_inputs(parts: &Parts<'_>) -> Result<Vec<Value>, String> {
    (0..parts.signature.inputs.len()).map(|index| host_input(parts, index)).collect()
}

fn host_input(parts: &Parts<'_>, index: usize) -> Result<Value, String> {
    let (Some(spec), Some(memory), Some(extent)) =
        (parts.signature.inputs.get(index), parts.inputs.get(index), parts.batch.get(index))
    else {
        return Err(format!("the model has no input {index}"));
    };
    if spec.dtype != DType::String {
        return Value::on_host(memory.mapping(), spec.dtype, &extent.shape);
    }
    let strings = memory.bytes().get(..extent.bytes).ok_or("strings beyond the memory there is")?;
    Value::of_strings(&extent.shape, strings)
}

/// What an output will be like, if the model says: its rows are those of the batch, its other dimensions are fixed.
pub(crate) fn foreseen(spec: &TensorSpec, batched: bool, rows: usize) -> Option<Extent> {
    let size = spec.dtype.size().filter(|_| !spec.any_rank)?;
    let dimension = |(place, size): (usize, &Option<usize>)| size.or((batched && place == 0).then_some(rows));
    let shape: Vec<usize> = spec.shape.iter().enumerate().map(dimension).collect::<Option<_>>()?;
    let bytes = elements(&shape)?.checked_mul(size)?;
    Some(Extent { shape, bytes })
}

#[cfg(test)]
mod tests {
    use cudock_tensor::{DType, TensorSpec};

    use super::{Extent, foreseen};

    fn spec(dtype: DType, shape: &[Option<usize>]) -> TensorSpec {
        TensorSpec { name: "y".to_owned(), dtype, shape: shape.to_vec(), any_rank: false }
    }

    #[test]
    fn rows_of_the_batch_and_fixed_dimensions_make_a_shape() {
        let known = foreseen(&spec(DType::F16, &[None, Some(10)]), true, 3);
        assert_eq!(known, Some(Extent { shape: vec![3, 10], bytes: 60 }));
    }

    #[test]
    fn what_depends_on_the_values_is_not_foreseen() {
        assert_eq!(foreseen(&spec(DType::F32, &[None, None]), true, 3), None);
        assert_eq!(foreseen(&spec(DType::F32, &[None]), false, 3), None);
        assert_eq!(foreseen(&spec(DType::String, &[Some(2)]), false, 3), None);
        assert_eq!(foreseen(&spec(DType::F32, &[Some(usize::MAX)]), false, 3), None);
    }

    #[test]
    fn a_scalar_is_foreseen() {
        assert_eq!(foreseen(&spec(DType::I64, &[]), false, 1), Some(Extent { shape: vec![], bytes: 8 }));
    }
}
