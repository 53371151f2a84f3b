use cudock_base::Arch;

use crate::tables::{RuntimeWheel, Runtimes, WheelMember};
use crate::version::Capability;

impl Runtimes {
    /// The newest wheel of a package for a processor.
    pub fn newest(&self, package: &str, cpu: Arch) -> Option<&RuntimeWheel> {
        let fits = |wheel: &&RuntimeWheel| wheel.package == package && wheel.cpu == cpu;
        self.wheel.iter().filter(fits).max_by(|one, other| one.version.cmp(&other.version))
    }

    /// The pip requirement that provides a CUDA library.
    pub fn requirement_for(&self, soname: &str) -> Option<&str> {
        self.cuda_library.iter().find(|row| row.soname == soname).map(|row| row.requirement.as_str())
    }

    /// The requirement for an image that runs on these GPUs only: that of smaller releases, if all of them are old enough.
    pub fn small_requirement_for(&self, soname: &str, gpus: &[Capability]) -> Option<&str> {
        let row = self.cuda_library.iter().find(|row| row.soname == soname)?;
        let is_old = row.small_below.is_some_and(|below| gpus.iter().all(|gpu| *gpu < below));
        row.small_requirement.as_deref().filter(|_| is_old && !gpus.is_empty())
    }
}

impl RuntimeWheel {
    pub fn unpacked(&self) -> u64 {
        self.members.iter().map(|member| member.size).sum()
    }
}

impl WheelMember {
    /// The file name, under which it is unpacked.
    pub fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }
}
