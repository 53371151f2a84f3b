//! Evidence of one program, library or piece of GPU code on this machine.

use std::path::Path;

use cudock_base::text::path::file_name;
use cudock_host::Files;
use cudock_image::ImageError;

use crate::evidence::{Artifact, ArtifactKind, Code, Evidence, Role, SubjectKind};
use crate::gather::code_file::{CodeAt, code_file};
use crate::gather::contents::{Contents, Disk};
use crate::gather::survey::{ArtifactFinder, damage};
use crate::gather::{Context, GatherError, architecture, file_facts, started_with};

pub(in crate::gather) fn evidence(
    path: &Path,
    name: &str,
    context: &Context<'_>,
) -> Result<Evidence, GatherError> {
    let real = path.canonicalize().map_err(GatherError::io(path))?;
    let bytes = cudock_mmap::map(&real).map_err(ImageError::from)?;
    let real = real.to_string_lossy().into_owned();
    let broken = |message: String| GatherError::Broken { path: path.to_owned(), message };
    let binary = cudock_fatbin::read(&bytes).map_err(|error| broken(error.to_string()))?;
    let files = Disk::new();
    let environment = started_with(context);
    let cpu = architecture(binary.linkage.machine);
    let completeness = context.completeness();
    let finder = ArtifactFinder::new(context.facts, &files, &environment, cpu.as_ref(), completeness);
    let artifact =
        if binary.linkage.machine == 0 { loose(&bytes, &real) } else { finder.program(&real, completeness) };
    let artifact = artifact.map(|artifact| {
        let refused =
            context.on_this_machine && artifact.kind == ArtifactKind::Program && !files.is_program(&real);
        Artifact { barred: refused.then(|| "the file has no execute permission".to_owned()), ..artifact }
    });
    Ok(Evidence {
        subject: name.to_owned(),
        kind: SubjectKind::Program,
        cpu,
        artifacts: artifact.into_iter().collect(),
        findings: files.elf(&real).and_then(|facts| damage(&real, &facts)).into_iter().collect(),
        environment,
        ..Evidence::default()
    })
}

/// A fat binary or a cubin by itself: loaded by some program through the driver.
fn loose(bytes: &[u8], path: &str) -> Option<Artifact> {
    let code = file_facts::read_elf(bytes).code?;
    let file = code_file(CodeAt { path: path.to_owned(), code }, Role::Program);
    let name = file_name(path).to_owned();
    Some(Artifact::new(name, ArtifactKind::Library, path.to_owned(), Code::Files(vec![file])))
}
