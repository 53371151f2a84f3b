//! A cloud in memory with one kind of workload: a container group that runs a job.

use cudock_facts::Facts;
use cudock_facts::services::AzureService;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{LazyLock, Mutex};
use std::time::Duration;

use cudock_azure::{Call, DeploymentSpec, ExistingResources, Plane, Step, Terminal, WorkKind, deployment};
use cudock_base::{Secret, Timestamp, Usd};
use cudock_deploy::{
    ApiError, ApiErrorReason, ApiReply, Clock, CloudApi, DeployOutput, Deployer, DeploymentRecord, Journal,
    Owner, PhaseLimits, PlannedDeployment,
};
use cudock_http::WebSocket;
use serde_json::{Value, json};

pub(crate) const SUBSCRIPTION: &str = "11111111-2222-3333-4444-555555555555";
pub(crate) const OWNER: &str = "ada@laptop";
pub(crate) const STATE: &str = "fedcba987654";

/// Whose the deployments of these tests are.
pub(crate) static OWN: LazyLock<Owner> = LazyLock::new(|| owner(OWNER, STATE));

pub(crate) fn owner(name: &str, state: &str) -> Owner {
    Owner { name: name.to_owned(), state: Some(state.to_owned()) }
}

/// The time by the cloud's clock when a test begins. It is far from that of any machine that runs the tests.
pub(crate) fn beginning() -> Timestamp {
    Timestamp::parse("2031-05-01T12:00:00Z").unwrap()
}

/// What happens to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The cloud refuses it.
    Refused,
    NoCapacity,
    /// The command is killed before the request arrives.
    KilledBefore,
    /// The command is killed after the request was carried out.
    KilledAfter,
    /// Ctrl-C while it is carried out.
    Interrupted,
}

/// Looks at a step before it is carried out.
type StepCheck = Box<dyn Fn(&Step) + Send>;

/// What the job does.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Script {
    pub(crate) pull: u64,
    pub(crate) work: u64,
    pub(crate) exit_code: i32,
}

/// A cloud whose time passes with each request and each pause.
pub(crate) struct ScriptedCloud {
    /// Seconds since the beginning.
    seconds: AtomicU64,
    script: Mutex<Script>,
    /// Paths that exist, in lower case, and when they were created.
    resources: Mutex<BTreeMap<String, u64>>,
    /// The number of the request that changes something, and what happens to it.
    fault: Mutex<Option<(usize, Fault)>>,
    changes: AtomicU64,
    pub(crate) interrupted: AtomicBool,
    /// Called with each request that changes something, before it is carried out.
    pub(crate) before: Mutex<Option<StepCheck>>,
    events: Mutex<Vec<Value>>,
    tags: Mutex<BTreeMap<String, Value>>,
    /// When machines are taken away, in seconds after their creation, by run.
    evictions: Mutex<BTreeMap<String, u64>>,
    /// The list of blobs in the storage of checkpoints.
    pub(crate) blobs: Mutex<Option<String>>,
    /// The host of the Batch account of the user; none if there is no account.
    pub(crate) batch_host: Mutex<Option<&'static str>>,
}

impl Default for ScriptedCloud {
    fn default() -> Self {
        Self {
            seconds: AtomicU64::new(0),
            script: Mutex::new(Script { pull: 60, work: 600, exit_code: 0 }),
            resources: Mutex::default(),
            fault: Mutex::new(None),
            changes: AtomicU64::new(0),
            interrupted: AtomicBool::new(false),
            before: Mutex::new(None),
            events: Mutex::default(),
            tags: Mutex::default(),
            evictions: Mutex::default(),
            blobs: Mutex::default(),
            batch_host: Mutex::new(None),
        }
    }
}

impl ScriptedCloud {
    pub(crate) fn with_fault(request: usize, fault: Fault) -> Self {
        Self { fault: Mutex::new(Some((request, fault))), ..Self::default() }
    }

    pub(crate) fn set_script(&self, script: Script) {
        *self.script.lock().unwrap() = script;
    }

    /// Takes away the machine of a run some seconds after its creation.
    pub(crate) fn evict(&self, run_id: &str, after: u64) {
        self.evictions.lock().unwrap().insert(run_id.to_owned(), after);
    }

    pub(crate) fn advance(&self, seconds: u64) {
        self.seconds.fetch_add(seconds, Ordering::SeqCst);
    }

    /// Deletes everything as the reaper does at the end of the time to live, and returns when.
    pub(crate) fn delete_groups(&self) -> Timestamp {
        for id in self.resources() {
            if !id.contains("/providers/") {
                self.event("Microsoft.Resources/subscriptions/resourceGroups/delete", &id);
            }
        }
        self.resources.lock().unwrap().clear();
        self.now()
    }

    pub(crate) fn resources(&self) -> Vec<String> {
        self.resources.lock().unwrap().keys().cloned().collect()
    }

    /// How many requests have changed something.
    pub(crate) fn changes(&self) -> usize {
        usize::try_from(self.changes.load(Ordering::SeqCst)).unwrap()
    }

    fn time(&self) -> u64 {
        self.seconds.load(Ordering::SeqCst)
    }

    fn stamp(seconds: u64) -> String {
        beginning().plus(Duration::from_secs(seconds)).to_string()
    }

    fn event(&self, operation: &str, id: &str) {
        self.event_at(operation, id, self.time());
    }

    fn event_at(&self, operation: &str, id: &str, seconds: u64) {
        let time = Self::stamp(seconds);
        self.events.lock().unwrap().push(json!({
            "operationName": {"value": operation}, "status": {"value": "Accepted"},
            "eventTimestamp": time, "resourceId": id,
        }));
    }

    fn apply(&self, step: &Step) {
        let path = step.call.path.split('?').next().unwrap().to_owned();
        let key = path.to_ascii_lowercase();
        let mut resources = self.resources.lock().unwrap();
        if step.call.method == "DELETE" {
            if resources.contains_key(&key)
                && key.contains("/resourcegroups/")
                && !key.contains("/providers/")
            {
                self.event("Microsoft.Resources/subscriptions/resourceGroups/delete", &path);
            }
            resources.retain(|id, _| *id != key && !id.starts_with(&format!("{key}/")));
            return;
        }
        let time = self.time();
        resources.insert(key.clone(), time);
        if key.contains("microsoft.containerinstance") {
            self.event("Microsoft.ContainerInstance/containerGroups/write", &path);
        }
        // A template in the group creates the machine.
        if let Some((group, name)) = key.split_once("/providers/microsoft.resources/deployments/")
            && group.contains("/resourcegroups/")
        {
            let machine = format!("{group}/providers/microsoft.compute/virtualmachines/{name}");
            if let Some((_, after)) =
                self.evictions.lock().unwrap().iter().find(|(run, _)| key.contains(run.as_str()))
            {
                self.event_at("Microsoft.Compute/virtualMachines/delete", &machine, time + after);
            }
            resources.insert(machine, time);
        }
        // The template that comes first creates both groups.
        if let Some((scope, run)) = key.split_once("/providers/microsoft.resources/deployments/cudock-")
            && !scope.contains("/resourcegroups/")
        {
            for group in [format!("cudock-{run}"), format!("cudock-{run}-reaper")] {
                resources.insert(format!("{scope}/resourcegroups/{group}"), time);
                let tags = step.call.body.as_ref().unwrap().redacted()["tags"].clone();
                self.tags.lock().unwrap().insert(group, tags);
            }
        }
    }

    /// A host that does not exist answers nothing.
    fn reach(&self, call: &Call) -> Result<(), ApiError> {
        let Plane::Batch { endpoint, .. } = &call.plane else { return Ok(()) };
        let host = *self.batch_host.lock().unwrap();
        if host.is_some() && endpoint.as_deref() == host {
            return Ok(());
        }
        Err(ApiError::new(ApiErrorReason::Outside, format!("{endpoint:?} does not exist")))
    }

    /// The container group of a run, in the state that the time since its creation gives it.
    fn container_group(&self, created: u64) -> Value {
        let script = *self.script.lock().unwrap();
        let started = created + script.pull;
        let ended = started + script.work;
        let now = self.time();
        let (state, events) = if now < started {
            (json!({"state": "Waiting"}), json!([{"name": "Pulling"}]))
        } else if now < ended {
            (json!({"state": "Running", "startTime": Self::stamp(started)}), json!([{"name": "Pulled"}]))
        } else {
            let state = json!({
                "state": "Terminated", "exitCode": script.exit_code,
                "startTime": Self::stamp(started), "finishTime": Self::stamp(ended),
            });
            (state, json!([]))
        };
        let container = json!({
            "name": "main", "properties": {"instanceView": {"currentState": state, "events": events}},
        });
        json!({"properties": {"provisioningState": "Succeeded", "containers": [container]}})
    }

    /// The machine of a run, unless it was taken away.
    fn machine(&self, path: &str, created: u64) -> Option<Value> {
        let evictions = self.evictions.lock().unwrap();
        let eviction =
            evictions.iter().find(|(run, _)| path.contains(run.as_str())).map(|(_, after)| created + after);
        let is_there = eviction.is_none_or(|end| self.time() < end);
        is_there.then(|| {
            json!({"properties": {
                "provisioningState": "Succeeded", "timeCreated": Self::stamp(created),
                "instanceView": {"statuses": [{"code": "PowerState/running"}]},
            }})
        })
    }

    /// The command that waits for the end of the program on a machine.
    fn run_command(&self, created: u64) -> Value {
        let script = *self.script.lock().unwrap();
        let view = if self.time() < created + script.work {
            json!({"executionState": "Running"})
        } else {
            json!({"executionState": "Succeeded", "exitCode": script.exit_code})
        };
        json!({"properties": {"instanceView": view}})
    }

    /// The groups as the Resource Graph lists them.
    fn groups(&self) -> Vec<Value> {
        let tags = self.tags.lock().unwrap();
        let group = |id: &String| {
            let name = id.split_once("/resourcegroups/")?.1;
            Some(json!({"id": id, "name": name, "tags": tags.get(name)?}))
        };
        self.resources().iter().filter_map(group).collect()
    }
}

impl CloudApi for ScriptedCloud {
    fn run(&self, step: &Step) -> Result<ApiReply, ApiError> {
        if let Some(check) = &*self.before.lock().unwrap() {
            check(step);
        }
        self.advance(1);
        self.reach(&step.call)?;
        let number = usize::try_from(self.changes.fetch_add(1, Ordering::SeqCst)).unwrap();
        let fault =
            self.fault.lock().unwrap().filter(|(request, _)| *request == number).map(|(_, fault)| fault);
        match fault {
            Some(Fault::Refused) => return Err(ApiError::new(ApiErrorReason::Refused, "the cloud says no")),
            Some(Fault::NoCapacity) => return Err(ApiError::new(ApiErrorReason::NoCapacity, "no capacity")),
            Some(Fault::KilledBefore) => panic!("killed before request {number}"),
            Some(Fault::KilledAfter) => {
                self.apply(step);
                panic!("killed after request {number}");
            }
            Some(Fault::Interrupted) => self.interrupted.store(true, Ordering::SeqCst),
            None => {}
        }
        self.apply(step);
        Ok(ApiReply::default())
    }

    fn send(&self, call: &Call) -> Result<ApiReply, ApiError> {
        let path = call.path.split('?').next().unwrap().to_ascii_lowercase();
        if path.ends_with("/logs") {
            return Ok(ApiReply {
                body: json!({"content": "GPU 0: Tesla T4 (UUID: GPU-1)\nloss 0.1\n"}),
                retry_after: None,
            });
        }
        let not_found = || ApiError::new(ApiErrorReason::NotFound, format!("{path} was not found"));
        self.reach(call)?;
        if path.ends_with("/batchaccounts/gpubatch") {
            let host = self.batch_host.lock().unwrap().ok_or_else(not_found)?;
            let body = json!({"location": "westeurope", "properties": {"accountEndpoint": host}});
            return Ok(ApiReply { body, retry_after: None });
        }
        let created = self.resources.lock().unwrap().get(&path).copied();
        if let Some((machine, _)) = path.split_once("/runcommands/") {
            let created = self.resources.lock().unwrap().get(machine).copied().ok_or_else(not_found)?;
            self.machine(&path, created).ok_or_else(not_found)?;
            return Ok(ApiReply { body: self.run_command(created), retry_after: None });
        }
        match created {
            Some(created) if path.contains("/virtualmachines/") => {
                Ok(ApiReply { body: self.machine(&path, created).ok_or_else(not_found)?, retry_after: None })
            }
            Some(created) if path.contains("containergroups") => {
                Ok(ApiReply { body: self.container_group(created), retry_after: None })
            }
            Some(_) => Ok(ApiReply {
                body: json!({"properties": {"provisioningState": "Succeeded"}}),
                retry_after: None,
            }),
            None => Err(not_found()),
        }
    }

    fn list(&self, call: &Call) -> Result<Vec<Value>, ApiError> {
        if call.path.contains("Microsoft.ResourceGraph") {
            return Ok(self.groups());
        }
        Ok(self.events.lock().unwrap().clone())
    }

    fn download(&self, address: &Secret, _: Option<&Secret>) -> Result<String, ApiError> {
        let is_list = address.expose().contains("comp=list");
        let list = self.blobs.lock().unwrap().clone().filter(|_| is_list);
        list.ok_or_else(|| ApiError::new(ApiErrorReason::NotFound, "there are no files"))
    }

    fn connect(&self, _: &Terminal) -> Result<WebSocket, ApiError> {
        Err(ApiError::new(ApiErrorReason::Refused, "there are no terminals"))
    }

    fn now(&self) -> Timestamp {
        beginning().plus(Duration::from_secs(self.time()))
    }
}

/// Pauses are time that passes in the cloud.
impl Clock for ScriptedCloud {
    fn elapsed(&self) -> Duration {
        Duration::from_secs(self.time())
    }

    fn sleep(&self, _: Duration) {
        self.advance(1);
    }
}

/// Keeps what a deployment reported.
#[derive(Default)]
pub(crate) struct Recorder {
    pub(crate) output: Mutex<String>,
    pub(crate) running: Mutex<Vec<String>>,
    pub(crate) next: Mutex<Vec<String>>,
}

impl DeployOutput for Recorder {
    fn running(&self, record: &DeploymentRecord, _: Option<&str>) {
        self.running.lock().unwrap().push(record.name.clone());
    }

    fn output(&self, text: &str) {
        self.output.lock().unwrap().push_str(text);
    }

    fn next_placement(&self, error: &str) {
        self.next.lock().unwrap().push(error.to_owned());
    }
}

pub(crate) fn deployer<'a>(cloud: &'a ScriptedCloud, journal: &'a Journal) -> Deployer<'a> {
    Deployer {
        cloud,
        deleter: cloud,
        journal,
        clock: cloud,
        interrupted: &cloud.interrupted,
        on_progress: &|_| {},
        outputs: None,
        limits: PhaseLimits::default(),
    }
}

/// A job of this name and run. It expires after two hours by the cloud's clock.
pub(crate) fn planned(name: &str, run_id: &str) -> PlannedDeployment {
    let work =
        WorkKind::Job { items: Vec::new(), concurrent: 1, time_limit: Duration::from_secs(3600), retries: 0 };
    planned_work(name, run_id, work)
}

/// A service that stays.
pub(crate) fn planned_service(name: &str, run_id: &str) -> PlannedDeployment {
    planned_work(name, run_id, WorkKind::Serve { port: 8000, ready_path: None, is_public: true })
}

/// A job in the Batch account of the user, with its host if the account was queried for it.
pub(crate) fn planned_batch(name: &str, run_id: &str, host: Option<&str>) -> PlannedDeployment {
    let mut spec = planned(name, run_id).spec;
    spec.service = AzureService::Batch;
    spec.size = Some("Standard_NC4as_T4_v3".to_owned());
    spec.existing.batch_account = Some("shared/gpubatch".to_owned());
    spec.existing.details.endpoint = host.map(str::to_owned);
    with_deployment(spec)
}

/// A job on a Spot machine.
pub(crate) fn planned_spot(name: &str, run_id: &str) -> PlannedDeployment {
    let job = planned(name, run_id).spec;
    let size = Some("Standard_NC4as_T4_v3".to_owned());
    with_deployment(DeploymentSpec {
        service: AzureService::Vm,
        size,
        gpus: 1,
        cpus: 4.0,
        memory_gib: 28.0,
        is_spot: true,
        ..job
    })
}

fn planned_work(name: &str, run_id: &str, work: WorkKind) -> PlannedDeployment {
    with_deployment(DeploymentSpec {
        name: name.to_owned(),
        run_id: run_id.to_owned(),
        subscription: SUBSCRIPTION.to_owned(),
        region: "westeurope".to_owned(),
        service: AzureService::Aci,
        size: None,
        gpus: 0,
        cpus: 1.0,
        memory_gib: 2.0,
        instances: 1,
        is_spot: false,
        price_per_hour: Usd::from_cents(360),
        image: "registry.example/train:1".to_owned(),
        command: vec!["python".to_owned(), "train.py".to_owned()],
        variables: Vec::new(),
        registry: None,
        work,
        expires: beginning().plus(Duration::from_secs(7200)),
        idle: None,
        checkpoints: None,
        outputs: None,
        existing: ExistingResources::default(),
        owner: OWNER.to_owned(),
        state: Some(STATE.to_owned()),
    })
}

fn with_deployment(spec: DeploymentSpec) -> PlannedDeployment {
    let deployment = deployment(&Facts::embedded(), &spec).unwrap();
    PlannedDeployment { spec, deployment }
}
