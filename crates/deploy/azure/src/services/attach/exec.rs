//! Commands next to a running workload.

use cudock_base::shell::quote;
use serde_json::Value;

use crate::deployment::{DeploymentIdentity, Step};
use crate::guid;
use crate::services::TranslationError;
use crate::services::bodies::read::{list, text};

/// The last line of what a script prints. Azure keeps the end of long output.
const EXIT_CODE: &str = "cudock exit code ";

/// Shells on a terminal accept lines of this length: the line editor of `BusyBox` takes 1,024 bytes.
const MAX_LINE: usize = 1000;

/// The shell that every image with a shell has.
pub const SHELL: &str = "/bin/sh";

/// The output of a command, and its exit code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecOutput {
    pub stdout: String,
    pub stderr: String,
    pub exit_code: i32,
}

/// How a service runs a command next to a workload.
#[derive(Debug, Clone, PartialEq)]
pub enum ExecMethod {
    /// A request whose response [`ExecOutput::read`] reads.
    Script(Box<Step>),
    /// A shell on a terminal, by [`DeploymentIdentity::terminal_calls`].
    Terminal,
}

impl DeploymentIdentity {
    /// How a command is run in the workload's container, where the service can do that.
    pub fn exec_method(&self, command: &[String]) -> Result<ExecMethod, TranslationError> {
        self.backend().exec_method(self, command).map_err(|reason| {
            TranslationError::new(reason).hint("let the program print it, and read `cudock logs`")
        })
    }
}

/// The script that runs a command in the container of a machine, for [`ExecOutput::read`].
pub(crate) fn script(command: &[String]) -> String {
    let line = shell_line(command);
    format!("docker exec cudock {line}\ncode=$?\necho\necho \"{EXIT_CODE}$code\"")
}

/// A command as a shell reads it.
fn shell_line(command: &[String]) -> String {
    command.iter().map(|word| quote(word)).collect::<Vec<_>>().join(" ")
}

impl ExecOutput {
    /// Reads the response to [`ExecMethod::Script`]; none if the command did not end.
    pub fn read(response: &Value) -> Option<Self> {
        let (stdout, stderr) = script_output(response)?;
        let (stdout, code) = stdout.trim_end().rsplit_once(EXIT_CODE)?;
        let stdout = stdout.strip_suffix('\n').unwrap_or(stdout);
        Some(Self { stdout: stdout.to_owned(), stderr: stderr.to_owned(), exit_code: code.parse().ok()? })
    }
}

/// The program to start for a command that is used interactively, and what is typed into it first: services take no
/// arguments.
pub fn interactive_program(command: &[String]) -> (String, Option<String>) {
    match command {
        [program] => (program.clone(), None),
        _ => (SHELL.to_owned(), Some(format!("exec {}\n", shell_line(command)))),
    }
}

/// A command that is typed into a shell on a terminal, and the marks in the output: a terminal
/// repeats its input, and no service reports the exit code of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypedCommand {
    pub line: String,
    begin: String,
    end: String,
}

impl TypedCommand {
    /// Runs a command without input, and ends the shell.
    pub fn new(command: &[String]) -> Result<Self, TranslationError> {
        Self::with_mark(command, &guid::random())
    }

    fn with_mark(command: &[String], mark: &str) -> Result<Self, TranslationError> {
        // The marks are not in the line itself, which is repeated.
        let line = format!(
            "stty -echo -opost 2> /dev/null; printf '\\n%s %s\\n' 'cudock begins' {mark}; {} < /dev/null; \
             printf '\\n%s%s %s\\n' '{EXIT_CODE}' {mark} $?; exit\n",
            shell_line(command)
        );
        let hint = "put it into a script in the image, and run that";
        if command.iter().any(|word| word.contains(char::is_control)) {
            return Err(TranslationError::new("a terminal interprets the control characters in the command")
                .hint(hint));
        }
        if line.len() > MAX_LINE {
            return Err(TranslationError::new(format!(
                "the command is too long for a terminal: {} of {MAX_LINE} bytes",
                line.len()
            ))
            .hint(hint));
        }
        Ok(Self { line, begin: format!("cudock begins {mark}"), end: format!("\n{EXIT_CODE}{mark} ") })
    }

    /// Whether the end of the command may be in this part of what was written.
    pub fn is_end(&self, written: &[u8]) -> bool {
        String::from_utf8_lossy(written).contains(&self.end)
    }

    /// The output, once the command has ended. A terminal does not keep standard error apart.
    pub fn output(&self, written: &[u8]) -> Option<ExecOutput> {
        let written = String::from_utf8_lossy(written);
        let (_, written) = written.split_once(&self.begin)?;
        // Without `stty` in the image, the terminal ends lines its own way.
        let lines = match written.strip_prefix("\r\n") {
            Some(lines) => lines.replace("\r\n", "\n"),
            None => written.strip_prefix('\n')?.to_owned(),
        };
        let (stdout, code) = lines.rsplit_once(&self.end)?;
        let (code, _) = code.split_once('\n')?;
        Some(ExecOutput { stdout: stdout.to_owned(), stderr: String::new(), exit_code: code.parse().ok()? })
    }
}

/// The output of a script on a machine: `Enable succeeded: \n[stdout]\n…\n[stderr]\n…`.
pub(crate) fn script_output(response: &Value) -> Option<(&str, &str)> {
    let message = list(response, "/value").iter().find_map(|entry| text(entry, "/message"))?;
    let (_, output) = message.split_once("[stdout]\n")?;
    Some(output.rsplit_once("\n[stderr]\n").unwrap_or((output, "")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn output_and_exit_code_are_read() {
        let response = |message: &str| json!({"value": [{"message": message}]});
        let read = |message: &str| ExecOutput::read(&response(message));
        let output = read("Enable succeeded: \n[stdout]\na\nb\n\ncudock exit code 3\n\n[stderr]\nwarning\n");
        let expected = ExecOutput { stdout: "a\nb\n".into(), stderr: "warning\n".into(), exit_code: 3 };
        assert_eq!(output, Some(expected));
        assert_eq!(
            read("Enable succeeded: \n[stdout]\n\ncudock exit code 0\n\n[stderr]\n").unwrap().stdout,
            ""
        );
        for cut in
            ["", "Enable failed", "[stdout]\nno code\n[stderr]\n", "[stdout]\ncudock exit code x\n[stderr]\n"]
        {
            assert_eq!(read(cut), None, "{cut}");
        }
        assert_eq!(ExecOutput::read(&json!([])), None);
    }

    #[test]
    fn the_output_of_a_terminal_is_what_stands_between_the_marks() {
        let command = ["ls", "-l", "a b"].map(str::to_owned);
        let typed = TypedCommand::with_mark(&command, "m").unwrap();
        assert!(typed.line.contains("; ls -l 'a b' < /dev/null; "), "{}", typed.line);
        let echo = format!("# {}", typed.line.replace('\n', "\r\n"));
        let read = |text: &str| typed.output(format!("{echo}{text}").as_bytes());
        let output = |stdout: &str, exit_code| {
            Some(ExecOutput { stdout: stdout.to_owned(), stderr: String::new(), exit_code })
        };
        assert_eq!(read("\ncudock begins m\na\r\nb\n\ncudock exit code m 3\n"), output("a\r\nb\n", 3));
        // Without `stty`.
        let cooked = "\r\ncudock begins m\r\na\r\nb\r\n\r\ncudock exit code m 0\r\n# exit";
        assert_eq!(read(cooked), output("a\nb\n", 0));
        // A command that writes nothing.
        assert_eq!(read("\ncudock begins m\n\ncudock exit code m 1\n"), output("", 1));
        for unfinished in
            ["", "\ncudock begins m", "\ncudock begins m\na", "\ncudock begins m\n\ncudock exit code m 1"]
        {
            assert_eq!(read(unfinished), None, "{unfinished:?}");
        }
    }

    #[test]
    fn what_a_terminal_would_change_is_not_typed() {
        for command in ["a\tb", "a\nb", "\u{3}"] {
            assert!(TypedCommand::new(&[command.to_owned()]).is_err(), "{command:?}");
        }
        let error = TypedCommand::new(&["x".repeat(MAX_LINE)]).unwrap_err();
        assert!(error.to_string().contains("too long for a terminal"), "{error}");
    }
}
