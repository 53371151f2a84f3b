//! The same question to `SkyPilot`'s catalog and to ours: the cheapest virtual machine with such a GPU.
//!
//! `SkyPilot`'s file is not part of this project. Name it in `CUDOCK_SKYPILOT_PRICES` and the comparison
//! runs; with `--nocapture` it prints the table that stands in `docs/plan.md`.

use std::collections::BTreeSet;

use cudock_base::Usd;
use cudock_facts::Facts;
use cudock_plan::{Catalog, Priority, Verdicts, Workload, plan};

use crate::support::workloads::{GB, hours, job};

/// A line of its `vms.csv`, as far as a question looks at it.
struct Row {
    size: String,
    accelerator: String,
    count: u32,
    price: Option<Usd>,
    spot: Option<Usd>,
    region: String,
}

/// What is searched for: by the names that `SkyPilot` has for GPUs, and by ours.
struct GpuQuery {
    theirs: &'static str,
    ours: &'static str,
    count: u32,
    gpu_memory: u64,
}

const QUERIES: [GpuQuery; 6] = [
    GpuQuery { theirs: "T4", ours: "T4", count: 1, gpu_memory: 16 * GB },
    GpuQuery { theirs: "A100-80GB", ours: "A100-80", count: 1, gpu_memory: 80 * GB },
    GpuQuery { theirs: "H100", ours: "H100-SXM", count: 8, gpu_memory: 80 * GB },
    GpuQuery { theirs: "H100", ours: "H100-NVL", count: 1, gpu_memory: 94 * GB },
    GpuQuery { theirs: "V100", ours: "V100", count: 1, gpu_memory: 16 * GB },
    GpuQuery { theirs: "A10", ours: "A10", count: 1, gpu_memory: 24 * GB },
];

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct CheapestSize {
    price: Usd,
    size: String,
    region: String,
}

impl std::fmt::Display for CheapestSize {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let digits = format!("{:07}", self.price.nanos() / 1000);
        let (whole, fraction) = digits.split_at(digits.len() - 6);
        let fraction = fraction.trim_end_matches('0');
        write!(f, "{} in {} at {whole}.{fraction:0<2}", self.size, self.region)
    }
}

fn theirs() -> Option<Vec<Row>> {
    let path = std::env::var_os("CUDOCK_SKYPILOT_PRICES")?;
    let text = std::fs::read_to_string(&path).expect("CUDOCK_SKYPILOT_PRICES names a file that can be read");
    let mut lines = text.lines();
    let header: Vec<&str> = lines.next().expect("a header").split(',').collect();
    let column = |name: &str| header.iter().position(|found| *found == name).expect("a column of vms.csv");
    let [size, accelerator, count, price, spot, region] =
        ["InstanceType", "AcceleratorName", "AcceleratorCount", "Price", "SpotPrice", "Region"].map(column);
    // Only the last column, the generations, holds commas.
    let row = |line: &str| {
        let cells: Vec<&str> = line.split(',').collect();
        Row {
            size: cells[size].to_owned(),
            accelerator: cells[accelerator].to_owned(),
            count: cells[count].parse().unwrap_or(0),
            price: dollars(cells[price]),
            spot: dollars(cells[spot]),
            region: cells[region].to_owned(),
        }
    };
    Some(lines.map(row).collect())
}

/// An amount as the file writes it, with up to six decimals.
fn dollars(text: &str) -> Option<Usd> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let micros: u128 = format!("{whole}{fraction:0<6}").parse().ok()?;
    Some(Usd::from_nanos(micros * 1000))
}

/// `SkyPilot`'s way: rows with the GPU's name and exactly the requested number, the cheapest of them.
fn cheapest_in_skypilot(rows: &[Row], query: &GpuQuery, priority: Priority) -> Option<CheapestSize> {
    rows.iter()
        .filter(|row| row.accelerator == query.theirs && row.count == query.count)
        .filter_map(|row| {
            let price = if priority == Priority::Spot { row.spot } else { row.price }?;
            Some(CheapestSize { price, size: row.size.clone(), region: row.region.clone() })
        })
        .min()
}

fn one_hour(query: &GpuQuery, priority: Priority, regions: &BTreeSet<&str>) -> Workload {
    let mut workload = job(hours(1));
    workload.gpu.models = vec![query.ours.to_owned()];
    workload.gpu.per_instance = query.count;
    workload.gpu.memory = query.gpu_memory;
    workload.constraints.services = vec!["vm".to_owned()];
    workload.constraints.regions = regions.iter().map(|region| (*region).to_owned()).collect();
    workload.constraints.priority = Some(priority);
    // Evictions are left out here as `SkyPilot` leaves them out: the question is the price of the hour.
    workload.spot = (priority == Priority::Spot).then_some(cudock_plan::Spot {
        evictions: cudock_base::Rate::ZERO,
        checkpoint_every: None,
        checkpoint_takes: std::time::Duration::ZERO,
    });
    workload
}

fn cheapest_here(query: &GpuQuery, priority: Priority, regions: &BTreeSet<&str>) -> Option<CheapestSize> {
    let facts = Facts::embedded();
    let catalog = Catalog::of(&facts);
    let workload = one_hour(query, priority, regions);
    let verdicts = Verdicts::default();
    let plan = plan(&catalog, &facts, &workload, &verdicts);
    let placement = plan.placement(plan.ranked().first()?);
    Some(CheapestSize { price: placement.price_per_hour, size: placement.size, region: placement.region })
}

#[test]
fn skypilots_catalog_and_ours_differ_where_the_documentation_says() {
    let Some(rows) = theirs() else {
        cudock_testkit::missing("skypilot-prices", "CUDOCK_SKYPILOT_PRICES names no file");
        return;
    };
    let regions: BTreeSet<&str> = rows.iter().map(|row| row.region.as_str()).collect();
    println!("SkyPilot: {} rows, {} regions", rows.len(), regions.len());
    println!("| GPUs | priority | SkyPilot's catalog | cudock |");
    println!("| --- | --- | --- | --- |");
    let mut answers = Vec::new();
    for query in &QUERIES {
        for priority in [Priority::Regular, Priority::Spot] {
            let theirs = cheapest_in_skypilot(&rows, query, priority);
            let ours = cheapest_here(query, priority, &regions);
            let shown = |answer: &Option<CheapestSize>| {
                answer.as_ref().map_or_else(|| "none".to_owned(), CheapestSize::to_string)
            };
            println!(
                "| {} x {} | {priority:?} | {} | {} |",
                query.count,
                query.theirs,
                shown(&theirs),
                shown(&ours)
            );
            answers.push((query.theirs, query.count, priority, theirs, ours));
        }
    }
    let answer = |gpu: &str, count: u32, priority: Priority| {
        let found =
            answers.iter().find(|(name, number, at, ..)| (*name, *number, *at) == (gpu, count, priority));
        let (.., theirs, ours) = found.expect("it is among the queries");
        (theirs.as_ref(), ours.as_ref())
    };

    // Where a size lives on and is counted right, the same machine is the answer of both.
    for (gpu, count) in [("T4", 1), ("A100-80GB", 1), ("H100", 1), ("A10", 1)] {
        let (theirs, ours) = answer(gpu, count, Priority::Regular);
        assert_eq!(theirs.map(|answer| &answer.size), ours.map(|answer| &answer.size), "{count} x {gpu}");
    }
    // ND96isr_H100_v5 is listed there with 12 GPUs: a search for the eight that it has finds nothing.
    assert_eq!(answer("H100", 8, Priority::Regular).0, None);
    assert_eq!(
        answer("H100", 8, Priority::Regular).1.map(|ours| ours.size.as_str()),
        Some("Standard_ND96isr_H100_v5")
    );
    // Its Spot price of an H100 is the price on demand.
    let (on_demand, spot) = (answer("H100", 1, Priority::Regular), answer("H100", 1, Priority::Spot));
    assert_eq!(on_demand.0.map(|theirs| theirs.price), spot.0.map(|theirs| theirs.price));
    assert!(spot.1.expect("Spot is offered").price < on_demand.1.expect("it is offered").price);
    // Its V100 can no longer be had.
    let (theirs, ours) = answer("V100", 1, Priority::Regular);
    let retired = &theirs.expect("it still offers one").size;
    let facts = Facts::embedded();
    let size = facts.sizes().find(retired).one().expect("a size we know");
    assert_eq!(size.lifecycle, cudock_facts::tables::Lifecycle::Retired);
    assert_ne!(ours.map(|ours| &ours.size), Some(retired));
}
