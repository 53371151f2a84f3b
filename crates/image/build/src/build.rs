//! Assembles the image of a project from its lock.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cudock_base::{Date, Environment, try_parallel};
use cudock_compat::Target;
use cudock_facts::Facts;
use cudock_facts::version::{Capability, CudaVersion};
use cudock_http::{BlobStore, Progress};
use cudock_image::write::{Bundle, Compression, Destination, LayerBlob, WriteOptions};
use cudock_lock::{LockFile, PackageFetcher};
use cudock_project::{ImageBuild, Project};
use cudock_target::capability_named;
use cudock_trust::attach_documents;

use crate::config::{ConfigInput, SERVE_PORT, USER, architectures, config, group_name};
use crate::error::BuildError;
use crate::files::file::FileOrigin;
use crate::files::own::{self, Entry};
use crate::files::rules::{GPU_CODE, RuleSet};
use crate::input::{InputPackage, PlanInput};
use crate::layers::{LayerJob, WrittenLayer, group};
use crate::plan::ImagePlan;
use crate::report::{
    AttachedDocument, BuildReport, ImageReport, LayerReport, final_sizes, omitted, size_tree,
};
use crate::unpack::{PackageKind, unpack};
use crate::{check, unpack as unpacking};

/// Downloads at once.
const DOWNLOADS: usize = 6;
/// Name in attached documents for an image whose project has no name.
const UNNAMED: &str = "image";

/// The variable that sets the time of all files, as in other reproducible builds.
const SOURCE_DATE_EPOCH: &str = "SOURCE_DATE_EPOCH";

/// The inputs of a build.
pub struct BuildRequest<'a> {
    pub project: &'a Project,
    pub lock: &'a LockFile,
    pub facts: &'a Facts,
    pub environment: &'a Environment,
    /// GPUs instead of those in `[image]`.
    pub targets: &'a [String],
    /// Where the image is written; without one, it stays in the cache.
    pub destination: Option<&'a Destination>,
    pub compression: Option<Compression>,
    /// This program, for images that serve a model by themselves.
    pub program: PathBuf,
    /// Whether to explain the size of each part.
    pub explain: bool,
    pub today: Date,
    pub progress: Arc<dyn Progress>,
}

/// A new image, complete in the cache.
pub struct Built {
    pub bundle: Bundle,
    pub report: BuildReport,
}

/// GPUs of one compute capability, which share an image.
struct CardFamily {
    capabilities: Vec<Capability>,
    targets: Vec<Target>,
}

/// Builds an image and writes it to its destination.
pub fn build(request: &BuildRequest<'_>) -> Result<Built, BuildError> {
    let project = request.project;
    let default = ImageBuild::default();
    let image = project.manifest.image.as_ref().unwrap_or(&default);
    let rules = RuleSet::new(&image.rules)?;
    let families = families(request, image)?;
    let cache = request.environment.cache_directory();
    let cache = cache.ok_or_else(|| {
        BuildError::usage(
            "no cache directory: neither CUDOCK_CACHE nor HOME is set",
            "set CUDOCK_CACHE to a directory",
        )
    })?;
    let (entry, own) = own::files(project, image, &request.program)?;
    let packages = packages(request, &cache, &entry)?;
    let plan = ImagePlan::new(&PlanInput {
        facts: request.facts,
        arch: request.lock.target.arch,
        python: request.lock.target.python.as_deref(),
        packages: &packages,
        own,
        rules: &rules,
        operators: entry.operators.as_ref(),
        user: USER,
    })?;
    let store = BlobStore::open(&cache)?;
    let options = WriteOptions::in_environment(request.environment, Arc::clone(&request.progress))?;
    let chosen = request.destination.map(Destination::compression);
    let (compression, why) = match request.compression {
        Some(compression) => (compression, "as asked for"),
        None => chosen.unwrap_or((Compression::default(), "every puller reads gzip")),
    };
    let assembler = Assembler {
        request,
        image,
        entry: &entry,
        plan: &plan,
        rules: &rules,
        store: &store,
        options: &options,
        compression,
    };
    let mut bundles = Vec::new();
    let mut images = Vec::new();
    for family in families {
        let (bundle, report) = assembler.image(family)?;
        bundles.push(bundle);
        images.push(report);
    }
    let bundle = match <[Bundle; 1]>::try_from(bundles) {
        Ok([only]) => only,
        Err(several) => Bundle::index(several, &BTreeMap::new()),
    };
    let report = BuildReport {
        name: project.name(),
        digest: bundle.digest().to_owned(),
        destination: request.destination.map(ToString::to_string),
        compression: format!("{compression}: {why}"),
        images,
        warnings: plan.warnings,
    };
    if let Some(destination) = request.destination.filter(|_| report.runs()) {
        bundle.write(destination, &options)?;
    }
    Ok(Built { bundle, report })
}

/// The targets by compute capability, in their order; one without any for an image that runs on CPUs.
fn families(request: &BuildRequest<'_>, image: &ImageBuild) -> Result<Vec<CardFamily>, BuildError> {
    let names = if request.targets.is_empty() { &image.targets } else { request.targets };
    let mut families: Vec<CardFamily> = Vec::new();
    for name in names.iter().filter(|name| !name.eq_ignore_ascii_case("cpu")) {
        let capability = capability_named(request.facts, name)?;
        let target = Target::named(request.facts, name, None, request.today).ok().flatten();
        match families.iter_mut().find(|family| family.capabilities.contains(&capability)) {
            Some(family) => family.targets.extend(target),
            None => families
                .push(CardFamily { capabilities: vec![capability], targets: target.into_iter().collect() }),
        }
    }
    if families.is_empty() {
        families.push(CardFamily { capabilities: Vec::new(), targets: Vec::new() });
    }
    Ok(families)
}

/// Fetches and unpacks everything that is locked, several packages at once. The order of the result is that of the lock.
fn packages(
    request: &BuildRequest<'_>,
    cache: &Path,
    entry: &Entry,
) -> Result<Vec<InputPackage>, BuildError> {
    let lock_file = request.lock;
    let fetcher = PackageFetcher::new(request.environment, Arc::clone(&request.progress))?;
    let (debs, wheels) = (lock_file.debs.len(), lock_file.wheels.len());
    let package = |index: usize| -> Result<InputPackage, BuildError> {
        if let Some(deb) = lock_file.debs.get(index) {
            let archive = fetcher.deb(lock_file, deb)?;
            let unpacked = unpack(cache, PackageKind::Deb, &deb.file, &deb.digest, &archive)?;
            let origin = FileOrigin::new(deb.group, format!("{} {}", deb.name, deb.version), &deb.reason);
            return Ok(InputPackage { kind: PackageKind::Deb, origin, unpacked, members: Vec::new() });
        }
        let Some(wheel) = lock_file.wheels.get(index - debs) else {
            return Err(BuildError::usage("the lock file changed", "cudock lock"));
        };
        let archive = fetcher.wheel(wheel)?;
        let unpacked = unpack(cache, PackageKind::Wheel, &wheel.file, &wheel.digest, &archive)?;
        let origin = FileOrigin::new(wheel.group, format!("{} {}", wheel.name, wheel.version), &wheel.reason);
        let rows = &request.facts.runtimes().wheel;
        let known = rows.iter().find(|row| row.sha256 == wheel.digest.hex()).filter(|_| entry.serves);
        let members =
            known.into_iter().flat_map(|row| &row.members).map(|member| member.path.clone()).collect();
        Ok(InputPackage { kind: unpacking::PackageKind::Wheel, origin, unpacked, members })
    };
    // The first error is enough; what was fetched stays in the cache.
    let all: Vec<usize> = (0..debs + wheels).collect();
    try_parallel(&all, DOWNLOADS, |index| package(*index))
}

struct Assembler<'a> {
    request: &'a BuildRequest<'a>,
    image: &'a ImageBuild,
    entry: &'a Entry,
    plan: &'a ImagePlan,
    rules: &'a RuleSet,
    store: &'a BlobStore,
    options: &'a WriteOptions,
    compression: Compression,
}

impl Assembler<'_> {
    /// The image for the GPUs of one family.
    fn image(&self, family: CardFamily) -> Result<(Bundle, ImageReport), BuildError> {
        let CardFamily { capabilities, targets } = family;
        let time = source_date(self.request.environment)?;
        let kept = if self.rules.has(GPU_CODE) { capabilities.as_slice() } else { &[] };
        let job = LayerJob { store: self.store, compression: self.compression, time, targets: kept };
        let layers = job.write(self.plan, &group(self.plan))?;
        let lock_file = self.request.lock;
        // Not the directory's name, so that the same project gives the same image wherever it is built.
        let title = self.request.project.manifest.name.as_deref();
        let lock_digest = lock_file.digest()?;
        let cuda = lock_file.target.cuda.as_deref();
        let blobs: Vec<LayerBlob> = layers.iter().map(|layer| layer.blob.clone()).collect();
        let bundle_for = |targets: &[Capability]| {
            let config = config(&ConfigInput {
                title,
                image: self.image,
                arch: lock_file.target.arch,
                time,
                cuda,
                minimum_driver: cuda.and_then(|cuda| self.minimum_driver(cuda)),
                targets,
                lock: lock_digest.to_string(),
                runtime: self.runtime(),
                entrypoint: self.entry.command.clone(),
                layers: &layers,
            });
            Bundle::image(&config, &blobs, &BTreeMap::new())
        };
        let scratch = self.store.directory().join("scratch");
        let facts = self.request.facts;
        let asked = bundle_for(&capabilities);
        let checks = check::verdicts(&asked, &blobs, targets, facts, &scratch, self.options)?;
        // The labels name the GPUs that it was found to run on, not the requested ones.
        let runs_on: Vec<Capability> =
            capabilities.into_iter().filter(|capability| checks.runs_on(*capability)).collect();
        let mut bundle = bundle_for(&runs_on);
        let gpu = architectures(&runs_on);
        if !gpu.is_empty() {
            bundle.describe("io.cudock.gpu", &gpu);
        }
        let document = checks.document(bundle.digest());
        let attached = attach_documents(
            &mut bundle,
            lock_file,
            &lock_digest,
            title.unwrap_or(UNNAMED),
            document.as_ref(),
        )?;
        let sizes = final_sizes(self.plan, &layers);
        let report = ImageReport {
            digest: bundle.digest().to_owned(),
            gpu,
            compressed: blobs.iter().map(|blob| blob.size).sum(),
            unpacked: sizes.values().sum(),
            files: sizes.len(),
            layers: layers.iter().map(layer_report).collect(),
            omitted: omitted(self.plan, &sizes),
            checks: checks.targets(),
            documents: attached.into_iter().map(AttachedDocument::from).collect(),
            sizes: if self.request.explain { size_tree(self.plan, &sizes) } else { Vec::new() },
        };
        Ok((bundle, report))
    }

    /// The name of ONNX Runtime's library, where cudock serves with it.
    fn runtime(&self) -> Option<&str> {
        let mut names = self.plan.files.values().map(crate::files::file::ImageFile::name);
        names.find(|name| name.starts_with("libonnxruntime.so")).filter(|_| self.entry.serves)
    }

    fn minimum_driver(&self, cuda: &str) -> Option<String> {
        let cuda: CudaVersion = cuda.parse().ok()?;
        let rows = &self.request.facts.drivers().minor_compat;
        let row = rows.iter().find(|row| row.cuda_major == cuda.major())?;
        Some(row.min_linux.to_string())
    }
}

fn layer_report(layer: &WrittenLayer) -> LayerReport {
    LayerReport {
        group: group_name(layer.group),
        digest: layer.blob.digest.to_string(),
        compressed: layer.blob.size,
        files: layer.files,
        cached: layer.cached,
    }
}

/// The time of all files: that of `SOURCE_DATE_EPOCH`, or 1970.
fn source_date(environment: &Environment) -> Result<u64, BuildError> {
    let Some(text) = environment.get(SOURCE_DATE_EPOCH) else { return Ok(0) };
    text.to_str().and_then(|text| text.parse().ok()).ok_or_else(|| {
        BuildError::usage(
            format!("{SOURCE_DATE_EPOCH} is not a number of seconds"),
            "unset it, or set it to the output of `git log -1 --format=%ct`",
        )
    })
}

/// The ports that the image of a project publishes, as `HOST:CONTAINER`; the first one at `port`.
pub fn published_ports(project: &Project, port: Option<u16>) -> Vec<String> {
    let image = project.manifest.image.clone().unwrap_or_default();
    let serves = image.entrypoint.is_empty() && image.program.is_none();
    let ports = if serves && image.ports.is_empty() { vec![SERVE_PORT] } else { image.ports };
    let first = port.into_iter().map(Some).chain(std::iter::repeat(None));
    ports.iter().zip(first).map(|(inside, port)| format!("{}:{inside}", port.unwrap_or(*inside))).collect()
}
