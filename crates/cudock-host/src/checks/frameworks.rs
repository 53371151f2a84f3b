//! Whether the frameworks of the active environment will find the GPU, without importing them.

use cudock_facts::lookup::{TorchWheel, without_local};
use cudock_facts::version::{CudaVersion, DriverVersion, PtxArch, SmArch};
use pep440_rs::Version;

use super::{Area, Check, FrameworkReport, Situation, Status, Verdict, codes};
use crate::host::{Distribution, PythonEnvironment};

/// What is known of a build's CUDA and GPU code.
struct Build<'a> {
    name: &'a str,
    version: String,
    /// "CUDA 13.0 (cu130)"
    label: String,
    cuda_major: u8,
    cuda: Option<CudaVersion>,
    min_driver: Option<DriverVersion>,
    sass: Option<&'a [SmArch]>,
    ptx: Option<&'a [PtxArch]>,
    fix_for_old_driver: String,
    fix_for_no_code: String,
}

/// How a build fits the driver and the cards.
struct Judgement {
    verdict: Verdict,
    error: Option<u16>,
    reason: String,
    finding: Option<(Status, &'static str, String)>,
}

pub(super) fn check(situation: &Situation<'_>, checks: &mut Vec<Check>) -> Vec<FrameworkReport> {
    let Some(python) = &situation.host.python else { return Vec::new() };
    let mut reports = Vec::new();
    torch(situation, python, checks, &mut reports);
    tensorflow(situation, python, checks, &mut reports);
    onnxruntime(situation, python, checks, &mut reports);
    jax(situation, python, checks, &mut reports);
    library_path(situation, python, checks);
    reports
}

/// Adds a report and its check.
fn tell(
    checks: &mut Vec<Check>,
    reports: &mut Vec<FrameworkReport>,
    (name, version, build): (&str, String, String),
    judgement: Judgement,
) {
    let Judgement { verdict, error, reason, finding } = judgement;
    let message = format!("{name} {version}, {build}: {reason}");
    checks.push(match finding {
        None => Check {
            status: if verdict == Verdict::Works { Status::Ok } else { Status::Note },
            ..Check::ok(Area::Frameworks, message)
        },
        Some((status, code, fix)) => Check::bad(Area::Frameworks, status, code, message, fix),
    });
    reports.push(FrameworkReport { name: name.to_owned(), version, build, verdict, error, reason });
}

/// Driver first, then GPU code: what fails first is what the user sees.
fn judge(situation: &Situation<'_>, build: &Build<'_>) -> Judgement {
    if !situation.has_gpu() {
        let needs =
            build.min_driver.map_or_else(String::new, |driver| format!("; needs driver {driver} or newer"));
        let reason = format!("no GPU here to use{needs}");
        return Judgement { verdict: Verdict::Unknown, error: None, reason, finding: None };
    }
    if let (Some(driver), Some(minimum)) = (situation.driver, build.min_driver)
        && driver < minimum
        && situation.cuda.is_none_or(|cuda| cuda.major() < build.cuda_major)
    {
        let reason = format!("driver {driver} is too old, {minimum} is needed (error 35)");
        let finding = Some((Status::Problem, codes::DRIVER_TOO_OLD, build.fix_for_old_driver.clone()));
        return Judgement { verdict: Verdict::Fails, error: Some(35), reason, finding };
    }
    let judgement = code(situation, build);
    match situation.blocked_by {
        Some(code) if matches!(judgement.verdict, Verdict::Works | Verdict::Jit) => {
            let reason = format!("fits the GPU, and cannot use it before {code} is solved");
            Judgement { verdict: Verdict::Fails, error: None, reason, finding: None }
        }
        _ => judgement,
    }
}

fn code(situation: &Situation<'_>, build: &Build<'_>) -> Judgement {
    let Some(sass) = build.sass else {
        let reason = "its GPU code is not in the tables".to_owned();
        let fix = "run a small kernel to find out; newer tables can be laid over with --facts".to_owned();
        return Judgement {
            verdict: Verdict::Unknown,
            error: None,
            reason,
            finding: Some((Status::Note, codes::BUILD_UNKNOWN, fix)),
        };
    };
    let ptx = build.ptx.unwrap_or_default();
    let language =
        build.cuda.and_then(|cuda| situation.facts.toolkits().toolkit(cuda)).map(|toolkit| toolkit.ptx_isa);
    let understood = situation.branch().map(|branch| branch.ptx_isa);
    let mut compiled = None;
    for capability in situation.capabilities() {
        if let Some(code) = sass.iter().find(|code| code.runs_on(capability)) {
            compiled.get_or_insert((false, code.to_string()));
            continue;
        }
        if let Some(code) = ptx.iter().find(|code| code.compiles_for(capability)) {
            if let (Some(language), Some(understood)) = (language, understood)
                && language > understood
            {
                let reason = format!(
                    "only PTX {language} fits capability {capability}, and the driver understands {understood} (error 222)"
                );
                let finding = Some((Status::Problem, codes::PTX_TOO_NEW, build.fix_for_old_driver.clone()));
                return Judgement { verdict: Verdict::Fails, error: Some(222), reason, finding };
            }
            compiled = Some((true, code.to_string()));
            continue;
        }
        if build.ptx.is_none() {
            let reason = format!(
                "no machine code for capability {capability}, and whether it has PTX is not in the tables"
            );
            let finding = Some((Status::Warning, codes::BUILD_UNKNOWN, build.fix_for_no_code.clone()));
            return Judgement { verdict: Verdict::Unknown, error: None, reason, finding };
        }
        let list: Vec<String> = sass.iter().map(ToString::to_string).collect();
        let reason = format!("no code for capability {capability}, it has {} (error 209)", list.join(" "));
        let finding = Some((Status::Problem, codes::NO_CODE_FOR_GPU, build.fix_for_no_code.clone()));
        return Judgement { verdict: Verdict::Fails, error: Some(209), reason, finding };
    }
    match compiled {
        Some((true, code)) => Judgement {
            verdict: Verdict::Jit,
            error: None,
            reason: format!("runs after the driver compiles its {code} PTX; the first start takes minutes"),
            finding: Some((Status::Note, codes::JIT_ONLY, build.fix_for_no_code.clone())),
        },
        Some((false, code)) => Judgement {
            verdict: Verdict::Works,
            error: None,
            reason: format!("will use the GPU with its {code} code"),
            finding: None,
        },
        None => Judgement {
            verdict: Verdict::Unknown,
            error: None,
            reason: "the GPU's capability is not known".to_owned(),
            finding: None,
        },
    }
}

/// The driver a CUDA major needs, by the column of the system the driver belongs to.
fn min_driver(situation: &Situation<'_>, cuda_major: u8) -> Option<DriverVersion> {
    let row = situation.facts.drivers().minor_compat(cuda_major)?;
    if situation.wsl() { row.min_windows } else { Some(row.min_linux) }
}

/// A build that cannot use a GPU matters where there is one.
fn cpu_only(
    situation: &Situation<'_>,
    reason: &str,
    code: &'static str,
    status: Status,
    fix: String,
) -> Judgement {
    let finding = situation.has_gpu().then_some((status, code, fix));
    Judgement { verdict: Verdict::Cpu, error: None, reason: reason.to_owned(), finding }
}

fn torch(
    situation: &Situation<'_>,
    python: &PythonEnvironment,
    checks: &mut Vec<Check>,
    reports: &mut Vec<FrameworkReport>,
) {
    let Some(info) = &python.torch else { return };
    let frameworks = situation.facts.frameworks();
    let version = info.version.to_string();
    let identity = |build: &str| ("torch", version.clone(), build.to_owned());
    if let Some(hip) = &info.hip {
        let fix = "install the CUDA build: pip install torch".to_owned();
        let judgement =
            cpu_only(situation, "built for AMD's GPUs", codes::BUILT_FOR_ROCM, Status::Problem, fix);
        tell(checks, reports, identity(&format!("ROCm {hip} build")), judgement);
        return;
    }
    let Some(cuda) = info.cuda else {
        let fix = "install a CUDA build: pip install --force-reinstall torch (with the cuXXX index of PyTorch where the platform's \
                   default is the CPU build)"
            .to_owned();
        let judgement = cpu_only(
            situation,
            "cannot use a GPU, torch.cuda.is_available() is False",
            codes::CPU_BUILD,
            Status::Problem,
            fix,
        );
        tell(checks, reports, identity("CPU build"), judgement);
        return;
    };
    let tag = format!("cu{}{}", cuda.major(), cuda.minor());
    let row = frameworks.torch_build(&info.version, TorchWheel::Tag(&tag));
    let release = frameworks.torch(&info.version);
    // The arm wheels have a list of their own.
    let arm = situation.host.surroundings.cpu_arch == "aarch64";
    let sass = if arm {
        release
            .filter(|release| release.aarch64_cuda == Some(cuda))
            .and_then(|release| release.aarch64_sass.as_deref())
    } else {
        row.and_then(|row| row.sass.as_deref())
    };
    let other_builds: Vec<&str> = frameworks
        .torch_builds(&info.version)
        .filter(|build| {
            let code = build.sass.as_deref().unwrap_or_default();
            situation.capabilities().iter().all(|card| code.iter().any(|code| code.runs_on(*card)))
        })
        .map(|build| build.tag.as_str())
        .collect();
    let fix_for_no_code = if other_builds.is_empty() {
        format!(
            "no build of torch {} has code for this GPU; take a newer torch (`cudock facts torch`)",
            info.version
        )
    } else {
        format!("install the {} build of this torch from PyTorch's index", other_builds.join(" or "))
    };
    let fix_for_old_driver = format!(
        "update the driver to {} or newer, or install a torch built for an older CUDA (`cudock facts torch {}`)",
        min_driver(situation, cuda.major())
            .map_or_else(|| "a newer branch".to_owned(), |driver| driver.to_string()),
        without_local(&info.version),
    );
    let build = Build {
        name: "torch",
        version: version.clone(),
        label: format!("CUDA {cuda} build"),
        cuda_major: cuda.major(),
        cuda: Some(cuda),
        min_driver: min_driver(situation, cuda.major()),
        sass,
        ptx: row.and_then(|row| row.ptx.as_deref()),
        fix_for_old_driver,
        fix_for_no_code,
    };
    let missing = python.get("torch").map(|torch| missing_requirements(python, torch)).unwrap_or_default();
    let judgement = judge(situation, &build);
    tell(checks, reports, (build.name, build.version, build.label), judgement);
    requirements(&missing, "torch", checks);

    companions(python, &info.version, checks);
}

/// torchvision and torchaudio are compiled against one torch, and say which.
fn companions(python: &PythonEnvironment, torch: &Version, checks: &mut Vec<Check>) {
    for companion in ["torchvision", "torchaudio"].iter().filter_map(|name| python.get(name)) {
        let pinned = companion.requires.iter().find(|requirement| requirement.name == "torch");
        let Some(wanted) = pinned.and_then(|requirement| requirement.exactly.as_ref()) else { continue };
        if without_local(wanted) == without_local(torch) {
            continue;
        }
        let message = format!(
            "{} {} was built for torch {wanted}, and {torch} is installed",
            companion.name, companion.version
        );
        let fix = format!(
            "pip install torch=={wanted} {0}=={1}, or the {0} of this torch (`cudock facts torch {2}`)",
            companion.name,
            companion.version,
            without_local(torch)
        );
        checks.push(
            Check::bad(Area::Frameworks, Status::Warning, codes::TORCHVISION_DIFFERS, message, fix)
                .seen(&companion.path, format!("requires torch=={wanted}")),
        );
    }
}

/// A library that is required and absent, or pinned and of another version.
struct Unmet {
    name: String,
    wanted: Option<Version>,
    installed: Option<Version>,
}

fn missing_requirements(python: &PythonEnvironment, distribution: &Distribution) -> Vec<Unmet> {
    let required = distribution.requires.iter().filter(|requirement| requirement.name.starts_with("nvidia-"));
    required
        .filter_map(|requirement| {
            let installed = python.get(&requirement.name).map(|found| found.version.clone());
            let met = match (&installed, &requirement.exactly) {
                (None, _) => false,
                (Some(installed), Some(wanted)) => installed == wanted,
                (Some(_), None) => true,
            };
            let wanted = requirement.exactly.clone();
            (!met).then(|| Unmet { name: requirement.name.clone(), wanted, installed })
        })
        .collect()
}

fn requirements(unmet: &[Unmet], framework: &str, checks: &mut Vec<Check>) {
    for library in unmet {
        let wanted = library.wanted.as_ref().map_or_else(String::new, |version| format!("=={version}"));
        let fix = format!("pip install {}{wanted}", library.name);
        checks.push(match &library.installed {
            None => {
                let message = format!(
                    "{framework} needs {}{wanted}, which is not installed: import fails",
                    library.name
                );
                Check::bad(Area::Frameworks, Status::Problem, codes::LIBRARY_NOT_INSTALLED, message, fix)
            }
            Some(installed) => {
                let message = format!(
                    "{framework} was built with {}{wanted}, and {installed} is installed",
                    library.name
                );
                Check::bad(Area::Frameworks, Status::Warning, codes::LIBRARY_OF_OTHER_VERSION, message, fix)
            }
        });
    }
}

/// Whether a library can be found by the loader or in NVIDIA's wheels.
fn has_library(situation: &Situation<'_>, python: &PythonEnvironment, soname: &str) -> bool {
    situation.host.cuda_libraries.contains_key(soname)
        || python.wheel_libraries.iter().any(|name| name == soname)
}

fn tensorflow(
    situation: &Situation<'_>,
    python: &PythonEnvironment,
    checks: &mut Vec<Check>,
    reports: &mut Vec<FrameworkReport>,
) {
    if let Some(cpu) = python.get("tensorflow-cpu").filter(|_| python.get("tensorflow").is_none()) {
        let fix = "pip uninstall tensorflow-cpu; pip install 'tensorflow[and-cuda]'".to_owned();
        let judgement = cpu_only(situation, "cannot use a GPU", codes::CPU_BUILD, Status::Problem, fix);
        tell(checks, reports, ("tensorflow-cpu", cpu.version.to_string(), "CPU build".to_owned()), judgement);
    }
    let Some(found) = python.get("tensorflow") else { return };
    let row = situation.facts.frameworks().tensorflow(&found.version);
    let cuda = row.and_then(|row| row.cuda);
    let label = cuda.map_or_else(|| "build of unknown CUDA".to_owned(), |cuda| format!("CUDA {cuda} build"));
    let identity = ("tensorflow", found.version.to_string(), label.clone());
    // The and-cuda extra leaves no trace but its libraries.
    let wanted = row.and_then(|row| Some((row.cuda?.major(), row.cudnn_major?))).map(|(cuda, cudnn)| {
        let cudart = if cuda == 11 { "libcudart.so.11.0".to_owned() } else { format!("libcudart.so.{cuda}") };
        [cudart, format!("libcudnn.so.{cudnn}")]
    });
    let absent: Vec<&String> =
        wanted.iter().flatten().filter(|soname| !has_library(situation, python, soname)).collect();
    if let Some(first) = absent.first() {
        let fix = format!("pip install 'tensorflow[and-cuda]=={}'", found.version);
        let reason = format!("{first} is not installed: it starts and uses the CPU without a word");
        let judgement = cpu_only(situation, &reason, codes::LIBRARY_NOT_INSTALLED, Status::Problem, fix);
        tell(checks, reports, identity, judgement);
        return;
    }
    let build = Build {
        name: "tensorflow",
        version: found.version.to_string(),
        label,
        cuda_major: cuda.map_or(12, CudaVersion::major),
        cuda,
        min_driver: cuda.and_then(|cuda| min_driver(situation, cuda.major())),
        sass: row.and_then(|row| row.sass.as_deref()),
        ptx: row.and_then(|row| row.ptx.as_deref()),
        fix_for_old_driver: "update the driver".to_owned(),
        fix_for_no_code: "take a newer TensorFlow, or NVIDIA's container of it".to_owned(),
    };
    tell(checks, reports, identity, judge(situation, &build));
}

fn onnxruntime(
    situation: &Situation<'_>,
    python: &PythonEnvironment,
    checks: &mut Vec<Check>,
    reports: &mut Vec<FrameworkReport>,
) {
    let (cpu, gpu) = (python.get("onnxruntime"), python.get("onnxruntime-gpu"));
    if let (Some(cpu), Some(gpu)) = (cpu, gpu) {
        let message = format!(
            "onnxruntime {} and onnxruntime-gpu {} write to the same folder: the one installed last wins",
            cpu.version, gpu.version
        );
        let fix = "pip uninstall onnxruntime onnxruntime-gpu, then pip install onnxruntime-gpu";
        checks.push(
            Check::bad(Area::Frameworks, Status::Warning, codes::PACKAGES_COLLIDE, message, fix)
                .seen(&cpu.path, "installed")
                .seen(&gpu.path, "installed"),
        );
    }
    if let Some(cpu) = cpu.filter(|_| gpu.is_none()) {
        // Many packages pull it in for small work on the CPU: worth a word, no alarm.
        let fix = "pip uninstall onnxruntime; pip install onnxruntime-gpu, if it is meant to use the GPU"
            .to_owned();
        let judgement = cpu_only(
            situation,
            "has no CUDA provider, sessions run on the CPU",
            codes::CPU_BUILD,
            Status::Note,
            fix,
        );
        tell(checks, reports, ("onnxruntime", cpu.version.to_string(), "CPU build".to_owned()), judgement);
    }
    let Some(found) = gpu else { return };
    let Some(row) = situation.facts.frameworks().onnxruntime_gpu(&found.version) else {
        let fix =
            "assert session.get_providers() in your program; newer tables can be laid over with --facts"
                .to_owned();
        let judgement = Judgement {
            verdict: Verdict::Unknown,
            error: None,
            reason: "this release is not in the tables".to_owned(),
            finding: Some((Status::Note, codes::BUILD_UNKNOWN, fix)),
        };
        tell(
            checks,
            reports,
            ("onnxruntime-gpu", found.version.to_string(), "GPU build".to_owned()),
            judgement,
        );
        return;
    };
    let label = format!(
        "CUDA {} build",
        row.cuda.map_or_else(|| row.cuda_major.to_string(), |cuda| cuda.to_string())
    );
    let identity = ("onnxruntime-gpu", found.version.to_string(), label.clone());
    let needed = row.needs.iter().filter(|soname| *soname != "libcuda.so.1");
    let absent: Vec<&str> =
        needed.clone().filter(|soname| !has_library(situation, python, soname)).map(String::as_str).collect();
    if let Some(first) = absent.first() {
        let fix = format!(
            "pip install 'onnxruntime-gpu[cuda,cudnn]=={}', and call onnxruntime.preload_dlls() first",
            found.version
        );
        let reason = format!("{first} is not installed: sessions silently run on the CPU");
        let judgement = cpu_only(situation, &reason, codes::LIBRARY_NOT_INSTALLED, Status::Problem, fix);
        tell(checks, reports, identity, judgement);
        return;
    }
    let build = Build {
        name: "onnxruntime-gpu",
        version: found.version.to_string(),
        label,
        cuda_major: row.cuda_major,
        cuda: row.cuda,
        min_driver: min_driver(situation, row.cuda_major),
        sass: Some(&row.sass),
        ptx: Some(&row.ptx),
        fix_for_old_driver:
            "update the driver, or take a release for an older CUDA (`cudock facts onnxruntime`)".to_owned(),
        fix_for_no_code: "take a release with code for this GPU (`cudock facts onnxruntime`)".to_owned(),
    };
    let mut judgement = judge(situation, &build);
    // Libraries in wheels are not on the loader's path: the program has to load them first.
    let in_wheels = needed.clone().any(|soname| !situation.host.cuda_libraries.contains_key(soname));
    if judgement.verdict == Verdict::Works && in_wheels {
        judgement.reason.push_str(", once onnxruntime.preload_dlls() or import torch has loaded CUDA");
    }
    tell(checks, reports, identity, judgement);
}

fn jax(
    situation: &Situation<'_>,
    python: &PythonEnvironment,
    checks: &mut Vec<Check>,
    reports: &mut Vec<FrameworkReport>,
) {
    let Some(jax) = python.get("jax").or_else(|| python.get("jaxlib")) else { return };
    let plugin = python
        .distributions
        .iter()
        .find(|found| found.name.starts_with("jax-cuda") && found.name.ends_with("-plugin"));
    let Some(plugin) = plugin else {
        let fix =
            "pip install -U 'jax[cuda13]' (or cuda12 for drivers before R580), if it is meant to use the GPU"
                .to_owned();
        let judgement = cpu_only(
            situation,
            "has no CUDA plugin, it uses the CPU",
            codes::CPU_BUILD,
            Status::Warning,
            fix,
        );
        tell(checks, reports, ("jax", jax.version.to_string(), "CPU build".to_owned()), judgement);
        return;
    };
    let row = situation.facts.frameworks().jax_plugin(&plugin.name, &plugin.version);
    let cuda_major = row.map_or(12, |row| row.cuda_major);
    let build = Build {
        name: "jax",
        version: jax.version.to_string(),
        label: format!("{} {}", plugin.name, plugin.version),
        cuda_major,
        cuda: row.and_then(|row| row.built_with).map(cudock_facts::version::CudaRelease::version),
        min_driver: row.map(|row| row.min_driver),
        sass: row.and_then(|row| row.sass.as_deref()).or_else(|| nearest_jax_code(situation, plugin)),
        ptx: row.and_then(|row| row.ptx.as_deref()),
        fix_for_old_driver: "update the driver, or pip install 'jax[cuda12]'".to_owned(),
        fix_for_no_code: "take a newer JAX".to_owned(),
    };
    let judgement = judge(situation, &build);
    tell(checks, reports, (build.name, build.version, build.label), judgement);
}

/// Not every JAX release's code was read; between two releases that were, it did not shrink.
fn nearest_jax_code<'a>(situation: &Situation<'a>, plugin: &Distribution) -> Option<&'a [SmArch]> {
    let rows = situation.facts.frameworks().jax_plugin.iter();
    let known = rows.filter(|row| row.package == plugin.name && row.version <= plugin.version);
    known.filter_map(|row| row.sass.as_deref()).next_back()
}

/// A CUDA in `LD_LIBRARY_PATH` replaces libraries that wheels bring, because theirs are found later.
fn library_path(situation: &Situation<'_>, python: &PythonEnvironment, checks: &mut Vec<Check>) {
    let path = situation.host.environment.get("LD_LIBRARY_PATH").map_or("", String::as_str);
    let shadowing = situation.host.cuda_libraries.iter().find(|(soname, found)| {
        let folder = found.rsplit_once('/').map_or("", |(folder, _)| folder);
        let second_level = soname.starts_with("libnvJitLink") || soname.starts_with("libcudnn_");
        second_level
            && path.split(':').any(|entry| entry.trim_end_matches('/') == folder)
            && python.wheel_libraries.iter().any(|name| name == *soname)
    });
    if let Some((soname, found)) = shadowing {
        let message = format!(
            "LD_LIBRARY_PATH puts {found} before the {soname} of the wheels: versions mix, symbols go missing"
        );
        let fix = "unset LD_LIBRARY_PATH for programs that bring their CUDA as wheels";
        checks.push(
            Check::bad(Area::Frameworks, Status::Warning, codes::LIBRARY_PATH_SHADOWS, message, fix)
                .seen(found, "found first"),
        );
    }
}
