//! The hidden verb that queries NVML, so that a driver that crashes or hangs affects only a child process.

use std::path::Path;

use crate::failure::Outcome;
use crate::output;

pub(crate) fn run(library: Option<&Path>, processes: bool) -> Outcome {
    let library = library.map(Path::as_os_str);
    if processes {
        output::json(&cudock_host::nvml::processes_here(library));
    } else {
        output::json(&cudock_host::nvml::query_here(library));
    }
    Outcome::Yes
}
