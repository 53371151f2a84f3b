//! The reasons why a placement fits.

use cudock_base::text::format::{bytes, count};

use super::{PlacementView, time};
use crate::catalog::offer::Offer;
use crate::codes;
use crate::context::ReadMode;
use crate::cost::data;
use crate::cost::pace::SpeedSource;
use crate::feasible::describe_rule;
use crate::ratio::Ratio;
use crate::report::format::thousandths;
use crate::workload::{Priority, Work};

impl PlacementView<'_, '_, '_> {
    pub(super) fn reasons(&self) -> Vec<String> {
        let needs = &self.case.workload().gpu;
        let mut reasons = vec![describe_rule(codes::GPU_MEMORY, self.case)];
        if needs.nvlink || needs.infiniband {
            reasons.push(describe_rule(codes::INTERCONNECT, self.case));
        }
        if needs.least_capability.is_some() || needs.greatest_capability.is_some() {
            reasons.push(describe_rule(codes::CAPABILITY, self.case));
        }
        if needs.precision.is_some() {
            reasons.push(describe_rule(codes::NUMBER_FORMAT, self.case));
        }
        if self.case.verdict().is_some() {
            reasons.push(describe_rule(codes::IMAGE_DOES_NOT_RUN, self.case));
        }
        reasons.extend(self.unused());
        reasons.extend(self.speed());
        reasons.extend(self.data_rate());
        reasons.extend(self.instances());
        reasons.extend(self.discount());
        let end = self.case.machine.ends_on(self.ranked.offer.region);
        reasons.extend(end.map(|day| format!("retired on {day} in this region")));
        reasons
    }

    fn unused(&self) -> Option<String> {
        let has = self.case.machine.gpus? / 1000;
        let used = self.case.workload().gpu.per_instance;
        (has > used).then(|| format!("uses {used} of {has} GPUs, all are billed"))
    }

    fn speed(&self) -> Option<String> {
        let machine = self.case.machine;
        let measured = self.case.workload().gpu.measured_on.as_deref();
        let known = match (self.usage.pace.known, measured) {
            (SpeedSource::Measured, _) if !machine.is_share() => None,
            (SpeedSource::Given, _) => Some("as given".to_owned()),
            (SpeedSource::Measured, _) => Some("measured".to_owned()),
            (SpeedSource::Published, Some(other)) => {
                Some(format!("estimated from published half-precision throughput, relative to {other}"))
            }
            (_, Some(other)) => Some(format!("assumed equal to {other}, no figures known")),
            (_, None) => Some("assumed, times hold on any GPU".to_owned()),
        }?;
        let share =
            if machine.is_share() { format!(" on {}", machine.describe_gpus()) } else { String::new() };
        Some(format!("{} times the speed{share}: {known}", decimal(self.usage.pace.gpu)))
    }

    fn data_rate(&self) -> Option<String> {
        let store = self.case.context.store.as_ref()?;
        if self.usage.mode == ReadMode::Stage {
            let copy = time(self.usage.startup.stage);
            return Some(format!("the data is copied to the local disk first, in {copy}"));
        }
        let (demand, supply) = (bytes(data::demand(self.case)?), bytes(data::supply(self.case)?));
        let name = &store.row.name;
        Some(format!("{name} delivers {supply}/s, the work reads {demand}/s at full speed"))
    }

    fn instances(&self) -> Option<String> {
        let machines = usize::try_from(self.usage.machines).unwrap_or(usize::MAX);
        let instances = count(machines, "instance");
        match &self.case.workload().work {
            Work::Items { .. } if self.case.workload().constraints.deadline.is_some() => {
                Some(format!("{instances}: the fewest that meet the deadline"))
            }
            Work::Items { .. } | Work::Sweep { .. } => Some(format!("{instances} share the work")),
            Work::Serve { target_percent, .. } => {
                let scales_to_zero = self.usage.total > 0 && self.ranked.offer.priority == Priority::Regular;
                let idle = if scales_to_zero { "; none without requests" } else { "" };
                Some(format!("{instances} at the peak, at most {target_percent} % utilized{idle}"))
            }
            Work::Job { .. } => None,
        }
    }

    /// The Spot price relative to the regular price of the same size in the same region.
    fn discount(&self) -> Option<String> {
        let spot = &self.ranked.offer;
        if spot.priority != Priority::Spot {
            return None;
        }
        let regular = self.regular_offer()?.rate.nanos();
        let percent = spot.rate.nanos().saturating_mul(100) / regular.max(1);
        Some(format!("Spot costs {percent} % of the regular price there"))
    }

    /// The same size in the same region at the regular priority.
    pub(super) fn regular_offer(&self) -> Option<&Offer> {
        let here = &self.ranked.offer;
        let mut offers = self.case.context.catalog.offers_of(here.service, here.size).iter();
        offers.find(|offer| offer.region == here.region && offer.priority == Priority::Regular)
    }
}

/// A fraction with three decimals at most.
fn decimal(ratio: Ratio) -> String {
    let value = ratio.scale(1000);
    thousandths(u64::try_from(value).unwrap_or(u64::MAX))
}
