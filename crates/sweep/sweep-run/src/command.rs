//! The command of a trial.

use std::path::Path;

use cudock_sweep::{Assignment, MetricSource, PassMode, SweepPlan};

use crate::layout::TrialDir;

/// The directory of the trial. Every process of a trial has this variable.
pub(crate) const TRIAL_DIR: &str = "CUDOCK_TRIAL_DIR";

/// The directory of a trial in its container.
const CONTAINER_DIR: &str = "/cudock/trial";

/// A command and the variables that it needs besides those of the sweep.
#[derive(Debug, PartialEq)]
pub(crate) struct TrialCommand {
    pub(crate) command: Vec<String>,
    pub(crate) environment: Vec<(String, String)>,
}

/// The trial that a command is for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CommandInput<'a> {
    pub(crate) plan: &'a SweepPlan,
    pub(crate) trial: u32,
    pub(crate) attempt: u32,
    pub(crate) parameters: &'a Assignment,
    pub(crate) directory: &'a TrialDir,
    /// The GPUs of this trial; `None` if it gets none assigned.
    pub(crate) gpus: Option<&'a [String]>,
    /// The name of its container.
    pub(crate) container: Option<&'a str>,
    /// This program, which starts containers.
    pub(crate) program: &'a Path,
}

/// The command of a trial: the program itself, or `cudock run` with a container that runs it.
pub(crate) fn trial_command(input: &CommandInput<'_>) -> TrialCommand {
    let command = with_parameters(input.plan, input.parameters);
    if let (Some(image), Some(name)) = (&input.plan.image, input.container) {
        return in_container(input, image, name, command);
    }
    let mut environment = variables(input, input.directory);
    if let Some(gpus) = input.gpus {
        environment.push(("CUDA_VISIBLE_DEVICES".to_owned(), gpus.join(",")));
    }
    TrialCommand { command, environment }
}

/// The command with `{name}` replaced by the parameter, and other parameters as arguments after it.
/// The size of the machine is an argument only if the command refers to it.
pub(crate) fn with_parameters(plan: &SweepPlan, parameters: &Assignment) -> Vec<String> {
    let mut command = plan.command.clone();
    let mut further = Vec::new();
    for (name, value) in parameters {
        let (placeholder, value) = (format!("{{{name}}}"), value.to_string());
        let mut is_used = false;
        for argument in command.iter_mut().filter(|argument| argument.contains(&placeholder)) {
            *argument = argument.replace(&placeholder, &value);
            is_used = true;
        }
        let is_for_program = plan.machine.as_ref() != Some(name);
        if !is_used && is_for_program && plan.pass == PassMode::Arguments {
            further.push(format!("--{name}={value}"));
        }
    }
    command.extend(further);
    command
}

fn variables(input: &CommandInput<'_>, directory: &TrialDir) -> Vec<(String, String)> {
    let path = |path: &Path| path.to_string_lossy().into_owned();
    let mut variables = vec![
        ("CUDOCK_SWEEP".to_owned(), input.plan.name.clone()),
        ("CUDOCK_TRIAL".to_owned(), input.trial.to_string()),
        ("CUDOCK_ATTEMPT".to_owned(), input.attempt.to_string()),
        (TRIAL_DIR.to_owned(), path(directory.path())),
        ("CUDOCK_CHECKPOINT_DIR".to_owned(), path(&directory.checkpoints())),
        ("CUDOCK_ARTIFACT_DIR".to_owned(), path(&directory.artifacts())),
        ("CUDOCK_SWEEP_PARAMETERS".to_owned(), path(&directory.parameters())),
        // Output in a pipe would come in blocks of some kilobytes, and metrics too late to stop a trial.
        ("PYTHONUNBUFFERED".to_owned(), "1".to_owned()),
    ];
    if let MetricSource::Mlflow { path: store } = &input.plan.metrics {
        let store = directory.path().join(store);
        variables.push(("MLFLOW_TRACKING_URI".to_owned(), format!("file:{}", store.display())));
    }
    for (name, value) in input.parameters {
        let upper: String =
            name.chars().map(|c| if c.is_alphanumeric() { c.to_ascii_uppercase() } else { '_' }).collect();
        variables.push((format!("CUDOCK_PARAM_{upper}"), value.to_string()));
        if input.plan.pass == PassMode::Environment {
            variables.push((name.clone(), value.to_string()));
        }
    }
    variables
}

fn in_container(input: &CommandInput<'_>, image: &str, name: &str, program: Vec<String>) -> TrialCommand {
    let inside = TrialDir::at(Path::new(CONTAINER_DIR));
    let mount = format!("{}:{CONTAINER_DIR}", input.directory.path().display());
    let mut command = vec![input.program.to_string_lossy().into_owned()];
    command.extend(["run", "--rm", "--pull", "missing", "--name", name, "-v"].map(str::to_owned));
    command.push(mount);
    match input.gpus {
        Some(gpus) if !gpus.is_empty() => {
            command.extend(["--gpus".to_owned(), format!("\"device={}\"", gpus.join(","))]);
        }
        _ => {}
    }
    for (name, value) in variables(input, &inside) {
        command.extend(["-e".to_owned(), format!("{name}={value}")]);
    }
    command.push(image.to_owned());
    command.extend(program);
    // The container's own variables name its mount; this one marks the processes that belong to it here.
    let environment = vec![(TRIAL_DIR.to_owned(), input.directory.path().to_string_lossy().into_owned())];
    TrialCommand { command, environment }
}
