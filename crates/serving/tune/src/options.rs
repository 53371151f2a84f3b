//! The options of a search.

use std::path::Path;
use std::time::Duration;

use cudock_loadgen::RequestOptions;
use cudock_project::DeviceChoice;

use crate::AxisFilter;

pub struct TuneOptions<'a> {
    /// A model file or a project.
    pub path: &'a Path,
    /// The device, if it is not that of `cudock.toml`.
    pub device: Option<DeviceChoice>,
    pub requests: RequestOptions<'a>,
    pub target_p99: Option<Duration>,
    /// `None`: three minutes, or no limit for an exhaustive grid.
    pub time: Option<Duration>,
    /// Numbers of clients to try; chosen by the search if empty.
    pub clients: &'a [usize],
    pub duration: Option<Duration>,
    pub warm_up: Option<Duration>,
    /// Threads of the load generator.
    pub threads: Option<usize>,
    pub axes: &'a [AxisFilter],
    /// Whether every combination is measured.
    pub is_exhaustive: bool,
    /// Whether `cudock.toml` is changed.
    pub is_written: bool,
}
