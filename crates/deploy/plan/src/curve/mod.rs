//! Cost as a function of load or duration, and where the cheaper of two offers changes.

pub(crate) mod line;
pub(crate) mod scan;
mod segments;

use cudock_base::Usd;
use cudock_facts::Facts;

use crate::catalog::Catalog;
use crate::catalog::offer::Offer;
use crate::context::{Case, PlanContext};
use crate::plan::evaluate::cheapest;
use crate::verdict::Verdicts;
use crate::workload::{Work, Workload};

/// Thousandths of the load or duration of a workload.
pub type PerMille = u64;

/// The inputs of a plan, to evaluate the cost of offers at other loads and durations.
#[derive(Debug, Clone, Copy)]
pub struct CostCurve<'a> {
    pub catalog: &'a Catalog,
    pub facts: &'a Facts,
    /// The workload at a scale of 1000.
    pub workload: &'a Workload,
    pub verdicts: &'a Verdicts,
}

impl CostCurve<'_> {
    /// The cost of an offer at a scale, ignoring deadline and budget; none if it cannot do the work.
    pub fn cost(&self, offer: &Offer, scale: PerMille) -> Option<Usd> {
        let scaled = scaled(self.workload, scale);
        let context = PlanContext::new(self.catalog, self.facts, &scaled, self.verdicts);
        let case = Case::new(&context, offer.service, offer.size)?;
        cheapest(&case, offer)
    }

    /// The smallest scale between `low` and `high` at which the other offer is the cheaper one; none if the same offer is
    /// cheaper at both ends, or one of them cannot do the work. Costs grow in steps and may cross more than once: this is
    /// one crossing.
    pub fn crossover(&self, a: &Offer, b: &Offer, low: PerMille, high: PerMille) -> Option<PerMille> {
        let is_cheaper = |scale: PerMille| Some(self.cost(a, scale)? <= self.cost(b, scale)?);
        let first = is_cheaper(low)?;
        if low >= high || is_cheaper(high)? == first {
            return None;
        }
        let (mut same, mut other) = (low, high);
        while other - same > 1 {
            let middle = same + (other - same) / 2;
            if is_cheaper(middle)? == first { same = middle } else { other = middle }
        }
        Some(other)
    }
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
        Work::Serve { load, .. } => load.hours = load.hours.map(|hour| hour.share(u128::from(scale), 1000)),
    }
    workload
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{catalog, facts, job, serve};
    use cudock_facts::services::AzureOffering;

    fn offer(service: AzureOffering, size: &str, region: &str) -> Offer {
        let (size, region) = (catalog().size(size).unwrap(), catalog().region(region).unwrap());
        let mut offers = catalog().offers_of(service, size).iter();
        *offers.find(|offer| offer.region == region).unwrap()
    }

    fn curve<'a>(workload: &'a Workload, verdicts: &'a Verdicts) -> CostCurve<'a> {
        CostCurve { catalog: catalog(), facts: facts(), workload, verdicts }
    }

    #[test]
    fn twice_the_work_costs_more_but_starts_once() {
        let vm = offer(AzureOffering::Vm, "Standard_NC4as_T4_v3", "eastus");
        let (workload, verdicts) = (job(60), Verdicts::default());
        let curve = curve(&workload, &verdicts);
        let costs = [0, 500, 1000, 2000].map(|scale| curve.cost(&vm, scale).unwrap());
        assert!(costs.is_sorted());
        assert!(costs[3].nanos() < 2 * costs[2].nanos());
    }

    #[test]
    fn scale_to_zero_is_cheaper_for_few_requests_and_a_machine_for_many() {
        let mut serve = serve(100);
        serve.constraints.cold_starts_allowed = true;
        let vm = offer(AzureOffering::Vm, "Standard_NC4as_T4_v3", "eastus");
        let app = offer(AzureOffering::ContainerApps, "Consumption-GPU-NC8as-T4", "eastus");
        let verdicts = Verdicts::default();
        let curve = curve(&serve, &verdicts);
        let cross = curve.crossover(&app, &vm, 1, 1000).unwrap();
        let cost = |offer, scale| curve.cost(offer, scale).unwrap();
        assert!(cost(&app, cross - 1) <= cost(&vm, cross - 1));
        assert!(cost(&app, cross) > cost(&vm, cross));
        assert_eq!(curve.crossover(&app, &vm, cross, 1000), None);
        assert_eq!(curve.crossover(&app, &vm, 1000, 1), None);
    }
}
