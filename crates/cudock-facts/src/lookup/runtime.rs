use crate::tables::{RuntimeWheel, Runtimes, WheelMember};

impl Runtimes {
    /// The newest wheel of a package for a processor, as [`std::env::consts::ARCH`] names it.
    pub fn newest(&self, package: &str, cpu: &str) -> Option<&RuntimeWheel> {
        let fits = |wheel: &&RuntimeWheel| wheel.package == package && wheel.cpu == cpu;
        self.wheel.iter().filter(fits).max_by(|one, other| one.version.cmp(&other.version))
    }

    /// What pip is told to install for one of CUDA's libraries.
    pub fn requirement_for(&self, soname: &str) -> Option<&str> {
        self.cuda_library.iter().find(|row| row.soname == soname).map(|row| row.requirement.as_str())
    }
}

impl RuntimeWheel {
    /// What its members take once they are unpacked.
    pub fn unpacked(&self) -> u64 {
        self.members.iter().map(|member| member.size).sum()
    }
}

impl WheelMember {
    /// Its name without folders, which is the name it is unpacked under.
    pub fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }
}
