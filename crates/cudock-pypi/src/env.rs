//! Every variable this crate reads, besides those of `cudock_registry::env`. Those of proxies (`HTTPS_PROXY`,
//! `NO_PROXY`, …) are read by the HTTP library.

use cudock_registry::Environment;

/// ONNX Runtime's library, or the folder it lies in; before all other places.
pub const CUDOCK_ONNXRUNTIME: &str = "CUDOCK_ONNXRUNTIME";
/// The same in the words of the `ort` crate.
pub const ORT_DYLIB_PATH: &str = "ORT_DYLIB_PATH";
/// A file of settings that pip reads instead of the user's own.
pub const PIP_CONFIG_FILE: &str = "PIP_CONFIG_FILE";
/// The virtual environment that is active.
pub const VIRTUAL_ENV: &str = "VIRTUAL_ENV";
/// The conda environment that is active.
pub const CONDA_PREFIX: &str = "CONDA_PREFIX";

pub(crate) const NETRC: &str = "NETRC";
pub(crate) const XDG_CONFIG_DIRS: &str = "XDG_CONFIG_DIRS";
pub(crate) const REQUESTS_CA_BUNDLE: &str = "REQUESTS_CA_BUNDLE";
pub(crate) const CURL_CA_BUNDLE: &str = "CURL_CA_BUNDLE";
pub(crate) const PATH: &str = "PATH";
pub(crate) const LD_LIBRARY_PATH: &str = "LD_LIBRARY_PATH";
pub(crate) const PYENV_ROOT: &str = "PYENV_ROOT";

const READ: [&str; 20] = [
    CUDOCK_ONNXRUNTIME,
    ORT_DYLIB_PATH,
    PIP_CONFIG_FILE,
    "PIP_INDEX_URL",
    "PIP_EXTRA_INDEX_URL",
    "PIP_FIND_LINKS",
    "PIP_NO_INDEX",
    "PIP_CERT",
    "PIP_TRUSTED_HOST",
    "PIP_PROXY",
    "PIP_TIMEOUT",
    "PIP_DEFAULT_TIMEOUT",
    VIRTUAL_ENV,
    CONDA_PREFIX,
    NETRC,
    XDG_CONFIG_DIRS,
    REQUESTS_CA_BUNDLE,
    CURL_CA_BUNDLE,
    LD_LIBRARY_PATH,
    PYENV_ROOT,
];

/// The environment of this process, as far as it matters here.
pub fn of_process() -> Environment {
    Environment::of_process_with(&READ)
}
