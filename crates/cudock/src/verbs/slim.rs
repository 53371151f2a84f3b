use std::collections::BTreeMap;

use cudock_base::format::{count, fixed_bytes};
use cudock_compat::code_targets::{capabilities, capability_named, loads, preference};
use cudock_facts::Facts;
use cudock_facts::version::Capability;
use cudock_fatbin::{GpuCode, SlimError, SlimJob, SlimOutput, SlimPlan, Slimmed};
use serde::Serialize;

use crate::cli::SlimArgs;
use crate::failure::{Failure, Outcome, chain};
use crate::output::{self, BOLD, Format, TableUsed, YELLOW, line, styled};

#[derive(Serialize)]
struct Report<'a> {
    schema: u8,
    targets: BTreeMap<&'a str, Capability>,
    files: Vec<FileReport>,
    total: Total,
    /// Capabilities for which modules could load before and cannot any more, with how many.
    no_longer_runs_on: BTreeMap<String, u64>,
    dry_run: bool,
    tables: &'a [TableUsed],
}

#[derive(Serialize)]
struct FileReport {
    path: String,
    #[serde(flatten)]
    sizes: Total,
    removed: BTreeMap<String, u64>,
    refused: Option<String>,
    /// Targets that can load nothing of this file, though others of the input cover them.
    uncovered: Vec<String>,
}

#[derive(Debug, Clone, Copy, Default, Serialize)]
struct Total {
    bytes_before: u64,
    bytes_after: u64,
    /// Bytes after that are no hole: what the file takes on disk, about.
    written_after: u64,
    gpu_code_before: u64,
    gpu_code_after: u64,
}

impl Total {
    fn add(&mut self, other: Total) {
        self.bytes_before += other.bytes_before;
        self.bytes_after += other.bytes_after;
        self.written_after += other.written_after;
        self.gpu_code_before += other.gpu_code_before;
        self.gpu_code_after += other.gpu_code_after;
    }
}

pub(super) fn run(facts: &Facts, words: &SlimArgs, format: Format) -> Result<Outcome, Failure> {
    let targets: Vec<(&str, Capability)> = words
        .targets
        .iter()
        .map(|name| Ok((name.as_str(), capability_named(facts, name)?)))
        .collect::<Result<_, Failure>>()?;
    let output = match &words.output {
        _ if words.dry_run => SlimOutput::DryRun,
        Some(output) => SlimOutput::To(output),
        None => SlimOutput::InPlace,
    };
    if words.output.as_ref().is_some_and(|output| same_place(&words.input, output)) {
        return Err(Failure::input("the output is the input").hint("pass --in-place to replace it"));
    }
    // The driver loads the closest machine code: of those that run on a card, the highest capability.
    let rank = |target: usize, code: GpuCode| {
        let (_, card) = targets.get(target)?;
        preference(code, *card)
    };
    let cards = capabilities(facts);
    let job = SlimJob {
        targets: targets.len(),
        rank: &rank,
        gpus: cards.len(),
        can_load: &|card, code| cards.get(card).is_some_and(|card| loads(code, *card)),
        compact: words.compact,
    };
    let mut files = Vec::new();
    let mut total = Total::default();
    let mut lost: BTreeMap<String, u64> = BTreeMap::new();
    let mut told = |file: Slimmed| {
        for (card, modules) in cards.iter().zip(&file.plan.lost).filter(|(_, modules)| **modules > 0) {
            *lost.entry(card.to_string()).or_default() += modules;
        }
        let sizes = Total {
            bytes_before: file.bytes_before,
            bytes_after: file.bytes_after,
            written_after: file.written,
            gpu_code_before: file.plan.before,
            gpu_code_after: file.plan.after,
        };
        total.add(sizes);
        let uncovered = uncovered(&targets, &file.plan);
        files.push(FileReport {
            path: file.path,
            sizes,
            removed: file.plan.removed,
            refused: file.warning,
            uncovered,
        });
    };
    cudock_fatbin::slim(&words.input, output, &job, &mut told)
        .map_err(|error| failure(&error, &targets, words))?;
    let tables = output::tables_used(facts, &["gpus", "azure_sizes"]);
    let report = Report {
        schema: 1,
        targets: targets.iter().copied().collect(),
        files,
        total,
        no_longer_runs_on: lost,
        dry_run: words.dry_run,
        tables: &tables,
    };
    match format {
        Format::Json => output::json(&report),
        Format::Text => print(facts, &report),
    }
    output::warn_if_stale(&tables);
    Ok(Outcome::Yes)
}

/// Targets that can load nothing of a file that holds GPU code.
fn uncovered(targets: &[(&str, Capability)], plan: &SlimPlan) -> Vec<String> {
    let uncovered = targets.iter().zip(&plan.loadable).filter(|(_, modules)| **modules == 0);
    uncovered.map(|((name, _), _)| (*name).to_owned()).collect()
}

fn failure(error: &SlimError, targets: &[(&str, Capability)], words: &SlimArgs) -> Failure {
    let input = words.input.display();
    match error {
        SlimError::NoCode { target } => {
            let name = targets.get(*target).map_or("the target", |(name, _)| name);
            let card = targets.get(*target).map(|(_, card)| format!(" ({card})")).unwrap_or_default();
            Failure::input(format!("nothing in {input} runs on {name}{card}: no file was changed"))
                .hint(format!("`cudock inspect {input}` lists the GPU code it has"))
        }
        SlimError::OutputNotEmpty { .. } => {
            Failure::input(chain(error)).hint("name a directory that does not exist yet")
        }
        SlimError::OutputInside { .. } => {
            Failure::input(chain(error)).hint("name an output outside of it, or pass --in-place")
        }
        SlimError::Write { source, .. } if is_device_failure(source) => Failure::outside(chain(error)),
        _ => Failure::input(chain(error)),
    }
}

/// A full or broken disk, as against a path that cannot be written.
fn is_device_failure(error: &std::io::Error) -> bool {
    use std::io::ErrorKind;
    !matches!(
        error.kind(),
        ErrorKind::NotFound
            | ErrorKind::PermissionDenied
            | ErrorKind::NotADirectory
            | ErrorKind::IsADirectory
            | ErrorKind::AlreadyExists
            | ErrorKind::ReadOnlyFilesystem
    )
}

fn same_place(one: &std::path::Path, other: &std::path::Path) -> bool {
    matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
}

fn print(facts: &Facts, report: &Report<'_>) {
    if report.files.is_empty() {
        line("no GPU code found: nothing to remove");
        return;
    }
    for file in &report.files {
        line(format!("{}   {}", styled(BOLD, &file.path), sizes(&file.sizes)));
        if let Some(reason) = &file.refused {
            line(format!("  {}: {reason}", styled(YELLOW, "warning")));
        }
        if !file.uncovered.is_empty() {
            let targets = file.uncovered.join(", ");
            line(format!("  {}: nothing in this file runs on {targets}", styled(YELLOW, "warning")));
        }
    }
    if report.files.len() > 1 {
        let number = count(report.files.len(), "file");
        line(format!("\n{}   {}", styled(BOLD, &number), sizes(&report.total)));
    }
    if !report.no_longer_runs_on.is_empty() {
        let gpus: Vec<String> = report.no_longer_runs_on.keys().map(|one| gpus_of(facts, one)).collect();
        line(output::wrapped("No longer runs on: ", &gpus.join(", ")));
    }
    if report.dry_run {
        line("Dry run: nothing was written.");
    }
}

/// `284.0 MB -> 77.9 MB   (GPU code 218.6 MB -> 9.8 MB)`.
fn sizes(sizes: &Total) -> String {
    format!(
        "{} -> {}   (GPU code {} -> {})",
        fixed_bytes(sizes.bytes_before),
        fixed_bytes(sizes.written_after),
        fixed_bytes(sizes.gpu_code_before),
        fixed_bytes(sizes.gpu_code_after),
    )
}

/// The best-known GPUs of a compute capability, and its number.
fn gpus_of(facts: &Facts, capability: &str) -> String {
    const SHOWN: usize = 2;
    let wanted = capability.parse::<Capability>().ok();
    let of_capability = facts.gpus().gpu.iter().filter(|gpu| wanted.is_some() && gpu.capability == wanted);
    let names: Vec<&str> = of_capability.take(SHOWN).map(|gpu| gpu.id.as_str()).collect();
    if names.is_empty() { capability.to_owned() } else { format!("{} ({capability})", names.join("/")) }
}
