//! Dockerfiles: what the last stage is made of, as far as the text tells.

mod builder;
mod copy;
mod expand;
mod programs;
mod project;
mod run;
mod scene;
mod shell;
mod syntax;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use cudock_base::{Arch, LineIndex};

use builder::Builder;
use expand::words;
pub use syntax::{Dockerfile, HereDoc, Instruction, Joined};

use super::files::Files;
use super::{BYTE_ORDER_MARK, Declared, DeclaredError, Fault};

/// A stage: its `FROM`, and where its instructions are.
struct Stage<'a> {
    from: &'a Instruction,
    body: &'a [Instruction],
}

/// The whole file, for stages that copy from others.
struct Plan<'a> {
    lines: LineIndex<'a>,
    head: &'a [Instruction],
    stages: Vec<Stage<'a>>,
    /// Stages by their names, in lower case.
    names: HashMap<String, Vec<usize>>,
    arch: Arch,
    escape: char,
    files: &'a dyn Files,
    /// What stages that were copied from came to.
    done: RefCell<HashMap<usize, Finished>>,
    /// How many of them were begun.
    begun: Cell<usize>,
}

/// A stage that was read to its end.
#[derive(Clone)]
struct Finished {
    declared: Declared,
    prefixes: Vec<String>,
}

/// Reads the instructions of a Dockerfile, each with its span. Neither stages nor variables are looked at.
pub fn parse(name: &str, text: &str) -> Result<Dockerfile, DeclaredError> {
    let without_mark = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
    let mut file = syntax::parse(without_mark).map_err(|fault| fault.in_file(name))?;
    file.move_spans(text.len() - without_mark.len());
    Ok(file)
}

pub(super) fn read(text: &str, arch: Arch, files: &dyn Files) -> Result<Declared, Fault> {
    let Dockerfile { escape, instructions } = syntax::parse(text)?;
    let first = instructions.iter().position(|instruction| instruction.keyword == "FROM");
    let Some((head, rest)) = first.and_then(|first| instructions.split_at_checked(first)) else {
        return Err(Fault::new(1, 1, "no FROM"));
    };
    let stages = stages(rest);
    let names = names(&stages, escape);
    let done = RefCell::default();
    let lines = LineIndex::new(text);
    let plan = Plan { lines, head, stages, names, arch, escape, files, done, begun: Cell::new(0) };
    let last = plan.stages.len().saturating_sub(1);
    Ok(evaluate(&plan, last)?.declared)
}

/// What a stage comes to, with the stages it is built on and those it copies from.
fn evaluate(plan: &Plan<'_>, target: usize) -> Result<Finished, Fault> {
    let mut builder = Builder::new(plan);
    builder.global_arguments(plan.head)?;
    let chain = builder.chain(&plan.stages, target)?;
    builder.scene.image = builder.declared.base_image.as_ref().map(|image| image.reference.clone());
    for index in chain {
        let Some(stage) = plan.stages.get(index) else { continue };
        builder.begin_stage(index);
        for instruction in stage.body {
            builder.instruction(instruction)?;
            builder.variables.check(instruction.span)?;
        }
    }
    Ok(builder.finish())
}

fn names(stages: &[Stage<'_>], escape: char) -> HashMap<String, Vec<usize>> {
    let mut names: HashMap<String, Vec<usize>> = HashMap::new();
    for (index, stage) in stages.iter().enumerate() {
        let written = words(&stage.from.arguments.text, escape);
        if let [.., keyword, name] = written.as_slice()
            && keyword.eq_ignore_ascii_case("as")
        {
            names.entry(name.to_ascii_lowercase()).or_default().push(index);
        }
    }
    names
}

impl Plan<'_> {
    /// The stage of a name that is above another.
    fn above(&self, name: &str, index: usize) -> Option<usize> {
        let all = self.names.get(&name.to_ascii_lowercase())?;
        all.get(all.partition_point(|stage| *stage < index).checked_sub(1)?).copied()
    }
}

fn stages(instructions: &[Instruction]) -> Vec<Stage<'_>> {
    let starts: Vec<usize> = instructions
        .iter()
        .enumerate()
        .filter(|(_, instruction)| instruction.keyword == "FROM")
        .map(|(index, _)| index)
        .collect();
    let ends = starts.iter().skip(1).copied().chain([instructions.len()]);
    let stage = |(start, end): (&usize, usize)| {
        let (from, body) = instructions.get(*start..end)?.split_first()?;
        Some(Stage { from, body })
    };
    starts.iter().zip(ends).filter_map(stage).collect()
}
