//! `cudock init`: starts a project.

mod text;

use std::io::{BufRead, IsTerminal};
use std::path::Path;

use cudock_base::text::suggest;
use cudock_cli::InitArgs;
use cudock_compat::{BuildContext, Target};
use cudock_facts::Facts;
use cudock_host::{Root, examine, probe};
use cudock_init::{Detected, InitContext, InitOptions, detect, generate};
use cudock_project::EXAMPLES;

pub(crate) use self::text::InitReport;
use crate::failure::{Failure, Outcome};
use crate::output::{self, Format, status};
use crate::steps::nvml::ask_nvml;

/// The tables that versions are chosen from.
const TABLES: [&str; 6] = ["drivers", "frameworks", "gpus", "images", "packages", "toolkits"];

pub(crate) fn run(
    facts: impl FnOnce() -> Result<Facts, Failure>,
    args: &InitArgs,
    format: Format,
) -> Result<Outcome, Failure> {
    if let Some(name) = &args.example {
        return copy_example(name, args.dir.as_deref());
    }
    let facts = &facts()?;
    let directory = args.dir.as_deref().unwrap_or(Path::new("."));
    let real = directory.canonicalize().map_err(|error| {
        Failure::input(format!("cannot open {}: {error}", directory.display()))
            .hint("name the directory of the project")
    })?;
    let target = chosen_target(facts, args)?;
    let files = BuildContext::new(&real);
    let detected = chosen_kind(detect(facts, &files)?, args)?;
    let name = real.file_name().map_or_else(|| "app".to_owned(), |name| name.to_string_lossy().into_owned());
    let context = InitContext { facts, files: &files, name: &name, target: target.as_ref() };
    let scaffold = generate(&context, &detected, &options(args))?;
    if !args.print {
        scaffold.write(directory, args.force)?;
    }
    let tables = output::tables_used(facts, &TABLES);
    match format {
        Format::Json => output::json(&InitReport::new(&detected, target.as_ref(), &scaffold, args, &tables)),
        Format::Text if args.print => text::files(&scaffold),
        Format::Text => text::summary((&name, directory), &detected, target.as_ref(), &scaffold),
    }
    output::warn_if_stale(&tables);
    Ok(Outcome::Yes)
}

fn copy_example(name: &str, directory: Option<&Path>) -> Result<Outcome, Failure> {
    let example = EXAMPLES.iter().find(|example| example.name == name).ok_or_else(|| {
        let names = EXAMPLES.iter().map(|example| example.name);
        Failure::input(format!("unknown example `{name}`")).near(&suggest::nearest(name, names))
    })?;
    let directory = directory.unwrap_or(Path::new(name));
    example.write(directory)?;
    status(format!("created {0}; next: cudock up {0}", directory.display()));
    Ok(Outcome::Yes)
}

/// The target that was named, or this machine's first GPU.
fn chosen_target(facts: &Facts, args: &InitArgs) -> Result<Option<Target>, Failure> {
    let today = output::today();
    if let Some(name) = &args.target {
        return Ok(Target::named(facts, name, args.driver, today)?);
    }
    let host = probe::read(&Root::live(), &ask_nvml);
    let diagnosis = examine(&host, facts, today);
    let target = Target::of_host(facts, &host, &diagnosis).into_iter().find(|target| target.gpu.is_some());
    target.map(Some).ok_or_else(|| {
        Failure::input("no target was named, and this machine has no GPU")
            .hint("name one: --for T4, --for Standard_NC4as_T4_v3, or --for cpu")
    })
}

/// The kind of project that was named or that is the only one; else the user is asked on a terminal.
fn chosen_kind(detected: Vec<Detected>, args: &InitArgs) -> Result<Detected, Failure> {
    let is_named = |detected: &Detected| {
        args.kind.is_none_or(|kind| kind == detected.kind)
            && args.installer.is_none_or(|installer| Some(installer) == detected.installer)
    };
    let found: Vec<Detected> = detected.into_iter().filter(is_named).collect();
    let list = found.iter().map(ToString::to_string).collect::<Vec<_>>();
    let ask = found.len() > 1 && std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
    let chosen = if ask { asked(&list)? } else { 0 };
    match (found.len(), found.into_iter().nth(chosen)) {
        (0, _) | (_, None) => Err(Failure::input("no project of a supported kind found").hint(
            "looked for CMakeLists.txt or a makefile with CUDA, Python packages that use CUDA, and .onnx files",
        )),
        (count, Some(_)) if count > 1 && !ask => {
            Err(Failure::input(format!("several kinds of project found: {}", list.join(", ")))
                .hint("choose one with --kind or --installer"))
        }
        (_, Some(detected)) => Ok(detected),
    }
}

/// Prompts for one of several entries, and returns its index.
fn asked(list: &[String]) -> Result<usize, Failure> {
    anstream::eprintln!("several kinds of project found:");
    for (index, entry) in list.iter().enumerate() {
        anstream::eprintln!("  {}  {entry}", index + 1);
    }
    anstream::eprint!("which one? [1] ");
    let mut answer = String::new();
    std::io::stdin()
        .lock()
        .read_line(&mut answer)
        .map_err(|error| Failure::outside(format!("cannot read the answer: {error}")))?;
    match answer.trim() {
        "" => Ok(0),
        number => number
            .parse::<usize>()
            .ok()
            .and_then(|number| number.checked_sub(1))
            .filter(|index| *index < list.len())
            .ok_or_else(|| Failure::input(format!("`{number}` is not one of them"))),
    }
}

fn options(args: &InitArgs) -> InitOptions {
    InitOptions { python: args.python.clone(), cuda: args.cuda, command: args.command.clone() }
}
