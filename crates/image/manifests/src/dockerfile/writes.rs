//! Which files of a stage its commands write.
//!
//! A file that was copied from the build context is read for what it installs or compiles. Once a command has written it, its text is
//! no longer known.

use cudock_base::shell::Command;
use cudock_dockerfile::Argument;

use super::run::{ScriptReader, program_name};
use super::stage_fs::Written;

impl ScriptReader<'_, '_> {
    /// Records the files that a command writes.
    pub(super) fn record_writes(&mut self, text: &str, command: &Command<'_>, args: &[Argument<'_>]) {
        for redirect in command.redirects.iter().filter(|redirect| redirect.here_doc.is_none()) {
            if text.get(redirect.span.clone()).is_some_and(|operator| operator.contains('>')) {
                let target = text.get(redirect.target.span.clone()).unwrap_or_default();
                self.fs.change(&self.cwd, target.trim_matches(['"', '\'']), Written::File);
            }
        }
        let Some((program, args)) = args.split_first() else { return };
        for (path, written) in written(program_name(program), args) {
            self.fs.change(&self.cwd, &path, written);
        }
    }
}

/// The paths that a program writes according to its arguments.
fn written(program: &str, args: &[Argument<'_>]) -> Vec<(String, Written)> {
    let options = || args.iter().map(|arg| &*arg.text).filter(|arg| arg.starts_with('-'));
    let operands: Vec<&str> = args.iter().map(|arg| &*arg.text).filter(|arg| !arg.starts_with('-')).collect();
    let edits_in_place = || {
        options().any(|option| match option.strip_prefix("--") {
            Some(long) => long.starts_with("in-place"),
            None => option.contains('i'),
        })
    };
    let each = || operands.iter().map(|path| of_pattern(path)).collect();
    match program {
        "sed" | "perl" | "ruby" if edits_in_place() => each(),
        "awk" | "gawk" if operands.contains(&"inplace") => each(),
        "tee" | "truncate" => each(),
        "cp" | "mv" | "ln" | "install" | "rsync" => {
            let Some((to, from)) = operands.split_last() else { return Vec::new() };
            let names = from.iter().filter_map(|path| path.trim_end_matches('/').rsplit('/').next());
            let inside = names.map(|name| of_pattern(&format!("{}/{name}", to.trim_end_matches('/'))));
            std::iter::once(((*to).to_owned(), Written::File)).chain(inside).collect()
        }
        // Which files they change is written in another file.
        "patch" | "ed" | "ex" => vec![(".".to_owned(), Written::Below)],
        "git" if matches!(operands.first(), Some(&("apply" | "am" | "checkout" | "reset" | "stash"))) => {
            vec![(".".to_owned(), Written::Below)]
        }
        _ => Vec::new(),
    }
}

/// A path, or for a pattern the directory that it is in.
fn of_pattern(path: &str) -> (String, Written) {
    match path.split_once(['*', '?', '[', '{']) {
        None => (path.to_owned(), Written::File),
        Some((fixed, _)) => {
            let directory = fixed.rsplit_once('/').map_or(".", |(directory, _)| directory);
            (directory.to_owned(), Written::Below)
        }
    }
}
