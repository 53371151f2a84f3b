//! Removes GPU code for other GPUs than the named ones, and reports it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use cudock_base::text::format::{count, fixed_bytes};
use cudock_build::slim::{ImageReport, SlimImageJob, SlimTarget};
use cudock_compat::{Subject, subject};
use cudock_facts::Facts;
use cudock_facts::version::Capability;
use cudock_fatbin::{SlimError, SlimJob, SlimOutput, SlimPlan, Slimmed};
use cudock_image::ImageSource;
use cudock_image::write::{Compression, Destination, WriteOptions};
use cudock_target::{capabilities, capability_named};
use schemars::JsonSchema;
use serde::Serialize;

use crate::failure::{Failure, Outcome, chain};
use crate::output::{self, BOLD, Format, TableUsed, YELLOW, line, styled};
use crate::steps::images::{access, note_local, progress};

/// The options of `cudock slim`: the input, and the GPUs whose code is kept.
#[derive(Debug, Default)]
#[allow(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub(crate) struct SlimRequest {
    /// A file, a directory, a wheel or an image.
    pub(crate) input: PathBuf,
    /// Where the result is written; by default, it replaces the input.
    pub(crate) output: Option<PathBuf>,
    /// GPUs, sizes of Azure, or compute capabilities.
    pub(crate) targets: Vec<String>,
    /// Whether the files themselves become smaller.
    pub(crate) compact: bool,
    /// The format of an image's new layers, if not that of the others.
    pub(crate) compression: Option<Compression>,
    /// Whether libraries of an image that nothing loads are removed.
    pub(crate) remove_unused: bool,
    pub(crate) in_place: bool,
    pub(crate) dry_run: bool,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct SlimReport<'a> {
    schema: u8,
    targets: BTreeMap<&'a str, Capability>,
    files: Vec<FileReport>,
    total: Total,
    /// What became of the image, if it was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    image: Option<ImageReport>,
    /// The number of modules that GPUs of a compute capability could load before, but not after.
    no_longer_runs_on: BTreeMap<String, u64>,
    dry_run: bool,
    tables: &'a [TableUsed],
}

#[derive(Serialize, JsonSchema)]
struct FileReport {
    path: String,
    #[serde(flatten)]
    sizes: Total,
    removed: BTreeMap<String, u64>,
    refused: Option<String>,
    /// Targets that cannot load anything of this file, although another file of the input supports them.
    uncovered: Vec<String>,
}

#[derive(Debug, Clone, Copy, Default, Serialize, JsonSchema)]
struct Total {
    bytes_before: u64,
    bytes_after: u64,
    /// Bytes after that are not holes: about what the file takes on disk.
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

/// Slims the input, and prints the report.
pub(crate) fn slim(facts: &Facts, request: &SlimRequest, format: Format) -> Result<Outcome, Failure> {
    let targets: Vec<(&str, Capability)> = request
        .targets
        .iter()
        .map(|name| Ok((name.as_str(), capability_named(facts, name)?)))
        .collect::<Result<_, Failure>>()?;
    let output = match &request.output {
        _ if request.dry_run => SlimOutput::DryRun,
        Some(output) => SlimOutput::To(output),
        None => SlimOutput::InPlace,
    };
    if request.output.as_ref().is_some_and(|output| is_same_file(&request.input, output)) {
        return Err(Failure::input("the output is the input").hint("pass --in-place to replace it"));
    }
    let wanted: Vec<Capability> = targets.iter().map(|(_, capability)| *capability).collect();
    let all = capabilities(facts);
    let job = SlimJob { targets: &wanted, gpus: &all, compact: request.compact };
    let mut files = Vec::new();
    let mut total = Total::default();
    let mut lost: BTreeMap<String, u64> = BTreeMap::new();
    let mut add = |file: Slimmed| {
        for (gpu, modules) in all.iter().zip(&file.plan.lost).filter(|(_, modules)| **modules > 0) {
            *lost.entry(gpu.to_string()).or_default() += modules;
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
    let image = if let Some(source) = image_source(&request.input)? {
        Some(slim_image(facts, request, source, &targets, &all, &mut add)?)
    } else {
        if request.remove_unused {
            return Err(Failure::input("--remove-unused is for images: files have no loader"));
        }
        let slimmed = cudock_fatbin::slim(&request.input, output, &job, &mut add);
        slimmed.map_err(|error| failure(&error, &targets, request))?;
        None
    };
    let tables = output::tables_used(facts, &["gpus", "azure_sizes"]);
    let report = SlimReport {
        schema: 1,
        targets: targets.iter().copied().collect(),
        files,
        total,
        image,
        no_longer_runs_on: lost,
        dry_run: request.dry_run,
        tables: &tables,
    };
    match format {
        Format::Json => output::json(&report),
        Format::Text => print(facts, &report),
    }
    output::warn_if_stale(&tables);
    Ok(Outcome::Yes)
}

/// The image that the argument names, if it is one.
fn image_source(input: &Path) -> Result<Option<ImageSource>, Failure> {
    let Some(text) = input.to_str() else { return Ok(None) };
    note_local(text)?;
    match subject(text) {
        Ok(Subject::Image(source)) => Ok(Some(source)),
        _ => Ok(None),
    }
}

/// Slims an image, and writes it to its destination.
fn slim_image(
    facts: &Facts,
    request: &SlimRequest,
    source: ImageSource,
    targets: &[(&str, Capability)],
    gpus: &[Capability],
    add: &mut dyn FnMut(Slimmed),
) -> Result<ImageReport, Failure> {
    if request.in_place {
        return Err(
            Failure::input("an image is not replaced in place").hint("name a destination with --output")
        );
    }
    let output = request.output.as_ref().and_then(|path| path.to_str());
    let destination = output.map(Destination::parse).transpose()?;
    let today = cudock_base::Date::today();
    let named = targets.iter().map(|(name, capability)| SlimTarget::named(facts, name, *capability, today));
    let targets: Vec<SlimTarget> = named.collect::<Result<_, _>>()?;
    let name = request.input.display().to_string();
    let bundle = access(None, false).find_source(source)?.bundle()?;
    let options = WriteOptions::from_environment(progress())?;
    let client = options.client.clone().ok_or_else(|| Failure::input("no cache directory"))?;
    let job = SlimImageJob {
        facts,
        targets: &targets,
        gpus,
        compact: request.compact,
        compression: request.compression,
        remove_unused: request.remove_unused,
    };
    let slimmed = cudock_build::slim::slim_image(&bundle, &name, &job, client.store())?;
    slimmed.files.into_iter().for_each(add);
    if let Some(destination) = destination.filter(|_| !request.dry_run) {
        slimmed.bundle.write(&destination, &options)?;
    }
    Ok(slimmed.report)
}

/// Targets that cannot load anything of a file with GPU code.
fn uncovered(targets: &[(&str, Capability)], plan: &SlimPlan) -> Vec<String> {
    let uncovered = targets.iter().zip(&plan.loadable).filter(|(_, modules)| **modules == 0);
    uncovered.map(|((name, _), _)| (*name).to_owned()).collect()
}

fn failure(error: &SlimError, targets: &[(&str, Capability)], request: &SlimRequest) -> Failure {
    let input = request.input.display();
    match error {
        SlimError::NoCode { target } => {
            let named = targets.iter().find(|(_, capability)| capability == target);
            let name = named.map_or("the target", |(name, _)| name);
            Failure::input(format!("nothing in {input} runs on {name} ({target}): no file was changed"))
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

fn is_same_file(one: &std::path::Path, other: &std::path::Path) -> bool {
    matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
}

fn print(facts: &Facts, report: &SlimReport<'_>) {
    let has_removed = report.image.as_ref().is_some_and(|image| !image.unused_libraries.is_empty());
    if report.files.is_empty() && !has_removed {
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
    for text in report.image.iter().flat_map(cudock_build::slim::lines) {
        line(text);
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
