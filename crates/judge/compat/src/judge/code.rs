//! Decides whether GPU code loads on a GPU.

use std::collections::{BTreeMap, BTreeSet};

use cudock_base::text::path::file_name;
use cudock_facts::version::{Capability, CudaVersion, PtxArch, PtxIsa, SmArch, Variant};

use crate::evidence::{CodeFile, Pattern, Role};

/// Programs with more modules than this contain statically linked libraries, which choose among
/// theirs by the GPU.
const MANY_MODULES: u64 = 64;

/// The toolkit with which groups first appeared. Measured: a driver of 13.0 returns error 209 for a
/// program that has the GPU's code only in a group.
const GROUPS_FROM: CudaVersion = CudaVersion::new(13, 4);

/// The GPU and what its driver can load.
#[derive(Debug, Clone, Copy)]
pub(super) struct Card {
    pub(super) capability: Capability,
    /// The driver's CUDA.
    pub(super) cuda: Option<CudaVersion>,
    pub(super) ptx_isa: Option<PtxIsa>,
    pub(super) jit: Jit,
}

/// Whether PTX is compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Jit {
    /// Where there is no machine code.
    AsNeeded,
    /// Always: machine code is passed over.
    Forced,
    Off,
    /// The driver's compiler is not there.
    Missing,
}

/// How a module loads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Loads {
    Sass(SmArch),
    Jit(PtxArch),
    /// Its PTX is for this GPU, and in a language the driver does not know.
    TooNew(PtxArch, PtxIsa),
    /// Its PTX is for this GPU, and is not compiled.
    NotCompiled(PtxArch),
    /// It has nothing for this GPU.
    Nothing,
}

impl Loads {
    pub(super) fn works(self) -> bool {
        matches!(self, Loads::Sass(_) | Loads::Jit(_))
    }

    fn is_machine_code(self) -> bool {
        matches!(self, Loads::Sass(_))
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FileVerdict {
    /// How the deciding modules load.
    pub(super) decides: Loads,
    /// The number of deciding modules.
    pub(super) deciding: u64,
}

/// Whether machine code runs on a GPU. From CUDA 13.2 on, 7.2 and 8.7 run the code of their major version.
pub(super) fn runs(code: SmArch, card: Capability, toolkit: Option<CudaVersion>) -> bool {
    if code.runs_on(card) {
        return true;
    }
    let opened = [Capability::new(7, 2), Capability::new(8, 7)].contains(&card);
    let own = code.capability();
    opened
        && toolkit.is_some_and(|toolkit| toolkit >= CudaVersion::new(13, 2))
        && code.variant() != Variant::Specific
        && own.major() == card.major()
        && own.minor() <= card.minor()
}

/// How modules with these targets load.
pub(super) fn loads(pattern: &Pattern, card: Card, toolkit: Option<CudaVersion>) -> Loads {
    let opens_groups = card.cuda.is_none_or(|cuda| cuda >= GROUPS_FROM);
    let grouped = pattern.grouped.iter().filter(|_| opens_groups);
    let machine_code = pattern.sass.iter().chain(grouped);
    if card.jit != Jit::Forced
        && let Some(code) = machine_code.filter(|code| runs(**code, card.capability, toolkit)).max()
    {
        return Loads::Sass(*code);
    }
    let fitting = pattern.ptx.iter().filter(|(code, _)| code.compiles_for(card.capability));
    // The driver takes the nearest; of two in one module the languages are the same.
    let Some((code, isa)) = fitting.max() else { return Loads::Nothing };
    if matches!(card.jit, Jit::Off | Jit::Missing) {
        return Loads::NotCompiled(*code);
    }
    if card.ptx_isa.is_some_and(|understood| *isa > understood) {
        return Loads::TooNew(*code, *isa);
    }
    Loads::Jit(*code)
}

/// Libraries with less than this share of a package's modules do not represent it: one in twenty.
/// paddlepaddle-gpu 2.6.2 has 3 of 857 in helpers that support newer GPUs than its core; the core
/// of vLLM 0.9.2, which also has attention kernels, has 52 of 300, and that of xFormers 0.0.31 has
/// 18 of 171.
const MINOR_SHARE: u64 = 20;

/// Libraries whose machine code runs represent the package if they have a quarter of what loads;
/// otherwise most of it is compiled first. vLLM 0.9.2 on a B200 has 51 of 127 so; tensorflow 2.21.0
/// on an H100 has 81 of 1,479.
const MACHINE_CODE_SHARE: u64 = 4;

/// The verdict on a package's libraries, and the library that decides. Packages contain libraries
/// for features of some GPUs, such as attention kernels, so one that covers the GPU is enough,
/// unless it is a minor part of the package or links one that does not. Of several, the largest
/// decides.
pub(super) fn package<'f>(files: &[&'f CodeFile], card: Card) -> Option<(Loads, &'f CodeFile)> {
    let judged = best_copies(files.iter().filter_map(|file| Some((judge(file, card)?, *file))));
    let modules = |wanted: &dyn Fn(Loads) -> bool| -> u64 {
        judged
            .iter()
            .filter(|(verdict, _)| wanted(verdict.decides))
            .map(|(verdict, _)| verdict.deciding)
            .sum()
    };
    let (loading, all) = (modules(&Loads::works), modules(&|_| true));
    let machine_code = modules(&Loads::is_machine_code);
    let mut broken = judged.iter().filter(|(verdict, _)| !verdict.decides.works());
    let works = loading > 0
        && loading.saturating_mul(MINOR_SHARE) >= all
        && !broken.any(|(_, file)| judged.iter().any(|(other, by)| other.decides.works() && links(by, file)));
    let at_once = machine_code > 0 && machine_code.saturating_mul(MACHINE_CODE_SHARE) >= loading;
    let decides = |loads: Loads| loads.works() == works && (!works || loads.is_machine_code() == at_once);
    let deciding = judged.iter().filter(|(verdict, _)| decides(verdict.decides));
    deciding.max_by_key(|(verdict, _)| verdict.deciding).map(|(verdict, file)| (verdict.decides, *file))
}

/// Whether a library cannot be loaded without another.
fn links(library: &CodeFile, other: &CodeFile) -> bool {
    let name = file_name(&other.path);
    library.needed.iter().any(|needed| needed == name)
}

/// The files of a framework together: it does not matter which of them has a kernel.
pub(super) fn pooled(files: &[&CodeFile]) -> Option<CodeFile> {
    let first = files.first()?;
    let mut pool = CodeFile { patterns: Vec::new(), ..(*first).clone() };
    for pattern in files.iter().flat_map(|file| &file.patterns) {
        pattern.clone().add_to(&mut pool.patterns);
    }
    Some(pool)
}

/// The best copy of each library: of those for several CUDA versions
/// (`libbitsandbytes_cuda128.so`), only one is loaded.
fn best_copies<'f>(
    judged: impl Iterator<Item = (FileVerdict, &'f CodeFile)>,
) -> Vec<(FileVerdict, &'f CodeFile)> {
    let mut best: BTreeMap<String, (FileVerdict, &'f CodeFile)> = BTreeMap::new();
    for (verdict, file) in judged {
        let name = without_cuda_version(&file.path);
        if best.get(&name).is_none_or(|(known, _)| verdict.decides < known.decides) {
            best.insert(name, (verdict, file));
        }
    }
    best.into_values().collect()
}

/// A path without the digits after `cuda` or `cu` in the file's name.
fn without_cuda_version(path: &str) -> String {
    let (directory, file) = path.rsplit_once('/').unwrap_or(("", path));
    let mut name = format!("{directory}/");
    let mut rest = file;
    while let Some(at) = rest.find("cu") {
        let (before, found) = rest.split_at(at);
        let after = found.strip_prefix("cuda").or_else(|| found.strip_prefix("cu")).unwrap_or(found);
        name.push_str(before);
        name.push_str("cu");
        rest = after.trim_start_matches(|c: char| c.is_ascii_digit());
    }
    name.push_str(rest);
    name
}

/// Whether a module was made for some GPUs alone: it has nothing but `a` and `f` targets.
fn is_special(pattern: &Pattern) -> bool {
    pattern.sass.iter().chain(&pattern.grouped).all(|code| code.variant() != Variant::Plain)
        && pattern.ptx.iter().all(|(code, _)| code.variant() != Variant::Plain)
}

/// The verdict on a file's modules, by its role.
pub(super) fn judge(file: &CodeFile, card: Card) -> Option<FileVerdict> {
    let answers: Vec<(&Pattern, Loads)> =
        file.patterns.iter().map(|pattern| (pattern, loads(pattern, card, file.toolkit))).collect();
    let total: u64 = answers.iter().map(|(pattern, _)| pattern.modules).sum();
    let general: Vec<&(&Pattern, Loads)> =
        answers.iter().filter(|(pattern, _)| !is_special(pattern)).collect();
    // A file of special modules alone has no others to decide.
    let deciding: Vec<&(&Pattern, Loads)> =
        if general.is_empty() { answers.iter().collect() } else { general };
    let many = total > MANY_MODULES;
    let decides = match file.role {
        Role::Program if !many => deciding.iter().map(|(_, loads)| *loads).max()?,
        Role::Vendor => answers.iter().map(|(_, loads)| *loads).min()?,
        Role::Program | Role::Framework => majority(&deciding)?,
    };
    let deciding = deciding.iter().map(|(pattern, _)| pattern.modules).sum();
    Some(FileVerdict { decides, deciding })
}

/// How most modules load: it works if at least as many of them load as do not.
fn majority(deciding: &[&(&Pattern, Loads)]) -> Option<Loads> {
    let count = |wanted: &dyn Fn(Loads) -> bool| -> u64 {
        deciding.iter().filter(|(_, loads)| wanted(*loads)).map(|(pattern, _)| pattern.modules).sum()
    };
    let works = count(&|loads| loads.works());
    let fails = count(&|loads| !loads.works());
    let side = works >= fails && works > 0;
    let of_side = deciding.iter().filter(|(_, loads)| loads.works() == side);
    of_side.max_by_key(|(pattern, _)| pattern.modules).map(|(_, loads)| *loads)
}

/// The modules that do not load: how many of how many, and what they are.
pub(super) fn failing(file: &CodeFile, card: Card) -> (u64, u64, Vec<Pattern>) {
    let fails = |pattern: &&Pattern| !loads(pattern, card, file.toolkit).works();
    let failing: Vec<Pattern> = file.patterns.iter().filter(fails).cloned().collect();
    let count = |patterns: &[Pattern]| patterns.iter().map(|pattern| pattern.modules).sum();
    (count(&failing), count(&file.patterns), failing)
}

/// The newest PTX version in a file: that of its toolkit.
pub(super) fn newest_isa(file: &CodeFile) -> Option<PtxIsa> {
    file.patterns.iter().flat_map(|pattern| pattern.ptx.iter().map(|(_, isa)| *isa)).max()
}

pub(super) fn targets(patterns: &[Pattern]) -> String {
    let mut names = sorted(patterns.iter().flat_map(|pattern| &pattern.sass), ToString::to_string);
    names.extend(sorted(patterns.iter().flat_map(|pattern| &pattern.grouped), |code| {
        format!("{code} (grouped)")
    }));
    names.extend(sorted(patterns.iter().flat_map(|pattern| &pattern.ptx), |(code, isa)| {
        format!("{code} (PTX {isa})")
    }));
    if names.is_empty() { "nothing".to_owned() } else { names.join(" ") }
}

/// Each once, in order, as text.
fn sorted<'p, T: Ord + 'p>(all: impl Iterator<Item = &'p T>, name: impl Fn(&T) -> String) -> Vec<String> {
    let all: BTreeSet<&T> = all.collect();
    all.into_iter().map(name).collect()
}

/// Machine code for a GPU that is in a group, which its driver does not open.
pub(super) fn closed_group(patterns: &[Pattern], card: Capability) -> Option<SmArch> {
    patterns.iter().flat_map(|pattern| &pattern.grouped).find(|code| runs(**code, card, None)).copied()
}
