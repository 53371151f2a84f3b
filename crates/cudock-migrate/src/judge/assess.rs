//! Assesses a choice, independently of its text.

use cudock_facts::Facts;
use cudock_facts::finding::Severity;
use cudock_facts::lookup::NameMatch;
use cudock_facts::tables::{Outdated, Size};
use cudock_facts::version::Date;

use super::codes;
use super::old::{MachineGpu, OldMachine, memory_of};
use super::replacement::{self, Replacement};
use super::service;
use super::status::{self, Status};
use crate::choice::{Choice, ChoiceKind, Service};

/// A finding without its choice.
#[derive(Clone, Debug)]
pub(super) struct Assessment {
    pub(super) status: Status,
    pub(super) code: Option<&'static str>,
    pub(super) severity: Severity,
    pub(super) message: String,
    pub(super) old: Option<OldMachine>,
    pub(super) replacements: Vec<Replacement>,
    pub(super) notes: Vec<String>,
}

impl Assessment {
    pub(super) fn new(
        status: Status,
        code: Option<&'static str>,
        severity: Severity,
        message: String,
    ) -> Self {
        Self { status, code, severity, message, old: None, replacements: Vec::new(), notes: Vec::new() }
    }
}

pub(super) fn assess(facts: &Facts, day: Date, region: Option<&str>, choice: &Choice) -> Option<Assessment> {
    match &choice.kind {
        ChoiceKind::Size { name } => Some(size(facts, day, region, name, choice)),
        ChoiceKind::Accelerator { name, count } => accelerator(facts, day, region, name, *count),
        ChoiceKind::ContainerGpu { sku, count, by_option } => {
            Some(service::container_gpu(facts, day, region, sku.as_deref(), *count, *by_option))
        }
        ChoiceKind::Interface { interface, name } => Some(service::interface(facts, day, *interface, name)),
        ChoiceKind::LowPriorityNodes => Some(service::low_priority(facts, day)),
        ChoiceKind::SkipDriver => Some(service::skip_driver(facts, day)),
        ChoiceKind::ImageReference { reference } => Some(service::image(facts, reference)),
    }
}

fn size(facts: &Facts, day: Date, region: Option<&str>, name: &str, choice: &Choice) -> Assessment {
    let row = match facts.sizes().find(name) {
        NameMatch::One(row) => row,
        NameMatch::Several(_) | NameMatch::NotFound(_) => return no_such_size(facts, day, region, name),
    };
    let mut assessment = of_row(facts, day, region, row, name);
    if choice.service == Some(Service::Batch) && choice.low_priority {
        assessment.notes.extend(service::behavior(facts, "batch", "spot-needs-user-subscription"));
    }
    assessment
}

/// Assesses a size of the tables.
fn of_row(facts: &Facts, day: Date, region: Option<&str>, row: &Size, name: &str) -> Assessment {
    let status = status::of(row, day, region);
    let (code, severity, message) = describe(&status, name, region);
    let mut assessment = Assessment::new(status, code, severity, message);
    let old = OldMachine::of(facts, row, region);
    if code.is_some() {
        let instead = replacement_text(facts, row);
        assessment.replacements = replacement::for_size(facts, day, region, (Some(row), &old), instead);
    }
    assessment.old = Some(old);
    assessment
}

fn describe(status: &Status, name: &str, region: Option<&str>) -> (Option<&'static str>, Severity, String) {
    let here = region.map_or_else(String::new, |region| format!(" in {region}"));
    match status {
        Status::Retired { on, later_in } => {
            let when = on.map_or_else(String::new, |on| format!(" on {on}"));
            let later: Vec<String> =
                later_in.iter().map(|(region, end)| format!("{region} until {end}")).collect();
            // Other regions do not matter once a region is chosen.
            let later = if later.is_empty() || region.is_some() {
                String::new()
            } else {
                format!("; still in {}", later.join(", "))
            };
            (Some(codes::SIZE_RETIRED), Severity::Error, format!("{name} was retired{when}{later}"))
        }
        Status::Retiring { on } => {
            (Some(codes::SIZE_RETIRES), Severity::Warning, format!("{name} retires on {on}{here}"))
        }
        Status::Undocumented => (
            Some(codes::UNDOCUMENTED),
            Severity::Warning,
            format!("{name} is not documented: only its name or a price is known"),
        ),
        _ => (None, Severity::Note, format!("{name} is on sale")),
    }
}

/// The replacement of a size in the tables; for a variant of a size, the replacement of that size.
fn replacement_text<'f>(facts: &'f Facts, row: &'f Size) -> Option<&'f str> {
    row.replacement.as_deref().or_else(|| {
        let sizes = facts.sizes().size.iter();
        let mut same =
            sizes.filter(|size| size.gpu.is_some() && size.gpu == row.gpu && size.replacement.is_some());
        let begins = |size: &Size| row.name.to_ascii_lowercase().starts_with(&size.name.to_ascii_lowercase());
        let nearest = same.clone().filter(|size| begins(size)).max_by_key(|size| size.name.len());
        nearest.or_else(|| same.next())?.replacement.as_deref()
    })
}

/// The row about an outdated choice that contains a name.
pub(super) fn outdated<'f>(facts: &'f Facts, name: &str) -> Option<&'f Outdated> {
    let name = name.to_ascii_lowercase();
    facts.sizes().outdated.iter().find(|row| {
        let choice = row.choice.to_ascii_lowercase();
        choice.split([' ', ',', '(', ')']).any(|part| part == name)
    })
}

fn no_such_size(facts: &Facts, day: Date, region: Option<&str>, name: &str) -> Assessment {
    let whole = if name.to_ascii_lowercase().starts_with("standard_") {
        name.to_owned()
    } else {
        format!("Standard_{name}")
    };
    let row = outdated(facts, &whole);
    // For wrong names in tutorials, the tables have the right one.
    let meant = row.and_then(|row| {
        let mut names = row.status.split([' ', ',', '.']).filter(|name| !name.eq_ignore_ascii_case(&whole));
        names.find_map(|name| facts.sizes().find(name).one())
    });
    let near: Vec<String> = match (meant, facts.sizes().find(&whole)) {
        (Some(size), _) => vec![size.name.clone()],
        (None, NameMatch::NotFound(near)) => near.into_iter().map(str::to_owned).collect(),
        (None, _) => Vec::new(),
    };
    let question = match near.as_slice() {
        [] => String::new(),
        names => format!("; did you mean {}?", names.join(" or ")),
    };
    let message = format!("unknown Azure size {name}{question}");
    let likely = near.first().and_then(|name| facts.sizes().find(name).one());
    let status = Status::NoSuchSize { near };
    let mut assessment = Assessment::new(status, Some(codes::NO_SUCH_SIZE), Severity::Error, message);
    let Some(likely) = likely else { return assessment };
    let meant = of_row(facts, day, region, likely, &likely.name);
    if meant.code.is_some() {
        assessment.notes.push(meant.message);
        assessment.replacements = meant.replacements;
    }
    assessment.old = meant.old;
    assessment
}

/// Assesses a GPU by name and count. Schedulers match the count exactly: eight GPUs do not satisfy a request for four.
fn accelerator(facts: &Facts, day: Date, region: Option<&str>, name: &str, count: u32) -> Option<Assessment> {
    let gpus = gpus_named(facts, name);
    let ids: Vec<&str> = gpus.iter().map(String::as_str).collect();
    let wanted = f64::from(count.max(1));
    let exact = |size: &&Size| size.gpu_count.is_some_and(|has| (has - wanted).abs() < 0.001);
    let sizes: Vec<&Size> = facts.sizes().with_gpu(&ids).filter(|size| size.documented).collect();
    let by_count = |a: &&Size, b: &&Size| {
        (a.gpu_count, &a.name).partial_cmp(&(b.gpu_count, &b.name)).unwrap_or(std::cmp::Ordering::Equal)
    };
    let all = || sizes.iter().copied();
    let on_sale = || all().filter(|size| size.is_on_sale(day));
    let plural = format!("{count} x {name}");
    let same = on_sale().filter(exact).min_by(by_count);
    let Some(row) = same.or_else(|| all().filter(exact).max_by_key(|size| size.retired_on)) else {
        return no_such_count(facts, region, &plural, on_sale().collect());
    };
    let mut assessment = of_row(facts, day, region, row, &row.name);
    assessment.message = match &assessment.status {
        Status::OnSale => format!("{plural} is on sale, as {}", row.name),
        Status::Retired { on, .. } => {
            let when = on.map_or_else(String::new, |on| format!(" on {on}"));
            format!("no size on sale has {plural}; {} was retired{when}", row.name)
        }
        Status::Retiring { on } => format!("{plural} ends with {} on {on}", row.name),
        _ => format!("no documented size has {plural}"),
    };
    let larger = on_sale().filter(|size| size.gpu_count.is_some_and(|has| has > wanted)).min_by(by_count);
    if let (Status::Retired { .. }, Some(larger)) = (&assessment.status, larger) {
        let has = larger.gpu_count.unwrap_or_default();
        assessment
            .notes
            .push(format!("{} has {has} of them, which a request for {count} does not match.", larger.name));
    }
    Some(assessment)
}

/// Assesses a number of GPUs that no size ever had; `None` if no size has the GPU.
fn no_such_count(
    facts: &Facts,
    region: Option<&str>,
    plural: &str,
    mut others: Vec<&Size>,
) -> Option<Assessment> {
    others.sort_by(|a, b| a.gpu_count.partial_cmp(&b.gpu_count).unwrap_or(std::cmp::Ordering::Equal));
    let first = others.first()?;
    let counts = others.iter().filter_map(|size| size.gpu_count.filter(|count| *count >= 1.0));
    let mut counts: Vec<String> = counts.map(|count| count.to_string()).collect();
    counts.dedup();
    let message = format!("no Azure size has {plural}; sizes on sale have {}", counts.join(", "));
    let near = others.iter().map(|size| size.name.clone()).collect();
    let mut assessment =
        Assessment::new(Status::NoSuchSize { near }, Some(codes::NO_SUCH_COUNT), Severity::Error, message);
    assessment.old = Some(OldMachine::of(facts, first, region));
    Some(assessment)
}

/// The GPUs of the tables that a name matches. Schedulers write memory with its unit: A100-80GB.
fn gpus_named(facts: &Facts, name: &str) -> Vec<String> {
    let lower = name.to_ascii_lowercase();
    let plain = lower.strip_suffix("gb").unwrap_or(&lower);
    let rows = match facts.gpus().find(name).rows() {
        rows if rows.is_empty() => facts.gpus().find(plain).rows(),
        rows => rows,
    };
    if !rows.is_empty() {
        return rows.into_iter().map(|gpu| gpu.id.clone()).collect();
    }
    // V100-32GB is a V100.
    let base = plain.rsplit_once('-').map_or(plain, |(base, _)| base);
    facts.gpus().find(base).rows().into_iter().map(|gpu| gpu.id.clone()).collect()
}

pub(super) fn gpus_of_service(facts: &Facts, sku: Option<&str>, count: Option<u32>) -> OldMachine {
    let id = sku.and_then(|sku| facts.gpus().find(sku).one()).map(|gpu| gpu.id.clone());
    let count = count.unwrap_or(1);
    let gpu = id.map(|id| {
        let memory = memory_of(facts, &id);
        MachineGpu::named(facts, id, f64::from(count), memory)
    });
    let name = sku.map_or_else(|| format!("{count} x GPU"), |sku| format!("{count} x {sku}"));
    OldMachine { name, gpu, vcpu: None, ram_gib: None, price: None }
}

/// The replacement in the tables for sizes with a GPU.
pub(super) fn replacement_of_gpu<'f>(facts: &'f Facts, gpu: &str) -> Option<&'f str> {
    let sizes = facts.sizes().size.iter();
    sizes.filter(|size| size.gpu.as_deref() == Some(gpu)).find_map(|size| size.replacement.as_deref())
}
