//! Turns the arguments of `run` into the request of an engine.

use std::io::IsTerminal;
use std::path::Path;

use cudock_cli::{EngineChoice, NetworkArgs, RunArgs, docker};
use cudock_image::Pull;
use cudock_runtime::container::config::{
    ContainerConfig, MountConfig, NetworkConfig, Private, ProcessConfig,
};
use cudock_runtime::container::home::{Home, new_id};
use cudock_runtime::container::status::now;
use cudock_runtime::engine::RunRequest;
use cudock_runtime::flags::{self, GpuFlags, SecurityFlags, Sources};

use crate::failure::Failure;
use crate::output::note;

/// The request of a command that is typed here.
pub(crate) fn request(args: &RunArgs) -> Result<RunRequest, Failure> {
    let here = std::env::current_dir()
        .map_err(|error| Failure::outside(format!("cannot get the current directory: {error}")))?;
    let own = matches!(args.engine.engine, EngineChoice::Auto | EngineChoice::Cudock);
    let home = own.then(crate::steps::engine::home).transpose()?;
    check_terminal(args)?;
    request_in(args, &here, home.as_ref())
}

/// The request of a command that is typed in a directory. `home` is where named volumes are, unless another engine stores them.
pub(crate) fn request_in(args: &RunArgs, here: &Path, home: Option<&Home>) -> Result<RunRequest, Failure> {
    let (image, command) = image_and_command(args)?;
    let id = new_id()?;
    let environment = flags::variables(&args.process.env, &args.process.env_file)?;
    let private = Private { environment };
    check_accepted(args)?;
    let process = ProcessConfig {
        given: private.environment.iter().map(|(name, _)| name.clone()).collect(),
        groups: args.process.group_add.clone(),
        tty: args.tty,
        stdin: args.interactive,
        init: args.process.init,
        ..ProcessConfig::default()
    };
    let mounts = mounts(args, here, home)?;
    let stop_signal = args.stop_signal.clone().unwrap_or_default();
    if !stop_signal.is_empty() {
        cudock_runtime::supervise::signal::parse_signal(&stop_signal)?;
    }
    let network = network(&args.network)?;
    let ipc = args.process.ipc;
    let (nodes, cdi_names) = args.files.devices()?;
    if let Some(name) = &args.name {
        flags::check_name(name)?;
    }
    let gpus = GpuFlags {
        gpus: args.gpus.gpus.as_deref(),
        cdi_names: &cdi_names,
        runtime: args.runtime.as_deref(),
        capabilities: args.gpus.driver_capabilities.as_deref(),
        driver_root: args.gpus.driver_root.as_deref(),
        device_root: args.gpus.device_root.as_deref(),
    };
    let security = SecurityFlags {
        cap_add: &args.security.cap_add,
        cap_drop: &args.security.cap_drop,
        options: &args.security.security_opt,
        read_only: args.files.read_only,
    };
    let config = ContainerConfig {
        name: args.name.clone().unwrap_or_else(|| flags::default_name(&image, &id)),
        id,
        created: now(),
        image,
        digest: None,
        layers: Vec::new(),
        process,
        mounts,
        gpus: flags::gpus(&gpus, &private)?,
        verify_gpu: args.gpus.verify_gpu,
        limits: args.limits.limits()?,
        sysctls: flags::sysctls(&args.process.sysctl, ipc, &network.mode)?,
        ipc,
        network,
        security: flags::security(&security, nodes)?,
        restart: flags::restart(&args.restart)?,
        stop_signal,
        stop_seconds: args.stop_timeout,
        remove: args.rm,
        labels: flags::labels(&args.label)?,
        annotations: flags::annotations(&args.annotation)?,
        log: flags::log(args.log_driver.as_deref(), &args.log_opt)?,
        group: None,
    };

    if args.gpus.verify_gpu && config.gpus.is_none() {
        return Err(
            Failure::input("--verify-gpu without --gpus has nothing to verify").hint("add --gpus all")
        );
    }
    if args.rm && args.restart != "no" {
        return Err(Failure::input("--rm and --restart contradict each other"));
    }
    let entrypoint = args.process.entrypoint.clone();
    Ok(RunRequest {
        config,
        private,
        entrypoint: entrypoint.map(|program| if program.is_empty() { Vec::new() } else { vec![program] }),
        command,
        cwd: args.process.workdir.clone(),
        user: args.process.user.clone(),
        detach: args.detach,
        cidfile: args.cidfile.as_ref().map(|file| here.join(file)),
        publish_all: args.network.publish_all.then(|| args.network.expose.clone()),
        pull: args.pull.or(args.offline.then_some(Pull::Never)),
        platform: args.platform.clone(),
    })
}

fn image_and_command(args: &RunArgs) -> Result<(String, Vec<String>), Failure> {
    let mut command = args.command.clone();
    let image = match &args.rootfs {
        Some(directory) => format!("rootfs:{}", flags::existing_directory(directory)?.display()),
        None if command.is_empty() => {
            return Err(Failure::input("missing image").hint("cudock run IMAGE [COMMAND], or --rootfs DIR"));
        }
        None => command.remove(0),
    };
    Ok((image, command))
}

/// Checks flags that are accepted only with docker's default value.
fn check_accepted(args: &RunArgs) -> Result<(), Failure> {
    let values = [
        ("--cgroupns", &args.process.cgroupns),
        ("--userns", &args.process.userns),
        ("--runtime", &args.runtime),
    ];
    for (flag, value) in values {
        docker::check_accepted(flag, value.as_deref())?;
    }
    if !args.sig_proxy {
        return Err(Failure::input("--sig-proxy=false is not supported: signals are always forwarded")
            .hint("run it with -d, and `cudock logs -f NAME`"));
    }
    Ok(())
}

fn mounts(args: &RunArgs, here: &Path, home: Option<&Home>) -> Result<Vec<MountConfig>, Failure> {
    let on_note = |text: &str| note(text);
    let may_mount = flags::adds_capability(&args.security.cap_add, "CAP_SYS_ADMIN");
    let sources = Sources { directory: here, home, may_mount, on_note: &on_note };
    let volumes = args.files.volume.iter().map(|text| flags::volume(text, &sources));
    let mounts = args.files.mount.iter().map(|text| flags::mount(text, &sources));
    let tmpfs = args.files.tmpfs.iter().map(|text| flags::tmpfs(text));
    Ok(volumes.chain(mounts).chain(tmpfs).collect::<Result<_, _>>()?)
}

fn network(args: &NetworkArgs) -> Result<NetworkConfig, Failure> {
    let mode = args.network.clone().unwrap_or_else(flags::automatic_network);
    Ok(NetworkConfig {
        publish: flags::ports(&args.publish, &mode, &|text| note(text))?,
        hostname: args.hostname.clone(),
        hosts: flags::add_hosts(&args.add_host, &mode)?,
        dns: args.dns.clone(),
        mode,
    })
}

/// Requires a terminal here for one in the container, as docker does: the container would not
/// notice the end of any other input.
fn check_terminal(args: &RunArgs) -> Result<(), Failure> {
    let typed = args.interactive && args.tty && !args.detach;
    if typed && !std::io::stdin().is_terminal() {
        return Err(not_a_terminal());
    }
    Ok(())
}

/// The error for `-it` with a standard input that is a file or a pipe.
pub(crate) fn not_a_terminal() -> Failure {
    Failure::input("the input device is not a TTY").hint("leave out -t: -i alone reads a file or a pipe")
}

#[cfg(test)]
mod tests;
