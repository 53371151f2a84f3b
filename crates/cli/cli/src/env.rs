//! The environment variables that the command reads itself. Others are in `cudock_base::Environment` (the cache),
//! `cudock_image::registry::env` (credentials), `cudock_server` (API keys), `cudock_prices::env` (the user's tables) and `cudock_host::probe::VARIABLES`
//! (those of CUDA, which `doctor` reports).

/// The directory of newer fact tables, like `--facts`.
pub const FACTS: &str = "CUDOCK_FACTS";

/// The date of reports, which makes tests and reports reproducible.
pub const TODAY: &str = "CUDOCK_TODAY";

/// The directory of containers and unpacked images.
pub const DATA: &str = "CUDOCK_DATA";

/// The container engine, like `--engine`.
pub const ENGINE: &str = "CUDOCK_ENGINE";
