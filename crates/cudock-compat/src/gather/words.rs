//! What the texts in a program tell: which libraries it opens by itself, and whether a CUDA runtime is inside.

use cudock_fatbin::Linkage;
use memchr::memmem;

/// Names that are looked for in one program.
const MAX_NAMES: usize = 64;
/// Texts of larger sections are not read for names.
const MAX_SECTION: usize = 64 << 20;

/// What the texts in an ELF file tell.
#[derive(Debug, Clone, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is an observation of its own")]
pub(crate) struct Words {
    /// Whether a CUDA runtime is linked into it.
    pub(crate) runtime_inside: bool,
    /// Whether it loads libcuda, by the loader or by itself.
    pub(crate) opens_driver: bool,
    /// Whether it compiles GPU code when it runs.
    pub(crate) compiles: bool,
    /// Libraries it may open by itself.
    pub(crate) opens: Vec<String>,
    /// Whether it can come to the driver at all: it links or names libcuda, NVRTC or the CUDA runtime, or has the runtime
    /// inside. Libraries too, and so a wider net than `opens_driver`.
    pub(crate) reaches_driver: bool,
    /// NVIDIA's libraries that are linked into it statically and choose kernels by the card.
    pub(crate) embeds: Vec<&'static str>,
}

/// Variables that switch on the logs of NVIDIA's libraries: only the libraries themselves name them.
const EMBEDDED: [(&str, &str); 2] = [("cuBLAS", "CUBLAS_LOGDEST_DBG"), ("cuDNN", "CUDNN_LOGDEST_DBG")];
/// What only those name that load the driver or compile for it.
const DRIVER_NAMES: [&str; 2] = ["libcuda.so", "libnvrtc.so"];

impl Words {
    pub(crate) fn of(bytes: &[u8], linkage: &Linkage) -> Self {
        let needs = |prefix: &str| linkage.needed.iter().any(|name| name.starts_with(prefix));
        let texts = cudock_fatbin::sections(bytes, ".rodata");
        let has = |words: &str| texts.iter().any(|text| memmem::find(text, words.as_bytes()).is_some());
        let runtime_inside =
            !needs("libcudart.") && has("CUDA driver version is insufficient for CUDA runtime version");
        let is_program = linkage.interpreter.is_some()
            && texts.iter().map(|text| text.len()).sum::<usize>() <= MAX_SECTION;
        let links = ["libcuda.so", "libcudart.so", "libnvrtc.so"].into_iter().any(needs);
        let embedded = EMBEDDED.iter().filter(|(_, variable)| has(variable)).map(|(library, _)| *library);
        Self {
            reaches_driver: runtime_inside || links || DRIVER_NAMES.iter().any(|name| has(name)),
            embeds: embedded.collect(),
            runtime_inside,
            opens_driver: needs("libcuda.so") || (is_program && has("libcuda.so")),
            compiles: needs("libnvrtc.") || (is_program && has("libnvrtc.so")),
            opens: texts
                .iter()
                .filter(|_| is_program)
                .flat_map(|text| library_names(text))
                .take(MAX_NAMES)
                .collect(),
        }
    }
}

/// Whether Python source opens the driver by its name.
pub(crate) fn source_opens_driver(source: &[u8]) -> bool {
    memmem::find(source, b"libcuda.so").is_some()
}

/// Texts that are names of libraries.
fn library_names(texts: &[u8]) -> Vec<String> {
    let part = |byte: &u8| byte.is_ascii_alphanumeric() || b"_./+-".contains(byte);
    let mut names: Vec<String> = Vec::new();
    for at in memmem::find_iter(texts, b".so") {
        let before = texts.get(..at).unwrap_or_default();
        let start = before.iter().rposition(|byte| !part(byte)).map_or(0, |last| last + 1);
        let rest = texts.get(start..).unwrap_or_default();
        let length = rest.iter().take(256).position(|byte| !part(byte)).unwrap_or(0);
        // A text ends with a zero byte; what goes on is a sentence about a library.
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
    fn names_of_libraries_are_texts_of_their_own() {
        let texts = b"cannot open libx.so today\0./libkernels.so\0libcuda.so.1\0.so\0plain\0libcut.so";
        assert_eq!(library_names(texts), ["./libkernels.so", "libcuda.so.1"]);
    }
}
