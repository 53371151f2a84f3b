//! The files of tasks: on their node, and uploaded when they end.

use serde_json::Value;

use crate::cloud::Cloud;
use crate::services::container_instances::{METRICS, OUTPUT};

/// The only file that a task leaves in its working directory.
const RESULT: (&str, &str) = ("results/loss.txt", "0.25\n");

/// A file next to the working directory of every task.
pub(super) fn log(name: &str) -> Option<String> {
    match name {
        "stdout.txt" => Some(format!("{OUTPUT}{METRICS}")),
        "stderr.txt" => Some(String::new()),
        _ => None,
    }
}

impl Cloud {
    /// Uploads the files of a task that has ended with this exit code; the code of the error if that fails.
    pub(super) fn upload_outputs(&mut self, task: &Value, exit_code: i32) -> Option<&'static str> {
        for file in task["outputFiles"].as_array().into_iter().flatten() {
            let is_due = match file["uploadOptions"]["uploadCondition"].as_str() {
                Some("tasksuccess") => exit_code == 0,
                Some("taskfailure") => exit_code != 0,
                Some("taskcompletion") => true,
                _ => return Some("InvalidPropertyValue"),
            };
            let container = &file["destination"]["container"];
            let (Some(url), Some(path)) = (container["containerUrl"].as_str(), container["path"].as_str())
            else {
                return Some("InvalidPropertyValue");
            };
            if !self.storage.is_container(url) {
                return Some("FileUploadAccessDenied");
            }
            let pattern = file["filePattern"].as_str().unwrap_or_default();
            let (name, content) = match pattern.strip_prefix("../").map(|name| (name, log(name))) {
                Some((_, Some(content))) => (path.to_owned(), content),
                None if pattern == RESULT.0 => (path.to_owned(), RESULT.1.to_owned()),
                None if pattern.starts_with("results/*") => {
                    (format!("{path}/{}", RESULT.0), RESULT.1.to_owned())
                }
                // A pattern without a match uploads nothing.
                _ => continue,
            };
            if is_due {
                self.storage.blobs.insert(name, content);
            }
        }
        None
    }
}
