//! The test computation on one device, with every result checked.

use std::time::{Duration, Instant};

use crate::driver_api::DeviceHandle;
use crate::error::CudaFailure;
use crate::kernel;
use crate::report::{ComputeResult, DeviceInfo};
use crate::step::QueryAction;
use crate::tracker::StepTracker;

/// Repetitions of timed operations. The first one includes loading and allocation.
const TIMES: usize = 3;

/// Runs the test computation on a device, and records measurements up to the first failed call.
pub(crate) fn run(
    handle: DeviceHandle,
    device: &mut DeviceInfo,
    tracker: &mut StepTracker<'_>,
) -> Result<ComputeResult, CudaFailure> {
    let input = kernel::input(device.ordinal);
    let expected = kernel::expected(&input);
    // Wrong initially, like the device memory, so that a copy that did not happen is noticed as well.
    let mut output = kernel::inverted(&expected);

    let driver = tracker.driver;
    let context = tracker.step(QueryAction::RetainContext, || driver.retain(handle))?;
    tracker.step(QueryAction::EnterContext, || context.enter())?;
    device.memory_free = Some(tracker.step(QueryAction::FreeMemory, || context.free_memory())?);
    let from = tracker.step(QueryAction::Allocate, || context.allocate(input.len()))?;
    let to = tracker.step(QueryAction::Allocate, || context.allocate(output.len()))?;

    tracker.step(QueryAction::CopyIn, || to.copy_in(&output))?;
    let copied_in = best(|| {
        tracker.step(QueryAction::CopyIn, || from.copy_in(&input))?;
        // A copy from pageable memory may return before it is complete.
        tracker.step(QueryAction::Synchronize, || context.synchronize())
    })?;
    device.to_device_gb_s = Some(gigabytes_per_second(size_of_val(&*input), copied_in));

    let module = tracker.step(QueryAction::LoadKernel, || context.load_kernel())?;
    let kernel = tracker.step(QueryAction::FindKernel, || module.kernel())?;
    let ran = best(|| {
        tracker.step(QueryAction::Launch, || kernel.launch(&to, &from, kernel::FACTOR))?;
        tracker.step(QueryAction::Synchronize, || context.synchronize())
    })?;
    device.launch_us = Some(round_to_thousandths(ran.as_secs_f64() * 1e6));

    let copied_out = best(|| tracker.step(QueryAction::CopyOut, || to.copy_out(&mut output)))?;
    device.from_device_gb_s = Some(gigabytes_per_second(size_of_val(&*output), copied_out));

    tracker.step(QueryAction::UnloadKernel, || module.unload())?;
    tracker.step(QueryAction::FreeAllocated, || from.free())?;
    tracker.step(QueryAction::FreeAllocated, || to.free())?;
    tracker.step(QueryAction::ReleaseContext, || context.release())?;

    Ok(match kernel::first_mismatch(&expected, &output) {
        None => ComputeResult::Yes,
        Some(kernel::Mismatch { element, expected, found, wrong }) => {
            ComputeResult::Wrong { element, expected, found, wrong, of: kernel::COUNT }
        }
    })
}

/// The shortest time of several runs.
fn best(mut work: impl FnMut() -> Result<(), CudaFailure>) -> Result<Duration, CudaFailure> {
    let mut shortest = Duration::MAX;
    for _ in 0..TIMES {
        let start = Instant::now();
        work()?;
        shortest = shortest.min(start.elapsed());
    }
    Ok(shortest)
}

#[allow(clippy::cast_precision_loss, reason = "a few MiB")]
fn gigabytes_per_second(bytes: usize, time: Duration) -> f64 {
    round_to_thousandths(bytes as f64 / time.max(Duration::from_nanos(1)).as_secs_f64() / 1e9)
}

/// Rounds to the precision of the measurement.
fn round_to_thousandths(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::step::QueryStep;

    #[test]
    fn rates_are_in_decimal_gigabytes_and_finite() {
        assert!((gigabytes_per_second(2_000_000_000, Duration::from_secs(2)) - 1.0).abs() < 1e-9);
        assert!(gigabytes_per_second(1 << 22, Duration::ZERO).is_finite());
    }

    #[test]
    fn timed_operations_are_repeated_until_the_first_error() {
        let mut runs = 0;
        let mut succeed_until = |last: usize| {
            best(|| {
                runs += 1;
                let step = QueryStep { device: Some(0), action: QueryAction::Launch };
                if runs <= last { Ok(()) } else { Err(CudaFailure::new(step, 719, None, None)) }
            })
        };
        assert!(succeed_until(TIMES).is_ok());
        assert!(succeed_until(TIMES + 1).is_err());
        assert_eq!(runs, TIMES + 2);
    }
}
