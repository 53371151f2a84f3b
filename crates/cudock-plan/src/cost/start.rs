//! How long a start takes, and how much of it is billed.

use cudock_facts::tables::{BilledFrom, SizeDriver, StartTimes};

use super::data;
use super::storage::DataStore;
use crate::context::{Case, ReadMode};
use crate::workload::{Image, ImageLayer, LayerCompression};
use cudock_base::mul_div_ceil;

const MB: u128 = 1_000_000;
/// Layers that containerd and docker fetch at once; cudock fetches four.
const CONNECTIONS: usize = 3;

/// The parts of a start, in milliseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Startup {
    pub(crate) provision: u128,
    pub(crate) driver: u128,
    pub(crate) pull: u128,
    /// Unpacking after the end of the pull.
    pub(crate) unpack: u128,
    pub(crate) stage: u128,
    pub(crate) weights: u128,
    pub(crate) ready: u128,
    pub(crate) jit: u128,
    /// The part of the total that is billed.
    pub(crate) billed: u128,
}

impl Startup {
    /// A start of a case, with `copied` bytes of data copied to each instance.
    pub(crate) fn of(case: &Case, mode: ReadMode, copied: u64) -> Self {
        let Some(times) = case.terms.start else { return Self::default() };
        let start = &case.workload().start;
        let seconds = |count: u32| u128::from(count) * 1000;
        // Service images contain the data center driver; GRID is installed by an extension.
        let grid = matches!(case.machine.driver, Some(SizeDriver::Grid | SizeDriver::GridV20));
        let jit = case.verdict().is_none_or(|verdict| verdict.jit);
        let (pull, unpack) = start.image.as_ref().map_or((0, 0), |image| image_times(image, times));
        let mut startup = Self {
            provision: seconds(times.provision_s),
            driver: if grid { seconds(times.gpu_driver_s.unwrap_or(0)) } else { 0 },
            pull,
            unpack,
            stage: if mode == ReadMode::Stage { fetch(case.context.store.as_ref(), case, copied) } else { 0 },
            weights: fetch(case.context.weights_store.as_ref(), case, start.weights),
            ready: start.ready.as_millis(),
            jit: if jit { start.jit.as_millis() } else { 0 },
            billed: 0,
        };
        let free = match times.billed_from {
            BilledFrom::Order => 0,
            BilledFrom::Machine => startup.provision,
            BilledFrom::Pull => startup.provision + startup.driver,
            BilledFrom::Container => {
                startup.provision + startup.driver.saturating_add(startup.pull).saturating_add(startup.unpack)
            }
        };
        startup.billed = startup.total().saturating_sub(free);
        startup
    }

    /// From the order to the first useful work.
    pub(crate) fn total(&self) -> u128 {
        let parts = [
            self.provision,
            self.driver,
            self.pull,
            self.unpack,
            self.stage,
            self.weights,
            self.ready,
            self.jit,
        ];
        parts.into_iter().fold(0, u128::saturating_add)
    }
}

/// The milliseconds of a pull, and those of unpacking after it.
///
/// Layers are unpacked while others are fetched: one after the other in their order, or all that are there at once. So one
/// layer takes the sum of both times, and many layers little more than the longer one.
fn image_times(image: &Image, times: &StartTimes) -> (u128, u128) {
    let whole = [ImageLayer { compressed: image.compressed, compression: LayerCompression::Gzip }];
    let layers = if image.layers.is_empty() { &whole } else { image.layers.as_slice() };
    let pulled = |bytes: u128| millis(bytes, times.pull_mb_per_s);
    let unpacking = |layer: &ImageLayer| {
        // How far each layer is compressed is unknown.
        let (part, all) = (u128::from(layer.compressed), u128::from(image.compressed));
        let unpacked = mul_div_ceil(u128::from(image.unpacked), part, all.max(1));
        let rate = match layer.compression {
            LayerCompression::Gzip => None,
            LayerCompression::Zstd => times.unpack_zstd_mb_per_s,
            LayerCompression::None => times.unpack_plain_mb_per_s,
        };
        millis(unpacked, rate.unwrap_or(times.unpack_mb_per_s))
    };
    let arrived = arrivals(layers).into_iter().map(pulled);
    let work: Vec<(u128, u128)> = arrived.zip(layers.iter().map(unpacking)).collect();
    let done = if times.unpacks_in_any_order {
        unpacked_together(work, times.unpack_alone_percent.unwrap_or(100))
    } else {
        work.into_iter().fold(0, |done, (arrived, unpacking)| arrived.max(done).saturating_add(unpacking))
    };
    let pull = pulled(image.compressed.into());
    (pull, done.saturating_sub(pull))
}

/// When the last layer is unpacked. Of each there is the time at which it arrives, and how long it takes at the full rate, of
/// which one alone reaches some percent, and which several share.
fn unpacked_together(mut layers: Vec<(u128, u128)>, alone_percent: u32) -> u128 {
    /// Of a millisecond, so that shares are whole numbers.
    const PARTS: u128 = 1_000_000;
    layers.sort_unstable();
    let mut waiting = layers.into_iter().peekable();
    // The work left of each layer that is being unpacked.
    let mut active: Vec<u128> = Vec::new();
    let mut now = 0;
    loop {
        while let Some((_, work)) = waiting.next_if(|(arrived, _)| arrived * PARTS <= now) {
            active.push(work * PARTS);
        }
        let arrival = waiting.peek().map(|(arrived, _)| arrived * PARTS);
        let Some(least) = active.iter().copied().min() else {
            match arrival {
                Some(arrival) => now = arrival,
                None => return now.div_ceil(PARTS),
            }
            continue;
        };
        let share = (u128::from(alone_percent.clamp(1, 100)) * PARTS / 100).min(PARTS / active.len() as u128);
        let finish = now + mul_div_ceil(least, PARTS, share.max(1));
        let until = arrival.map_or(finish, |arrival| arrival.min(finish));
        let progress = if until == finish { least } else { (until - now) * share / PARTS };
        active.retain_mut(|left| {
            *left = left.saturating_sub(progress);
            *left > 0
        });
        now = until;
    }
}

/// The bytes of an image that have been fetched when each of its layers is complete: those that are fetched at once
/// share the network.
fn arrivals(layers: &[ImageLayer]) -> Vec<u128> {
    let mut arrivals = vec![0; layers.len()];
    let mut waiting = arrivals.iter_mut().zip(layers).map(|(at, layer)| (at, u128::from(layer.compressed)));
    let mut active: Vec<(&mut u128, u128)> = waiting.by_ref().take(CONNECTIONS).collect();
    let mut fetched = 0;
    while let Some(least) = active.iter().map(|(_, rest)| *rest).min() {
        fetched += least * active.len() as u128;
        active.retain_mut(|(at, rest)| {
            *rest -= least;
            **at = fetched;
            *rest > 0
        });
        active.extend(waiting.by_ref().take(CONNECTIONS - active.len()));
    }
    arrivals
}

fn millis(bytes: u128, mb_per_s: u32) -> u128 {
    mul_div_ceil(bytes, 1000, u128::from(mb_per_s.max(1)) * MB)
}

/// How long fetching bytes from a storage takes.
fn fetch(store: Option<&DataStore>, case: &Case, bytes: u64) -> u128 {
    match store.and_then(|store| data::rate(case, store)) {
        Some(rate) => mul_div_ceil(u128::from(bytes), 1000, u128::from(rate)),
        None => 0,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::service::ServiceKind;
    use crate::testing::{SECOND, data, job, on};
    use crate::workload::{Access, DataNeeds, Workload};

    fn startup(workload: &Workload, service: ServiceKind, size: &str, mode: ReadMode) -> Startup {
        let bytes = workload.data.as_ref().map_or(0, |data| data.bytes);
        on(workload, service, size, |case| Startup::of(case, mode, bytes))
    }

    /// Seconds of pulling, and of unpacking after it, on virtual machines: 150 and 100 MB/s.
    fn image_seconds(layers: &[u64], compression: LayerCompression) -> (u128, u128) {
        let layers = layers.iter().map(|size| ImageLayer { compressed: size * 1_000_000, compression });
        let mut workload = job(1);
        workload.start.image =
            Some(Image { compressed: 3_000_000_000, unpacked: 6_000_000_000, layers: layers.collect() });
        let start = startup(&workload, ServiceKind::Vm, "Standard_NC4as_T4_v3", ReadMode::Stream);
        (start.pull / SECOND, start.unpack / SECOND)
    }

    #[test]
    fn layers_are_unpacked_while_others_are_fetched() {
        use LayerCompression::Gzip;
        // One layer, or three that arrive together, leave nothing to overlap.
        for layers in [&[][..], &[3000], &[1000, 1000, 1000]] {
            assert_eq!(image_seconds(layers, Gzip), (20, 60), "{layers:?}");
        }
        // The first is there after 900 of 3000 MB, 6 of 20 s, and unpacked when the others arrive.
        assert_eq!(image_seconds(&[300, 1350, 1350], Gzip), (20, 60 - 6));
        // Of ten, three are there after 6 s, and from then on unpacking never waits.
        assert_eq!(image_seconds(&[300; 10], Gzip), (20, 60 + 6 - 20));
        // The lowest comes last, and all others wait for it.
        assert_eq!(image_seconds(&[2400, 300, 300], Gzip), (20, 60));
    }

    #[test]
    fn the_compression_of_a_layer_decides_how_fast_it_is_unpacked() {
        let workload = job(1);
        let rates = |times: &StartTimes, compression| {
            let layers = vec![ImageLayer { compressed: 1000, compression }];
            image_times(&Image { compressed: 1000, unpacked: 600_000_000, layers }, times).1
        };
        on(&workload, ServiceKind::Vm, "Standard_NC4as_T4_v3", |case| {
            let mut times = case.terms.start.unwrap().clone();
            let all = [LayerCompression::Gzip, LayerCompression::Zstd, LayerCompression::None];
            assert_eq!(all.map(|compression| rates(&times, compression)), [6000; 3]);
            times.unpack_zstd_mb_per_s = Some(200);
            times.unpack_plain_mb_per_s = Some(600);
            assert_eq!(all.map(|compression| rates(&times, compression)), [6000, 3000, 1000]);
        });
    }

    #[test]
    fn a_layer_that_comes_late_holds_up_others_only_if_they_are_unpacked_in_order() {
        on(&job(1), ServiceKind::Vm, "Standard_NC4as_T4_v3", |case| {
            let unpack = |in_any_order: bool| {
                let given = case.terms.start.unwrap().clone();
                let times = StartTimes {
                    pull_mb_per_s: 100,
                    unpack_mb_per_s: 100,
                    unpacks_in_any_order: in_any_order,
                    ..given
                };
                let layer = |compressed| ImageLayer { compressed, compression: LayerCompression::Gzip };
                let layers = vec![layer(400_000_000), layer(100_000_000), layer(100_000_000)];
                image_times(&Image { compressed: 600_000_000, unpacked: 600_000_000, layers }, &times)
            };
            // The small ones are there after three seconds, the large one after six.
            assert_eq!(unpack(false), (6000, 6000));
            assert_eq!(unpack(true), (6000, 4000));
        });
    }

    #[test]
    fn one_layer_alone_does_not_reach_the_rate_of_several() {
        let cases = [
            (vec![], 50, 0),
            (vec![(1000, 2000)], 100, 3000),
            (vec![(1000, 2000)], 50, 5000),
            (vec![(0, 1000), (0, 1000)], 50, 2000),
            // The second arrives when half of the first is done, and is alone at last.
            (vec![(0, 1000), (1000, 1000)], 50, 3000),
            (vec![(9000, 500), (0, 1000), (100, 0)], 100, 9500),
        ];
        for (layers, percent, done) in cases {
            assert_eq!(unpacked_together(layers.clone(), percent), done, "{layers:?} at {percent} %");
        }
    }

    #[test]
    fn weights_come_from_blobs_by_default() {
        // 16 GB over 8 Gb/s, which is 1 GB/s.
        let mut workload = job(1);
        workload.start.weights = 16_000_000_000;
        let start = startup(&workload, ServiceKind::Vm, "Standard_NC4as_T4_v3", ReadMode::Stream);
        assert_eq!(start.weights, 16 * SECOND);
        assert_eq!(start.billed, (20 + 60 + 16 + 5) * SECOND);
        // A profile reads as the size with the same GPU and memory does.
        let start =
            startup(&workload, ServiceKind::ContainerApps, "Consumption-GPU-NC8as-T4", ReadMode::Stream);
        assert_eq!(start.weights, 16 * SECOND);
    }

    #[test]
    fn a_grid_driver_is_installed_first_and_billed() {
        let mut workload = job(1);
        workload.gpu.memory = 1;
        let start = startup(&workload, ServiceKind::Vm, "Standard_NV36ads_A10_v5", ReadMode::Stream);
        assert_eq!((start.driver, start.billed), (300 * SECOND, (300 + 20 + 60 + 5) * SECOND));
        let start = startup(&workload, ServiceKind::Aks, "Standard_NV36ads_A10_v5", ReadMode::Stream);
        assert_eq!(start.driver, 0, "a node comes with its driver");
    }

    #[test]
    fn jit_compilation_counts_without_a_verdict() {
        let mut workload = job(1);
        workload.start.jit = Duration::from_secs(30);
        let start = startup(&workload, ServiceKind::Vm, "Standard_NC4as_T4_v3", ReadMode::Stream);
        assert_eq!(start.jit, 30 * SECOND);
    }

    #[test]
    fn copying_takes_what_the_network_gives() {
        // 100 GB at 2.5 GB/s.
        let mut workload = job(1);
        workload.data = Some(DataNeeds { access: Access::Stage, ..data(100_000_000_000, "blob-hot") });
        let start = startup(&workload, ServiceKind::Vm, "Standard_NC24ads_A100_v4", ReadMode::Stage);
        assert_eq!(start.stage, 40 * SECOND);
    }
}
