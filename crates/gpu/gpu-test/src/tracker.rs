//! Announces the steps of a query before they start.

use crate::driver_api::{CudaDriver, CudaError};
use crate::error::CudaFailure;
use crate::step::{QueryAction, QueryStep};

/// The current position of the query.
pub(crate) struct StepTracker<'p> {
    pub(crate) driver: &'p CudaDriver,
    progress: &'p mut dyn FnMut(QueryStep),
    /// The device that is being queried; none for steps that concern the driver.
    pub(crate) device: Option<u32>,
}

impl<'p> StepTracker<'p> {
    pub(crate) fn new(driver: &'p CudaDriver, progress: &'p mut dyn FnMut(QueryStep)) -> Self {
        Self { driver, progress, device: None }
    }

    /// Announces a step, runs it, and adds the driver's description to an error.
    pub(crate) fn step<T>(
        &mut self,
        action: QueryAction,
        take: impl FnOnce() -> Result<T, CudaError>,
    ) -> Result<T, CudaFailure> {
        let step = QueryStep { device: self.device, action };
        (self.progress)(step);
        take().map_err(|code| {
            CudaFailure::new(step, code.0, self.driver.error_name(code), self.driver.error_string(code))
        })
    }
}
