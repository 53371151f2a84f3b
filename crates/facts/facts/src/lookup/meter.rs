use std::time::Duration;

use cudock_base::Usd;

use crate::tables::{
    Area, Billing, Bound, BoundKey, DiskTier, EndpointSize, Meter, MeterKind, Meters, Rounding, StartFigure,
    StartTimes, StoragePrice, Throughput,
};

impl Meters {
    /// The price of a meter in a region from the first unit on: the row of the region, else of its area, else the
    /// general one.
    pub fn price(&self, service: &str, meter: MeterKind, gpu: Option<&str>, region: &str) -> Option<&Meter> {
        self.tiers(service, meter, gpu, region).into_iter().next()
    }

    /// The same with the prices of larger volumes, sorted by volume.
    pub fn tiers(&self, service: &str, meter: MeterKind, gpu: Option<&str>, region: &str) -> Vec<&Meter> {
        let rows = self
            .meter
            .iter()
            .filter(|row| row.service == service && row.meter == meter && row.gpu.as_deref() == gpu);
        let area = self.area_of(region).map(|area| area.id.as_str());
        let mut found: Vec<(u8, &Meter)> = rows
            .filter_map(|row| {
                let nearness = match (row.regions.is_empty(), row.area.as_deref()) {
                    (false, _) => row.regions.iter().any(|named| named == region).then_some(0)?,
                    (true, Some(named)) => (Some(named) == area).then_some(1)?,
                    (true, None) => 2,
                };
                Some((nearness, row))
            })
            .collect();
        let nearest = found.iter().map(|(nearness, _)| *nearness).min();
        found.retain(|(nearness, _)| Some(*nearness) == nearest);
        // Of two rows for the same tier the later wins: an overlay's rows come last.
        found.reverse();
        found.sort_by_key(|(_, row)| row.above);
        found.dedup_by_key(|(_, row)| row.above);
        found.into_iter().map(|(_, row)| row).collect()
    }

    /// The price per GB between two regions; `None` within a region, which is free, and for regions without an area.
    pub fn transfer(&self, from: &str, to: &str) -> Option<&Meter> {
        if from == to {
            return None;
        }
        let (here, there) = (self.area_of(from)?, self.area_of(to)?);
        let meter = if here.id == there.id { MeterKind::InterRegionGb } else { MeterKind::InterAreaGb };
        self.price("network", meter, None, from)
    }

    pub fn area_of(&self, region: &str) -> Option<&Area> {
        self.area.iter().find(|area| area.regions.iter().any(|named| named == region))
    }

    pub fn billing_of(&self, service: &str) -> Option<&Billing> {
        self.billing.iter().find(|row| row.service == service)
    }

    pub fn start_of(&self, service: &str) -> Option<&StartTimes> {
        self.start.iter().find(|row| row.service == service)
    }

    pub fn throughput_of(&self, storage: &str) -> Option<&Throughput> {
        self.throughput.iter().find(|row| row.storage == storage)
    }

    /// The smallest tier of a storage with at least this capacity.
    pub fn disk_for(&self, storage: &str, gib: u64) -> Option<&DiskTier> {
        let fits = |row: &&DiskTier| row.storage == storage && u64::from(row.gib) >= gib;
        self.disk_tier.iter().filter(fits).min_by_key(|row| row.gib)
    }

    pub fn endpoint_size(&self, size: &str) -> Option<&EndpointSize> {
        self.endpoint_size.iter().find(|row| row.size.eq_ignore_ascii_case(size))
    }

    pub fn bound(&self, service: &str, key: BoundKey) -> Option<&Bound> {
        self.bound.iter().find(|row| row.service == service && row.key == key)
    }
}

impl Billing {
    /// The billed part of a time, with minimum and rounding applied.
    pub fn billed(&self, time: Duration) -> Duration {
        let unit = u128::from(self.unit_s.max(1)) * 1000;
        // A part of a millisecond is a part of a unit.
        let millis = time.as_nanos().div_ceil(1_000_000);
        let units = match self.rounding {
            Rounding::Up => millis.div_ceil(unit),
            Rounding::Down => millis / unit,
            Rounding::Nearest => (millis + unit / 2) / unit,
        };
        let seconds = u64::try_from(units * unit / 1000).unwrap_or(u64::MAX);
        Duration::from_secs(seconds).max(Duration::from_secs(u64::from(self.minimum_s)))
    }
}

impl StartTimes {
    pub fn assumes(&self, figure: StartFigure) -> bool {
        self.assumed.contains(&figure)
    }
}

impl Throughput {
    /// Bytes per second that one instance reads from a storage of this capacity; `None` if the network of the size is the
    /// bound.
    pub fn bytes_per_second(&self, gib: u64, local_disks: u32) -> Option<u64> {
        const MB: u64 = 1_000_000;
        let gib = gib.max(u64::from(self.least_gib.unwrap_or(0)));
        let fixed = self.mb_per_s.map(|rate| u64::from(rate) * MB);
        let by_size = self.mb_per_s_per_tib.map(|rate| {
            u64::try_from(u128::from(rate) * u128::from(MB) * u128::from(gib) / 1024).unwrap_or(u64::MAX)
        });
        let by_disk = self.mb_per_s_per_disk.map(|rate| u64::from(rate) * MB * u64::from(local_disks.max(1)));
        let rate = [fixed, by_size, by_disk].into_iter().flatten().reduce(u64::saturating_add)?;
        Some(self.most_mb_per_s.map_or(rate, |most| rate.min(u64::from(most) * MB)))
    }
}

impl StoragePrice {
    /// The price as an exact amount; `None` if it is negative or not finite.
    pub fn exact(&self) -> Option<Usd> {
        Usd::nearest(self.usd)
    }
}
