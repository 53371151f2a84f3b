//! Parameters of requests and tensors.

use std::time::Duration;

use cudock_base::protobuf::{FieldValue, Fields, WireError};

use crate::grpc::status::GrpcStatus;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Parameters {
    /// Smaller values run first; 0 by default.
    pub(crate) priority: u32,
    /// Time limit for queue and engine, if the client set one.
    pub(crate) timeout: Option<Duration>,
}

impl Parameters {
    /// Applies one entry of the map. Unknown names are ignored, as other servers do.
    pub(crate) fn read(&mut self, entry: FieldValue<'_>) -> Result<(), GrpcStatus> {
        let (name, value) = read_entry(entry)?;
        match name {
            "priority" => self.priority = u32::try_from(value.integer(name)?).unwrap_or(u32::MAX),
            "timeout" => {
                let microseconds = value.integer(name)?;
                self.timeout = (microseconds > 0).then(|| Duration::from_micros(microseconds));
            }
            "sequence_id" if !value.is_default() => {
                let message = "sequences are not supported: models keep no state between requests";
                return Err(GrpcStatus::unimplemented(message));
            }
            _ => {}
        }
        Ok(())
    }
}

/// Unsupported parameters of a tensor, with their meaning.
const UNSUPPORTED: [(&str, &str); 2] =
    [("shared_memory_region", "tensors in shared memory"), ("classification", "outputs as classes")];

/// Rejects parameters of a tensor that would change the meaning of the response if they were ignored.
pub(crate) fn check_of_tensor(entry: FieldValue<'_>, tensor: &str) -> Result<(), GrpcStatus> {
    let (name, value) = read_entry(entry)?;
    match UNSUPPORTED.iter().find(|(unsupported, _)| *unsupported == name && !value.is_default()) {
        Some((_, what)) => Err(GrpcStatus::unimplemented(format!("`{tensor}`: {what} are not supported"))),
        None => Ok(()),
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum ParameterValue<'message> {
    None,
    Bool(bool),
    Signed(i64),
    Unsigned(u64),
    Double,
    Text(&'message str),
}

impl ParameterValue<'_> {
    fn integer(self, name: &str) -> Result<u64, GrpcStatus> {
        match self {
            Self::Unsigned(number) => Some(number),
            Self::Signed(number) => u64::try_from(number).ok(),
            _ => None,
        }
        .ok_or_else(|| GrpcStatus::invalid(format!("parameter `{name}` is not a non-negative integer")))
    }

    fn is_default(self) -> bool {
        matches!(self, Self::None | Self::Bool(false) | Self::Signed(0) | Self::Unsigned(0) | Self::Text(""))
    }
}

fn read_entry(entry: FieldValue<'_>) -> Result<(&str, ParameterValue<'_>), WireError> {
    let (mut name, mut value) = ("", ParameterValue::None);
    for field in Fields::new(entry.bytes()?) {
        match field? {
            (1, text) => name = text.text()?,
            (2, message) => value = read_value(message.bytes()?)?,
            _ => {}
        }
    }
    Ok((name, value))
}

fn read_value(message: &[u8]) -> Result<ParameterValue<'_>, WireError> {
    let mut value = ParameterValue::None;
    for field in Fields::new(message) {
        value = match field? {
            (1, flag) => ParameterValue::Bool(flag.number()? != 0),
            (2, number) => ParameterValue::Signed(number.number()?.cast_signed()),
            (3, text) => ParameterValue::Text(text.text()?),
            (4, _) => ParameterValue::Double,
            (5, number) => ParameterValue::Unsigned(number.number()?),
            _ => value,
        };
    }
    Ok(value)
}
