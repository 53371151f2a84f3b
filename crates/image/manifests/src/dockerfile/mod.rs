//! Reads Dockerfiles: what the last stage contains, as far as the text determines it.

mod copy;
mod programs;
mod project;
mod run;
mod stage;
mod stage_fs;
mod variables;
mod writes;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use cudock_base::{Arch, LineIndex};

use cudock_dockerfile::expand::split_args;
use cudock_dockerfile::{Dockerfile, Instruction};
use stage::StageReader;

use super::files::Files;
use super::{Declared, PositionedError};

struct StageInstructions<'a> {
    from: &'a Instruction,
    body: &'a [Instruction],
}

/// All stages of a file, since stages build on and copy from each other.
struct BuildGraph<'a> {
    lines: &'a LineIndex<'a>,
    head: &'a [Instruction],
    stages: Vec<StageInstructions<'a>>,
    /// Stages by their names, in lower case.
    names: HashMap<String, Vec<usize>>,
    arch: Arch,
    escape: char,
    files: &'a dyn Files,
    /// Results of stages that others copy from.
    finished: RefCell<HashMap<usize, FinishedStage>>,
    /// Number of such stages that were started.
    started: Cell<usize>,
}

/// The result of reading a stage.
#[derive(Clone)]
struct FinishedStage {
    declared: Declared,
    prefixes: Vec<String>,
}

pub(super) fn read(text: &str, arch: Arch, files: &dyn Files) -> Result<Declared, PositionedError> {
    let file = cudock_dockerfile::parse(text)?;
    let mut stages = read_each(&file, arch, files, |last| last..last + 1)?;
    Ok(stages.pop().unwrap_or_default())
}

/// The limit for stages that [`read_stages`] reads, from the last one.
const MAX_STAGES: usize = 64;

/// Reads what every stage of a Dockerfile contains, with the stages it is built on. A stage that cannot be read, or that is
/// far before the last one, is empty.
pub fn read_stages(file: &Dockerfile<'_>, arch: Arch, files: &dyn Files) -> Vec<Declared> {
    let mut first = 0;
    let read = read_each(file, arch, files, |last| {
        first = (last + 1).saturating_sub(MAX_STAGES);
        first..last + 1
    });
    let mut stages = vec![Declared::default(); first];
    stages.extend(read.unwrap_or_default());
    stages
}

fn read_each(
    file: &Dockerfile<'_>,
    arch: Arch,
    files: &dyn Files,
    wanted: impl FnOnce(usize) -> std::ops::Range<usize>,
) -> Result<Vec<Declared>, PositionedError> {
    let Dockerfile { lines, escape, instructions } = file;
    let escape = *escape;
    let first = instructions.iter().position(|instruction| instruction.keyword == "FROM");
    let Some((head, rest)) = first.and_then(|first| instructions.split_at_checked(first)) else {
        return Err(PositionedError::new(1, 1, "no FROM"));
    };
    let stages = stages(rest);
    let names = names(&stages, escape);
    let (finished, started) = (RefCell::default(), Cell::new(0));
    let graph = BuildGraph { lines, head, stages, names, arch, escape, files, finished, started };
    let last = graph.stages.len().saturating_sub(1);
    wanted(last).map(|stage| Ok(evaluate(&graph, stage)?.declared)).collect()
}

/// Reads a stage, with the stages it is built on and those it copies from.
fn evaluate(graph: &BuildGraph<'_>, target: usize) -> Result<FinishedStage, PositionedError> {
    let mut reader = StageReader::new(graph);
    reader.global_arguments(graph.head)?;
    let chain = reader.chain(target)?;
    reader.fs.image = reader.declared.base_image.as_ref().map(|image| image.reference.clone());
    for index in chain {
        let Some(stage) = graph.stages.get(index) else { continue };
        reader.begin_stage(index);
        for instruction in stage.body {
            reader.instruction(instruction)?;
            reader.variables.check(instruction.span)?;
        }
    }
    Ok(reader.finish())
}

fn names(stages: &[StageInstructions<'_>], escape: char) -> HashMap<String, Vec<usize>> {
    let mut names: HashMap<String, Vec<usize>> = HashMap::new();
    for (index, stage) in stages.iter().enumerate() {
        let written = split_args(&stage.from.arguments.text, escape);
        if let [.., keyword, name] = written.as_slice()
            && keyword.eq_ignore_ascii_case("as")
        {
            names.entry(name.to_ascii_lowercase()).or_default().push(index);
        }
    }
    names
}

impl BuildGraph<'_> {
    /// The last stage of this name before the stage `index`.
    fn stage_before(&self, name: &str, index: usize) -> Option<usize> {
        let all = self.names.get(&name.to_ascii_lowercase())?;
        all.get(all.partition_point(|stage| *stage < index).checked_sub(1)?).copied()
    }
}

fn stages(instructions: &[Instruction]) -> Vec<StageInstructions<'_>> {
    let chunks = instructions.chunk_by(|_, next| next.keyword != "FROM");
    chunks
        .filter_map(<[Instruction]>::split_first)
        .map(|(from, body)| StageInstructions { from, body })
        .collect()
}
