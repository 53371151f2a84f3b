//! Dockerfiles of Python programs.

use std::collections::BTreeSet;

use super::{Dockerfile, USER, plain_image};
use crate::detect::{PythonManifest, is_plain_path};
use crate::packages::FrameworkRelease;
use crate::{Choice, InitContext};

/// The cache of pip is kept on the build machine, not in the image.
const PIP_CACHE: &str = "--mount=type=cache,target=/root/.cache/pip";

pub(crate) struct PythonApp<'a> {
    pub(crate) context: &'a InitContext<'a>,
    pub(crate) python: &'a Choice,
    pub(crate) command: &'a [String],
}

impl PythonApp<'_> {
    /// The official image, which has amd64 and arm64.
    fn image(&self) -> String {
        // Images of ended Python versions have no newer Debian.
        let old = ["3.7", "3.8"].contains(&self.python.value.as_str());
        format!("python:{}-slim-{}", self.python.value, if old { "bookworm" } else { "trixie" })
    }

    /// The part that all programs share: the user, the sources and the command.
    fn finish(&self, file: &mut Dockerfile) {
        file.blank();
        file.user();
        file.line("WORKDIR /app");
        file.line("COPY . .");
        self.start(file);
    }

    fn start(&self, file: &mut Dockerfile) {
        file.comment("Output appears in the log at once.");
        file.line("ENV PYTHONUNBUFFERED=1");
        file.command(USER, self.command);
    }
}

/// `pip install` of one release, in its own layer: it is large and changes rarely.
fn install(file: &mut Dockerfile, extra: &[&str], framework: (&Choice, &FrameworkRelease)) {
    let (choice, release) = framework;
    file.blank();
    file.explain(choice);
    let index = release.index.as_ref().map(|index| format!("--index-url {index} ")).unwrap_or_default();
    let quoted = release.requirements.iter().map(|requirement| {
        if requirement.contains('[') { format!("\"{requirement}\"") } else { requirement.clone() }
    });
    let requirements: Vec<String> = extra.iter().map(|extra| (*extra).to_owned()).chain(quoted).collect();
    file.lines(&format!("RUN {PIP_CACHE}"), &[format!("pip install {index}{}", requirements.join(" "))]);
}

pub(crate) fn pip(
    app: &PythonApp<'_>,
    manifest: &PythonManifest,
    framework: Option<(&Choice, &FrameworkRelease)>,
) -> String {
    let mut file = Dockerfile::new(app.context);
    file.blank();
    file.explain(app.python);
    file.line(&format!("FROM {}", app.image()));
    if let Some(framework) = framework {
        install(&mut file, &[], framework);
    }
    if manifest.file == "pyproject.toml" {
        file.blank();
        file.user();
        file.line("WORKDIR /app");
        file.line("COPY . .");
        file.lines(&format!("RUN {PIP_CACHE}"), &["pip install .".to_owned()]);
        app.start(&mut file);
        return file.0;
    }
    let is_installed = |name: &str| framework.is_some_and(|(_, release)| release.installs(name));
    if !manifest.declared.packages.iter().all(|package| is_installed(&package.name)) {
        file.blank();
        file.comment("Before the sources, so that a change of those does not install the packages again.");
        let included = manifest
            .declared
            .packages
            .iter()
            .filter_map(|package| package.file.as_deref())
            .filter(|path| is_plain_path(path));
        let files: BTreeSet<&str> = std::iter::once(manifest.file.as_str()).chain(included).collect();
        let mounts = files.iter().map(|path| format!("--mount=type=bind,source={path},target=/tmp/{path}"));
        let install = format!("pip install --requirement /tmp/{}", manifest.file);
        file.lines(&format!("RUN {PIP_CACHE}"), &mounts.chain([install]).collect::<Vec<_>>());
    }
    app.finish(&mut file);
    file.0
}

pub(crate) fn uv(app: &PythonApp<'_>, locked: Option<&Choice>) -> String {
    let mut file = Dockerfile::new(app.context);
    file.blank();
    file.explain(app.python);
    file.line(&format!("FROM {} AS build", app.image()));
    let uv = plain_image(app.context, "ghcr.io/astral-sh/uv");
    file.line(&format!("COPY --from={uv} /uv /usr/local/bin/"));
    file.lines(
        "ENV UV_COMPILE_BYTECODE=1",
        &["UV_LINK_MODE=copy".to_owned(), "UV_PYTHON_DOWNLOADS=never".to_owned()],
    );
    file.line("WORKDIR /app");
    match locked {
        Some(choice) => file.explain(choice),
        None => file.comment("All versions are those of uv.lock."),
    }
    let sync = "uv sync --frozen --no-dev";
    let cache = "RUN --mount=type=cache,target=/root/.cache/uv";
    let mount = |path: &str| format!("--mount=type=bind,source={path},target={path}");
    let packages = [mount("uv.lock"), mount("pyproject.toml"), format!("{sync} --no-install-project")];
    file.lines(cache, &packages);
    // As uv decides it: without a build system, the project itself is not installed.
    let project = app.context.files.text("pyproject.toml").unwrap_or_default();
    let is_package = project.contains("[build-system]");
    if is_package {
        file.line("COPY . .");
        file.lines(cache, &[sync.to_owned()]);
    }
    file.blank();
    file.comment("The same base without uv. The wheels bring CUDA: the base image needs none.");
    file.line(&format!("FROM {}", app.image()));
    file.user();
    file.line("WORKDIR /app");
    if is_package {
        file.line("COPY --from=build /app /app");
    } else {
        file.line("COPY --from=build /app/.venv /app/.venv");
        file.line("COPY . .");
    }
    file.line("ENV PATH=/app/.venv/bin:$PATH");
    app.start(&mut file);
    file.0
}

/// An environment of micromamba, for the CUDA version that the driver reports and one to install.
pub(crate) fn conda(
    context: &InitContext<'_>,
    manifest: &PythonManifest,
    [driver, cuda]: [Option<&Choice>; 2],
    command: &[String],
) -> String {
    let mut file = Dockerfile::new(context);
    file.blank();
    file.comment("The environment brings CUDA: the base image needs none. It has amd64 and arm64.");
    file.line(&format!("FROM {}", plain_image(context, "mambaorg/micromamba")));
    for choice in [driver, cuda].into_iter().flatten() {
        file.explain(choice);
    }
    let set = driver.map(|driver| format!("CONDA_OVERRIDE_CUDA={} ", driver.value)).unwrap_or_default();
    let package = cuda.map(|cuda| format!(" cuda-version={}", cuda.value)).unwrap_or_default();
    let path = &manifest.file;
    let steps = [
        format!("{set}micromamba install --yes --name base --file /tmp/{path}{package}"),
        "&& micromamba clean --all --yes".to_owned(),
    ];
    file.lines(&format!("RUN --mount=type=bind,source={path},target=/tmp/{path}"), &steps);
    file.blank();
    file.line("WORKDIR /app");
    file.line("COPY . .");
    file.comment("Output appears in the log at once.");
    file.line("ENV PYTHONUNBUFFERED=1");
    file.comment("The image's entry point activates the environment and is replaced by the command.");
    file.command("mambauser", command);
    file.0
}

pub(crate) fn onnx(app: &PythonApp<'_>, model: &str, framework: (&Choice, &FrameworkRelease)) -> String {
    let mut file = Dockerfile::new(app.context);
    file.blank();
    file.explain(app.python);
    file.line(&format!("FROM {}", app.image()));
    let cudock = concat!("cudock==", env!("CARGO_PKG_VERSION"));
    install(&mut file, &[cudock], framework);
    file.blank();
    file.user();
    file.line("WORKDIR /app");
    // Weights of large models are in files next to them: model.onnx.data, model.onnx_data.
    let parts =
        app.context.files.below("").into_iter().filter(|path| path.starts_with(model) && is_plain_path(path));
    let parts = parts.collect::<Vec<_>>().join(" ");
    match model.rsplit_once('/') {
        Some((directory, _)) => {
            file.line("COPY cudock.toml ./");
            file.line(&format!("COPY {parts} {directory}/"));
        }
        None => file.line(&format!("COPY cudock.toml {parts} ./")),
    }
    file.line("EXPOSE 8000");
    file.command(USER, app.command);
    file.0
}
