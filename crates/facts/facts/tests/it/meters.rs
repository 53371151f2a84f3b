//! What services ask for, how they count and start: look-ups, and truths that a mistaken edit would break.

use std::collections::BTreeSet;
use std::time::Duration;

use cudock_facts::Facts;
use cudock_facts::tables::{BilledFrom, BoundKey, MeterKind, Meters, Rounding, StartFigure};
use proptest::prelude::*;

/// The ways of running a container that can be planned with a GPU.
const PLANNED: [&str; 8] = [
    "vm",
    "aks",
    "batch",
    "ml-cluster",
    "ml-serverless",
    "ml-endpoint",
    "container-apps",
    "container-apps-dedicated",
];

fn usd(meters: &Meters, service: &str, meter: MeterKind, gpu: Option<&str>, region: &str) -> String {
    let row = meters.price(service, meter, gpu, region);
    row.unwrap_or_else(|| panic!("{service} {meter:?} {gpu:?} {region}")).usd.to_string()
}

proptest! {
    #[test]
    fn rounding_moves_a_time_by_less_than_a_unit(millis in 0_u64..10_000_000_000, unit_s in 1_u32..4000) {
        let time = Duration::from_millis(millis);
        let unit = Duration::from_secs(u64::from(unit_s));
        for rounding in [Rounding::Up, Rounding::Down, Rounding::Nearest] {
            let vm = Facts::embedded().meters().billing_of("vm").unwrap().clone();
            let billed = cudock_facts::tables::Billing { unit_s, rounding, minimum_s: 0, ..vm }.billed(time);
            prop_assert_eq!(billed.as_secs() % u64::from(unit_s), 0);
            prop_assert!(billed.abs_diff(time) < unit);
            prop_assert!(rounding != Rounding::Up || billed >= time);
            prop_assert!(rounding != Rounding::Down || billed <= time);
        }
    }
}

#[test]
fn full_minutes_of_a_machine_are_billed_and_every_second_of_a_replica() {
    let facts = Facts::embedded();
    let billed = |service: &str, millis| {
        facts.meters().billing_of(service).unwrap().billed(Duration::from_millis(millis)).as_secs()
    };
    assert_eq!(billed("vm", 405_000), 360, "6 min 45 s is 6 minutes on Azure's own page");
    assert_eq!(billed("ml-cluster", 59_999), 0);
    assert_eq!(billed("container-apps", 90_001), 91);
    assert_eq!(billed("container-apps", 90_000), 90);
}

#[test]
fn a_minimum_is_billed_whatever_the_rounding() {
    let facts = Facts::embedded();
    let vm = facts.meters().billing_of("vm").unwrap().clone();
    let with_minimum = cudock_facts::tables::Billing { minimum_s: 300, ..vm };
    assert_eq!(with_minimum.billed(Duration::from_secs(90)), Duration::from_secs(300));
    assert_eq!(with_minimum.billed(Duration::from_secs(400)), Duration::from_secs(360));
}

#[test]
fn container_apps_cost_what_was_read() {
    let facts = Facts::embedded();
    let app = |meter, gpu, region| usd(facts.meters(), "container-apps", meter, gpu, region);
    assert_eq!(app(MeterKind::GpuSecond, Some("T4"), "eastus"), "0.000073");
    assert_eq!(app(MeterKind::GpuSecond, Some("A100-80"), "eastus"), "0.000529");
    assert_eq!(app(MeterKind::GpuSecond, Some("T4"), "southcentralus"), "0.000088");
    assert_eq!(app(MeterKind::VcpuSecond, None, "eastus"), "0.000024");
    assert_eq!(app(MeterKind::VcpuSecond, None, "westus2"), "0.000034");
    assert_eq!(app(MeterKind::GibSecond, None, "eastus"), "0.000003");
    assert_eq!(app(MeterKind::RequestsMillion, None, "eastus"), "0.40");
    let dedicated = |meter| usd(facts.meters(), "container-apps-dedicated", meter, None, "westus3");
    assert_eq!(dedicated(MeterKind::ManagementHour), "0.10");
    assert_eq!(dedicated(MeterKind::ProfileVcpuHour), "0.057077");
}

#[test]
fn prices_worked_out_are_marked_and_those_read_are_not() {
    let facts = Facts::embedded();
    let assumed = |region| {
        facts.meters().price("container-apps", MeterKind::GpuSecond, Some("T4"), region).unwrap().assumed
    };
    assert!(!assumed("eastus") && !assumed("southcentralus") && !assumed("canadacentral"));
    assert!(assumed("westeurope") && assumed("swedencentral"));
}

#[test]
fn the_rule_for_other_regions_gives_the_prices_that_were_read() {
    let facts = Facts::embedded();
    let hour = |region: &str| {
        let row =
            facts.prices().of_size("Standard_NC24ads_A100_v4").find(|row| row.region == region).unwrap();
        row.price.unwrap().nanos()
    };
    for (gpu, region) in [("T4", "canadacentral"), ("T4", "southcentralus"), ("A100-80", "canadacentral")] {
        let second = |region| {
            let meter = facts.meters().price("container-apps", MeterKind::GpuSecond, Some(gpu), region);
            meter.unwrap().usd.nanos()
        };
        let expected = second("eastus") * hour(region) / hour("eastus");
        assert!(expected.abs_diff(second(region)) < 1000, "{gpu} in {region}: {expected}");
    }
}

#[test]
fn every_gpu_profile_has_a_price_for_each_of_its_parts_wherever_it_is_offered() {
    let facts = Facts::embedded();
    for profile in &facts.services().profile {
        let (service, kinds) = match profile.plan.as_str() {
            "consumption" => {
                ("container-apps", [MeterKind::VcpuSecond, MeterKind::GibSecond, MeterKind::GpuSecond])
            }
            _ => (
                "container-apps-dedicated",
                [MeterKind::ProfileVcpuHour, MeterKind::ProfileGibHour, MeterKind::ProfileGpuHour],
            ),
        };
        assert!(!profile.regions.is_empty(), "{}", profile.name);
        for region in &profile.regions {
            for kind in kinds {
                let of_gpu = matches!(kind, MeterKind::GpuSecond | MeterKind::ProfileGpuHour);
                let gpu = of_gpu.then_some(profile.gpu.as_str());
                let price = facts.meters().price(service, kind, gpu, region);
                assert!(price.is_some_and(|row| row.usd.nanos() > 0), "{} {kind:?} {region}", profile.name);
            }
        }
    }
}

#[test]
fn every_planned_service_counts_time_and_starts() {
    let facts = Facts::embedded();
    for service in PLANNED {
        assert!(facts.meters().billing_of(service).is_some(), "{service}");
        let start = facts.meters().start_of(service).unwrap_or_else(|| panic!("{service}"));
        assert!(start.provision_s > 0, "{service}");
        assert_eq!(start.assumes(StartFigure::Pull), start.assumed.contains(&StartFigure::Pull));
    }
    let apps = facts.meters().start_of("container-apps").unwrap();
    assert_eq!((apps.billed_from, apps.cool_down_s), (BilledFrom::Pull, Some(300)));
    assert!(!apps.assumes(StartFigure::CoolDown), "the cool-down is documented");
    assert_eq!(facts.meters().start_of("vm").unwrap().provision_s, 160);
}

#[test]
fn every_region_with_a_price_lies_in_one_area() {
    let facts = Facts::embedded();
    for region in facts.prices().regions() {
        assert!(facts.meters().area_of(region).is_some(), "{region}");
    }
    let all: Vec<&String> = facts.meters().area.iter().flat_map(|area| &area.regions).collect();
    assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len());
}

#[test]
fn no_region_is_priced_twice_for_the_same_thing() {
    let facts = Facts::embedded();
    let mut seen = BTreeSet::new();
    for row in &facts.meters().meter {
        for region in &row.regions {
            let thing = (&row.service, row.meter, &row.gpu, region, row.above);
            assert!(seen.insert(thing), "{thing:?}");
        }
    }
}

#[test]
fn data_costs_by_where_it_comes_from_and_goes_to() {
    let facts = Facts::embedded();
    let transfer = |from, to| facts.meters().transfer(from, to).map(|row| row.usd.to_string());
    assert_eq!(transfer("westeurope", "westeurope"), None);
    assert_eq!(transfer("westeurope", "northeurope").as_deref(), Some("0.02"));
    assert_eq!(transfer("japaneast", "koreacentral").as_deref(), Some("0.08"));
    assert_eq!(transfer("westeurope", "eastus").as_deref(), Some("0.05"));
    assert_eq!(transfer("westeurope", "atlantis"), None);
    assert!(facts.meters().transfer("westeurope", "eastus").unwrap().assumed, "no dated price was found");
}

#[test]
fn what_leaves_azure_gets_cheaper_with_volume_and_the_first_100_gb_are_free() {
    let facts = Facts::embedded();
    for area in &facts.meters().area {
        let region = &area.regions[0];
        let tiers = facts.meters().tiers("network", MeterKind::EgressGb, None, region);
        assert_eq!(tiers.len(), 4, "{region}");
        assert_eq!((tiers[0].above, tiers[0].free_per_month), (0, Some(100)), "{region}");
        assert!(tiers.is_sorted_by(|a, b| a.above < b.above && a.usd >= b.usd), "{region}");
    }
    assert_eq!(usd(facts.meters(), "network", MeterKind::EgressGb, None, "eastus"), "0.087");
    assert_eq!(usd(facts.meters(), "network", MeterKind::EgressGb, None, "brazilsouth"), "0.181");
}

#[test]
fn storage_delivers_what_its_kind_and_size_give() {
    let facts = Facts::embedded();
    let rate = |storage: &str, gib, disks| {
        let row = facts.meters().throughput_of(storage).unwrap_or_else(|| panic!("{storage}"));
        row.bytes_per_second(gib, disks)
    };
    assert_eq!(rate("blob-hot", 1000, 0), None, "the network of the size bounds it");
    assert_eq!(rate("lustre-durable-premium-250", 8192, 0), Some(2_000_000_000));
    assert_eq!(rate("lustre-durable-premium-250", 1, 0), Some(2_000_000_000), "8 TiB is the least");
    assert_eq!(rate("lustre-durable-premium-250", 16384, 0), Some(4_000_000_000));
    assert_eq!(rate("local-nvme", 0, 8), Some(16_000_000_000));
    assert_eq!(rate("files-premium", 1024, 0), Some(126_000_000));
    assert_eq!(rate("files-premium", u64::MAX, 0), Some(6_505_000_000), "an account has its own limit");
    assert!(
        facts.meters().throughput_of("blob-archive").is_none(),
        "archived blobs are not read where they lie"
    );
}

#[test]
fn all_storage_but_the_archive_has_a_rate() {
    let facts = Facts::embedded();
    for storage in facts.storage().storage.iter().filter(|row| row.id != "blob-archive") {
        assert!(facts.meters().throughput_of(&storage.id).is_some(), "{}", storage.id);
    }
}

#[test]
fn the_smallest_disk_that_holds_it_is_found() {
    let facts = Facts::embedded();
    let tier = |gib| facts.meters().disk_for("managed-disk-premium", gib).map(|row| row.tier.as_str());
    assert_eq!([tier(1), tier(128), tier(129), tier(32_767)], ["P4", "P10", "P15", "P80"].map(Some));
    assert_eq!(tier(32_768), None);
    for row in &facts.meters().disk_tier {
        let meter = format!("{}-month", row.tier);
        let priced =
            facts.storage().price.iter().find(|price| price.storage == row.storage && price.meter == meter);
        assert!(priced.unwrap_or_else(|| panic!("{meter}")).exact().is_some_and(|usd| usd.nanos() > 0));
    }
}

#[test]
fn endpoints_take_the_sizes_that_the_sentence_names() {
    let facts = Facts::embedded();
    let sentence = |id: &str| {
        let row = facts.services().behavior.iter().find(|row| row.id == id).unwrap();
        let sizes = row.text.split([' ', ',', '.']).filter(|word| word.starts_with("Standard_"));
        sizes.map(str::to_owned).collect::<BTreeSet<_>>()
    };
    let rows = &facts.meters().endpoint_size;
    let named = |exempt: Option<bool>| {
        let rows = rows.iter().filter(|row| exempt.is_none_or(|exempt| row.reserve_exempt == exempt));
        rows.map(|row| row.size.clone()).collect::<BTreeSet<_>>()
    };
    assert_eq!(named(None), sentence("endpoint-gpu-sizes"));
    assert_eq!(named(Some(true)), sentence("endpoint-reserve-exempt"));
    assert!(facts.meters().endpoint_size("standard_nc4as_t4_v3").is_some(), "case does not count");
}

#[test]
fn limits_are_numbers_in_their_unit() {
    let facts = Facts::embedded();
    let bound = |service, key| facts.meters().bound(service, key).map(|row| row.value);
    assert_eq!(bound("ml-cluster", BoundKey::JobLifetime), Some(21 * 86_400));
    assert_eq!(bound("ml-serverless", BoundKey::JobLifetimeSpot), Some(7 * 86_400));
    assert_eq!(bound("ml-endpoint", BoundKey::Instances), Some(50));
    assert_eq!(bound("ml-endpoint", BoundKey::RequestsPerSecond), Some(500));
    assert_eq!(bound("aci", BoundKey::ImageSize), Some(15_000_000_000));
    assert_eq!(bound("vm", BoundKey::JobLifetime), None);
}

#[test]
fn every_gpu_of_a_documented_nvidia_size_has_its_throughput() {
    let facts = Facts::embedded();
    let sizes = facts.sizes().size.iter().filter(|size| size.documented);
    let ids: BTreeSet<&str> = sizes.filter_map(|size| size.gpu.as_deref()).collect();
    for id in ids {
        let gpu = facts.gpus().gpu.iter().find(|gpu| gpu.id == id).unwrap();
        let known = gpu.fp16_tflops.is_some() && gpu.memory_gb_per_s.is_some();
        assert!(known || gpu.capability.is_none(), "{id}");
    }
    let tflops = |id: &str| facts.gpus().find(id).one().unwrap().fp16_tflops.unwrap();
    let order = ["K80", "P40", "T4", "V100", "A100-80", "RTX-PRO-6000-SE", "H100-NVL", "H100-SXM", "GB200"];
    assert!(order.map(tflops).is_sorted(), "each of these is faster than the one before");
}
