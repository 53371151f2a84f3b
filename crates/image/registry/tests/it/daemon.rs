//! Images of daemons, over real unix sockets.

use std::fs;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread;

use cudock_base::{Environment, Report as _};
use cudock_http::Progress;
use cudock_registry::{Error, daemon};
use tempfile::tempdir;

use crate::support::{Reply, Request, noise, read_request};

/// Listens as long as the test's process lives; the requested paths are recorded.
fn start(socket: &Path, handler: impl Fn(&Request) -> Reply + Send + 'static) -> Arc<Mutex<Vec<String>>> {
    let listener = UnixListener::bind(socket).unwrap();
    let paths: Arc<Mutex<Vec<String>>> = Arc::default();
    thread::spawn({
        let paths = Arc::clone(&paths);
        move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let Some(request) = read_request(&stream) else { continue };
                paths.lock().unwrap().push(request.path.clone());
                let _ = handler(&request).send(&mut stream);
            }
        }
    });
    paths
}

fn refusal(status: u16, message: &str) -> Reply {
    Reply::new(status, format!("{{\"message\":\"{message}\"}}"))
}

#[test]
fn an_image_is_streamed_to_a_file_however_it_is_framed() {
    #[derive(Default)]
    struct Last(Mutex<u64>);
    impl Progress for Last {
        fn at(&self, what: &str, bytes: u64) {
            assert_eq!(what, "nvidia/cuda:12.4");
            *self.0.lock().unwrap() = bytes;
        }
    }
    for chunked in [false, true] {
        let (directory, image) = (tempdir().unwrap(), noise(300_000));
        let socket = directory.path().join("d.sock");
        let paths = start(&socket, {
            let image = image.clone();
            move |request| {
                let body = if request.path.ends_with("/get") { image.clone() } else { b"{}".to_vec() };
                Reply { chunked, ..Reply::new(200, body) }
            }
        });
        let (to, last) = (directory.path().join("image.tar"), Last::default());
        daemon::export("nvidia/cuda:12.4", &[socket], &to, Some(&last)).unwrap();
        assert_eq!(fs::read(&to).unwrap(), image);
        assert_eq!(*last.0.lock().unwrap(), 300_000);
        let requested = paths.lock().unwrap().clone();
        assert_eq!(requested, ["/images/nvidia%2Fcuda%3A12.4/json", "/images/nvidia%2Fcuda%3A12.4/get"]);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2);
    }
}

#[test]
fn a_stream_that_breaks_off_leaves_no_file() {
    for chunked in [false, true] {
        let directory = tempdir().unwrap();
        let socket = directory.path().join("d.sock");
        start(&socket, move |request| {
            if request.path.ends_with("/get") {
                Reply { chunked, ..Reply::new(200, noise(300_000)) }.cut_after(100_000)
            } else {
                Reply::new(200, "{}")
            }
        });
        let to = directory.path().join("image.tar");
        let error = daemon::export("a", std::slice::from_ref(&socket), &to, None).unwrap_err();
        assert!(error.to_string().contains(&socket.display().to_string()), "{error}");
        assert!(error.to_string().contains("broke off") && error.is_outside(), "{error}");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }
}

#[test]
fn the_first_daemon_that_has_the_image_is_taken() {
    let directory = tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    start(&at("broken"), |_| refusal(500, "no space left"));
    start(&at("without"), |_| refusal(404, "no such image"));
    start(&at("with"), |_| Reply::new(200, "image"));
    fs::write(at("file"), "").unwrap();
    let has = |names: &[&str]| daemon::has("a", &names.iter().map(|name| at(name)).collect::<Vec<_>>());
    assert!(has(&["missing", "file", "broken", "without", "with"]).unwrap());
    assert!(!has(&["missing", "without"]).unwrap());
    assert!(!has(&["missing"]).unwrap());
    assert!(!has(&[]).unwrap());
    let error = has(&["without", "broken"]).unwrap_err();
    assert!(
        error.to_string().contains("broken: server returned 500 Internal Server Error: no space left"),
        "{error}"
    );
    assert!(matches!(has(&["file"]), Err(Error::Daemon { .. })));
}

#[test]
fn an_image_that_no_daemon_has_is_distinguished_from_no_daemon() {
    let directory = tempdir().unwrap();
    let (socket, to) = (directory.path().join("d.sock"), directory.path().join("image.tar"));
    let none = daemon::export("a", std::slice::from_ref(&socket), &to, None).unwrap_err();
    assert!(matches!(none, Error::NoDaemon { .. }), "{none:?}");
    assert!(none.to_string().contains("d.sock") && none.is_outside());
    start(&socket, |_| refusal(404, "no such image: a"));
    let missing = daemon::export("a", &[socket], &to, None).unwrap_err();
    assert!(matches!(missing, Error::NotInDaemon { .. }), "{missing:?}");
    assert!(!missing.is_outside() && missing.hints()[0].contains("docker pull a"));
    assert!(!to.exists());
}

#[test]
fn a_daemon_that_talks_nonsense_is_an_error_that_names_its_socket() {
    let directory = tempdir().unwrap();
    let socket = directory.path().join("d.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            use std::io::Write as _;
            let mut stream = stream.unwrap();
            let _ = read_request(&stream);
            let _ = stream.write_all(&noise(200_000));
        }
    });
    let error = daemon::has("a", std::slice::from_ref(&socket)).unwrap_err();
    assert!(error.to_string().contains(&socket.display().to_string()), "{error}");
}

#[test]
fn sockets_are_those_of_the_environment_then_the_usual_ones() {
    let sockets = |variables: &[(&str, &str)]| {
        let environment = Environment::of("/r", variables.iter().copied());
        daemon::sockets(&environment)
    };
    let paths = |paths: &[&str]| paths.iter().map(PathBuf::from).collect::<Vec<_>>();
    assert_eq!(sockets(&[]), paths(&["/r/var/run/docker.sock", "/r/run/podman/podman.sock"]));
    assert_eq!(
        sockets(&[("DOCKER_HOST", "unix:///x/d.sock"), ("XDG_RUNTIME_DIR", "/u")]),
        paths(&["/x/d.sock", "/u/podman/podman.sock", "/r/run/podman/podman.sock"])
    );
    assert_eq!(sockets(&[("DOCKER_HOST", "tcp://h:1")]), paths(&["/r/run/podman/podman.sock"]));
}
