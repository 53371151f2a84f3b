//! Assesses a choice, independently of its text.

use cudock_facts::services::AzureService;
use std::cmp::Ordering;

use cudock_facts::Facts;
use cudock_facts::finding::Severity;
use cudock_facts::lookup::NameMatch;
use cudock_facts::tables::{Outdated, Size};

use super::old::{MachineGpu, OldMachine, memory_of};
use super::status::{self, Status};
use super::{Assessor, ChoiceFinding, codes};
use crate::choice::ChoiceKind;

impl<'a> Assessor<'a> {
    pub(super) fn assess(&self) -> Option<ChoiceFinding> {
        Some(match &self.choice.kind {
            ChoiceKind::Size { name } => self.size(name),
            ChoiceKind::Accelerator { name, count } => return self.accelerator(name, *count),
            ChoiceKind::ContainerGpu { sku, count, by_option } => {
                self.container_gpu(sku.as_deref(), *count, *by_option)
            }
            ChoiceKind::Interface { interface, name } => self.interface(*interface, name),
            ChoiceKind::LowPriorityNodes => {
                let more = "spot-needs-user-subscription";
                self.ended(codes::NO_LOW_PRIORITY, "batch", "low-priority-ended", more)
            }
            ChoiceKind::SkipDriver => {
                self.ended(codes::OLD_INTERFACE, "aks", "skip-tag-ended", "driver-installed")
            }
            ChoiceKind::ImageReference { reference } => self.image(reference),
        })
    }

    pub(super) fn finding(
        &self,
        status: Status,
        code: Option<&'static str>,
        severity: Severity,
        message: String,
    ) -> ChoiceFinding {
        let (choice, replacements, notes) = (self.choice.clone(), Vec::new(), Vec::new());
        ChoiceFinding { choice, status, code, severity, message, old: None, replacements, notes }
    }

    fn size(&self, name: &str) -> ChoiceFinding {
        let Some(row) = self.facts.sizes().find(name).one() else { return self.no_such_size(name) };
        let mut finding = self.of_row(row, name);
        if self.choice.service == Some(AzureService::Batch) && self.choice.low_priority {
            finding.notes.extend(self.behavior("batch", "spot-needs-user-subscription"));
        }
        finding
    }

    fn of_row(&self, row: &'a Size, name: &str) -> ChoiceFinding {
        let status = status::of(row, self.day, self.region);
        let (code, severity, message) = describe(&status, name, self.region);
        let mut finding = self.finding(status, code, severity, message);
        let old = self.old_machine(row);
        if code.is_some() {
            finding.replacements = self.sizes_for((Some(row), &old), replacement_text(self.facts, row));
        }
        finding.old = Some(old);
        finding
    }

    fn no_such_size(&self, name: &str) -> ChoiceFinding {
        let whole = if name.to_ascii_lowercase().starts_with("standard_") {
            name.to_owned()
        } else {
            format!("Standard_{name}")
        };
        let sizes = self.facts.sizes();
        // For wrong names in tutorials, the tables have the right one.
        let meant = outdated(self.facts, &whole).and_then(|row| {
            let mut names =
                row.status.split([' ', ',', '.']).filter(|name| !name.eq_ignore_ascii_case(&whole));
            names.find_map(|name| sizes.find(name).one())
        });
        let near: Vec<String> = match (meant, sizes.find(&whole)) {
            (Some(size), _) => vec![size.name.clone()],
            (None, NameMatch::NotFound(near)) => near.into_iter().map(str::to_owned).collect(),
            (None, _) => Vec::new(),
        };
        let question = match near.as_slice() {
            [] => String::new(),
            names => format!("; did you mean {}?", names.join(" or ")),
        };
        let message = format!("unknown Azure size {name}{question}");
        let likely = near.first().and_then(|name| sizes.find(name).one());
        let status = Status::NoSuchSize { near };
        let mut finding = self.finding(status, Some(codes::NO_SUCH_SIZE), Severity::Error, message);
        let Some(likely) = likely else { return finding };
        let meant = self.of_row(likely, &likely.name);
        if meant.code.is_some() {
            finding.notes.push(meant.message);
            finding.replacements = meant.replacements;
        }
        finding.old = meant.old;
        finding
    }

    /// Assesses a GPU by name and count. Schedulers match the count exactly: eight GPUs do not satisfy a request for four.
    fn accelerator(&self, name: &str, count: u32) -> Option<ChoiceFinding> {
        let gpus = gpus_named(self.facts, name);
        let ids: Vec<&str> = gpus.iter().map(String::as_str).collect();
        let wanted = f64::from(count.max(1));
        let exact = |size: &&Size| size.gpu_count.is_some_and(|has| (has - wanted).abs() < 0.001);
        let sizes: Vec<&Size> = self.facts.sizes().with_gpu(&ids).filter(|size| size.documented).collect();
        let by_count = |a: &&Size, b: &&Size| {
            (a.gpu_count, &a.name).partial_cmp(&(b.gpu_count, &b.name)).unwrap_or(Ordering::Equal)
        };
        let all = || sizes.iter().copied();
        let on_sale = || all().filter(|size| size.is_on_sale(self.day));
        let plural = format!("{count} x {name}");
        let same = on_sale().filter(exact).min_by(by_count);
        let Some(row) = same.or_else(|| all().filter(exact).max_by_key(|size| size.retired_on)) else {
            return self.no_such_count(&plural, on_sale().collect());
        };
        let mut finding = self.of_row(row, &row.name);
        finding.message = match &finding.status {
            Status::OnSale => format!("{plural} is on sale, as {}", row.name),
            Status::Retired { on, .. } => {
                let when = on.map_or_else(String::new, |on| format!(" on {on}"));
                format!("no size on sale has {plural}; {} was retired{when}", row.name)
            }
            Status::Retiring { on } => format!("{plural} ends with {} on {on}", row.name),
            _ => format!("no documented size has {plural}"),
        };
        let larger = on_sale().filter(|size| size.gpu_count.is_some_and(|has| has > wanted)).min_by(by_count);
        if let (Status::Retired { .. }, Some(larger)) = (&finding.status, larger) {
            let (name, has) = (&larger.name, larger.gpu_count.unwrap_or_default());
            finding
                .notes
                .push(format!("{name} has {has} of them, which a request for {count} does not match."));
        }
        Some(finding)
    }

    /// Assesses a number of GPUs that no size ever had; `None` if no size has the GPU.
    fn no_such_count(&self, plural: &str, mut others: Vec<&Size>) -> Option<ChoiceFinding> {
        others.sort_by(|a, b| a.gpu_count.partial_cmp(&b.gpu_count).unwrap_or(Ordering::Equal));
        let first = others.first()?;
        let counts = others.iter().filter_map(|size| size.gpu_count.filter(|count| *count >= 1.0));
        let mut counts: Vec<String> = counts.map(|count| count.to_string()).collect();
        counts.dedup();
        let message = format!("no Azure size has {plural}; sizes on sale have {}", counts.join(", "));
        let status = Status::NoSuchSize { near: others.iter().map(|size| size.name.clone()).collect() };
        let finding = self.finding(status, Some(codes::NO_SUCH_COUNT), Severity::Error, message);
        Some(ChoiceFinding { old: Some(self.old_machine(first)), ..finding })
    }

    fn old_machine(&self, size: &Size) -> OldMachine {
        OldMachine {
            name: size.name.clone(),
            gpu: MachineGpu::of(self.facts, size),
            vcpu: size.vcpu,
            ram_gib: size.ram_gib,
            price: self.price_of(&size.name),
        }
    }

    pub(super) fn gpus_of_service(&self, sku: Option<&str>, count: Option<u32>) -> OldMachine {
        let id = sku.and_then(|sku| self.facts.gpus().find(sku).one()).map(|gpu| gpu.id.clone());
        let count = count.unwrap_or(1);
        let gpu = id.map(|id| {
            let memory = memory_of(self.facts, &id);
            MachineGpu::named(self.facts, id, f64::from(count), memory)
        });
        let name = format!("{count} x {}", sku.unwrap_or("GPU"));
        OldMachine { name, gpu, vcpu: None, ram_gib: None, price: None }
    }
}

fn describe(status: &Status, name: &str, region: Option<&str>) -> (Option<&'static str>, Severity, String) {
    let here = region.map_or_else(String::new, |region| format!(" in {region}"));
    match status {
        Status::Retired { on, later_in } => {
            let when = on.map_or_else(String::new, |on| format!(" on {on}"));
            let later = later_in.iter().map(|(region, end)| format!("{region} until {end}"));
            let later = later.collect::<Vec<_>>().join(", ");
            // Other regions do not matter once a region is chosen.
            let later = if later.is_empty() || region.is_some() {
                String::new()
            } else {
                format!("; still in {later}")
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

/// The replacement in the tables for sizes with a GPU.
pub(super) fn replacement_of_gpu<'f>(facts: &'f Facts, gpu: &str) -> Option<&'f str> {
    let sizes = facts.sizes().size.iter();
    sizes.filter(|size| size.gpu.as_deref() == Some(gpu)).find_map(|size| size.replacement.as_deref())
}
