//! Reads Dockerfiles: what the last stage contains, as far as the text determines it.

mod copy;
mod expand;
mod programs;
mod project;
mod run;
mod shell;
mod stage;
mod stage_fs;
mod syntax;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use cudock_base::{Arch, LineIndex};

use expand::split_args;
use stage::StageReader;
pub use syntax::{Dockerfile, HereDoc, Instruction, Joined};

use super::files::Files;
use super::{BYTE_ORDER_MARK, Declared, DeclaredError, PositionedError};

struct Stage<'a> {
    from: &'a Instruction,
    body: &'a [Instruction],
}

/// All stages of a file, since stages build on and copy from each other.
struct BuildGraph<'a> {
    lines: LineIndex<'a>,
    head: &'a [Instruction],
    stages: Vec<Stage<'a>>,
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

/// Reads the instructions of a Dockerfile, each with its span, without resolving stages or variables.
pub fn parse(name: &str, text: &str) -> Result<Dockerfile, DeclaredError> {
    let without_mark = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
    let mut file = syntax::parse(without_mark).map_err(|error| error.in_file(name))?;
    file.shift_spans(text.len() - without_mark.len());
    Ok(file)
}

pub(super) fn read(text: &str, arch: Arch, files: &dyn Files) -> Result<Declared, PositionedError> {
    let Dockerfile { escape, instructions } = syntax::parse(text)?;
    let first = instructions.iter().position(|instruction| instruction.keyword == "FROM");
    let Some((head, rest)) = first.and_then(|first| instructions.split_at_checked(first)) else {
        return Err(PositionedError::new(1, 1, "no FROM"));
    };
    let stages = stages(rest);
    let names = names(&stages, escape);
    let (lines, finished, started) = (LineIndex::new(text), RefCell::default(), Cell::new(0));
    let graph = BuildGraph { lines, head, stages, names, arch, escape, files, finished, started };
    let last = graph.stages.len().saturating_sub(1);
    Ok(evaluate(&graph, last)?.declared)
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

fn names(stages: &[Stage<'_>], escape: char) -> HashMap<String, Vec<usize>> {
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

fn stages(instructions: &[Instruction]) -> Vec<Stage<'_>> {
    let chunks = instructions.chunk_by(|_, next| next.keyword != "FROM");
    chunks.filter_map(<[Instruction]>::split_first).map(|(from, body)| Stage { from, body }).collect()
}
