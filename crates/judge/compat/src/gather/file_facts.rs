//! Extracts what matters for a verdict from the files of an image; most files are skipped.

use std::io;
use std::sync::Arc;

use cudock_facts::version::{CudaVersion, PtxIsa};
use cudock_fatbin::{FileKind, Linkage, Module, ModuleTargets};
use cudock_host::python::{is_watched, normalized};
use cudock_image::{Content, EntryHeader};

use super::binary::loose;
use super::binary::strings::{BinaryStrings, source_opens_driver};
use crate::evidence::{CompatNote, Pattern};

/// The limit of text files.
const MAX_TEXT: u64 = 4 << 20;
/// Modules that the linker adds are smaller than this; they are only looked for in files with few modules.
const SMALL_CUBIN: u64 = 8 << 10;
const MODULES_OPENED: usize = 256;

#[derive(Debug, Clone)]
pub(crate) enum FileFacts {
    Elf(Arc<ElfFacts>),
    Text(Arc<str>),
    /// Python source that opens libcuda.
    OpensDriver,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct ElfFacts {
    pub(crate) linkage: Linkage,
    pub(crate) code: Option<FileCode>,
    pub(crate) strings: BinaryStrings,
    pub(crate) note: Option<CompatNote>,
    /// Why its GPU code could not be read.
    pub(crate) damage: Option<String>,
    /// Whether it is cudock.
    pub(crate) is_own: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct FileCode {
    pub(crate) patterns: Vec<Pattern>,
    pub(crate) device_linked: bool,
    pub(crate) loose: bool,
    pub(crate) toolkit: Option<CudaVersion>,
    pub(crate) embeds: Vec<&'static str>,
    pub(crate) needed: Vec<String>,
}

/// Reads a file of an image; none if it does not matter.
pub(crate) fn read(header: &EntryHeader, content: &mut Content<'_, '_>) -> io::Result<Option<FileFacts>> {
    if is_relevant_text(&header.path) {
        if header.size() > MAX_TEXT {
            return Ok(None);
        }
        let text = String::from_utf8_lossy(content.all()?);
        return Ok(Some(FileFacts::Text(Arc::from(text.as_ref()))));
    }
    if is_record(&header.path) {
        return Ok((header.size() <= MAX_TEXT).then_some(FileFacts::Text(libraries_of(content.all()?))));
    }
    if is_source(&header.path) {
        let opens = header.size() <= MAX_TEXT && source_opens_driver(content.all()?);
        return Ok(opens.then_some(FileFacts::OpensDriver));
    }
    if header.size() < 64 || !is_relevant_binary(content.start()?) {
        return Ok(None);
    }
    Ok(Some(FileFacts::Elf(Arc::new(read_elf(content.all()?)))))
}

/// ELF files and loose containers; static archives are not loaded by anything.
fn is_relevant_binary(start: &[u8]) -> bool {
    cudock_fatbin::is_candidate(start) && !start.starts_with(b"!<arch>")
}

/// The list of a distribution's files.
pub(crate) fn is_record(path: &str) -> bool {
    path.ends_with(".dist-info/RECORD")
}

pub(crate) fn is_source(path: &str) -> bool {
    path.rsplit_once('.').is_some_and(|(_, extension)| extension == "py")
}

/// The lines of a RECORD about shared libraries; the others are not needed.
fn libraries_of(record: &[u8]) -> Arc<str> {
    let record = String::from_utf8_lossy(record);
    let lines: Vec<&str> = record.lines().filter(|line| line.contains(".so")).collect();
    Arc::from(lines.join("\n"))
}

fn is_relevant_text(path: &str) -> bool {
    let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
    match name {
        "METADATA" => {
            let directory = directory.rsplit('/').next().unwrap_or_default();
            let stem = directory.strip_suffix(".dist-info").and_then(|stem| stem.rsplit_once('-'));
            stem.is_some_and(|(name, _)| is_watched(&normalized(name)))
        }
        "version.py" => directory.ends_with("/torch") || directory == "torch",
        "pyvenv.cfg" => true,
        "ld.so.conf" | "os-release" => directory == "etc" || directory == "usr/lib",
        _ if directory == "etc/ld.so.conf.d" => true,
        _ if directory.ends_with("conda-meta") => name.strip_suffix(".json").is_some_and(|stem| {
            let name = stem.rsplitn(3, '-').nth(2).unwrap_or_default();
            name == "pytorch" || is_watched(&normalized(name))
        }),
        _ => false,
    }
}

/// Reads an ELF file or a loose container.
pub(crate) fn read_elf(bytes: &[u8]) -> ElfFacts {
    let binary = match cudock_fatbin::read(bytes) {
        Ok(binary) => binary,
        Err(error) => return ElfFacts { damage: Some(error.to_string()), ..ElfFacts::default() },
    };
    let mut patterns: Vec<Pattern> = Vec::new();
    let mut linked_by = binary.cubin.as_ref().and_then(|cubin| cubin.toolkit);
    let few = binary.modules.len() <= MODULES_OPENED;
    // Targets beyond the modules are those of a bare cubin.
    let modules = binary.modules.iter().map(Some).chain(std::iter::repeat(None));
    for (module, targets) in modules.zip(binary.targets()) {
        let small =
            |module: &&Module| module.smallest_entry().is_some_and(|entry| entry.bytes <= SMALL_CUBIN);
        let cubin =
            module.filter(|module| few && small(module)).and_then(|module| module.smallest_cubin(bytes));
        if let Some(cubin) = cubin.filter(|cubin| cubin.kernels.is_empty()) {
            // The linker's own module has no kernels, but it names the toolkit that linked the program.
            linked_by = linked_by.or(cubin.toolkit);
            continue;
        }
        add(&mut patterns, targets);
    }
    // If the linked module has no kernel, only the parts are left.
    if patterns.is_empty() && !binary.linked_ptx().is_empty() {
        patterns.push(Pattern { ptx: binary.linked_ptx(), modules: 1, ..Pattern::default() });
    }
    let device_linked = binary.kind == FileKind::Elf
        && !binary.relocatable.is_empty()
        && binary.modules.iter().all(|module| module.device_linked);
    let strings = BinaryStrings::of(bytes, &binary.linkage);
    let (mut loose, mut is_own) = (false, false);
    if patterns.is_empty() && strings.opens_driver {
        let found = loose::find(bytes);
        patterns = found.patterns;
        loose = !patterns.is_empty();
        is_own = found.has_own_kernel && patterns.is_empty();
    }
    let toolkit =
        linked_by.or_else(|| binary.modules.iter().find_map(|module| module.smallest_cubin(bytes)?.toolkit));
    let code = (!patterns.is_empty()).then(|| FileCode {
        patterns,
        device_linked,
        loose,
        toolkit: toolkit.map(|(major, minor)| CudaVersion::new(major, minor)),
        embeds: strings.embeds.clone(),
        needed: binary.linkage.needed.clone(),
    });
    let driver = binary.linkage.soname.as_deref().filter(|soname| *soname == "libcuda.so.1");
    let note =
        driver.and_then(|_| compat_note(cudock_fatbin::section(bytes, ".note.cuda.fwd_compatibility")?));
    let damage = binary.damage.first().map(ToString::to_string);
    ElfFacts { linkage: binary.linkage, code, strings, note, damage, is_own }
}

fn add(patterns: &mut Vec<Pattern>, targets: Option<ModuleTargets>) {
    let Some(ModuleTargets { sass, grouped, ptx }) = targets else { return };
    Pattern { sass, grouped, ptx, modules: 1 }.add_to(patterns);
}

/// The newest PTX version of some modules.
pub(crate) fn newest_ptx(patterns: &[Pattern]) -> Option<PtxIsa> {
    patterns.iter().flat_map(|pattern| pattern.ptx.iter().map(|(_, isa)| *isa)).max()
}

/// Parses the note of a cuda-compat library: JSON after the header and the owner of the note.
fn compat_note(section: &[u8]) -> Option<CompatNote> {
    let start = section.iter().position(|byte| *byte == b'{')?;
    let end = section.iter().rposition(|byte| *byte == b'}')?;
    let value: serde_json::Value = serde_json::from_slice(section.get(start..=end)?).ok()?;
    let cuda = value.get("CUDA Version").and_then(serde_json::Value::as_str);
    let drivers = value.get("Driver").and_then(serde_json::Value::as_array).into_iter().flatten();
    let branches = drivers.filter_map(|branch| u16::try_from(branch.as_u64()?).ok()).collect();
    Some(CompatNote { cuda: cuda.and_then(|cuda| cuda.parse().ok()), branches })
}
