//! The proof that a device computes: numbers in, a kernel, numbers out, each held against what it must be.

use std::time::{Duration, Instant};

use crate::driver_api::{DeviceHandle, Driver};
use crate::error::Failure;
use crate::kernel;
use crate::query::Trail;
use crate::report::{Device, Outcome};
use crate::step::Action;

/// How often what is timed is done. The first time pays for buffers and for loading.
const TIMES: usize = 3;

/// Has a device compute, and writes into its report what was learned, up to the call that failed if one did.
pub(crate) fn prove(
    driver: &Driver,
    handle: DeviceHandle,
    device: &mut Device,
    trail: &mut Trail<'_>,
) -> Result<Outcome, Failure> {
    let input = kernel::input(device.ordinal);
    let expected = kernel::expected(&input);
    // Wrong beforehand, like the device's memory, so that a copy that never took place is noticed as well.
    let mut output = kernel::all_wrong(&expected);

    let context = trail.step(driver, Action::RetainContext, || driver.retain(handle))?;
    trail.step(driver, Action::EnterContext, || context.enter())?;
    device.memory_free = Some(trail.step(driver, Action::FreeMemory, || context.free_memory())?);
    let from = trail.step(driver, Action::Allocate, || context.allocate(input.len()))?;
    let to = trail.step(driver, Action::Allocate, || context.allocate(output.len()))?;

    trail.step(driver, Action::CopyIn, || to.copy_in(&output))?;
    let copied_in = best(|| {
        trail.step(driver, Action::CopyIn, || from.copy_in(&input))?;
        // A copy from pageable memory may return while its last part is still under way.
        trail.step(driver, Action::Synchronise, || context.synchronize())
    })?;
    device.to_device_gb_s = Some(gigabytes_a_second(size_of_val(&*input), copied_in));

    let module = trail.step(driver, Action::LoadKernel, || context.load_kernel())?;
    let kernel = trail.step(driver, Action::FindKernel, || module.kernel())?;
    let ran = best(|| {
        trail.step(driver, Action::Launch, || kernel.launch(&to, &from, kernel::FACTOR))?;
        trail.step(driver, Action::Synchronise, || context.synchronize())
    })?;
    device.launch_us = Some(thousandths(ran.as_secs_f64() * 1e6));

    let copied_out = best(|| trail.step(driver, Action::CopyOut, || to.copy_out(&mut output)))?;
    device.from_device_gb_s = Some(gigabytes_a_second(size_of_val(&*output), copied_out));

    trail.step(driver, Action::UnloadKernel, || module.unload())?;
    trail.step(driver, Action::FreeAllocated, || from.free())?;
    trail.step(driver, Action::FreeAllocated, || to.free())?;
    trail.step(driver, Action::ReleaseContext, || context.release())?;

    Ok(match kernel::difference(&expected, &output) {
        None => Outcome::Yes,
        Some(kernel::Difference { element, expected, found, wrong }) => {
            Outcome::Wrong { element, expected, found, wrong, of: kernel::COUNT }
        }
    })
}

/// The shortest time that something took.
fn best(mut work: impl FnMut() -> Result<(), Failure>) -> Result<Duration, Failure> {
    let mut shortest = Duration::MAX;
    for _ in 0..TIMES {
        let start = Instant::now();
        work()?;
        shortest = shortest.min(start.elapsed());
    }
    Ok(shortest)
}

#[allow(clippy::cast_precision_loss, reason = "a few MiB")]
fn gigabytes_a_second(bytes: usize, time: Duration) -> f64 {
    thousandths(bytes as f64 / time.max(Duration::from_nanos(1)).as_secs_f64() / 1e9)
}

/// More digits than that were not measured.
fn thousandths(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::step::Step;

    #[test]
    fn rates_are_of_decimal_gigabytes_and_always_finite() {
        assert!((gigabytes_a_second(2_000_000_000, Duration::from_secs(2)) - 1.0).abs() < 1e-9);
        assert!(gigabytes_a_second(1 << 22, Duration::ZERO).is_finite());
    }

    #[test]
    fn what_is_timed_is_done_several_times_and_ends_with_the_first_error() {
        let mut runs = 0;
        let mut succeed_until = |last: usize| {
            best(|| {
                runs += 1;
                let step = Step { device: Some(0), action: Action::Launch };
                if runs <= last { Ok(()) } else { Err(Failure::new(step, 719, None, None)) }
            })
        };
        assert!(succeed_until(TIMES).is_ok());
        assert!(succeed_until(TIMES + 1).is_err());
        assert_eq!(runs, TIMES + 2);
    }
}
