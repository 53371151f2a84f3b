//! The environment variables that this crate reads, besides `PIP_…`, `SSL_CERT_FILE` and those of proxies.

/// ONNX Runtime's library, or its directory; takes precedence over all others.
pub const CUDOCK_ONNXRUNTIME: &str = "CUDOCK_ONNXRUNTIME";
/// The same for the `ort` crate.
pub const ORT_DYLIB_PATH: &str = "ORT_DYLIB_PATH";
/// A configuration file that pip reads instead of the user's own.
pub const PIP_CONFIG_FILE: &str = "PIP_CONFIG_FILE";
pub const VIRTUAL_ENV: &str = "VIRTUAL_ENV";
pub const CONDA_PREFIX: &str = "CONDA_PREFIX";

pub(crate) const NETRC: &str = "NETRC";
pub(crate) const XDG_CONFIG_DIRS: &str = "XDG_CONFIG_DIRS";
pub(crate) const REQUESTS_CA_BUNDLE: &str = "REQUESTS_CA_BUNDLE";
pub(crate) const CURL_CA_BUNDLE: &str = "CURL_CA_BUNDLE";
pub(crate) const PATH: &str = "PATH";
pub(crate) const LD_LIBRARY_PATH: &str = "LD_LIBRARY_PATH";
pub(crate) const PYENV_ROOT: &str = "PYENV_ROOT";

/// uv's default index, under its present and its former name.
pub(crate) const UV_DEFAULT_INDEX: [&str; 2] = ["UV_DEFAULT_INDEX", "UV_INDEX_URL"];
/// uv's other indexes.
pub(crate) const UV_INDEX: [&str; 2] = ["UV_INDEX", "UV_EXTRA_INDEX_URL"];

/// The size limit for configuration files of pip and netrc.
pub(crate) const MAX_CONFIG: u64 = 1 << 20;
