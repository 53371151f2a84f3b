//! Images of a docker or podman daemon on this machine, over the API on its unix socket.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use cudock_base::text::percent;
use cudock_base::{Environment, FileError, files};
use cudock_http::{Client, Method, NoProgress, Progress, Request, Response, describe_read_error};

use crate::env::DOCKER_HOST;
use crate::error::Error;

/// A daemon packs layers before it sends the first byte; large images take minutes.
const TIMEOUT: Duration = Duration::from_secs(600);

/// Where daemons listen, in the order to try them: docker's at `$DOCKER_HOST` (`unix://` only), or else at its usual
/// path; then podman's, the user's and the system's.
///
/// A docker daemon elsewhere (`tcp://`, `ssh://`) is not contacted, and neither is the local one in its place.
pub fn sockets(environment: &Environment) -> Vec<PathBuf> {
    let docker = match environment.get(DOCKER_HOST) {
        Some(host) => host.to_str().and_then(|host| host.strip_prefix("unix://")).map(PathBuf::from),
        None => Some(environment.system("var/run/docker.sock")),
    };
    let podman = environment.runtime_dir().map(|directory| directory.join("podman/podman.sock"));
    [docker, podman, Some(environment.system("run/podman/podman.sock"))].into_iter().flatten().collect()
}

/// Whether one of the daemons has this image. Missing sockets are skipped; without any daemon it is "no".
pub fn has(name: &str, sockets: &[PathBuf]) -> Result<bool, Error> {
    match find(name, sockets) {
        Ok(_) => Ok(true),
        Err(Error::NotInDaemon { .. } | Error::NoDaemon { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Streams an image, as `docker save` writes it, from the first daemon that has it into the file `to`. The file is
/// written whole or not at all.
pub fn export(
    name: &str,
    sockets: &[PathBuf],
    to: &Path,
    progress: Option<&dyn Progress>,
) -> Result<(), Error> {
    let progress = progress.unwrap_or(&NoProgress);
    let socket = find(name, sockets)?;
    let response = get(name, socket, "get")?;
    if response.status() != 200 {
        return Err(failed(name, socket, response.into_status_error().reason));
    }
    let temporary = files::temporary_path(to);
    progress.started(name, None, 0);
    let written = File::create_new(&temporary)
        .map_err(CopyError::Write)
        .and_then(|mut file| copy(response, &mut file, |bytes| progress.at(name, bytes)));
    match written.and_then(|()| fs::rename(&temporary, to).map_err(CopyError::Write)) {
        Ok(()) => {
            progress.finished(name);
            Ok(())
        }
        Err(error) => {
            // The first error is the one to report.
            let _ = fs::remove_file(&temporary);
            Err(match error {
                CopyError::Read(error) => {
                    failed(name, socket, format!("the image broke off: {}", describe_read_error(&error)))
                }
                CopyError::Write(error) => FileError::at("write", to)(error).into(),
            })
        }
    }
}

/// Loads an archive, as `docker save` writes it, into the first daemon that listens.
pub fn load(
    name: &str,
    archive: &Path,
    sockets: &[PathBuf],
    progress: Option<&dyn Progress>,
) -> Result<(), Error> {
    let progress = progress.unwrap_or(&NoProgress);
    let no_daemon = || Error::NoDaemon { name: name.to_owned(), sockets: sockets.to_vec() };
    let socket = sockets.iter().find(|socket| socket.exists()).ok_or_else(no_daemon)?;
    let mut file = File::open(archive).map_err(FileError::at("read", archive))?;
    let size = file.metadata().map_err(FileError::at("read", archive))?.len();
    progress.started(name, Some(size), 0);
    let request = Request::new(Method::POST, "http://localhost/images/load?quiet=1")
        .header("Content-Type", "application/x-tar");
    let response = Client::over_unix_socket(socket, TIMEOUT).send_stream(&request, &mut file, Some(size));
    let mut response = response.map_err(|error| failed(name, socket, error.reason))?;
    if response.status() != 200 {
        return Err(failed(name, socket, response.into_status_error().reason));
    }
    // The status is sent before the work is done; what fails then is a line of the answer.
    let answer = response.bytes(MAX_LOAD_ANSWER).map_err(|error| failed(name, socket, error.reason))?;
    let error = answer
        .split(|byte| *byte == b'\n')
        .find_map(|line| serde_json::from_slice::<LoadLine>(line).ok().and_then(|line| line.error));
    if let Some(reason) = error {
        return Err(failed(name, socket, reason));
    }
    progress.finished(name);
    Ok(())
}

const MAX_LOAD_ANSWER: u64 = 1 << 20;

#[derive(serde::Deserialize)]
struct LoadLine {
    error: Option<String>,
}

/// Which side of a copy failed.
enum CopyError {
    Read(io::Error),
    Write(io::Error),
}

fn copy(response: Response, file: &mut File, mut at: impl FnMut(u64)) -> Result<(), CopyError> {
    let mut body = response.into_reader();
    let mut buffer = vec![0; 128 * 1024];
    let mut total = 0;
    loop {
        let bytes = files::read_some(&mut body, &mut buffer).map_err(CopyError::Read)?;
        if bytes.is_empty() {
            return file.sync_all().map_err(CopyError::Write);
        }
        file.write_all(bytes).map_err(CopyError::Write)?;
        total += u64::try_from(bytes.len()).unwrap_or_default();
        at(total);
    }
}

/// The first daemon that has the image. The error of a daemon that fails counts only if no other has the image: then it
/// is unknown whether it exists.
fn find<'a>(name: &str, sockets: &'a [PathBuf]) -> Result<&'a Path, Error> {
    let mut missing = None;
    let mut first_error = None;
    for socket in sockets.iter().filter(|socket| socket.exists()) {
        let error = match get(name, socket, "json") {
            Ok(response) => match response.status() {
                200 => return Ok(socket),
                404 => {
                    let (name, socket) = (name.to_owned(), socket.clone());
                    missing.get_or_insert(Error::NotInDaemon { name, socket });
                    continue;
                }
                _ => failed(name, socket, response.into_status_error().reason),
            },
            Err(error) => error,
        };
        first_error.get_or_insert(error);
    }
    Err(first_error
        .or(missing)
        .unwrap_or_else(|| Error::NoDaemon { name: name.to_owned(), sockets: sockets.to_vec() }))
}

fn get(name: &str, socket: &Path, action: &str) -> Result<Response, Error> {
    let url = format!("http://localhost/images/{}/{action}", percent::encode(name));
    let response = Client::over_unix_socket(socket, TIMEOUT).send(&Request::get(url).without_redirects());
    response.map_err(|error| failed(name, socket, error.reason))
}

fn failed(name: &str, socket: &Path, reason: String) -> Error {
    Error::Daemon { name: name.to_owned(), socket: socket.to_owned(), reason }
}
