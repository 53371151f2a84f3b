//! What is kept of a file: most of an image is passed over.

use std::io;
use std::sync::Arc;

use cudock_facts::version::{Capability, CudaVersion, PtxArch, PtxIsa, SmArch, Variant};
use cudock_fatbin::{Arch, EntryKind, FileKind, Linkage, Module};
use cudock_host::python::{is_watched, normalised};
use cudock_image::{Content, Header};

use super::loose;
use super::words::Words;
use crate::evidence::{CompatNote, Pattern};

/// No text that is read is larger.
const MAX_TEXT: u64 = 4 << 20;
/// Modules that the linker adds are smaller, and files with more modules than this are judged by most of them.
const SMALL_CUBIN: u64 = 8 << 10;
const MODULES_OPENED: usize = 256;

/// What is kept of a file.
#[derive(Debug, Clone)]
pub(crate) enum Kept {
    Elf(Arc<ElfFacts>),
    Text(Arc<str>),
}

/// What an ELF file says.
#[derive(Debug, Clone, Default)]
pub(crate) struct ElfFacts {
    pub(crate) linkage: Linkage,
    pub(crate) code: Option<FileCode>,
    /// What the texts in it tell.
    pub(crate) words: Words,
    pub(crate) note: Option<CompatNote>,
    /// Why its GPU code could not be read.
    pub(crate) damage: Option<String>,
}

/// The GPU code of a file.
#[derive(Debug, Clone)]
pub(crate) struct FileCode {
    pub(crate) patterns: Vec<Pattern>,
    pub(crate) device_linked: bool,
    pub(crate) loose: bool,
    pub(crate) toolkit: Option<CudaVersion>,
}

/// Looks at a file of an image.
pub(crate) fn look(header: &Header, content: &mut Content<'_, '_>) -> io::Result<Option<Kept>> {
    if is_wanted_text(&header.path) {
        if header.size > MAX_TEXT {
            return Ok(None);
        }
        return Ok(Some(Kept::Text(text(content.all()?))));
    }
    if header.size < 64 || !is_wanted_code(content.start()?) {
        return Ok(None);
    }
    Ok(Some(Kept::Elf(Arc::new(read(content.all()?)))))
}

/// ELF files and loose containers; static archives are not loaded by anything.
fn is_wanted_code(start: &[u8]) -> bool {
    cudock_fatbin::is_candidate(start) && !start.starts_with(b"!<arch>")
}

fn text(bytes: &[u8]) -> Arc<str> {
    // A distribution's description is after the first empty line, and long.
    let text = String::from_utf8_lossy(bytes);
    Arc::from(text.as_ref())
}

fn is_wanted_text(path: &str) -> bool {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    match name {
        "METADATA" => {
            let folder = folder.rsplit('/').next().unwrap_or_default();
            let stem = folder.strip_suffix(".dist-info").and_then(|stem| stem.rsplit_once('-'));
            stem.is_some_and(|(name, _)| is_watched(&normalised(name)))
        }
        "version.py" => folder.ends_with("/torch") || folder == "torch",
        "pyvenv.cfg" => true,
        "ld.so.conf" | "os-release" => folder == "etc" || folder == "usr/lib",
        _ if folder == "etc/ld.so.conf.d" => true,
        _ if folder.ends_with("conda-meta") => name.strip_suffix(".json").is_some_and(|stem| {
            let name = stem.rsplitn(3, '-').nth(2).unwrap_or_default();
            name == "pytorch" || is_watched(&normalised(name))
        }),
        _ => false,
    }
}

/// Reads an ELF file or a loose container.
pub(crate) fn read(bytes: &[u8]) -> ElfFacts {
    let binary = match cudock_fatbin::read(bytes) {
        Ok(binary) => binary,
        Err(error) => return ElfFacts { damage: Some(error.to_string()), ..ElfFacts::default() },
    };
    let mut patterns: Vec<Pattern> = Vec::new();
    let mut linked_by = None;
    let few = binary.modules.len() <= MODULES_OPENED;
    for module in &binary.modules {
        let small = module.smallest_entry().is_some_and(|entry| entry.bytes <= SMALL_CUBIN);
        if few
            && small
            && let Some(cubin) = module.smallest_cubin(bytes).filter(|cubin| cubin.kernels.is_empty())
        {
            // The linker's own module: it runs nothing, and says which toolkit linked the program.
            linked_by = linked_by.or(cubin.toolkit);
            continue;
        }
        add(&mut patterns, pattern(module));
    }
    if let Some(cubin) = &binary.cubin {
        let sass = sm(cubin.arch).into_iter().collect();
        add(&mut patterns, Some(Pattern { sass, modules: 1, ..Pattern::default() }));
        linked_by = linked_by.or(cubin.toolkit);
    }
    let relinked = relinked(&binary.relocatable);
    let device_linked =
        cudock_fatbin::section(bytes, "__nv_relfatbin").is_some() && binary.kind == FileKind::Elf;
    if patterns.is_empty() && !relinked.is_empty() {
        patterns.push(Pattern { modules: 1, ..Pattern::default() });
    }
    for pattern in &mut patterns {
        pattern.ptx.extend(&relinked);
        pattern.ptx.sort();
        pattern.ptx.dedup();
    }
    let starts = Words::of(bytes, &binary.linkage);
    let mut loose = false;
    if patterns.is_empty() && starts.opens_driver {
        patterns = loose::patterns(bytes);
        loose = !patterns.is_empty();
    }
    let toolkit = linked_by.or_else(|| {
        let opened = binary.modules.iter().filter_map(|module| module.smallest_cubin(bytes)?.toolkit);
        opened.take(1).next()
    });
    let code = (!patterns.is_empty()).then(|| FileCode {
        patterns,
        device_linked,
        loose,
        toolkit: toolkit.map(|(major, minor)| CudaVersion::new(major, minor)),
    });
    let is_driver = binary.linkage.soname.as_deref() == Some("libcuda.so.1");
    let note = if is_driver {
        cudock_fatbin::section(bytes, ".note.cuda.fwd_compatibility").and_then(compat_note)
    } else {
        None
    };
    let damage = binary.damage.first().map(ToString::to_string);
    ElfFacts { linkage: binary.linkage, code, words: starts, note, damage }
}

/// PTX that the driver links anew where the linked code has nothing for a card.
fn relinked(modules: &[Module]) -> Vec<(PtxArch, PtxIsa)> {
    modules.iter().filter_map(pattern).flat_map(|pattern| pattern.ptx).collect()
}

fn add(patterns: &mut Vec<Pattern>, new: Option<Pattern>) {
    let Some(new) = new else { return };
    match patterns
        .iter_mut()
        .find(|known| known.sass == new.sass && known.ptx == new.ptx && known.grouped == new.grouped)
    {
        Some(known) => known.modules += 1,
        None => patterns.push(new),
    }
}

/// The targets of a module; none if all it holds is linked later.
fn pattern(module: &Module) -> Option<Pattern> {
    let mut pattern = Pattern { modules: 1, ..Pattern::default() };
    for entry in module.entries.iter().filter(|entry| !entry.is_lto() && !entry.is_stand_in()) {
        match entry.kind {
            EntryKind::Cubin => pattern.sass.extend(entry.arch.and_then(sm)),
            EntryKind::Group => {
                pattern.grouped.extend(entry.members.iter().filter_map(|member| sm(member.arch)));
            }
            EntryKind::Ptx => {
                let isa = u8::try_from(entry.version.0).ok().zip(u8::try_from(entry.version.1).ok());
                let arch = entry.arch.and_then(compute);
                pattern.ptx.extend(arch.zip(isa.map(|(major, minor)| PtxIsa::new(major, minor))));
            }
            EntryKind::Ir | EntryKind::Unknown(_) => {}
        }
    }
    for list in [&mut pattern.sass, &mut pattern.grouped] {
        list.sort();
        list.dedup();
    }
    pattern.ptx.sort();
    pattern.ptx.dedup();
    let emptied = module.entries.iter().any(cudock_fatbin::Entry::is_stand_in);
    (emptied || !pattern.sass.is_empty() || !pattern.grouped.is_empty() || !pattern.ptx.is_empty())
        .then_some(pattern)
}

fn parts(arch: Arch) -> Option<(Capability, Variant)> {
    let variant = match arch.variant {
        cudock_fatbin::Variant::Plain => Variant::Plain,
        cudock_fatbin::Variant::Family => Variant::Family,
        cudock_fatbin::Variant::Specific => Variant::Specific,
    };
    Some((Capability::from_number(u16::try_from(arch.number).ok()?)?, variant))
}

/// Machine code's target, as the tables have it.
pub fn sm(arch: Arch) -> Option<SmArch> {
    parts(arch).map(|(capability, variant)| SmArch::new(capability, variant))
}

/// PTX's target, as the tables have it.
pub fn compute(arch: Arch) -> Option<PtxArch> {
    parts(arch).map(|(capability, variant)| PtxArch::new(capability, variant))
}

/// The note of a cuda-compat library: after the note's header and its owner, a piece of JSON.
pub(crate) fn compat_note(section: &[u8]) -> Option<CompatNote> {
    let start = section.iter().position(|byte| *byte == b'{')?;
    let end = section.iter().rposition(|byte| *byte == b'}')?;
    let value: serde_json::Value = serde_json::from_slice(section.get(start..=end)?).ok()?;
    let cuda = value.get("CUDA Version").and_then(serde_json::Value::as_str);
    let drivers = value.get("Driver").and_then(serde_json::Value::as_array);
    Some(CompatNote {
        cuda: cuda.and_then(|cuda| cuda.parse().ok()),
        branches: drivers
            .into_iter()
            .flatten()
            .filter_map(|branch| u16::try_from(branch.as_u64()?).ok())
            .collect(),
    })
}
