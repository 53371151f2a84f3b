//! Why a placement is there.

use super::Told;
use super::how::thousandths;
use crate::codes;
use crate::cost::data;
use crate::cost::pace::Known;
use crate::feasible::words_of;
use crate::offer::Offer;
use crate::question::Way;
use crate::ratio::Ratio;
use crate::words::{gb, gpus, span};
use crate::workload::{Priority, Work};

impl Told<'_, '_, '_> {
    pub(super) fn reasons(&self) -> Vec<String> {
        let needs = &self.case.workload().gpu;
        let mut reasons = vec![words_of(codes::GPU_MEMORY, self.case)];
        if needs.nvlink || needs.infiniband {
            reasons.push(words_of(codes::INTERCONNECT, self.case));
        }
        if needs.least_capability.is_some() || needs.greatest_capability.is_some() {
            reasons.push(words_of(codes::CAPABILITY, self.case));
        }
        if self.case.verdict().is_some() {
            reasons.push(words_of(codes::IMAGE_DOES_NOT_RUN, self.case));
        }
        reasons.extend(self.unused());
        reasons.extend(self.speed());
        reasons.extend(self.fed());
        reasons.extend(self.instances());
        reasons.extend(self.discount());
        let end = self.case.machine.ends_on(self.ranked.offer.region);
        reasons.extend(end.map(|day| format!("ends on {day} in this region")));
        reasons
    }

    fn unused(&self) -> Option<String> {
        let has = self.case.machine.gpus? / 1000;
        let used = self.case.workload().gpu.per_instance;
        (has > used).then(|| format!("{used} of its {has} GPUs are used, all are paid for"))
    }

    fn speed(&self) -> Option<String> {
        let machine = self.case.machine;
        let measured = self.case.workload().gpu.measured_on.as_deref();
        let known = match (self.usage.pace.known, measured) {
            (Known::Measured, _) if !machine.is_share() => None,
            (Known::Given, _) => Some("as given".to_owned()),
            (Known::Measured, _) => Some("measured".to_owned()),
            (Known::Published, Some(other)) => {
                Some(format!("by published half-precision throughput against {other}, an estimate"))
            }
            (_, Some(other)) => Some(format!("taken as {other}'s, for want of figures")),
            (_, None) => Some("the times are taken to hold on any GPU".to_owned()),
        }?;
        let share = if machine.is_share() { format!(" of {}", gpus(machine)) } else { String::new() };
        Some(format!("{} times the speed{share}: {known}", decimal(self.usage.pace.gpu)))
    }

    fn fed(&self) -> Option<String> {
        let store = self.case.question.store.as_ref()?;
        if self.usage.way == Way::Stage {
            let copy = span(self.usage.startup.stage);
            return Some(format!("the data is copied to the machine first, in {copy}"));
        }
        let demand = data::demand(self.case)?;
        let supply = data::supply(self.case)?;
        Some(format!("{} gives {}/s, the work uses {}/s at full speed", store.name, gb(supply), gb(demand)))
    }

    fn instances(&self) -> Option<String> {
        let count = self.usage.machines;
        match &self.case.workload().work {
            Work::Items { .. } if self.case.workload().wishes.deadline.is_some() => {
                Some(format!("{} the fewest that are done in time", instances(count, "is", "are")))
            }
            Work::Items { .. } | Work::Sweep { .. } => {
                Some(format!("{} the work", instances(count, "does", "share")))
            }
            Work::Serve { target_percent, .. } => {
                let full =
                    format!("{} at the peak, at most {target_percent} % full", instances(count, "", ""));
                let asleep = self.usage.total > 0 && self.ranked.offer.priority == Priority::Regular;
                Some(if asleep { format!("{full}; none while nobody asks") } else { full })
            }
            Work::Job { .. } => None,
        }
    }

    /// What Spot saves against the same size in the same region.
    fn discount(&self) -> Option<String> {
        let spot = &self.ranked.offer;
        if spot.priority != Priority::Spot {
            return None;
        }
        let regular = self.regular_offer()?.rate.hour().nanos();
        let percent = spot.rate.hour().nanos().saturating_mul(100) / regular.max(1);
        Some(format!("Spot costs {percent} % of the regular price there"))
    }

    /// The same size in the same region at the regular priority.
    pub(super) fn regular_offer(&self) -> Option<&Offer> {
        let here = &self.ranked.offer;
        let mut offers = self.case.question.catalog.offers_of(here.service, here.size).iter();
        offers.find(|offer| offer.region == here.region && offer.priority == Priority::Regular)
    }
}

/// "1 instance is", "3 instances are".
fn instances(count: u32, one: &str, several: &str) -> String {
    let (noun, verb) = if count == 1 { ("instance", one) } else { ("instances", several) };
    format!("{count} {noun} {verb}").trim_end().to_owned()
}

/// A fraction with three decimals at most.
fn decimal(ratio: Ratio) -> String {
    let value = ratio.scale(1000);
    thousandths(u64::try_from(value).unwrap_or(u64::MAX))
}
