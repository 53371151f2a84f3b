//! Searches the strings of a binary: which libraries it opens with dlopen, and whether a CUDA runtime is linked in.

use cudock_base::bug::Parts;
use cudock_fatbin::Linkage;
use memchr::memmem;

/// The limit of library names from one program.
const MAX_NAMES: usize = 64;
/// Maximum size of a section that is searched for names.
const MAX_SECTION: usize = 64 << 20;

/// An ELF file's use of CUDA, as seen from its strings.
#[derive(Debug, Clone, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is an observation of its own")]
pub(crate) struct BinaryStrings {
    /// Whether a CUDA runtime is linked into it.
    pub(crate) runtime_inside: bool,
    /// Whether it loads libcuda, as a dependency or with dlopen.
    pub(crate) opens_driver: bool,
    /// Whether it compiles GPU code when it runs.
    pub(crate) compiles: bool,
    /// Libraries it may open with dlopen.
    pub(crate) opens: Vec<String>,
    /// Whether it can load the driver at all: it links or names libcuda, NVRTC or the CUDA runtime, or contains the runtime.
    /// Also set for libraries, unlike `opens_driver`.
    pub(crate) reaches_driver: bool,
    /// NVIDIA's libraries that are linked into it statically and choose kernels by the GPU.
    pub(crate) embeds: Vec<&'static str>,
}

/// Variables that switch on the logs of NVIDIA's libraries: only the libraries themselves contain these names.
const EMBEDDED: [(&str, &str); 2] = [("cuBLAS", "CUBLAS_LOGDEST_DBG"), ("cuDNN", "CUDNN_LOGDEST_DBG")];
/// Names that only occur in files that load the driver or compile for it.
const DRIVER_NAMES: [&str; 2] = ["libcuda.so", "libnvrtc.so"];

impl BinaryStrings {
    pub(crate) fn of(bytes: &[u8], linkage: &Linkage) -> Self {
        let needs = |prefix: &str| linkage.needed.iter().any(|name| name.starts_with(prefix));
        let sections = cudock_fatbin::sections(bytes, ".rodata");
        let has = |wanted: &str| sections.iter().any(|data| memmem::find(data, wanted.as_bytes()).is_some());
        let has_whole = |wanted: &str| sections.iter().any(|data| has_c_string(data, wanted));
        let runtime_inside =
            !needs("libcudart.") && has_whole("CUDA driver version is insufficient for CUDA runtime version");
        let is_program = linkage.interpreter.is_some()
            && sections.iter().map(|data| data.len()).sum::<usize>() <= MAX_SECTION;
        let links = ["libcuda.so", "libcudart.so", "libnvrtc.so"].into_iter().any(needs);
        let embedded =
            EMBEDDED.iter().filter(|(_, variable)| has_whole(variable)).map(|(library, _)| *library);
        Self {
            reaches_driver: runtime_inside || links || DRIVER_NAMES.iter().any(|name| has(name)),
            embeds: embedded.collect(),
            runtime_inside,
            opens_driver: needs("libcuda.so") || (is_program && has("libcuda.so")),
            compiles: needs("libnvrtc.") || (is_program && has("libnvrtc.so")),
            opens: sections
                .iter()
                .filter(|_| is_program)
                .flat_map(|data| library_names(data))
                .take(MAX_NAMES)
                .collect(),
        }
    }
}

/// Whether a text ends where it is found, as strings of NVIDIA's libraries do. Programs that know of those, such as this
/// one, may have it inside a longer one.
fn has_c_string(data: &[u8], wanted: &str) -> bool {
    memmem::find_iter(data, wanted.as_bytes()).any(|at| data.get(at + wanted.len()) == Some(&0))
}

/// Whether Python source opens the driver by its name.
pub(crate) fn source_opens_driver(source: &[u8]) -> bool {
    memmem::find(source, b"libcuda.so").is_some()
}

/// The zero-terminated strings that are names of libraries.
fn library_names(data: &[u8]) -> Vec<String> {
    let part = |byte: &u8| byte.is_ascii_alphanumeric() || b"_./+-".contains(byte);
    let mut names: Vec<String> = Vec::new();
    for at in memmem::find_iter(data, b".so") {
        let before = data.part(..at);
        let start = before.iter().rposition(|byte| !part(byte)).map_or(0, |last| last + 1);
        let rest = data.part(start..);
        let length = rest.iter().take(256).position(|byte| !part(byte)).unwrap_or(0);
        // What does not end here is a sentence about a library.
        let name = rest
            .get(..length)
            .filter(|_| rest.get(length) == Some(&0))
            .and_then(|name| std::str::from_utf8(name).ok());
        let Some(name) = name.filter(|name| name.len() > 4 && !names.iter().any(|known| known == name))
        else {
            continue;
        };
        names.push(name.to_owned());
        if names.len() == MAX_NAMES {
            break;
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_inside_another_is_not_a_string_of_a_library() {
        assert!(has_c_string(b"x\0CUBLAS_LOGDEST_DBG\0y", "CUBLAS_LOGDEST_DBG"));
        assert!(!has_c_string(b"cuBLASCUBLAS_LOGDEST_DBGcuDNN", "CUBLAS_LOGDEST_DBG"));
        assert!(!has_c_string(b"CUBLAS_LOGDEST_DBG", "CUBLAS_LOGDEST_DBG"));
    }

    #[test]
    fn names_of_libraries_are_whole_strings() {
        let data = b"cannot open libx.so today\0./libkernels.so\0libcuda.so.1\0.so\0plain\0libcut.so";
        assert_eq!(library_names(data), ["./libkernels.so", "libcuda.so.1"]);
    }
}
