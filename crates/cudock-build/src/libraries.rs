//! Chooses the shared libraries that run: what programs and kept libraries link to, and what they open at run time.
//!
//! Only NVIDIA's libraries are candidates for leaving out: everything else that was locked is there because something
//! asked for it. A library is found by its name, as the loader finds it in the image; so two of the same name are both kept.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use cudock_facts::tables::OpenedLibraries;
use cudock_lock::LayerGroup;

/// What is known of an ELF file of the plan.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct LinkedFile {
    pub(crate) path: String,
    pub(crate) group: Option<LayerGroup>,
    pub(crate) soname: Option<String>,
    pub(crate) needed: Vec<String>,
}

impl LinkedFile {
    fn names(&self) -> impl Iterator<Item = &str> {
        let file = self.path.rsplit('/').next();
        file.into_iter().chain(self.soname.as_deref())
    }

    fn is_candidate(&self) -> bool {
        self.group == Some(LayerGroup::Cuda)
    }
}

/// The libraries to keep, and why.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct KeptLibraries {
    /// By path: `needed by libtorch_cuda.so`.
    pub(crate) kept: BTreeMap<String, String>,
    pub(crate) unused: BTreeSet<String>,
    /// Libraries that something in the image opens, but not for this model.
    pub(crate) not_for_model: BTreeMap<String, String>,
}

/// Chooses among the files. `operators` are those of an ONNX model that is all the image runs; without it, everything that
/// may be opened stays.
pub(crate) fn choose(
    files: &[LinkedFile],
    table: &OpenedLibraries,
    operators: Option<&BTreeSet<String>>,
) -> KeptLibraries {
    let mut by_name: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    let mut by_stem: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (index, file) in files.iter().enumerate() {
        let names: BTreeSet<&str> = file.names().collect();
        let stems: BTreeSet<&str> = names.iter().map(|name| stem(name)).collect();
        for name in names {
            by_name.entry(name).or_default().push(index);
        }
        for stem in stems {
            by_stem.entry(stem).or_default().push(index);
        }
    }
    let mut result = KeptLibraries::default();
    let mut pending: VecDeque<usize> = VecDeque::new();
    let mut reached = BTreeSet::new();
    for (index, file) in files.iter().enumerate().filter(|(_, file)| !file.is_candidate()) {
        pending.push_back(index);
        reached.insert(index);
        result.kept.insert(file.path.clone(), String::new());
    }
    while let Some(index) = pending.pop_front() {
        let Some(file) = files.get(index) else { continue };
        let name = file.path.rsplit('/').next().unwrap_or_default();
        let mut found: Vec<(usize, String)> = Vec::new();
        for needed in &file.needed {
            let of_name = by_name.get(needed.as_str()).into_iter().flatten();
            found.extend(of_name.map(|other| (*other, format!("linked by {name}"))));
        }
        for row in table.opened.iter().filter(|row| row.opener == stem(name)) {
            let matching = by_stem.iter().filter(|(stem, _)| row.opens_name(stem)).flat_map(|(_, all)| all);
            let wanted = operators.is_none_or(|operators| {
                let has = |operator: &String| {
                    operators.contains(operator) || operators.contains(&format!("com.microsoft.{operator}"))
                };
                row.operators.is_empty() || row.operators.iter().any(has)
            });
            for other in matching {
                if wanted {
                    found.push((*other, format!("opened by {name}: {}", row.reason)));
                } else if let Some(file) = files.get(*other) {
                    let reason =
                        format!("the model has no operator that needs it ({})", row.operators.join(", "));
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
    let paths = files.iter().map(|file| &file.path);
    result.unused = paths.filter(|path| !result.kept.contains_key(*path)).cloned().collect();
    result.not_for_model.retain(|path, _| result.unused.contains(path));
    result
}

/// The name before `.so`.
pub(crate) fn stem(name: &str) -> &str {
    name.split_once(".so").map_or(name, |(stem, _)| stem)
}

/// Whether a file's name is that of a shared library.
pub(crate) fn is_library(name: &str) -> bool {
    name.strip_suffix(".so").is_some() || name.contains(".so.")
}

#[cfg(test)]
mod tests {
    use cudock_facts::Facts;

    use super::*;

    fn library(path: &str, group: LayerGroup, needed: &[&str]) -> LinkedFile {
        let needed = needed.iter().map(|name| (*name).to_owned()).collect();
        LinkedFile { path: path.to_owned(), group: Some(group), soname: None, needed }
    }

    fn stack() -> Vec<LinkedFile> {
        use LayerGroup::{Cuda, Framework};
        let provider = "libonnxruntime_providers_cuda.so";
        let mut files = vec![
            library("l/libonnxruntime.so.1", Framework, &[]),
            library(&format!("l/{provider}"), Framework, &["libcublas.so.13", "libcudart.so.13"]),
        ];
        for (name, needed) in [
            ("libcublas.so.13", &["libcublasLt.so.13"][..]),
            ("libcublasLt.so.13", &[]),
            ("libnvblas.so.13", &["libcublas.so.13"]),
            ("libcudart.so.13", &[]),
            ("libcufft.so.12", &[]),
            ("libcudnn.so.9", &[]),
            ("libcudnn_graph.so.9", &[]),
            ("libcudnn_adv.so.9", &[]),
            ("libnvrtc.so.13", &[]),
            ("libnvrtc-builtins.so.13.0", &[]),
        ] {
            files.push(library(&format!("l/{name}"), Cuda, needed));
        }
        files
    }

    fn kept(operators: Option<&[&str]>) -> Vec<String> {
        let operators = operators.map(|list| list.iter().map(|name| (*name).to_owned()).collect());
        let chosen = choose(&stack(), Facts::embedded().opened_libraries(), operators.as_ref());
        let names = chosen.kept.keys().filter_map(|path| path.strip_prefix("l/lib"));
        let mut stems: Vec<String> = names.map(|name| stem(name).to_owned()).collect();
        stems.sort();
        stems
    }

    #[test]
    fn the_operators_of_a_model_decide_what_is_opened() {
        let linked = ["cublas", "cublasLt", "cudart"];
        let of_runtime = ["onnxruntime", "onnxruntime_providers_cuda"];
        let expected = |more: &[&str]| {
            let mut all: Vec<String> =
                linked.iter().chain(more).chain(&of_runtime).map(|name| (*name).to_owned()).collect();
            all.sort();
            all
        };
        assert_eq!(kept(Some(&["MatMul", "Add"])), expected(&[]));
        let convolution = ["cudnn", "cudnn_graph", "nvrtc", "nvrtc-builtins"];
        assert_eq!(kept(Some(&["Conv", "Add"])), expected(&convolution));
        assert_eq!(kept(Some(&["com.microsoft.Rfft"])), expected(&["cufft"]));
        let recurrent = ["cudnn", "cudnn_adv", "cudnn_graph", "nvrtc", "nvrtc-builtins"];
        assert_eq!(kept(Some(&["LSTM"])), expected(&recurrent));
    }

    #[test]
    fn without_a_model_everything_that_may_be_opened_stays() {
        let kept = kept(None);
        assert!(kept.contains(&"cudnn_adv".to_owned()) && kept.contains(&"cufft".to_owned()));
        assert!(!kept.contains(&"nvblas".to_owned()));
    }

    #[test]
    fn what_a_model_does_not_need_has_a_reason() {
        let operators = BTreeSet::from(["MatMul".to_owned()]);
        let chosen = choose(&stack(), Facts::embedded().opened_libraries(), Some(&operators));
        assert!(chosen.not_for_model["l/libcudnn.so.9"].contains("Conv"));
        assert!(chosen.unused.contains("l/libnvblas.so.13"));
    }
}
