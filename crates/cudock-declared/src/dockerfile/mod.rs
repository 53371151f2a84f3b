//! Dockerfiles: what the last stage is made of, as far as the text tells.

mod expand;
mod lines;
mod programs;
mod project;
mod run;
mod scene;
mod shell;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use expand::{Expanded, Variables, word, words};
use lines::Instruction;
use run::Reader;
use scene::Scene;

use super::files::{Files, join};
use super::pip::Word;
use super::toml_tree::Lines;
use super::{Declared, DeclaredImage, Fault, Machine, excerpt};

/// Stages that are looked at, besides those the last one is built on.
const MOST_STAGES: usize = 24;

/// A stage: its `FROM`, and where its instructions are.
struct Stage<'a> {
    from: &'a Instruction,
    body: &'a [Instruction],
}

/// The whole file, for stages that copy from others.
struct Plan<'a> {
    text: &'a str,
    head: &'a [Instruction],
    stages: Vec<Stage<'a>>,
    /// Stages by their names, in lower case.
    names: HashMap<String, Vec<usize>>,
    machine: Machine,
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

pub(super) fn read(text: &str, machine: Machine, files: &dyn Files) -> Result<Declared, Fault> {
    let (instructions, escape) = lines::parse(text)?;
    let first = instructions.iter().position(|instruction| instruction.keyword == "FROM");
    let Some((head, rest)) = first.and_then(|first| instructions.split_at_checked(first)) else {
        return Err(Fault::new(1, 1, "no FROM"));
    };
    let stages = stages(rest);
    let names = names(&stages, escape);
    let done = RefCell::default();
    let plan = Plan { text, head, stages, names, machine, escape, files, done, begun: Cell::new(0) };
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
            builder.variables.check(instruction.line)?;
        }
    }
    Ok(builder.finish())
}

fn names(stages: &[Stage<'_>], escape: char) -> HashMap<String, Vec<usize>> {
    let mut names: HashMap<String, Vec<usize>> = HashMap::new();
    for (index, stage) in stages.iter().enumerate() {
        let written = words(&stage.from.arguments, escape);
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

struct Builder<'a> {
    plan: &'a Plan<'a>,
    declared: Declared,
    scene: Scene<'a>,
    /// The stage that is read.
    index: usize,
    /// Of the stage.
    variables: Variables,
    /// Of `FROM` lines.
    global: Variables,
    machine: Machine,
    escape: char,
    shell: Vec<String>,
    entrypoint: Option<Command>,
    arguments: Option<Command>,
    /// Whether `CMD` comes from the stage before, so that an `ENTRYPOINT` clears it.
    arguments_are_inherited: bool,
}

#[derive(Clone)]
enum Command {
    Exec(Vec<String>),
    Shell(String),
}

impl<'a> Builder<'a> {
    fn new(plan: &'a Plan<'a>) -> Self {
        let mut global = Variables::for_text(plan.text);
        set_platform(&mut global, plan.machine);
        Self {
            plan,
            declared: Declared::default(),
            scene: Scene::new(plan.files),
            index: 0,
            variables: Variables::for_text(plan.text),
            global,
            machine: plan.machine,
            escape: plan.escape,
            shell: vec!["/bin/sh".to_owned(), "-c".to_owned()],
            entrypoint: None,
            arguments: None,
            arguments_are_inherited: false,
        }
    }

    /// Arguments before the first `FROM` hold for `FROM` lines, and for stages that name them again.
    fn global_arguments(&mut self, head: &[Instruction]) -> Result<(), Fault> {
        for instruction in head {
            if instruction.keyword != "ARG" {
                return Err(Fault::new(instruction.line, 1, format!("{} before FROM", instruction.keyword)));
            }
            for raw in words(&instruction.arguments, self.escape) {
                let (name, value) = self.assignment(raw, &self.global);
                match value {
                    Some(value) => {
                        let value = self.known(value, &name, instruction.line);
                        self.global.set_argument(name, value);
                    }
                    None if self.global.get(&name).is_some() => {}
                    None => self.declared.remark(instruction.line, no_default(&name)),
                }
            }
            self.global.check(instruction.line)?;
        }
        Ok(())
    }

    /// The stages that one is built on, the first of them first; notes the image they start from.
    fn chain(&mut self, stages: &[Stage<'_>], target: usize) -> Result<Vec<usize>, Fault> {
        let mut chain = Vec::new();
        let mut current = Some(target);
        while let Some((index, stage)) = current.and_then(|index| Some((index, stages.get(index)?))) {
            chain.push(index);
            let line = stage.from.line;
            let (image, platform) = self.from(stage.from);
            self.global.check(line)?;
            if let (None, Some(platform)) = (&self.declared.platform, platform) {
                self.set_target(&platform);
            }
            current = self.plan.above(&image.text, index);
            if current.is_some() {
                continue;
            }
            match image.unknown {
                Some(name) => {
                    let note = format!("the base image `{}` depends on {name}", excerpt(&image.text));
                    self.declared.note(line, note);
                }
                None if image.text.is_empty() => return Err(Fault::new(line, 1, "FROM without an image")),
                None => self.declared.base_image = Some(DeclaredImage { reference: image.text, line }),
            }
        }
        chain.reverse();
        Ok(chain)
    }

    /// The image and platform of a `FROM`.
    fn from(&mut self, from: &Instruction) -> (Expanded, Option<String>) {
        let mut image = None;
        let mut platform = None;
        for raw in words(&from.arguments, self.escape) {
            match raw.strip_prefix("--platform=") {
                Some(raw) => platform = Some(word(raw, self.escape, &|name| self.global.get(name))),
                None if raw.starts_with("--") => {}
                None => {
                    image = Some(word(raw, self.escape, &|name| self.global.get(name)));
                    break;
                }
            }
        }
        let platform = platform.and_then(|platform| self.known(platform, "the platform", from.line));
        (image.unwrap_or_default(), platform)
    }

    fn set_target(&mut self, platform: &str) {
        match platform.split('/').nth(1) {
            Some("arm64" | "aarch64") => self.machine = Machine::Aarch64,
            Some("amd64" | "x86_64") => self.machine = Machine::X86_64,
            _ => {}
        }
        set_platform(&mut self.global, self.machine);
        self.declared.platform = Some(platform.to_owned());
    }

    fn begin_stage(&mut self, index: usize) {
        self.index = index;
        self.variables.end_stage();
        self.shell = vec!["/bin/sh".to_owned(), "-c".to_owned()];
        self.arguments_are_inherited = true;
    }

    fn instruction(&mut self, instruction: &Instruction) -> Result<(), Fault> {
        let line = instruction.line;
        match instruction.keyword.as_str() {
            "ARG" => self.stage_arguments(instruction),
            "ENV" => self.environment(instruction)?,
            "RUN" => self.run(instruction),
            "CMD" => {
                self.arguments = Some(command(&instruction.arguments));
                self.arguments_are_inherited = false;
            }
            "ENTRYPOINT" => {
                self.entrypoint = Some(command(&instruction.arguments));
                if self.arguments_are_inherited {
                    self.arguments = None;
                }
            }
            "SHELL" => match serde_json::from_str::<Vec<String>>(&instruction.arguments) {
                Ok(shell) if !shell.is_empty() => self.shell = shell,
                _ => return Err(Fault::new(line, 1, "SHELL takes a list in JSON")),
            },
            "COPY" | "ADD" => self.copy(instruction),
            "WORKDIR" => {
                let directory = word(&instruction.arguments, self.escape, &|name| self.variables.get(name));
                self.scene.workdir = join(&self.scene.workdir, &directory.text);
            }
            "ONBUILD" => self.declared.remark(line, "ONBUILD is for images built on this one"),
            _ => {}
        }
        Ok(())
    }

    fn stage_arguments(&mut self, instruction: &Instruction) {
        for raw in words(&instruction.arguments, self.escape) {
            let (name, value) = self.assignment(raw, &self.variables);
            let value = if let Some(value) = value {
                self.known(value, &name, instruction.line)
            } else {
                let global = self.global.get(&name);
                if global.is_none() {
                    self.declared.remark(instruction.line, no_default(&name));
                }
                global
            };
            self.variables.set_argument(name, value);
        }
    }

    fn environment(&mut self, instruction: &Instruction) -> Result<(), Fault> {
        let line = instruction.line;
        let all = words(&instruction.arguments, self.escape);
        let is_old = all.first().is_some_and(|first| !first.contains('='));
        if is_old {
            let Some((name, value)) = instruction.arguments.split_once(char::is_whitespace) else {
                return Err(Fault::new(line, 1, "ENV without a value"));
            };
            let value = word(value.trim(), self.escape, &|name| self.variables.get(name));
            let value = self.known(value, name, line);
            self.variables.set(name.to_owned(), value);
            return Ok(());
        }
        // All values of one instruction see the variables as they were before it.
        let mut set = Vec::new();
        for raw in all {
            match self.assignment(raw, &self.variables) {
                (name, Some(value)) => set.push((name, value)),
                (name, None) => {
                    return Err(Fault::new(line, 1, format!("`{}` has no value", excerpt(&name))));
                }
            }
        }
        for (name, value) in set {
            let value = self.known(value, &name, line);
            self.variables.set(name, value);
        }
        Ok(())
    }

    /// `NAME` and what `=` gives it.
    fn assignment(&self, raw: &str, variables: &Variables) -> (String, Option<Expanded>) {
        let fill = |raw: &str| word(raw, self.escape, &|name| variables.get(name));
        match raw.split_once('=') {
            Some((name, value)) => (fill(name).text, Some(fill(value))),
            None => (fill(raw).text, None),
        }
    }

    /// A value, or a note that it is not known.
    fn known(&mut self, value: Expanded, name: &str, line: usize) -> Option<String> {
        match value.unknown {
            None => Some(value.text),
            Some(unknown) => {
                self.declared.remark(line, format!("{name} depends on {unknown}, which is not set here"));
                None
            }
        }
    }

    fn run(&mut self, instruction: &Instruction) {
        let script = without_flags(&instruction.arguments);
        let skipped = instruction.arguments.len() - script.len();
        let line_of = |at: usize| instruction.line_of(at + skipped);
        let is_posix = self.shell.first().is_some_and(|shell| {
            let name = shell.rsplit(['/', '\\']).next().unwrap_or_default().to_ascii_lowercase();
            !name.contains("powershell") && !name.contains("pwsh") && !name.starts_with("cmd")
        });
        if !is_posix {
            self.declared.note(instruction.line, "commands for a shell of Windows are not read");
            return;
        }
        let mark = self.scene.mark();
        self.mounts(&instruction.arguments);
        let cwd = self.scene.workdir.clone();
        let mut reader = Reader {
            declared: &mut self.declared,
            scene: &mut self.scene,
            cwd: cwd.clone(),
            variables: &self.variables,
            machine: self.machine,
            line_of: &line_of,
            own: HashMap::new(),
        };
        if let Command::Exec(list) = command(script) {
            let list: Vec<Word> = list.into_iter().map(|text| Word { text, ..Word::default() }).collect();
            reader.command(&list, None, 0);
            self.scene.forget(mark);
            return;
        }
        reader.script(script);
        let stdin = script.split_whitespace().find(|word| !word.starts_with('<') && !word.starts_with('-'));
        let is_script = stdin.is_none_or(|program| ["sh", "bash", "/bin/sh", "/bin/bash"].contains(&program));
        for heredoc in instruction.heredocs.iter().filter(|_| is_script) {
            let is_foreign =
                heredoc.body.starts_with("#!") && !heredoc.body.lines().next().unwrap_or("").ends_with("sh");
            if is_foreign {
                self.declared
                    .note(heredoc.line, format!("the script `{}` is not one of a shell", heredoc.name));
                continue;
            }
            let lines = Lines::of(&heredoc.body);
            let line_of = |at: usize| heredoc.line + lines.line(at) - 1;
            Reader {
                declared: &mut self.declared,
                scene: &mut self.scene,
                cwd: cwd.clone(),
                variables: &self.variables,
                machine: self.machine,
                line_of: &line_of,
                own: HashMap::new(),
            }
            .script(&heredoc.body);
        }
        self.scene.forget(mark);
    }

    /// Files of the context that are there for one command: `--mount=type=bind,source=a,target=b`.
    fn mounts(&mut self, arguments: &str) {
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

    fn copy(&mut self, instruction: &Instruction) {
        let line = instruction.line;
        let script = without_flags(&instruction.arguments);
        let flags = instruction.arguments.split_whitespace().take_while(|word| word.starts_with("--"));
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
            self.copy_from(&stage, &paths, &target.text, line);
            return;
        }
        let into_directory = paths.len() > 1 || target.text.ends_with(['/', '.']);
        for path in paths {
            if path.text.starts_with("<<") {
                for heredoc in &instruction.heredocs {
                    self.scene.write(&target.text, heredoc.body.clone());
                }
                continue;
            }
            if path.text.contains("://") || path.text.starts_with("git@") {
                self.declared.note(line, format!("what `{}` holds is not read", excerpt(&path.text)));
                continue;
            }
            let copy = self.scene.copy(&path.text, &target.text, into_directory);
            match (copy.is_there && path.unknown.is_none(), copy.opaque.as_slice()) {
                (false, _) => {
                    self.declared.note(line, format!("`{}` is copied, and is not here", excerpt(&path.text)));
                }
                (true, []) => {}
                (true, [one]) => {
                    self.declared.note(line, format!("`{}` is copied and not read", excerpt(one)));
                }
                (true, [first, more @ ..]) => {
                    let count = more.len();
                    let note = format!("`{}` and {count} more are copied and not read", excerpt(first));
                    self.declared.note(line, note);
                }
            }
        }
    }

    /// What is copied from another stage: packages with the directories they are in, programs by their paths.
    fn copy_from(&mut self, stage: &str, paths: &[String], target: &str, line: usize) {
        let not_followed = format!("what is copied from `{}` is not followed", excerpt(stage));
        let by_number = || stage.parse::<usize>().ok().filter(|number| *number < self.index);
        let Some(index) = self.plan.above(stage, self.index).or_else(by_number) else {
            let repository = stage.split(['@']).next().unwrap_or(stage);
            let is_tool = TOOL_IMAGES.iter().any(|tool| repository.starts_with(tool));
            if !is_tool {
                self.declared.note(line, not_followed);
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
            self.declared.note(line, not_followed);
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
            let is_new = |package: &&super::DeclaredPackage| !self.declared.packages.contains(package);
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
            self.declared.note(line, not_followed);
        }
    }

    /// The program that is started, where it is a script or a file that the text does not explain.
    fn start(&mut self, command: &[String]) {
        let shells = ["sh", "bash", "/bin/sh", "/bin/bash"];
        let words = command
            .iter()
            .map(String::as_str)
            .filter(|word| !shells.contains(word) && !word.starts_with('-'));
        let Some(first) =
            words.flat_map(str::split_whitespace).find(|word| !["exec", "tini", "--"].contains(word))
        else {
            return;
        };
        let path = join(&self.scene.workdir, first);
        let is_built = self.declared.compiled.iter().any(|compiled| compiled.output.as_ref() == Some(&path));
        let is_path = first.contains('/');
        let of_system = ["bin/", "sbin/", "usr/bin/", "usr/sbin/", "usr/local/bin/", "opt/conda/"];
        let is_system =
            of_system.iter().any(|directory| path.starts_with(directory)) || path.contains("/bin/");
        if let Some((_, script)) =
            self.scene.text(&self.scene.workdir, first).filter(|_| is_path || programs::is_script(first))
        {
            let last = self.declared.notes.len();
            let cwd = self.scene.workdir.clone();
            Reader {
                declared: &mut self.declared,
                scene: &mut self.scene,
                cwd,
                variables: &self.variables,
                machine: self.machine,
                line_of: &|_| 1,
                own: HashMap::new(),
            }
            .script(&script);
            let file = first.to_owned();
            for note in self.declared.notes.iter_mut().skip(last) {
                note.file = Some(file.clone());
            }
        } else if is_path && !is_system && !is_built {
            let line = self.plan.stages.get(self.index).map_or(1, |stage| stage.from.line);
            self.declared.note(line, format!("the program `{}` that is started is not read", excerpt(first)));
        }
    }

    fn finish(mut self) -> Finished {
        let shell = std::mem::take(&mut self.shell);
        let words = |command: Command| match command {
            Command::Exec(words) => words,
            Command::Shell(script) => shell.iter().cloned().chain([script]).collect(),
        };
        let command = match (self.entrypoint.take(), self.arguments.take()) {
            (Some(Command::Exec(mut entrypoint)), arguments) => {
                entrypoint.extend(arguments.map(words).unwrap_or_default());
                Some(entrypoint)
            }
            // An entry point in a shell is given no arguments.
            (Some(entrypoint), _) => Some(words(entrypoint)),
            (None, arguments) => arguments.map(words),
        };
        self.start(command.as_deref().unwrap_or_default());
        self.declared.command = command;
        if let (true, Some(source)) = (self.declared.compiled.is_empty(), self.scene.cuda_sources.first()) {
            let line = self.plan.stages.get(self.index).map_or(1, |stage| stage.from.line);
            let note = format!("{} is CUDA code, and how it is compiled is not told", excerpt(source));
            self.declared.note(line, note);
        }
        self.declared.environment = self.variables.into_environment();
        self.declared.notes.sort_by_key(|note| note.line);
        Finished { declared: self.declared, prefixes: self.scene.prefixes }
    }
}

/// Images that hold tools for building alone.
const TOOL_IMAGES: [&str; 3] = ["ghcr.io/astral-sh/uv", "docker.io/astral/uv", "astral/uv"];

fn set_platform(variables: &mut Variables, machine: Machine) {
    let name = machine.docker_name();
    for (argument, value) in [
        ("TARGETPLATFORM", format!("linux/{name}")),
        ("TARGETARCH", name.to_owned()),
        ("TARGETOS", "linux".to_owned()),
    ] {
        variables.set_argument(argument.to_owned(), Some(value));
    }
}

fn no_default(name: &str) -> String {
    format!("the build argument {} has no default", excerpt(name))
}

/// A list in JSON is a command as it stands; anything else is for the shell.
fn command(arguments: &str) -> Command {
    match serde_json::from_str(arguments) {
        Ok(words) => Command::Exec(words),
        Err(_) => Command::Shell(arguments.to_owned()),
    }
}

/// What follows `--mount=…` and the other flags.
fn without_flags(arguments: &str) -> &str {
    let mut rest = arguments;
    while rest.starts_with("--") {
        let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
        rest = rest.get(end..).unwrap_or_default().trim_start();
    }
    rest
}
