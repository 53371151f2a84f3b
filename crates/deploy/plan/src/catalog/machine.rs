//! Machine types: virtual machine sizes and workload profiles, with whole numbers.

use cudock_base::Arch;
use cudock_facts::Facts;
use cudock_facts::tables::{ComputeFormat, Gpu, Lifecycle, Profile, Size, SizeDriver, Vendor};
use cudock_facts::version::{Capability, Date};

use crate::catalog::availability::{Proof, SeriesRegions, series_support};
use crate::catalog::offer::RegionId;

pub(crate) const GB: u64 = 1_000_000_000;
pub(crate) const GIB: u64 = 1 << 30;

/// The properties of an instance. Figures that the tables lack are none.
#[derive(Debug, Clone, Default)]
pub(crate) struct MachineType {
    pub(crate) name: String,
    pub(crate) series: Option<String>,
    /// How each service supports it, by [`AzureOffering::index`](crate::AzureOffering); none if it does not.
    pub(crate) series_support: [Option<Proof>; 9],
    /// The regions that have it, if only some do.
    pub(crate) sold_in: Option<SeriesRegions>,
    /// Whether it exists as a confidential VM only.
    pub(crate) confidential: bool,
    pub(crate) profile: Option<ProfilePlan>,
    pub(crate) gpu: Option<String>,
    pub(crate) vendor: Option<Vendor>,
    pub(crate) capability: Option<Capability>,
    /// The number formats that its GPUs calculate in.
    pub(crate) formats: Option<Vec<ComputeFormat>>,
    /// Published half-precision throughput, in 10^9 operations a second.
    pub(crate) gflops: Option<u64>,
    pub(crate) gpus: Option<u32>,
    /// Memory of each GPU or of the share, in bytes.
    pub(crate) gpu_memory: Option<u64>,
    pub(crate) vcpu: Option<u32>,
    pub(crate) ram: Option<u64>,
    /// The larger of temporary disk and local `NVMe`, in bytes.
    pub(crate) local_disk: u64,
    pub(crate) local_disks: u32,
    /// Network rate in bytes per second.
    pub(crate) network: Option<u64>,
    /// Whether the network rate is that of the size with the same GPU and memory.
    pub(crate) network_assumed: bool,
    /// Bytes a second of all remote disks.
    pub(crate) remote_disks: Option<u64>,
    pub(crate) infiniband: Option<bool>,
    pub(crate) infiniband_gbps: Option<u32>,
    pub(crate) nvlink: Option<String>,
    /// The GPUs that `NVLink` connects with each other, if not all.
    pub(crate) nvlink_gpus: Option<u32>,
    pub(crate) architecture: Option<Arch>,
    pub(crate) driver: Option<SizeDriver>,
    pub(crate) family: Option<String>,
    pub(crate) spot: Option<bool>,
    pub(crate) lifecycle: Lifecycle,
    pub(crate) documented: bool,
    pub(crate) replacement: Option<String>,
    /// The day it is retired, unless `ends_in` has another.
    pub(crate) ends: Option<Date>,
    pub(crate) ends_in: Vec<(RegionId, Date)>,
    /// The regions that offer a profile; empty for sizes, which are offered where they have a
    /// price.
    pub(crate) offered_in: Vec<RegionId>,
    /// Whether it is exempt from the quota reserve of managed online endpoints; none if they do not support it.
    pub(crate) endpoint_exempt: Option<bool>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProfilePlan {
    Consumption,
    Dedicated,
}

impl MachineType {
    pub(crate) fn of_size(facts: &Facts, size: &Size, region: impl Fn(&str) -> Option<RegionId>) -> Self {
        let gib = |value: Option<u32>| u64::from(value.unwrap_or(0)).saturating_mul(GIB);
        let nvme = gib(size.nvme_gib);
        let ends_in = size.retired_on_by_region.iter().filter_map(|(name, day)| Some((region(name)?, *day)));
        let ends_in: Vec<_> = ends_in.collect();
        let series = size.series.as_deref();
        Self {
            series_support: series_support(facts, series),
            sold_in: series.and_then(|series| SeriesRegions::of(facts, series, &region)),
            confidential: size.confidential,
            series: size.series.clone(),
            gpus: size
                .gpu_count
                .map(|count| whole(count * 1000.0))
                .and_then(|count| u32::try_from(count).ok()),
            gpu_memory: size.gpu_memory_gb.map(|gb| gb_bytes(gb, GB)),
            vcpu: size.vcpu,
            ram: size.ram_gib.map(|gib| gb_bytes(gib, GIB)),
            local_disk: nvme.max(gib(size.temp_disk_gib)),
            local_disks: size.nvme_disks.unwrap_or(1).max(1),
            network: size.network_mbps.map(|mbps| u64::from(mbps) * 1_000_000 / 8),
            remote_disks: size.remote_disk_mbps.map(|mbps| u64::from(mbps) * 1_000_000),
            infiniband: size.infiniband,
            infiniband_gbps: size.infiniband_gbps,
            nvlink: size.nvlink.clone(),
            nvlink_gpus: size.nvlink_gpus,
            architecture: Some(size.cpu_arch),
            driver: size.driver,
            family: size.quota_family.clone(),
            spot: size.spot,
            lifecycle: size.lifecycle,
            documented: size.documented,
            replacement: size.replacement.clone(),
            ends: size.retired_on.or(size.retires_on),
            ends_in,
            endpoint_exempt: facts.meters().endpoint_size(&size.name).map(|row| row.reserve_exempt),
            ..Self::with_gpu(facts, &size.name, size.gpu.as_deref())
        }
    }

    pub(crate) fn of_profile(
        facts: &Facts,
        profile: &Profile,
        region: impl Fn(&str) -> Option<RegionId>,
    ) -> Self {
        let dedicated = profile.plan == "dedicated";
        let base = Self::with_gpu(facts, &profile.name, Some(&profile.gpu));
        let row = facts.gpus().gpu.iter().find(|row| row.id == profile.gpu);
        let memory = row.and_then(|row| row.memory_gb.iter().min().copied());
        Self {
            profile: Some(if dedicated { ProfilePlan::Dedicated } else { ProfilePlan::Consumption }),
            gpus: profile.gpu_count.checked_mul(1000),
            gpu_memory: memory.map(|gb| u64::from(gb) * GB),
            vcpu: Some(profile.vcpu),
            ram: Some(u64::from(profile.memory_gib) * GIB),
            infiniband: Some(false),
            architecture: Some(Arch::X86_64),
            lifecycle: Lifecycle::Available,
            documented: true,
            offered_in: profile.regions.iter().filter_map(|name| region(name)).collect(),
            ..base
        }
    }

    fn with_gpu(facts: &Facts, name: &str, gpu: Option<&str>) -> Self {
        let row = gpu.and_then(|id| facts.gpus().gpu.iter().find(|row: &&Gpu| row.id == id));
        Self {
            name: name.to_owned(),
            series_support: [Some(Proof::NotListed); 9],
            gpu: gpu.map(str::to_owned),
            vendor: row.map(|row| row.vendor),
            capability: row.and_then(|row| row.capability),
            formats: row
                .and_then(|row| facts.gpus().native_formats(row.capability?))
                .map(<[ComputeFormat]>::to_vec),
            gflops: row.and_then(|row| row.fp16_tflops).map(gflops),
            local_disks: 1,
            ..Self::default()
        }
    }

    pub(crate) fn ends_on(&self, region: RegionId) -> Option<Date> {
        self.ends_in.iter().find(|(named, _)| *named == region).map(|(_, day)| *day).or(self.ends)
    }

    /// Whether `NVLink` connects this many GPUs with each other.
    pub(crate) fn links(&self, gpus: u32) -> bool {
        self.nvlink.is_some() && self.nvlink_gpus.is_none_or(|linked| gpus <= linked)
    }

    /// Whether both have the same GPUs, processors and memory.
    pub(crate) fn is_twin(&self, other: &Self) -> bool {
        let figures = |machine: &Self| (machine.gpus, machine.vcpu, machine.ram);
        self.gpu.is_some() && self.gpu == other.gpu && figures(self) == figures(other)
    }

    pub(crate) fn is_share(&self) -> bool {
        self.gpus.is_some_and(|gpus| gpus < 1000)
    }

    /// The GPUs of an instance: "8 H100-SXM", "1 T4", "1/6 of an A10".
    pub(crate) fn describe_gpus(&self) -> String {
        let name = self.gpu_name();
        match self.gpus {
            None => format!("an unknown number of {name}"),
            Some(count) if count >= 1000 => format!("{} {name}", count / 1000),
            Some(share) => format!("1/{} of an {name}", (1000 + share / 2) / share.max(1)),
        }
    }

    pub(crate) fn gpu_name(&self) -> &str {
        self.gpu.as_deref().unwrap_or("GPU")
    }
}

pub(crate) fn gflops(tflops: f64) -> u64 {
    whole(tflops * 1000.0)
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a cast from float saturates, and the figures are small"
)]
fn whole(figure: f64) -> u64 {
    figure.round() as u64
}

/// Figures in the tables have few decimals: thousandths are exact.
fn gb_bytes(figure: f64, unit: u64) -> u64 {
    whole(figure * 1000.0).saturating_mul(unit) / 1000
}
