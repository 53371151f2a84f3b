//! How long a start takes, and how much of it is billed.

use std::collections::BTreeMap;

use cudock_base::{Codec, mul_div_ceil};
use cudock_facts::tables::{BilledFrom, SizeDriver, StartTimes};

use super::data;
use super::storage::DataStore;
use crate::context::{Case, ReadMode};
use crate::workload::{Image, ImageLayer};

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

    /// Time from the order to the first useful work.
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
    let whole = [ImageLayer { compressed: image.compressed, codec: Codec::Gzip }];
    let layers = if image.layers.is_empty() { &whole } else { image.layers.as_slice() };
    let work = layers.iter().map(|layer| {
        // How far each layer is compressed is unknown.
        let (part, all) = (u128::from(layer.compressed), u128::from(image.compressed));
        let unpacked = mul_div_ceil(u128::from(image.unpacked), part, all.max(1));
        let rate = match layer.codec {
            Codec::Gzip => None,
            Codec::Zstd => times.unpack_zstd_mb_per_s,
            Codec::Plain => times.unpack_plain_mb_per_s,
        };
        LayerWork {
            fetch: millis(part, times.pull_mb_per_s),
            unpack: millis(unpacked, rate.unwrap_or(times.unpack_mb_per_s)),
            compressed: layer.codec != Codec::Plain,
        }
    });
    let (pulled, unpacked) = work_through(&work.collect::<Vec<_>>(), times);
    (pulled, unpacked - pulled)
}

/// The milliseconds that a layer takes at the full rates.
#[derive(Debug, Clone, Copy)]
struct LayerWork {
    fetch: u128,
    unpack: u128,
    compressed: bool,
}

/// When the last layer is fetched, and when the last one is unpacked. Layers that are fetched at once share the full rate, as
/// do those that are unpacked at once, of which one alone may not reach it; meanwhile a pull takes its part of the processors.
fn work_through(layers: &[LayerWork], times: &StartTimes) -> (u128, u128) {
    /// Fractions of a millisecond and of a rate, so that shares are whole numbers.
    const PARTS: u128 = 1_000_000;
    let percent = |part: u32| u128::from(part.clamp(1, 100)) * PARTS / 100;
    let unpack_alone = percent(times.unpack_alone_percent.unwrap_or(100));
    let beside_pull = percent(100_u32.saturating_sub(times.pull_cpu_percent.unwrap_or(0)));
    let mut waiting = layers.iter().map(|layer| (layer.fetch * PARTS, layer)).enumerate();
    let mut fetching = Vec::new();
    // The layers that are fetched and not unpacked yet, by number.
    let mut fetched = BTreeMap::new();
    let mut unpacking: Vec<(u128, &LayerWork)> = Vec::new();
    let mut lowest = 0;
    let (mut now, mut pulled) = (0_u128, 0_u128);
    loop {
        fetching.extend(waiting.by_ref().take(CONNECTIONS - fetching.len()));
        if times.unpacks_in_any_order {
            unpacking.extend(std::mem::take(&mut fetched).into_values());
        } else if unpacking.is_empty()
            && let Some(work) = fetched.remove(&lowest)
        {
            unpacking.push(work);
            lowest += 1;
        }
        let fetch = PARTS / fetching.len().max(1) as u128;
        let available = if fetching.is_empty() { PARTS } else { beside_pull };
        let each = (available / unpacking.len().max(1) as u128).max(1);
        // Decompression is what a single layer waits for.
        let unpack = |layer: &LayerWork| if layer.compressed { each.min(unpack_alone) } else { each };
        let arrivals = fetching.iter().map(|(_, (left, _))| mul_div_ceil(*left, PARTS, fetch));
        let completions = unpacking.iter().map(|(left, layer)| mul_div_ceil(*left, PARTS, unpack(layer)));
        let Some(step) = arrivals.chain(completions).min() else {
            let rounded = |time: u128| (time + PARTS / 2) / PARTS;
            return (rounded(pulled), rounded(now));
        };
        now += step;
        if !fetching.is_empty() {
            pulled = now;
        }
        fetching.retain_mut(|(number, (left, layer))| {
            *left = left.saturating_sub(step * fetch / PARTS);
            if *left == 0 {
                fetched.insert(*number, (layer.unpack * PARTS, *layer));
            }
            *left > 0
        });
        unpacking.retain_mut(|(left, layer)| {
            *left = left.saturating_sub(step * unpack(layer) / PARTS);
            *left > 0
        });
    }
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
    use crate::testing::{SECOND, data, job, on};
    use crate::workload::{DataNeeds, Workload};
    use cudock_facts::services::AzureOffering;
    use cudock_facts::tables::DataAccess;

    fn startup(workload: &Workload, service: AzureOffering, size: &str, mode: ReadMode) -> Startup {
        let bytes = workload.data.as_ref().map_or(0, |data| data.bytes);
        on(workload, service, size, |case| Startup::of(case, mode, bytes))
    }

    /// Seconds of pulling, and of unpacking after it, on virtual machines: 150 and 100 MB/s.
    fn image_seconds(layers: &[u64], codec: Codec) -> (u128, u128) {
        let layers = layers.iter().map(|size| ImageLayer { compressed: size * 1_000_000, codec });
        let mut workload = job(1);
        workload.start.image =
            Some(Image { compressed: 3_000_000_000, unpacked: 6_000_000_000, layers: layers.collect() });
        let start = startup(&workload, AzureOffering::Vm, "Standard_NC4as_T4_v3", ReadMode::Stream);
        (start.pull / SECOND, start.unpack / SECOND)
    }

    #[test]
    fn layers_are_unpacked_while_others_are_fetched() {
        use Codec::Gzip;
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
        let rates = |times: &StartTimes, codec| {
            let layers = vec![ImageLayer { compressed: 1000, codec }];
            image_times(&Image { compressed: 1000, unpacked: 600_000_000, layers }, times).1
        };
        on(&workload, AzureOffering::Vm, "Standard_NC4as_T4_v3", |case| {
            let mut times = case.terms.start.unwrap().clone();
            let all = [Codec::Gzip, Codec::Zstd, Codec::Plain];
            assert_eq!(all.map(|codec| rates(&times, codec)), [6000; 3]);
            times.unpack_zstd_mb_per_s = Some(200);
            times.unpack_plain_mb_per_s = Some(600);
            assert_eq!(all.map(|codec| rates(&times, codec)), [6000, 3000, 1000]);
            times.unpack_alone_percent = Some(50);
            assert_eq!(all.map(|codec| rates(&times, codec)), [12000, 6000, 1000]);
        });
    }

    #[test]
    fn a_layer_that_comes_late_holds_up_others_only_if_they_are_unpacked_in_order() {
        on(&job(1), AzureOffering::Vm, "Standard_NC4as_T4_v3", |case| {
            let unpack = |in_any_order: bool| {
                let given = case.terms.start.unwrap().clone();
                let times = StartTimes {
                    pull_mb_per_s: 100,
                    unpack_mb_per_s: 100,
                    unpacks_in_any_order: in_any_order,
                    ..given
                };
                let layer = |compressed| ImageLayer { compressed, codec: Codec::Gzip };
                let layers = vec![layer(400_000_000), layer(100_000_000), layer(100_000_000)];
                image_times(&Image { compressed: 600_000_000, unpacked: 600_000_000, layers }, &times)
            };
            // The small ones are there after three seconds, the large one after six.
            assert_eq!(unpack(false), (6000, 6000));
            assert_eq!(unpack(true), (6000, 4000));
        });
    }

    /// Milliseconds of pulling, and of both, where layers are unpacked in any order.
    fn shared(layers: &[(u128, u128)], percents: impl Fn(&mut StartTimes)) -> (u128, u128) {
        let layers: Vec<_> =
            layers.iter().map(|&(fetch, unpack)| LayerWork { fetch, unpack, compressed: true }).collect();
        on(&job(1), AzureOffering::Vm, "Standard_NC4as_T4_v3", |case| {
            let mut times = StartTimes { unpacks_in_any_order: true, ..case.terms.start.unwrap().clone() };
            percents(&mut times);
            work_through(&layers, &times)
        })
    }

    #[test]
    fn one_layer_alone_does_not_reach_the_rate_of_several() {
        let unpack =
            |layers: &[_], percent| shared(layers, |times| times.unpack_alone_percent = Some(percent));
        assert_eq!(unpack(&[], 50), (0, 0));
        assert_eq!(unpack(&[(1000, 2000)], 100), (1000, 3000));
        assert_eq!(unpack(&[(1000, 2000)], 50), (1000, 5000));
        assert_eq!(unpack(&[(0, 1000), (0, 1000)], 50), (0, 2000));
        // The second arrives when half of the first is done, and is alone at last.
        assert_eq!(unpack(&[(0, 1000), (1000, 1000)], 50), (1000, 3000));
    }

    #[test]
    fn unpacking_has_the_processors_that_the_pull_leaves() {
        let both = |layers: &[_], percent| shared(layers, |times| times.pull_cpu_percent = Some(percent));
        // Nothing is unpacked during the pull.
        assert_eq!(both(&[(1000, 2000)], 80), (1000, 3000));
        // Of the first, 800 of 1000 are left when the second arrives.
        assert_eq!(both(&[(0, 1000), (1000, 1000)], 80), (1000, 2800));
        assert_eq!(both(&[(0, 1000), (1000, 1000)], 0), (1000, 2000));
        assert_eq!(both(&[(0, 1000), (1000, 1000)], 100), (1000, 2990));
    }

    #[test]
    fn weights_come_from_blobs_by_default() {
        // 16 GB over 8 Gb/s, which is 1 GB/s.
        let mut workload = job(1);
        workload.start.weights = 16_000_000_000;
        let start = startup(&workload, AzureOffering::Vm, "Standard_NC4as_T4_v3", ReadMode::Stream);
        assert_eq!(start.weights, 16 * SECOND);
        assert_eq!(start.billed, (20 + 60 + 16 + 5) * SECOND);
        // A profile reads as the size with the same GPU and memory does.
        let start =
            startup(&workload, AzureOffering::ContainerApps, "Consumption-GPU-NC8as-T4", ReadMode::Stream);
        assert_eq!(start.weights, 16 * SECOND);
    }

    #[test]
    fn a_grid_driver_is_installed_first_and_billed() {
        let mut workload = job(1);
        workload.gpu.memory = 1;
        let start = startup(&workload, AzureOffering::Vm, "Standard_NV36ads_A10_v5", ReadMode::Stream);
        assert_eq!((start.driver, start.billed), (300 * SECOND, (300 + 20 + 60 + 5) * SECOND));
        let start = startup(&workload, AzureOffering::Aks, "Standard_NV36ads_A10_v5", ReadMode::Stream);
        assert_eq!(start.driver, 0, "a node comes with its driver");
    }

    #[test]
    fn jit_compilation_counts_without_a_verdict() {
        let mut workload = job(1);
        workload.start.jit = Duration::from_secs(30);
        let start = startup(&workload, AzureOffering::Vm, "Standard_NC4as_T4_v3", ReadMode::Stream);
        assert_eq!(start.jit, 30 * SECOND);
    }

    #[test]
    fn copying_takes_what_the_network_gives() {
        // 100 GB at 2.5 GB/s.
        let mut workload = job(1);
        workload.data = Some(DataNeeds { access: DataAccess::Stage, ..data(100_000_000_000, "blob-hot") });
        let start = startup(&workload, AzureOffering::Vm, "Standard_NC24ads_A100_v4", ReadMode::Stage);
        assert_eq!(start.stage, 40 * SECOND);
    }
}
