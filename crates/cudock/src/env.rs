//! Every environment variable that cudock itself reads. (`doctor` also reports those that steer CUDA: see
//! `cudock_host::probe::VARIABLES`; the cache is in
//! `cudock_base::Environment`, the credentials of registries in `cudock_image::registry::env`, a user's own tables in
//! `cudock_prices::env`.)

/// A directory of newer fact tables, as `--facts`.
pub(crate) const FACTS: &str = "CUDOCK_FACTS";

/// The day reports are made for, so that tests and repeated reports do not change with the calendar.
pub(crate) const TODAY: &str = "CUDOCK_TODAY";

/// A file of keys that open a server, as `--api-keys`.
pub(crate) const API_KEYS: &str = "CUDOCK_API_KEYS";

/// Where containers and unpacked images are kept.
pub(crate) const DATA: &str = "CUDOCK_DATA";

/// Who runs containers, as `--engine`.
pub(crate) const ENGINE: &str = "CUDOCK_ENGINE";
