//! Virtual machines: quota, power states, eviction.

use serde_json::{Value, json};

use crate::catalog;
use crate::cloud::Cloud;
use crate::resources::resource::Resource;
use crate::resources::target::Target;
use crate::services::container_instances::OUTPUT;
use crate::services::terminal::DEVICES;
use crate::state::operation::{OperationStyle, Progress};
use crate::time::with_offset;
use crate::wire::answer::Answer;

const MACHINE: &str = "microsoft.compute/virtualmachines";

fn is_spot(body: &Value) -> bool {
    ["Spot", "Low"].contains(&body["properties"]["priority"].as_str().unwrap_or_default())
}

impl Cloud {
    /// Why a machine may not be created: size and quota. In a deployment this comes as an error of its validation.
    pub(crate) fn refuse_machine(&self, target: &Target, body: &Value, in_template: bool) -> Option<Answer> {
        if self.find(&target.key).is_some() {
            return None;
        }
        let size = body["properties"]["hardwareProfile"]["vmSize"].as_str().unwrap_or_default();
        let Some((cores, family)) = catalog::size(size) else {
            let message = format!("The value {size} provided for the VM size is not valid.");
            return Some(Answer::error(400, "InvalidParameter", message));
        };
        let location = body["location"].as_str().unwrap_or_default();
        let checks = if is_spot(body) {
            vec![("lowPriorityCores", "LowPriorityCores".to_owned())]
        } else {
            vec![(family, format!("{family} Cores")), ("cores", "Total Regional Cores".to_owned())]
        };
        for (name, words) in checks {
            let (limit, used) = (self.settings.quota_of(name), self.used_cores(name));
            if used + cores > limit {
                let message = format!(
                    "Operation could not be completed as it results in exceeding approved {words} quota. Additional \
                     details - Deployment Model: Resource Manager, Location: {location}, Current Limit: {limit}, \
                     Current Usage: {used}, Additional Required: {cores}, (Minimum) New Limit Required: {}.",
                    used + cores
                );
                let (status, code) =
                    if in_template { (400, "QuotaExceeded") } else { (409, "OperationNotAllowed") };
                return Some(Answer::error(status, code, message));
            }
        }
        None
    }

    /// The cores that machines use of a quota.
    pub(crate) fn used_cores(&self, quota: &str) -> u64 {
        let machines = self.resources.values().filter(|resource| resource.target.kind == MACHINE);
        let counted = machines.filter_map(|resource| {
            let size = resource.property("hardwareProfile")["vmSize"].as_str()?;
            let (cores, family) = catalog::size(size)?;
            let spot = is_spot(&resource.body);
            let counts = match quota {
                "lowPriorityCores" => spot,
                "cores" => !spot,
                _ => !spot && family == quota,
            };
            counts.then_some(cores)
        });
        counted.sum()
    }

    pub(crate) fn machine_created(&mut self, target: &Target) {
        if target.kind != MACHINE {
            return;
        }
        let id = self.random.uuid();
        let created = with_offset(self.now);
        let disk = format!("{}_OsDisk_1", target.name);
        let group = target.id.split("/providers/").next().unwrap_or_default().to_owned();
        let disk_target =
            Target::parse(&format!("{group}/providers/Microsoft.Compute/disks/{disk}")).unwrap();
        let (location, tags) = {
            let body = &self.resources[&target.key].body;
            (body["location"].clone(), body["tags"].clone())
        };
        self.store(&disk_target, &json!({"location": location, "tags": tags, "managedBy": target.id}));
        self.update(&disk_target.key, |disk| disk.set_state("Succeeded"));
        self.update(&target.key, |machine| {
            machine.set("vmId", json!(id));
            machine.set("timeCreated", json!(created));
            machine.body["properties"]["storageProfile"]["osDisk"]["name"] = json!(disk);
            machine.body["properties"]["storageProfile"]["osDisk"]["managedDisk"]["id"] =
                json!(disk_target.id);
        });
        // Billed from `timeCreated` on.
        self.charge(&target.key);
    }

    pub(crate) fn machine_ready(&mut self, key: &str) {
        if self.resources[key].started.is_some() {
            return;
        }
        let now = self.now;
        self.update(key, |machine| machine.started = Some(now));
        if let Some(seconds) = self.settings.evict_after.filter(|_| is_spot(&self.resources[key].body)) {
            self.after_for(key, seconds, Self::evict);
        }
    }

    /// Takes a Spot machine away.
    fn evict(&mut self, key: &str) {
        let target = self.resources[key].target.clone();
        self.stop_charging(key);
        if self.resources[key].property("evictionPolicy") == "Delete" {
            self.record(&target, "delete", "Started");
            self.record(&target, "delete", "Succeeded");
            self.remove_machine(key);
        } else {
            self.record(&target, "deallocate/action", "Succeeded");
            self.update(key, |machine| machine.set("power", json!("deallocated")));
        }
    }

    /// Whether a machine of this id was evicted, and not deleted by anyone.
    pub(crate) fn was_evicted(&self, key: &str) -> bool {
        self.settings.evict_after.is_some()
            && self.ghosts.iter().any(|(resource, _)| resource.target.key == key)
    }

    /// Removes a machine, and the resources that its delete options remove with it.
    pub(crate) fn remove_machine(&mut self, key: &str) {
        let machine = self.resources[key].clone();
        let disk = &machine.body["properties"]["storageProfile"]["osDisk"];
        let mut gone = Vec::new();
        if disk["deleteOption"] == "Delete" || machine.property("evictionPolicy") == "Delete" {
            gone.extend(disk["managedDisk"]["id"].as_str().map(str::to_ascii_lowercase));
        }
        for interface in
            machine.body["properties"]["networkProfile"]["networkInterfaces"].as_array().into_iter().flatten()
        {
            if interface["properties"]["deleteOption"] != "Delete" {
                continue;
            }
            let Some(interface) = interface["id"].as_str().map(str::to_ascii_lowercase) else { continue };
            for configuration in self.find(&interface).into_iter().flat_map(|interface| {
                interface.property("ipConfigurations").as_array().cloned().unwrap_or_default()
            }) {
                let address = &configuration["properties"]["publicIPAddress"];
                if address["properties"]["deleteOption"] == "Delete" {
                    gone.extend(address["id"].as_str().map(str::to_ascii_lowercase));
                }
            }
            gone.push(interface);
        }
        self.remove(key);
        for key in gone {
            self.remove(&key);
        }
    }

    pub(crate) fn render_machine(&self, machine: &Resource, expand: bool) -> Value {
        let mut body = machine.body.clone();
        let power = match body["properties"].as_object_mut().and_then(|properties| properties.remove("power"))
        {
            Some(power) => power.as_str().unwrap_or_default().to_owned(),
            None if machine.started.is_some() => "running".to_owned(),
            None => "starting".to_owned(),
        };
        // Passwords and start-up scripts are never returned.
        if let Some(profile) = body.pointer_mut("/properties/osProfile").and_then(Value::as_object_mut) {
            profile.remove("customData");
            profile.remove("adminPassword");
        }
        if expand {
            let status =
                |code: String, text: &str| json!({"code": code, "level": "Info", "displayStatus": text});
            let state = machine.state().to_ascii_lowercase();
            body["properties"]["instanceView"] = json!({"statuses": [
                status(format!("ProvisioningState/{state}"), "Provisioning"),
                status(format!("PowerState/{power}"), "VM"),
            ]});
            if machine.started.is_some() && power == "running" {
                let extensions = self.resources.values().filter(|extension| {
                    extension.target.kind == "microsoft.compute/virtualmachines/extensions"
                        && extension.target.parent_key() == machine.target.key
                });
                let extensions: Vec<Value> = extensions
                    .map(|extension| {
                        let state = extension.state().to_ascii_lowercase();
                        json!({"name": extension.target.name, "statuses": [status(format!("ProvisioningState/{state}"), "")]})
                    })
                    .collect();
                body["properties"]["instanceView"]["vmAgent"] = json!({
                    "statuses": [status("ProvisioningState/succeeded".to_owned(), "Ready")],
                });
                if !extensions.is_empty() {
                    body["properties"]["instanceView"]["extensions"] = json!(extensions);
                }
            }
        }
        body
    }

    /// An action of a machine: `deallocate`, `start`, `simulateEviction`, `runCommand`.
    pub(crate) fn machine_action(&mut self, target: &Target, action: &str, body: &Value) -> Answer {
        let Some(machine) = self.find(&target.key).cloned() else { return Self::not_found(target) };
        let location = machine.location();
        match action {
            "simulateeviction" if is_spot(&machine.body) => {
                self.after_for(&target.key, 60, Self::evict);
                return Answer::empty(204);
            }
            "simulateeviction" => {
                let message = "Operation 'simulateEviction' is allowed only for Spot Virtual Machines";
                return Answer::error(409, "OperationNotAllowed", message);
            }
            "deallocate" => {
                self.record(target, "deallocate/action", "Started");
                self.stop_charging(&target.key);
                self.update(&target.key, |machine| machine.set("power", json!("deallocated")));
            }
            // Billed as before.
            "poweroff" => self.update(&target.key, |machine| machine.set("power", json!("stopped"))),
            "start" => {
                self.charge(&target.key);
                self.update(&target.key, |machine| machine.set("power", json!("running")));
            }
            "runcommand" if machine.started.is_none() => {
                let message = "The operation requires the VM to be running (or set to run).";
                return Answer::error(409, "OperationNotAllowed", message);
            }
            "runcommand" => {}
            _ => return Answer::error(404, "InvalidAction", format!("no action {action} of a VM")),
        }
        let style = if action == "runcommand" { OperationStyle::Location } else { OperationStyle::Compute };
        let operation = self.begin(style, &target.key, &location);
        if action == "runcommand" {
            // Whatever the script is, it prints the log. A command in the container lists its GPU and ends like a job.
            let (code, is_exec) = (self.settings.job_exit_code, body.to_string().contains("docker exec "));
            let devices = format!("{DEVICES}\ncudock exit code {code}\n");
            let printed = if is_exec { &devices } else { OUTPUT };
            let message = format!("Enable succeeded: \n[stdout]\n{printed}\n[stderr]\n");
            let status = json!({
                "code": "ProvisioningState/succeeded", "level": "Info", "displayStatus": "Provisioning succeeded",
                "message": message,
            });
            self.set_result(&operation, json!({"value": [status]}));
        }
        let done = operation.clone();
        self.after(18, move |cloud| cloud.end(&done, Progress::Succeeded));
        let (status, location) = (self.signed(&operation), self.signed(&operation));
        let answer = Answer::empty(202).with("Location", location);
        if style == OperationStyle::Location { answer } else { answer.with("Azure-AsyncOperation", status) }
    }

    /// A managed run command: a script that waits for the result of the machine's work and ends with its exit code.
    pub(crate) fn render_command(&self, command: &Resource, expand: bool) -> Value {
        let mut body = command.body.clone();
        let machine = self.find(&command.target.parent_key());
        if expand && let Some(started) = machine.and_then(|machine| machine.started) {
            let code = self.settings.job_exit_code;
            body["properties"]["instanceView"] = if started + self.settings.job_seconds > self.now {
                json!({"executionState": "Running", "exitCode": 0, "output": "", "error": ""})
            } else {
                let state = if code == 0 { "Succeeded" } else { "Failed" };
                json!({"executionState": state, "exitCode": code, "output": OUTPUT, "error": ""})
            };
        }
        body
    }
}
