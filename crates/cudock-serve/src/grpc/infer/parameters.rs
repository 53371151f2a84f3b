//! Parameters of a request.

use std::time::Duration;

use crate::grpc::status::{Code, Status};
use crate::grpc::wire::{Field, Fields, WireError};

/// What a request asks for beside its tensors.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Parameters {
    /// Smaller is sooner; zero if the client did not say.
    pub(crate) priority: u32,
    /// How long it may wait for the engine and run, if the client said so.
    pub(crate) timeout: Option<Duration>,
}

impl Parameters {
    /// Takes up one entry of the map. Names nobody knows are passed over, as other servers do.
    pub(crate) fn read(&mut self, entry: Field<'_>) -> Result<(), Status> {
        let (name, value) = read_entry(entry)?;
        match name {
            "priority" => self.priority = u32::try_from(value.whole(name)?).unwrap_or(u32::MAX),
            "timeout" => {
                let microseconds = value.whole(name)?;
                self.timeout = (microseconds > 0).then(|| Duration::from_micros(microseconds));
            }
            "sequence_id" if !value.is_nothing() => {
                return Err(Status::new(
                    Code::Unimplemented,
                    "a request names a sequence, but models here keep no state between requests",
                ));
            }
            _ => {}
        }
        Ok(())
    }
}

/// A parameter whose presence on a tensor is refused, with what it stands for.
const REFUSED: [(&str, &str); 2] =
    [("shared_memory_region", "tensors in shared memory"), ("classification", "outputs as classes")];

/// Refuses parameters of a tensor that would change the answer's meaning if they were passed over.
pub(crate) fn check_of_tensor(entry: Field<'_>, tensor: &str) -> Result<(), Status> {
    let (name, value) = read_entry(entry)?;
    match REFUSED.iter().find(|(refused, _)| *refused == name && !value.is_nothing()) {
        Some((_, what)) => {
            Err(Status::new(Code::Unimplemented, format!("`{tensor}`: {what} are not supported here")))
        }
        None => Ok(()),
    }
}

/// The value of a parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Value<'message> {
    None,
    Bool(bool),
    Signed(i64),
    Unsigned(u64),
    Double,
    Text(&'message str),
}

impl Value<'_> {
    fn whole(self, name: &str) -> Result<u64, Status> {
        match self {
            Self::Unsigned(number) => Some(number),
            Self::Signed(number) => u64::try_from(number).ok(),
            _ => None,
        }
        .ok_or_else(|| Status::invalid(format!("parameter `{name}` takes a whole number, zero or more")))
    }

    fn is_nothing(self) -> bool {
        matches!(self, Self::None | Self::Bool(false) | Self::Signed(0) | Self::Unsigned(0) | Self::Text(""))
    }
}

fn read_entry(entry: Field<'_>) -> Result<(&str, Value<'_>), WireError> {
    let (mut name, mut value) = ("", Value::None);
    for field in Fields::of(entry.block()?) {
        let field = field?;
        match field.number {
            1 => name = field.text()?,
            2 => value = read_value(field.block()?)?,
            _ => {}
        }
    }
    Ok((name, value))
}

fn read_value(message: &[u8]) -> Result<Value<'_>, WireError> {
    let mut value = Value::None;
    for field in Fields::of(message) {
        let field = field?;
        value = match field.number {
            1 => Value::Bool(field.varint()? != 0),
            2 => Value::Signed(field.varint()?.cast_signed()),
            3 => Value::Text(field.text()?),
            4 => Value::Double,
            5 => Value::Unsigned(field.varint()?),
            _ => value,
        };
    }
    Ok(value)
}
