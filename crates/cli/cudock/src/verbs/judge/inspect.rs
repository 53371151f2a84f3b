//! `cudock inspect`: prints the GPU code in binaries.

use std::collections::BTreeMap;

use cudock_base::text::format::{count, fixed_bytes};
use cudock_cli::InspectArgs;
use cudock_fatbin::{Binary, CodeSummary, CodeTarget, Coverage, FileError, Inspected, Kernel, Linkage};
use schemars::JsonSchema;
use serde::Serialize;

use crate::failure::{Failure, Outcome, chain};
use crate::output::{self, BOLD, DIM, Format, RED, YELLOW, line, styled};
use crate::steps::images::refuse_digest;

#[derive(Serialize, JsonSchema)]
pub(crate) struct InspectReport {
    schema: u8,
    files: Vec<FileReport>,
    summary: String,
    errors: Vec<Problem>,
}

#[derive(Serialize, JsonSchema)]
struct FileReport {
    path: String,
    size: u64,
    soname: Option<String>,
    needed: Vec<String>,
    glibc: Option<String>,
    gpu_code: GpuCode,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    kernels: Vec<KernelReport>,
    #[serde(skip)]
    lines: Vec<CodeSummary>,
    #[serde(skip)]
    coverage: Coverage,
}

#[derive(Serialize, JsonSchema)]
struct GpuCode {
    modules: usize,
    entries: Vec<CodeLine>,
    sections: Vec<SectionReport>,
    /// Modules that the linker added and that contain no kernel; with --kernels only, since they must be unpacked.
    #[serde(skip_serializing_if = "Option::is_none")]
    modules_without_kernels: Option<usize>,
    covers: String,
    /// PTX of the parts of device-linked code (`-rdc`), which the driver can link again.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    device_link_ptx: Vec<String>,
    unknown: BTreeMap<String, u64>,
    damage: Vec<String>,
}

#[derive(Serialize, JsonSchema)]
struct SectionReport {
    name: String,
    modules: u64,
    entries: Vec<CodeLine>,
}

#[derive(Serialize, JsonSchema)]
struct CodeLine {
    kind: &'static str,
    #[serde(rename = "arch")]
    gpu_arch: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    ptx_isa: Option<String>,
    count: u64,
    stored_bytes: u64,
    bytes: u64,
}

#[derive(Serialize, JsonSchema)]
struct KernelReport {
    #[serde(rename = "arch")]
    gpu_arch: String,
    name: String,
    registers: u32,
    shared_bytes: u64,
    constant_bytes: u64,
    code_bytes: u64,
}

#[derive(Serialize, JsonSchema)]
struct Problem {
    path: String,
    message: String,
}

pub(crate) fn run(args: &InspectArgs, format: Format) -> Result<Outcome, Failure> {
    args.paths.iter().try_for_each(|path| refuse_digest(path))?;
    let named_only = args.paths.iter().all(|path| path.is_file());
    let look = |file: Inspected, bytes: &[u8]| {
        let kernels = if args.kernels { kernels(&file.binary, bytes) } else { Vec::new() };
        let without = args.kernels.then(|| {
            file.binary.modules.iter().filter(|module| module.has_kernels(bytes) == Some(false)).count()
        });
        let report = report(file, kernels, without);
        // In directories and wheels, files without GPU code are skipped.
        let named = named_only && !report.path.contains("!/");
        (named || !report.lines.is_empty() || !report.gpu_code.damage.is_empty()).then_some(report)
    };
    let (files, failed) = cudock_fatbin::inspect(&args.paths, look);
    let errors: Vec<Problem> = failed
        .iter()
        .map(|failed| Problem { path: failed.path.clone(), message: chain(&failed.error) })
        .collect();
    if let ([], [only]) = (files.as_slice(), failed.as_slice()) {
        return Err(cannot_read(&only.path, &only.error));
    }
    let mut all = Coverage::default();
    for file in &files {
        all.add(&file.coverage);
    }
    let report = InspectReport { schema: 1, summary: all.sentence(), files, errors };
    match format {
        Format::Json => output::json(&report),
        Format::Text => print(&report),
    }
    for problem in &report.errors {
        anstream::eprintln!("{}: {}: {}", styled(RED, "error"), problem.path, problem.message);
    }
    if report.errors.is_empty() {
        Ok(Outcome::Yes)
    } else {
        Err(Failure::input(format!("cannot read {}", count(report.errors.len(), "file"))))
    }
}

fn cannot_read(path: &str, error: &FileError) -> Failure {
    let failure = match error {
        // The error already has the path.
        FileError::Map(error) => Failure::input(chain(error)),
        error => Failure::input(format!("{path}: {}", chain(error))),
    };
    match error {
        FileError::Read(_) => failure
            .hint("pass a program, a library, an archive, a fat binary, a cubin, a wheel or a directory"),
        _ => failure,
    }
}

fn report(file: Inspected, kernels: Vec<KernelReport>, modules_without_kernels: Option<usize>) -> FileReport {
    let Inspected { path, size, binary } = file;
    let lines = binary.lines();
    let coverage = Coverage::of(&binary);
    let glibc = binary.linkage.glibc();
    let Linkage { soname, needed, .. } = binary.linkage.clone();
    let sections = binary.sections().into_iter().map(|(name, modules)| {
        let entries = code_lines(&binary.lines_in(&name));
        SectionReport { name, modules, entries }
    });
    let gpu_code = GpuCode {
        modules: binary.modules.len(),
        entries: code_lines(&lines),
        sections: sections.collect(),
        modules_without_kernels,
        covers: coverage.sentence(),
        device_link_ptx: binary.device_link_targets(),
        unknown: binary.unknown(),
        damage: binary.damage.iter().map(ToString::to_string).collect(),
    };
    FileReport { path, size, soname, needed, glibc, gpu_code, kernels, lines, coverage }
}

fn code_lines(lines: &[CodeSummary]) -> Vec<CodeLine> {
    let line = |line: &CodeSummary| CodeLine {
        kind: match line.target {
            CodeTarget::Sass(_) => "sass",
            CodeTarget::Ptx(_) => "ptx",
            CodeTarget::Ir(_) => "ir",
            CodeTarget::Unknown(_) => "unknown",
        },
        gpu_arch: line.target.to_string(),
        ptx_isa: line.ptx_isa.map(|isa| isa.to_string()),
        count: line.count,
        stored_bytes: line.stored,
        bytes: line.bytes,
    };
    lines.iter().map(line).collect()
}

fn kernels(binary: &Binary, bytes: &[u8]) -> Vec<KernelReport> {
    let report = |(gpu_arch, kernel): (String, Kernel)| KernelReport {
        gpu_arch,
        name: kernel.name,
        registers: kernel.registers,
        shared_bytes: kernel.shared,
        constant_bytes: kernel.constant,
        code_bytes: kernel.code,
    };
    binary.kernels(bytes).into_iter().map(report).collect()
}

fn print(report: &InspectReport) {
    for (index, file) in report.files.iter().enumerate() {
        if index > 0 {
            line("");
        }
        let mut about = vec![fixed_bytes(file.size)];
        about.extend(file.soname.as_ref().map(|soname| format!("SONAME {soname}")));
        about.extend(file.glibc.as_ref().map(|glibc| format!("needs glibc {glibc}")));
        line(format!("{}  {}", styled(BOLD, &file.path), styled(DIM, &about.join(", "))));
        if !file.needed.is_empty() {
            line(styled(DIM, &output::wrapped("  needs ", &file.needed.join(" "))));
        }
        if !file.lines.is_empty() {
            line(format!("  {:14} {:>8} {:>12} {:>12}", "target", "entries", "stored", "unpacked"));
        }
        for code in &file.lines {
            let isa = code.ptx_isa.map_or_else(String::new, |isa| format!("  ISA {isa}"));
            let (stored, opened) = (fixed_bytes(code.stored), fixed_bytes(code.bytes));
            line(format!(
                "  {:14} {:>8} {stored:>12} {opened:>12}{isa}",
                code.target.to_string(),
                code.count
            ));
        }
        if !file.gpu_code.device_link_ptx.is_empty() {
            let targets = file.gpu_code.device_link_ptx.join(" ");
            line(format!("  {targets} in device-linked parts (-rdc), which the driver can link again"));
        }
        for kernel in &file.kernels {
            line(format!(
                "  {:10} {:>3} registers {:>6} shared {:>5} constant {:>7} code  {}",
                kernel.gpu_arch,
                kernel.registers,
                kernel.shared_bytes,
                kernel.constant_bytes,
                kernel.code_bytes,
                kernel.name
            ));
        }
        let modules = file.gpu_code.modules;
        let modules = if modules == 0 { String::new() } else { format!("{}; ", count(modules, "module")) };
        line(output::wrapped("  ", &format!("{modules}{}", file.gpu_code.covers)));
        if let Some(count) = file.gpu_code.modules_without_kernels.filter(|count| *count > 0) {
            line(format!("  {count} of the modules contain no kernel, and may not load"));
        }
        for (what, count) in &file.gpu_code.unknown {
            line(format!("  {}: {what}, {count} times", styled(YELLOW, "unknown")));
        }
        for damage in file.gpu_code.damage.iter().take(5) {
            line(format!("  {}: {damage}", styled(RED, "damaged")));
        }
    }
    match report.files.len() {
        0 => line("no GPU code found"),
        1 => {}
        count => line(format!("\n{} {}", styled(BOLD, &format!("{count} files:")), report.summary)),
    }
}
