//! The stand-in as tests use it.

use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use cudock_base::Timestamp;
use cudock_testkit::client::certificate;
use cudock_testkit::http::secret;
use rustix::process::Pid;
use serde_json::Value;
use tempfile::TempDir;

use crate::cloud::Cloud;
use crate::resources::groups::SHARED_BATCH;
use crate::resources::target::SUBSCRIPTION;
use crate::schedule::Schedule;
use crate::services::batch::BATCH_SUFFIX;
use crate::services::terminal::make_container;
use crate::settings::CloudSettings;
use crate::state::identity::{CLIENT_ID, TENANT};
use crate::wire::route::{BATCH, RUN_HISTORY};
use crate::wire::server::{Shared, Wire, listen, tls_config};

/// Azure on loopback. It is gone when dropped.
#[derive(Debug)]
pub struct StandIn {
    shared: Arc<Shared>,
    addresses: [SocketAddr; 2],
    threads: Vec<thread::JoinHandle<()>>,
    client_secret: String,
    certificate: PathBuf,
    _directory: TempDir,
}

/// The result of a client.
#[derive(Debug)]
pub struct ClientRun {
    pub output: Output,
    /// Whether the schedule killed it.
    pub was_killed: bool,
}

impl StandIn {
    /// Starts it at the current time, without faults. None if `openssl`, which makes its certificate, is missing.
    #[track_caller]
    pub fn start(settings: CloudSettings) -> Option<Self> {
        cudock_testkit::require_program("openssl")?;
        let directory = tempfile::tempdir().unwrap();
        let (certificate, key) = certificate(directory.path(), "stand-in");
        let client_secret = secret();
        let now = Timestamp::now().millis().unwrap_or_default() / 1000;
        let shared = Arc::new(Shared {
            cloud: Mutex::new(Cloud::new(settings, now, client_secret.clone())),
            wire: Mutex::new(Wire::default()),
            client: Mutex::new(None),
            client_known: Condvar::new(),
            is_stopped: AtomicBool::new(false),
            container: make_container(directory.path()),
        });
        let (secure, secure_thread) = listen(&shared, Some(tls_config(&certificate, &key)));
        let (plain, plain_thread) = listen(&shared, None);
        {
            let mut cloud = shared.cloud.lock().unwrap();
            cloud.base = format!("https://localhost:{}", secure.port());
            cloud.storage.signature = secret();
            cloud.seed();
        }
        Some(Self {
            shared,
            addresses: [secure, plain],
            threads: vec![secure_thread, plain_thread],
            client_secret,
            certificate,
            _directory: directory,
        })
    }

    fn cloud(&self) -> MutexGuard<'_, Cloud> {
        self.shared.cloud.lock().unwrap()
    }

    /// The URL of all APIs, over TLS.
    pub fn url(&self) -> String {
        format!("https://localhost:{}", self.addresses[0].port())
    }

    /// The URL of the Batch account that exists before a test.
    pub fn batch_url(&self) -> String {
        let region = self.cloud().settings.shared_region;
        format!("{}{BATCH}{SHARED_BATCH}.{region}.{BATCH_SUFFIX}", self.url())
    }

    /// The URL of the same without TLS.
    pub fn plain_url(&self) -> String {
        format!("http://127.0.0.1:{}", self.addresses[1].port())
    }

    /// The certificate that clients have to trust.
    pub fn certificate(&self) -> &Path {
        &self.certificate
    }

    /// The environment variables with which a client finds this cloud and signs in to it.
    pub fn environment(&self) -> Vec<(&'static str, String)> {
        vec![
            ("CUDOCK_AZURE_RESOURCE_MANAGER", self.url()),
            ("CUDOCK_AZURE_BATCH", format!("{}{BATCH}{{host}}", self.url())),
            ("CUDOCK_AZURE_ML", format!("{}{RUN_HISTORY}{{host}}", self.url())),
            ("AZURE_AUTHORITY_HOST", self.plain_url()),
            ("SSL_CERT_FILE", self.certificate.to_string_lossy().into_owned()),
            ("AZURE_TENANT_ID", TENANT.to_owned()),
            ("AZURE_CLIENT_ID", CLIENT_ID.to_owned()),
            ("AZURE_CLIENT_SECRET", self.client_secret.clone()),
            ("AZURE_SUBSCRIPTION_ID", SUBSCRIPTION.to_owned()),
        ]
    }

    /// The URL of a blob container, with its signature.
    pub fn storage(&self) -> String {
        self.cloud().storage.url(&self.plain_url())
    }

    /// The names of the blobs in it.
    pub fn blobs(&self) -> Vec<String> {
        self.cloud().storage.blobs.keys().cloned().collect()
    }

    /// Applies a schedule to the requests from now on.
    pub fn set_schedule(&self, schedule: Schedule) {
        let mut wire = self.shared.wire.lock().unwrap();
        (wire.schedule, wire.count) = (schedule, 0);
    }

    /// The requests so far, as `METHOD /path`.
    pub fn requests(&self) -> Vec<String> {
        self.shared.wire.lock().unwrap().seen.clone()
    }

    /// Runs a client in the environment of this cloud until it ends or is killed.
    pub fn run(&self, command: &mut Command) -> ClientRun {
        command.envs(self.environment()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().unwrap();
        let pid = Pid::from_child(&child);
        *self.shared.client.lock().unwrap() = Some(pid);
        self.shared.client_known.notify_all();
        let output = child.wait_with_output().unwrap();
        let was_killed = self.shared.client.lock().unwrap().take().is_none();
        ClientRun { output, was_killed }
    }

    /// Lets time pass.
    pub fn advance(&self, time: Duration) {
        self.cloud().advance(time.as_secs());
    }

    /// The cloud's time.
    pub fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.cloud().now * 1000)
    }

    /// Everything that was created and still exists, by id: resources, groups, and pools and jobs
    /// of Batch. Without [`Self::records`].
    pub fn leftovers(&self) -> Vec<String> {
        let cloud = self.cloud();
        let kept =
            cloud.resources.values().filter(|resource| !resource.is_seeded && !cloud.is_record(resource));
        let resources = kept.map(|resource| resource.target.id.clone());
        resources.chain(cloud.batch.unfinished()).collect()
    }

    /// Leftovers of deployments in the subscription's history: records, and roles of principals
    /// that are gone.
    pub fn records(&self) -> Vec<String> {
        let cloud = self.cloud();
        let listed = cloud.resources.values().filter(|resource| cloud.is_record(resource));
        listed.map(|resource| resource.target.id.clone()).collect()
    }

    /// Number of seconds for which anything was billed so far: one for each second of each machine.
    pub fn billed_seconds(&self) -> u64 {
        self.cloud().billed_seconds("")
    }

    /// The resources that are billed at the moment, by id in lower case.
    pub fn billed(&self) -> Vec<String> {
        let cloud = self.cloud();
        let open = cloud.charges.iter().filter(|charge| charge.until.is_none());
        open.map(|charge| charge.key.clone()).collect()
    }

    /// The runs of all workflows, also of those that are gone, with the status of each action.
    pub fn workflow_runs(&self) -> Vec<Value> {
        self.cloud().workflow_runs.values().flatten().cloned().collect()
    }
}

impl Drop for StandIn {
    fn drop(&mut self) {
        self.shared.is_stopped.store(true, Ordering::SeqCst);
        for address in self.addresses {
            // Wakes the accepting thread.
            let _ = TcpStream::connect(address);
        }
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}
