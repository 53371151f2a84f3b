//! Images that a docker or podman daemon on this machine has, over the API on its unix socket.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use ureq::Body;
use ureq::http::Response;

use crate::env::{DOCKER_HOST, Environment};
use crate::error::RegistryError;
use crate::http::broken;
use crate::progress::Progress;
use crate::text::{percent_encoded, shortened};
use crate::unix_transport;

/// A daemon packs layers before it sends the first byte; large images take minutes.
const PATIENCE: Duration = Duration::from_secs(600);
const LARGEST_REFUSAL: u64 = 64 * 1024;

#[derive(Default, Deserialize)]
struct Refusal {
    #[serde(default)]
    message: String,
}

/// Where daemons listen, in the order to ask them: docker's at `$DOCKER_HOST` (`unix://` only), or else at its usual
/// place; then podman's, the user's and the system's.
///
/// A docker daemon elsewhere (`tcp://`, `ssh://`) is not asked, and neither is the local one in its stead.
pub fn sockets(environment: &Environment) -> Vec<PathBuf> {
    let docker = match environment.get(DOCKER_HOST) {
        Some(host) => host.to_str().and_then(|host| host.strip_prefix("unix://")).map(PathBuf::from),
        None => Some(environment.system("var/run/docker.sock")),
    };
    let podman = environment.runtime_dir().map(|folder| folder.join("podman/podman.sock"));
    [docker, podman, Some(environment.system("run/podman/podman.sock"))].into_iter().flatten().collect()
}

/// Whether one of the daemons has this image. Sockets that are not there are passed over; none at all is "no".
pub fn has(name: &str, sockets: &[PathBuf]) -> Result<bool, RegistryError> {
    match holder(name, sockets) {
        Ok(_) => Ok(true),
        Err(RegistryError::NotInDaemon { .. } | RegistryError::NoDaemon { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Streams an image, as `docker save` has it, from the first daemon that has it into the file `to`. The file is there
/// whole or not at all.
pub fn export(
    name: &str,
    sockets: &[PathBuf],
    to: &Path,
    progress: Option<&dyn Progress>,
) -> Result<(), RegistryError> {
    let socket = holder(name, sockets)?;
    let answer = get(name, socket, "get")?;
    if answer.status().as_u16() != 200 {
        return Err(refused(name, socket, answer));
    }
    let mut beside = to.as_os_str().to_owned();
    beside.push(".partial");
    let beside = PathBuf::from(beside);
    let stored = |path: &Path| {
        let path = path.to_owned();
        |source| RegistryError::Store { doing: "write", path, source }
    };
    let mut file = File::create(&beside).map_err(stored(&beside))?;
    if let Some(progress) = progress {
        progress.started(name, None, 0);
    }
    let copied = copy(answer, &mut file, |bytes| {
        if let Some(progress) = progress {
            progress.at(name, bytes);
        }
    });
    let result = match copied {
        Ok(()) => file.sync_all().and_then(|()| fs::rename(&beside, to)).map_err(stored(to)),
        Err(Copying::Read(error)) => {
            Err(failed(name, socket, format!("the image broke off: {}", broken(&error))))
        }
        Err(Copying::Write(error)) => Err(stored(&beside)(error)),
    };
    match (&result, progress) {
        (Ok(()), Some(progress)) => progress.finished(name),
        (Err(_), _) => {
            // The reason to fail is the one to tell.
            let _ = fs::remove_file(&beside);
        }
        (Ok(()), None) => {}
    }
    result
}

enum Copying {
    Read(io::Error),
    Write(io::Error),
}

fn copy(answer: Response<Body>, file: &mut File, mut at: impl FnMut(u64)) -> Result<(), Copying> {
    let mut body = answer.into_body().into_reader();
    let mut buffer = vec![0; 128 * 1024];
    let mut total = 0;
    loop {
        let count = match body.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(Copying::Read(error)),
        };
        file.write_all(buffer.get(..count).unwrap_or_default()).map_err(Copying::Write)?;
        total += u64::try_from(count).unwrap_or_default();
        at(total);
    }
}

/// The first daemon that has the image. A daemon that cannot be asked counts only if no other has it: then nobody can
/// say that the image is not there.
fn holder<'a>(name: &str, sockets: &'a [PathBuf]) -> Result<&'a Path, RegistryError> {
    let mut missing = None;
    let mut trouble = None;
    for socket in sockets.iter().filter(|socket| socket.exists()) {
        match get(name, socket, "json") {
            Ok(answer) => match answer.status().as_u16() {
                200 => return Ok(socket),
                404 => {
                    missing.get_or_insert_with(|| RegistryError::NotInDaemon {
                        name: name.to_owned(),
                        socket: socket.clone(),
                    });
                }
                _ => {
                    trouble.get_or_insert_with(|| refused(name, socket, answer));
                }
            },
            Err(error) => {
                trouble.get_or_insert(error);
            }
        }
    }
    Err(trouble
        .or(missing)
        .unwrap_or_else(|| RegistryError::NoDaemon { name: name.to_owned(), sockets: sockets.to_vec() }))
}

fn get(name: &str, socket: &Path, what: &str) -> Result<Response<Body>, RegistryError> {
    let url = format!("http://localhost/images/{}/{what}", percent_encoded(name));
    let answer = unix_transport::agent(socket.to_owned(), PATIENCE).get(&url).call();
    answer.map_err(|error| failed(name, socket, error.to_string()))
}

fn refused(name: &str, socket: &Path, mut answer: Response<Body>) -> RegistryError {
    let status = answer.status().as_u16();
    let mut body = Vec::new();
    // A reason that cannot be read is as good as none.
    let _ = answer.body_mut().as_reader().take(LARGEST_REFUSAL).read_to_end(&mut body);
    let refusal: Refusal = serde_json::from_slice(&body).unwrap_or_default();
    failed(name, socket, format!("it answered {status}: {}", shortened(&refusal.message, 200)))
}

fn failed(name: &str, socket: &Path, reason: String) -> RegistryError {
    RegistryError::Daemon { name: name.to_owned(), socket: socket.to_owned(), reason }
}
