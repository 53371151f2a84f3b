//! Programs that a text compiles: what their GPU code will be, by the compiler's options and its version.

use cudock_facts::Facts;
use cudock_facts::finding::FindingEvidence;
use cudock_facts::tables::Toolkit;
use cudock_facts::version::{CudaVersion, PtxArch, SmArch, Variant};

use super::base::toolkit_of_image;
use crate::codes;
use crate::evidence::{Artifact, ArtifactKind, BuildFailure, Code, Evidence, Runtime};
use cudock_manifests::{Compiled, Declared, Targets};

pub(super) fn add(facts: &Facts, file: &str, declared: &Declared, evidence: &mut Evidence) {
    for compiled in &declared.compiled {
        let cuda = toolkit(facts, declared, compiled);
        let toolkit = cuda.and_then(|cuda| facts.toolkits().toolkit(cuda));
        let named = compiled.file.as_deref().unwrap_or(file);
        let path = format!("{named}:{}", compiled.span.line);
        if let Some(unsupported) = toolkit.and_then(|toolkit| unsupported(compiled, toolkit)) {
            let cuda = cuda.map_or_else(String::new, |cuda| cuda.to_string());
            evidence.build_failure.get_or_insert(BuildFailure {
                code: codes::COMPILER_TARGET_UNSUPPORTED,
                reason: format!("the nvcc of CUDA {cuda} does not support {unsupported}: the build fails"),
                evidence: vec![FindingEvidence::new(path.clone(), compiled.name.clone())],
                fix: format!(
                    "leave {unsupported} out, or take a CUDA toolkit that supports it (`cudock facts cuda`)"
                ),
                error: "nvcc".to_owned(),
                message: format!("nvcc fatal   : Unsupported gpu architecture '{unsupported}'"),
            });
        }
        evidence.artifacts.push(artifact(compiled, path, cuda, toolkit));
    }
}

/// The CUDA that compiles it: that of the stage's image, or one that was installed.
fn toolkit(facts: &Facts, declared: &Declared, compiled: &Compiled) -> Option<CudaVersion> {
    let installed = || {
        let compilers = ["cuda-toolkit", "cuda-nvcc", "cuda-compiler", "cudatoolkit-dev"];
        let mut packages = declared.cuda_packages.iter();
        let is_compiler =
            |name: &str| name == "cuda" || compilers.iter().any(|compiler| name.starts_with(compiler));
        packages.find(|package| is_compiler(&package.name)).and_then(|package| package.cuda)
    };
    compiled.image.as_deref().and_then(|image| toolkit_of_image(facts, image)).or_else(installed)
}

/// The first target that the toolkit's compiler does not know.
fn unsupported(compiled: &Compiled, toolkit: &Toolkit) -> Option<String> {
    let Targets::Listed { sass, ptx } = &compiled.targets else { return None };
    let knows = |arch: SmArch| toolkit.sass.contains(&arch);
    let of_sass = sass.iter().copied().find(|arch| !knows(*arch)).map(|arch| arch.to_string());
    let of_ptx = ptx.iter().find(|arch| !knows(SmArch::new(arch.capability(), arch.variant())));
    let is_certain = !toolkit.partial && !compiled.is_extension;
    of_sass.or_else(|| of_ptx.map(ToString::to_string)).filter(|_| is_certain)
}

fn artifact(
    compiled: &Compiled,
    path: String,
    cuda: Option<CudaVersion>,
    toolkit: Option<&Toolkit>,
) -> Artifact {
    let isa = toolkit.map(|toolkit| toolkit.ptx_isa);
    let code = match (&compiled.targets, toolkit) {
        (Targets::Listed { sass, ptx }, _) => Code::Table { sass: sass.clone(), ptx: Some(ptx.clone()), isa },
        (Targets::Unknown(why), _) => Code::Unknown(why.clone()),
        (Targets::Default, Some(Toolkit { default_arch: Some(arch), .. })) => {
            let ptx = PtxArch::new(arch.capability(), arch.variant());
            Code::Table { sass: vec![*arch], ptx: Some(vec![ptx]), isa }
        }
        (Targets::All, Some(toolkit)) => {
            let plain = toolkit.sass.iter().copied().filter(|arch| arch.variant() == Variant::Plain);
            let sass: Vec<SmArch> = plain.collect();
            let newest = sass.iter().max_by_key(|arch| arch.capability());
            let ptx = newest.map(|arch| PtxArch::new(arch.capability(), arch.variant()));
            Code::Table { ptx: Some(ptx.into_iter().collect()), sass, isa }
        }
        (Targets::Default | Targets::All, _) => {
            let why = "it is compiled for the compiler's default architecture, and the CUDA version of the compiler is unknown";
            Code::Unknown(why.to_owned())
        }
    };
    let runtime = cuda.filter(|_| !compiled.is_extension).map(|version| Runtime::new(version, path.clone()));
    // The unknown verdict of an extension is ignored if there is a framework. This one is what is
    // built, so it must count.
    let kind = match (compiled.is_extension, &code) {
        (true, Code::Unknown(_)) => ArtifactKind::Framework,
        (true, _) => ArtifactKind::Extension,
        (false, _) => ArtifactKind::Program,
    };
    Artifact { runtime, ..Artifact::new(compiled.name.clone(), kind, path, code) }
}
