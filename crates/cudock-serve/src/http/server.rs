//! Listening, the threads that serve connections, and the end of both.

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

use super::activity::{Activity, Watchman};
use super::stream::WatchedStream;
use super::tls::{Tls, TlsError};
use super::{connection, descriptors};
use crate::quiet::Quiet;
use crate::reply::Mailbox;
use crate::service::{LoadError, Service};

/// Connections the system keeps until we take them.
const BACKLOG: i32 = 4096;
/// How often changed files are looked for: models, keys, certificates.
const WATCH_EVERY: Duration = Duration::from_secs(1);
/// How long connections without a request stay open once the server is told to end, so that a request already on its
/// way is still answered.
const LAST_REQUESTS: Duration = Duration::from_millis(200);
/// Tasks that a thread runs before it looks for readable sockets and answers again. With the runtime's own 61, a few
/// clients that send as fast as they can hold up all others for a tenth of a second.
const TASKS_BETWEEN_LOOKS: u32 = 16;
/// How long a connection asked to close is waited for before another is asked.
const MAKE_ROOM_AGAIN: Duration = Duration::from_millis(20);

/// A server that cannot run.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// An address cannot be listened on.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why not.
        source: io::Error,
    },
    /// Threads, signals or timers cannot be had.
    #[error("cannot set the server up")]
    System(#[from] io::Error),
    /// Certificate or key are no good.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// Nothing to serve.
    #[error(transparent)]
    Load(#[from] LoadError),
}

/// A server that listens.
pub struct Server {
    service: Arc<Service>,
    listeners: Vec<TcpListener>,
    tls: Option<Tls>,
    first_reserved: i32,
}

/// What all threads share.
struct Shared {
    service: Arc<Service>,
    tls: Option<Tls>,
    ending: watch::Receiver<bool>,
    connections: AtomicUsize,
    /// Told when a connection has ended.
    ended: Notify,
    watchmen: Vec<Watchman>,
    /// The lowest number of a descriptor that connections may not have.
    first_reserved: i32,
}

impl Server {
    /// Listens, so that the addresses are known and taken before the models are loaded.
    pub fn bind(service: Arc<Service>) -> Result<Self, ServerError> {
        cudock_map::return_large_blocks();
        let first_reserved = descriptors::raise_limit();
        let tls = service.settings.tls.as_ref().map(Tls::new).transpose()?;
        let mut listeners = Vec::new();
        for &address in &service.settings.listen {
            listeners.push(listen(address).map_err(|source| ServerError::Listen { address, source })?);
        }
        Ok(Self { service, listeners, tls, first_reserved })
    }

    /// Where it listens.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.listeners.iter().filter_map(|listener| listener.local_addr().ok()).collect()
    }

    /// Loads the models and serves them until SIGTERM or SIGINT; then answers what was accepted and ends. `ready` is
    /// called once the models are loaded.
    pub fn run(self, ready: impl FnOnce(&Service)) -> Result<(), ServerError> {
        let (end, ending) = watch::channel(false);
        let (start, patience) = (Instant::now(), self.service.settings.client_timeout);
        let io_threads = self.service.settings.io_threads.max(1);
        let shared = Arc::new(Shared {
            service: Arc::clone(&self.service),
            tls: self.tls,
            ending,
            connections: AtomicUsize::new(0),
            ended: Notify::new(),
            watchmen: (0..io_threads).map(|_| Watchman::new(start, patience)).collect(),
            first_reserved: self.first_reserved,
        });
        let mut threads = Vec::new();
        let mut inboxes = Vec::new();
        for (number, watchman) in shared.watchmen.iter().enumerate() {
            let (inbox, streams) = mpsc::unbounded_channel();
            inboxes.push(inbox);
            threads.push(io_thread(number, Arc::clone(&shared), watchman.clone(), streams)?);
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
                () = signals.end() => Ok(false),
            };
            if let Ok(true) = loaded {
                ready(&self.service);
                until_told_to_end(&shared, &mut signals).await;
                self.service.settings.log.event("draining", &[]);
            }
            self.service.drain();
            // However it came to this: only once nobody hands them connections can the threads end.
            accepting.shutdown().await;
            if let Ok(true) = loaded {
                tokio::time::sleep(LAST_REQUESTS).await;
            }
            loaded.map(drop)
        });
        // Connections finish what they have and close; who is still there at the limit is left.
        let _ = end.send(true);
        let limit = Instant::now() + self.service.settings.drain_timeout;
        while shared.connections.load(Ordering::Acquire) > 0 && Instant::now() < limit {
            thread::sleep(Duration::from_millis(5));
        }
        let left = shared.connections.load(Ordering::Acquire);
        if left == 0 {
            self.service.close();
            for thread in threads {
                // A thread that panicked has already said so.
                let _ = thread.join();
            }
        }
        self.service.settings.log.event("ended", &[("connections_left", &left.to_string())]);
        runtime.shutdown_background();
        outcome
    }
}

/// Signals a server listens to.
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

    async fn end(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

impl Shared {
    /// Reads keys and certificates again if they have changed. Those before stay if the new ones cannot be used.
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

    /// Waits until another connection may be had, closing the one that has been idle longest.
    async fn make_room(&self) {
        let before = self.connections.load(Ordering::Acquire);
        loop {
            let ended = self.ended.notified();
            Watchman::evict_oldest(&self.watchmen);
            // Somebody may have become idle meanwhile.
            let _ = tokio::time::timeout(MAKE_ROOM_AGAIN, ended).await;
            if self.connections.load(Ordering::Acquire) < before.max(1) {
                return;
            }
        }
    }
}

/// Reloads when told to, by a signal or by the folder, until the signal to end.
async fn until_told_to_end(shared: &Arc<Shared>, signals: &mut Signals) {
    let service = &shared.service;
    let mut tick = tokio::time::interval(WATCH_EVERY);
    loop {
        tokio::select! {
            _ = signals.terminate.recv() => return,
            _ = signals.interrupt.recv() => return,
            _ = signals.reload.recv() => {
                shared.refresh_credentials();
                // What went wrong is in the log and in `/health`.
                let _ = service.reload(None).await;
            }
            _ = tick.tick() => {
                shared.refresh_credentials();
                if service.settings.watch {
                    let service = Arc::clone(service);
                    let _ = tokio::task::spawn_blocking(move || service.follow_folder()).await;
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

/// Takes connections and gives them to the threads in turn.
async fn accept(
    listener: tokio::net::TcpListener,
    shared: Arc<Shared>,
    inboxes: Vec<mpsc::UnboundedSender<TcpStream>>,
) {
    let mut turn = inboxes.iter().cycle();
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // Out of file descriptors, most likely: others must end first. Clients wait with the system until then.
            shared.make_room().await;
            continue;
        };
        let full = shared.connections.load(Ordering::Acquire) >= shared.service.settings.connections;
        if full || stream.as_raw_fd() >= shared.first_reserved {
            shared.make_room().await;
        }
        let Ok(stream) = prepared(stream, shared.service.settings.client_timeout) else { continue };
        let Some(inbox) = turn.next() else { return };
        shared.connections.fetch_add(1, Ordering::AcqRel);
        if inbox.send(stream).is_err() {
            shared.connections.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

fn prepared(stream: tokio::net::TcpStream, patience: Duration) -> io::Result<TcpStream> {
    let stream = stream.into_std()?;
    stream.set_nodelay(true)?;
    // A client that does not take its answer is dropped by the system.
    socket2::SockRef::from(&stream).set_tcp_user_timeout(Some(patience))?;
    Ok(stream)
}

fn io_thread(
    number: usize,
    shared: Arc<Shared>,
    watchman: Watchman,
    mut streams: mpsc::UnboundedReceiver<TcpStream>,
) -> io::Result<JoinHandle<()>> {
    let runtime = Builder::new_current_thread()
        .enable_all()
        .event_interval(TASKS_BETWEEN_LOOKS)
        .global_queue_interval(TASKS_BETWEEN_LOOKS)
        .build()?;
    thread::Builder::new().name(format!("io {number}")).spawn(move || {
        runtime.block_on(async move {
            tokio::spawn(Mailbox::install());
            tokio::spawn(Quiet::install());
            tokio::spawn(watchman.clone().rounds());
            while let Some(stream) = streams.recv().await {
                tokio::spawn(serve(Arc::clone(&shared), stream, watchman.watch()));
            }
            while shared.connections.load(Ordering::Acquire) > 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        });
    })
}

/// Counts a connection down however its task ends.
struct Counted(Arc<Shared>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::AcqRel);
        self.0.ended.notify_one();
    }
}

async fn serve(shared: Arc<Shared>, stream: TcpStream, activity: Arc<Activity>) {
    let counted = Counted(shared);
    let shared = &counted.0;
    let Ok(stream) = tokio::net::TcpStream::from_std(stream) else { return };
    let (service, mut ending) = (Arc::clone(&shared.service), shared.ending.clone());
    let budget = Arc::clone(&service.budget);
    let stream = WatchedStream::new(stream, Arc::clone(&activity), budget, shared.tls.is_none());
    let Some(tls) = &shared.tls else {
        return connection::serve(service, stream, activity, ending).await;
    };
    let stream = tokio::select! {
        stream = tls.acceptor().accept(stream) => stream,
        // Too slow, in the way of others, or the server ends: then nothing has been asked yet.
        _ = activity.woken() => return,
        _ = ending.changed() => return,
    };
    if let Ok(stream) = stream {
        connection::serve(service, stream, activity, ending).await;
    }
}
