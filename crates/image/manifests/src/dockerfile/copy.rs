//! Reads `COPY`, `ADD` and bind mounts.

use cudock_base::Span;
use cudock_dockerfile::expand::{Expanded, split_args};
use cudock_dockerfile::{Instruction, exec_form};

use super::stage::{StageReader, without_flags};
use super::stage_fs::StageFs;
use super::{FinishedStage, evaluate};
use crate::files::join;
use crate::{DeclaredPackage, excerpt};

/// The limit for stages that are read besides those the last one is built on.
const MAX_COPIED_STAGES: usize = 24;

/// Images that only contain build tools.
const TOOL_IMAGES: [&str; 3] = ["ghcr.io/astral-sh/uv", "docker.io/astral/uv", "astral/uv"];

impl StageReader<'_> {
    /// Files of the context mounted for one command: `--mount=type=bind,source=a,target=b`.
    pub(super) fn mounts(&mut self, arguments: &str) {
        let flags = arguments.split_whitespace().take_while(|arg| arg.starts_with("--"));
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
            self.fs.copy(source, target, false);
        }
    }

    pub(super) fn copy(&mut self, instruction: &Instruction) {
        let span = instruction.span;
        let script = without_flags(&instruction.arguments.text);
        let flags = instruction.arguments.text.split_whitespace().take_while(|arg| arg.starts_with("--"));
        let from = flags.filter_map(|flag| flag.strip_prefix("--from=")).last();
        let mut paths: Vec<Expanded> = match exec_form(script) {
            Some(list) => list.into_iter().map(|text| Expanded { text, unknown: None }).collect(),
            None => split_args(script, self.graph.escape).into_iter().map(|raw| self.expand(raw)).collect(),
        };
        let Some(target) = paths.pop() else { return };
        if let Some(stage) = from {
            let stage = self.expand(stage).text;
            let paths: Vec<String> = paths.into_iter().map(|path| path.text).collect();
            self.copy_from(&stage, &paths, &target.text, span);
            return;
        }
        let into_directory = paths.len() > 1 || target.text.ends_with(['/', '.']);
        for path in paths {
            if path.text.starts_with("<<") {
                for here_doc in &instruction.here_docs {
                    self.fs.write(&target.text, here_doc.body.text.clone());
                }
                continue;
            }
            if path.text.contains("://") || path.text.starts_with("git@") {
                self.declared.note(span, format!("content of `{}` is unknown", excerpt(&path.text)));
                continue;
            }
            let copy = self.fs.copy(&path.text, &target.text, into_directory);
            let note = match (copy.exists && path.unknown.is_none(), copy.opaque.as_slice()) {
                (false, _) => {
                    format!("`{}` is copied but not found in the build context", excerpt(&path.text))
                }
                (true, []) => continue,
                (true, [one]) => format!("`{}` is copied but cannot be analyzed", excerpt(one)),
                (true, [first, more @ ..]) => {
                    let count = more.len();
                    format!("`{}` and {count} more files are copied but cannot be analyzed", excerpt(first))
                }
            };
            self.declared.note(span, note);
        }
    }

    /// Copies from another stage: packages with the directories they are in, programs by their paths.
    fn copy_from(&mut self, stage: &str, paths: &[String], target: &str, span: Span) {
        let unknown_content = format!("content copied from `{}` is unknown", excerpt(stage));
        let by_number = || stage.parse::<usize>().ok().filter(|number| *number < self.index);
        let Some(index) = self.graph.stage_before(stage, self.index).or_else(by_number) else {
            let repository = stage.split(['@']).next().unwrap_or(stage);
            let is_tool = TOOL_IMAGES.iter().any(|tool| repository.starts_with(tool));
            if !is_tool {
                self.declared.note(span, unknown_content);
            }
            return;
        };
        let Some(FinishedStage { declared: other, prefixes }) = self.finished_stage(index) else {
            self.declared.note(span, unknown_content);
            return;
        };
        let mut fs = StageFs::new(self.graph.files);
        fs.prefixes = prefixes;
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
            let has_packages = fs.holds_packages(path) && !other.packages.is_empty();
            let is_new = |package: &&DeclaredPackage| !self.declared.packages.contains(package);
            if has_packages {
                let packages: Vec<_> = other.packages.iter().filter(is_new).cloned().collect();
                self.declared.packages.extend(packages);
                self.declared.cuda_packages.extend(other.cuda_packages.iter().cloned());
                self.fs.prefixes.push(join(&self.fs.workdir, target));
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
            self.declared.note(span, unknown_content);
        }
    }

    fn finished_stage(&self, index: usize) -> Option<FinishedStage> {
        if let Some(finished) = self.graph.finished.borrow().get(&index) {
            return Some(finished.clone());
        }
        let started = self.graph.started.get();
        self.graph.started.set(started + 1);
        let finished = (started < MAX_COPIED_STAGES).then(|| evaluate(self.graph, index).ok()).flatten()?;
        self.graph.finished.borrow_mut().insert(index, finished.clone());
        Some(finished)
    }
}
