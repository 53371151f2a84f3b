//! What became of a choice, whatever text it stands in.

use cudock_facts::Facts;
use cudock_facts::finding::Severity;
use cudock_facts::lookup::Found;
use cudock_facts::tables::{Outdated, Size};
use cudock_facts::version::Date;

use super::codes;
use super::old::{Gpu, Old, memory_of};
use super::price::Place;
use super::replacement::{self, Replacement};
use super::service;
use super::status::{self, Status};
use crate::choice::{Choice, Service, What};

/// A finding without its place.
#[derive(Clone, Debug)]
pub(super) struct Assessment {
    pub(super) status: Status,
    pub(super) code: Option<&'static str>,
    pub(super) severity: Severity,
    pub(super) message: String,
    pub(super) old: Option<Old>,
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

pub(super) fn assess(facts: &Facts, day: Date, place: &Place<'_>, choice: &Choice) -> Option<Assessment> {
    match &choice.what {
        What::Size { name } => Some(size(facts, day, place, name, choice)),
        What::Accelerator { name, count } => accelerator(facts, day, place, name, *count),
        What::ContainerGpu { sku, count, by_option } => {
            Some(service::container_gpu(facts, day, place, sku.as_deref(), *count, *by_option))
        }
        What::Interface { interface, name } => Some(service::interface(facts, day, *interface, name)),
        What::LowPriorityNodes => Some(service::low_priority(facts, day)),
        What::SkipDriver => Some(service::skip_driver(facts, day)),
        What::ImageReference { reference } => Some(service::image(facts, reference)),
    }
}

fn size(facts: &Facts, day: Date, place: &Place<'_>, name: &str, choice: &Choice) -> Assessment {
    let row = match facts.sizes().find(name) {
        Found::One(row) => row,
        Found::Several(_) | Found::Nothing(_) => return no_such_size(facts, day, place, name),
    };
    let mut assessment = of_row(facts, day, place, row, name);
    if choice.service == Some(Service::Batch) && choice.low_priority {
        assessment.notes.extend(service::behaviour(facts, "batch", "spot-needs-user-subscription"));
    }
    assessment
}

/// What became of a size of the tables.
fn of_row(facts: &Facts, day: Date, place: &Place<'_>, row: &Size, name: &str) -> Assessment {
    let status = status::of(row, day, place);
    let (code, severity, message) = words(&status, name, place);
    let mut assessment = Assessment::new(status, code, severity, message);
    let old = Old::of(facts, row, place);
    if code.is_some() {
        let instead = replacement_words(facts, row);
        assessment.replacements = replacement::for_size(facts, day, place, (Some(row), &old), instead);
    }
    assessment.old = Some(old);
    assessment
}

fn words(status: &Status, name: &str, place: &Place<'_>) -> (Option<&'static str>, Severity, String) {
    let here = place.region.map_or_else(String::new, |region| format!(" in {region}"));
    match status {
        Status::Retired { on, later_in } => {
            let when = on.map_or_else(String::new, |on| format!(" on {on}"));
            let later: Vec<String> =
                later_in.iter().map(|(region, end)| format!("{region} until {end}")).collect();
            // Who has chosen a region does not ask about others.
            let later = if later.is_empty() || place.region.is_some() {
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
            format!("no page describes {name}; only its name or a price was seen"),
        ),
        _ => (None, Severity::Note, format!("{name} is on sale")),
    }
}

/// The tables' words for what replaces a size; of an offer of it at another price, those for the size itself.
fn replacement_words<'f>(facts: &'f Facts, row: &'f Size) -> Option<&'f str> {
    row.replacement.as_deref().or_else(|| {
        let sizes = facts.sizes().size.iter();
        let mut same =
            sizes.filter(|size| size.gpu.is_some() && size.gpu == row.gpu && size.replacement.is_some());
        let begins = |size: &Size| row.name.to_ascii_lowercase().starts_with(&size.name.to_ascii_lowercase());
        let nearest = same.clone().filter(|size| begins(size)).max_by_key(|size| size.name.len());
        nearest.or_else(|| same.next())?.replacement.as_deref()
    })
}

/// The row about a choice that tutorials make, by a word of its own.
pub(super) fn outdated<'f>(facts: &'f Facts, word: &str) -> Option<&'f Outdated> {
    let word = word.to_ascii_lowercase();
    facts.sizes().outdated.iter().find(|row| {
        let choice = row.choice.to_ascii_lowercase();
        choice.split([' ', ',', '(', ')']).any(|part| part == word)
    })
}

fn no_such_size(facts: &Facts, day: Date, place: &Place<'_>, name: &str) -> Assessment {
    let whole = if name.to_ascii_lowercase().starts_with("standard_") {
        name.to_owned()
    } else {
        format!("Standard_{name}")
    };
    let row = outdated(facts, &whole);
    // Of a name that tutorials have, the tables know what was meant.
    let meant = row.and_then(|row| {
        let words = row.status.split([' ', ',', '.']);
        words
            .filter(|word| !word.eq_ignore_ascii_case(&whole))
            .find_map(|word| facts.sizes().find(word).one())
    });
    let near: Vec<String> = match (meant, facts.sizes().find(&whole)) {
        (Some(size), _) => vec![size.name.clone()],
        (None, Found::Nothing(near)) => near.into_iter().map(str::to_owned).collect(),
        (None, _) => Vec::new(),
    };
    let question = match near.as_slice() {
        [] => String::new(),
        names => format!("; did you mean {}?", names.join(" or ")),
    };
    let message = format!("no Azure size is called {name}{question}");
    let mut assessment = Assessment::new(
        Status::NoSuchSize { near: near.clone() },
        Some(codes::NO_SUCH_SIZE),
        Severity::Error,
        message,
    );
    let Some(likely) = near.first().and_then(|name| facts.sizes().find(name).one()) else {
        return assessment;
    };
    let meant = of_row(facts, day, place, likely, &likely.name);
    if meant.code.is_some() {
        assessment.notes.push(meant.message);
        assessment.replacements = meant.replacements;
    }
    assessment.old = meant.old;
    assessment
}

/// Sizes with GPUs of a name. Schedulers match the number exactly: eight GPUs do not stand in for four.
fn accelerator(facts: &Facts, day: Date, place: &Place<'_>, name: &str, count: u32) -> Option<Assessment> {
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
        return no_such_count(facts, place, &plural, on_sale().collect());
    };
    let mut assessment = of_row(facts, day, place, row, &row.name);
    assessment.message = match &assessment.status {
        Status::OnSale => format!("{plural} is on sale, as {}", row.name),
        Status::Retired { on, .. } => {
            let when = on.map_or_else(String::new, |on| format!(" on {on}"));
            format!("no size on sale has {plural}; {} was retired{when}", row.name)
        }
        Status::Retiring { on } => format!("{plural} ends with {} on {on}", row.name),
        _ => format!("no page describes a size with {plural}"),
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

/// A number of GPUs that no size ever had; none if the GPU itself is in no size.
fn no_such_count(
    facts: &Facts,
    place: &Place<'_>,
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
    assessment.old = Some(Old::of(facts, first, place));
    Some(assessment)
}

/// The GPUs of the tables that a name stands for. Schedulers write memory with its unit: A100-80GB.
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

/// What GPUs of a service gave, by their name there.
pub(super) fn gpus_of_service(facts: &Facts, sku: Option<&str>, count: Option<u32>) -> Old {
    let id = sku.and_then(|sku| facts.gpus().find(sku).one()).map(|gpu| gpu.id.clone());
    let count = count.unwrap_or(1);
    let gpu = id.map(|id| {
        let memory = memory_of(facts, &id);
        Gpu::named(facts, id, f64::from(count), memory)
    });
    let name = sku.map_or_else(|| format!("{count} x GPU"), |sku| format!("{count} x {sku}"));
    Old { name, gpu, vcpu: None, ram_gib: None, price: None }
}

/// The words for what replaces sizes with a GPU.
pub(super) fn replacement_of_gpu<'f>(facts: &'f Facts, gpu: &str) -> Option<&'f str> {
    let sizes = facts.sizes().size.iter();
    sizes.filter(|size| size.gpu.as_deref() == Some(gpu)).find_map(|size| size.replacement.as_deref())
}
