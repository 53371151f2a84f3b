//! The environment variables that this crate reads. Those of proxies (`HTTPS_PROXY`, `NO_PROXY`, …) are read by the HTTP
//! library.

/// A registries.conf to read instead of the user's and the system's.
pub const CONTAINERS_REGISTRIES_CONF: &str = "CONTAINERS_REGISTRIES_CONF";
/// The first file to look for credentials in.
pub const REGISTRY_AUTH_FILE: &str = "REGISTRY_AUTH_FILE";
/// The directory of docker's `config.json`.
pub const DOCKER_CONFIG: &str = "DOCKER_CONFIG";
/// The docker daemon's address; only `unix://` is used.
pub const DOCKER_HOST: &str = "DOCKER_HOST";
