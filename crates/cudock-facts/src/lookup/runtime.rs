use crate::tables::{RuntimeWheel, Runtimes, WheelMember};

impl Runtimes {
    /// The newest wheel of a package for a processor, as [`std::env::consts::ARCH`] names it.
    pub fn newest(&self, package: &str, cpu: &str) -> Option<&RuntimeWheel> {
        let fits = |wheel: &&RuntimeWheel| wheel.package == package && wheel.cpu == cpu;
        self.wheel.iter().filter(fits).max_by(|one, other| one.version.cmp(&other.version))
    }

    /// The pip requirement that provides a CUDA library.
    pub fn requirement_for(&self, soname: &str) -> Option<&str> {
        self.cuda_library.iter().find(|row| row.soname == soname).map(|row| row.requirement.as_str())
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
