//! Errors about flags that `cudock run` does not have: docker's are named with what to use instead.

use clap::CommandFactory;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use cudock_cli::{Cli, docker};

use crate::failure::Failure;

/// The error for an unknown flag of `cudock run`; `None` if it is another error, or of another verb.
pub(crate) fn unknown_flag_of_run(error: &clap::Error) -> Option<Failure> {
    let (ErrorKind::UnknownArgument, Some(ContextValue::String(flag))) =
        (error.kind(), error.get(ContextKind::InvalidArg))
    else {
        return None;
    };
    let mut cli = Cli::command();
    // Gives every verb the global flags.
    cli.build();
    let parsed = cli.clone().ignore_errors(true).try_get_matches().ok()?;
    (parsed.subcommand_name() == Some("run")).then(|| docker::unknown_flag(flag, &flags_of_run(&cli)).into())
}

/// The names and letters of all flags of `cudock run`.
fn flags_of_run(cli: &clap::Command) -> Vec<String> {
    let arguments = cli.find_subcommand("run").into_iter().flat_map(clap::Command::get_arguments);
    let names = |argument: &clap::Arg| {
        let long = argument.get_long_and_visible_aliases().unwrap_or_default();
        let short = argument.get_short().map(|letter| letter.to_string());
        long.into_iter().map(str::to_owned).chain(short).collect::<Vec<_>>()
    };
    arguments.flat_map(names).collect()
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;
    use cudock_cli::docker::{LETTERS, REFUSED, WORKING};

    use cudock_cli::Cli;

    /// Every flag that clap knows for `run`, by its long name, its aliases and its letter.
    fn known() -> Vec<(String, Option<char>)> {
        let mut cli = Cli::command();
        cli.build();
        let run = cli.find_subcommand("run").unwrap();
        let mut all = Vec::new();
        for argument in run.get_arguments() {
            let names = argument.get_long_and_visible_aliases().unwrap_or_default();
            all.extend(names.into_iter().map(|name| (name.to_owned(), argument.get_short())));
        }
        all
    }

    #[test]
    fn every_flag_of_docker_run_works_or_is_refused_by_name_with_the_alternative() {
        let known = known();
        let ours = |flag: &str| known.iter().find(|(name, _)| name == flag);
        for flag in WORKING {
            let (_, short) = ours(flag).unwrap_or_else(|| panic!("--{flag} is listed as working"));
            let letter = LETTERS.iter().find(|(_, name)| name == flag).map(|(letter, _)| *letter);
            assert_eq!(*short, letter, "--{flag}");
        }
        for (flags, instead) in REFUSED {
            for flag in *flags {
                assert!(ours(flag).is_none(), "--{flag} works and is listed as refused");
                assert!(instead.len() > 10, "--{flag}");
            }
        }
    }

    #[test]
    fn the_page_names_every_flag_of_run_and_every_one_that_is_refused() {
        let page = include_str!("../../../../../../docs/run.md");
        let named = |flag: &str| {
            let flag = format!("--{flag}");
            let mut parts = page.split(&flag).skip(1);
            parts
                .any(|rest| !rest.starts_with(|letter: char| letter.is_ascii_alphanumeric() || letter == '-'))
        };
        let own = known()
            .into_iter()
            .map(|(name, _)| name)
            .filter(|name| !matches!(name.as_str(), "help" | "format" | "facts" | "verbose" | "color"));
        let refused = REFUSED.iter().flat_map(|(flags, _)| *flags);
        let docker = WORKING.iter().chain(refused).map(ToString::to_string).filter(|name| name != "help");
        let missing: Vec<String> = own.chain(docker).filter(|flag| !named(flag)).collect();
        assert!(missing.is_empty(), "docs/run.md does not name {missing:?}");
    }
}
