//! The text of placements and rejections, produced on demand.

mod arithmetic;
mod reasons;
mod rejection;
mod warnings;

use cudock_base::Usd;
use cudock_base::text::format::precise_duration;

use crate::context::{Case, PlanContext};
use crate::cost::billing::duration;
use crate::cost::serve::MILLION;
use crate::cost::{Parts, Usage};
use crate::plan::evaluate::usage_of;
use crate::plan::placement::{Cost, Part, Placement, Times};
use crate::plan::rank::Ranked;
use crate::workload::Priority;
use cudock_facts::services::AzureOffering;

struct PlacementView<'t, 'q, 'a> {
    case: &'t Case<'q, 'a>,
    ranked: &'t Ranked,
    usage: &'t Usage,
    parts: &'t Parts,
}

/// A ranked offer in full; one of another plan gets its figures only.
pub(crate) fn placement(context: &PlanContext, ranked: &Ranked) -> Placement {
    let offer = &ranked.offer;
    let catalog = context.catalog;
    let case = Case::new(context, offer.service, offer.size);
    let known = case.as_ref().and_then(|case| Some((case, usage_of(case, offer, ranked.mode)?)));
    let mut placement = Placement {
        service: offer.service,
        size: catalog.size_name(offer.size).to_owned(),
        region: catalog.region_name(offer.region).to_owned(),
        priority: offer.priority,
        gpu: catalog.gpu_of(offer.size).unwrap_or_default().to_owned(),
        gpus_per_instance: case.as_ref().and_then(|case| case.machine.gpus).unwrap_or(0),
        instances: 0,
        price_per_hour: offer.rate,
        price_date: Some(offer.date),
        price_source: catalog.source_name(offer.source).map(str::to_owned),
        management: offer.service.management(),
        times: Times::default(),
        cost: Cost { total: ranked.total, parts: Vec::new() },
        per_month: context.serves().then_some(ranked.total),
        per_million: None,
        quota: None,
        proof: ranked.proof,
        uncertainty: ranked.uncertainty,
        reasons: Vec::new(),
        warnings: Vec::new(),
    };
    let Some((case, (usage, parts))) = known else { return placement };
    let view = PlacementView { case, ranked, usage: &usage, parts: &parts };
    placement.instances = usage.machines;
    placement.times = usage.times();
    placement.cost = view.cost();
    placement.per_million = per_million(&usage, ranked.total);
    placement.quota = view.quota();
    placement.reasons = view.reasons();
    placement.warnings = view.warnings();
    placement
}

fn per_million(usage: &Usage, total: Usd) -> Option<Usd> {
    (usage.requests > 0).then(|| total.share(MILLION * MILLION, usage.requests))
}

fn time(millis: u128) -> String {
    precise_duration(duration(millis))
}

impl PlacementView<'_, '_, '_> {
    fn cost(&self) -> Cost {
        let parts = self.parts.iter();
        let parts = parts.map(|(kind, money)| Part { kind, money, arithmetic: self.arithmetic(kind) });
        Cost { total: self.parts.total(), parts: parts.collect() }
    }

    /// The quota it needs, named as the service counts it.
    fn quota(&self) -> Option<String> {
        let (machine, kind) = (self.case.machine, self.case.terms.kind);
        let instances = u64::from(self.usage.machines);
        if matches!(kind, AzureOffering::ContainerApps | AzureOffering::ContainerAppsDedicated) {
            let gpus = instances * u64::from(machine.gpus?.div_ceil(1000));
            let plan = if kind == AzureOffering::ContainerApps { "serverless" } else { "dedicated" };
            let noun = if gpus == 1 { "GPU" } else { "GPUs" };
            return Some(format!("Container Apps {plan} {}: {gpus} {noun}", machine.gpu_name()));
        }
        let reserve = match (kind, machine.endpoint_exempt) {
            (AzureOffering::MlEndpoint, Some(false)) => self.case.terms.limits.reserve_percent,
            _ => 0,
        };
        let counted = (instances * (100 + reserve)).div_ceil(100);
        let vcpu = counted * u64::from(machine.vcpu?);
        let family = machine.family.as_deref().unwrap_or("its family (name unknown)");
        let pool = match (kind.service().id(), self.ranked.offer.priority) {
            ("ml", Priority::Spot) => "Machine Learning low priority, all families".to_owned(),
            ("ml", Priority::Regular) => format!("Machine Learning, {family}"),
            ("batch", Priority::Regular) => format!("Batch, {family}"),
            (_, Priority::Spot) => "Spot, all families".to_owned(),
            (_, Priority::Regular) => family.to_owned(),
        };
        let reserved =
            if reserve > 0 { format!(" ({reserve} % reserved for upgrades)") } else { String::new() };
        Some(format!("{pool}: {vcpu} vCPU{reserved}"))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::plan::placement::{PartKind, Placement};
    use crate::plan::plan;
    use crate::testing::{T4, catalog, data, facts, job, serve, spot, workload};
    use crate::verdict::Verdicts;
    use crate::workload::{DataNeeds, Priority, Work, Workload};
    use cudock_facts::services::AzureOffering;

    fn regular(workload: &Workload, service: AzureOffering, size: &str, region: &str) -> Placement {
        let verdicts = Verdicts::default();
        let plan = plan(catalog(), facts(), workload, &verdicts);
        plan.placement(plan.find(service, size, Some(region), Some(Priority::Regular)).unwrap())
    }

    fn codes(placement: &Placement) -> Vec<&'static str> {
        placement.warnings.iter().map(|finding| finding.code).collect()
    }

    #[test]
    fn a_part_shows_its_arithmetic() {
        let each = Duration::from_secs(20 * 60);
        let sweep = workload(Work::Sweep { trials: 27, at_once: 3, each });
        let placement = regular(&sweep, AzureOffering::MlCluster, T4, "westeurope");
        // 181 min billed each, 85 s of them start: 10,775 s = 2.9931 h.
        let compute = placement.cost.parts.iter().find(|part| part.kind == PartKind::Compute).unwrap();
        assert_eq!(compute.arithmetic, "3 instances x 2.9931 h x $0.658");
    }

    #[test]
    fn the_quota_is_the_vcpus_of_all_instances() {
        let each = Duration::from_secs(60);
        let sweep = workload(Work::Sweep { trials: 27, at_once: 3, each });
        let quota = |service| regular(&sweep, service, T4, "westeurope").quota.unwrap();
        assert_eq!(quota(AzureOffering::Vm), "Standard NCASv3_T4 Family: 12 vCPU");
        assert_eq!(quota(AzureOffering::MlCluster), "Machine Learning, Standard NCASv3_T4 Family: 12 vCPU");
        assert_eq!(quota(AzureOffering::Batch), "Batch, Standard NCASv3_T4 Family: 12 vCPU");
    }

    #[test]
    fn an_endpoint_reserves_a_fifth_of_the_quota_unless_exempt() {
        let serve = serve(50_000);
        // Ten instances of four vCPU need quota for twelve.
        let quota = regular(&serve, AzureOffering::MlEndpoint, T4, "westeurope").quota.unwrap();
        let expected = "Machine Learning, Standard NCASv3_T4 Family: 48 vCPU (20 % reserved for upgrades)";
        assert_eq!(quota, expected);
        let mut slower = serve.clone();
        slower.gpu.speeds.insert("A100-80".into(), 1_000_000_000);
        let quota = regular(&slower, AzureOffering::MlEndpoint, "Standard_NC24ads_A100_v4", "westeurope");
        assert_eq!(quota.quota.unwrap(), "Machine Learning, StandardNCADSA100v4Family: 240 vCPU");
    }

    #[test]
    fn a_million_requests_cost_their_share_of_a_month() {
        // One a second are 2.628 million a month.
        let serve = serve(1000);
        let placement = regular(&serve, AzureOffering::Vm, T4, "westeurope");
        assert_eq!(placement.per_month, Some(placement.cost.total));
        let expected = (placement.cost.total.nanos() * 1_000_000).div_ceil(2_628_000);
        assert_eq!(placement.per_million.unwrap().nanos(), expected);
    }

    #[test]
    fn reasons_name_what_is_available_and_what_is_needed() {
        let mut workload = job(60);
        workload.gpu.memory = 70_000_000_000;
        workload.gpu.infiniband = true;
        workload.gpu.measured_on = Some("H100-SXM".into());
        let placement = regular(&workload, AzureOffering::Vm, "Standard_ND96isr_H100_v5", "eastus");
        assert_eq!(
            placement.reasons,
            [
                "80 GB on each of 8 H100-SXM, 70 GB needed",
                "NVLink 4.0, InfiniBand 3200 Gb/s, InfiniBand needed",
                "uses 1 of 8 GPUs, all are billed",
            ]
        );
    }

    #[test]
    fn a_grid_driver_and_an_empty_quota_are_reported() {
        let placement = regular(&job(600), AzureOffering::Vm, "Standard_NV36ads_A10_v5", "westeurope");
        let codes = codes(&placement);
        assert!(codes.contains(&"CD0802") && codes.contains(&"CD0820"), "{codes:?}");
    }

    #[test]
    fn spot_that_saves_nothing_is_reported() {
        let mut workload = job(60);
        workload.spot = Some(spot(10));
        let verdicts = Verdicts::default();
        let plan = plan(catalog(), facts(), &workload, &verdicts);
        let size = "Standard_ND96isr_H200_v5";
        let spot = plan.find(AzureOffering::Vm, size, None, Some(Priority::Spot)).unwrap();
        assert!(codes(&plan.placement(spot)).contains(&"CD0821"));
    }

    #[test]
    fn spot_that_evictions_make_more_expensive_is_reported() {
        // H100 in eastus at a tenth of an eviction an hour, nothing kept: ten hours cost e - 1 = 1.72 times as much work.
        let mut workload = job(600);
        workload.gpu.measured_on = None;
        workload.spot = Some(spot(100));
        let verdicts = Verdicts::default();
        let plan = plan(catalog(), facts(), &workload, &verdicts);
        let spots = plan.ranked().iter().filter(|entry| entry.offer.priority == Priority::Spot);
        let mut reported = 0;
        for spot in spots.filter(|entry| entry.offer.service == AzureOffering::Vm) {
            let (size, region) = (spot.offer.size, spot.offer.region);
            let (size, region) = (catalog().size_name(size), catalog().region_name(region));
            let regular = plan.find(AzureOffering::Vm, size, Some(region), Some(Priority::Regular));
            let Some(regular) = regular.filter(|entry| entry.offer.rate > spot.offer.rate) else { continue };
            let more_expensive = regular.total <= spot.total;
            assert_eq!(codes(&plan.placement(spot)).contains(&"CD0905"), more_expensive, "{size} {region}");
            reported += usize::from(more_expensive);
        }
        assert!(reported > 0, "some discount is too small for this");
    }

    #[test]
    fn a_gpu_that_waits_for_data_is_reported_with_both_figures() {
        let mut workload = job(60);
        let rate_per_gpu = Some(124_000_000);
        workload.data = Some(DataNeeds { rate_per_gpu, ..data(1_000_000_000, "files-standard-hot") });
        let placement = regular(&workload, AzureOffering::Vm, T4, "westeurope");
        let finding = placement.warnings.iter().find(|finding| finding.code == "CD0903").unwrap();
        assert!(finding.message.contains("62 MB/s"), "{}", finding.message);
        assert!(finding.evidence[0].detail.contains("124 MB/s"), "{:?}", finding.evidence);
        assert_eq!(placement.times.work, Duration::from_secs(7200));
    }

    #[test]
    fn an_old_price_is_reported() {
        let mut workload = job(60);
        workload.begins = "2027-11-15".parse().unwrap();
        let placement = regular(&workload, AzureOffering::Vm, T4, "westeurope");
        assert!(codes(&placement).contains(&"CD0904"));
    }

    #[test]
    fn a_start_that_costs_more_than_the_work_is_reported() {
        let placement = regular(&job(1), AzureOffering::MlCluster, T4, "westeurope");
        assert!(codes(&placement).contains(&"CD0906"), "{placement:?}");
        let placement = regular(&job(600), AzureOffering::MlCluster, T4, "westeurope");
        assert!(!codes(&placement).contains(&"CD0906"));
    }

    #[test]
    fn assumed_prices_and_those_of_other_regions_are_reported() {
        let placement = regular(&job(60), AzureOffering::Vm, T4, "eastus");
        let finding = placement.warnings.iter().find(|finding| finding.code == "CD0907").unwrap();
        let details: Vec<&str> = finding.evidence.iter().map(|one| one.detail.as_str()).collect();
        assert!(details.contains(&"the disk has the price of westeurope"), "{details:?}");
        assert!(details.iter().any(|detail| detail.contains("pull rate")), "{details:?}");
    }
}
