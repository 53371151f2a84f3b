//! Reads build files: which programs a project compiles, and for which architectures.

use cudock_base::Span;

use super::compile::{self, Compiled, Targets};
use super::files::Files;
use super::{Declared, FileKind, is_listed};

fn is_recipe(name: &str) -> bool {
    ["CMakeLists.txt", "Makefile", "makefile", "GNUmakefile", "setup.py"].contains(&name)
}

pub(super) fn is_cuda_source(path: &str) -> bool {
    [".cu", ".cuh"].iter().any(|ending| path.to_ascii_lowercase().ends_with(ending))
}

/// Reads the build files and CUDA sources of a directory without a Dockerfile.
pub fn read_sources(files: &dyn Files) -> Declared {
    let mut declared = Declared::default();
    let all = files.below("");
    let recipes = all.iter().filter(|path| is_recipe(path.rsplit('/').next().unwrap_or(path)));
    for path in recipes {
        if let Some(targets) = files.text(path).and_then(|text| of_recipe(path, &text)) {
            declared.compiled.push(Compiled {
                name: format!("program of {path}"),
                output: None,
                is_extension: path.ends_with("setup.py"),
                targets,
                image: None,
                file: Some(path.clone()),
                span: Span::START,
            });
        }
    }
    let first = all.iter().find(|path| is_cuda_source(path));
    if let (true, Some(source)) = (declared.compiled.is_empty(), first) {
        declared.note(Span::START, format!("cannot determine how CUDA source {source} is compiled"));
    }
    declared
}

/// The targets of a build file; `None` if it compiles no CUDA code.
fn of_recipe(path: &str, text: &str) -> Option<Targets> {
    if path.ends_with("setup.py") {
        return text.contains("CUDAExtension").then(|| {
            Targets::Unknown(
                "the architectures of a PyTorch extension are chosen when it is built".to_owned(),
            )
        });
    }
    compile::of_build_file(text)
}

/// Whether a file neither starts a program nor adds a library by itself.
pub(super) fn is_harmless(path: &str) -> bool {
    const ENDINGS: &str = "
        bat c cc cfg cfgi cmake conf cpp crt css csv cxx db env example flac gguf gif gitignore go gz h h5
        hpp html ico in ini ipynb j2 jinja jpeg jpg js json jsonl key lock md mp3 mp4 npy npz onnx parquet
        pb pem pickle pkl png proto pt pth py pyi rs rst safetensors sh sql svg tflite toml ts tsx txt wav
        yaml yml";
    const NAMES: &str = "
        .dockerignore .env .gitattributes .gitignore authors changelog containerfile dockerfile license
        makefile notice pipfile procfile py.typed readme version";
    let name = path.rsplit('/').next().unwrap_or(path).to_ascii_lowercase();
    let is_archive = [".tar.gz", ".tgz"].iter().any(|ending| name.ends_with(ending));
    let by_ending = name.rsplit_once('.').is_some_and(|(_, ending)| is_listed(ENDINGS, ending));
    let docker = FileKind::guess(&name, "") == Some(FileKind::Dockerfile);
    // Names with a leading dot are settings of tools.
    !is_archive && (name.starts_with('.') || by_ending || is_listed(NAMES, &name) || docker)
}
