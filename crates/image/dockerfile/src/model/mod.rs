//! The semantics of a build: stages, variables, copies and commands, as far as the text determines them.

mod commands;

use cudock_base::bug::Parts;
use cudock_base::text::path::absolute;
use std::cell::Cell;
use std::collections::HashMap;
use std::sync::Arc;

use cudock_base::{LineIndex, Span};

use commands::commands_of;
pub use commands::{Command, CommandArg, assignment, exec_form};

use crate::expand::{Expanded, expand_arg, split_args};
use crate::syntax::{Dockerfile, Instruction, Joined};
use crate::{SyntaxError, excerpt};

/// The limit for stages that are built on each other, in look-ups.
const MAX_CHAIN: usize = 64;

/// A Dockerfile with its stages resolved.
#[derive(Debug)]
pub struct Build<'f> {
    pub lines: &'f LineIndex<'f>,
    pub escape: char,
    /// The build arguments before the first `FROM`.
    pub head: Vec<Step<'f>>,
    pub stages: Vec<Stage<'f>>,
    /// Comment lines, directives included, without those inside of here-documents.
    pub comments: Vec<Comment>,
}

/// A line that is a comment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Comment {
    pub span: Span,
    /// The text after `#`, trimmed.
    pub text: String,
}

#[derive(Debug)]
pub struct Stage<'f> {
    /// The name after `AS`, as written.
    pub name: Option<String>,
    /// The `FROM` instruction.
    pub from: &'f Instruction,
    pub image: BaseImage,
    /// The stage that it is built on, if its image is one.
    pub base: Option<usize>,
    pub platform: Option<Expanded>,
    pub steps: Vec<Step<'f>>,
}

/// The image of a `FROM`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BaseImage {
    /// The reference, with build arguments expanded.
    pub reference: Expanded,
    /// The span of the reference as written.
    pub span: Span,
}

/// An instruction of a stage.
#[derive(Debug)]
pub struct Step<'f> {
    pub instruction: &'f Instruction,
    pub kind: StepKind<'f>,
}

#[derive(Debug)]
pub enum StepKind<'f> {
    Arg(Vec<Setting>),
    Env(Vec<Setting>),
    Label(Vec<Setting>),
    Run(Run<'f>),
    /// `COPY` and `ADD`.
    Copy(Copy),
    Cmd(StartCommand<'f>),
    Entrypoint(StartCommand<'f>),
    User(Expanded),
    Workdir(Expanded),
    Shell(Vec<String>),
    /// Instructions that no rule needs in more detail: `EXPOSE`, `HEALTHCHECK`, `ONBUILD` …
    Other,
}

/// `NAME=value`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    pub name: String,
    /// Expanded; `None` for an `ARG` without a default.
    pub value: Option<Expanded>,
    /// The whole assignment.
    pub span: Span,
    /// The value as written, quotes included; empty if there is none.
    pub value_span: Span,
}

#[derive(Debug, Default)]
pub struct Run<'f> {
    pub mounts: Vec<Mount>,
    /// The commands, in order; empty if the shell is not a POSIX shell.
    pub commands: Vec<Command<'f>>,
    /// The bytes of the script after flags such as `--mount`.
    pub script: Span,
}

/// A `--mount` of a `RUN`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// `bind`, `cache`, `secret`, `ssh`, `tmpfs`.
    pub kind: String,
    /// Absolute, or as written if that is unknown; empty if there is none.
    pub target: String,
    pub source: Option<String>,
    pub from: Option<CopyFrom>,
    pub span: Span,
}

#[derive(Debug)]
pub struct Copy {
    pub from: Option<CopyFrom>,
    pub sources: Vec<CopyPath>,
    pub target: CopyPath,
    /// Flags as written: `--link`, `--chown=a:b`.
    pub flags: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CopyFrom {
    Stage(usize),
    /// An image, or a stage that does not exist.
    Image(String),
}

impl CopyFrom {
    pub fn stage(&self) -> Option<usize> {
        match self {
            Self::Stage(index) => Some(*index),
            Self::Image(_) => None,
        }
    }
}

/// A path of a `COPY`, expanded.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CopyPath {
    pub text: String,
    pub is_unresolved: bool,
    pub span: Span,
}

/// The command of `CMD` or `ENTRYPOINT`.
#[derive(Debug)]
pub struct StartCommand<'f> {
    /// Whether it is a JSON list, and not a command for a shell.
    pub is_exec: bool,
    pub commands: Vec<Command<'f>>,
}

impl<'f> Build<'f> {
    /// Reads the instructions of a Dockerfile.
    pub fn read(file: &'f Dockerfile<'f>) -> Result<Self, SyntaxError> {
        let Dockerfile { lines, escape, instructions } = file;
        let (escape, comments) = (*escape, comments(file));
        let mut reader = Reader {
            build: Self { lines, escape, head: Vec::new(), stages: Vec::new(), comments },
            global: HashMap::new(),
            environment: HashMap::new(),
            arguments: HashMap::new(),
            names: HashMap::new(),
            workdir: Arc::default(),
            is_posix: true,
            final_states: Vec::new(),
            budget: Cell::new(Some(lines.text().len().saturating_mul(8).saturating_add(1 << 20))),
        };
        for instruction in instructions {
            let line = instruction.span.line;
            reader.instruction(instruction)?;
            if reader.budget.get().is_none() {
                let message = "variables expand to far more text than the file holds";
                return Err(SyntaxError::new(line, 1, message));
            }
        }
        reader.end_stage();
        if reader.build.stages.is_empty() {
            return Err(SyntaxError::new(1, 1, "no FROM"));
        }
        Ok(reader.build)
    }

    pub fn text(&self) -> &'f str {
        self.lines.text()
    }

    /// The index of the last stage, which is what a build produces by default.
    pub fn last(&self) -> usize {
        self.stages.len().saturating_sub(1)
    }

    /// A stage and those it is built on, itself first.
    pub fn chain(&self, stage: usize) -> impl Iterator<Item = (usize, &Stage<'f>)> {
        let next = |(_, stage): &(usize, &Stage<'f>)| stage.base.and_then(|base| self.get(base));
        std::iter::successors(self.get(stage), next).take(MAX_CHAIN)
    }

    fn get(&self, stage: usize) -> Option<(usize, &Stage<'f>)> {
        self.stages.get(stage).map(|found| (stage, found))
    }

    /// The image at the bottom of a stage's chain.
    pub fn base_image(&self, stage: usize) -> Option<&BaseImage> {
        self.chain(stage).last().filter(|(_, stage)| stage.base.is_none()).map(|(_, stage)| &stage.image)
    }

    /// The steps of a stage and of those it is built on, in the order in which they run.
    pub fn steps(&self, stage: usize) -> Vec<&Step<'f>> {
        let mut stages: Vec<&Stage<'f>> = self.chain(stage).map(|(_, stage)| stage).collect();
        stages.reverse();
        stages.into_iter().flat_map(|stage| &stage.steps).collect()
    }

    /// Stages that the last stage needs: those it is built on, copies from or mounts, and so on.
    pub fn needed(&self) -> Vec<bool> {
        let mut needed = vec![false; self.stages.len()];
        let mut open = vec![self.last()];
        while let Some(index) = open.pop() {
            let Some(stage) = self.stages.get(index) else { continue };
            if needed.get_mut(index).is_none_or(|seen| std::mem::replace(seen, true)) {
                continue;
            }
            open.extend(stage.base);
            for step in &stage.steps {
                match &step.kind {
                    StepKind::Copy(copy) => open.extend(copy.from.as_ref().and_then(CopyFrom::stage)),
                    StepKind::Run(run) => {
                        let from = run.mounts.iter().filter_map(|mount| mount.from.as_ref());
                        open.extend(from.filter_map(CopyFrom::stage));
                    }
                    _ => {}
                }
            }
        }
        needed
    }
}

/// Comment lines that are not part of a here-document.
fn comments(file: &Dockerfile<'_>) -> Vec<Comment> {
    let bodies: Vec<Span> =
        file.instructions.iter().flat_map(|one| &one.here_docs).map(|here_doc| here_doc.span).collect();
    let mut start = 0;
    let mut comments = Vec::new();
    for line in file.lines.text().split_inclusive('\n') {
        let at = start;
        start += line.len();
        let blank = line.len() - line.trim_start().len();
        let Some(comment) = line.trim_start().strip_prefix('#') else { continue };
        let next = bodies.partition_point(|body| body.end <= at);
        if bodies.get(next).is_some_and(|body| body.bytes().contains(&at)) {
            continue;
        }
        let span = file.lines.span(at + blank..at + line.trim_end().len());
        comments.push(Comment { span, text: comment.trim().to_owned() });
    }
    comments
}

/// Known values; `None` for a variable that is set to something unknown.
type Values = HashMap<String, Option<String>>;

/// The state that a stage passes on to those that are built on it.
#[derive(Clone)]
struct StageState {
    environment: Values,
    workdir: Arc<str>,
    is_posix: bool,
}

struct Reader<'f> {
    build: Build<'f>,
    global: Values,
    /// Variables set by the current stage; inherited ones are looked up.
    environment: Values,
    /// The build arguments of the current stage.
    arguments: Values,
    /// The last stage of each name, in lower case.
    names: HashMap<String, usize>,
    workdir: Arc<str>,
    is_posix: bool,
    final_states: Vec<StageState>,
    /// The bytes that variables may still expand to; `None` when exceeded.
    budget: Cell<Option<usize>>,
}

impl<'f> Reader<'f> {
    fn instruction(&mut self, instruction: &'f Instruction) -> Result<(), SyntaxError> {
        let line = instruction.span.line;
        if instruction.keyword == "FROM" {
            self.end_stage();
            return self.from(instruction);
        }
        if self.build.stages.is_empty() && instruction.keyword != "ARG" {
            return Err(SyntaxError::new(line, 1, format!("{} before FROM", instruction.keyword)));
        }
        let kind = self.step(instruction)?;
        let step = Step { instruction, kind };
        match self.build.stages.last_mut() {
            Some(stage) => stage.steps.push(step),
            None => self.build.head.push(step),
        }
        Ok(())
    }

    fn spend(&self, value: &str) {
        self.budget.set(self.budget.get().and_then(|left| left.checked_sub(value.len() + 1)));
    }

    /// A variable's value in the current stage.
    fn get(&self, name: &str) -> Option<String> {
        let inherited = || {
            let base = self.build.stages.last()?.base?;
            let mut chain = self.build.chain(base);
            chain.find_map(|(index, _)| self.final_states.get(index)?.environment.get(name))
        };
        let arguments = if self.build.stages.is_empty() { &self.global } else { &self.arguments };
        // The environment wins over build arguments.
        let value =
            self.environment.get(name).or_else(inherited).or_else(|| arguments.get(name))?.as_ref()?;
        self.spend(value);
        Some(value.clone())
    }

    fn expand(&self, raw: &str) -> Expanded {
        expand_arg(raw, self.build.escape, &|name| self.get(name))
    }

    fn expand_global(&self, raw: &str) -> Expanded {
        let lookup = |name: &str| {
            let value = self.global.get(name)?.clone();
            self.spend(value.as_deref().unwrap_or_default());
            value
        };
        expand_arg(raw, self.build.escape, &lookup)
    }

    fn from(&mut self, instruction: &'f Instruction) -> Result<(), SyntaxError> {
        let args = split_args(&instruction.arguments.text, self.build.escape);
        let flags = args.iter().take_while(|arg| arg.starts_with("--"));
        let platform = flags.filter_map(|flag| flag.strip_prefix("--platform=")).last();
        let platform = platform.map(|platform| self.expand_global(platform));
        let Some(image) = args.iter().find(|arg| !arg.starts_with("--")) else {
            return Err(SyntaxError::new(instruction.span.line, 1, "FROM without an image"));
        };
        let reference = self.expand_global(image);
        let span = self.span_of(&instruction.arguments, image);
        let base = self.names.get(&reference.text.to_ascii_lowercase()).copied();
        let name = match args.as_slice() {
            [.., keyword, name] if keyword.eq_ignore_ascii_case("as") => Some((*name).to_owned()),
            _ => None,
        };
        let inherited = base.and_then(|base| self.final_states.get(base));
        (self.workdir, self.is_posix) =
            inherited.map_or((Arc::default(), true), |state| (Arc::clone(&state.workdir), state.is_posix));
        let image = BaseImage { reference, span };
        self.build.stages.push(Stage { name, from: instruction, image, base, platform, steps: Vec::new() });
        Ok(())
    }

    fn end_stage(&mut self) {
        let Some(stage) = self.build.stages.last() else { return };
        if let Some(name) = &stage.name {
            self.names.insert(name.to_ascii_lowercase(), self.build.last());
        }
        self.arguments.clear();
        let (environment, workdir) =
            (std::mem::take(&mut self.environment), std::mem::take(&mut self.workdir));
        self.final_states.push(StageState { environment, workdir, is_posix: self.is_posix });
    }

    fn step(&mut self, instruction: &'f Instruction) -> Result<StepKind<'f>, SyntaxError> {
        let line = instruction.span.line;
        let text = instruction.arguments.text.as_str();
        Ok(match instruction.keyword {
            "ARG" => {
                let mut settings =
                    self.settings(&instruction.arguments, &split_args(text, self.build.escape));
                let is_global = self.build.stages.is_empty();
                for setting in &mut settings {
                    if is_global {
                        self.global.insert(setting.name.clone(), known(setting));
                        continue;
                    }
                    if setting.value.is_none() {
                        let global = self.global.get(&setting.name).cloned().flatten();
                        setting.value = global.map(|text| Expanded { text, unknown: None });
                    }
                    self.arguments.insert(setting.name.clone(), known(setting));
                }
                StepKind::Arg(settings)
            }
            "ENV" | "LABEL" => {
                let raws = split_args(text, self.build.escape);
                let first = raws.first().copied().unwrap_or_default();
                let settings = if first.contains('=') {
                    self.settings(&instruction.arguments, &raws)
                } else {
                    vec![self.old_setting(&instruction.arguments, first)]
                };
                if let Some(bare) = settings.iter().find(|setting| setting.value.is_none()) {
                    let message = format!("`{}` has no value", excerpt(&bare.name));
                    return Err(SyntaxError::new(line, 1, message));
                }
                if instruction.keyword == "LABEL" {
                    return Ok(StepKind::Label(settings));
                }
                self.environment
                    .extend(settings.iter().map(|setting| (setting.name.clone(), known(setting))));
                StepKind::Env(settings)
            }
            "RUN" => StepKind::Run(self.run(instruction)),
            "COPY" | "ADD" => {
                let Some(copy) = self.copy(instruction) else {
                    let message = format!("{} needs a source and a target", instruction.keyword);
                    return Err(SyntaxError::new(line, 1, message));
                };
                StepKind::Copy(copy)
            }
            "CMD" => StepKind::Cmd(self.start(instruction)),
            "ENTRYPOINT" => StepKind::Entrypoint(self.start(instruction)),
            "USER" => StepKind::User(self.expand(text)),
            "WORKDIR" => {
                let directory = self.expand(text);
                self.workdir = absolute(&self.workdir, &directory.text).into();
                StepKind::Workdir(directory)
            }
            "SHELL" => {
                let shell: Vec<String> = serde_json::from_str(text).unwrap_or_default();
                let Some(program) = shell.first() else {
                    return Err(SyntaxError::new(line, 1, "SHELL expects a JSON list"));
                };
                let name = program.rsplit(['/', '\\']).next().unwrap_or_default().to_ascii_lowercase();
                self.is_posix = !["powershell", "pwsh", "cmd"].iter().any(|other| name.starts_with(other));
                StepKind::Shell(shell)
            }
            _ => StepKind::Other,
        })
    }

    /// `NAME=value …`
    fn settings(&self, arguments: &Joined, raws: &[&str]) -> Vec<Setting> {
        let setting = |raw: &&str| {
            let (name, value) = raw.split_once('=').map_or((*raw, None), |(name, value)| (name, Some(value)));
            let span = self.span_of(arguments, raw);
            let value_span = value.map_or_else(
                || self.build.lines.span(span.end..span.end),
                |value| self.span_of(arguments, value),
            );
            let value = value.map(|value| self.expand(value));
            Setting { name: self.expand(name).text, value, span, value_span }
        };
        raws.iter().map(setting).collect()
    }

    /// `NAME value`, up to the end of the line.
    fn old_setting(&self, arguments: &Joined, name: &str) -> Setting {
        let text = arguments.text.as_str();
        let value = text.get(name.len()..).unwrap_or_default().trim();
        let span = self.span_of(arguments, text);
        let expanded = (!value.is_empty()).then(|| self.expand(value));
        Setting { name: name.to_owned(), value: expanded, span, value_span: self.span_of(arguments, value) }
    }

    /// The span of a part of an instruction's text, found by its address.
    fn span_of(&self, arguments: &Joined, part: &str) -> Span {
        let start = (part.as_ptr() as usize).saturating_sub(arguments.text.as_ptr() as usize);
        arguments.span(start..start + part.len(), self.build.lines)
    }

    fn run(&self, instruction: &'f Instruction) -> Run<'f> {
        let arguments = &instruction.arguments;
        let mut script = arguments.text.as_str();
        let mut mounts = Vec::new();
        while script.starts_with("--") {
            let end = script.find(char::is_whitespace).unwrap_or(script.len());
            let (flag, rest) = script.split_at_checked(end).unwrap_or((script, ""));
            if let Some(mount) = flag.strip_prefix("--mount=") {
                mounts.push(self.mount(mount, self.span_of(arguments, flag)));
            }
            script = rest.trim_start();
        }
        let span = self.span_of(arguments, script);
        let commands = if self.is_posix { self.commands(instruction, script) } else { Vec::new() };
        Run { mounts, commands, script: span }
    }

    fn mount(&self, text: &str, span: Span) -> Mount {
        let value = |names: &[&str]| {
            let mut parts = text.split(',').filter_map(|part| part.split_once('='));
            parts.find(|(name, _)| names.contains(name)).map(|(_, value)| self.expand(value).text)
        };
        let target = value(&["target", "dst", "destination"]);
        Mount {
            kind: value(&["type"]).unwrap_or_else(|| "bind".to_owned()),
            target: target.map(|target| absolute(&self.workdir, &target)).unwrap_or_default(),
            source: value(&["source", "src"]),
            from: value(&["from"]).map(|name| self.copy_from(name)),
            span,
        }
    }

    /// The last stage of this name or number before the current one.
    fn copy_from(&self, name: String) -> CopyFrom {
        let by_number = || name.parse().ok().filter(|number| *number < self.build.last());
        let stage = self.names.get(&name.to_ascii_lowercase()).copied().or_else(by_number);
        stage.map_or(CopyFrom::Image(name), CopyFrom::Stage)
    }

    fn commands(&self, instruction: &'f Instruction, script: &'f str) -> Vec<Command<'f>> {
        let lookup = |name: &str| self.get(name);
        let locate = |bytes: std::ops::Range<usize>| {
            let part = script.part(bytes);
            self.span_of(&instruction.arguments, part)
        };
        let workdir = &self.workdir;
        if let Some(list) = exec_form(script) {
            return commands::of_list(list, locate(0..script.len()), workdir);
        }
        let mut commands = commands_of(script, workdir, &lookup, &locate);
        let stdin = script.split_whitespace().find(|arg| !arg.starts_with('<') && !arg.starts_with('-'));
        let is_script = stdin.is_none_or(commands::is_shell);
        for here_doc in instruction.here_docs.iter().filter(|_| is_script) {
            let text = here_doc.body.text.as_str();
            if text.starts_with("#!") && !text.lines().next().unwrap_or("").ends_with("sh") {
                continue;
            }
            let locate = |bytes| here_doc.body.span(bytes, self.build.lines);
            commands.extend(commands_of(text, workdir, &lookup, &locate));
        }
        commands
    }

    fn start(&self, instruction: &'f Instruction) -> StartCommand<'f> {
        let text = instruction.arguments.text.as_str();
        let is_exec = exec_form(text).is_some();
        let commands = if self.is_posix || is_exec { self.commands(instruction, text) } else { Vec::new() };
        StartCommand { is_exec, commands }
    }

    fn copy(&self, instruction: &Instruction) -> Option<Copy> {
        let arguments = &instruction.arguments;
        let mut rest = arguments.text.as_str();
        let (mut from, mut flags) = (None, Vec::new());
        while rest.starts_with("--") {
            let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
            let (flag, behind) = rest.split_at_checked(end)?;
            flags.push(flag.to_owned());
            if let Some(name) = flag.strip_prefix("--from=") {
                from = Some(self.copy_from(self.expand(name).text));
            }
            rest = behind.trim_start();
        }
        let mut sources: Vec<CopyPath> = if let Some(list) = exec_form(rest) {
            let span = self.span_of(arguments, rest);
            list.into_iter().map(|text| CopyPath { text, is_unresolved: false, span }).collect()
        } else {
            let path = |raw: &str| {
                let Expanded { text, unknown } = self.expand(raw);
                CopyPath { text, is_unresolved: unknown.is_some(), span: self.span_of(arguments, raw) }
            };
            split_args(rest, self.build.escape).into_iter().map(path).collect()
        };
        let mut target = sources.pop().filter(|_| !sources.is_empty())?;
        if !target.is_unresolved {
            let is_directory = target.text.ends_with('/') || target.text == ".";
            target.text = absolute(&self.workdir, &target.text);
            if is_directory && !target.text.ends_with('/') {
                target.text.push('/');
            }
        }
        Some(Copy { from, sources, target, flags })
    }
}

fn known(setting: &Setting) -> Option<String> {
    let value = setting.value.as_ref()?;
    value.unknown.is_none().then(|| value.text.clone())
}
