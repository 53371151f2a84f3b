//! Cost as a function of load or duration, and where the cheaper of two offers changes.

use cudock_facts::Facts;

use crate::catalog::Catalog;
use crate::context::{Case, PlanContext};
use crate::evaluate::cheapest;
use crate::offer::Offer;
use crate::verdict::Verdicts;
use crate::workload::{Work, Workload};
use cudock_base::Usd;

/// Thousandths of the load or duration of a workload.
pub type PerMille = u64;

/// The cost of an offer at each scale, ignoring deadline and budget; none where it cannot do the work.
pub fn curve(
    catalog: &Catalog,
    facts: &Facts,
    workload: &Workload,
    verdicts: &Verdicts,
    offer: &Offer,
    at: &[PerMille],
) -> Vec<Option<Usd>> {
    at.iter().map(|scale| cost_at(catalog, facts, workload, verdicts, offer, *scale)).collect()
}

/// The smallest scale between `low` and `high` at which the other offer is the cheaper one; none if the same offer is
/// cheaper at both ends, or one of them cannot do the work. Costs grow in steps and may cross more than once: this is one
/// crossing.
#[allow(clippy::too_many_arguments, reason = "the inputs of a plan, two offers and two ends")]
pub fn crossover(
    catalog: &Catalog,
    facts: &Facts,
    workload: &Workload,
    verdicts: &Verdicts,
    a: &Offer,
    b: &Offer,
    low: PerMille,
    high: PerMille,
) -> Option<PerMille> {
    let cheaper = |scale: PerMille| {
        let cost = |offer: &Offer| cost_at(catalog, facts, workload, verdicts, offer, scale);
        Some(cost(a)? <= cost(b)?)
    };
    let first = cheaper(low)?;
    if low >= high || cheaper(high)? == first {
        return None;
    }
    let (mut same, mut other) = (low, high);
    while other - same > 1 {
        let middle = same + (other - same) / 2;
        if cheaper(middle)? == first { same = middle } else { other = middle }
    }
    Some(other)
}

fn cost_at(
    catalog: &Catalog,
    facts: &Facts,
    workload: &Workload,
    verdicts: &Verdicts,
    offer: &Offer,
    scale: PerMille,
) -> Option<Usd> {
    let scaled = scaled(workload, scale);
    let mut context = PlanContext::new(catalog, facts, &scaled, verdicts);
    context.load_scale = scale;
    let case = Case::new(&context, offer.service, offer.size)?;
    cheapest(&case, offer)
}

/// The workload with more or less to do, and without budget and deadline.
fn scaled(workload: &Workload, scale: PerMille) -> Workload {
    let count = |count: u64| {
        let scaled = (u128::from(count) * u128::from(scale)).div_ceil(1000);
        u64::try_from(scaled).unwrap_or(u64::MAX)
    };
    let time = |time: std::time::Duration| {
        crate::cost::billing::duration(time.as_millis().saturating_mul(u128::from(scale)) / 1000)
    };
    let mut workload = workload.clone();
    workload.constraints.budget = None;
    // For items the deadline decides the number of instances, so it stays.
    if !matches!(workload.work, Work::Items { .. }) {
        workload.constraints.deadline = None;
    }
    match &mut workload.work {
        Work::Job { duration } => *duration = time(*duration),
        Work::Items { items, .. } => *items = count(*items),
        Work::Sweep { each, .. } => *each = time(*each),
        // The context scales the load.
        Work::Serve { .. } => {}
    }
    workload
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::ServiceKind;
    use crate::testing::{catalog, facts, job, workload};
    use crate::workload::{DayLoad, PerSecond};

    fn offer(service: ServiceKind, size: &str, region: &str) -> Offer {
        let (size, region) = (catalog().size(size).unwrap(), catalog().region(region).unwrap());
        let mut offers = catalog().offers_of(service, size).iter();
        *offers.find(|offer| offer.region == region).unwrap()
    }

    #[test]
    fn twice_the_work_costs_more_but_starts_once() {
        let vm = offer(ServiceKind::Vm, "Standard_NC4as_T4_v3", "eastus");
        let verdicts = Verdicts::default();
        let costs = curve(catalog(), facts(), &job(60), &verdicts, &vm, &[0, 500, 1000, 2000]);
        let costs: Vec<Usd> = costs.into_iter().map(Option::unwrap).collect();
        assert!(costs.is_sorted());
        assert!(costs[3].nanos() < 2 * costs[2].nanos());
    }

    #[test]
    fn scale_to_zero_is_cheaper_for_few_requests_and_a_machine_for_many() {
        let load = DayLoad { hours: [PerSecond { millis: 100 }; 24] };
        let mut serve =
            workload(Work::Serve { load, replica_rate: PerSecond { millis: 10_000 }, target_percent: 50 });
        serve.constraints.cold_starts_allowed = true;
        let vm = offer(ServiceKind::Vm, "Standard_NC4as_T4_v3", "eastus");
        let app = offer(ServiceKind::ContainerApps, "Consumption-GPU-NC8as-T4", "eastus");
        let verdicts = Verdicts::default();
        let cross = crossover(catalog(), facts(), &serve, &verdicts, &app, &vm, 1, 1000).unwrap();
        let cost = |offer, at: u64| curve(catalog(), facts(), &serve, &verdicts, offer, &[at])[0].unwrap();
        assert!(cost(&app, cross - 1) <= cost(&vm, cross - 1));
        assert!(cost(&app, cross) > cost(&vm, cross));
        assert_eq!(crossover(catalog(), facts(), &serve, &verdicts, &app, &vm, cross, 1000), None);
        assert_eq!(crossover(catalog(), facts(), &serve, &verdicts, &app, &vm, 1000, 1), None);
    }
}
