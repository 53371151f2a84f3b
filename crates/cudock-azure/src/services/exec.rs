//! Commands beside a workload that runs.

use cudock_base::shell::quote;
use serde_json::Value;

use crate::deployment::{DeploymentIdentity, Step, WorkShape};
use crate::services::TranslationError;
use crate::services::read::{list, text};
use crate::services::vm;
use crate::spec::Target;

/// The last line of what a script prints. Azure keeps the end of long output.
const EXIT_CODE: &str = "cudock exit code ";

/// What a command wrote, and how it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecOutput {
    pub stdout: String,
    pub stderr: String,
    pub exit_code: i32,
}

impl DeploymentIdentity {
    /// The request that runs a command in the workload's container, where the service has one that answers with the
    /// output.
    pub fn exec_step(&self, command: &[String]) -> Result<Step, TranslationError> {
        let words: Vec<_> = command.iter().map(|word| quote(word)).collect();
        let words = words.join(" ");
        let group = self.names().group();
        let no_exec = |why: &str, hint: String| Err(TranslationError::new(why.to_owned()).hint(hint));
        let print = || "let the program print it, and read `cudock logs`".to_owned();
        match (self.target, self.work) {
            (Target::Vm, _) => {
                let script = format!("docker exec cudock {words}\ncode=$?\necho\necho \"{EXIT_CODE}$code\"");
                Ok(Step::action("exec", vm::script_call(self.names(), &script)))
            }
            (Target::Batch, _) => no_exec("Batch does not run commands in a task that runs", print()),
            (Target::Ml, _) => {
                no_exec("Machine Learning does not run commands in a job or endpoint", print())
            }
            (Target::ContainerApps, WorkShape::Serve { .. }) => no_exec(
                "commands in Container Apps need a terminal, which cudock does not connect to",
                format!("az containerapp exec --resource-group {group} --name main --command COMMAND"),
            ),
            (Target::ContainerApps, _) => no_exec(
                "commands in jobs of Container Apps need a terminal, which cudock does not connect to",
                print(),
            ),
            (Target::Aci, _) => no_exec(
                "commands in Container Instances need a terminal, which cudock does not connect to",
                format!("az container exec --resource-group {group} --name main --exec-command COMMAND"),
            ),
        }
    }
}

impl ExecOutput {
    /// Reads the answer to [`DeploymentIdentity::exec_step`]; none if the command did not end.
    pub fn read(answer: &Value) -> Option<Self> {
        let (stdout, stderr) = script_output(answer)?;
        let (stdout, code) = stdout.trim_end().rsplit_once(EXIT_CODE)?;
        let stdout = stdout.strip_suffix('\n').unwrap_or(stdout);
        Some(Self { stdout: stdout.to_owned(), stderr: stderr.to_owned(), exit_code: code.parse().ok()? })
    }
}

/// What a script on a machine printed: `Enable succeeded: \n[stdout]\n…\n[stderr]\n…`.
pub(super) fn script_output(answer: &Value) -> Option<(&str, &str)> {
    let message = list(answer, "/value").iter().find_map(|entry| text(entry, "/message"))?;
    let (_, output) = message.split_once("[stdout]\n")?;
    Some(output.rsplit_once("\n[stderr]\n").unwrap_or((output, "")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn output_and_exit_code_are_read() {
        let answer = |message: &str| json!({"value": [{"message": message}]});
        let read = |message: &str| ExecOutput::read(&answer(message));
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
}
