//! What `COPY`, `ADD` and mounts bring into a stage.

use cudock_base::Span;

use super::builder::{Builder, Command, command, without_flags};
use super::expand::{Expanded, word, words};
use super::scene::Scene;
use super::{Finished, Instruction, evaluate};
use crate::files::join;
use crate::{DeclaredPackage, excerpt};

/// Stages that are looked at, besides those the last one is built on.
const MOST_STAGES: usize = 24;

/// Images that hold tools for building alone.
const TOOL_IMAGES: [&str; 3] = ["ghcr.io/astral-sh/uv", "docker.io/astral/uv", "astral/uv"];

impl Builder<'_> {
    /// Files of the context that are there for one command: `--mount=type=bind,source=a,target=b`.
    pub(super) fn mounts(&mut self, arguments: &str) {
        let flags = arguments.split_whitespace().take_while(|word| word.starts_with("--"));
        for mount in flags.filter_map(|flag| flag.strip_prefix("--mount=")) {
            let value = |names: [&str; 3]| {
                mount
                    .split(',')
                    .filter_map(|part| part.split_once('='))
                    .find(|(name, _)| names.contains(name))
            };
            let is_bind = value(["type", "", ""]).is_none_or(|(_, kind)| kind == "bind");
            let target = value(["target", "dst", "destination"]).map(|(_, target)| target);
            let (true, None, Some(target)) = (is_bind, value(["from", "", ""]), target) else { continue };
            let source = value(["source", "src", ""]).map_or(".", |(_, source)| source);
            self.scene.copy(source, target, false);
        }
    }

    pub(super) fn copy(&mut self, instruction: &Instruction) {
        let span = instruction.span;
        let script = without_flags(&instruction.arguments.text);
        let flags = instruction.arguments.text.split_whitespace().take_while(|word| word.starts_with("--"));
        let from = flags.filter_map(|flag| flag.strip_prefix("--from=")).last();
        let fill = |raw: &str| word(raw, self.escape, &|name| self.variables.get(name));
        let mut paths: Vec<Expanded> = match command(script) {
            Command::Exec(list) => list.into_iter().map(|text| Expanded { text, unknown: None }).collect(),
            Command::Shell(script) => words(&script, self.escape).into_iter().map(fill).collect(),
        };
        let Some(target) = paths.pop() else { return };
        if let Some(stage) = from {
            let stage = fill(stage).text;
            let paths: Vec<String> = paths.into_iter().map(|path| path.text).collect();
            self.copy_from(&stage, &paths, &target.text, span);
            return;
        }
        let into_directory = paths.len() > 1 || target.text.ends_with(['/', '.']);
        for path in paths {
            if path.text.starts_with("<<") {
                for here_doc in &instruction.here_docs {
                    self.scene.write(&target.text, here_doc.body.text.clone());
                }
                continue;
            }
            if path.text.contains("://") || path.text.starts_with("git@") {
                self.declared.note(span, format!("what `{}` holds is not read", excerpt(&path.text)));
                continue;
            }
            let copy = self.scene.copy(&path.text, &target.text, into_directory);
            match (copy.is_there && path.unknown.is_none(), copy.opaque.as_slice()) {
                (false, _) => {
                    self.declared.note(span, format!("`{}` is copied, and is not here", excerpt(&path.text)));
                }
                (true, []) => {}
                (true, [one]) => {
                    self.declared.note(span, format!("`{}` is copied and not read", excerpt(one)));
                }
                (true, [first, more @ ..]) => {
                    let count = more.len();
                    let note = format!("`{}` and {count} more are copied and not read", excerpt(first));
                    self.declared.note(span, note);
                }
            }
        }
    }

    /// What is copied from another stage: packages with the directories they are in, programs by their paths.
    fn copy_from(&mut self, stage: &str, paths: &[String], target: &str, span: Span) {
        let not_followed = format!("what is copied from `{}` is not followed", excerpt(stage));
        let by_number = || stage.parse::<usize>().ok().filter(|number| *number < self.index);
        let Some(index) = self.plan.above(stage, self.index).or_else(by_number) else {
            let repository = stage.split(['@']).next().unwrap_or(stage);
            let is_tool = TOOL_IMAGES.iter().any(|tool| repository.starts_with(tool));
            if !is_tool {
                self.declared.note(span, not_followed);
            }
            return;
        };
        let known = self.plan.done.borrow().get(&index).cloned();
        let finished = match known {
            Some(finished) => Some(finished),
            None if self.plan.begun.get() >= MOST_STAGES => None,
            None => {
                self.plan.begun.set(self.plan.begun.get() + 1);
                evaluate(self.plan, index).ok()
            }
        };
        let Some(finished) = finished else {
            self.declared.note(span, not_followed);
            return;
        };
        self.plan.done.borrow_mut().insert(index, finished.clone());
        let Finished { declared: other, prefixes } = finished;
        let mut scene = Scene::new(self.plan.files);
        scene.prefixes = prefixes;
        let mut is_followed = true;
        for path in paths {
            let wanted = join("", path);
            let below = |output: &String| {
                output == &wanted || wanted.is_empty() || output.starts_with(&format!("{wanted}/"))
            };
            let programs: Vec<_> = other
                .compiled
                .iter()
                .filter(|compiled| {
                    compiled.output.as_ref().is_none_or(below) && !self.declared.compiled.contains(compiled)
                })
                .cloned()
                .collect();
            let has_packages = scene.holds_packages(path) && !other.packages.is_empty();
            let is_new = |package: &&DeclaredPackage| !self.declared.packages.contains(package);
            if has_packages {
                let packages: Vec<_> = other.packages.iter().filter(is_new).cloned().collect();
                self.declared.packages.extend(packages);
                self.declared.cuda_packages.extend(other.cuda_packages.iter().cloned());
                self.scene.prefixes.push(join(&self.scene.workdir, target));
            }
            is_followed &= has_packages || !programs.is_empty();
            self.declared.compiled.extend(programs);
        }
        if is_followed {
            let new: Vec<_> = other
                .notes
                .into_iter()
                .filter(|note| note.decides && !self.declared.notes.contains(note))
                .collect();
            self.declared.notes.extend(new);
        } else {
            self.declared.note(span, not_followed);
        }
    }
}
