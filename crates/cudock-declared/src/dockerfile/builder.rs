//! What the instructions of a stage come to.

use std::collections::HashMap;
use std::ops::Range;

use cudock_base::{Arch, Span};

use super::expand::{Expanded, Variables, word, words};
use super::run::Reader;
use super::scene::Scene;
use super::{Finished, Instruction, Plan, Stage, programs};
use crate::files::join;
use crate::pip::Word;
use crate::{Declared, DeclaredImage, Fault, excerpt};

/// Reads the instructions of one stage after the other.
pub(super) struct Builder<'a> {
    pub(super) plan: &'a Plan<'a>,
    pub(super) declared: Declared,
    pub(super) scene: Scene<'a>,
    /// The stage that is read.
    pub(super) index: usize,
    /// Of the stage.
    pub(super) variables: Variables,
    /// Of `FROM` lines.
    global: Variables,
    arch: Arch,
    pub(super) escape: char,
    shell: Vec<String>,
    entrypoint: Option<Command>,
    arguments: Option<Command>,
    /// Whether `CMD` comes from the stage before, so that an `ENTRYPOINT` clears it.
    arguments_are_inherited: bool,
}

/// `CMD`, `ENTRYPOINT` or `RUN`, in one of its forms.
#[derive(Clone)]
pub(super) enum Command {
    Exec(Vec<String>),
    Shell(String),
}

impl<'a> Builder<'a> {
    pub(super) fn new(plan: &'a Plan<'a>) -> Self {
        let mut global = Variables::for_text(plan.lines.text());
        set_platform(&mut global, plan.arch);
        Self {
            plan,
            declared: Declared::default(),
            scene: Scene::new(plan.files),
            index: 0,
            variables: Variables::for_text(plan.lines.text()),
            global,
            arch: plan.arch,
            escape: plan.escape,
            shell: vec!["/bin/sh".to_owned(), "-c".to_owned()],
            entrypoint: None,
            arguments: None,
            arguments_are_inherited: false,
        }
    }

    /// Arguments before the first `FROM` hold for `FROM` lines, and for stages that name them again.
    pub(super) fn global_arguments(&mut self, head: &[Instruction]) -> Result<(), Fault> {
        for instruction in head {
            if instruction.keyword != "ARG" {
                return Err(Fault::new(
                    instruction.span.line,
                    1,
                    format!("{} before FROM", instruction.keyword),
                ));
            }
            for raw in words(&instruction.arguments.text, self.escape) {
                let (name, value) = self.assignment(raw, &self.global);
                match value {
                    Some(value) => {
                        let value = self.known(value, &name, instruction.span);
                        self.global.set_argument(name, value);
                    }
                    None if self.global.get(&name).is_some() => {}
                    None => self.declared.remark(instruction.span, no_default(&name)),
                }
            }
            self.global.check(instruction.span)?;
        }
        Ok(())
    }

    /// The stages that one is built on, the first of them first; notes the image they start from.
    pub(super) fn chain(&mut self, stages: &[Stage<'_>], target: usize) -> Result<Vec<usize>, Fault> {
        let mut chain = Vec::new();
        let mut current = Some(target);
        while let Some((index, stage)) = current.and_then(|index| Some((index, stages.get(index)?))) {
            chain.push(index);
            let span = stage.from.span;
            let (image, platform) = self.from(stage.from);
            self.global.check(span)?;
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
                    self.declared.note(span, note);
                }
                None if image.text.is_empty() => {
                    return Err(Fault::new(span.line, 1, "FROM without an image"));
                }
                None => self.declared.base_image = Some(DeclaredImage { reference: image.text, span }),
            }
        }
        chain.reverse();
        Ok(chain)
    }

    /// The image and platform of a `FROM`.
    fn from(&mut self, from: &Instruction) -> (Expanded, Option<String>) {
        let mut image = None;
        let mut platform = None;
        for raw in words(&from.arguments.text, self.escape) {
            match raw.strip_prefix("--platform=") {
                Some(raw) => platform = Some(word(raw, self.escape, &|name| self.global.get(name))),
                None if raw.starts_with("--") => {}
                None => {
                    image = Some(word(raw, self.escape, &|name| self.global.get(name)));
                    break;
                }
            }
        }
        let platform = platform.and_then(|platform| self.known(platform, "the platform", from.span));
        (image.unwrap_or_default(), platform)
    }

    fn set_target(&mut self, platform: &str) {
        if let Some(arch) = platform.split('/').nth(1).and_then(Arch::parse) {
            self.arch = arch;
        }
        set_platform(&mut self.global, self.arch);
        self.declared.platform = Some(platform.to_owned());
    }

    pub(super) fn begin_stage(&mut self, index: usize) {
        self.index = index;
        self.variables.end_stage();
        self.shell = vec!["/bin/sh".to_owned(), "-c".to_owned()];
        self.arguments_are_inherited = true;
    }

    pub(super) fn instruction(&mut self, instruction: &Instruction) -> Result<(), Fault> {
        let span = instruction.span;
        match instruction.keyword.as_str() {
            "ARG" => self.stage_arguments(instruction),
            "ENV" => self.environment(instruction)?,
            "RUN" => self.run(instruction),
            "CMD" => {
                self.arguments = Some(command(&instruction.arguments.text));
                self.arguments_are_inherited = false;
            }
            "ENTRYPOINT" => {
                self.entrypoint = Some(command(&instruction.arguments.text));
                if self.arguments_are_inherited {
                    self.arguments = None;
                }
            }
            "SHELL" => match serde_json::from_str::<Vec<String>>(&instruction.arguments.text) {
                Ok(shell) if !shell.is_empty() => self.shell = shell,
                _ => return Err(Fault::new(span.line, 1, "SHELL takes a list in JSON")),
            },
            "COPY" | "ADD" => self.copy(instruction),
            "WORKDIR" => {
                let directory =
                    word(&instruction.arguments.text, self.escape, &|name| self.variables.get(name));
                self.scene.workdir = join(&self.scene.workdir, &directory.text);
            }
            "ONBUILD" => self.declared.remark(span, "ONBUILD is for images built on this one"),
            _ => {}
        }
        Ok(())
    }

    fn stage_arguments(&mut self, instruction: &Instruction) {
        for raw in words(&instruction.arguments.text, self.escape) {
            let (name, value) = self.assignment(raw, &self.variables);
            let value = if let Some(value) = value {
                self.known(value, &name, instruction.span)
            } else {
                let global = self.global.get(&name);
                if global.is_none() {
                    self.declared.remark(instruction.span, no_default(&name));
                }
                global
            };
            self.variables.set_argument(name, value);
        }
    }

    fn environment(&mut self, instruction: &Instruction) -> Result<(), Fault> {
        let span = instruction.span;
        let all = words(&instruction.arguments.text, self.escape);
        let is_old = all.first().is_some_and(|first| !first.contains('='));
        if is_old {
            let Some((name, value)) = instruction.arguments.text.split_once(char::is_whitespace) else {
                return Err(Fault::new(span.line, 1, "ENV without a value"));
            };
            let value = word(value.trim(), self.escape, &|name| self.variables.get(name));
            let value = self.known(value, name, span);
            self.variables.set(name.to_owned(), value);
            return Ok(());
        }
        // All values of one instruction see the variables as they were before it.
        let mut set = Vec::new();
        for raw in all {
            match self.assignment(raw, &self.variables) {
                (name, Some(value)) => set.push((name, value)),
                (name, None) => {
                    return Err(Fault::new(span.line, 1, format!("`{}` has no value", excerpt(&name))));
                }
            }
        }
        for (name, value) in set {
            let value = self.known(value, &name, span);
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
    fn known(&mut self, value: Expanded, name: &str, span: Span) -> Option<String> {
        match value.unknown {
            None => Some(value.text),
            Some(unknown) => {
                self.declared.remark(span, format!("{name} depends on {unknown}, which is not set here"));
                None
            }
        }
    }

    fn run(&mut self, instruction: &Instruction) {
        let script = without_flags(&instruction.arguments.text);
        let skipped = instruction.arguments.text.len() - script.len();
        let locate = |bytes: Range<usize>| {
            let bytes = bytes.start + skipped..bytes.end + skipped;
            self.plan.lines.span(instruction.arguments.source_range(bytes))
        };
        let is_posix = self.shell.first().is_some_and(|shell| {
            let name = shell.rsplit(['/', '\\']).next().unwrap_or_default().to_ascii_lowercase();
            !name.contains("powershell") && !name.contains("pwsh") && !name.starts_with("cmd")
        });
        if !is_posix {
            self.declared.note(instruction.span, "commands for a shell of Windows are not read");
            return;
        }
        let mark = self.scene.mark();
        self.mounts(&instruction.arguments.text);
        let cwd = self.scene.workdir.clone();
        let mut reader = Reader {
            declared: &mut self.declared,
            scene: &mut self.scene,
            cwd: cwd.clone(),
            variables: &self.variables,
            arch: self.arch,
            locate: &locate,
            own: HashMap::new(),
        };
        if let Command::Exec(list) = command(script) {
            let word = |text| Word { text, is_open: false, bytes: 0..script.len() };
            let list: Vec<Word> = list.into_iter().map(word).collect();
            reader.command(&list, None, 0);
            self.scene.forget(mark);
            return;
        }
        reader.script(script);
        let stdin = script.split_whitespace().find(|word| !word.starts_with('<') && !word.starts_with('-'));
        let is_script = stdin.is_none_or(|program| ["sh", "bash", "/bin/sh", "/bin/bash"].contains(&program));
        for here_doc in instruction.here_docs.iter().filter(|_| is_script) {
            let is_foreign = here_doc.body.text.starts_with("#!")
                && !here_doc.body.text.lines().next().unwrap_or("").ends_with("sh");
            if is_foreign {
                self.declared.note(
                    here_doc.span,
                    format!("the script `{}` is not one of a shell", here_doc.delimiter),
                );
                continue;
            }
            let locate = |bytes| self.plan.lines.span(here_doc.body.source_range(bytes));
            Reader {
                declared: &mut self.declared,
                scene: &mut self.scene,
                cwd: cwd.clone(),
                variables: &self.variables,
                arch: self.arch,
                locate: &locate,
                own: HashMap::new(),
            }
            .script(&here_doc.body.text);
        }
        self.scene.forget(mark);
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
                arch: self.arch,
                locate: &|_| Span::START,
                own: HashMap::new(),
            }
            .script(&script);
            let file = first.to_owned();
            for note in self.declared.notes.iter_mut().skip(last) {
                note.file = Some(file.clone());
            }
        } else if is_path && !is_system && !is_built {
            let span = self.plan.stages.get(self.index).map_or(Span::START, |stage| stage.from.span);
            self.declared.note(span, format!("the program `{}` that is started is not read", excerpt(first)));
        }
    }

    pub(super) fn finish(mut self) -> Finished {
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
            let span = self.plan.stages.get(self.index).map_or(Span::START, |stage| stage.from.span);
            let note = format!("{} is CUDA code, and how it is compiled is not told", excerpt(source));
            self.declared.note(span, note);
        }
        self.declared.environment = self.variables.into_environment();
        self.declared.notes.sort_by_key(|note| note.span.line);
        Finished { declared: self.declared, prefixes: self.scene.prefixes }
    }
}

fn set_platform(variables: &mut Variables, arch: Arch) {
    let name = arch.oci_name();
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
pub(super) fn command(arguments: &str) -> Command {
    match serde_json::from_str(arguments) {
        Ok(words) => Command::Exec(words),
        Err(_) => Command::Shell(arguments.to_owned()),
    }
}

/// What follows `--mount=…` and the other flags.
pub(super) fn without_flags(arguments: &str) -> &str {
    let mut rest = arguments;
    while rest.starts_with("--") {
        let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
        rest = rest.get(end..).unwrap_or_default().trim_start();
    }
    rest
}
