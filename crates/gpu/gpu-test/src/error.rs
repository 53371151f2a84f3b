//! Errors as plain data, because they are sent from inside a container to the process outside.

use serde::{Deserialize, Serialize};

use crate::explanations;
use crate::step::QueryStep;

/// A failed driver call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[error("{step} failed: {message} ({name}, error {code})")]
pub struct CudaFailure {
    pub step: QueryStep,
    /// The error code, such as 100.
    pub code: i32,
    /// The name, such as `CUDA_ERROR_NO_DEVICE`; the runtime's name if the library does not provide one.
    pub name: String,
    pub message: String,
    pub cause: Option<String>,
    /// Suggested fixes, most likely first.
    pub hints: Vec<String>,
}

impl CudaFailure {
    /// Uses the library's name and description, or those of the fact tables.
    pub(crate) fn new(step: QueryStep, code: i32, name: Option<String>, message: Option<String>) -> Self {
        let (table_name, table_message) = explanations::runtime_name(code).unzip();
        let known = explanations::explanation(code);
        Self {
            step,
            code,
            name: name.or(table_name).unwrap_or_else(|| "unknown name".to_owned()),
            message: message.or(table_message).unwrap_or_else(|| "unknown error".to_owned()),
            cause: known.cause,
            hints: known.hints,
        }
    }
}

/// The query failed as a whole. Errors of a single device are part of its report instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(tag = "problem", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum DeviceError {
    /// The loader cannot find the driver library.
    #[error(
        "libcuda.so.1 not found in the directories that ld.so searches ({}){}",
        join_or_none(searched),
        found_in(elsewhere)
    )]
    NotFound {
        /// The existing directories of the search path, in order.
        searched: Vec<String>,
        /// Other directories that contain the library.
        elsewhere: Vec<String>,
    },
    #[error("cannot load {library}: {reason}")]
    CannotLoad {
        /// The path, or the name if the loader searched for it.
        library: String,
        reason: String,
    },
    /// The library is not a driver of the last ten years.
    #[error("{library} has no function {symbol}: not a usable CUDA driver library")]
    NotADriver { library: String, symbol: String },
    /// This program cannot load libraries.
    #[error("this program is statically linked and cannot load the driver; use a dynamically linked build")]
    StaticProgram,
    /// A driver call failed before any device was known.
    #[error("{failure}, with {library}")]
    Driver {
        library: String,
        #[source]
        failure: Box<CudaFailure>,
    },
    #[error("the driver found no GPU, with {library}")]
    NoDevice { library: String },
    #[error("invalid CUDA version {number} reported by {library}")]
    OddVersion { library: String, number: i32 },
}

/// The code of `CUDA_ERROR_NO_DEVICE`.
const NO_DEVICE: i32 = 100;

impl DeviceError {
    /// Suggested fixes, most likely first.
    pub fn hints(&self) -> Vec<String> {
        match self {
            Self::NotFound { .. } => explanations::fixes_of(explanations::LIBRARY_MISSING),
            Self::CannotLoad { .. } => explanations::fixes_of(explanations::LIBRARY_DAMAGED),
            Self::NotADriver { .. } | Self::OddVersion { .. } => {
                explanations::fixes_of(explanations::LIBRARY_FROM_IMAGE)
            }
            Self::Driver { failure, .. } => failure.hints.clone(),
            Self::NoDevice { .. } => explanations::explanation(NO_DEVICE).hints,
            Self::StaticProgram => Vec::new(),
        }
    }
}

fn join_or_none(directories: &[String]) -> String {
    if directories.is_empty() { "none exists".to_owned() } else { directories.join(", ") }
}

fn found_in(directories: &[String]) -> String {
    if directories.is_empty() { String::new() } else { format!("; found in {}", directories.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::step::QueryAction;

    const START: QueryStep = QueryStep { device: None, action: QueryAction::Initialize };

    #[test]
    fn a_failure_has_step_name_and_code() {
        let failure = CudaFailure::new(
            START,
            100,
            Some("CUDA_ERROR_NO_DEVICE".to_owned()),
            Some("no CUDA-capable device is detected".to_owned()),
        );
        assert_eq!(
            failure.to_string(),
            "initializing the driver (cuInit) failed: no CUDA-capable device is detected (CUDA_ERROR_NO_DEVICE, error 100)"
        );
        assert!(!failure.hints.is_empty());
    }

    #[test]
    fn names_missing_in_the_library_come_from_the_fact_tables() {
        let failure = CudaFailure::new(START, 803, None, None);
        assert_eq!(failure.name, "cudaErrorSystemDriverMismatch");
        assert_eq!(failure.message, "system has unsupported display driver / cuda driver combination");
        assert_eq!(CudaFailure::new(START, 4711, None, None).message, "unknown error");
    }

    #[test]
    fn a_missing_library_is_reported_with_the_search_path() {
        let error = DeviceError::NotFound {
            searched: vec!["/lib".to_owned(), "/usr/lib".to_owned()],
            elsewhere: vec!["/usr/local/nvidia/lib64".to_owned()],
        };
        assert_eq!(
            error.to_string(),
            "libcuda.so.1 not found in the directories that ld.so searches (/lib, /usr/lib); found in \
             /usr/local/nvidia/lib64"
        );
        assert!(!error.hints().is_empty());
    }
}
