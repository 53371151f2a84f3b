//! What can go wrong, as plain data: it is found in a container and told outside it, so it must cross a pipe.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::step::Step;
use crate::words;

/// A call that the driver refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// What was being done.
    pub step: Step,
    /// The driver's number, such as 100.
    pub code: i32,
    /// Its name, such as `CUDA_ERROR_NO_DEVICE`; in the runtime's spelling where the library does not tell.
    pub name: String,
    /// The driver's words for it.
    pub words: String,
    /// Why it happens, where that is known.
    pub cause: Option<String>,
    /// What to do, most likely first.
    pub way_out: Vec<String>,
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { step, code, name, words, .. } = self;
        write!(out, "{step} failed: {words} ({name}, error {code})")
    }
}

impl std::error::Error for Failure {}

impl Failure {
    /// A failure with the library's own name and words for it, or the tables'.
    pub(crate) fn new(step: Step, code: i32, name: Option<String>, words: Option<String>) -> Self {
        let (table_name, table_words) = words::runtime_name(code).unzip();
        let known = words::explanation(code);
        Self {
            step,
            code,
            name: name.or(table_name).unwrap_or_else(|| "unknown name".to_owned()),
            words: words.or(table_words).unwrap_or_else(|| "unknown error".to_owned()),
            cause: known.cause,
            way_out: known.way_out,
        }
    }
}

/// Why there is no report at all. What goes wrong with one device is in its report instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(tag = "problem", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum DeviceError {
    /// The loader would not find the driver's library.
    #[error(
        "libcuda.so.1 is in none of the folders that ld.so searches ({}){}",
        listed(searched),
        lies_in(elsewhere)
    )]
    NotFound {
        /// The folders that it searches and that exist, in its order.
        searched: Vec<String>,
        /// Where the library lies nevertheless.
        elsewhere: Vec<String>,
    },
    /// The library is there, and the loader refuses it.
    #[error("cannot load {library}: {reason}")]
    CannotLoad {
        /// Its path, or its name where the loader searched for it.
        library: String,
        /// The loader's words.
        reason: String,
    },
    /// A library that is no driver of the last ten years.
    #[error("{library} has no function {symbol}, so it is not a driver's library that CUDA programs can use")]
    NotADriver {
        /// The library.
        library: String,
        /// What it lacks.
        symbol: String,
    },
    /// This program cannot load libraries.
    #[error(
        "this program is linked statically, so it cannot load the driver; use a build that is linked to the C library"
    )]
    StaticProgram,
    /// The driver refused a call before any device was known.
    #[error("{failure}, with {library}")]
    Driver {
        /// The library that was loaded.
        library: String,
        /// What it refused.
        #[source]
        failure: Box<Failure>,
    },
    /// The driver starts and counts no device.
    #[error("the driver starts and shows no GPU, with {library}")]
    NoDevice {
        /// The library that was loaded.
        library: String,
    },
    /// The driver's version is none.
    #[error("the driver says that it is of CUDA version {number}, which is none, with {library}")]
    OddVersion {
        /// The library that was loaded.
        library: String,
        /// What it says.
        number: i32,
    },
}

/// The number by which CUDA says that it sees no device.
const NO_DEVICE: i32 = 100;

impl DeviceError {
    /// What to do about it, most likely first.
    pub fn way_out(&self) -> Vec<String> {
        match self {
            Self::NotFound { .. } => words::way_out_of(words::LIBRARY_MISSING),
            Self::CannotLoad { .. } => words::way_out_of(words::LIBRARY_DAMAGED),
            Self::NotADriver { .. } | Self::OddVersion { .. } => words::way_out_of(words::LIBRARY_OF_IMAGE),
            Self::Driver { failure, .. } => failure.way_out.clone(),
            Self::NoDevice { .. } => words::explanation(NO_DEVICE).way_out,
            Self::StaticProgram => Vec::new(),
        }
    }
}

fn listed(folders: &[String]) -> String {
    if folders.is_empty() { "there is none".to_owned() } else { folders.join(", ") }
}

fn lies_in(folders: &[String]) -> String {
    if folders.is_empty() { String::new() } else { format!("; it lies in {}", folders.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::step::Action;

    const START: Step = Step { device: None, action: Action::Initialise };

    #[test]
    fn a_failure_names_the_step_the_error_and_its_number() {
        let failure = Failure::new(
            START,
            100,
            Some("CUDA_ERROR_NO_DEVICE".to_owned()),
            Some("no CUDA-capable device is detected".to_owned()),
        );
        assert_eq!(
            failure.to_string(),
            "starting the driver (cuInit) failed: no CUDA-capable device is detected (CUDA_ERROR_NO_DEVICE, error 100)"
        );
        assert!(!failure.way_out.is_empty());
    }

    #[test]
    fn the_tables_name_an_error_that_the_library_does_not() {
        let failure = Failure::new(START, 803, None, None);
        assert_eq!(failure.name, "cudaErrorSystemDriverMismatch");
        assert_eq!(failure.words, "system has unsupported display driver / cuda driver combination");
        assert_eq!(Failure::new(START, 4711, None, None).words, "unknown error");
    }

    #[test]
    fn a_missing_library_says_where_it_was_looked_for_and_where_it_lies() {
        let error = DeviceError::NotFound {
            searched: vec!["/lib".to_owned(), "/usr/lib".to_owned()],
            elsewhere: vec!["/usr/local/nvidia/lib64".to_owned()],
        };
        assert_eq!(
            error.to_string(),
            "libcuda.so.1 is in none of the folders that ld.so searches (/lib, /usr/lib); it lies in \
             /usr/local/nvidia/lib64"
        );
        assert!(!error.way_out().is_empty());
    }
}
