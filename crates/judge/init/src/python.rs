//! Python projects: the Python version, the command, and drafts of their Dockerfiles.

use std::str::FromStr;

use cudock_base::UsageError;
use cudock_manifests::Declared;
use pep440_rs::{Version, VersionSpecifiers};

use crate::candidates::{Draft, first_that_runs};
use crate::command;
use crate::detect::PythonManifest;
use crate::packages::{FrameworkRelease, Wanted};
use crate::render::{self, PythonApp};
use crate::{Choice, Detected, InitContext, InitOptions, Installer, ProjectKind};

/// A project whose packages pip, uv or conda installs.
pub(crate) fn draft(
    context: &InitContext<'_>,
    detected: &Detected,
    options: &InitOptions,
) -> Result<Draft, UsageError> {
    let installer = detected.installer.unwrap_or(Installer::Pip);
    let manifest = PythonManifest::read(context.files, installer, context.arch())?
        .ok_or_else(|| UsageError::new(format!("{} not found", detected.file)))?;
    if detected.kind == ProjectKind::CudaPython && context.target.is_none() {
        return Err(UsageError::new(format!("the packages in {} need a GPU", manifest.file))
            .hint("name one with --for, such as --for T4"));
    }
    let command = command::of_python(context.files, options)?;
    let project = PythonProject { context, kind: detected.kind, manifest, command, options };
    match installer {
        Installer::Pip => project.pip(),
        Installer::Uv => project.uv(),
        Installer::Conda => project.conda(),
    }
}

/// A model that cudock serves with ONNX Runtime.
pub(crate) fn onnx(
    context: &InitContext<'_>,
    detected: &Detected,
    options: &InitOptions,
) -> Result<Draft, UsageError> {
    let declared = Declared::default();
    let gpu = context.target.is_some();
    let wanted = Wanted { facts: context.facts, declared: &declared, gpu, cuda: options.cuda };
    let command = options.command.as_deref().map(command::parse);
    let releases = wanted.releases(ProjectKind::Onnx);
    let drafts = releases.iter().filter_map(|release| {
        let python = choose_python(context, &release.pythons, None, options, &release.name_and_version())?;
        let framework = framework_choice(context, release, "");
        let command = command.clone().unwrap_or_else(|| {
            ["cudock", "serve", ".", "--listen", "0.0.0.0:8000", "--offline"].map(str::to_owned).to_vec()
        });
        let app = PythonApp { context, python: &python, command: &command };
        let dockerfile = render::onnx(&app, &detected.file, (&framework, release));
        let subject = release.name_and_version();
        Some(Draft { subject, choices: vec![python, framework], notes: Vec::new(), dockerfile })
    });
    first_that_runs(context, "onnxruntime-gpu", drafts)
}

struct PythonProject<'a> {
    context: &'a InitContext<'a>,
    kind: ProjectKind,
    manifest: PythonManifest,
    command: Vec<String>,
    options: &'a InitOptions,
}

impl PythonProject<'_> {
    fn pip(&self) -> Result<Draft, UsageError> {
        if self.kind == ProjectKind::CudaPython {
            let python = self.python()?;
            let dockerfile = render::pip(&self.app(&python), &self.manifest, None);
            return first_that_runs(self.context, "the packages", [self.draft(dockerfile, vec![python])]);
        }
        let Self { context, manifest, options, .. } = self;
        let (declared, gpu) = (&manifest.declared, context.target.is_some());
        let releases = Wanted { facts: context.facts, declared, gpu, cuda: options.cuda }.releases(self.kind);
        let drafts = releases.iter().filter_map(|release| {
            let subject = release.name_and_version();
            let python = choose_python(context, &release.pythons, Some(declared), options, &subject)?;
            let framework = framework_choice(context, release, &manifest.file);
            let dockerfile = render::pip(&self.app(&python), manifest, Some((&framework, release)));
            let notes = unpinned(manifest, Some(release));
            Some(Draft { subject, choices: vec![python, framework], notes, dockerfile })
        });
        first_that_runs(context, self.kind.name(), drafts)
    }

    /// The lock decides the versions: they are judged, not chosen.
    fn uv(&self) -> Result<Draft, UsageError> {
        if self.manifest.file != "uv.lock" {
            return Err(UsageError::new("uv.lock not found").hint("run `uv lock` first"));
        }
        let locked = self.locked();
        let python = self.python()?;
        let dockerfile = render::uv(&self.app(&python), locked.as_ref());
        let choices = std::iter::once(python).chain(locked).collect();
        first_that_runs(self.context, self.kind.name(), [self.draft(dockerfile, choices)])
    }

    fn conda(&self) -> Result<Draft, UsageError> {
        let driver = self.context.target.and_then(|target| target.cuda).map(|cuda| {
            let reason = "what the driver of the target reports. A build machine without a GPU reports none, and would get \
                          packages for the CPU";
            Choice::new("CONDA_OVERRIDE_CUDA", &cuda, reason)
        });
        let cuda = self.options.cuda.map(|cuda| Choice::new("cuda-version", &cuda, "chosen with --cuda"));
        let own = self.manifest.declared.python.clone();
        let python =
            own.map(|python| Choice::new("Python", &python, format!("as in {}", self.manifest.file)));
        let locked = self.locked();
        let dockerfile =
            render::conda(self.context, &self.manifest, [driver.as_ref(), cuda.as_ref()], &self.command);
        let choices = [python, driver, cuda, locked].into_iter().flatten().collect();
        first_that_runs(self.context, self.kind.name(), [self.draft(dockerfile, choices)])
    }

    fn app<'b>(&'b self, python: &'b Choice) -> PythonApp<'b> {
        PythonApp { context: self.context, python, command: &self.command }
    }

    /// The only draft of a project whose files decide everything.
    fn draft(&self, dockerfile: String, choices: Vec<Choice>) -> Draft {
        let subject = match self.locked() {
            Some(choice) => format!("{} {} in {}", choice.name, choice.value, self.manifest.file),
            None => self.manifest.file.clone(),
        };
        Draft { subject, choices, notes: unpinned(&self.manifest, None), dockerfile }
    }

    fn python(&self) -> Result<Choice, UsageError> {
        let (available, declared) = (known_pythons(self.context), Some(&self.manifest.declared));
        choose_python(self.context, &available, declared, self.options, "the project").ok_or_else(|| {
            UsageError::new("no Python version fits the project").hint("choose one with --python")
        })
    }

    /// The exact version of the framework in the project's file.
    fn locked(&self) -> Option<Choice> {
        let names: &[&str] = match self.kind {
            ProjectKind::Torch => &["torch", "pytorch", "pytorch-gpu"],
            ProjectKind::Tensorflow => &["tensorflow"],
            ProjectKind::Jax => &["jax"],
            _ => &[],
        };
        let packages = &self.manifest.declared.packages;
        let package = packages.iter().find(|package| names.contains(&package.name.as_str()))?;
        let version = package.exact.as_ref()?;
        Some(Choice::new(&package.name, version, format!("as in {}", self.manifest.file)))
    }
}

fn framework_choice(context: &InitContext<'_>, release: &FrameworkRelease, file: &str) -> Choice {
    let why = match context.target {
        _ if release.is_pinned => format!("as in {file}"),
        Some(target) => format!("the newest release that runs on {target}"),
        None => "the newest release".to_owned(),
    };
    let FrameworkRelease { name, version, build, remark, .. } = release;
    Choice::new(name, &format!("{version} ({build})"), format!("{why}; {remark}"))
}

/// A note about packages that a later build may install in another version.
fn unpinned(manifest: &PythonManifest, framework: Option<&FrameworkRelease>) -> Vec<String> {
    let open = manifest.declared.packages.iter().filter(|package| {
        let is_pinned = framework.is_some_and(|release| release.installs(&package.name));
        package.exact.is_none() && !manifest.declared.is_lock && !is_pinned
    });
    let names: Vec<&str> = open.map(|package| package.name.as_str()).collect();
    if names.is_empty() {
        return Vec::new();
    }
    vec![format!("{} does not pin {}: a later build may differ", manifest.file, names.join(", "))]
}

/// Python versions of the newest framework, for packages whose wheels are not in the tables.
fn known_pythons(context: &InitContext<'_>) -> Vec<String> {
    let newest = context.facts.frameworks().torch.iter().max_by(|one, other| one.version.cmp(&other.version));
    newest.map(|release| release.python.clone()).unwrap_or_default()
}

/// The newest Python but one among those that a package has wheels for, within what project and user require. Other
/// packages publish wheels for a new Python later.
fn choose_python(
    context: &InitContext<'_>,
    available: &[String],
    declared: Option<&Declared>,
    options: &InitOptions,
    subject: &str,
) -> Option<Choice> {
    let minor = |text: &str| text.trim().split('.').take(2).collect::<Vec<_>>().join(".");
    let exactly = |python: String, reason: &str| {
        available.contains(&python).then(|| Choice::new("Python", &python, reason))
    };
    if let Some(python) = &options.python {
        return exactly(minor(python), "chosen with --python");
    }
    if let Some(file) = context.files.text(".python-version") {
        return exactly(minor(file.lines().next().unwrap_or_default()), "as in .python-version");
    }
    let required = declared.and_then(|declared| declared.python.as_deref());
    let range = required.and_then(|range| VersionSpecifiers::from_str(range).ok());
    let allowed = available.iter().filter(|python| {
        let version = Version::from_str(python).ok();
        range.as_ref().is_none_or(|range| version.is_some_and(|version| range.contains(&version)))
    });
    let mut newest_first = allowed.rev();
    let newest = newest_first.next()?;
    let reason = format!("the newest but one for {subject}, because other packages support the newest later");
    Some(match newest_first.next() {
        Some(python) => Choice::new("Python", python, reason),
        None => Choice::new("Python", newest, format!("the only one for {subject} that the project allows")),
    })
}

#[cfg(test)]
mod tests {
    use cudock_facts::Facts;
    use cudock_manifests::NoFiles;

    use super::*;

    #[test]
    fn the_newest_python_but_one_is_chosen_within_the_requirements() {
        let facts = Facts::embedded();
        let context = InitContext { facts: &facts, files: &NoFiles, name: "app", target: None };
        let available = ["3.10", "3.11", "3.12", "3.13"].map(str::to_owned);
        let cases = [
            (None, None, Some("3.12")),
            (Some(">=3.10,<3.13"), None, Some("3.11")),
            (Some(">=3.13"), None, Some("3.13")),
            (Some(">=3.14"), None, None),
            (None, Some("3.10"), Some("3.10")),
            (None, Some("3.13.2"), Some("3.13")),
            (None, Some("3.14"), None),
        ];
        for (required, option, expected) in cases {
            let mut declared = Declared::default();
            declared.python = required.map(str::to_owned);
            let options = InitOptions { python: option.map(str::to_owned), ..InitOptions::default() };
            let chosen = choose_python(&context, &available, Some(&declared), &options, "torch");
            assert_eq!(chosen.map(|choice| choice.value).as_deref(), expected, "{required:?} {option:?}");
        }
    }
}
