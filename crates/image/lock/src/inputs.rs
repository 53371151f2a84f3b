//! The requirements of a project's `[image]`, and the digests that detect changes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use cudock_base::{Digest, files};
use cudock_facts::Facts;
use cudock_project::{FILE_NAME, ImageBuild, Project};
use cudock_target::capability_named;

use crate::LockError;
use crate::debian::sources::{RELEASES, Release};
use crate::libraries::{LibrarySource, check_file, needed_by, source_of};
use crate::python::WantedPackages;

/// A change here makes existing locks stale: the rules by which packages are chosen.
const RULES: &str = "1";

/// The rule by which images for older GPUs get a smaller cuDNN.
pub const SMALL_CUDNN: &str = "small-cudnn";

/// Packages that every image has, and why.
const BASE: [(&str, &str); 4] = [
    ("libc6", "every program"),
    ("libgcc-s1", "every program"),
    ("libstdc++6", "every program"),
    ("ca-certificates", "https"),
];

/// The packages to lock.
pub(crate) struct LockInputs {
    pub(crate) release: &'static Release,
    pub(crate) has_python: bool,
    pub(crate) packages: WantedPackages,
    /// The build of ONNX Runtime that serves the model.
    pub(crate) runtime: Option<&'static str>,
    /// Debian packages with the reason why they are wanted.
    pub(crate) debs: Vec<(String, String)>,
    /// Libraries of the program, each with the names that its Debian package may have.
    pub(crate) libraries: Vec<(String, Vec<String>)>,
    pub(crate) digests: BTreeMap<String, Digest>,
}

/// The `[image]` section of a project.
pub(crate) fn image_of(project: &Project) -> Result<&ImageBuild, LockError> {
    let path = || project.directory.join(FILE_NAME);
    project.manifest.image.as_ref().ok_or_else(|| LockError::NoImage { path: path() })
}

impl LockInputs {
    pub(crate) fn of(project: &Project, facts: &Facts) -> Result<Self, LockError> {
        let image = image_of(project)?;
        let mut gpus = Vec::new();
        for (index, target) in image.targets.iter().enumerate() {
            let capability = capability_named(facts, target).map_err(|error| {
                project.text.value_error(&format!("image.targets.{index}"), error.to_string(), None)
            })?;
            gpus.push(capability);
        }
        let model = image.model.clone().or_else(|| project.manifest.workload.model.clone());
        let is_served = image.entrypoint.is_empty() && image.program.is_none();
        let serves = is_served
            && model.as_ref().is_some_and(|model| model.extension().is_some_and(|end| end == "onnx"));
        let runtime =
            serves.then_some(if image.targets.is_empty() { "onnxruntime" } else { "onnxruntime-gpu" });
        let mut packages = WantedPackages {
            files: image.requirements.iter().map(PathBuf::from).collect(),
            ..WantedPackages::default()
        };
        let mut tracked: Vec<PathBuf> = packages.files.clone();
        if let Some(pyproject) = &image.pyproject {
            let uv_lock = pyproject.with_file_name("uv.lock");
            tracked.push(pyproject.clone());
            if project.directory.join(&uv_lock).is_file() {
                packages.uv_project = Some(pyproject.parent().unwrap_or(Path::new("")).to_owned());
                tracked.push(uv_lock);
            } else {
                packages.files.push(pyproject.clone());
            }
        }
        let has_python = image.python.is_some() || !packages.is_empty();
        let release = release_for(image)?;
        let mut debs: Vec<(String, String)> =
            BASE.iter().map(|(name, reason)| ((*name).to_owned(), (*reason).to_owned())).collect();
        if runtime.is_some() && !gpus.is_empty() {
            debs.push(("zlib1g".to_owned(), "cuDNN is linked to it".to_owned()));
        }
        debs.extend(image.packages.iter().map(|name| (name.clone(), "[image]".to_owned())));
        let mut libraries = Vec::new();
        if let Some(program) = &image.program {
            for soname in needed_by(&project.directory.join(program))? {
                match source_of(&soname, facts) {
                    LibrarySource::Driver => {}
                    LibrarySource::Wheel(requirement) => packages.requirements.push(requirement),
                    LibrarySource::Deb(names) => libraries.push((soname, names)),
                }
            }
        }
        if let Some(runtime) = runtime.and_then(|name| facts.runtimes().newest(name, image.arch)) {
            let sonames = runtime.needs.iter().chain(&runtime.loads);
            let is_small = image.rules.get(SMALL_CUDNN) != Some(&false);
            let small =
                |soname: &String| facts.runtimes().small_requirement_for(soname, &gpus).filter(|_| is_small);
            let requirements = sonames
                .filter_map(|soname| small(soname).or_else(|| facts.runtimes().requirement_for(soname)));
            packages.requirements.extend(requirements.map(str::to_owned));
        }
        packages.requirements.sort();
        packages.requirements.dedup();
        if let Some(model) = &model {
            check_file(&project.directory.join(model))?;
        }
        let derived =
            serde_json::json!({"runtime": runtime, "wheels": packages.requirements, "libraries": libraries});
        let digests = digests(project, image, &tracked, &derived)?;
        if !has_python && runtime.is_none() && image.program.is_none() && image.packages.is_empty() {
            return Err(LockError::Empty);
        }
        Ok(Self { release, has_python, packages, runtime, debs, libraries, digests })
    }
}

/// The release that `suite` names, or that has the wanted Python; else the first.
fn release_for(image: &ImageBuild) -> Result<&'static Release, LockError> {
    let listed = || {
        let rows = RELEASES.iter().map(|release| format!("{} has {}", release.suite, release.python));
        rows.collect::<Vec<_>>().join(", ")
    };
    let wrong = |reason: String| LockError::Release { reason: format!("{reason}; {}", listed()) };
    let chosen = match (&image.suite, &image.python) {
        (Some(suite), _) => {
            Release::find(suite).ok_or_else(|| wrong(format!("unknown release `{suite}`")))?
        }
        (None, Some(python)) => {
            let has = RELEASES.iter().find(|release| release.python == python);
            has.ok_or_else(|| wrong(format!("no supported release has Python {python}")))?
        }
        (None, None) => RELEASES.first().ok_or_else(|| wrong("no release".to_owned()))?,
    };
    match &image.python {
        Some(python) if python != chosen.python => {
            Err(wrong(format!("{} does not have Python {python}", chosen.suite)))
        }
        _ => Ok(chosen),
    }
}

/// The digest of what in `[image]` affects the lock, and those of the files that it names. Entry points, users and the
/// like affect the image only.
fn digests(
    project: &Project,
    image: &ImageBuild,
    tracked: &[PathBuf],
    derived: &serde_json::Value,
) -> Result<BTreeMap<String, Digest>, LockError> {
    let section = serde_json::json!({
        "rules": RULES, "python": image.python, "requirements": image.requirements, "pyproject": image.pyproject,
        "packages": image.packages, "targets": image.targets, "arch": image.arch, "suite": image.suite,
        "derived": derived,
    });
    let mut digests =
        BTreeMap::from([("image".to_owned(), Digest::sha256_of(section.to_string().as_bytes()))]);
    let mut waiting: Vec<PathBuf> = tracked.to_vec();
    while let Some(path) = waiting.pop() {
        let name = path.display().to_string();
        if digests.contains_key(&name) {
            continue;
        }
        let text = files::read_text(&project.directory.join(&path))?;
        digests.insert(name, Digest::sha256_of(text.as_bytes()));
        waiting.extend(included(&text).map(|other| path.with_file_name(other)));
    }
    Ok(digests)
}

/// The files that a requirement file includes: `-r other.txt`, `-c constraints.txt`.
fn included(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| {
        let rest = ["-r", "--requirement", "-c", "--constraint"]
            .into_iter()
            .find_map(|option| line.trim().strip_prefix(option)?.strip_prefix([' ', '=']))?;
        rest.split_whitespace().next().filter(|name| !name.contains("://"))
    })
}

/// How the inputs of a lock differ from those of the project, in words.
pub(crate) fn differences(
    locked: &BTreeMap<String, Digest>,
    current: &BTreeMap<String, Digest>,
) -> Vec<String> {
    let name = |name: &str| if name == "image" { format!("[image] in {FILE_NAME}") } else { name.to_owned() };
    let mut reasons = Vec::new();
    for (key, digest) in current {
        match locked.get(key) {
            None => reasons.push(format!("{} is new", name(key))),
            Some(locked) if locked != digest => reasons.push(format!("{} has changed", name(key))),
            Some(_) => {}
        }
    }
    let gone = locked.keys().filter(|key| !current.contains_key(*key));
    reasons.extend(gone.map(|key| format!("{} is not used any more", name(key))));
    reasons
}
