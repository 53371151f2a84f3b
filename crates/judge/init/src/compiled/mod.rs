//! CUDA programs that `CMake` or make builds: what they link, for which architectures, in which images.

pub(crate) mod app;
mod cmake;
mod makefile;

use cudock_base::UsageError;
use cudock_compat::Target;
use cudock_facts::Facts;
use cudock_facts::tables::{TagStatus, Tags};
use cudock_facts::version::{Capability, CudaRelease, DriverVersion};
use cudock_manifests::{Targets, read_sources};

use self::app::{Architectures, BuildTargets, CompiledApp};
use crate::candidates::{Draft, first_that_runs};
use crate::detect::is_plain_path;
use crate::{Choice, Detected, InitContext, InitOptions, ProjectKind, command, render};

pub(crate) fn draft(
    context: &InitContext<'_>,
    detected: &Detected,
    options: &InitOptions,
) -> Result<Draft, UsageError> {
    let needs_gpu = || {
        UsageError::new(format!("{} builds a program that needs an NVIDIA GPU", detected.file))
            .hint("name one with --for, such as --for T4")
    };
    let target = context.target.ok_or_else(needs_gpu)?;
    let capability = target.capability.ok_or_else(needs_gpu)?;
    let mut targets = match detected.kind {
        ProjectKind::Make => makefile::read(&context.files.text(&detected.file).unwrap_or_default()),
        _ => cmake::read_all(context.files),
    };
    // Names that are computed, as `${NAME}`, are not known.
    targets.executables.retain(|name| is_plain_path(name));
    targets.libraries.retain(|name| is_plain_path(name));
    let command = program(&targets, options)?;
    if targets.executables.is_empty() {
        targets.executables.extend(command.first().filter(|name| is_plain_path(name)).cloned());
    }
    let architectures = architectures(context, detected, target, capability)?;
    let (flavor, linked) = flavor(context.facts, &targets.links);
    let notes = match targets.packages.as_slice() {
        [] => Vec::new(),
        packages => {
            vec![format!(
                "add the packages that provide {} to both stages of the Dockerfile",
                packages.join(", ")
            )]
        }
    };
    let releases = releases(context.facts, (capability, target.driver), flavor, options);
    let drafts = releases.into_iter().map(|(cuda, images)| {
        let reason = if options.cuda.is_some() {
            "chosen with --cuda".to_owned()
        } else {
            format!("the newest of NVIDIA's images that runs on {}", context.target_name())
        };
        let release = Choice::new("CUDA", &cuda, reason);
        let base = Choice::new("base image", &images.run, &linked);
        let build = Choice::new("build image", &images.build, "nvcc is needed to build, not to run");
        let app = CompiledApp {
            context,
            kind: detected.kind,
            targets: &targets,
            architectures: &architectures,
            cuda: &release,
            build: &build,
            base: &base,
            command: &command,
        };
        let dockerfile = render::compiled(&app);
        Draft {
            subject: format!("CUDA {cuda}"),
            choices: vec![release, build, base],
            notes: notes.clone(),
            dockerfile,
        }
    });
    first_that_runs(context, "nvidia/cuda images", drafts)
}

/// The command that the container runs: the only program, or the one with the name of the project.
fn program(targets: &BuildTargets, options: &InitOptions) -> Result<Vec<String>, UsageError> {
    if let Some(command) = &options.command {
        return Ok(command::parse(command));
    }
    let named = targets.executables.iter().find(|name| targets.project.as_ref() == Some(*name));
    let only = if let [only] = targets.executables.as_slice() { Some(only) } else { None };
    let program = named.or(only).ok_or_else(|| {
        let all = targets.executables.join(", ");
        let message = if all.is_empty() {
            "cannot determine which program the project builds".to_owned()
        } else {
            format!("the project builds several programs: {all}")
        };
        UsageError::new(message).hint("name the one to start with --command")
    })?;
    Ok(vec![program.rsplit('/').next().unwrap_or(program).to_owned()])
}

fn architectures(
    context: &InitContext<'_>,
    detected: &Detected,
    target: &Target,
    capability: Capability,
) -> Result<Architectures, UsageError> {
    let file = &detected.file;
    let compiled = read_sources(context.files).compiled;
    let own = compiled.into_iter().find(|compiled| compiled.file.as_ref() == Some(file));
    let number = capability.number();
    match own.map_or(Targets::Default, |compiled| compiled.targets) {
        Targets::All => Ok(Architectures::Own(format!("{file} compiles for all architectures"))),
        Targets::Listed { sass, ptx } => {
            let runs = sass.iter().any(|sass| sass.runs_on(capability))
                || ptx.iter().any(|ptx| ptx.compiles_for(capability));
            let listed: Vec<String> =
                sass.iter().map(ToString::to_string).chain(ptx.iter().map(ToString::to_string)).collect();
            let listed = listed.join(", ");
            if !runs {
                return Err(UsageError::new(format!("{file} compiles for {listed}: none runs on {target}"))
                    .hint(format!("add {number} to the architectures in {file}, or remove them")));
            }
            Ok(Architectures::Own(format!("{file} compiles for {listed}")))
        }
        Targets::Default | Targets::Unknown(_) if detected.kind == ProjectKind::Cmake => {
            Ok(Architectures::Cmake(number))
        }
        Targets::Default | Targets::Unknown(_) => {
            let text = context.files.text(file).unwrap_or_default();
            Ok(match makefile::architecture_variable(&text, number) {
                Some(argument) => Architectures::Make(argument),
                None => Architectures::Nvcc(number),
            })
        }
    }
}

/// The smallest flavor of NVIDIA's images that has what a program links, and why.
fn flavor(facts: &Facts, links: &[String]) -> (&'static str, String) {
    let linked = |library: &str| {
        let is_it =
            |link: &&String| link.contains(library) && !link.contains("static") && !link.contains("nvtx3");
        links.iter().any(|link| is_it(&link))
    };
    if linked("cudnn") {
        return ("cudnn-runtime", "the program links cuDNN, which only the cudnn flavors have".to_owned());
    }
    let libraries = facts.toolkits().soname.iter().map(|row| row.library.as_str());
    let in_runtime =
        libraries.filter(|library| !library.starts_with("cudnn") && !["cudart", "driver"].contains(library));
    let used: Vec<&str> = in_runtime.filter(|library| linked(&library.to_ascii_lowercase())).collect();
    if used.is_empty() {
        ("base", "the program links no CUDA library but cudart, which base has".to_owned())
    } else {
        ("runtime", format!("the program links {}, which base does not have", used.join(", ")))
    }
}

/// Images of one CUDA release, by tag.
struct ImagePair {
    build: String,
    run: String,
}

/// Distributions of NVIDIA's images, by preference.
const SYSTEMS: [&str; 3] = ["ubuntu24.04", "ubuntu22.04", "ubuntu20.04"];

/// CUDA releases that compile for a GPU, run on its driver and have images of both flavors, newest first. The driver must
/// run them by itself: the forward compatibility of NVIDIA's images depends on how containers are started.
fn releases(
    facts: &Facts,
    (capability, driver): (Capability, Option<DriverVersion>),
    flavor: &str,
    options: &InitOptions,
) -> Vec<(CudaRelease, ImagePair)> {
    let compiles = |cuda: CudaRelease| {
        let toolkit = facts.toolkits().toolkit(cuda.version());
        toolkit.is_some_and(|toolkit| toolkit.sass.iter().any(|sass| sass.capability() == capability))
    };
    let runs =
        |cuda: CudaRelease| driver.is_none_or(|driver| facts.drivers().runs_toolkit(driver, cuda.version()));
    let mut tags: Vec<&Tags> = facts.images().tag.iter().collect();
    tags.retain(|tags| {
        let is_chosen = match options.cuda {
            Some(cuda) => tags.cuda.version() == cuda,
            None => tags.status == TagStatus::Supported && runs(tags.cuda),
        };
        is_chosen && compiles(tags.cuda)
    });
    tags.sort_by_key(|tags| std::cmp::Reverse(tags.cuda));
    tags.into_iter().filter_map(|tags| Some((tags.cuda, images(tags, flavor)?))).collect()
}

fn images(tags: &Tags, flavor: &str) -> Option<ImagePair> {
    // Before CUDA 12.4, the flavors have cuDNN's version in their name: cudnn8-runtime.
    let find = |system: &str, wanted: &str| {
        let grids = tags.grid.iter().filter(|grid| grid.os.iter().any(|os| os == system));
        let flavors = grids.flat_map(|grid| &grid.flavors);
        let is_wanted = |known: &&String| match wanted.strip_prefix("cudnn-") {
            Some(kind) => known.starts_with("cudnn") && known.ends_with(kind),
            None => *known == wanted,
        };
        let flavor = flavors.into_iter().find(is_wanted)?;
        Some(format!("nvidia/cuda:{}-{flavor}-{system}", tags.cuda))
    };
    let build = if flavor.starts_with("cudnn") { "cudnn-devel" } else { "devel" };
    SYSTEMS
        .iter()
        .find_map(|system| Some(ImagePair { build: find(system, build)?, run: find(system, flavor)? }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_flavor_has_what_is_linked() {
        let facts = Facts::embedded();
        let cases: [(&[&str], &str); 7] = [
            (&[], "base"),
            (&["cuda::cudart", "pthread"], "base"),
            (&["cuda::cublas"], "runtime"),
            (&["cuda::cublas_static", "cuda::nvtx3"], "base"),
            (&["-lnccl"], "runtime"),
            (&["${cuda_cufft_libraries}"], "runtime"),
            (&["-lcudnn", "-lcublas"], "cudnn-runtime"),
        ];
        for (links, expected) in cases {
            let links: Vec<String> = links.iter().map(|link| (*link).to_owned()).collect();
            assert_eq!(flavor(&facts, &links).0, expected, "{links:?}");
        }
    }

    #[test]
    fn images_are_chosen_by_gpu_and_flavor() {
        let facts = Facts::embedded();
        let newest = |capability, driver: Option<&str>, flavor| {
            let driver = driver.map(|driver| driver.parse().unwrap());
            let releases = releases(&facts, (capability, driver), flavor, &InitOptions::default());
            releases.into_iter().next().map(|(_, images)| format!("{} {}", images.build, images.run))
        };
        let cases = [
            (
                Capability::new(9, 0),
                None,
                "base",
                "nvidia/cuda:13.1.0-devel-ubuntu24.04 nvidia/cuda:13.1.0-base-ubuntu24.04",
            ),
            // CUDA 13.1.0 has no cudnn flavors, and 13.x no code for Volta.
            (
                Capability::new(9, 0),
                None,
                "cudnn-runtime",
                "nvidia/cuda:13.0.2-cudnn-devel-ubuntu24.04 nvidia/cuda:13.0.2-cudnn-runtime-ubuntu24.04",
            ),
            (
                Capability::new(7, 0),
                None,
                "base",
                "nvidia/cuda:12.9.1-devel-ubuntu24.04 nvidia/cuda:12.9.1-base-ubuntu24.04",
            ),
            (
                Capability::new(9, 0),
                Some("535.161.08"),
                "base",
                "nvidia/cuda:12.9.1-devel-ubuntu24.04 nvidia/cuda:12.9.1-base-ubuntu24.04",
            ),
        ];
        for (capability, driver, flavor, expected) in cases {
            assert_eq!(
                newest(capability, driver, flavor).as_deref(),
                Some(expected),
                "{capability} {flavor}"
            );
        }
    }
}
