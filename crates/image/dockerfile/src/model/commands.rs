//! The simple commands of a script, with shells, prefixes and Python modules seen through.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use cudock_base::Span;
use cudock_base::shell::{self, Script};
use cudock_base::text::path::absolute;

use crate::expand::Lookup;
use crate::shell::{Argument, ExpandedCommand};

/// The limit for scripts within scripts.
const MAX_DEPTH: usize = 3;

const SHELLS: [&str; 5] = ["bash", "sh", "dash", "ash", "zsh"];

/// Prefixes and keywords before a command that do not change what it does.
const PREFIXES: [&str; 17] = [
    "!", "{", "command", "do", "elif", "else", "env", "eval", "exec", "if", "nice", "sudo", "tini", "then",
    "time", "until", "while",
];

/// A simple command: a program and its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command<'f> {
    /// The program's name without its directory; `pip` for `python -m pip`.
    pub program: Cow<'f, str>,
    /// The arguments after the program.
    pub args: Vec<CommandArg<'f>>,
    /// Variables that are set for it, with the value if it is known: `A=1 make`, `export A=1` before it.
    pub set: Vec<(String, Option<String>)>,
    /// The text from the program to the last argument; the enclosing command for a script in an argument.
    pub span: Span,
    /// Whether the span and those of the arguments are exactly the text of this command, so that it can be edited.
    pub is_exact: bool,
    /// The directory it runs in.
    pub workdir: Arc<str>,
    /// Whether it runs only under a condition: in `if`, `case`, a loop, or after `||`.
    pub is_conditional: bool,
    /// The operator after it: `&&`, `|`, `;`; empty at the end.
    pub operator: &'static str,
    /// Files that its output is written to.
    pub outputs: Vec<String>,
    /// Requirements that the shell reads as redirections, because they have no quotes: `torch>=2`. Empty unless it is exact.
    pub unquoted: Vec<Span>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandArg<'f> {
    pub text: Cow<'f, str>,
    /// Whether it contains the output of a command, or a variable that the file does not set.
    pub is_unresolved: bool,
    pub span: Span,
}

impl<'f> Command<'f> {
    /// The first argument that is not an option, and the arguments after it.
    pub fn subcommand(&self) -> Option<(&str, &[CommandArg<'f>])> {
        let at = self.args.iter().position(|arg| !arg.text.starts_with('-'))?;
        Some((&self.args.get(at)?.text, self.args.get(at + 1..).unwrap_or_default()))
    }

    /// Whether the program and its subcommand are these: `is("apt-get", "install")`.
    pub fn is(&self, program: &str, subcommand: &str) -> bool {
        self.program == program && self.subcommand().is_some_and(|(own, _)| own == subcommand)
    }

    pub fn has(&self, option: &str) -> bool {
        self.args.iter().any(|arg| arg.text == option)
    }

    /// The value of an option: `--name value`, `--name=value`.
    pub fn value_of(&self, option: &str) -> Option<&str> {
        self.args.iter().enumerate().find_map(|(index, arg)| {
            let rest = arg.text.strip_prefix(option)?;
            match rest.strip_prefix('=') {
                Some(value) => Some(value),
                None if rest.is_empty() => self.args.get(index + 1).map(|next| &*next.text),
                None => None,
            }
        })
    }

    /// The value of a variable that is set for this command only or by its script.
    pub fn variable(&self, name: &str) -> Option<&str> {
        self.set.iter().rev().find(|(own, _)| own == name)?.1.as_deref()
    }
}

/// The arguments of an instruction in exec form: a JSON list of strings.
pub fn exec_form(text: &str) -> Option<Vec<String>> {
    text.starts_with('[').then(|| serde_json::from_str(text).ok()).flatten()
}

pub(super) fn is_shell(program: &str) -> bool {
    SHELLS.contains(&name_of(program))
}

/// The program's name without its directory.
fn name_of(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or_default()
}

/// The commands of a list of arguments, which no shell reads.
pub(super) fn of_list<'f>(list: Vec<String>, span: Span, workdir: &Arc<str>) -> Vec<Command<'f>> {
    let lookup = |_: &str| None;
    let locate = |_| span;
    let mut reader = ScriptReader::new(workdir, &lookup, &locate);
    let arg = |text: String| Argument { text: text.into(), is_unresolved: false, bytes: 0..0 };
    let mut args: Vec<Argument<'_>> = list.into_iter().map(arg).collect();
    let context = CommandContext { within: Some(span), depth: 0, operator: "", outputs: &[], unquoted: &[] };
    reader.command(&mut args, context);
    reader.commands
}

/// The commands of a script; `locate` maps its bytes to the file.
pub(super) fn commands_of<'f>(
    script: &'f str,
    workdir: &Arc<str>,
    lookup: Lookup<'_>,
    locate: &dyn Fn(Range<usize>) -> Span,
) -> Vec<Command<'f>> {
    let mut reader = ScriptReader::new(workdir, lookup, locate);
    reader.script(script, |arg| arg, None, 0);
    reader.commands
}

struct ScriptReader<'a, 'f> {
    commands: Vec<Command<'f>>,
    lookup: Lookup<'a>,
    locate: &'a dyn Fn(Range<usize>) -> Span,
    workdir: Arc<str>,
    /// Variables that the script sets.
    own: HashMap<String, Option<String>>,
    /// Nested `if`, `case` and loops.
    conditions: usize,
    is_alternative: bool,
}

/// Where a command stands.
#[derive(Clone, Copy)]
struct CommandContext<'c> {
    /// The span of the command whose argument the script is.
    within: Option<Span>,
    depth: usize,
    operator: &'static str,
    outputs: &'c [String],
    unquoted: &'c [Range<usize>],
}

impl<'a, 'f> ScriptReader<'a, 'f> {
    fn new(workdir: &Arc<str>, lookup: Lookup<'a>, locate: &'a dyn Fn(Range<usize>) -> Span) -> Self {
        Self {
            commands: Vec::new(),
            lookup,
            locate,
            workdir: Arc::clone(workdir),
            own: HashMap::new(),
            conditions: 0,
            is_alternative: false,
        }
    }

    /// Reads a script. `keep` makes arguments last as long as the commands.
    fn script<'s>(
        &mut self,
        text: &'s str,
        keep: fn(Argument<'s>) -> Argument<'f>,
        within: Option<Span>,
        depth: usize,
    ) {
        for command in Script::new(text) {
            let (own, lookup) = (&self.own, self.lookup);
            let lookup = |name: &str| own.get(name).map_or_else(|| lookup(name), Clone::clone);
            let expanded = ExpandedCommand::expand(text, &command, &lookup);
            let mut args: Vec<Argument<'f>> = expanded.args.into_iter().map(keep).collect();
            let written = command.redirects.iter().filter(|redirect| {
                text.get(redirect.span.clone()).is_some_and(|operator| operator.contains('>'))
            });
            let target =
                |span: Range<usize>| text.get(span).map(|raw| raw.trim_matches(['"', '\'']).to_owned());
            let outputs: Vec<String> =
                written.filter_map(|redirect| target(redirect.target.span.clone())).collect();
            let unquoted: Vec<_> =
                command.redirects.iter().filter_map(|one| unquoted(text, &command, one)).collect();
            let context = CommandContext {
                within,
                depth,
                operator: operator(command.operator),
                outputs: &outputs,
                unquoted: if within.is_none() { &unquoted } else { &[] },
            };
            self.command(&mut args, context);
            self.is_alternative = command.operator == "||";
            let [program] = args.as_slice() else { continue };
            if !is_shell(&program.text) || depth >= MAX_DEPTH {
                continue;
            }
            for here_doc in command.redirects.iter().filter_map(|redirect| redirect.here_doc.as_ref()) {
                let span = within.unwrap_or_else(|| (self.locate)(program.bytes.clone()));
                if let Some(body) = text.get(here_doc.body.clone()) {
                    self.script(body, keep, Some(span), depth + 1);
                }
            }
        }
    }

    /// Adds a command, and takes the texts of its arguments.
    fn command(&mut self, args: &mut [Argument<'f>], context: CommandContext<'_>) {
        let mut set = Vec::new();
        let mut is_behind_prefix = false;
        let mut at = 0;
        while let Some([first, rest @ ..]) = args.get(at..) {
            let word: &str = &first.text;
            if let Some(assigned) = assignment(first) {
                set.push(assigned);
            } else if PREFIXES.contains(&name_of(word)) && !asks_for_a_program(word, rest) {
                self.conditions += usize::from(["if", "until", "while"].contains(&word));
                is_behind_prefix = true;
            } else if !(is_behind_prefix && word.starts_with('-')) {
                break;
            }
            at += 1;
        }
        let Some([first, arguments @ ..]) = args.get_mut(at..) else {
            self.own.extend(set);
            return;
        };
        let end = arguments.last().map_or(first.bytes.end, |last| last.bytes.end);
        let bytes = first.bytes.start..end.max(first.bytes.end);
        let span = context.within.unwrap_or_else(|| (self.locate)(bytes));
        match &*first.text {
            "for" | "case" => self.conditions += 1,
            "fi" | "done" | "esac" => self.conditions = self.conditions.saturating_sub(1),
            "export" => self.own.extend(arguments.iter().filter_map(assignment)),
            "cd" | "pushd" => {
                if let Some(directory) = arguments.first().filter(|arg| !arg.is_unresolved) {
                    self.workdir = absolute(&self.workdir, &directory.text).into();
                }
            }
            _ => {}
        }
        if context.depth < MAX_DEPTH
            && let Some(inner) = inner(name_of(&first.text), arguments)
        {
            let deeper = CommandContext { depth: context.depth + 1, ..context };
            match inner {
                Inner::Args(at) => {
                    let before: Vec<_> =
                        set.iter().map(|(name, _)| (name.clone(), self.own.get(name).cloned())).collect();
                    self.own.extend(set);
                    self.command(arguments.get_mut(at..).unwrap_or_default(), deeper);
                    for (name, value) in before {
                        match value {
                            Some(value) => self.own.insert(name, value),
                            None => self.own.remove(&name),
                        };
                    }
                }
                Inner::Script(at) => {
                    let script = arguments.get_mut(at).map(|arg| std::mem::take(&mut arg.text));
                    let conditions = self.conditions;
                    match script.unwrap_or_default() {
                        Cow::Borrowed(script) => self.script(script, |arg| arg, Some(span), deeper.depth),
                        Cow::Owned(script) => self.script(&script, owned, Some(span), deeper.depth),
                    }
                    self.conditions = conditions;
                }
            }
            return;
        }
        let run = run_by_conda(name_of(&first.text), arguments).filter(|_| context.depth < MAX_DEPTH);
        let own = self.own.iter().map(|(name, value)| (name.clone(), value.clone()));
        // Many commands after many assignments would be quadratic.
        let own: Vec<_> = if self.own.len() <= 64 { own.collect() } else { Vec::new() };
        let locate = |arg: &mut Argument<'f>| CommandArg {
            text: if run.is_some() { arg.text.clone() } else { std::mem::take(&mut arg.text) },
            is_unresolved: arg.is_unresolved,
            span: context.within.unwrap_or_else(|| (self.locate)(arg.bytes.clone())),
        };
        self.commands.push(Command {
            program: match &first.text {
                Cow::Borrowed(program) => name_of(program).into(),
                Cow::Owned(program) => name_of(program).to_owned().into(),
            },
            args: arguments.iter_mut().map(locate).collect(),
            set: own.into_iter().chain(set).collect(),
            span,
            is_exact: context.within.is_none(),
            workdir: Arc::clone(&self.workdir),
            is_conditional: self.conditions > 0 || self.is_alternative,
            operator: context.operator,
            outputs: context.outputs.to_vec(),
            unquoted: context.unquoted.iter().cloned().map(self.locate).collect(),
        });
        if let Some(args) = run.and_then(|at| arguments.get_mut(at..)) {
            self.command(args, CommandContext { depth: context.depth + 1, ..context });
        }
    }
}

/// An argument that does not borrow from its script.
fn owned<'f>(arg: Argument<'_>) -> Argument<'f> {
    Argument { text: arg.text.into_owned().into(), ..arg }
}

/// The operator of a shell.
fn operator(written: &str) -> &'static str {
    let known = ["&&", ";", "|", "||", "&", "(", ")", ";;", "|&"];
    known.into_iter().find(|known| *known == written).unwrap_or_default()
}

/// `command -v nvidia-smi` looks a program up and does not run it.
fn asks_for_a_program(word: &str, rest: &[Argument<'_>]) -> bool {
    word == "command" && rest.first().is_some_and(|option| ["-v", "-V"].contains(&&*option.text))
}

/// The bytes of a requirement whose bound is a redirection to the shell: `torch>=2,<3`, `numpy<2`.
fn unquoted(
    text: &str,
    command: &shell::Command<'_>,
    redirect: &shell::Redirect<'_>,
) -> Option<Range<usize>> {
    let word = command.words.get(redirect.attached_to?)?.span.clone();
    let is_name = text.get(word.clone())?.starts_with(|first: char| first.is_ascii_alphabetic());
    let target = text.get(redirect.target.span.clone())?;
    let is_bound = target.starts_with(|first: char| first == '=' || first.is_ascii_digit());
    let rest = text.get(word.start..)?;
    let length = rest.find(|next: char| next.is_whitespace() || ";&|)".contains(next)).unwrap_or(rest.len());
    (is_name && is_bound).then(|| word.start..word.start + length)
}

/// The index of the argument from which on there is the command that `conda run` runs.
fn run_by_conda(program: &str, args: &[Argument<'_>]) -> Option<usize> {
    if !["conda", "mamba", "micromamba"].contains(&program) || args.first()?.text != "run" {
        return None;
    }
    let mut at = 1;
    while let Some(option) = args.get(at)
        && option.text.starts_with('-')
    {
        let has_value = ["-n", "--name", "-p", "--prefix", "--cwd"].contains(&&*option.text);
        at += 1 + usize::from(has_value);
    }
    Some(at)
}

/// A command in the arguments of another one, by the index of its first argument or of its script.
enum Inner {
    Args(usize),
    Script(usize),
}

fn inner(program: &str, args: &[Argument<'_>]) -> Option<Inner> {
    if SHELLS.contains(&program) {
        // `-c`, and combined flags that end with it: `-lc`, `-exc`.
        let is_command = |arg: &Argument<'_>| arg.text.starts_with('-') && arg.text.ends_with('c');
        let at = args.iter().position(is_command)?;
        return (at + 1 < args.len()).then_some(Inner::Script(at + 1));
    }
    if program.starts_with("python") {
        let at = args.iter().position(|arg| !arg.text.starts_with('-') || arg.text == "-m")?;
        let rest = args.get(at..)?;
        let module: &str = &rest.get(1)?.text;
        let is_program = ["pip", "uv", "poetry", "pipenv"].contains(&module);
        return (rest.first()?.text == "-m" && is_program).then_some(Inner::Args(at + 1));
    }
    None
}

/// `NAME=value`, with the value if it is known.
pub fn assignment(arg: &Argument<'_>) -> Option<(String, Option<String>)> {
    let (name, value) = arg.text.split_once('=')?;
    let is_name = !name.is_empty()
        && !name.starts_with(|first: char| first.is_ascii_digit())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    is_name.then(|| (name.to_owned(), (!arg.is_unresolved).then(|| value.to_owned())))
}

#[cfg(test)]
mod tests {
    use cudock_base::LineIndex;

    use super::*;

    fn commands(script: &str) -> Vec<Command<'_>> {
        let lines = LineIndex::new(script);
        commands_of(script, &"/".into(), &|_| None, &|bytes| lines.span(bytes))
    }

    #[test]
    fn requirements_without_quotes_are_found() {
        let cases: [(&str, &[&str]); 7] = [
            ("pip install torch>=2.4,<3 einops", &["torch>=2.4,<3"]),
            ("pip install numpy<2; pip check", &["numpy<2"]),
            ("pip install 'torch>=2.4' \"numpy<2\"", &[]),
            ("pip install torch > install.log 2>&1", &[]),
            ("pip install torch>install.log", &[]),
            ("bash -c 'pip install torch>=2'", &[]),
            ("pip install a>=1 b>=2", &["a>=1", "b>=2"]),
        ];
        for (script, expected) in cases {
            let found = commands(script).into_iter().flat_map(|command| command.unquoted);
            let found: Vec<_> = found.map(|span| script.get(span.bytes()).unwrap_or_default()).collect();
            assert_eq!(found, expected, "{script}");
        }
    }

    #[test]
    fn a_program_that_is_only_looked_up_is_not_run() {
        let programs = |script: &str| {
            commands(script).into_iter().map(|one| one.program.into_owned()).collect::<Vec<_>>()
        };
        assert_eq!(programs("command -v nvidia-smi"), ["command"]);
        assert_eq!(programs("command nvidia-smi -L"), ["nvidia-smi"]);
    }
}
