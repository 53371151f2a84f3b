//! `ModelInferRequest`.

use std::time::Instant;

use bytes::Bytes;
use cudock_base::protobuf::{FieldValue, Fields};
use cudock_tensor::{DType, InferenceRequest, RequestLimits, RequestedOutput, Signature, Tensor, elements};

use super::contents;
use super::parameters::{Parameters, check_of_tensor};
use crate::ServeError;
use crate::grpc::deadline::Deadline;
use crate::grpc::status::GrpcStatus;

/// Maximum number of inputs or outputs of a request; models have a handful.
const MAX_TENSORS: usize = 1024;

/// A parsed request that is not yet checked against a model.
#[derive(Debug, Default)]
pub(crate) struct InferRequest {
    pub(crate) model: String,
    pub(crate) version: String,
    pub(crate) id: String,
    parameters: Parameters,
    inputs: Vec<InferInput>,
    outputs: Vec<String>,
    raw: Vec<Bytes>,
}

#[derive(Debug, Default)]
struct InferInput {
    name: String,
    datatype: String,
    shape: Vec<u64>,
    /// `InferTensorContents`, unparsed: its type is known only with the model.
    contents: Option<Bytes>,
}

impl InferRequest {
    /// Parses a message without copying tensors; `rank` is the most dimensions of a tensor.
    pub(crate) fn read(message: &Bytes, rank: usize) -> Result<Self, GrpcStatus> {
        let mut request = Self::default();
        for field in Fields::new(message) {
            let (number, value) = field?;
            match number {
                1 => value.text()?.clone_into(&mut request.model),
                2 => value.text()?.clone_into(&mut request.version),
                3 => value.text()?.clone_into(&mut request.id),
                4 => request.parameters.read(value)?,
                5 => push(&mut request.inputs, InferInput::read(message, value, rank)?)?,
                6 => push(&mut request.outputs, read_output(value)?)?,
                7 => push(&mut request.raw, message.slice_ref(value.bytes()?))?,
                _ => {}
            }
        }
        Ok(request)
    }

    /// Size of the tensors that must be parsed into memory of their own.
    pub(crate) fn typed_size(&self) -> usize {
        let typed = self.inputs.iter().filter_map(|input| Some((input, input.contents.as_ref()?.len())));
        typed
            .map(|(input, written)| {
                let size = DType::from_protocol_name(&input.datatype).and_then(DType::size);
                // Strings have lengths of four bytes each, where the message has one or two.
                size.map_or(written * 4, |size| {
                    let mut shape = input.shape.iter().map(|&dimension| usize::try_from(dimension).ok());
                    let elements = shape.try_fold(1_usize, |all, one| all.checked_mul(one?));
                    elements.unwrap_or(usize::MAX).min(written).saturating_mul(size)
                })
            })
            .fold(0, usize::saturating_add)
    }

    /// Checks the request against its model. Timeouts count from `received`.
    pub(crate) fn into_inference(
        self,
        signature: &Signature,
        limits: &RequestLimits,
        deadline: Deadline,
        received: Instant,
    ) -> Result<InferenceRequest, GrpcStatus> {
        let outputs = self.outputs.iter().map(|name| wanted(name, signature)).collect::<Result<_, _>>()?;
        let timeouts = [deadline.remaining(received)?, self.parameters.timeout];
        let tensors = tensors(self.inputs, self.raw, limits)?;
        let inference = InferenceRequest::from_tensors(tensors, signature)
            .map_err(|malformed| GrpcStatus::from(ServeError::from(malformed)))?;
        Ok(InferenceRequest {
            outputs,
            binary_outputs: true,
            priority: self.parameters.priority,
            timeout: timeouts.into_iter().flatten().min(),
            id: (!self.id.is_empty()).then_some(self.id),
            ..inference
        })
    }
}

impl InferInput {
    fn read(message: &Bytes, field: FieldValue<'_>, rank: usize) -> Result<Self, GrpcStatus> {
        let mut input = Self::default();
        for field in Fields::new(field.bytes()?) {
            let (number, value) = field?;
            match number {
                1 => value.text()?.clone_into(&mut input.name),
                2 => value.text()?.clone_into(&mut input.datatype),
                3 => value.numbers(|dimension| {
                    if input.shape.len() == rank {
                        return Err(GrpcStatus::invalid(format!("an input has more than {rank} dimensions")));
                    }
                    input.shape.push(dimension);
                    Ok(())
                })?,
                4 => check_of_tensor(value, &input.name)?,
                5 => input.contents = Some(message.slice_ref(value.bytes()?)),
                _ => {}
            }
        }
        Ok(input)
    }

    /// The tensor, from raw bytes or from its own contents.
    fn into_tensor(self, raw: Option<Bytes>, limits: &RequestLimits) -> Result<(String, Tensor), GrpcStatus> {
        let Self { name, datatype, shape, contents } = self;
        let invalid = |problem: String| GrpcStatus::invalid(format!("input `{name}`: {problem}"));
        let dtype = DType::from_protocol_name(&datatype)
            .ok_or_else(|| invalid(format!("unknown datatype {datatype:?}")))?;
        let shape = shape
            .iter()
            .map(|&dimension| usize::try_from(dimension).ok().filter(|_| dimension.cast_signed() >= 0))
            .collect::<Option<Vec<_>>>()
            .ok_or_else(|| invalid("the shape has a negative dimension".to_owned()))?;
        let elements = elements(&shape)
            .filter(|&count| count <= limits.elements)
            .ok_or_else(|| invalid(format!("shape {shape:?} has more than {} elements", limits.elements)))?;
        let data = match (raw, contents) {
            (Some(raw), None) => raw,
            (Some(_), Some(_)) => {
                return Err(invalid("contents and raw_input_contents are both set".to_owned()));
            }
            (None, contents) => contents::read(&contents.unwrap_or_default(), dtype, elements, &name)?,
        };
        let tensor = Tensor::new(dtype, shape, data).map_err(|error| invalid(error.to_string()))?;
        Ok((name, tensor))
    }
}

fn tensors(
    inputs: Vec<InferInput>,
    raw: Vec<Bytes>,
    limits: &RequestLimits,
) -> Result<Vec<(String, Tensor)>, GrpcStatus> {
    if raw.is_empty() {
        return inputs.into_iter().map(|input| input.into_tensor(None, limits)).collect();
    }
    if raw.len() != inputs.len() {
        return Err(GrpcStatus::invalid(format!(
            "the request has {} inputs, raw_input_contents has {}",
            inputs.len(),
            raw.len()
        )));
    }
    inputs.into_iter().zip(raw).map(|(input, raw)| input.into_tensor(Some(raw), limits)).collect()
}

fn read_output(output: FieldValue<'_>) -> Result<String, GrpcStatus> {
    let mut name = String::new();
    for field in Fields::new(output.bytes()?) {
        let (number, value) = field?;
        match number {
            1 => value.text()?.clone_into(&mut name),
            2 => check_of_tensor(value, &name)?,
            _ => {}
        }
    }
    Ok(name)
}

fn wanted(name: &str, signature: &Signature) -> Result<RequestedOutput, GrpcStatus> {
    let index = signature.output(name).ok_or_else(|| {
        let known: Vec<_> = signature.outputs.iter().map(|spec| spec.name.as_str()).collect();
        GrpcStatus::invalid(format!("unknown output `{name}`; the model has {}", known.join(", ")))
    })?;
    Ok(RequestedOutput { index, binary: true })
}

fn push<T>(list: &mut Vec<T>, item: T) -> Result<(), GrpcStatus> {
    if list.len() == MAX_TENSORS {
        let message = format!("the request has more than {MAX_TENSORS} inputs or outputs");
        return Err(GrpcStatus::invalid(message));
    }
    list.push(item);
    Ok(())
}
