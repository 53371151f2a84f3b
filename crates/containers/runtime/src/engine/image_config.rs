//! Settings of a container that come from its image.

use cudock_base::text::escape;
use cudock_image::RunConfig;

use super::RunRequest;
use crate::container::config::NetworkMode;
use crate::error::RuntimeError;
use crate::flags::publish_exposed;
use crate::supervise::signal::parse_signal;

/// Takes from the image's configuration what the user did not set.
pub(super) fn apply(request: &mut RunRequest, run: &RunConfig) -> Result<(), RuntimeError> {
    let config = &mut request.config;
    config.process.environment = run.environment().into_iter().collect();
    let entrypoint = request.entrypoint.as_ref().unwrap_or(&run.entrypoint);
    // As in docker, a custom entry point does not get the image's default arguments.
    let custom = request.entrypoint.is_some() || !request.command.is_empty();
    let command = if custom { &request.command } else { &run.cmd };
    config.process.args = entrypoint.iter().chain(command).cloned().collect();
    if config.process.args.is_empty() {
        let text = "no command to run: add one after the image, which has none";
        return Err(RuntimeError::Request(text.to_owned()));
    }
    let cwd = request.cwd.clone().unwrap_or_else(|| run.working_dir.clone());
    config.process.cwd = if cwd.is_empty() { "/".to_owned() } else { cwd };
    if !config.process.cwd.starts_with('/') {
        let text = format!("the working directory `{}` is not an absolute path", config.process.cwd);
        return Err(RuntimeError::Request(text));
    }
    config.process.user = request.user.clone().unwrap_or_else(|| run.user.clone());
    if config.stop_signal.is_empty() {
        run.stop_signal.clone_into(&mut config.stop_signal);
        if !config.stop_signal.is_empty() && parse_signal(&config.stop_signal).is_err() {
            let text = escape(&config.stop_signal, 40);
            eprintln!(
                "warning: unknown StopSignal `{text}` in the image: the container is stopped with SIGTERM"
            );
            "SIGTERM".clone_into(&mut config.stop_signal);
        }
    }
    publish_all(request, run)
}

/// Publishes the ports that the image and the user expose, if the user gave `--publish-all`.
fn publish_all(request: &mut RunRequest, run: &RunConfig) -> Result<(), RuntimeError> {
    let Some(given) = &request.publish_all else { return Ok(()) };
    let ports = publish_exposed(run.exposed_ports().chain(given.iter().cloned()))?;
    let network = &mut request.config.network;
    if network.mode != NetworkMode::Host {
        network.publish.extend(ports);
    }
    Ok(())
}
