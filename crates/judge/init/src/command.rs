//! The command that a container runs.

use std::path::Path;

use cudock_base::UsageError;
use cudock_manifests::Files;

use crate::InitOptions;

/// Python programs that are started if the user names none, by precedence.
const PROGRAMS: [&str; 8] =
    ["main.py", "app.py", "serve.py", "server.py", "train.py", "run.py", "__main__.py", "src/main.py"];

/// The arguments of a command. One that needs a shell gets one, which it replaces, so that it receives signals.
pub(crate) fn parse(command: &str) -> Vec<String> {
    if command.contains(['"', '\'', '\\', '$', '&', '|', ';', '<', '>', '*', '`', '(']) {
        return vec!["/bin/sh".to_owned(), "-c".to_owned(), format!("exec {command}")];
    }
    command.split_whitespace().map(str::to_owned).collect()
}

pub(crate) fn is_python(path: &str) -> bool {
    Path::new(path).extension().is_some_and(|extension| extension == "py")
}

pub(crate) fn of_python(files: &dyn Files, options: &InitOptions) -> Result<Vec<String>, UsageError> {
    if let Some(command) = &options.command {
        return Ok(parse(command));
    }
    let all = files.below("");
    let scripts: Vec<&String> =
        all.iter().filter(|path| is_python(path) && !path.contains('/') && *path != "setup.py").collect();
    let usual = PROGRAMS.iter().copied().find(|program| all.iter().any(|path| path == program));
    let only = if let [only] = scripts.as_slice() { Some(only.as_str()) } else { None };
    let program = usual.or(only).ok_or_else(|| {
        UsageError::new("cannot determine which program to start")
            .hint("name it with --command, such as --command \"python FILE.py\"")
    })?;
    Ok(vec!["python".to_owned(), program.to_owned()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_split_and_those_for_a_shell_replace_it() {
        let cases = [
            ("python train.py --epochs 3", &["python", "train.py", "--epochs", "3"][..]),
            ("app --name \"a b\"", &["/bin/sh", "-c", "exec app --name \"a b\""]),
            ("app $MODE", &["/bin/sh", "-c", "exec app $MODE"]),
        ];
        for (command, expected) in cases {
            assert_eq!(parse(command), expected, "{command}");
        }
    }
}
