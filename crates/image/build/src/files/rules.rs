//! Rules that leave files out of an image. Each has a name, which `[image.rules]` can turn off, and a reason, which
//! `--explain-size` prints.

use std::collections::BTreeMap;

use cudock_base::UsageError;
use cudock_lock::{LayerGroup, SMALL_CUDNN};

use crate::files::file::ImageFile;

/// A rule by which files are left out.
#[derive(Debug)]
pub struct Rule {
    pub name: &'static str,
    /// The files it leaves out, and why they are not needed.
    pub reason: &'static str,
    /// Whether it looks at single files; the others are applied where libraries and GPU code are chosen.
    applies: Option<fn(&ImageFile) -> bool>,
}

pub(crate) const UNUSED_LIBRARIES: &str = "unused-libraries";
pub(crate) const UNUSABLE_PROVIDERS: &str = "unusable-providers";
pub(crate) const UNUSED_LINKS: &str = "unused-links";
pub(crate) const GPU_CODE: &str = "gpu-code";

/// All rules, in the order in which they are applied.
pub const RULES: [Rule; 12] = [
    Rule {
        name: "static-archives",
        reason: "static archives and object files, which only a compiler reads",
        applies: Some(|file| has_suffix(file, &[".a", ".o", ".la", ".lib"]) && is_of_package(file)),
    },
    Rule {
        name: "headers",
        reason: "headers, CMake and pkg-config files, which only a compiler reads",
        applies: Some(is_header),
    },
    Rule {
        name: "documentation",
        reason: "manuals and documentation; licenses stay",
        applies: Some(is_documentation),
    },
    Rule {
        name: "translations",
        reason: "messages in other languages, and descriptions for package managers",
        applies: Some(|file| {
            is_deb(file)
                && below(
                    file,
                    &["usr/share/locale", "usr/share/lintian", "usr/share/bug", "usr/share/doc-base"],
                )
        }),
    },
    Rule { name: "tests", reason: "tests of Python packages", applies: Some(is_test) },
    Rule {
        name: "bytecode",
        reason: "compiled Python files, which depend on the time of the source; Python makes its own",
        applies: Some(|file| {
            has_suffix(file, &[".pyc"])
                || file.path.contains("/__pycache__/")
                || file.path.ends_with("/__pycache__")
        }),
    },
    Rule {
        name: "build-tools",
        reason: "compilers and debuggers in NVIDIA's wheels that only builds use",
        applies: Some(is_build_tool),
    },
    Rule {
        name: UNUSED_LIBRARIES,
        reason: "CUDA libraries that nothing in the image links to or opens",
        applies: None,
    },
    Rule {
        name: UNUSABLE_PROVIDERS,
        reason: "providers of ONNX Runtime that need a library which is not in the image",
        applies: None,
    },
    Rule {
        name: UNUSED_LINKS,
        reason: "CUDA libraries that ONNX Runtime is linked to, but uses nothing of: an empty library takes their place",
        applies: None,
    },
    Rule {
        name: SMALL_CUDNN,
        reason: "the newest releases of cuDNN, for GPUs older than Blackwell: 9.19 is much smaller; applied by \
                 `cudock lock`",
        applies: None,
    },
    Rule { name: GPU_CODE, reason: "GPU code for other cards than the targets", applies: None },
];

/// The rules of one build.
#[derive(Debug, Clone)]
pub struct RuleSet {
    off: Vec<&'static str>,
}

impl RuleSet {
    /// The rules with the choices of `[image.rules]`.
    pub fn new(choices: &BTreeMap<String, bool>) -> Result<Self, UsageError> {
        let mut off = Vec::new();
        for (name, on) in choices {
            let Some(rule) = RULES.iter().find(|rule| rule.name == name) else {
                let names = RULES.map(|rule| rule.name);
                let near = cudock_base::text::suggest::nearest(name, names);
                return Err(UsageError::new(format!("[image.rules]: unknown rule `{name}`"))
                    .near(&near)
                    .hint(format!("the rules are {}", names.join(", "))));
            };
            if !on {
                off.push(rule.name);
            }
        }
        Ok(Self { off })
    }

    pub fn has(&self, name: &str) -> bool {
        !self.off.contains(&name)
    }

    /// The rule that leaves a file out.
    pub fn omits(&self, file: &ImageFile) -> Option<&'static Rule> {
        RULES.iter().find(|rule| rule.applies.is_some_and(|applies| applies(file)) && self.has(rule.name))
    }
}

fn has_suffix(file: &ImageFile, suffixes: &[&str]) -> bool {
    suffixes.iter().any(|suffix| file.path.ends_with(suffix))
}

fn below(file: &ImageFile, directories: &[&str]) -> bool {
    directories.iter().any(|directory| {
        file.path.strip_prefix(directory).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    })
}

fn is_deb(file: &ImageFile) -> bool {
    matches!(file.origin.group, LayerGroup::System | LayerGroup::Python)
}

/// Files of the project are never left out.
fn is_of_package(file: &ImageFile) -> bool {
    !matches!(file.origin.group, LayerGroup::Model | LayerGroup::Program)
}

fn parts(file: &ImageFile) -> impl Iterator<Item = &str> {
    file.path.split('/')
}

fn is_header(file: &ImageFile) -> bool {
    if !is_of_package(file) {
        return false;
    }
    // Triton and torch's inductor compile at run time, with headers of their own packages.
    let compiles = file.path.contains("/triton/") || file.path.contains("/torch/include/");
    let in_place =
        below(file, &["usr/include", "usr/local/include", "usr/share/pkgconfig", "usr/lib/pkgconfig"])
            || parts(file).any(|part| matches!(part, "cmake" | "pkgconfig"))
                && has_suffix(file, &[".cmake", ".pc"]);
    let of_nvidia = file.path.contains("/nvidia/") && parts(file).any(|part| part == "include");
    !compiles && (in_place || of_nvidia)
}

fn is_documentation(file: &ImageFile) -> bool {
    let name = file.name().to_ascii_lowercase();
    if ["copyright", "license", "licence", "notice"].iter().any(|word| name.contains(word)) {
        return false;
    }
    let directories =
        ["usr/share/doc", "usr/share/man", "usr/share/info", "usr/local/share/man", "usr/local/share/doc"];
    // Directories disappear with their last file.
    is_of_package(file) && !file.kind.is_directory() && below(file, &directories)
}

fn is_test(file: &ImageFile) -> bool {
    let packages = ["/dist-packages/", "/site-packages/"];
    let inside = packages.iter().find_map(|marker| file.path.split_once(marker)).map(|(_, inside)| inside);
    let standard = file.path.starts_with("usr/lib/python3") && file.origin.group == LayerGroup::Python;
    let Some(inside) = inside.or(standard.then_some(file.path.as_str())) else { return false };
    // `numpy.testing` and the like are imported by programs, `numpy/core/tests` is not.
    is_of_package(file)
        && inside.split('/').skip(1).any(|part| matches!(part, "tests" | "test"))
        && !inside.starts_with("torch/testing")
}

fn is_build_tool(file: &ImageFile) -> bool {
    let of_nvidia = file.path.contains("/nvidia/") && file.origin.group == LayerGroup::Cuda;
    let tools = [
        "nvcc",
        "ptxas",
        "cicc",
        "nvlink",
        "fatbinary",
        "cudafe++",
        "bin2c",
        "nvprune",
        "cuobjdump",
        "nvdisasm",
    ];
    of_nvidia && parts(file).any(|part| part == "bin") && tools.contains(&file.name())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::file::FileOrigin;

    fn omitted(group: LayerGroup, path: &str) -> Option<&'static str> {
        let origin = FileOrigin::new(group, "package", "reason");
        let rules = RuleSet::new(&BTreeMap::new()).unwrap();
        rules.omits(&ImageFile::generated(path, "", &origin)).map(|rule| rule.name)
    }

    #[test]
    fn rules_leave_out_what_only_builds_and_readers_need() {
        use LayerGroup::{Cuda, Dependencies, Framework, Program, Python, System};
        let site = "usr/local/lib/python3.11/dist-packages";
        for (group, path, expected) in [
            (System, "usr/lib/x86_64-linux-gnu/libc.a".to_owned(), Some("static-archives")),
            (System, "usr/lib/x86_64-linux-gnu/libc.so.6".to_owned(), None),
            (System, "usr/share/doc/libc6/changelog.gz".to_owned(), Some("documentation")),
            (System, "usr/share/doc/libc6/copyright".to_owned(), None),
            (System, "usr/share/locale/de/LC_MESSAGES/a.mo".to_owned(), Some("translations")),
            (Python, "usr/lib/python3.11/test/support.py".to_owned(), Some("tests")),
            (Python, "usr/lib/python3.11/json/decoder.py".to_owned(), None),
            (Cuda, format!("{site}/nvidia/cu13/include/cuda.h"), Some("headers")),
            (Cuda, format!("{site}/nvidia/cu13/bin/ptxas"), Some("build-tools")),
            (Cuda, format!("{site}/nvidia/cu13/lib/libcublas.so.13"), None),
            (Framework, format!("{site}/torch/include/ATen/ATen.h"), None),
            (Framework, format!("{site}/triton/backends/nvidia/bin/ptxas"), None),
            (Framework, format!("{site}/torch/testing/_internal/common.py"), None),
            (Dependencies, format!("{site}/numpy/tests/test_a.py"), Some("tests")),
            (Dependencies, format!("{site}/tests/test_a.py"), None),
            (Dependencies, format!("{site}/numpy/testing/_private.py"), None),
            (Dependencies, format!("{site}/a/__pycache__/b.cpython-311.pyc"), Some("bytecode")),
            (Program, "app/tests/data.a".to_owned(), None),
        ] {
            assert_eq!(omitted(group, &path), expected, "{path}");
        }
    }

    #[test]
    fn an_unknown_rule_is_an_error_with_the_nearest() {
        let error = RuleSet::new(&BTreeMap::from([("header".to_owned(), false)])).unwrap_err();
        assert_eq!(error.to_string(), "[image.rules]: unknown rule `header`");
        let rules =
            RuleSet::new(&BTreeMap::from([("headers".to_owned(), false), ("tests".to_owned(), true)]))
                .unwrap();
        assert!(!rules.has("headers") && rules.has("tests"));
    }
}
