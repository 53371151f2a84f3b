//! Builds a Dockerfile with the builder of this machine, for projects that have one.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use cudock_base::{Environment, ScratchDir, files};

use crate::error::BuildError;

/// Programs that build Dockerfiles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Builder {
    Buildx,
    Podman,
    Buildah,
}

impl Builder {
    const ALL: [Self; 3] = [Self::Buildx, Self::Podman, Self::Buildah];

    const fn program(self) -> &'static str {
        match self {
            Self::Buildx => "docker",
            Self::Podman => "podman",
            Self::Buildah => "buildah",
        }
    }

    /// The first that is installed; docker only with its builder, since that alone writes OCI archives.
    pub fn find(environment: &Environment) -> Option<(Self, PathBuf)> {
        let directories = environment.program_directories();
        Self::ALL.into_iter().find_map(|builder| {
            let program = directories.iter().map(|directory| directory.join(builder.program()));
            let program = program.into_iter().find(|path| files::is_executable(path))?;
            let usable = builder != Self::Buildx || has_buildx(&program);
            usable.then_some((builder, program))
        })
    }

    /// The command lines that build a Dockerfile into an OCI archive.
    pub fn commands(self, request: &DockerfileRequest<'_>) -> Vec<Vec<String>> {
        let [file, context, archive] =
            [request.dockerfile, request.context, request.archive].map(|path| path.display().to_string());
        let name = format!("localhost/{}:cudock-build", request.name);
        let owned =
            |arguments: &[&str]| arguments.iter().map(|argument| (*argument).to_owned()).collect::<Vec<_>>();
        match self {
            Self::Buildx => {
                let output = format!("type=oci,dest={archive}");
                vec![owned(&[
                    "buildx",
                    "build",
                    "--provenance=false",
                    "--output",
                    &output,
                    "--file",
                    &file,
                    &context,
                ])]
            }
            Self::Podman | Self::Buildah => {
                let target = format!("oci-archive:{archive}");
                let export = match self {
                    Self::Podman => owned(&["save", "--format", "oci-archive", "--output", &archive, &name]),
                    _ => owned(&["push", &name, &target]),
                };
                vec![
                    owned(&["build", "--file", &file, "--tag", &name, &context]),
                    export,
                    owned(&["rmi", &name]),
                ]
            }
        }
    }
}

fn has_buildx(docker: &Path) -> bool {
    let version =
        Command::new(docker).args(["buildx", "version"]).stdout(Stdio::null()).stderr(Stdio::null()).status();
    version.is_ok_and(|status| status.success())
}

/// A Dockerfile to build.
#[derive(Debug, Clone, Copy)]
pub struct DockerfileRequest<'a> {
    pub dockerfile: &'a Path,
    pub context: &'a Path,
    pub name: &'a str,
    /// The OCI archive to write.
    pub archive: &'a Path,
}

/// A temporary OCI archive, which is removed when this is dropped.
#[derive(Debug)]
pub struct BuiltArchive {
    scratch: ScratchDir,
}

impl BuiltArchive {
    pub fn path(&self) -> PathBuf {
        self.scratch.path().join("image.tar")
    }
}

/// Builds a Dockerfile into a temporary OCI archive, with the output of the builder on standard error. `dockerfile` is
/// relative to the directory.
pub fn build_dockerfile(
    directory: &Path,
    dockerfile: &Path,
    environment: &Environment,
) -> Result<BuiltArchive, BuildError> {
    let found = Builder::find(environment);
    let (builder, program) = found.ok_or_else(|| {
        let message = "no builder found: neither docker buildx, podman nor buildah is installed";
        BuildError::usage(message, "install buildah, or describe the image in [image] of cudock.toml")
    })?;
    let archive = BuiltArchive { scratch: ScratchDir::new(&std::env::temp_dir())? };
    let name = format!("cudock-{}", std::process::id());
    let request = DockerfileRequest {
        dockerfile: &directory.join(dockerfile),
        context: directory,
        name: &name,
        archive: &archive.path(),
    };
    for arguments in builder.commands(&request) {
        let failed = |reason: String| BuildError::Builder { program: builder.program().to_owned(), reason };
        let status = Command::new(&program).args(&arguments).stdout(std::io::stderr()).status();
        let status = status.map_err(|error| failed(error.to_string()))?;
        if !status.success() {
            let step = arguments.first().cloned().unwrap_or_default();
            return Err(failed(format!("`{step}`: {status}")));
        }
    }
    Ok(archive)
}
