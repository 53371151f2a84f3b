//! Chooses the shared libraries that run: what programs and kept libraries link to, and what they open at run time.
//! Only NVIDIA's libraries are candidates for leaving out: everything else was requested
//! explicitly. A library is found by its name, as the loader finds it; so two of the same name are
//! both kept.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use cudock_facts::tables::OpenedLibraries;

use crate::elf::Linkage;

/// An ELF file of an image, with its dependencies.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LinkedFile {
    pub path: String,
    /// Whether it may be left out.
    pub is_candidate: bool,
    pub linkage: Linkage,
    /// The CUDA libraries that it names and so may open, before `.so`.
    pub named: BTreeSet<String>,
}

impl LinkedFile {
    /// Reads a file's dependencies; none if it is not an ELF file. Without a model, files that are
    /// not NVIDIA's may open libraries that they name; those that NVIDIA's open are in the table.
    pub fn read(path: &str, bytes: &[u8], is_candidate: bool, has_model: bool) -> Option<Self> {
        let linkage = crate::elf::dynamic_linkage(bytes)?;
        let named = if is_candidate || has_model { BTreeSet::new() } else { named_libraries(bytes) };
        Some(Self { path: path.to_owned(), is_candidate, linkage, named })
    }

    /// The name without its directories.
    pub fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        [self.name()].into_iter().chain(self.linkage.soname.as_deref())
    }

    /// Whether it uses something of a library that it is linked to. A library with symbol versions has two at least, its own
    /// name and the first; a file that uses a symbol of it requires one.
    fn uses(&self, needed: &str, library: &LinkedFile) -> bool {
        library.linkage.defines.len() < 2
            || self.linkage.versions.iter().any(|version| version.library == needed)
    }
}

/// The known use of an image.
#[derive(Debug, Clone, Copy, Default)]
pub struct KnownUse<'a> {
    /// The operators of an ONNX model that is all the image runs. Without it, everything that may be opened stays.
    pub operators: Option<&'a BTreeSet<String>>,
    /// Whether an empty library may take the place of one that is linked, but not used: nothing else opens it.
    pub hollow: bool,
}

/// The libraries to keep, and why.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct KeptLibraries {
    /// Reasons by path: `linked by libtorch_cuda.so`.
    pub kept: BTreeMap<String, String>,
    /// Linked, but nothing of them is used; with the reason.
    pub hollow: BTreeMap<String, String>,
    pub unused: BTreeSet<String>,
    /// The unused libraries that something in the image opens, but not for this model.
    pub not_for_model: BTreeMap<String, String>,
}

impl KeptLibraries {
    /// Chooses among the ELF files of an image.
    pub fn of(files: &[LinkedFile], table: &OpenedLibraries, known: KnownUse<'_>) -> Self {
        let mut by_name: BTreeMap<&str, BTreeSet<usize>> = BTreeMap::new();
        let mut by_stem: BTreeMap<&str, BTreeSet<usize>> = BTreeMap::new();
        for (index, file) in files.iter().enumerate() {
            for name in file.names() {
                by_name.entry(name).or_default().insert(index);
                by_stem.entry(library_stem(name)).or_default().insert(index);
            }
        }
        let mut result = Self::default();
        let mut pending: VecDeque<usize> = VecDeque::new();
        let mut reached = BTreeSet::new();
        for (index, file) in files.iter().enumerate().filter(|(_, file)| !file.is_candidate) {
            pending.push_back(index);
            reached.insert(index);
            result.kept.insert(file.path.clone(), String::new());
        }
        while let Some(index) = pending.pop_front() {
            let Some(file) = files.get(index) else { continue };
            let name = file.name();
            let mut found: Vec<(usize, String)> = Vec::new();
            for needed in &file.linkage.needed {
                for other in by_name.get(needed.as_str()).into_iter().flatten() {
                    let Some(library) = files.get(*other) else { continue };
                    if known.hollow && library.is_candidate && !file.uses(needed, library) {
                        let reason = format!("linked by {name}, which uses nothing of it");
                        result.hollow.insert(library.path.clone(), reason);
                    } else {
                        found.push((*other, format!("linked by {name}")));
                    }
                }
            }
            for other in file.named.iter().filter_map(|stem| by_stem.get(stem.as_str())).flatten() {
                found.push((*other, format!("named in {name}")));
            }
            for row in table.opened.iter().filter(|row| row.opener == library_stem(name)) {
                let matching =
                    by_stem.iter().filter(|(stem, _)| row.opens_name(stem)).flat_map(|(_, all)| all);
                for other in matching {
                    if row.is_needed(known.operators) {
                        found.push((*other, format!("opened by {name}: {}", row.reason)));
                    } else if let Some(file) = files.get(*other) {
                        let reason = match row.operators.as_slice() {
                            [] => format!("no model needs it: {}", row.reason),
                            names => {
                                format!("the model has no operator that needs it ({})", names.join(", "))
                            }
                        };
                        result.not_for_model.insert(file.path.clone(), reason);
                    }
                }
            }
            for (other, reason) in found {
                if reached.insert(other)
                    && let Some(file) = files.get(other)
                {
                    result.kept.insert(file.path.clone(), reason);
                    pending.push_back(other);
                }
            }
        }
        result.hollow.retain(|path, _| !result.kept.contains_key(path));
        let paths = files.iter().map(|file| &file.path).filter(|path| !result.hollow.contains_key(*path));
        result.unused = paths.filter(|path| !result.kept.contains_key(*path)).cloned().collect();
        result.not_for_model.retain(|path, _| result.unused.contains(path));
        result
    }
}

/// The name before `.so`.
pub fn library_stem(name: &str) -> &str {
    name.split_once(".so").map_or(name, |(stem, _)| stem)
}

/// Whether a file's name is that of a shared library.
pub fn is_library(name: &str) -> bool {
    name.strip_suffix(".so").is_some() || name.contains(".so.")
}

/// Name prefixes of the libraries of CUDA and of those that NVIDIA publishes with it. The driver's
/// are not among them: containers get those from their host.
const OF_NVIDIA: [&str; 24] = [
    "libcublas",
    "libcudart",
    "libcudnn",
    "libcufft",
    "libcufile",
    "libcuinj64",
    "libcupti",
    "libcurand",
    "libcusolver",
    "libcusparse",
    "libcutensor",
    "libnccl",
    "libnpp",
    "libnvJitLink",
    "libnvblas",
    "libnvToolsExt",
    "libnvfatbin",
    "libnvinfer",
    "libnvjpeg",
    "libnvonnxparser",
    "libnvperf_",
    "libnvrtc",
    "libnvshmem",
    "libnvvm",
];

/// Whether a file's name is that of a library of CUDA, or of one that NVIDIA publishes with it.
pub fn is_cuda_library(name: &str) -> bool {
    is_library(name) && OF_NVIDIA.iter().any(|prefix| name.starts_with(prefix))
}

/// A name is not longer.
const MAX_NAME: usize = 64;

/// The CUDA libraries that a file names: `libcudnn` for `libcudnn.so.9`. What a program opens is mostly a constant in it.
fn named_libraries(bytes: &[u8]) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for at in memchr::memmem::find_iter(bytes, b".so") {
        let before = bytes.get(at.saturating_sub(MAX_NAME)..at).unwrap_or_default();
        let is_outside = |byte: &u8| !byte.is_ascii_alphanumeric() && !matches!(byte, b'_' | b'-');
        let start = before.iter().rposition(is_outside).map_or(0, |last| last + 1);
        let name = before.get(start..).and_then(|name| std::str::from_utf8(name).ok()).unwrap_or_default();
        if OF_NVIDIA.iter().any(|prefix| name.starts_with(prefix)) {
            names.insert(name.to_owned());
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use cudock_facts::Facts;

    use super::*;
    use crate::elf::VersionNeed;

    /// A file that uses everything it is linked to.
    fn library(name: &str, is_candidate: bool, needed: &[&str]) -> LinkedFile {
        let needed: Vec<String> = needed.iter().map(|name| (*name).to_owned()).collect();
        let need = |library: &String| VersionNeed { library: library.clone(), version: library.clone() };
        let versions = needed.iter().map(need).collect();
        let defines = vec![name.to_owned(); 2];
        let linkage = Linkage { needed, versions, defines, ..Linkage::default() };
        LinkedFile { path: format!("l/{name}"), is_candidate, linkage, ..LinkedFile::default() }
    }

    fn stack() -> Vec<LinkedFile> {
        let linked = ["libcublas.so.13", "libcudart.so.13", "libcurand.so.10"];
        let mut provider = library("libonnxruntime_providers_cuda.so", false, &linked);
        provider.linkage.versions.retain(|need| need.library != "libcurand.so.10");
        let mut files = vec![library("libonnxruntime.so.1", false, &[]), provider];
        for (name, needed) in [
            ("libcublas.so.13", &["libcublasLt.so.13"][..]),
            ("libcublasLt.so.13", &[]),
            ("libnvblas.so.13", &["libcublas.so.13"]),
            ("libcudart.so.13", &[]),
            ("libcufft.so.12", &[]),
            ("libcurand.so.10", &[]),
            ("libcudnn.so.9", &[]),
            ("libcudnn_graph.so.9", &[]),
            ("libcudnn_adv.so.9", &[]),
            ("libcudnn_ext.so.9", &[]),
            ("libnvrtc.so.13", &[]),
            ("libnvrtc-builtins.so.13.0", &[]),
        ] {
            files.push(library(name, true, needed));
        }
        files
    }

    fn choose(operators: Option<&[&str]>, hollow: bool) -> KeptLibraries {
        let operators = operators.map(|list| list.iter().map(|name| (*name).to_owned()).collect());
        let known = KnownUse { operators: operators.as_ref(), hollow };
        KeptLibraries::of(&stack(), Facts::embedded().opened_libraries(), known)
    }

    fn kept(operators: Option<&[&str]>) -> Vec<String> {
        let chosen = choose(operators, false);
        let names = chosen.kept.keys().filter_map(|path| path.strip_prefix("l/lib"));
        let names = names.filter(|name| !name.starts_with("onnxruntime"));
        names.map(|name| library_stem(name).to_owned()).collect()
    }

    #[test]
    fn the_operators_of_a_model_decide_what_is_opened() {
        let linked = ["cublas", "cublasLt", "cudart"];
        let expected = |more: &[&str]| {
            let all = linked.iter().chain(more).chain(&["curand"]);
            all.map(|name| (*name).to_owned()).collect::<BTreeSet<String>>()
        };
        let kept = |operators: &[&str]| kept(Some(operators)).into_iter().collect::<BTreeSet<String>>();
        for transformer in [
            &["MatMul", "Add", "Softmax", "LayerNormalization"][..],
            &["Attention"],
            &["ReduceMean", "ArgMax"],
        ] {
            assert_eq!(kept(transformer), expected(&[]), "{transformer:?}");
        }
        let cudnn = ["cudnn", "cudnn_graph", "nvrtc", "nvrtc-builtins"];
        for operator in ["Conv", "com.microsoft.Attention", "ReduceMean(inner)", "ReduceMax"] {
            assert_eq!(kept(&[operator, "Add"]), expected(&cudnn), "{operator}");
        }
        assert_eq!(kept(&["com.microsoft.Rfft"]), expected(&["cufft", "nvrtc", "nvrtc-builtins"]));
        let recurrent = ["cudnn", "cudnn_adv", "cudnn_graph", "nvrtc", "nvrtc-builtins"];
        assert_eq!(kept(&["LSTM"]), expected(&recurrent));
    }

    #[test]
    fn without_a_model_everything_that_may_be_opened_stays() {
        let chosen = choose(None, false);
        assert_eq!(chosen.unused.iter().collect::<Vec<_>>(), ["l/libnvblas.so.13"]);
    }

    #[test]
    fn what_a_model_does_not_need_has_a_reason() {
        let chosen = choose(Some(&["MatMul"]), false);
        assert!(chosen.not_for_model["l/libcudnn.so.9"].contains("Conv"));
        assert!(chosen.unused.contains("l/libnvblas.so.13"));
        let chosen = choose(Some(&["Conv"]), false);
        assert!(chosen.not_for_model["l/libcudnn_ext.so.9"].starts_with("no model needs it"));
    }

    #[test]
    fn a_library_of_which_nothing_is_used_is_hollow_unless_its_symbols_have_no_versions() {
        assert_eq!(choose(None, true).hollow.keys().collect::<Vec<_>>(), ["l/libcurand.so.10"]);
        assert!(choose(None, false).kept.contains_key("l/libcurand.so.10"));
        let mut files = stack();
        for file in &mut files {
            file.linkage.defines.clear();
        }
        let known = KnownUse { operators: None, hollow: true };
        let chosen = KeptLibraries::of(&files, Facts::embedded().opened_libraries(), known);
        assert!(chosen.hollow.is_empty() && chosen.kept.contains_key("l/libcurand.so.10"));
    }

    #[test]
    fn a_library_that_a_program_names_stays() {
        let names =
            named_libraries(b"\x01libnvblas.so.13\0libcuda.so.1\0/opt/libcufft.so\0xlibcurand.so\0.so");
        assert_eq!(names, BTreeSet::from(["libcufft".to_owned(), "libnvblas".to_owned()]));
        let mut files = stack();
        files[0].named = names;
        let chosen = KeptLibraries::of(&files, Facts::embedded().opened_libraries(), KnownUse::default());
        assert_eq!(chosen.kept["l/libnvblas.so.13"], "named in libonnxruntime.so.1");
        assert!(chosen.unused.is_empty());
    }

    #[test]
    fn libraries_of_the_driver_and_of_frameworks_are_not_cudas() {
        for name in ["libcudnn_ops.so.9", "libcublasLt.so.13.8.2", "libnccl.so"] {
            assert!(is_cuda_library(name), "{name}");
        }
        for name in ["libcuda.so.1", "libnvidia-ml.so.1", "libtorch_cuda.so", "libcudnn.h", "libcurl.so.4"] {
            assert!(!is_cuda_library(name), "{name}");
        }
    }
}
