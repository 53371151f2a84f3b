//! Releases and builds of frameworks.

use cudock_base::UsageError;
use cudock_base::text::suggest;
use pep440_rs::Version;

use crate::Facts;
use crate::sheets::result::{LookupResult, Sheet, cells, joined, or_dash};
use crate::sheets::rows::{TorchRow, TorchvisionRow};
use crate::tables::{Frameworks, OnnxruntimeGpu, TorchBuild, TorchRelease};

const TABLES: [&str; 1] = ["frameworks"];

fn version(text: &str, example: &str) -> Result<Version, UsageError> {
    text.parse().map_err(|_| UsageError::new(format!("`{text}` is not a version such as {example}")))
}

fn unknown<'a>(what: &str, requested: &Version, versions: impl Iterator<Item = &'a Version>) -> UsageError {
    let mut versions: Vec<&Version> = versions.collect();
    versions.sort();
    let near = suggest::adjacent(&requested, versions.iter().copied());
    let range = match (versions.first(), versions.last()) {
        (Some(first), Some(last)) => format!("the table has {first} to {last}"),
        _ => String::new(),
    };
    UsageError::new(format!("{what} {requested} is not in the tables")).near(&near).hint(range)
}

/// The row that was used, if it is that of another version.
fn read_from(row: &Version, requested: &Version) -> String {
    if row == requested { String::new() } else { format!("{row}, because {requested} is not in the table") }
}

/// A list that may be unknown, or known to be empty.
fn known<T: ToString>(items: Option<&Vec<T>>) -> String {
    match items {
        None => "unknown".to_owned(),
        Some(items) if items.is_empty() => "none".to_owned(),
        Some(items) => items.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "),
    }
}

/// PyTorch releases, or one release or build.
pub fn torch(facts: &Facts, name: Option<&str>) -> Result<LookupResult, UsageError> {
    let frameworks = facts.frameworks();
    let Some(name) = name else {
        let columns = ["torch", "released", "CUDA", "driver", "torchvision", "python"];
        return Ok(LookupResult::list(&TABLES, &frameworks.torch, &columns, |row| {
            let (vision, python) = (or_dash(row.torchvision.as_ref()), joined(&row.python));
            cells(&[&row.version, &row.released, &row.cuda, &row.min_driver, &vision, &python])
        }));
    };
    let requested = version(name, "2.5.1")?;
    let release = frameworks
        .torch(&requested)
        .ok_or_else(|| unknown("torch", &requested, frameworks.torch.iter().map(|row| &row.version)))?;
    let local: Vec<String> = requested.local().iter().map(ToString::to_string).collect();
    let builds: Vec<&TorchBuild> = frameworks
        .torch_builds(&requested)
        .filter(|build| local.is_empty() || local.contains(&build.tag))
        .collect();
    if builds.is_empty() {
        let tags = joined(frameworks.torch_builds(&requested).map(|build| build.tag.as_str()));
        return Err(UsageError::new(format!("torch {} has no build +{}", release.version, local.join(".")))
            .hint(format!("it has {tags}")));
    }
    let sheet = torch_sheet(frameworks, release, &builds);
    Ok(LookupResult::sheet(&TABLES, &TorchRow { release, builds: &builds }, sheet))
}

fn torch_sheet(frameworks: &Frameworks, release: &TorchRelease, builds: &[&TorchBuild]) -> Sheet {
    let on_pypi = format!("CUDA {} ({}), driver {} or newer", release.cuda, release.tag, release.min_driver);
    let on_arm = release.aarch64_cuda.map_or_else(
        || "CPU build only".to_owned(),
        |cuda| format!("CUDA {cuda}: {}", known(release.aarch64_sass.as_ref())),
    );
    let mut sheet = Sheet::new(format!("torch {}", release.version))
        .field("released", release.released.to_string())
        .field("python", joined(&release.python))
        .field("on PyPI", on_pypi)
        .field("on PyPI, arm", on_arm)
        .maybe("torchvision", release.torchvision.as_ref())
        .maybe("torchaudio", release.torchaudio.as_ref())
        .maybe("cuDNN", release.cudnn.as_ref())
        .maybe("NCCL", release.nccl.as_ref())
        .maybe("triton", release.triton.as_ref())
        .maybe("wheel", release.wheel_mib.map(|mib| format!("{mib} MiB")))
        .maybe("note", release.note.as_ref());
    for build in builds {
        let note = build.note.as_ref().map_or_else(String::new, |note| format!("\n{note}"));
        let pypi = if build.pypi { ", the one on PyPI" } else { "" };
        let (sass, ptx) = (known(build.sass.as_ref()), known(build.ptx.as_ref()));
        sheet = sheet.field("build", format!("+{}{pypi}: code {sass}; PTX {ptx}{note}", build.tag));
    }
    sheet.sources(frameworks.table.resolve(&release.source))
}

/// torchvision releases with their PyTorch releases.
pub fn torchvision(facts: &Facts, name: Option<&str>) -> Result<LookupResult, UsageError> {
    let frameworks = facts.frameworks();
    let pairs: Vec<&TorchRelease> = frameworks.torch.iter().filter(|row| row.torchvision.is_some()).collect();
    let Some(name) = name else {
        return Ok(LookupResult::list(&TABLES, &pairs, &["torchvision", "torch"], |row| {
            cells(&[&row.torchvision.as_ref().map_or_else(String::new, ToString::to_string), &row.version])
        }));
    };
    let requested = version(name, "0.20.1")?;
    let releases: Vec<&TorchRelease> = frameworks.torch_with_torchvision(&requested).collect();
    let first = releases.first().ok_or_else(|| {
        unknown("torchvision", &requested, pairs.iter().filter_map(|row| row.torchvision.as_ref()))
    })?;
    let sheet = Sheet::new(format!("torchvision {requested}"))
        .field("belongs to", joined(releases.iter().map(|row| format!("torch {}", row.version))))
        .field("CUDA", first.cuda.to_string())
        .sources(frameworks.table.resolve(&first.source));
    let row = TorchvisionRow { torchvision: &requested, torch: &releases };
    Ok(LookupResult::sheet(&TABLES, &row, sheet))
}

/// TensorFlow releases.
pub fn tensorflow(facts: &Facts, name: Option<&str>) -> Result<LookupResult, UsageError> {
    let frameworks = facts.frameworks();
    let Some(name) = name else {
        let columns = ["tensorflow", "released", "CUDA", "cuDNN", "code", "PTX"];
        return Ok(LookupResult::list(&TABLES, &frameworks.tensorflow, &columns, |row| {
            let (cuda, cudnn) = (or_dash(row.cuda), or_dash(row.cudnn_major));
            let (sass, ptx) = (known(row.sass.as_ref()), known(row.ptx.as_ref()));
            cells(&[&row.version, &row.released, &cuda, &cudnn, &sass, &ptx])
        }));
    };
    let requested = version(name, "2.17.0")?;
    let row = frameworks.tensorflow(&requested).ok_or_else(|| {
        unknown("tensorflow", &requested, frameworks.tensorflow.iter().map(|row| &row.version))
    })?;
    let extras =
        [("CUDA runtime", &row.extra_cuda_runtime), ("cuDNN", &row.extra_cudnn), ("NCCL", &row.extra_nccl)];
    let extras =
        extras.into_iter().filter_map(|(name, version)| Some(format!("{name} {}", version.as_ref()?)));
    let sheet = Sheet::new(format!("tensorflow {}", row.version))
        .field("released", row.released.to_string())
        .field("python", joined(&row.python))
        .maybe("CUDA", row.cuda)
        .maybe("cuDNN", row.cudnn_major)
        .field("code", known(row.sass.as_ref()))
        .field("PTX", known(row.ptx.as_ref()))
        .maybe("PTX ISA", row.ptx_isa)
        .field("TF-TRT", if row.tensorrt { "inside" } else { "not inside" })
        .field("and-cuda", joined(extras))
        .maybe("note", row.note.as_ref())
        .sources(frameworks.table.resolve(&row.source));
    Ok(LookupResult::sheet(&TABLES, row, sheet))
}

/// Releases of onnxruntime-gpu.
pub fn onnxruntime(facts: &Facts, name: Option<&str>) -> Result<LookupResult, UsageError> {
    let frameworks = facts.frameworks();
    let cuda = |row: &OnnxruntimeGpu| {
        row.cuda.map_or_else(|| format!("{}.x", row.cuda_major), |cuda| cuda.to_string())
    };
    let Some(name) = name else {
        let columns = ["onnxruntime-gpu", "released", "CUDA", "cuDNN", "code", "PTX"];
        return Ok(LookupResult::list(&TABLES, &frameworks.onnxruntime_gpu, &columns, |row| {
            let (sass, ptx) = (known(Some(&row.sass)), known(Some(&row.ptx)));
            cells(&[&row.version, &row.released, &cuda(row), &row.cudnn_major, &sass, &ptx])
        }));
    };
    let requested = version(name, "1.31.1")?;
    let row = frameworks.onnxruntime_gpu(&requested).ok_or_else(|| {
        unknown("onnxruntime-gpu", &requested, frameworks.onnxruntime_gpu.iter().map(|row| &row.version))
    })?;
    let sheet = Sheet::new(format!("onnxruntime-gpu {requested}"))
        .field("read from", read_from(&row.version, &requested))
        .field("released", row.released.to_string())
        .field("python", joined(&row.python))
        .field("CUDA", cuda(row))
        .field("cuDNN", row.cudnn_major.to_string())
        .field("code", known(Some(&row.sass)))
        .field("PTX", known(Some(&row.ptx)))
        .maybe("PTX ISA", row.ptx_isa)
        .field("needs", joined(&row.needs))
        .maybe("TensorRT", row.tensorrt.as_ref())
        .maybe("note", row.note.as_ref())
        .sources(frameworks.table.resolve(&row.source));
    Ok(LookupResult::sheet(&TABLES, row, sheet))
}

/// Releases of JAX's CUDA plugins.
pub fn jax(facts: &Facts, name: Option<&str>) -> Result<LookupResult, UsageError> {
    let frameworks = facts.frameworks();
    if let Some(name) = name {
        let requested = version(name, "0.11.0")?;
        let packages = ["jax-cuda12-plugin", "jax-cuda13-plugin"];
        let found: Vec<_> =
            packages.iter().filter_map(|package| frameworks.jax_plugin(package, &requested)).collect();
        if found.is_empty() {
            let known = frameworks.jax_plugin.iter().map(|row| &row.version);
            return Err(unknown("JAX CUDA plugin", &requested, known));
        }
        return Ok(LookupResult::sheets(&TABLES, &found, |row| {
            Sheet::new(format!("{} {requested}", row.package))
                .field("read from", read_from(&row.version, &requested))
                .field("released", row.released.to_string())
                .field("python", joined(&row.python))
                .field("driver", row.min_driver.to_string())
                .maybe("built with", row.built_with.map(|cuda| format!("CUDA {cuda}")))
                .field("code", known(row.sass.as_ref()))
                .field("PTX", known(row.ptx.as_ref()))
                .maybe("CUDA runtime", row.cudart.as_ref())
                .maybe("cuBLAS", row.cublas.as_ref())
                .maybe("cuDNN", row.cudnn.as_ref())
                .maybe("NCCL", row.nccl.as_ref())
                .sources(frameworks.table.resolve(&row.source))
        }));
    }
    let columns = ["plugin", "version", "released", "driver", "built with", "code", "PTX"];
    Ok(LookupResult::list(&TABLES, &frameworks.jax_plugin, &columns, |row| {
        let (sass, ptx) = (known(row.sass.as_ref()), known(row.ptx.as_ref()));
        let built_with = or_dash(row.built_with);
        cells(&[&row.package, &row.version, &row.released, &row.min_driver, &built_with, &sass, &ptx])
    }))
}

/// TensorRT releases.
pub fn tensorrt(facts: &Facts, name: Option<&str>) -> Result<LookupResult, UsageError> {
    let frameworks = facts.frameworks();
    if let Some(name) = name {
        let requested = version(name, "10.13.2")?;
        // A build such as 10.13.2.6 belongs to the release before its last number.
        let fits = |row: &&crate::tables::TensorRt| requested.release().starts_with(row.version.release());
        let found = frameworks.tensorrt.iter().filter(fits).max_by_key(|row| row.version.release().len());
        let unknown = || unknown("TensorRT", &requested, frameworks.tensorrt.iter().map(|row| &row.version));
        let row = found.ok_or_else(unknown)?;
        let sheet = Sheet::new(format!("TensorRT {requested}"))
            .field("read from", read_from(&row.version, &requested))
            .field("CUDA", joined(&row.cuda))
            .maybe("cuDNN", row.cudnn.as_ref())
            .maybe("note", row.note.as_ref())
            .sources(frameworks.table.resolve(&row.source));
        return Ok(LookupResult::sheet(&TABLES, row, sheet));
    }
    Ok(LookupResult::list(&TABLES, &frameworks.tensorrt, &["TensorRT", "CUDA", "cuDNN"], |row| {
        vec![row.version.to_string(), joined(&row.cuda), or_dash(row.cudnn.as_ref())]
    }))
}
