//! Where it is judged: cards, drivers and the state of machines.

use cudock_base::Arch;
use cudock_compat::target::HostLibcuda;
use cudock_compat::{StartPath, Target, TargetMachine};
use cudock_facts::finding::{Finding, Severity};
use cudock_host::host::LibraryKind;

use super::support::facts;

pub(crate) fn gpu(name: &str, driver: &str) -> Target {
    Target::of_gpu(facts(), name, Some(driver.parse().unwrap())).unwrap()
}

/// What a target may have beside its card and driver.
pub(crate) trait Around {
    fn cdi(self) -> Self;
    fn wsl(self) -> Self;
    fn cards(self, count: u32) -> Self;
    fn processor(self, cpu: &str) -> Self;
    fn brand(self, brand: &str) -> Self;
    fn capability(self, capability: &str) -> Self;
    fn machine(self, machine: TargetMachine) -> Self;
}

impl Around for Target {
    fn cdi(mut self) -> Self {
        self.traits.start = StartPath::Cdi;
        self
    }

    fn wsl(mut self) -> Self {
        self.traits.wsl = true;
        self
    }

    fn cards(mut self, count: u32) -> Self {
        self.traits.gpu_count = Some(count);
        self
    }

    fn processor(mut self, cpu: &str) -> Self {
        self.traits.cpu = Some(Arch::parse(cpu).unwrap());
        self
    }

    fn brand(mut self, brand: &str) -> Self {
        self.traits.brand = Some(brand.to_owned());
        self
    }

    fn capability(mut self, capability: &str) -> Self {
        self.capability = Some(capability.parse().unwrap());
        self
    }

    fn machine(mut self, machine: TargetMachine) -> Self {
        self.traits.machine = Some(machine);
        self
    }
}

/// A machine with nothing against it.
pub(crate) fn healthy() -> TargetMachine {
    TargetMachine {
        libcuda: Some(host_libcuda(LibraryKind::Driver)),
        has_jit: true,
        ..TargetMachine::default()
    }
}

fn host_libcuda(kind: LibraryKind) -> HostLibcuda {
    HostLibcuda { path: "/host/libcuda.so.1".to_owned(), kind, version: None }
}

/// A machine where the loader comes to this libcuda first.
pub(crate) fn finding_first(kind: LibraryKind, version: Option<&str>) -> TargetMachine {
    let version = version.map(|version| version.parse().unwrap());
    TargetMachine { libcuda: Some(HostLibcuda { version, ..host_libcuda(kind) }), ..healthy() }
}

/// A machine that keeps every program from the card, with the doctor's code for it.
pub(crate) fn blocked(error: Option<u16>, code: &'static str) -> TargetMachine {
    let finding = Finding::new(code, Severity::Error, "the doctor's message", "");
    TargetMachine { blocked: Some((error, finding)), ..healthy() }
}
