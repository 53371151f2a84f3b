//! Namespaces and processes for the tests.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use cudock_netns::Namespace;
use cudock_netns::forward::{ForwardOptions, Forwarder, Listeners, PortMapping};
use cudock_testkit::process::{self, ChildGuard};

/// A generous timeout: a test that exceeds it has failed.
pub(crate) const FOREVER: Duration = Duration::from_secs(60);

/// A namespace, or the reason why the test is skipped.
pub(crate) fn namespace() -> Option<Namespace> {
    match Namespace::create() {
        Ok(made) => Some(made),
        Err(error) => {
            cudock_testkit::missing("namespaces", format_args!("{error}"));
            None
        }
    }
}

/// The inode number, which identifies a namespace: the number in `net:[…]`.
pub(crate) fn number(namespace: &Namespace) -> u64 {
    let file = std::fs::File::from(namespace.as_fd().try_clone_to_owned().unwrap());
    file.metadata().unwrap().ino()
}

/// Runs a function in a namespace, on its own thread.
pub(crate) fn inside<T: Send>(namespace: &Namespace, work: impl FnOnce() -> T + Send) -> T {
    let enter_and_work = || {
        namespace.enter().expect("the namespace can be entered");
        work()
    };
    thread::scope(|scope| scope.spawn(enter_and_work).join().expect("no failure inside"))
}

/// The command of the forwarder process.
pub(crate) fn forwarder_command() -> Command {
    Command::new(process::example("forwarder"))
}

/// A forwarder of these ports into a namespace.
pub(crate) fn forward(ports: &[&str], namespace: &Namespace, options: ForwardOptions) -> Forwarder {
    let mappings: Vec<PortMapping> =
        ports.iter().flat_map(|text| PortMapping::parse(text).unwrap()).collect();
    let listeners = Listeners::bind(&mappings).unwrap();
    Forwarder::start(forwarder_command(), listeners, namespace, options).unwrap()
}

/// Starts a process and reads the rest of the first line that contains this mark.
pub(crate) fn start(mut command: Command, mark: &str) -> (ChildGuard, String) {
    let mut child = ChildGuard(command.stdout(Stdio::piped()).stdin(Stdio::null()).spawn().unwrap());
    let mut lines = BufReader::new(child.0.stdout.take().unwrap()).lines();
    let line = lines
        .find_map(|line| line.unwrap().split_once(mark).map(|(_, rest)| rest.to_owned()))
        .expect("the process prints the line");
    // Drain what libtest may still print.
    thread::spawn(move || lines.for_each(drop));
    (child, line)
}

/// The host address of a forwarder's first port.
pub(crate) fn host_side(forwarder: &Forwarder) -> SocketAddr {
    let first = forwarder.mappings()[0];
    SocketAddr::new(first.host_ip.unwrap_or(Ipv4Addr::LOCALHOST.into()), first.host_port)
}

/// A connection to it, with a timeout.
pub(crate) fn connect(forwarder: &Forwarder) -> TcpStream {
    let stream = TcpStream::connect(host_side(forwarder)).unwrap();
    stream.set_read_timeout(Some(FOREVER)).unwrap();
    stream.set_write_timeout(Some(FOREVER)).unwrap();
    stream
}

/// A server in the namespace: calls `serve` for each connection, on its own thread, until the process ends.
pub(crate) fn serve_inside(
    namespace: &Namespace,
    address: &str,
    serve: impl Fn(TcpStream) + Clone + Send + 'static,
) {
    let listener = inside(namespace, || TcpListener::bind(address).unwrap());
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let serve = serve.clone();
            thread::spawn(move || serve(stream));
        }
    });
}

/// Echoes all bytes.
pub(crate) fn echo(mut stream: TcpStream) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(count @ 1..) = stream.read(&mut buffer) {
        if stream.write_all(&buffer[..count]).is_err() {
            return;
        }
    }
}
