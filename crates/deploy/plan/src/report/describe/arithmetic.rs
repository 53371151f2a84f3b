//! The calculation behind each part of a cost.

use std::time::Duration;

use cudock_base::Usd;
use cudock_base::text::format::bytes;
use cudock_facts::tables::Rounding;

use super::{PlacementView, time};
use crate::context::ReadMode;
use crate::cost::price::balancers;
use crate::cost::region::{RegionCosts, Transfer};
use crate::cost::serve::MILLION;
use crate::plan::placement::PartKind;
use crate::ratio::float;
use crate::report::format::short;

const HOUR: Duration = Duration::from_secs(3600);

impl PlacementView<'_, '_, '_> {
    pub(super) fn arithmetic(&self, kind: PartKind) -> String {
        let bill = &self.usage.bill;
        match kind {
            PartKind::Compute => self.instance_time(bill.work, ""),
            PartKind::ColdStart => self.instance_time(bill.start, &self.describe_start()),
            PartKind::Idle => self.instance_time(bill.idle, "up without work"),
            PartKind::Evictions => self.instance_time(bill.lost, &self.describe_eviction()),
            PartKind::Rounding => self.instance_time(bill.rounding, &self.describe_rounding()),
            PartKind::Fee => self.describe_fee(),
            PartKind::Disk => self.describe_disk(),
            PartKind::Storage => self.describe_storage(),
            PartKind::Egress => self.describe_egress(),
        }
    }

    fn region_costs(&self) -> Option<&RegionCosts> {
        let context = self.case.context;
        context.region_costs.of(context, self.ranked.offer.region)
    }

    /// Instance time at the price per hour: "3 instances x 0.67 h x $0.526".
    fn instance_time(&self, millis: u128, note: &str) -> String {
        let rate = self.ranked.offer.rate;
        let machines = u128::from(self.usage.machines.max(1));
        let even = millis.is_multiple_of(machines) && machines > 1 && !self.case.context.serves();
        let time = if even {
            format!("{machines} instances x {} h", hours(millis / machines))
        } else {
            format!("{} h", hours(millis))
        };
        let note = if note.is_empty() { String::new() } else { format!(": {note}") };
        format!("{time} x ${rate}{note}")
    }

    fn describe_start(&self) -> String {
        let start = &self.usage.startup;
        let parts = [
            (start.driver, "driver"),
            (start.pull, "pull"),
            (start.unpack, "unpack"),
            (start.stage, "copying data"),
            (start.weights, "weights"),
            (start.ready, "program"),
            (start.jit, "JIT compilation"),
        ];
        let listed: Vec<String> = parts
            .into_iter()
            .filter(|(millis, _)| *millis > 0)
            .map(|(millis, name)| format!("{name} {}", time(millis)))
            .collect();
        let billed = format!("{} of {} per start are billed", time(start.billed), time(start.total()));
        let starts = match self.usage.starts {
            0 => String::new(),
            starts => format!(", {} starts a month", starts.div_ceil(MILLION)),
        };
        format!("{billed} ({}){starts}", listed.join(", "))
    }

    fn describe_eviction(&self) -> String {
        let Some(spot) = &self.case.workload().spot else { return String::new() };
        let checkpoints = match spot.checkpoint_every {
            Some(every) => format!("a checkpoint every {}", time(every.as_millis())),
            None => "no checkpoints".to_owned(),
        };
        let start = time(self.usage.startup.total());
        let rate = short(spot.evictions.times_in(HOUR));
        format!("{rate} evictions per hour and instance, {checkpoints}, {start} per start")
    }

    fn describe_rounding(&self) -> String {
        let Some(billing) = self.case.terms.billing else { return String::new() };
        let direction = match billing.rounding {
            Rounding::Up => "up",
            Rounding::Down => "down",
            Rounding::Nearest => "to the nearest",
        };
        format!("billed in units of {} s, rounded {direction}", billing.unit_s)
    }

    fn describe_fee(&self) -> String {
        let Some(costs) = self.region_costs() else { return String::new() };
        let fees = costs.fees(self.case.terms.kind);
        let hour_fee = match self.case.terms.kind.service().id() {
            "aks" => "/h (cluster, system node, load balancer; zero if a cluster exists already)",
            "vm" => "/h (public IP address)",
            "batch" => "/h (load balancer and IP address of the pool)",
            _ => "/h (environment)",
        };
        let (machines, time) = (self.usage.machines, hours(self.usage.lasts));
        let by_time = [
            (fees.hour, 1, hour_fee),
            (fees.day, 1, "/day (registry)"),
            (fees.nodes_day, balancers(machines), "/day (load balancer per 50 nodes)"),
            (fees.balancer_hour, u64::from(machines > 1), "/h (load balancer)"),
        ];
        let mut terms: Vec<String> = Vec::new();
        for (price, count, unit) in
            by_time.into_iter().filter(|(price, count, _)| *price > Usd::ZERO && *count > 0)
        {
            let count = if count == 1 { String::new() } else { format!("{count} x ") };
            terms.push(format!("{count}{time} h x ${price}{unit}"));
        }
        if fees.requests > Usd::ZERO && self.usage.requests > 0 {
            let millions = short(float(self.usage.requests) / float(MILLION * MILLION));
            let price = fees.requests;
            terms.push(format!(
                "{millions} million requests x ${price}, without the free grant of a subscription"
            ));
        }
        terms.join(" + ")
    }

    fn describe_disk(&self) -> String {
        let context = self.case.context;
        let (Some(costs), Some(tier)) = (self.region_costs(), context.region_costs.os_disk) else {
            return String::new();
        };
        let price = costs.disk_month.unwrap_or_default();
        let from = if costs.disk_elsewhere { ", price of westeurope" } else { "" };
        format!("{} h of a {} of {} GiB x ${price}/month{from}", hours(self.usage.disks), tier.tier, tier.gib)
    }

    fn describe_storage(&self) -> String {
        let context = self.case.context;
        let (Some(costs), Some(data), Some(store)) =
            (self.region_costs(), &self.case.workload().data, &context.store)
        else {
            return String::new();
        };
        let prices = costs.store;
        let mut terms = Vec::new();
        match prices.month {
            Some(month) if month > Usd::ZERO => {
                let (size, lasts) = (bytes(data.bytes), time(self.usage.lasts));
                terms.push(format!("{size} for {lasts} x ${month}/month"));
            }
            Some(_) => {}
            None => terms.push("storing it has no known price and is not included".to_owned()),
        }
        if let Some(reads) = prices.reads {
            let count = self.usage.read.div_ceil(u128::from(data.read_size.max(1)));
            terms.push(format!("{count} reads x ${reads}/10,000"));
        }
        if let Some(retrieval) = prices.retrieval {
            terms.push(format!("{} retrieved x ${}/GB", bytes(narrow(self.usage.read)), retrieval));
        }
        let from = if prices.elsewhere { ", prices of westeurope" } else { "" };
        let copied = if self.usage.mode == ReadMode::Stage { ", copied first" } else { "" };
        format!("{}{copied}: {}{from}", store.row.name, terms.join(" + "))
    }

    fn describe_egress(&self) -> String {
        let (Some(costs), Some(data)) = (self.region_costs(), &self.case.workload().data) else {
            return String::new();
        };
        let mut terms = Vec::new();
        if data.leaves > 0 {
            let out = costs.egress.unwrap_or_default();
            let leaves = bytes(data.leaves);
            terms.push(format!("{leaves} leave Azure: ${out}, without the free grant of a subscription"));
        }
        if let Transfer::Gb(price) = costs.transfer {
            let home = data.region.as_deref().unwrap_or_default();
            terms.push(format!("{} from {home} x ${}/GB", bytes(narrow(self.usage.read)), price));
        }
        terms.join(" + ")
    }
}

/// Hours with two decimals, with four below ten.
pub(super) fn hours(millis: u128) -> String {
    const HOUR: u128 = 3_600_000;
    if millis >= 10 * HOUR {
        let hundredths = millis.saturating_mul(100).saturating_add(HOUR / 2) / HOUR;
        return format!("{}.{:02}", hundredths / 100, hundredths % 100);
    }
    let parts = (millis * 10_000 + HOUR / 2) / HOUR;
    let text = format!("{}.{:04}", parts / 10_000, parts % 10_000);
    let short = text.trim_end_matches('0');
    let decimals = short.len() - short.find('.').unwrap_or(0);
    text.get(..short.len() + 3_usize.saturating_sub(decimals)).unwrap_or(short).to_owned()
}

fn narrow(bytes: u128) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}
