//! What both verbs print.

use cudock_pypi::RuntimeLibrary;
use cudock_pypi::runtime::CudaLibraries;

use crate::output::{BLUE, YELLOW, line, styled, wrapped};

/// Prints which libraries a GPU build lacks.
pub(super) fn print_cuda(found: &RuntimeLibrary, cuda: &CudaLibraries) {
    let missing: Vec<&str> = cuda.missing.iter().map(|library| library.soname.as_str()).collect();
    if !missing.is_empty() {
        let first = format!("{}: ", styled(YELLOW, "warning"));
        let text = format!("{first}not found: {}; sessions will run on the CPU", missing.join(", "));
        line(wrapped("", &text));
    }
    if !cuda.driver {
        line(format!("{}: not found: libcuda.so.1, which comes with the driver", styled(YELLOW, "warning")));
    }
    if let Some(hint) = cuda.hint(found) {
        line(format!("{}: {hint}", styled(BLUE, "hint")));
    }
}
