use crate::tables::{
    Architecture, Branch, CompatPackage, ComponentSet, Drivers, ForwardCompat, MinorCompat, Release, Toolkit,
    Toolkits,
};
use crate::version::{Capability, CudaVersion, DriverVersion};

/// The programs of a CUDA major version that a driver runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Runs {
    /// All of them: the driver's own CUDA has a later major version.
    All,
    /// All machine code, by minor-version compatibility; PTX of later toolkits is rejected (error 222).
    AllButPtxAfter(CudaVersion),
    /// Programs of toolkits up to the driver's own CUDA; all others need at least the second version.
    UpTo(CudaVersion, DriverVersion),
    /// None (error 35); this is the lowest driver that works.
    None(DriverVersion),
}

impl Drivers {
    /// The programs that a driver runs on Linux, by CUDA major version; empty for a driver of an
    /// unknown branch.
    pub fn runs(&self, driver: DriverVersion) -> Vec<(u8, Runs)> {
        let Some(own) = self.branch_of(driver).map(|branch| branch.cuda) else { return Vec::new() };
        let runs_major = |row: &MinorCompat| {
            let runs = if row.cuda_major < own.major() {
                Runs::All
            } else if driver >= row.min_linux {
                Runs::AllButPtxAfter(own)
            } else if row.cuda_major == own.major() {
                Runs::UpTo(own, row.min_linux)
            } else {
                Runs::None(row.min_linux)
            };
            (row.cuda_major, runs)
        };
        self.minor_compat.iter().map(runs_major).collect()
    }

    /// Whether a program built with a toolkit starts on a driver. True for a driver newer than all rows.
    pub fn runs_toolkit(&self, driver: DriverVersion, cuda: CudaVersion) -> bool {
        let oldest = self.branch.iter().map(|row| row.branch).min();
        let runs = self.runs(driver);
        let of_major = runs.iter().find(|(major, _)| *major == cuda.major()).map(|(_, runs)| *runs);
        match of_major {
            Some(Runs::All | Runs::AllButPtxAfter(_)) => true,
            Some(Runs::UpTo(own, _)) => cuda <= own,
            Some(Runs::None(_)) => false,
            None => oldest.is_none_or(|oldest| driver.branch() >= oldest),
        }
    }

    /// The branch of a driver: the newest that starts at or below it. `None` for a driver older than all rows, or ten or
    /// more branches newer than the newest.
    pub fn branch_of(&self, driver: DriverVersion) -> Option<&Branch> {
        let branch =
            self.branch.iter().filter(|row| row.branch <= driver.branch()).max_by_key(|row| row.branch)?;
        let newest = self.branch.iter().map(|row| row.branch).max()?;
        (branch.branch != newest || driver.branch() < newest + 10).then_some(branch)
    }

    /// The release that a user means by a driver version: itself, or the last release of a branch.
    pub fn last_release(&self, driver: DriverVersion) -> DriverVersion {
        if driver.is_exact() {
            return driver;
        }
        let row = self.branch.iter().find(|row| row.branch == driver.branch());
        row.and_then(|row| row.latest_linux).unwrap_or(DriverVersion::end_of_branch(driver.branch()))
    }

    /// The branch that introduced a CUDA version.
    pub fn branch_with(&self, cuda: CudaVersion) -> Option<&Branch> {
        self.branch.iter().find(|row| row.cuda == cuda)
    }

    pub fn minor_compat(&self, cuda_major: u8) -> Option<&MinorCompat> {
        self.minor_compat.iter().find(|row| row.cuda_major == cuda_major)
    }

    pub fn architecture_of(&self, capability: Capability) -> Option<&Architecture> {
        self.architecture.iter().find(|row| row.capabilities.contains(&capability))
    }

    pub fn newest(&self) -> Option<&Branch> {
        self.branch.iter().max_by_key(|row| row.branch)
    }
}

impl Toolkits {
    pub fn toolkit(&self, cuda: CudaVersion) -> Option<&Toolkit> {
        self.toolkit.iter().find(|row| row.cuda == cuda)
    }

    /// The patch releases of a minor version, oldest first.
    pub fn releases_of(&self, cuda: CudaVersion) -> impl Iterator<Item = &Release> {
        self.release.iter().filter(move |row| row.cuda.version() == cuda)
    }
}

impl ComponentSet {
    /// Every component with its version, by the name in NVIDIA's packages.
    pub fn all(&self) -> [(&'static str, Option<&str>); 14] {
        [
            ("cuda_runtime", self.cuda_runtime.as_deref()),
            ("cuda_nvcc", self.cuda_nvcc.as_deref()),
            ("cuda_nvrtc", self.cuda_nvrtc.as_deref()),
            ("cublas", self.cublas.as_deref()),
            ("cufft", self.cufft.as_deref()),
            ("curand", self.curand.as_deref()),
            ("cusolver", self.cusolver.as_deref()),
            ("cusparse", self.cusparse.as_deref()),
            ("nvjitlink", self.nvjitlink.as_deref()),
            ("cuda_cupti", self.cuda_cupti.as_deref()),
            ("cufile", self.cufile.as_deref()),
            ("npp", self.npp.as_deref()),
            ("nvjpeg", self.nvjpeg.as_deref()),
            ("nvtx", self.nvtx.as_deref()),
        ]
    }
}

impl ForwardCompat {
    /// The cuda-compat packages that run on a kernel driver of a branch, oldest first.
    pub fn packages_for(&self, branch: u16) -> impl Iterator<Item = &CompatPackage> {
        self.package.iter().filter(move |package| package.supported.contains(&branch))
    }
}
