//! Hostile web pages in a real browser, which attack the servers that cudock starts; also after DNS rebinding.
//!
//! The attacks are in `page/attack.js`. Needs ONNX Runtime, and the requirements of the tests of the status page.

use std::collections::BTreeSet;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use cudock_testkit::client::{TestClient, eventually, post};
use cudock_testkit::http::{Reply, Server as Upstream};
use serde_json::{Value, json};

use crate::gateway;
use crate::serve_support::made::times;
use crate::serve_support::server::{Server, Stage};

const MANAGE: [&str; 2] = ["/v2/repository/models/a/unload", "/v2/repository/models/b/load"];
const NEEDS_MODEL: [&str; 2] = ["/predict/b", "/v2/models/b/config"];

/// Names of pages of another origin: of another site, and of another port of the same host.
const FOREIGN: [&str; 2] = ["evil.test", "127.0.0.1"];

/// A gateway that ends when it goes out of scope.
struct Gateway {
    process: Child,
    address: SocketAddr,
    _directory: tempfile::TempDir,
}

impl Gateway {
    #[track_caller]
    fn start(arguments: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut command = gateway::gateway(directory.path(), arguments);
        let (process, address) = gateway::start(command.args(["--port", "0"]));
        Self { process, address: address.parse().unwrap(), _directory: directory }
    }

    fn port(&self) -> u16 {
        self.address.port()
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

struct Browser {
    python: PathBuf,
    chromium: PathBuf,
}

/// A page and the servers that it attacks.
struct Scene {
    page: String,
    targets: Vec<(u16, &'static [&'static str])>,
}

impl Scene {
    /// A page of this name on a server of the attacker.
    fn foreign(name: &str, targets: &[(u16, &'static [&'static str])]) -> Self {
        Self { page: format!("http://{name}:0"), targets: targets.to_vec() }
    }

    /// A page whose name has been pointed at the server that it attacks.
    fn rebound(port: u16, paths: &'static [&'static str]) -> Self {
        Self { page: format!("http://evil.test:{port}"), targets: vec![(port, paths)] }
    }

    fn is_rebound(&self) -> bool {
        !self.page.ends_with(":0")
    }

    fn to_json(&self) -> Value {
        let name = if self.is_rebound() { "evil.test" } else { "127.0.0.1" };
        let target =
            |(port, paths): &(u16, &[&str])| json!({"url": format!("http://{name}:{port}"), "paths": paths});
        json!({"page": self.page, "targets": self.targets.iter().map(target).collect::<Vec<_>>()})
    }
}

impl Browser {
    /// Opens the pages, which attack their targets. Returns the statuses that each could read.
    #[track_caller]
    fn attack(&self, scenes: &[Scene]) -> Vec<Vec<u64>> {
        let output = Command::new(&self.python)
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/page/attack.py"))
            .arg(&self.chromium)
            .arg(json!(scenes.iter().map(Scene::to_json).collect::<Vec<_>>()).to_string())
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{errors}");
        let read: Vec<Vec<Value>> =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {errors}"));
        let statuses =
            |page: &Vec<Value>| page.iter().map(|response| response["status"].as_u64().unwrap()).collect();
        read.iter().map(statuses).collect()
    }

    /// Attacks from foreign origins, and from names that are rebound to each server. Nobody may read more than a refusal.
    #[track_caller]
    fn attack_in_vain(&self, targets: &[(u16, &'static [&'static str])]) {
        let foreign = FOREIGN.iter().map(|name| Scene::foreign(name, targets));
        let rebound = targets.iter().map(|(port, paths)| Scene::rebound(*port, paths));
        let scenes: Vec<Scene> = foreign.chain(rebound).collect();
        for (scene, read) in scenes.iter().zip(self.attack(&scenes)) {
            assert_eq!(read.is_empty(), !scene.is_rebound(), "{}: {read:?}", scene.page);
            assert!(read.iter().all(|status| [403, 405].contains(status)), "{}: {read:?}", scene.page);
        }
    }
}

fn browser() -> Option<Browser> {
    cudock_testkit::require_browser().map(|(python, chromium)| Browser { python, chromium })
}

fn stage() -> Option<Stage> {
    let stage = Stage::new()?;
    stage.write("models/a.onnx", &times(2.0));
    stage.write("models/b.onnx", &times(3.0));
    Some(stage)
}

/// Loads and unloads so far.
fn changes(server: &Server) -> (u64, u64) {
    (server.metric("cudock_model_loads_total"), server.metric("cudock_model_unloads_total"))
}

#[test]
fn pages_of_other_origins_neither_load_nor_unload_models_also_after_dns_rebinding() {
    let (Some(browser), Some(stage)) = (browser(), stage()) else { return };
    let servers = [
        (stage.serve("models", &[]), &MANAGE[..]),
        (stage.serve("models", &["--on-demand"]), &NEEDS_MODEL),
        (stage.serve("models", &["--listen", "0.0.0.0:0"]), &MANAGE),
    ];
    let before: Vec<_> = servers.iter().map(|(server, _)| changes(server)).collect();
    browser.attack_in_vain(&servers.each_ref().map(|(server, paths)| (server.address.port(), *paths)));
    let after: Vec<_> = servers.iter().map(|(server, _)| changes(server)).collect();
    assert_eq!(after, before);
}

/// Without this, the test above could pass because the attacks do not work.
#[test]
fn the_same_attacks_change_a_server_that_allows_their_hosts() {
    let (Some(browser), Some(stage)) = (browser(), stage()) else { return };
    let servers =
        ["evil.test", "127.0.0.1", "evil.test"].map(|name| stage.serve("models", &["--allow-host", name]));
    let [cross_site, same_site, rebound] = servers.each_ref().map(|server| server.address.port());
    let read = browser.attack(&[
        Scene::foreign("evil.test", &[(cross_site, &MANAGE)]),
        Scene::foreign("127.0.0.1", &[(same_site, &MANAGE)]),
        Scene::rebound(rebound, &MANAGE),
    ]);
    assert!(read[2].contains(&200), "{read:?}");
    for server in &servers {
        let (loads, unloads) = changes(server);
        assert!(loads > 2 && unloads > 0, "{loads} loads, {unloads} unloads");
    }
}

#[test]
fn pages_of_other_origins_send_nothing_through_the_gateway_that_changes_an_upstream_or_wakes_one() {
    let Some(browser) = browser() else { return };
    let upstream = Upstream::start(|_| Reply::new(200, "{\"prediction\": [1]}"));
    let directory = tempfile::tempdir().unwrap();
    let woken = directory.path().join("woken");
    let gateway = Gateway::start(&["--to", &upstream.host()]);
    let nothing = "127.0.0.1:1";
    let wake = format!("touch {}", woken.display());
    let sleeping = Gateway::start(&["--to", nothing, "--wake", &wake, "--hold", "1s"]);
    browser.attack_in_vain(&[
        (gateway.port(), &["/v2/repository/models/a/unload", "/v1/load_lora_adapter"]),
        (sleeping.port(), &["/predict", "/anything"]),
    ]);
    let methods: BTreeSet<String> = upstream.requests().into_iter().map(|request| request.method).collect();
    let reading = ["GET", "HEAD", "OPTIONS"].map(str::to_owned).into();
    assert!(methods.is_subset(&reading), "{methods:?}");
    assert!(!woken.exists());
    let mut client = TestClient::connect(sleeping.address);
    client.write(&post("/predict", "content-type: application/json\r\n", b"{\"input\": [1]}"));
    assert_eq!(client.receive().status, 503);
    eventually("other clients wake it", || woken.exists());
}

#[test]
fn own_pages_work_under_every_name_of_the_server_and_through_a_proxy_that_changes_hosts() {
    let (Some(browser), Some(stage)) = (browser(), stage()) else { return };
    for model in ["c", "d"] {
        stage.write(&format!("models/{model}.onnx"), &times(2.0));
    }
    let server = stage.serve("models", &["--on-demand", "--allow-host", "own.test"]);
    let port = server.address.port();
    let proxy = Gateway::start(&["--to", &server.address.to_string(), "--path", "/batched"]);
    let pages = [("localhost", port), ("127.0.0.1", port), ("own.test", port), ("localhost", proxy.port())];
    // Each page needs a model that is not loaded yet.
    let models = ["a", "b", "c", "d"].into_iter();
    let arguments = pages
        .iter()
        .zip(models)
        .flat_map(|((name, port), model)| [format!("http://{name}:{port}/"), format!("/predict/{model}")]);
    let output = Command::new(&browser.python)
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/page/predict.py"))
        .arg(&browser.chromium)
        .args(arguments)
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "200\n200\n200\n200\n", "{output:?}");
    assert_eq!(changes(&server).0, 4);
}

/// Sockets that listen, of a process and those it started.
fn listening(root: u32) -> Vec<String> {
    let mut tree = BTreeSet::from([root]);
    let parents: Vec<(u32, u32)> = fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| {
            let pid: u32 = entry.unwrap().file_name().to_str()?.parse().ok()?;
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
            let parent = stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()?;
            Some((pid, parent))
        })
        .collect();
    loop {
        let children: Vec<u32> = parents
            .iter()
            .filter(|(pid, parent)| tree.contains(parent) && !tree.contains(pid))
            .map(|(pid, _)| *pid)
            .collect();
        if children.is_empty() {
            break;
        }
        tree.extend(children);
    }
    let tables = ["tcp", "tcp6"].map(|name| fs::read_to_string(format!("/proc/net/{name}")).unwrap());
    let listeners: BTreeSet<String> = tables
        .iter()
        .flat_map(|table| table.lines().skip(1))
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .filter(|fields| fields[3] == "0A")
        .map(|fields| format!("socket:[{}]", fields[9]))
        .collect();
    let mut found = Vec::new();
    for pid in tree {
        let Ok(descriptors) = fs::read_dir(format!("/proc/{pid}/fd")) else { continue };
        let links = descriptors.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
        found.extend(links.map(|link| link.display().to_string()).filter(|link| listeners.contains(link)));
    }
    found
}

/// The dashboard of a sweep is a file: there is nothing that a page could attack.
#[test]
fn a_sweep_listens_on_no_port() {
    let directory = tempfile::tempdir().unwrap();
    let (started, end) = (directory.path().join("started"), directory.path().join("end"));
    let script = format!(
        "touch {}; while [ ! -e {} ]; do sleep 0.05; done; echo loss=1",
        started.display(),
        end.display()
    );
    let project = format!(
        "name = \"p\"\n[sweep]\ncommand = [\"sh\", \"-c\", \"{script}\"]\ngpus_per_trial = 0\nsampler = \"grid\"\n\
         objectives = [{{ metric = \"loss\", goal = \"minimize\" }}]\nparameters = {{ lr = {{ choice = [1] }} }}\n"
    );
    fs::write(directory.path().join("cudock.toml"), project).unwrap();
    let mut command = crate::support::cudock(&["sweep", directory.path().to_str().unwrap()]);
    let mut sweep: Child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    eventually("the trial runs", || started.exists());
    let found = listening(sweep.id());
    fs::write(&end, "").unwrap();
    assert!(sweep.wait().unwrap().success());
    assert_eq!(found, Vec::<String>::new());
    let gateway = Gateway::start(&["--to", "127.0.0.1:1"]);
    assert_eq!(listening(gateway.process.id()).len(), 1, "a server would be found");
}
