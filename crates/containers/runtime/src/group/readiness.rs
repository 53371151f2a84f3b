//! Why a group is not ready.

use cudock_group::{Group, ProbeAction};

use super::status::{GroupStatus, MemberPhase, MemberStatus};

impl GroupStatus {
    pub fn unready(&self) -> Option<&MemberStatus> {
        self.containers.iter().find(|container| {
            let waits = container.phase != MemberPhase::Succeeded;
            waits && (container.init || !container.ready)
        })
    }
}

impl MemberStatus {
    /// Why it is not ready, with the probe that fails.
    pub fn unready_reason(&self, group: &Group) -> String {
        let name = &self.name;
        if self.init {
            return format!("init container {name} is {}", self.phase);
        }
        let last = self.reason.as_deref().unwrap_or("no result yet");
        let last = last.strip_prefix("not ready: ").unwrap_or(last);
        let container = group.containers.iter().find(|container| container.name == *name);
        match container.and_then(|container| container.readiness.as_ref()).map(|probe| &probe.action) {
            None => format!("container {name} is {}: {last}", self.phase),
            Some(ProbeAction::Exec(command)) => {
                format!("container {name}: readiness probe `{}`: {last}", command.join(" "))
            }
            Some(ProbeAction::HttpGet(get)) => {
                format!("container {name}: readiness probe GET {} on port {}: {last}", get.path, get.port)
            }
        }
    }
}
