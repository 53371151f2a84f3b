//! Reads the instructions of a stage.

use cudock_base::bug::Parts;
use std::collections::HashMap;
use std::ops::Range;

use cudock_base::{Arch, Span};
use cudock_dockerfile::expand::{Expanded, expand_arg, split_args};
use cudock_dockerfile::{Argument, Instruction, exec_form};

use super::run::ScriptReader;
use super::stage_fs::StageFs;
use super::variables::Variables;
use super::{BuildGraph, FinishedStage, programs};
use crate::files::join;
use crate::{Declared, DeclaredImage, PositionedError, excerpt};

/// Programs that read a script from standard input or after `-c`.
const SHELL_PROGRAMS: [&str; 4] = ["sh", "bash", "/bin/sh", "/bin/bash"];

/// Reads a stage and the stages it is built on, one after the other.
pub(super) struct StageReader<'a> {
    pub(super) graph: &'a BuildGraph<'a>,
    pub(super) declared: Declared,
    pub(super) fs: StageFs<'a>,
    /// The current stage.
    pub(super) index: usize,
    pub(super) variables: Variables,
    /// Variables of `FROM` lines.
    global: Variables,
    arch: Arch,
    shell: Vec<String>,
    entrypoint: Option<Command>,
    arguments: Option<Command>,
    /// Whether `CMD` comes from the stage before, so that an `ENTRYPOINT` clears it.
    arguments_are_inherited: bool,
}

/// The arguments of `CMD`, `ENTRYPOINT` or `RUN`, in exec or shell form.
#[derive(Clone)]
enum Command {
    Exec(Vec<String>),
    Shell(String),
}

impl<'a> StageReader<'a> {
    pub(super) fn new(graph: &'a BuildGraph<'a>) -> Self {
        let mut global = Variables::for_text(graph.lines.text());
        set_platform(&mut global, graph.arch);
        Self {
            graph,
            declared: Declared::default(),
            fs: StageFs::new(graph.files),
            index: 0,
            variables: Variables::for_text(graph.lines.text()),
            global,
            arch: graph.arch,
            shell: default_shell(),
            entrypoint: None,
            arguments: None,
            arguments_are_inherited: false,
        }
    }

    /// Reads arguments before the first `FROM`: they apply to `FROM` lines, and to stages that repeat them.
    pub(super) fn global_arguments(&mut self, head: &[Instruction]) -> Result<(), PositionedError> {
        for instruction in head {
            if instruction.keyword != "ARG" {
                let message = format!("{} before FROM", instruction.keyword);
                return Err(PositionedError::at_line(instruction.span, message));
            }
            for raw in split_args(&instruction.arguments.text, self.graph.escape) {
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

    /// The stages that `target` is built on, base first; records the image they start from.
    pub(super) fn chain(&mut self, target: usize) -> Result<Vec<usize>, PositionedError> {
        let mut chain = Vec::new();
        let mut current = Some(target);
        while let Some((index, stage)) =
            current.and_then(|index| Some((index, self.graph.stages.get(index)?)))
        {
            chain.push(index);
            let span = stage.from.span;
            let (image, platform) = self.from(stage.from);
            self.global.check(span)?;
            if let (None, Some(platform)) = (&self.declared.platform, platform) {
                self.set_target(&platform);
            }
            current = self.graph.stage_before(&image.text, index);
            if current.is_some() {
                continue;
            }
            match image.unknown {
                Some(name) => {
                    let note =
                        format!("base image `{}` depends on {name}, which is not set", excerpt(&image.text));
                    self.declared.note(span, note);
                }
                None if image.text.is_empty() => {
                    return Err(PositionedError::at_line(span, "FROM without an image"));
                }
                None => self.declared.base_image = Some(DeclaredImage { reference: image.text, span }),
            }
        }
        chain.reverse();
        Ok(chain)
    }

    /// The image and platform of a `FROM`.
    fn from(&mut self, from: &Instruction) -> (Expanded, Option<String>) {
        let args = split_args(&from.arguments.text, self.graph.escape);
        let expand = |raw: &str| expand_arg(raw, self.graph.escape, &|name| self.global.get(name));
        let flags = args.iter().take_while(|arg| arg.starts_with("--"));
        let platform = flags.filter_map(|flag| flag.strip_prefix("--platform=")).last().map(expand);
        let image = args.iter().find(|arg| !arg.starts_with("--")).map(|image| expand(image));
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
        self.shell = default_shell();
        self.arguments_are_inherited = true;
    }

    pub(super) fn instruction(&mut self, instruction: &Instruction) -> Result<(), PositionedError> {
        let span = instruction.span;
        match instruction.keyword {
            "ARG" => self.stage_arguments(instruction),
            "ENV" => self.environment(instruction)?,
            "RUN" => self.run(instruction),
            "CMD" => {
                self.arguments = start_command(instruction);
                self.arguments_are_inherited = false;
            }
            "ENTRYPOINT" => {
                self.entrypoint = start_command(instruction);
                if self.arguments_are_inherited {
                    self.arguments = None;
                }
            }
            "SHELL" => match serde_json::from_str::<Vec<String>>(&instruction.arguments.text) {
                Ok(shell) if !shell.is_empty() => self.shell = shell,
                _ => return Err(PositionedError::at_line(span, "SHELL expects a JSON list")),
            },
            "COPY" | "ADD" => self.copy(instruction),
            "WORKDIR" => {
                let directory = self.expand(&instruction.arguments.text);
                self.fs.workdir = join(&self.fs.workdir, &directory.text);
            }
            "ONBUILD" => self.declared.remark(span, "ONBUILD applies to images built on this one"),
            _ => {}
        }
        Ok(())
    }

    fn stage_arguments(&mut self, instruction: &Instruction) {
        for raw in split_args(&instruction.arguments.text, self.graph.escape) {
            let (name, value) = self.assignment(raw, &self.variables);
            let value = match value {
                Some(value) => self.known(value, &name, instruction.span),
                None => self.global.get(&name).or_else(|| {
                    self.declared.remark(instruction.span, no_default(&name));
                    None
                }),
            };
            self.variables.set_argument(name, value);
        }
    }

    fn environment(&mut self, instruction: &Instruction) -> Result<(), PositionedError> {
        let span = instruction.span;
        let all = split_args(&instruction.arguments.text, self.graph.escape);
        let is_old = all.first().is_some_and(|first| !first.contains('='));
        if is_old {
            let Some((name, value)) = instruction.arguments.text.split_once(char::is_whitespace) else {
                return Err(PositionedError::at_line(span, "ENV without a value"));
            };
            let value = self.known(self.expand(value.trim()), name, span);
            self.variables.set(name.to_owned(), value);
            return Ok(());
        }
        // All values of one instruction are expanded with the variables as they were before it.
        let set: Vec<_> = all.into_iter().map(|raw| self.assignment(raw, &self.variables)).collect();
        if let Some((name, _)) = set.iter().find(|(_, value)| value.is_none()) {
            return Err(PositionedError::at_line(span, format!("`{}` has no value", excerpt(name))));
        }
        for (name, value) in set {
            let value = self.known(value.unwrap_or_default(), &name, span);
            self.variables.set(name, value);
        }
        Ok(())
    }

    /// Expands an argument with the variables of the stage.
    pub(super) fn expand(&self, raw: &str) -> Expanded {
        expand_arg(raw, self.graph.escape, &|name| self.variables.get(name))
    }

    /// Splits `NAME=value`.
    fn assignment(&self, raw: &str, variables: &Variables) -> (String, Option<Expanded>) {
        let expand = |raw: &str| expand_arg(raw, self.graph.escape, &|name| variables.get(name));
        match raw.split_once('=') {
            Some((name, value)) => (expand(name).text, Some(expand(value))),
            None => (expand(raw).text, None),
        }
    }

    /// The value, or a remark that it is unknown.
    fn known(&mut self, value: Expanded, name: &str, span: Span) -> Option<String> {
        match value.unknown {
            None => Some(value.text),
            Some(unknown) => {
                self.declared.remark(span, format!("{name} depends on {unknown}, which is not set"));
                None
            }
        }
    }

    fn run(&mut self, instruction: &Instruction) {
        let is_posix = self.shell.first().is_some_and(|shell| {
            let name = shell.rsplit(['/', '\\']).next().unwrap_or_default().to_ascii_lowercase();
            !name.contains("powershell") && !name.contains("pwsh") && !name.starts_with("cmd")
        });
        if !is_posix {
            self.declared.note(instruction.span, "commands for a Windows shell are not analyzed");
            return;
        }
        let copies = self.fs.copies();
        self.mounts(&instruction.arguments.text);
        self.run_command(instruction);
        self.fs.truncate(copies);
    }

    fn run_command(&mut self, instruction: &Instruction) {
        let lines = self.graph.lines;
        let script = without_flags(&instruction.arguments.text);
        let skipped = instruction.arguments.text.len() - script.len();
        let locate = |bytes: Range<usize>| {
            let bytes = bytes.start + skipped..bytes.end + skipped;
            instruction.arguments.span(bytes, lines)
        };
        if let Some(list) = exec_form(script) {
            let arg =
                |text: String| Argument { text: text.into(), is_unresolved: false, bytes: 0..script.len() };
            let list: Vec<Argument<'_>> = list.into_iter().map(arg).collect();
            self.script_reader(&locate).command(&list, None, 0);
            return;
        }
        self.script_reader(&locate).script(script);
        let stdin = script.split_whitespace().find(|arg| !arg.starts_with('<') && !arg.starts_with('-'));
        let is_script = stdin.is_none_or(|program| SHELL_PROGRAMS.contains(&program));
        for here_doc in instruction.here_docs.iter().filter(|_| is_script) {
            let text = here_doc.body.text.as_str();
            if text.starts_with("#!") && !text.lines().next().unwrap_or("").ends_with("sh") {
                let note = format!("script `{}` is not a shell script", here_doc.delimiter);
                self.declared.note(here_doc.span, note);
                continue;
            }
            self.script_reader(&|bytes| here_doc.body.span(bytes, lines)).script(text);
        }
    }

    fn script_reader<'r>(&'r mut self, locate: &'r dyn Fn(Range<usize>) -> Span) -> ScriptReader<'r, 'a> {
        ScriptReader {
            declared: &mut self.declared,
            cwd: self.fs.workdir.clone(),
            fs: &mut self.fs,
            variables: &self.variables,
            arch: self.arch,
            locate,
            own: HashMap::new(),
        }
    }

    /// Reads the program that is started, if it is a script, or notes that it cannot be analyzed.
    fn start(&mut self, command: &[String]) {
        let args = command
            .iter()
            .map(String::as_str)
            .filter(|arg| !SHELL_PROGRAMS.contains(arg) && !arg.starts_with('-'));
        let mut args = args.flat_map(str::split_whitespace);
        let Some(program) = args.find(|arg| !["exec", "tini", "--"].contains(arg)) else { return };
        let path = join(&self.fs.workdir, program);
        let is_built = self.declared.compiled.iter().any(|compiled| compiled.output.as_ref() == Some(&path));
        let is_path = program.contains('/');
        let system_directories = ["bin/", "sbin/", "usr/bin/", "usr/sbin/", "usr/local/bin/", "opt/conda/"];
        let is_system =
            system_directories.iter().any(|directory| path.starts_with(directory)) || path.contains("/bin/");
        let script = self.fs.text(&self.fs.workdir, program);
        if let Some((_, script)) = script.filter(|_| is_path || programs::is_script(program)) {
            let before = self.declared.notes.len();
            self.script_reader(&|_| Span::START).script(&script);
            for note in self.declared.notes.iter_mut().skip(before) {
                note.file = Some(program.to_owned());
            }
        } else if is_path && !is_system && !is_built {
            let note = format!("started program `{}` cannot be analyzed", excerpt(program));
            self.declared.note(self.span_of_from(), note);
        }
    }

    /// The span of the current stage's `FROM`.
    fn span_of_from(&self) -> Span {
        self.graph.stages.get(self.index).map_or(Span::START, |stage| stage.from.span)
    }

    pub(super) fn finish(mut self) -> FinishedStage {
        let shell = std::mem::take(&mut self.shell);
        let argv = |command: Command| match command {
            Command::Exec(argv) => argv,
            Command::Shell(script) => shell.iter().cloned().chain([script]).collect(),
        };
        let command = match (self.entrypoint.take(), self.arguments.take()) {
            (Some(Command::Exec(mut entrypoint)), arguments) => {
                entrypoint.extend(arguments.map(argv).unwrap_or_default());
                Some(entrypoint)
            }
            // An entry point in shell form takes no arguments.
            (Some(entrypoint), _) => Some(argv(entrypoint)),
            (None, arguments) => arguments.map(argv),
        };
        self.start(command.as_deref().unwrap_or_default());
        self.declared.command = command;
        if let (true, Some(source)) = (self.declared.compiled.is_empty(), self.fs.cuda_sources.first()) {
            let note = format!("cannot determine how CUDA source {} is compiled", excerpt(source));
            self.declared.note(self.span_of_from(), note);
        }
        self.declared.environment = self.variables.into_environment();
        self.declared.notes.sort_by_key(|note| note.span.line);
        FinishedStage { declared: self.declared, prefixes: self.fs.prefixes }
    }
}

fn default_shell() -> Vec<String> {
    vec!["/bin/sh".to_owned(), "-c".to_owned()]
}

fn set_platform(variables: &mut Variables, arch: Arch) {
    let name = arch.oci_name();
    let platform = format!("linux/{name}");
    for (argument, value) in
        [("TARGETPLATFORM", platform.as_str()), ("TARGETARCH", name), ("TARGETOS", "linux")]
    {
        variables.set_argument(argument.to_owned(), Some(value.to_owned()));
    }
}

fn no_default(name: &str) -> String {
    format!("build argument {} has no default", excerpt(name))
}

/// The command of `CMD` or `ENTRYPOINT`; none without arguments.
fn start_command(instruction: &Instruction) -> Option<Command> {
    let text = instruction.arguments.text.as_str();
    (!text.is_empty()).then(|| command(text))
}

/// A JSON list is the exec form; anything else is the shell form.
fn command(arguments: &str) -> Command {
    exec_form(arguments).map_or_else(|| Command::Shell(arguments.to_owned()), Command::Exec)
}

/// The text after `--mount=…` and the other flags.
pub(super) fn without_flags(arguments: &str) -> &str {
    let mut rest = arguments;
    while rest.starts_with("--") {
        let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
        rest = rest.part(end..).trim_start();
    }
    rest
}
