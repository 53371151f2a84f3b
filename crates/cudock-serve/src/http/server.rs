//! The listener, the threads that serve connections, and graceful shutdown.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use socket2::{Domain, Protocol, Socket, Type};
use tokio::runtime::Builder;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{Notify, mpsc, watch};

use super::monitor::{ConnectionActivity, ConnectionMonitor};
use super::stream::MonitoredStream;
use super::tls::{Tls, TlsError};
use super::{connection, descriptors};
use crate::read_tracker::ReadTracker;
use crate::reply::ReplyQueue;
use crate::service::{LoadError, ModelService};

/// Backlog of connections that were not accepted yet.
const BACKLOG: i32 = 4096;
/// Interval at which changed files are looked for: models, keys, certificates.
const WATCH_INTERVAL: Duration = Duration::from_secs(1);
/// How long connections without a request stay open during shutdown, so that a request already on its way is still
/// processed.
const DRAIN_GRACE: Duration = Duration::from_millis(200);
/// Number of tasks that a thread runs before it polls sockets and replies again. With the runtime's default of 61, a
/// few clients that send as fast as they can delay all others by a tenth of a second.
const TASKS_PER_POLL: u32 = 16;
/// How long to wait for an evicted connection before another one is evicted.
const EVICT_INTERVAL: Duration = Duration::from_millis(20);

/// An error that prevents the server from running.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// Cannot listen on an address.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why not.
        source: io::Error,
    },
    /// Threads, signals or timers are not available.
    #[error("cannot set the server up")]
    System(#[from] io::Error),
    /// Certificate or key cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// There is nothing to serve.
    #[error(transparent)]
    Load(#[from] LoadError),
}

/// A listening server.
pub struct Server {
    service: Arc<ModelService>,
    listeners: Vec<TcpListener>,
    tls: Option<Tls>,
    first_reserved: i32,
}

/// State shared by all threads.
struct ServerShared {
    service: Arc<ModelService>,
    tls: Option<Tls>,
    ending: watch::Receiver<bool>,
    connections: AtomicUsize,
    /// Notified when a connection has ended.
    ended: Notify,
    monitors: Vec<ConnectionMonitor>,
    /// The lowest file descriptor that connections may not use.
    first_reserved: i32,
}

impl Server {
    /// Binds the addresses before the models are loaded, so that they are known and taken.
    pub fn bind(service: Arc<ModelService>) -> Result<Self, ServerError> {
        cudock_map::return_large_blocks();
        let first_reserved = descriptors::raise_limit();
        let tls = service.settings.tls.as_ref().map(Tls::new).transpose()?;
        let mut listeners = Vec::new();
        for &address in &service.settings.listen {
            listeners.push(listen(address).map_err(|source| ServerError::Listen { address, source })?);
        }
        Ok(Self { service, listeners, tls, first_reserved })
    }

    /// The bound addresses.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.listeners.iter().filter_map(|listener| listener.local_addr().ok()).collect()
    }

    /// Loads the models and serves them until SIGTERM or SIGINT; then finishes accepted requests and returns. `ready`
    /// is called once the models are loaded.
    pub fn run(self, ready: impl FnOnce(&ModelService)) -> Result<(), ServerError> {
        let (end, ending) = watch::channel(false);
        let (start, client_timeout) = (Instant::now(), self.service.settings.client_timeout);
        let io_threads = self.service.settings.io_threads.max(1);
        let shared = Arc::new(ServerShared {
            service: Arc::clone(&self.service),
            tls: self.tls,
            ending,
            connections: AtomicUsize::new(0),
            ended: Notify::new(),
            monitors: (0..io_threads).map(|_| ConnectionMonitor::new(start, client_timeout)).collect(),
            first_reserved: self.first_reserved,
        });
        let mut threads = Vec::new();
        let mut inboxes = Vec::new();
        for (number, monitor) in shared.monitors.iter().enumerate() {
            let (inbox, streams) = mpsc::unbounded_channel();
            inboxes.push(inbox);
            threads.push(io_thread(number, Arc::clone(&shared), monitor.clone(), streams)?);
        }
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let outcome = runtime.block_on(async {
            let mut signals = Signals::new()?;
            let mut accepting = tokio::task::JoinSet::new();
            for listener in self.listeners {
                let listener = tokio::net::TcpListener::from_std(listener)?;
                accepting.spawn(accept(listener, Arc::clone(&shared), inboxes.clone()));
            }
            drop(inboxes);
            let service = Arc::clone(&self.service);
            let loading = tokio::task::spawn_blocking(move || service.load());
            let loaded = tokio::select! {
                loaded = loading => match loaded {
                    Ok(loaded) => loaded.map(|()| true).map_err(ServerError::from),
                    Err(panicked) => Err(ServerError::System(io::Error::other(panicked))),
                },
                () = signals.shutdown() => Ok(false),
            };
            if let Ok(true) = loaded {
                ready(&self.service);
                run_until_signaled(&shared, &mut signals).await;
                self.service.settings.log.event("draining", &[]);
            }
            self.service.drain();
            // The threads can end only once no more connections are passed to them.
            accepting.shutdown().await;
            if let Ok(true) = loaded {
                tokio::time::sleep(DRAIN_GRACE).await;
            }
            loaded.map(drop)
        });
        // Connections finish their requests and close; those still open at the limit are dropped.
        let _ = end.send(true);
        let limit = Instant::now() + self.service.settings.drain_timeout;
        while shared.connections.load(Ordering::Acquire) > 0 && Instant::now() < limit {
            thread::sleep(Duration::from_millis(5));
        }
        let left = shared.connections.load(Ordering::Acquire);
        if left == 0 {
            self.service.close();
            for thread in threads {
                // A thread that panicked has already reported it.
                let _ = thread.join();
            }
        }
        self.service.settings.log.event("ended", &[("connections_left", &left.to_string())]);
        runtime.shutdown_background();
        outcome
    }
}

/// The signals that a server handles.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
    reload: Signal,
}

impl Signals {
    fn new() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            reload: signal(SignalKind::hangup())?,
        })
    }

    async fn shutdown(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

impl ServerShared {
    /// Reloads keys and certificates if they have changed. The previous ones stay if the new ones cannot be used.
    fn refresh_credentials(&self) {
        let settings = &self.service.settings;
        let report = |what: &str, outcome: Result<bool, String>| match outcome {
            Ok(false) => {}
            Ok(true) => settings.log.event(&format!("{what}_reloaded"), &[]),
            Err(error) => settings.log.event(&format!("{what}_not_reloaded"), &[("error", &error)]),
        };
        report("keys", settings.keys.refresh().map_err(|error| error.to_string()));
        if let Some(tls) = &self.tls {
            report("certificate", tls.refresh().map_err(|error| error.to_string()));
        }
    }

    /// Waits until another connection can be accepted, closing the one that has been idle longest.
    async fn make_room(&self) {
        let before = self.connections.load(Ordering::Acquire);
        loop {
            let ended = self.ended.notified();
            ConnectionMonitor::evict_oldest(&self.monitors);
            // Another connection may have become idle meanwhile.
            let _ = tokio::time::timeout(EVICT_INTERVAL, ended).await;
            if self.connections.load(Ordering::Acquire) < before.max(1) {
                return;
            }
        }
    }
}

/// Reloads on SIGHUP and on changed files, until a signal to end.
async fn run_until_signaled(shared: &Arc<ServerShared>, signals: &mut Signals) {
    let service = &shared.service;
    let mut tick = tokio::time::interval(WATCH_INTERVAL);
    loop {
        tokio::select! {
            _ = signals.terminate.recv() => return,
            _ = signals.interrupt.recv() => return,
            _ = signals.reload.recv() => {
                shared.refresh_credentials();
                // Errors are in the log and in `/health`.
                let _ = service.reload(None).await;
            }
            _ = tick.tick() => {
                shared.refresh_credentials();
                if service.settings.watch {
                    let service = Arc::clone(service);
                    let _ = tokio::task::spawn_blocking(move || service.sync_with_directory()).await;
                }
            }
        }
    }
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// Accepts connections and distributes them to the threads in turn.
async fn accept(
    listener: tokio::net::TcpListener,
    shared: Arc<ServerShared>,
    inboxes: Vec<mpsc::UnboundedSender<TcpStream>>,
) {
    let mut turn = inboxes.iter().cycle();
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // Probably out of file descriptors: another connection must end first. Clients wait in the backlog until
            // then.
            shared.make_room().await;
            continue;
        };
        let full = shared.connections.load(Ordering::Acquire) >= shared.service.settings.connections;
        if full || stream.as_raw_fd() >= shared.first_reserved {
            shared.make_room().await;
        }
        let Ok(stream) = configure(stream, shared.service.settings.client_timeout) else { continue };
        let Some(inbox) = turn.next() else { return };
        shared.connections.fetch_add(1, Ordering::AcqRel);
        if inbox.send(stream).is_err() {
            shared.connections.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

fn configure(stream: tokio::net::TcpStream, client_timeout: Duration) -> io::Result<TcpStream> {
    let stream = stream.into_std()?;
    stream.set_nodelay(true)?;
    // The system drops a client that does not read its response.
    socket2::SockRef::from(&stream).set_tcp_user_timeout(Some(client_timeout))?;
    Ok(stream)
}

fn io_thread(
    number: usize,
    shared: Arc<ServerShared>,
    monitor: ConnectionMonitor,
    mut streams: mpsc::UnboundedReceiver<TcpStream>,
) -> io::Result<JoinHandle<()>> {
    let runtime = Builder::new_current_thread()
        .enable_all()
        .event_interval(TASKS_PER_POLL)
        .global_queue_interval(TASKS_PER_POLL)
        .build()?;
    thread::Builder::new().name(format!("io {number}")).spawn(move || {
        runtime.block_on(async move {
            tokio::spawn(ReplyQueue::install());
            tokio::spawn(ReadTracker::install());
            tokio::spawn(monitor.clone().run());
            while let Some(stream) = streams.recv().await {
                tokio::spawn(serve(Arc::clone(&shared), stream, monitor.register()));
            }
            while shared.connections.load(Ordering::Acquire) > 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        });
    })
}

/// Decrements the number of connections however the task ends.
struct ConnectionGuard(Arc<ServerShared>);

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::AcqRel);
        self.0.ended.notify_one();
    }
}

async fn serve(shared: Arc<ServerShared>, stream: TcpStream, activity: Arc<ConnectionActivity>) {
    let counted = ConnectionGuard(shared);
    let shared = &counted.0;
    let Ok(stream) = tokio::net::TcpStream::from_std(stream) else { return };
    let (service, mut ending) = (Arc::clone(&shared.service), shared.ending.clone());
    let budget = Arc::clone(&service.budget);
    let stream = MonitoredStream::new(stream, Arc::clone(&activity), budget, shared.tls.is_none());
    let Some(tls) = &shared.tls else {
        return connection::serve(service, stream, activity, ending).await;
    };
    let stream = tokio::select! {
        stream = tls.acceptor().accept(stream) => stream,
        // Too slow, evicted, or the server is shutting down: no request has been received yet.
        _ = activity.woken() => return,
        _ = ending.changed() => return,
    };
    if let Ok(stream) = stream {
        connection::serve(service, stream, activity, ending).await;
    }
}
