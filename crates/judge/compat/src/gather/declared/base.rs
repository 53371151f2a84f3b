//! The base image of a Dockerfile: whether it exists, what it demands of the host and what it brings.

use cudock_facts::Facts;
use cudock_facts::finding::{Finding, FindingEvidence, Severity};
use cudock_facts::lookup::{CudaImage, ImageTag, split_reference};
use cudock_facts::tables::{ImageRequirement, TagStatus, Tags};
use cudock_facts::version::{CudaRelease, CudaVersion, DriverVersion};
use cudock_host::frameworks::Build;
use cudock_host::host::LibraryKind;
use pep440_rs::Version;

use crate::codes;
use crate::evidence::{BuildFailure, DriverCopy, Evidence, Reach, Unread};
use cudock_manifests::{DeclaredImage, DeclaredPackage};

/// The contents of a base image.
#[derive(Debug, Clone, Default)]
pub(super) struct Base {
    /// The major of the CUDA runtime in it.
    pub(super) cuda_major: Option<u8>,
    /// The CUDA whose libraries and run-time compiler are in it.
    pub(super) toolkit: Option<CudaVersion>,
    /// Whether it holds CUDA's math libraries.
    pub(super) libraries: bool,
    /// The major of the cuDNN in it.
    pub(super) cudnn: Option<u8>,
    pub(super) package: Option<DeclaredPackage>,
    /// Whether all libraries that its framework needs are in it.
    pub(super) is_complete: bool,
    /// Whether its framework is the build of a conda channel, and not the wheel.
    pub(super) is_by_conda: bool,
}

/// The CUDA toolkit in an image, by its tag.
pub(super) fn toolkit_of_image(facts: &Facts, reference: &str) -> Option<CudaVersion> {
    let (repository, tag) = split_reference(reference);
    if repository == "nvidia/cuda" {
        let tag = ImageTag::parse(tag)?;
        let cuda: CudaRelease = tag.cuda.parse().ok()?;
        return tag.flavor.contains("devel").then(|| cuda.version());
    }
    let found = facts.images().framework_image(repository, tag)?;
    found.cuda?.parse().ok()
}

/// Reads what the tables know of a base image, into the evidence.
pub(super) fn read(facts: &Facts, image: &DeclaredImage, file: &str, evidence: &mut Evidence) -> Base {
    let (repository, tag) = split_reference(&image.reference);
    let at = format!("{file}:{}", image.span.line);
    let is_by_digest = tag.is_empty() && image.reference.contains('@');
    if repository == "nvidia/cuda" && !is_by_digest {
        return cuda(facts, image, tag, &at, evidence);
    }
    if let Some(renamed) = facts.images().renamed.iter().find(|row| row.repository == repository) {
        let near = facts.images().nearest(tag);
        evidence.build_failure = Some(missing(image, &at, &renamed.text, &near));
        return Base::default();
    }
    if facts.images().plain.iter().any(|row| row.repository == repository) {
        return Base::default();
    }
    if let Some(found) = facts.images().framework_image(repository, tag) {
        return framework(facts, image, &found, evidence);
    }
    evidence.unread.push(Unread {
        what: format!("the base image {}", image.reference),
        at,
        why: "is not in the tables".to_owned(),
        fix: format!("check the base image by its own name: `cudock check {}`", image.reference),
    });
    Base::default()
}

fn missing(image: &DeclaredImage, at: &str, why: &str, near: &[String]) -> BuildFailure {
    let reference = &image.reference;
    let fix = near.first().map_or_else(
        || "choose a tag that `cudock facts image` lists".to_owned(),
        |near| format!("use nvidia/cuda:{near}"),
    );
    BuildFailure {
        code: codes::BASE_IMAGE_MISSING,
        reason: format!("the base image {reference} does not exist: {why}"),
        evidence: vec![FindingEvidence::new(at.to_owned(), format!("FROM {reference}"))],
        fix,
        error: "manifest unknown".to_owned(),
        message: format!("manifest for {reference} not found: manifest unknown"),
    }
}

/// An nvidia/cuda image: its requirements, its cuda-compat, its libraries.
fn cuda(facts: &Facts, image: &DeclaredImage, tag: &str, at: &str, evidence: &mut Evidence) -> Base {
    let images = facts.images();
    let (parsed, row) = match images.cuda_image(tag) {
        CudaImage::Found { tag, row } => (tag, row),
        CudaImage::Missing { reason, near } => {
            evidence.build_failure = Some(missing(image, at, &reason, &near));
            return Base::default();
        }
    };
    if let Some(tags) = row.filter(|tags| tags.status == TagStatus::Unsupported) {
        let message = format!(
            "NVIDIA ended support for the images of CUDA {}: their tags may be deleted at any time",
            tags.cuda
        );
        let fix = match images.successor(&parsed) {
            Some(tag) => format!("use nvidia/cuda:{tag}"),
            None => "choose a tag that `cudock facts image` lists".to_owned(),
        };
        let ended = Finding::new(codes::BASE_IMAGE_ENDED, Severity::Warning, message, fix);
        let from = FindingEvidence::new(at.to_owned(), format!("FROM {}", image.reference));
        evidence.findings.push(ended.with_evidence([from]));
    }
    let major = |tags: &Tags| tags.cudnn.first().and_then(|version| version.split('.').next()?.parse().ok());
    let cudnn = row.and_then(major);
    let Ok(cuda) = parsed.cuda.parse::<CudaRelease>() else { return Base::default() };
    container(facts, cuda, evidence);
    // Every one of these images holds the cuda-compat of its CUDA.
    if let Some(branch) = facts.drivers().branch_with(cuda.version()) {
        evidence.driver_copies.push(DriverCopy {
            path: format!("{at}: {}", image.reference),
            kind: LibraryKind::Compat,
            version: Some(DriverVersion::of_branch(branch.branch)),
            note: None,
            reach: Reach::CompatDirectory,
        });
    }
    let flavor = parsed.flavor.as_str();
    let libraries = flavor.contains("runtime") || flavor.contains("devel");
    Base {
        cuda_major: Some(cuda.version().major()),
        toolkit: Some(cuda.version()).filter(|_| libraries),
        libraries,
        cudnn: cudnn.filter(|_| flavor.contains("cudnn")),
        ..Base::default()
    }
}

/// The variables of an image of NVIDIA's.
fn container(facts: &Facts, cuda: CudaRelease, evidence: &mut Evidence) {
    let environment = &mut evidence.environment;
    let mut set = |name: &str, value: String| {
        environment.entry(name.to_owned()).or_insert(value);
    };
    set("CUDA_VERSION", cuda.to_string());
    set("NVIDIA_VISIBLE_DEVICES", "all".to_owned());
    set("NVIDIA_DRIVER_CAPABILITIES", "compute,utility".to_owned());
    if let Some(row) = facts.images().requirement(cuda) {
        set("NVIDIA_REQUIRE_CUDA", requirement(facts, row));
    }
}

/// An image that holds a framework.
fn framework(
    facts: &Facts,
    image: &DeclaredImage,
    found: &cudock_facts::lookup::FrameworkImageMatch<'_>,
    evidence: &mut Evidence,
) -> Base {
    let version: Option<Version> = found.version.parse().ok();
    let cuda: Option<CudaVersion> = found.cuda.and_then(|cuda| cuda.parse().ok()).or_else(|| {
        let tensorflow = version.as_ref().filter(|_| found.row.package == "tensorflow" && found.row.gpu)?;
        facts.frameworks().tensorflow(tensorflow)?.cuda
    });
    // Those that rest on an image of nvidia/cuda keep its start gate.
    let gate = cuda.filter(|_| found.row.gpu && found.row.is_on_cuda_image(found.flavor));
    let release = gate.and_then(|cuda| {
        let rows = facts.images().require.iter().filter(|row| row.cuda.version() == cuda);
        rows.map(|row| row.cuda).max()
    });
    if let Some(release) = release {
        container(facts, release, evidence);
    }
    let first_wheel = found.row.conda_before.as_ref();
    let is_by_conda = first_wheel.is_some_and(|first| version.as_ref().is_some_and(|own| own < first));
    let tag = found.cuda.map(|cuda| format!("cu{}", cuda.split('.').take(2).collect::<String>()));
    let package = DeclaredPackage::new(found.row.package.clone(), image.span);
    Base {
        cuda_major: cuda.map(CudaVersion::major),
        libraries: found.row.gpu,
        package: Some(DeclaredPackage { exact: version, tag, ..package }),
        is_complete: found.row.gpu,
        is_by_conda,
        ..Base::default()
    }
}

/// The build of conda's channel instead of the wheel of the same release.
pub(super) fn as_by_conda(facts: &Facts, build: &mut Build) {
    let rows = &facts.packages().conda_build;
    let row = rows.iter().find(|row| row.channel == "pytorch" && Some(row.cuda) == build.cuda);
    if let Some(row) = row {
        build.sass = Some(row.sass.clone());
    }
    build.ptx = row.map(|row| row.ptx.clone());
}

/// The variable's value, put together from the parts the tables have.
fn requirement(facts: &Facts, row: &ImageRequirement) -> String {
    let brands = |name: &str| -> Vec<&str> {
        let set = facts.images().brand_set.iter().find(|set| set.name == name);
        set.map(|set| set.brands.iter().map(String::as_str).collect()).unwrap_or_default()
    };
    let mut alternatives = vec![format!("cuda>={}", row.minimum)];
    for (name, branches) in
        [("tesla", &row.tesla), ("with_geforce", &row.with_geforce), ("datacenter", &row.datacenter)]
    {
        for branch in branches {
            for brand in brands(name) {
                alternatives.push(format!("brand={brand},driver>={branch},driver<{}", branch + 1));
            }
        }
    }
    alternatives.extend(row.any_brand.iter().cloned());
    alternatives.join(" ")
}
