//! Checks the tables: each row has a source and a unique key, and order and references are valid.
//!
//! Tests check the embedded tables, and an overlay is checked before it is used.

mod meters;
mod packages;
mod support;

use std::collections::BTreeSet;

use crate::store::Facts;
use crate::tables::{Prices, TableFile, TableRow, Vendor, for_each_table};
use crate::version::CudaVersion;

/// An invalid row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    pub table: &'static str,
    pub list: &'static str,
    /// The row.
    pub key: String,
    /// The problem.
    pub message: String,
}

/// Checks all tables.
pub fn all(facts: &Facts) -> Vec<Violation> {
    let mut checker = TableChecker::default();
    checker.sources_and_keys(facts);
    checker.gpus(facts);
    checker.chips(facts);
    checker.drivers(facts);
    checker.toolkits(facts);
    checker.compat(facts);
    checker.images(facts);
    checker.frameworks(facts);
    checker.messages(facts);
    checker.findings(facts);
    checker.azure(facts);
    checker.meters(facts);
    checker.runtimes(facts);
    checker.packages(facts);
    checker.violations
}

macro_rules! define_common_checks {
    ($($name:ident: $type:ident = $file:literal, $doc:literal $(=> $finish:ident)?;)*) => {
        impl TableChecker {
            /// Checks what holds for all tables: rows have known sources and unique keys.
            fn sources_and_keys(&mut self, facts: &Facts) {
                $(self.common(facts.$name());)*
            }
        }
    };
}

for_each_table!(define_common_checks);

fn is_pci_id(id: &str) -> bool {
    id.len() == 4 && id.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[derive(Default)]
struct TableChecker {
    violations: Vec<Violation>,
}

impl TableChecker {
    fn add(
        &mut self,
        table: &'static str,
        list: &'static str,
        key: &impl ToString,
        message: impl Into<String>,
    ) {
        self.violations.push(Violation { table, list, key: key.to_string(), message: message.into() });
    }

    /// Checks that rows are sorted by a column.
    fn sorted<T: TableRow, K: PartialOrd>(
        &mut self,
        table: &'static str,
        list: &'static str,
        rows: &[T],
        column: impl Fn(&T) -> K,
    ) {
        for pair in rows.windows(2) {
            if let [before, after] = pair
                && column(before) > column(after)
            {
                let message = format!("comes after {}, which is newer", before.key());
                self.add(table, list, &after.key(), message);
            }
        }
    }

    fn common<T: TableFile>(&mut self, table: &T) {
        let header = table.header();
        let mut seen = BTreeSet::new();
        for (list, row) in table.rows() {
            let key = row.key();
            if row.sources().is_empty() {
                self.add(T::NAME, list, &key, "has no source");
            }
            for source in row.sources() {
                if !header.sources.contains_key(source) && !source.starts_with("https://") {
                    let message = format!("has the source `{source}`, which is not in the header");
                    self.add(T::NAME, list, &key, message);
                }
            }
            if !seen.insert((list, key.clone())) {
                self.add(T::NAME, list, &key, "is duplicated");
            }
        }
        for (name, url) in &header.sources {
            if url.trim().is_empty() {
                self.add(T::NAME, "table", &name, "is a source without a URL");
            }
        }
    }

    fn gpus(&mut self, facts: &Facts) {
        for gpu in &facts.gpus().gpu {
            let wrong = match (gpu.vendor, gpu.capability) {
                (Vendor::Nvidia, None) => Some("is from NVIDIA and has no compute capability".to_owned()),
                (Vendor::Amd, Some(_)) => Some("is not from NVIDIA and has a compute capability".to_owned()),
                (Vendor::Nvidia, Some(capability))
                    if facts.drivers().architecture_of(capability).is_none() =>
                {
                    Some(format!(
                        "has capability {capability}, which is not in drivers.toml [[architecture]]"
                    ))
                }
                _ => None,
            };
            if let Some(message) = wrong {
                self.add("gpus", "gpu", &gpu.id, message);
            }
            for figure in [gpu.fp16_tflops, gpu.memory_gb_per_s].into_iter().flatten() {
                if !figure.is_finite() || figure <= 0.0 {
                    self.add("gpus", "gpu", &gpu.id, format!("has the throughput {figure}"));
                }
            }
            for id in &gpu.pci_ids {
                if !is_pci_id(id) {
                    let message =
                        format!("has the PCI id `{id}`, expected four lower-case hexadecimal digits");
                    self.add("gpus", "gpu", &gpu.id, message);
                }
            }
        }
    }

    fn chips(&mut self, facts: &Facts) {
        let mut seen = BTreeSet::new();
        for chip in &facts.gpus().chip {
            if facts.drivers().architecture_of(chip.capability).is_none() {
                let message = format!("has capability {}, which is not in drivers.toml", chip.capability);
                self.add("gpus", "chip", &chip.id, message);
            }
            for (id, _) in chip.devices() {
                if !is_pci_id(id) || !seen.insert(id.to_owned()) {
                    self.add("gpus", "chip", &chip.id, format!("has a malformed or repeated PCI id `{id}`"));
                }
            }
        }
    }

    fn drivers(&mut self, facts: &Facts) {
        let drivers = facts.drivers();
        self.sorted("drivers", "branch", &drivers.branch, |row| row.branch);
        self.sorted("drivers", "branch", &drivers.branch, |row| row.cuda);
        self.sorted("drivers", "branch", &drivers.branch, |row| row.ptx_isa);
        for branch in &drivers.branch {
            for latest in [branch.latest_linux, branch.latest_windows].into_iter().flatten() {
                if drivers.branch_of(latest).is_none_or(|known| known.branch != branch.branch) {
                    let message = format!("has the release {latest} of another branch");
                    self.add("drivers", "branch", &branch.key(), message);
                }
            }
            if let (Some(first), Some(end)) = (branch.first_release, branch.end_of_life)
                && end <= first
            {
                self.add("drivers", "branch", &branch.key(), "ends before it begins");
            }
            if !drivers.architecture.iter().any(|row| row.name == branch.oldest_architecture) {
                let message = format!(
                    "drives `{}`, which is not an architecture of drivers.toml",
                    branch.oldest_architecture
                );
                self.add("drivers", "branch", &branch.key(), message);
            }
        }
        let mut seen = BTreeSet::new();
        for row in &drivers.architecture {
            for capability in &row.capabilities {
                if !seen.insert(*capability) {
                    let message = format!("shares {capability} with another");
                    self.add("drivers", "architecture", &row.name, message);
                }
            }
        }
        self.sorted("drivers", "minor_compat", &drivers.minor_compat, |row| (row.cuda_major, row.min_linux));
    }

    fn toolkits(&mut self, facts: &Facts) {
        let toolkits = facts.toolkits();
        self.sorted("toolkits", "toolkit", &toolkits.toolkit, |row| row.cuda);
        self.sorted("toolkits", "toolkit", &toolkits.toolkit, |row| row.ptx_isa);
        self.sorted("toolkits", "release", &toolkits.release, |row| row.cuda);
        self.sorted("components", "components", &facts.components().components, |row| row.cuda);
        for toolkit in &toolkits.toolkit {
            let Some(number) = toolkit.driver_branch else { continue };
            match facts.drivers().branch.iter().find(|branch| branch.branch == number) {
                None => self.add(
                    "toolkits",
                    "toolkit",
                    &toolkit.key(),
                    format!("goes with R{number}, which is not a branch of drivers.toml"),
                ),
                Some(branch) if branch.cuda != toolkit.cuda || branch.ptx_isa != toolkit.ptx_isa => {
                    let message = format!(
                        "goes with R{number}, which has CUDA {} and PTX {}",
                        branch.cuda, branch.ptx_isa
                    );
                    self.add("toolkits", "toolkit", &toolkit.key(), message);
                }
                Some(_) => {}
            }
            if toolkit.default_arch.is_some_and(|arch| !toolkit.sass.contains(&arch)) {
                let message = "has a default target that is not in its list";
                self.add("toolkits", "toolkit", &toolkit.key(), message);
            }
        }
        for row in &facts.components().components {
            if !toolkits.release.iter().any(|release| release.cuda == row.cuda) {
                self.add("components", "components", &row.cuda, "is not a release of toolkits.toml");
            }
        }
    }

    fn compat(&mut self, facts: &Facts) {
        for package in &facts.forward_compat().package {
            for branch in &package.supported {
                let known = facts.drivers().branch.iter().find(|row| row.branch == *branch);
                if known.is_none_or(|row| row.cuda >= package.cuda) {
                    let message =
                        format!("supports R{branch}, which is unknown or has that CUDA version itself");
                    self.add("forward_compat", "package", &package.cuda, message);
                }
            }
        }
    }

    fn images(&mut self, facts: &Facts) {
        let images = facts.images();
        self.sorted("images", "tag", &images.tag, |row| row.cuda);
        for tags in &images.tag {
            if tags.grid.is_empty()
                || tags.grid.iter().any(|grid| grid.flavours.is_empty() || grid.os.is_empty())
            {
                self.add("images", "tag", &tags.cuda, "has an empty grid");
            }
            if images.deleted.iter().any(|row| row.cuda == tags.cuda.to_string()) {
                self.add("images", "tag", &tags.cuda, "is listed as existing and as deleted");
            }
        }
        for row in &images.require {
            if row.minimum != row.cuda.version() {
                self.add("images", "require", &row.cuda, format!("requires CUDA {}", row.minimum));
            }
        }
        for pair in images.library_path.windows(2) {
            if let [before, after] = pair
                && before.to.is_none_or(|to| to >= after.from)
            {
                self.add("images", "library_path", &after.from, "overlaps the previous range");
            }
        }
    }

    fn frameworks(&mut self, facts: &Facts) {
        let frameworks = facts.frameworks();
        self.sorted("frameworks", "torch", &frameworks.torch, |row| row.version.clone());
        self.sorted("frameworks", "tensorflow", &frameworks.tensorflow, |row| row.version.clone());
        self.sorted("frameworks", "onnxruntime_gpu", &frameworks.onnxruntime_gpu, |row| row.version.clone());
        self.sorted("frameworks", "tensorrt", &frameworks.tensorrt, |row| row.version.clone());
        for build in &frameworks.torch_build {
            let key = build.key();
            if CudaVersion::from_tag(&build.tag) != Some(build.cuda) {
                self.add("frameworks", "torch_build", &key, format!("has CUDA {}", build.cuda));
            }
            for version in &build.versions {
                if frameworks.torch(version).is_none() {
                    let message = format!("is for torch {version}, which has no row");
                    self.add("frameworks", "torch_build", &key, message);
                }
            }
        }
        for release in &frameworks.torch {
            let on_pypi: Vec<_> =
                frameworks.torch_builds(&release.version).filter(|build| build.pypi).collect();
            match on_pypi.as_slice() {
                [build] if build.tag == release.tag && build.cuda == release.cuda => {}
                _ => self.add(
                    "frameworks",
                    "torch",
                    &release.version,
                    "does not have one PyPI build of its tag and CUDA",
                ),
            }
            if let Some(minor) = facts.drivers().minor_compat(release.cuda.major())
                && release.min_driver != minor.min_linux
            {
                let message = format!(
                    "requires driver {}; CUDA {} requires {}",
                    release.min_driver,
                    release.cuda.major(),
                    minor.min_linux
                );
                self.add("frameworks", "torch", &release.version, message);
            }
        }
    }

    fn runtimes(&mut self, facts: &Facts) {
        let runtimes = facts.runtimes();
        for wheel in &runtimes.wheel {
            let mut wrong = |message: String| self.add("runtimes", "wheel", &wheel.key(), message);
            if wheel.sha256.len() != 64
                || !wheel.sha256.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
            {
                wrong("has a hash that is not 64 lower-case hexadecimal digits".to_owned());
            }
            if !wheel.members.iter().any(|member| member.path == wheel.library) {
                wrong(format!("does not extract its library `{}`", wheel.library));
            }
            let mut names = BTreeSet::new();
            for member in &wheel.members {
                if member.path.split('/').any(|part| matches!(part, "" | "." | ".."))
                    || !names.insert(member.name())
                {
                    wrong(format!("extracts `{}`, whose name is invalid or duplicated", member.path));
                }
            }
            let of_cuda = wheel.needs.iter().chain(&wheel.loads).filter(|soname| *soname != "libcuda.so.1");
            for soname in of_cuda.filter(|soname| runtimes.requirement_for(soname).is_none()) {
                wrong(format!("uses {soname}, which has no row in [[cuda_library]]"));
            }
        }
    }

    fn messages(&mut self, facts: &Facts) {
        let messages = facts.messages();
        for row in &messages.message {
            for general in &row.wins_over {
                if messages.get(general).is_none() || *general == row.id {
                    let message = format!("wins over `{general}`, which is not another message");
                    self.add("messages", "message", &row.id, message);
                }
            }
            if let Some(code) = row.cuda_code
                && messages.cuda_error(&code.to_string()).is_none()
            {
                let message = format!("has the CUDA error {code}, which has no row");
                self.add("messages", "message", &row.id, message);
            }
            if row.fix.is_empty() {
                self.add("messages", "message", &row.id, "has no fix");
            }
        }
        self.sorted("messages", "cuda_error", &messages.cuda_error, |row| row.code);
    }

    fn findings(&mut self, facts: &Facts) {
        let pages = &facts.findings().finding;
        self.sorted("findings", "finding", pages, |row| row.code.clone());
        for page in pages {
            if !page.has_valid_code() {
                self.add("findings", "finding", &page.code, "is not `CD` and four digits of a known group");
            }
            if page.fix.is_empty() {
                self.add("findings", "finding", &page.code, "has no fix");
            }
        }
    }

    fn azure(&mut self, facts: &Facts) {
        let is_gpu = |id: &str| facts.gpus().gpu.iter().any(|gpu| gpu.id == id);
        for size in &facts.sizes().size {
            if let Some(gpu) = size.gpu.as_deref().filter(|gpu| !is_gpu(gpu)) {
                let message = format!("has the GPU `{gpu}`, which is not in gpus.toml");
                self.add("azure_sizes", "size", &size.name, message);
            }
            if size.documented && (size.gpu.is_none() || size.gpu_count.is_none()) {
                self.add("azure_sizes", "size", &size.name, "is documented and has no GPU");
            }
            if !matches!(size.cpu_arch.as_str(), "x86_64" | "aarch64") {
                let message = format!("has the CPU architecture `{}`", size.cpu_arch);
                self.add("azure_sizes", "size", &size.name, message);
            }
        }
        let mut seen = BTreeSet::new();
        for row in facts.prices().rows() {
            if facts.sizes().find(row.size).one().is_none() {
                self.add(
                    Prices::NAME,
                    "price",
                    &row.size,
                    "has a price, but is not a size of azure_sizes.toml",
                );
            }
            if row.price.is_none() && row.spot.is_none() {
                self.add(Prices::NAME, "price", &row.size, format!("has no price in {}", row.region));
            }
            if !seen.insert((row.size.to_owned(), row.region.to_owned())) {
                self.add(Prices::NAME, "price", &row.size, format!("is duplicated for {}", row.region));
            }
        }
        let services = facts.services();
        let is_service = |id: &str| services.service.iter().any(|service| service.id == id);
        for profile in &services.profile {
            if !is_gpu(&profile.gpu) {
                let message = format!("has the GPU `{}`", profile.gpu);
                self.add("azure_services", "profile", &profile.name, message);
            }
        }
        for limit in services.limit.iter().filter(|limit| !is_service(&limit.service)) {
            let key = limit.key();
            let message = format!("limits `{}`, which is not a service", limit.service);
            self.add("azure_services", "limit", &key, message);
        }
        self.support(facts);
        let storage = facts.storage();
        let is_storage = |id: &str| storage.storage.iter().any(|row| row.id == id);
        for price in storage.price.iter().filter(|price| !is_storage(&price.storage)) {
            let key = price.key();
            let message = format!("prices `{}`, which is not a storage", price.storage);
            self.add("azure_storage", "price", &key, message);
        }
    }
}
