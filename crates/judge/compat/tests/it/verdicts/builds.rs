//! Frameworks as the tables have them, and builds that cannot use a card.

use cudock_compat::evidence::{ArtifactKind, Code, Role, Runtime};
use cudock_facts::finding::Severity;
use cudock_facts::lookup::TorchWheel;
use cudock_facts::version::{CudaRelease, CudaVersion, PtxArch, PtxIsa, SmArch};
use cudock_host::frameworks::{Build, MissingLibraryEffect, Support};

use super::given::{Part, artifact};
use super::support::facts;

fn framework(
    name: &str,
    version: &str,
    major: u8,
    cuda: Option<CudaVersion>,
    code: (Option<Vec<SmArch>>, Option<Vec<PtxArch>>, Option<PtxIsa>),
) -> Part {
    let (sass, ptx, known_isa) = code;
    let by_toolkit = cuda.and_then(|cuda| facts().toolkits().toolkit(cuda)).map(|toolkit| toolkit.ptx_isa);
    let isa = known_isa.or(by_toolkit);
    let mut part = artifact(&format!("{name} {version}"), ArtifactKind::Framework);
    part.0.runtime = Some(Runtime { major, version: cuda, path: part.0.path.clone() });
    part.0.code = match &sass {
        Some(sass) => Code::Table { sass: sass.clone(), ptx: ptx.clone(), isa },
        None => Code::Unknown("its GPU code is not in the tables".to_owned()),
    };
    part.0.build = Some(Build {
        name: name.to_owned(),
        version: version.to_owned(),
        label: format!("CUDA {major} build"),
        path: None,
        support: Support::Cuda,
        cuda_major: Some(major),
        cuda,
        min_driver: None,
        sass,
        ptx,
        ptx_isa: isa,
        needs: Vec::new(),
        without: MissingLibraryEffect::ImportFails,
    });
    part
}

/// A torch wheel of the tables, by its CUDA tag.
pub(crate) fn torch(version: &str, tag: &str) -> Part {
    let row = facts().frameworks().torch_build(&version.parse().unwrap(), TorchWheel::Tag(tag)).unwrap();
    let cuda = CudaVersion::from_tag(tag).unwrap();
    framework("torch", version, cuda.major(), Some(cuda), (row.sass.clone(), row.ptx.clone(), None))
}

/// torch as its ARM wheel on PyPI is.
pub(crate) fn torch_for_arm(version: &str) -> Part {
    let row = facts().frameworks().torch(&version.parse().unwrap()).unwrap();
    let cuda = row.aarch64_cuda.unwrap();
    framework("torch", version, cuda.major(), Some(cuda), (row.aarch64_sass.clone(), Some(Vec::new()), None))
}

/// torch whose files were read, not looked up.
pub(crate) fn torch_read(version: &str, cuda: &str) -> Part {
    let cuda: CudaVersion = cuda.parse().unwrap();
    framework("torch", version, cuda.major(), Some(cuda), (Some(Vec::new()), None, None))
        .code(Code::None)
        .file("/opt/torch/lib/libtorch_cuda.so", Role::Framework)
}

pub(crate) fn tensorflow(version: &str) -> Part {
    let row = facts().frameworks().tensorflow(&version.parse().unwrap()).unwrap();
    let cuda = row.cuda.unwrap();
    framework(
        "tensorflow",
        version,
        cuda.major(),
        Some(cuda),
        (row.sass.clone(), row.ptx.clone(), row.ptx_isa),
    )
}

pub(crate) fn onnxruntime(version: &str) -> Part {
    let row = facts().frameworks().onnxruntime_gpu(&version.parse().unwrap()).unwrap();
    let code = (Some(row.sass.clone()), Some(row.ptx.clone()), row.ptx_isa);
    framework("onnxruntime-gpu", version, row.cuda_major, row.cuda, code)
}

/// JAX, with the driver floor its plugin's row has.
pub(crate) fn jax(plugin: &str, version: &str) -> Part {
    let row = facts().frameworks().jax_plugin(plugin, &version.parse().unwrap()).unwrap();
    let cuda = row.built_with.map(CudaRelease::version);
    let mut part = framework("jax", version, row.cuda_major, cuda, (row.sass.clone(), row.ptx.clone(), None));
    part.0.own_floor = Some(row.min_driver);
    part
}

/// A framework that was built for the CPU.
pub(crate) fn cpu_build(name: &str, severity: Severity) -> Part {
    let (reason, fix) = ("not compiled with CUDA enabled".to_owned(), "install the CUDA build".to_owned());
    artifact(name, ArtifactKind::Framework).support(Support::Cpu { reason, severity, fix })
}

pub(crate) fn rocm_build(name: &str) -> Part {
    artifact(name, ArtifactKind::Framework)
        .support(Support::OtherVendor { fix: "install the CUDA build".to_owned() })
}
