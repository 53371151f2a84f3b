//! cudock's own engine, which runs containers without a daemon.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use cudock_base::Timestamp;
use cudock_base::files::write_unsynced;
use cudock_gpu_test::DeviceReport;
use cudock_http::Progress;
use cudock_image::unpack::{LayerStore, Pruned, Unpacked};
use cudock_image::{Image, ImageError, ResolvedImage, RunConfig};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::{Engine, LogRequest, RunImage, RunRequest, Summary, image_config};
use crate::container::config::{ContainerConfig, LogConfig, MountConfig, Private};
use crate::container::exec::{self, ExecRequest};
use crate::container::home::{ContainerDir, Home, NewContainer, new_id};
use crate::container::log::{self, LogReader, POLL_INTERVAL};
use crate::container::started::Started;
use crate::container::status::{ContainerState, ContainerStatus, Watch};
use crate::container::usage::Process;
use crate::error::{OnError, RuntimeError, error_text};
use crate::files::copy::{Copied, CopyRequest};
use crate::flags::default_name;
use crate::group;
use crate::namespace::reexec;
use crate::start::{become_watcher, start_watcher};
use crate::supervise::signal::{SignalNumber, parse_signal, stop_signal};
use crate::supervise::streams::Signals;

/// Finds an image by the name that a user typed.
pub type FindImage = Box<dyn Fn(&str) -> Result<ResolvedImage, ImageError>>;

/// Everything about one container except the values of its variables.
#[derive(Serialize, JsonSchema)]
pub struct ContainerDetails {
    config: ContainerConfig,
    status: ContainerStatus,
    /// When it was created, in UTC.
    created: String,
    directory: PathBuf,
    log: PathBuf,
    /// Bytes that it wrote to its root file system.
    written_bytes: u64,
}

pub struct Builtin {
    pub home: Home,
    pub find: FindImage,
    /// Is called before an image is fetched.
    pub on_open: fn(&Image),
    pub progress: Arc<dyn Progress>,
}

impl fmt::Debug for Builtin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builtin").field("home", &self.home).finish_non_exhaustive()
    }
}

/// Unpacked layers, protected from removal.
#[derive(Debug)]
pub struct HeldLayers {
    layers: Option<Unpacked>,
}

impl HeldLayers {
    /// Sets owner and mode of a new container's root as in the image.
    pub(crate) fn apply_root_metadata(&self, dir: &ContainerDir) -> Result<(), RuntimeError> {
        let Some(image) = &self.layers else { return Ok(()) };
        image.root.apply(&dir.upper()).on("cannot set owner and mode of", &dir.upper())
    }
}

impl Builtin {
    /// Unpacks the image if necessary, and fills in what it decides.
    pub fn complete(&self, request: &mut RunRequest, image: &RunImage) -> Result<HeldLayers, RuntimeError> {
        let (layers, run, held) = match image {
            RunImage::Rootfs(directory) => (vec![directory.clone()], RunConfig::default(), None),
            RunImage::Found(found) => {
                let image = self.open(found)?;
                request.config.digest = found.known_digest().map(|digest| digest.to_string());
                let unpacked =
                    LayerStore::open(self.home.images())?.unpack(&image, self.progress.as_ref())?;
                (unpacked.layers.clone(), image.config.config.clone(), Some(unpacked))
            }
            RunImage::Named => {
                return Err(RuntimeError::reported(
                    "an image for another engine cannot be started by cudock's",
                ));
            }
        };
        image_config::apply(request, &run)?;
        request.config.layers = layers;
        Ok(HeldLayers { layers: held })
    }

    /// Removes unpacked layers that no container uses, and leftovers of interrupted runs.
    pub fn prune(&self) -> Result<Pruned, RuntimeError> {
        // Containers are listed for each layer, since they are created meanwhile. If they cannot be listed, it is in use.
        let in_use = |layer: &Path| self.home.uses_layer(layer).unwrap_or(true);
        Ok(LayerStore::open(self.home.images())?.prune(&in_use)?)
    }
}

/// Writes the id of a container to a file that must not exist yet.
fn write_id(file: &Path, id: &str) -> Result<(), RuntimeError> {
    let wrong =
        |reason: &dyn fmt::Display| RuntimeError::Request(format!("--cidfile {}: {reason}", file.display()));
    if file.exists() {
        return Err(wrong(&"file exists; remove it or choose another"));
    }
    write_unsynced(file, id.as_bytes()).map_err(|error| wrong(&error))
}

/// The variables for another start. Values are not stored, so the caller must provide all of them again.
fn private_environment(
    config: &ContainerConfig,
    variables: &[(String, String)],
) -> Result<Private, RuntimeError> {
    let missing = |name: &&String| !variables.iter().any(|(known, _)| known == *name);
    let missing: Vec<&str> = config.process.given.iter().filter(missing).map(String::as_str).collect();
    if missing.is_empty() {
        return Ok(Private { environment: variables.to_vec() });
    }
    let flags: Vec<String> = missing.iter().map(|name| format!("-e {name}=…")).collect();
    Err(RuntimeError::Reported {
        code: 2,
        text: format!("the values of {} are not stored and are gone with the last run", missing.join(", ")),
        hint: Some(format!("cudock start {} {}", flags.join(" "), config.name)),
    })
}

impl Builtin {
    /// A container that is not in a group, and so can be started and stopped by itself.
    fn find_ungrouped(&self, name: &str) -> Result<(ContainerDir, ContainerConfig), RuntimeError> {
        let (dir, config) = self.home.find(name)?;
        match &config.group {
            None => Ok((dir, config)),
            Some(group) => Err(RuntimeError::Request(format!(
                "container {} belongs to group {group}: restart the group with `cudock down {group}` and `cudock up`",
                config.name
            ))),
        }
    }

    fn open(&self, found: &ResolvedImage) -> Result<Image, RuntimeError> {
        let image = found.open()?;
        (self.on_open)(&image);
        Ok(image)
    }

    pub fn pull(&self, image: &str) -> Result<Image, RuntimeError> {
        let opened = self.open(&(self.find)(image)?)?;
        let store = LayerStore::open(self.home.images())?;
        store.unpack(&opened, self.progress.as_ref())?;
        // Layers that are not on disk are unpacked again after a reboot.
        store.sync()?;
        Ok(opened)
    }
}

impl Engine for Builtin {
    fn name(&self) -> &'static str {
        "cudock"
    }

    fn find_image(&self, name: &str) -> Result<RunImage, RuntimeError> {
        match name.strip_prefix("rootfs:") {
            Some(directory) => Ok(RunImage::Rootfs(directory.into())),
            None => Ok(RunImage::Found((self.find)(name)?)),
        }
    }

    fn run(&self, mut request: RunRequest, image: &RunImage) -> Result<i32, RuntimeError> {
        let held = self.complete(&mut request, image)?;
        // From here on a termination signal must not leave half a container. The watcher keeps them
        // blocked.
        let mut signals = Signals::block()?;
        for mount in &request.config.mounts {
            if let MountConfig::Volume { name, .. } = mount {
                self.home.create_volume(name)?;
            }
        }
        let created = self.home.create(&request.config)?;
        held.apply_root_metadata(created.dir())?;
        if let Some(file) = &request.cidfile {
            write_id(file, &request.config.id)?;
        }
        if request.detach {
            reexec::parse_reply(&start_new(created, &request.private, &[], &mut signals)?)?;
            println!("{}", request.config.id);
            return Ok(0);
        }
        Err(become_watcher(created.dir(), created.watch(), &request.private)?)
    }

    fn verify_gpus(&self, request: &RunRequest, image: &RunImage) -> Result<DeviceReport, RuntimeError> {
        let mut request = request.clone();
        request.config.id = new_id()?;
        request.config.name = default_name(&request.config.image, &request.config.id);
        request.config.remove = true;
        request.config.network.publish.clear();
        let held = self.complete(&mut request, image)?;
        let mut signals = Signals::block()?;
        let created = self.home.create(&request.config)?;
        held.apply_root_metadata(created.dir())?;
        let reply = start_new(created, &request.private, &["--verify"], &mut signals);
        signals.unblock();
        let reply = reply?;
        let damaged = |source| RuntimeError::Damaged { path: "the result of the GPU check".into(), source };
        if reply.starts_with('{') {
            return serde_json::from_str(&reply).map_err(damaged);
        }
        reexec::parse_reply(&reply)?;
        Err(RuntimeError::reported("the GPU check ended without a result"))
    }

    fn list(&self, all: bool) -> Result<Vec<Summary>, RuntimeError> {
        self.home.remove_leftovers()?;
        let groups = group::list(&self.home)?;
        let mut summaries = Vec::new();
        for (dir, config) in self.home.all()? {
            // A container that cannot be read must not hide the others.
            let status = dir.current(&config).unwrap_or_else(|error| ContainerStatus {
                state: ContainerState::Lost,
                error: Some(error_text(&error)),
                ..ContainerStatus::default()
            });
            let mut summary = summary(&config, &status);
            let alive = group::apply_group_status(&groups, &mut summary).unwrap_or(status.state.is_alive());
            if all || alive {
                summaries.push(summary);
            }
        }
        if all {
            summaries.extend(self.home.damaged()?.iter().map(damaged));
        }
        Ok(summaries)
    }

    fn logs(&self, name: &str, request: LogRequest) -> Result<(), RuntimeError> {
        let (dir, config) = self.home.find(name)?;
        if config.log == LogConfig::None {
            return Err(RuntimeError::Request(format!(
                "container {} has no log: it was started with --log-driver none",
                config.name
            )));
        }
        let mut reader = LogReader::for_request(&dir.log(), request)?;
        loop {
            // Checked before the log is read to its end, so that nothing written in between is missed.
            let follow = request.follow && dir.is_alive(&config)?;
            while let Some(line) = reader.next_line()? {
                if request.is_past(&line) {
                    return Ok(());
                }
                if !request.contains(&line) {
                    continue;
                }
                let time = if request.timestamps { format!("{} ", line.time) } else { String::new() };
                if log::print(&line, &format!("{time}{}", line.log)).is_err() {
                    return Ok(());
                }
            }
            if !follow {
                return Ok(());
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    fn exec(&self, name: &str, request: &ExecRequest) -> Result<i32, RuntimeError> {
        let (dir, _) = self.home.find(name)?;
        Err(exec::join_command(&dir, request)?.replace_this_process())
    }

    fn stop(&self, name: &str, seconds: Option<u32>) -> Result<(), RuntimeError> {
        self.stop_all(&[name.to_owned()], seconds).into_iter().collect()
    }

    fn stop_all(&self, names: &[String], seconds: Option<u32>) -> Vec<Result<(), RuntimeError>> {
        // Send all signals before waiting, so that together they take as long as the slowest.
        let request = |name: &String| {
            let (dir, config) = self.home.find(name)?;
            let signal = stop_signal(&config.stop_signal);
            let stop = dir.request_stop(&config, signal)?;
            Ok((dir, config, signal, stop))
        };
        let requested: Vec<Result<_, RuntimeError>> = names.iter().map(request).collect();
        let wait = |requested| {
            let (dir, config, signal, stop): (ContainerDir, ContainerConfig, _, _) = requested?;
            let limit = Duration::from_secs(seconds.unwrap_or(config.stop_seconds).into());
            dir.wait_stopped(&config, signal, stop, limit).map(|_| ())
        };
        requested.into_iter().map(wait).collect()
    }

    fn remove(&self, name: &str, force: bool) -> Result<(), RuntimeError> {
        match self.home.find(name) {
            Ok((dir, config)) => dir.delete(&config, force),
            Err(error @ RuntimeError::Damaged { .. }) => match self.home.find_damaged(name)? {
                Some(dir) => dir.delete_damaged(),
                None => Err(error),
            },
            Err(error) => Err(error),
        }
    }

    fn wait(&self, name: &str) -> Result<i32, RuntimeError> {
        let (dir, config) = self.home.find(name)?;
        dir.wait(&config)
    }

    fn inspect(&self, name: &str) -> Result<Value, RuntimeError> {
        let (dir, config) = self.home.find(name)?;
        let status = dir.current(&config)?;
        let details = ContainerDetails {
            created: Timestamp::from_millis(config.created).to_string(),
            config,
            status,
            directory: dir.path().to_owned(),
            log: dir.log(),
            written_bytes: crate::container::end::written(&dir)?,
        };
        Ok(serde_json::to_value(details).unwrap_or_default())
    }

    fn kill(&self, name: &str, signal: &str) -> Result<(), RuntimeError> {
        let (dir, config) = self.home.find(name)?;
        let signal = parse_signal(signal)?;
        if signal == SignalNumber::from(nix::sys::signal::Signal::SIGKILL)
            || signal == stop_signal(&config.stop_signal)
        {
            // The restart policy must not start it again.
            let state = dir.current(&config)?.state;
            if matches!(state, ContainerState::Running | ContainerState::Restarting) {
                dir.mark_stopping()?;
            }
        }
        dir.signal(&config, signal)
    }

    fn start(&self, name: &str, variables: &[(String, String)], attach: bool) -> Result<i32, RuntimeError> {
        let (dir, config) = self.find_ungrouped(name)?;
        let status = dir.current(&config)?;
        let Some(watch) = dir.watch()? else {
            if status.state == ContainerState::Running {
                return Ok(0);
            }
            return Err(RuntimeError::state(&config.name, &status.state, "stopped"));
        };
        let private = private_environment(&config, variables)?;
        let mut signals = Signals::block()?;
        dir.clear_stopping()?;
        if attach {
            return Err(become_watcher(&dir, &watch, &private)?);
        }
        start_again(&dir, watch, &private, &mut signals)?;
        Ok(0)
    }

    fn restart(&self, name: &str, seconds: Option<u32>) -> Result<(), RuntimeError> {
        let (dir, config) = self.find_ungrouped(name)?;
        let status = dir.current(&config)?;
        // While it runs, its watcher holds the values of its variables in memory.
        let started = if status.state == ContainerState::Running { Started::read(&dir)? } else { None };
        let variables = started.map(|started| started.given).unwrap_or_default();
        let private = private_environment(&config, &variables)?;
        if config.remove && status.state.is_alive() {
            return Err(RuntimeError::Request(format!(
                "container {} was started with --rm: it is removed when it stops and cannot be restarted",
                config.name
            )));
        }
        let limit = Duration::from_secs(seconds.unwrap_or(config.stop_seconds).into());
        dir.stop(&config, stop_signal(&config.stop_signal), limit)?;
        let Some(watch) = dir.watch()? else {
            return Err(RuntimeError::state(&config.name, &"being started by another command", "stopped"));
        };
        let mut signals = Signals::block()?;
        dir.clear_stopping()?;
        start_again(&dir, watch, &private, &mut signals)
    }

    fn copy(&self, name: &str, request: &CopyRequest) -> Result<Copied, RuntimeError> {
        let (dir, config) = self.home.find(name)?;
        crate::files::copy::copy(&dir, &config, request)
    }

    fn processes(&self, name: &str) -> Result<Vec<Process>, RuntimeError> {
        let (dir, config) = self.home.find(name)?;
        dir.processes(&config)
    }
}

/// A container of which only the id can be read.
fn damaged(dir: &ContainerDir) -> Summary {
    let (id, state) = (dir.id(), "damaged".to_owned());
    Summary { name: id.clone(), id, state, ..Summary::default() }
}

fn summary(config: &ContainerConfig, status: &ContainerStatus) -> Summary {
    Summary {
        id: config.id.clone(),
        name: config.name.clone(),
        image: config.image.clone(),
        command: config.process.args.join(" "),
        state: status.state.to_string(),
        created: config.created,
        started: status.started,
        exit_code: status.exit_code,
        out_of_memory: status.out_of_memory,
        restarts: status.restarts,
        ready: status.ready,
        ports: status.ports.clone(),
        gpus: config.gpus.as_ref().map(|gpus| gpus.devices.clone()),
        group: config.group.clone(),
    }
}

/// Starts a detached watcher for a new container, and returns its reply.
fn start_new(
    created: NewContainer,
    private: &Private,
    flags: &[&str],
    signals: &mut Signals,
) -> Result<String, RuntimeError> {
    let reply = start_watcher(created.dir(), created.watch(), private, flags)?;
    created.leave_to_watcher();
    reply.wait(signals)
}

/// Starts a detached watcher for a container that has exited, and waits until it runs.
fn start_again(
    dir: &ContainerDir,
    mut watch: Watch,
    private: &Private,
    signals: &mut Signals,
) -> Result<(), RuntimeError> {
    let reply = start_watcher(dir, &watch, private, &[])?;
    watch.leave_to_watcher();
    reexec::parse_reply(&reply.wait(signals)?)
}
