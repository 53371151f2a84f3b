//! The listener, the threads that serve connections, and graceful shutdown.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use cudock_base::{ErrorKind, Report};
use socket2::{Domain, Protocol, Socket, Type};
use tokio::runtime::Builder;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{Notify, mpsc, watch};
use tokio::time::MissedTickBehavior;

use crate::connection;
use crate::connection::descriptors;
use crate::connection::drain::DrainSignal;
use crate::connection::monitor::{ConnectionActivity, ConnectionMonitor};
use crate::connection::stream::MonitoredStream;
use crate::connection::tls::{Tls, TlsError};
use crate::handler::Handler;
use crate::limits::memory::Budget;
use crate::request::origin::Reach;
use crate::resources::ServerResources;
use crate::settings::ServerSettings;
use crate::shared::ServerShared;

/// Backlog of connections that were not accepted yet.
const BACKLOG: i32 = 4096;
/// Interval of checks for changed files: keys, certificates, and those of the handler.
const WATCH_INTERVAL: Duration = Duration::from_secs(1);
/// How long connections without a request stay open during shutdown, so that a request already on its way is still
/// processed.
const DRAIN_GRACE: Duration = Duration::from_millis(200);
/// Number of tasks that a thread runs before it polls sockets and replies again. With the runtime's default of 61, a
/// few clients that send as fast as they can delay all others by a tenth of a second.
const TASKS_PER_POLL: u32 = 16;
/// How long to wait at the end until the last traces are sent.
const EXPORT_TIMEOUT: Duration = Duration::from_secs(5);
/// An error that prevents the server from running.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    #[error("cannot listen on {address}")]
    Listen { address: SocketAddr, source: io::Error },
    /// Threads, signals or timers are not available.
    #[error("cannot set the server up")]
    System(#[from] io::Error),
    #[error(transparent)]
    Tls(#[from] TlsError),
}

impl Report for ServerError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Listen { .. } | Self::System(_) => ErrorKind::Outside,
            Self::Tls(_) => ErrorKind::Input,
        }
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Self::Listen { .. } => {
                vec!["another program may use the port; `--port 0` takes a free one".to_owned()]
            }
            Self::System(_) | Self::Tls(_) => Vec::new(),
        }
    }
}

pub struct Server {
    settings: ServerSettings,
    budget: Arc<Budget>,
    drain: DrainSignal,
    listeners: Vec<TcpListener>,
    tls: Option<Tls>,
    first_reserved: i32,
}

/// A connection on its way to its thread.
struct AcceptedStream {
    stream: TcpStream,
    reach: Reach,
}

impl Server {
    /// Binds the addresses, so that they are known and taken before anything slow is loaded.
    pub fn bind(settings: ServerSettings, resources: &ServerResources) -> Result<Self, ServerError> {
        cudock_mmap::return_large_blocks();
        let first_reserved = descriptors::raise_limit();
        let tls = settings.tls.as_ref().map(Tls::new).transpose()?;
        let mut listeners = Vec::new();
        for &address in &settings.listen {
            listeners.push(listen(address).map_err(|source| ServerError::Listen { address, source })?);
        }
        let (budget, drain) = (Arc::clone(&resources.budget), resources.drain.clone());
        Ok(Self { settings, budget, drain, listeners, tls, first_reserved })
    }

    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.listeners.iter().filter_map(|listener| listener.local_addr().ok()).collect()
    }

    /// Serves until SIGTERM, SIGINT or [`DrainSignal::begin`]; then finishes accepted requests and returns. `load` runs
    /// on a thread of its own while requests are already accepted; once it has succeeded, `ready` is called.
    pub fn run<H, E>(
        self,
        handler: H,
        load: impl FnOnce() -> Result<(), E> + Send + 'static,
        ready: impl FnOnce(),
    ) -> Result<(), E>
    where
        H: Handler,
        E: From<ServerError> + Send + 'static,
    {
        let (end, ending) = watch::channel(false);
        let (start, client_timeout) = (Instant::now(), self.settings.client_timeout);
        let io_threads = self.settings.io_threads.max(1);
        let shared = Arc::new(ServerShared {
            handler,
            settings: self.settings,
            drain: self.drain,
            budget: self.budget,
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
            let thread = io_thread(number, Arc::clone(&shared), monitor.clone(), streams);
            threads.push(thread.map_err(ServerError::System)?);
        }
        let runtime = Builder::new_current_thread().enable_all().build().map_err(ServerError::System)?;
        let outcome = runtime.block_on(async {
            let mut signals = Signals::new().map_err(ServerError::System)?;
            let mut accepting = tokio::task::JoinSet::new();
            for listener in self.listeners {
                let listener = tokio::net::TcpListener::from_std(listener).map_err(ServerError::System)?;
                accepting.spawn(accept(listener, Arc::clone(&shared), inboxes.clone()));
            }
            drop(inboxes);
            let loaded = tokio::select! {
                loaded = tokio::task::spawn_blocking(load) => match loaded {
                    Ok(loaded) => loaded.map(|()| true),
                    Err(panicked) => Err(ServerError::System(io::Error::other(panicked)).into()),
                },
                () = signals.shutdown() => Ok(false),
                () = shared.drain.begun() => Ok(false),
            };
            let is_ready = matches!(loaded, Ok(true));
            if is_ready {
                ready();
                run_until_signaled(&shared, &mut signals).await;
            }
            shared.drain.begin();
            if is_ready {
                shared.settings.log.event("draining", &[]);
            }
            // The threads can end only once no more connections are passed to them.
            accepting.shutdown().await;
            if is_ready {
                tokio::time::sleep(DRAIN_GRACE).await;
            }
            loaded.map(drop)
        });
        // Connections finish their requests and close; those still open at the limit are dropped.
        let _ = end.send(true);
        let limit = Instant::now() + shared.settings.drain_timeout;
        while shared.connections.load(Ordering::Acquire) > 0 && Instant::now() < limit {
            thread::sleep(Duration::from_millis(5));
        }
        let left = shared.connections.load(Ordering::Acquire);
        if left == 0 {
            shared.handler.close();
            for thread in threads {
                // A thread that panicked has already reported it.
                let _ = thread.join();
            }
        }
        if let Some(exporter) = &shared.settings.exporter {
            exporter.close(EXPORT_TIMEOUT);
        }
        shared.settings.log.event("ended", &[("connections_left", &left.to_string())]);
        runtime.shutdown_background();
        outcome
    }
}

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

/// Reloads on SIGHUP and on changed files, until the server is to end.
async fn run_until_signaled<H: Handler>(shared: &ServerShared<H>, signals: &mut Signals) {
    let hangup = Notify::new();
    tokio::select! {
        () = follow_signals(shared, signals, &hangup) => {}
        // The handler may take minutes, for which signals and credentials must not wait.
        () = reload_handler(&shared.handler, &hangup) => {}
    }
}

/// Reloads credentials, and passes SIGHUP on, until the server is to end.
async fn follow_signals<H: Handler>(shared: &ServerShared<H>, signals: &mut Signals, hangup: &Notify) {
    let mut tick = tokio::time::interval(WATCH_INTERVAL);
    loop {
        tokio::select! {
            _ = signals.terminate.recv() => return,
            _ = signals.interrupt.recv() => return,
            () = shared.drain.begun() => return,
            _ = signals.reload.recv() => {
                shared.refresh_credentials();
                hangup.notify_one();
            }
            _ = tick.tick() => shared.refresh_credentials(),
        }
    }
}

/// Reloads the handler on SIGHUP and on changed files, forever.
async fn reload_handler<H: Handler>(handler: &H, hangup: &Notify) {
    let mut tick = tokio::time::interval(WATCH_INTERVAL);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = hangup.notified() => handler.reload().await,
            _ = tick.tick() => handler.refresh().await,
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
async fn accept<H: Handler>(
    listener: tokio::net::TcpListener,
    shared: Arc<ServerShared<H>>,
    inboxes: Vec<mpsc::UnboundedSender<AcceptedStream>>,
) {
    let mut turn = inboxes.iter().cycle();
    let reach = reach_of(&listener);
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // Probably out of file descriptors: another connection must end first. Clients wait in the backlog until
            // then.
            shared.make_room().await;
            continue;
        };
        let full = shared.connections.load(Ordering::Acquire) >= shared.settings.connections;
        if full || stream.as_raw_fd() >= shared.first_reserved {
            shared.make_room().await;
        }
        let Ok(stream) = configure(stream, shared.settings.client_timeout) else { continue };
        let Some(inbox) = turn.next() else { return };
        shared.connections.fetch_add(1, Ordering::AcqRel);
        if inbox.send(AcceptedStream { stream, reach }).is_err() {
            shared.connections.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

/// The clients that can connect to a listener; those of this machine, for which rules are stricter,
/// if its address is unknown.
fn reach_of(listener: &tokio::net::TcpListener) -> Reach {
    let address = listener.local_addr().map(|address| address.ip().to_canonical());
    if address.is_ok_and(|address| !address.is_loopback()) { Reach::Network } else { Reach::Loopback }
}

fn configure(stream: tokio::net::TcpStream, client_timeout: Duration) -> io::Result<TcpStream> {
    let stream = stream.into_std()?;
    stream.set_nodelay(true)?;
    // The system drops a client that does not read its response.
    socket2::SockRef::from(&stream).set_tcp_user_timeout(Some(client_timeout))?;
    Ok(stream)
}

fn io_thread<H: Handler>(
    number: usize,
    shared: Arc<ServerShared<H>>,
    monitor: ConnectionMonitor,
    mut streams: mpsc::UnboundedReceiver<AcceptedStream>,
) -> io::Result<JoinHandle<()>> {
    let runtime = Builder::new_current_thread()
        .enable_all()
        .event_interval(TASKS_PER_POLL)
        .global_queue_interval(TASKS_PER_POLL)
        .build()?;
    thread::Builder::new().name(format!("io {number}")).spawn(move || {
        runtime.block_on(async move {
            shared.handler.start_io_thread();
            tokio::spawn(monitor.clone().run());
            while let Some(accepted) = streams.recv().await {
                tokio::spawn(serve(Arc::clone(&shared), accepted, monitor.register()));
            }
            while shared.connections.load(Ordering::Acquire) > 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        });
    })
}

/// Decrements the number of connections however the task ends.
struct ConnectionGuard<H>(Arc<ServerShared<H>>);

impl<H> Drop for ConnectionGuard<H> {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::AcqRel);
        self.0.ended.notify_one();
    }
}

async fn serve<H: Handler>(
    shared: Arc<ServerShared<H>>,
    AcceptedStream { stream, reach }: AcceptedStream,
    activity: Arc<ConnectionActivity>,
) {
    let counted = ConnectionGuard(shared);
    let shared = &counted.0;
    let Ok(stream) = tokio::net::TcpStream::from_std(stream) else { return };
    if let Ok(address) = stream.peer_addr() {
        activity.set_peer(address.ip().to_canonical());
    }
    let mut ending = shared.ending.clone();
    let budget = Arc::clone(&shared.budget);
    let stream = MonitoredStream::new(stream, Arc::clone(&activity), budget, shared.tls.is_none());
    let Some(tls) = &shared.tls else {
        return connection::serve(Arc::clone(shared), stream, activity, reach, ending).await;
    };
    let stream = tokio::select! {
        stream = tls.acceptor().accept(stream) => stream,
        // Too slow, evicted, or the server is shutting down: no request has been received yet.
        _ = activity.woken() => return,
        _ = ending.changed() => return,
    };
    if let Ok(stream) = stream {
        connection::serve(Arc::clone(shared), stream, activity, reach, ending).await;
    }
}
