//! One program, library or piece of GPU code on this machine.

use std::path::Path;

use cudock_host::Files;
use cudock_host::frameworks::Support;
use cudock_image::ImageError;

use super::contents::{Contents, Disk};
use super::frameworks::{CodeAt, Wholeness, code_file};
use super::linking::Search;
use super::survey::damage;
use super::{Context, GatherError, architecture, cpu_arch, kept, programs, started_with};
use crate::evidence::{Code, Evidence, Role, SubjectKind, Unit, UnitKind};

pub(super) fn evidence(path: &Path, name: &str, context: &Context<'_>) -> Result<Evidence, GatherError> {
    let real = path.canonicalize().map_err(|source| GatherError::Io { path: path.to_owned(), source })?;
    let bytes = cudock_map::map(&real).map_err(ImageError::from)?;
    let real = real.to_string_lossy().into_owned();
    let broken = |message: String| GatherError::Broken { path: path.to_owned(), message };
    let binary = cudock_fatbin::read(&bytes).map_err(|error| broken(error.to_string()))?;
    let files = Disk::new();
    let environment = started_with(context);
    let cpu = architecture(binary.linkage.machine).map(str::to_owned);
    let search = Search::new(&files, &environment, cpu_arch(cpu.as_deref()));
    let wholeness = if context.on_this_machine { Wholeness::Whole } else { Wholeness::Part };
    let unit = if binary.linkage.machine == 0 {
        loose(&bytes, &real)
    } else {
        programs::unit(context.facts, &files, &search, &real, wholeness)
    };
    let unit = unit.map(|unit| {
        let refused = context.on_this_machine && unit.kind == UnitKind::Program && !files.is_program(&real);
        Unit { barred: refused.then(|| "the file has no execute permission".to_owned()), ..unit }
    });
    Ok(Evidence {
        subject: name.to_owned(),
        kind: SubjectKind::Program,
        cpu,
        units: unit.into_iter().collect(),
        findings: files.elf(&real).and_then(|facts| damage(&real, &facts)).into_iter().collect(),
        environment,
        ..Evidence::default()
    })
}

/// A fat binary or a cubin by itself: loaded by some program through the driver.
fn loose(bytes: &[u8], path: &str) -> Option<Unit> {
    let code = kept::read(bytes).code?;
    let file = code_file(CodeAt { path: path.to_owned(), code }, Role::Program);
    Some(Unit {
        name: path.rsplit('/').next().unwrap_or(path).to_owned(),
        kind: UnitKind::Library,
        path: path.to_owned(),
        support: Support::Cuda,
        runtime: None,
        links_driver: false,
        own_floor: None,
        code: Code::Files(vec![file]),
        missing: Vec::new(),
        barred: None,
        build: None,
    })
}
