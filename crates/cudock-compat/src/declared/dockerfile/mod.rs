//! Dockerfiles: what the last stage is made of, as far as the text tells.

mod expand;
mod lines;
mod run;
mod shell;

use std::collections::HashMap;

use expand::{Expanded, Variables, word, words};
use lines::Instruction;
use run::Reader;

use super::pip::Word;
use super::toml_tree::Lines;
use super::{Declared, DeclaredImage, Fault, Machine, excerpt};

/// A stage: its `FROM`, and where its instructions are.
struct Stage<'a> {
    from: &'a Instruction,
    body: &'a [Instruction],
}

pub(super) fn read(text: &str, machine: Machine) -> Result<Declared, Fault> {
    let (instructions, escape) = lines::parse(text)?;
    let first = instructions.iter().position(|instruction| instruction.keyword == "FROM");
    let Some((head, rest)) = first.and_then(|first| instructions.split_at_checked(first)) else {
        return Err(Fault::new(1, 1, "no FROM"));
    };
    let mut builder = Builder::new(text, machine, escape);
    builder.global_arguments(head)?;
    let stages = stages(rest);
    let chain = builder.chain(&stages)?;
    for stage in chain {
        builder.begin_stage();
        for instruction in stage.body {
            builder.instruction(instruction)?;
            builder.variables.check(instruction.line)?;
        }
    }
    Ok(builder.finish())
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

struct Builder {
    declared: Declared,
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

impl Builder {
    fn new(text: &str, machine: Machine, escape: char) -> Self {
        let mut global = Variables::for_text(text);
        set_platform(&mut global, machine);
        Self {
            declared: Declared::default(),
            variables: Variables::for_text(text),
            global,
            machine,
            escape,
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
                    None => self.declared.note(instruction.line, no_default(&name)),
                }
            }
            self.global.check(instruction.line)?;
        }
        Ok(())
    }

    /// The stages the last one is built on, the first of them first; notes the image they start from.
    fn chain<'s, 'a>(&mut self, stages: &'s [Stage<'a>]) -> Result<Vec<&'s Stage<'a>>, Fault> {
        let mut names: HashMap<String, Vec<usize>> = HashMap::new();
        for (index, stage) in stages.iter().enumerate() {
            let written = words(&stage.from.arguments, self.escape);
            if let [.., keyword, name] = written.as_slice()
                && keyword.eq_ignore_ascii_case("as")
            {
                names.entry(name.to_ascii_lowercase()).or_default().push(index);
            }
        }
        let mut chain = Vec::new();
        let mut current = stages.len().checked_sub(1);
        while let Some((index, stage)) = current.and_then(|index| Some((index, stages.get(index)?))) {
            chain.push(stage);
            let line = stage.from.line;
            let (image, platform) = self.from(stage.from);
            self.global.check(line)?;
            if let (None, Some(platform)) = (&self.declared.platform, platform) {
                self.set_target(&platform);
            }
            let earlier = names.get(&image.text.to_ascii_lowercase());
            current = earlier.and_then(|all| {
                let below = all.partition_point(|stage| *stage < index);
                all.get(below.checked_sub(1)?).copied()
            });
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

    fn begin_stage(&mut self) {
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
            "COPY" | "ADD" => {
                let from = instruction.arguments.split_whitespace().take_while(|word| word.starts_with("--"));
                if let Some(stage) = from.filter_map(|flag| flag.strip_prefix("--from=")).last() {
                    self.declared
                        .note(line, format!("what is copied from `{}` is not followed", excerpt(stage)));
                }
            }
            "ONBUILD" => self.declared.note(line, "ONBUILD is for images built on this one"),
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
                    self.declared.note(instruction.line, no_default(&name));
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
                self.declared.note(line, format!("{name} depends on {unknown}, which is not set here"));
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
        let mut reader = Reader {
            declared: &mut self.declared,
            variables: &self.variables,
            machine: self.machine,
            line_of: &line_of,
            own: HashMap::new(),
        };
        if let Command::Exec(list) = command(script) {
            let list: Vec<Word> = list.into_iter().map(|text| Word { text, ..Word::default() }).collect();
            reader.command(&list, None, 0);
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
                variables: &self.variables,
                machine: self.machine,
                line_of: &line_of,
                own: HashMap::new(),
            }
            .script(&heredoc.body);
        }
    }

    fn finish(mut self) -> Declared {
        let shell = self.shell;
        let words = |command: Command| match command {
            Command::Exec(words) => words,
            Command::Shell(script) => shell.iter().cloned().chain([script]).collect(),
        };
        self.declared.command = match (self.entrypoint, self.arguments) {
            (Some(Command::Exec(mut entrypoint)), arguments) => {
                entrypoint.extend(arguments.map(words).unwrap_or_default());
                Some(entrypoint)
            }
            // An entry point in a shell is given no arguments.
            (Some(entrypoint), _) => Some(words(entrypoint)),
            (None, arguments) => arguments.map(words),
        };
        self.declared.environment = self.variables.into_environment();
        self.declared.notes.sort_by_key(|note| note.line);
        self.declared
    }
}

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
