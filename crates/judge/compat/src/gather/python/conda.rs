//! Frameworks from conda, whose builds are not those of PyPI: the name, the build string and the
//! packages installed with them determine the build; otherwise, the solver decides by the machine
//! it runs on.

use cudock_facts::Facts;
use cudock_facts::finding::Severity;
use cudock_facts::version::CudaVersion;
use cudock_host::frameworks::Support;

use crate::evidence::{Artifact, ArtifactKind, Code, Runtime};
use cudock_manifests::{Declared, DeclaredPackage, Manager};

/// A framework and its packages in conda.
struct Family {
    name: &'static str,
    /// Packages whose builds are for the CPU or for CUDA, as the build string says.
    packages: &'static [&'static str],
    /// Packages that exist for CUDA alone.
    gpu: &'static [&'static str],
    /// Packages that exist for the CPU alone, or require such a build.
    cpu: &'static [&'static str],
    /// The build to install instead of a CPU build.
    fix: &'static str,
}

const FAMILIES: [Family; 5] = [
    Family {
        name: "pytorch",
        packages: &["pytorch", "torch", "libtorch", "pytorch-mutex"],
        gpu: &["pytorch-gpu"],
        cpu: &["pytorch-cpu", "cpuonly"],
        fix: "remove cpuonly, and install the CUDA build: `conda install -c conda-forge pytorch-gpu`, with \
              `cuda-version=12.4` to choose its CUDA",
    },
    Family {
        name: "tensorflow",
        packages: &["tensorflow", "tensorflow-base", "libtensorflow", "libtensorflow-cc"],
        gpu: &["tensorflow-gpu"],
        cpu: &["tensorflow-cpu", "tensorflow-mkl"],
        fix: "install the CUDA build: `conda install -c conda-forge tensorflow-gpu`",
    },
    Family {
        name: "jaxlib",
        packages: &["jaxlib", "jax"],
        gpu: &[],
        cpu: &[],
        fix: "install the CUDA build: `conda install -c conda-forge 'jaxlib=*=*cuda*' jax`",
    },
    Family {
        name: "onnxruntime",
        packages: &["onnxruntime", "onnxruntime-cpp"],
        gpu: &["onnxruntime-gpu"],
        cpu: &[],
        fix: "install the CUDA build: `conda install -c conda-forge 'onnxruntime=*=*cuda*'`",
    },
    Family {
        name: "xgboost",
        packages: &["xgboost", "py-xgboost", "libxgboost"],
        gpu: &["py-xgboost-gpu"],
        cpu: &["py-xgboost-cpu"],
        fix: "install the CUDA build: `conda install -c conda-forge py-xgboost-gpu`",
    },
];

/// The build that a file requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flavor {
    Cpu,
    Gpu,
    Rocm,
    /// The solver decides.
    Open,
}

/// One artifact for each framework that conda installs.
pub(in crate::gather) fn artifacts(facts: &Facts, file: &str, declared: &Declared) -> Vec<Artifact> {
    FAMILIES.iter().filter_map(|family| artifact(facts, file, declared, family)).collect()
}

/// Whether a package is one of a framework's.
pub(crate) fn is_framework(name: &str) -> bool {
    FAMILIES.iter().any(|family| [family.packages, family.gpu, family.cpu].concat().contains(&name))
}

fn artifact(facts: &Facts, file: &str, declared: &Declared, family: &Family) -> Option<Artifact> {
    let by_conda = |package: &&DeclaredPackage| package.manager == Manager::Conda;
    let of = |names: &'static [&'static str]| {
        let packages = declared.packages.iter().filter(by_conda);
        packages.filter(move |package| names.contains(&package.name.as_str()))
    };
    let (plain, gpu, cpu) = (of(family.packages), of(family.gpu), of(family.cpu));
    let members: Vec<&DeclaredPackage> = plain.chain(gpu).chain(cpu).collect();
    // `cpuonly` alone installs no framework.
    let first = members.iter().find(|package| package.name != "cpuonly")?;
    let tags = || members.iter().filter_map(|package| package.tag.as_deref());
    let by_tag = tags().find_map(CudaVersion::from_tag);
    let named = declared.cuda_packages.iter().filter(|package| package.manager == Manager::Conda);
    let named: Vec<_> = named.filter(|package| package.cuda.is_some()).collect();
    let selector = named.iter().find(|package| package.name == "pytorch-cuda" && family.name == "pytorch");
    let flavor = if tags().any(|tag| tag == "cpu")
        || members.iter().any(|package| family.cpu.contains(&package.name.as_str()))
    {
        Flavor::Cpu
    } else if tags().any(|tag| tag.starts_with("rocm")) {
        Flavor::Rocm
    } else if tags().any(|tag| tag.starts_with("cu"))
        || members.iter().any(|package| family.gpu.contains(&package.name.as_str()))
        || selector.is_some()
    {
        Flavor::Gpu
    } else {
        Flavor::Open
    };
    let cuda = by_tag
        .or_else(|| selector.and_then(|package| package.cuda))
        .or_else(|| named.first().and_then(|package| package.cuda))
        .filter(|_| flavor == Flavor::Gpu);
    let path = format!("{file}:{}", first.span.line);
    let version = members.iter().find_map(|package| package.exact.as_ref());
    let shown = version.map_or_else(String::new, |version| format!(" {version}"));
    let name = format!("{}{shown} (conda)", family.name);
    let code = cuda.and_then(|cuda| from_channel(facts, declared, family, cuda));
    let code = code.unwrap_or_else(|| Code::Unknown(why(family, flavor, cuda)));
    Some(Artifact {
        support: support(family, flavor),
        runtime: cuda.map(|version| Runtime::new(version, path.clone())),
        ..Artifact::new(name, ArtifactKind::Framework, path, code)
    })
}

/// The GPU code of a build from a channel whose builds are in the tables: that channel comes first,
/// or the file requires `pytorch-cuda`, which no other channel has.
fn from_channel(facts: &Facts, declared: &Declared, family: &Family, cuda: CudaVersion) -> Option<Code> {
    let by_selector = declared.cuda_packages.iter().any(|package| package.name == "pytorch-cuda");
    let row = facts.packages().conda_build.iter().find(|row| {
        let is_first = by_selector || declared.channels.first() == Some(&row.channel);
        row.package == family.name && row.cuda == cuda && is_first
    })?;
    let isa = facts.toolkits().toolkit(cuda).map(|toolkit| toolkit.ptx_isa);
    Some(Code::Table { sass: row.sass.clone(), ptx: Some(row.ptx.clone()), isa })
}

fn support(family: &Family, flavor: Flavor) -> Support {
    match flavor {
        Flavor::Gpu => Support::Cuda,
        Flavor::Cpu => Support::Cpu {
            reason: format!("the file asks conda for a CPU build of {}", family.name),
            severity: Severity::Error,
            fix: family.fix.to_owned(),
        },
        Flavor::Rocm => Support::OtherVendor { fix: family.fix.to_owned() },
        Flavor::Open => Support::NotInTables {
            fix: format!(
                "{}; or check the installed environment: `cudock check \"$CONDA_PREFIX\"`",
                family.fix
            ),
        },
    }
}

fn why(family: &Family, flavor: Flavor, cuda: Option<CudaVersion>) -> String {
    let name = family.name;
    match (flavor, cuda) {
        (Flavor::Gpu, Some(cuda)) => {
            format!("which GPUs conda's CUDA {cuda} build of {name} has code for is not in the tables")
        }
        (Flavor::Gpu, None) => format!("conda chooses the CUDA of {name} when it solves the environment"),
        (Flavor::Cpu, _) => format!("names a CPU build of {name}"),
        (Flavor::Rocm, _) => format!("names a ROCm build of {name}"),
        (Flavor::Open, _) => format!(
            "conda's solver chooses a CPU or a CUDA build of {name} by the machine it runs on (__cuda), and the file does not \
             fix it"
        ),
    }
}
