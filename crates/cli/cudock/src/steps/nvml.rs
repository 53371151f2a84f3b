//! The GPUs of this machine.

use std::ffi::OsStr;
use std::path::Path;

use cudock_host::host::NvmlResult;
use cudock_host::nvml;

/// Queries NVML in a child process: a broken driver can hang or crash the process that calls it.
pub(crate) fn ask_nvml(library: Option<&Path>) -> NvmlResult {
    let Ok(program) = std::env::current_exe() else {
        return NvmlResult::Failed("cannot locate the cudock executable".to_owned());
    };
    let library = library.map(Path::as_os_str);
    let arguments: Vec<&OsStr> = std::iter::once(OsStr::new("nvml")).chain(library).collect();
    nvml::query_in_child(&program, &arguments)
}
